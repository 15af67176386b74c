/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rate-limit algorithm, and a limit by it.
 *
 * Everything that weir says or asks of an algorithm goes through its descriptor: how the configuration writes its limits
 * and in which bounds, what people read of them, what a limiter keeps for a bucket and how it judges by that. A new
 * algorithm is a file with a descriptor, and its line in registry.c.
 */
#ifndef WEIR_COMMON_ALGORITHM_H
#define WEIR_COMMON_ALGORITHM_H

#include "common/base/status.h"
#include "common/base/text.h"
#include "common/json/json.h"
#include "common/match/match.h"

/*
 * Bounds that keep all arithmetic in 64 bits (128 where said): rate and burst 1..10^9; times 1 ms..366 d; and what a
 * full bucket holds, its tokens times the window in ms.
 */
#define WEIR_RATE_MAX INT64_C(1000000000)
#define WEIR_WINDOW_MAX_MS (INT64_C(366) * 86400000)
#define WEIR_BURST_WINDOW_MAX INT64_C(4000000000000000000)

enum { WEIR_LIMIT_OWN_MAX = 2, WEIR_LIMIT_MEMBERS_MAX = 8, WEIR_SCALE_ONE = 1000 /* thousandths */ };

struct weir_algorithm;
struct weir_limit_shape;

/* Numbers of which each algorithm's members say what they are called there: a queue's length is its rate. */
struct weir_limit {
	const struct weir_algorithm *algorithm;
	int64_t rate;                    /* how many, 1 at least; 1 where no member says it */
	int64_t window_ms;               /* in what time */
	int64_t burst;                   /* how many at once; 0 where no member says it */
	int64_t own[WEIR_LIMIT_OWN_MAX]; /* what one algorithm alone knows: its file names them */
	struct weir_match done;          /* records that take an entry out; field_count 0: none do. Not compared */
};

enum weir_member_kind {
	WEIR_MEMBER_NUMBER,
	WEIR_MEMBER_TIME,   /* ms */
	WEIR_MEMBER_SWITCH, /* 0 or 1 */
	WEIR_MEMBER_MATCH,  /* `done` */
};

/* One member of a limit's object. */
struct weir_limit_member {
	const char *name; /* NULL after the last */
	enum weir_member_kind kind;
	size_t at;           /* where its int64_t lies in struct weir_limit; not for a match */
	const char *needed;  /* what to write there, for whoever left it out; NULL: it may be left out */
	const char *meaning; /* for a reference, in one sentence */
	int64_t least, most;
	int64_t (*bound)(const struct weir_limit *limit);     /* instead of `most`, by the members before it; or NULL */
	int64_t (*otherwise)(const struct weir_limit *limit); /* what it is where it is left out, by them; NULL: `least` */
	bool is_optional; /* the canonical object names it above `least` only: policies stored without it stay the same */
};

/* A function that is NULL stands for what is said with it. */
struct weir_algorithm {
	const char *name; /* as its line in registry.c has it */
	struct weir_limit_member members[WEIR_LIMIT_MEMBERS_MAX];

	/** Refuses members that are good each by itself and not together. NULL: there are none. */
	enum weir_status (*check)(const struct weir_json *at, const struct weir_limit *limit, struct weir_error *error);

	/**
	 * Makes a limit of `--limit N/WINDOW`: rate and window_ms are N and WINDOW, the other needed members are to be set.
	 * NULL: there are no others.
	 *
	 * @return NULL, or what is wrong with it in words
	 */
	const char *(*shorthand)(struct weir_limit *limit);

	/** Appends what the limit lets pass, behind "at most": "10 in any 1m". */
	void (*describe)(struct weir_text *text, const struct weir_limit *limit);
	/** Appends it in the fewest words. NULL: "10 in 1m", by rate and window. */
	void (*brief)(struct weir_text *text, const struct weir_limit *limit);

	/** Whether its window is one that holds `rate` events and lets go of a breach at its end, if not before. */
	bool is_window;
	/** The most events of cost 1 that it lets pass in any window of another limit. NULL: any number. */
	int64_t (*most_within)(const struct weir_limit *limit, const struct weir_limit *window);
	/** Makes it remember less where it can, and appends the member that does; whether it could. NULL: it cannot. */
	bool (*economize)(struct weir_limit *limit, struct weir_text *member);

	/**
	 * Which recorded events an event at t meets: those later than *after_ms and not later than *until_ms. NULL: all since
	 * the limit last held nothing.
	 */
	void (*met)(const struct weir_limit *limit, int64_t t, int64_t *after_ms, int64_t *until_ms);
	/** How long a state can matter, ms. NULL: for its window. */
	int64_t (*memory_ms)(const struct weir_limit *limit);
	/** Multiplies what it lets pass, within its bounds. NULL: its rate. @param thousandths  above 0 */
	void (*scale)(struct weir_limit *limit, uint32_t thousandths);

	/** Says how its state is kept and judged (limit_state.h): fills a shape of which the limit is set. */
	void (*shape)(struct weir_limit_shape *shape);
	const char *shown; /* the JSON that its state is shown as, for `weir state --help` */
};

/* ---- the registry ---- */

/** The algorithms by the order of the registry; NULL after the last. */
const struct weir_algorithm *weir_algorithm_at(size_t index);

/** NULL: there is none of the name, or the name is NULL. */
const struct weir_algorithm *weir_algorithm_named(const char *name);

/** All names in that order, NULL after the last. */
const char *const *weir_algorithm_names(void);

/* ---- what is the same for all, by the descriptor ---- */

/**
 * Reads an element of "limits".
 *
 * @param limit  zeroed; its `done` is the caller's to free, on failure too
 */
WEIR_MUST_USE enum weir_status weir_limit_parse(const struct weir_json *at, struct weir_limit *limit,
                                                struct weir_error *error);

/** What that reader takes (common/json/json_shape.h). */
json_t *weir_limit_json_shape(void);

/** A member of the limit, by its name, in ms where it is a time; 0 where its algorithm has no such member. */
int64_t weir_limit_value(const struct weir_limit *limit, const char *name);

/** The object again with every default filled in; returned. */
json_t *weir_limit_json(const struct weir_limit *limit);

/**
 * The object that "N/WINDOW" of `--limit` stands for, without what may be left out.
 *
 * @param given   algorithm, rate and window_ms are set
 * @param window  as it was written
 * @return the object; NULL: *wrong says why
 */
json_t *weir_limit_shorthand(const struct weir_limit *given, const char *window, const char **wrong);

/** Appends a decision's "limit": times in ms, and of what may be left out only what differs from a fixed default. */
void weir_limit_decided(struct weir_text *text, const struct weir_limit *limit);

/** Reads it back; false (and nothing changed) where it is of no algorithm here. */
bool weir_limit_read(const json_t *decided, struct weir_limit *limit);

/** Appends the limit in a few words: "10 in 1m". */
void weir_limit_brief(struct weir_text *text, const struct weir_limit *limit);

/** Whether b can continue with a's state: the same algorithm and numbers. */
bool weir_limit_equal(const struct weir_limit *a, const struct weir_limit *b);

/** The number of a member by its name; 0 where the algorithm has none of that name. */
int64_t weir_limit_member(const struct weir_limit *limit, const char *name);

/** How far back a limit's state can matter, ms. */
int64_t weir_limit_memory_ms(const struct weir_limit *limit);

/** The limit with what it lets pass multiplied, rounded so that it lets pass less. @param thousandths  above 0 */
struct weir_limit weir_limit_scaled(const struct weir_limit *limit, uint32_t thousandths);

#endif

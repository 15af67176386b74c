/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit's state: what its algorithm keeps for a bucket, and how it judges by it.
 *
 * Each algorithm has its functions in a table. A limit's state
 * lies packed inside its bucket: a fixed part, and for those that keep times a
 * ring behind all fixed parts. The functions work on it in place; judging
 * changes nothing, recording changes this limit's state only.
 *
 * All limits of a bucket are recorded together, so the newest recorded time is
 * the bucket's, not each limit's: an event newer than it is late for none. What
 * a state needs a time for, it keeps relative to that one. Only an event older
 * than it that is the first of its limit (one that a policy change emptied) needs
 * a time of its own: recording says so, and the bucket is laid out with a newest
 * time for each limit from then on.
 */
#ifndef WEIR_COMMON_LIMIT_STATE_H
#define WEIR_COMMON_LIMIT_STATE_H

#include "common/algorithm/algorithm.h"
#include "common/algorithm/times.h"

typedef __int128 weir_wide;

enum { WEIR_LIMIT_PLAIN_COST_MAX = 32 }; /* rates up to here keep a cost as so many plain times; above, as a run */

/* What a limit means to all its buckets: computed once. */
struct weir_limit_shape {
	const struct weir_limit_ops *ops;
	struct weir_limit limit; /* numbers only, `done` is left out */
	int64_t capacity;        /* the most that passes at once */
	bool counts_past;        /* counts may exceed the rate: "count" is or was "all" */
	bool has_times;
	bool runs_only;          /* times are always kept as runs */
	bool is_plain;           /* times in the plain form, or fixed_window's counts, that fit into single words */
	uint8_t value_bytes;     /* of one number, where numbers are kept */
	uint64_t value_mask;     /* fixed_window: the bits of one number */
	uint32_t fixed_bytes[2]; /* of the fixed part, in a bucket of plain times and in one of runs */
	uint32_t apart_bytes;    /* and how much more in one whose runs lie apart */
	struct weir_times_shape times;
	int64_t span;                /* units that times lie in at most, counted from the newest */
	int64_t lateness_ms;         /* sliding_window: times are kept for events that are so late; 0: none are */
	struct weir_divider divider; /* what times are divided by: fixed_window's window, sliding_window's precision */
	int64_t offset_ms;           /* fixed_window: added to a time before that */
};

/* One limit of one bucket. */
struct weir_limit_view {
	const struct weir_limit_shape *shape;
	uint8_t *fixed;
	uint8_t *entries;
	int64_t newest_ms; /* newest recorded time; says nothing while the state is empty */
	bool runs;
	bool apart; /* runs lie apart: each is one recorded event, however many have its time */
};

#define WEIR_LIMIT_NEVER INT64_MAX

/** In which time its capacity passes: where more or fewer pass at once than in a window, that is another time. */
int64_t weir_limit_capacity_ms(const struct weir_limit_shape *shape);

enum weir_limit_judgement { WEIR_LIMIT_LATE = 1, WEIR_LIMIT_OVER = 2 };

enum weir_limit_recorded {
	WEIR_LIMIT_RECORDED,
	WEIR_LIMIT_NEEDS_ROOM,     /* nothing was recorded: its times need more room first */
	WEIR_LIMIT_NEEDS_RUNS,     /* nothing was recorded: the bucket must take the run form first */
	WEIR_LIMIT_NEEDS_OWN_TIME, /* nothing was recorded: the bucket must keep a newest time for each limit first */
};

struct weir_limit_ops {
	/** WEIR_LIMIT_LATE, WEIR_LIMIT_OVER or 0 for an event at t of cost c. Changes nothing. */
	unsigned (*judge)(const struct weir_limit_view *view, int64_t t, int64_t c);

	/**
	 * Records an event that is not late: c >= 1, or any where charged_by_all. It may be over: what is refused is counted
	 * where the zone says so, and a check that passed when it was asked may be over when it comes.
	 *
	 * @param view  newest_ms is still the one before the event
	 * @param past  the zone counts what is refused: a count may pass the rate. Only if counts_past
	 */
	enum weir_limit_recorded (*record)(const struct weir_limit_view *view, int64_t t, int64_t c, bool past);
	bool charged_by_all; /* recorded whatever the verdict and the cost */

	/* Of an event at t that was just recorded, with the newest time after it: */

	/** When cost 1 would pass; t at least. */
	int64_t (*reset)(const struct weir_limit_view *view, int64_t t);
	/** What the limit holds. */
	int64_t (*held)(const struct weir_limit_view *view, int64_t t);

	/* For whoever asks before they serve; what has left by t is gone: */

	/** The highest cost of an event at t that is not over; 0 to the capacity. A lateness may let more pass. */
	int64_t (*left)(const struct weir_limit_view *view, int64_t t);
	/**
	 * The first time from t on at which an event of cost c is not over if nothing else comes; with a lateness, and for a t
	 * before the newest time, it may be sooner. WEIR_LIMIT_NEVER where c is above the capacity.
	 */
	int64_t (*passes)(const struct weir_limit_view *view, int64_t t, int64_t c);

	/** What has left by t goes; whether anything did. NULL: nothing leaves by itself. */
	bool (*leave)(const struct weir_limit_view *view, int64_t t);
	/** The oldest entry goes, with its cost, as a record says; whether there was one. NULL: there are no entries. */
	bool (*done)(const struct weir_limit_view *view);

	/**
	 * Gives back c >= 1 of what an event at t of cost `whole` >= c took when it was recorded: what is left of that.
	 *
	 * @return whether anything was
	 */
	bool (*give_back)(const struct weir_limit_view *view, int64_t t, int64_t whole, int64_t c);

	/** Copies a state that is not empty into another bucket's zeroed one (widths may differ, room is there). */
	void (*copy)(const struct weir_limit_view *to, const struct weir_limit_view *from);
	/** Whether nothing was recorded. */
	bool (*is_empty)(const struct weir_limit_view *view);
	/** Whether bytes from outside are a state: then no other function breaks on them. */
	bool (*check)(const struct weir_limit_view *view);
	/** Appends the state as JSON. Only if it is not empty. */
	void (*show)(const struct weir_limit_view *view, struct weir_text *text);
};

/** The shape of a limit. */
struct weir_limit_shape weir_limit_shape_of(const struct weir_limit *limit, bool counts_past);

/** The times of a view whose limit has them. @param anchor  the newest unit that may be among them */
static inline struct weir_times weir_limit_times(const struct weir_limit_view *view, int64_t anchor)
{
	return weir_times_open(&view->shape->times, view->runs, view->fixed, view->entries, anchor);
}

/** a / b rounded up, b > 0. */
static inline weir_wide weir_limit_ceil_divide(weir_wide a, weir_wide b)
{
	return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

/** Appends {"times":[[time, count],...]}. @param unit_ms  what a unit of theirs is; after_ms: only times above it */
void weir_limit_show_times(struct weir_text *text, const struct weir_times *times, int64_t unit_ms, int64_t after_ms);

#endif

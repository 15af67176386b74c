/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks: events that ask. What a surface (RESP and others) hands to whoever judges, and gets back.
 *
 * A surface knows connections and a protocol; it knows no partition, no log and no bucket. Whoever judges stamps the
 * time, finds the owner, judges, and appends the event with its answer to the log.
 */
#ifndef LIMITER_CHECK_H
#define LIMITER_CHECK_H

#include "common/frame/frame.h"

#include <stdbool.h>
#include <stdint.h>

struct weir_policy;

enum {
	CHECK_GROUP_MAX = 64,  /* asks that are judged together */
	CHECK_BUNDLE_MAX = 16, /* of these, that count all or none */
};

/* Set in tickets that are not a surface's: the judge's own. */
#define CHECK_TICKET_OF_BUNDLE (UINT64_C(1) << 63)
/* A bundle looks at its parts before it asks them: who would pass, or be blocked, is no answer that counts. */
#define CHECK_TICKET_LOOKS (UINT64_C(1) << 62)

/* The id that is told for a reservation of a key that is exempt: of WEIR_RESERVATION_ID_BYTES, and nothing to settle. */
#define CHECK_RESERVATION_OF_EXEMPT "weir: exempt key"
_Static_assert(sizeof CHECK_RESERVATION_OF_EXEMPT - 1 == WEIR_RESERVATION_ID_BYTES, "it is an id");

enum check_kind {
	CHECK_COUNTS,   /* an event of this cost */
	CHECK_RESERVES, /* the same, whose real cost is told later; cost 1 at least */
	CHECK_SETTLES,  /* a reservation: its real cost. It is no event, and not refused */
};

enum { CHECK_TTL_MS = 600000, CHECK_TTL_MAX_MS = WEIR_RESERVATION_TTL_MAX_MS };

/* A surface's tickets are below. */
#define CHECK_TICKET_END (UINT64_C(1) << 60)

/* One key in one zone, asked. */
struct check_ask {
	struct weir_span zone; /* name, borrowed until answered */
	struct weir_span key;  /* joined key (as in frames), at most WEIR_KEY_MAX_BYTES; borrowed until answered */
	int64_t cost;          /* 0 to WEIR_COST_MAX; 0 is a peek that asks for nothing, and only says what is left */
	bool peek;             /* asks for cost without counting */
	/* Counts only if it passes: a block is as if it had been peeked. Not of one that settles. */
	bool tries;
	/* Of a peek: unavailable, unless so many checks could be counted now. It waits for nothing, and one whose bucket must be
	 * loaded first has CHECK_LATER and no answer behind it. 0: any other */
	uint32_t beside;
	enum check_kind kind;
	int64_t ttl_ms; /* of one that reserves: after which its estimate stands; 1 to CHECK_TTL_MAX_MS */
	uint8_t reservation[WEIR_RESERVATION_ID_BYTES]; /* of one that settles: which */
	uint32_t bundle; /* 0; else those beside it with the same number count all, or none; CHECK_COUNTS alone */
	bool durable;    /* answer after the log's acknowledgement */
	bool
		shadow; /* its zone is on trial: of a bundle, one that cannot be judged passes, and refuses the others nothing */
	bool
		exempt; /* its key is not counted in the zone, or its reservation is of none: it passes, and nobody judges it */
	bool forwarded;  /* another limiter asks for its own caller: it is answered here or not at all */
	uint64_t ticket; /* the surface's own, below CHECK_TICKET_END; comes back with the answer */
};

/*
 * The flags of WEIR.FORWARD, added up. Two numbers follow: of one that reserves its ttl_ms and 0, of one that settles the
 * halves of its reservation's id, else zeros.
 */
enum {
	CHECK_FORWARD_PEEK = 1,
	CHECK_FORWARD_DURABLE = 2,
	CHECK_FORWARD_RESERVES = 4,
	CHECK_FORWARD_SETTLES = 8,
	CHECK_FORWARD_TRIES = 16,
};

/** Whether an ask counts nothing, and so is in no log. */
static inline bool check_is_peek(const struct check_ask *ask)
{
	return ask->kind == CHECK_COUNTS && (ask->peek || ask->cost == 0);
}

/* Why a check cannot be judged. Limiters tell each other these numbers, and those of outcomes: they keep their meaning. */
enum check_why {
	CHECK_WHY_NONE,           /* it can */
	CHECK_WHY_LOADING,        /* its partition is being taken, or its bucket is being read from the store */
	CHECK_WHY_MOVING,         /* its partition is being left, or its producer broke, or its owner is away */
	CHECK_WHY_FULL,           /* too many are under way */
	CHECK_WHY_UNACKNOWLEDGED, /* the log does not take them */
	CHECK_WHY_NOT_OWNER,      /* another process has its partition, and it is not known where that one answers */
	CHECK_WHY_LATE,           /* another thread, or process, did not answer in time */
	CHECK_WHY_COUNT,
};

/** The word that people read for it: "loading", ... Of CHECK_WHY_NONE: "". */
const char *check_why_word(enum check_why why);

enum check_outcome {
	CHECK_PASSED,
	CHECK_BLOCKED,
	CHECK_UNAVAILABLE,    /* `why` says why; nothing was counted, unless its answer was late: then it is not known */
	CHECK_NO_ZONE,        /* no zone of the policy in force has the name */
	CHECK_SETTLED,        /* a reservation; the numbers are those of a pass */
	CHECK_NO_RESERVATION, /* to settle: none of the id is open for the key: it was settled, or its time is over */
	CHECK_LATER,          /* the answer comes afterwards */
};

struct check_answer {
	enum check_outcome outcome;
	/*
	 * Of the tightest limit, if passed or blocked: of a pass the one with the least left, of a block the one that lasts
	 * longest. window_ms: in which it lets limit pass; 0: it has none. remaining: how many of cost 1 would pass now. retry_after_ms: until the same would pass if nothing else
	 * came; -1: it passed, or can never pass. reset_after_ms: until the limit is as if nothing had come;
	 * -1: never, as an operator blocks the key without end.
	 */
	int64_t limit, window_ms, remaining, retry_after_ms, reset_after_ms;
	bool reserved; /* a reservation was opened: its id follows */
	uint8_t reservation[WEIR_RESERVATION_ID_BYTES];
	enum check_why why; /* of UNAVAILABLE */
	uint64_t ticket;
};

/* When checks are asked. What is looked at and counted at one time is judged by one clock. */
struct check_time {
	int64_t wall_ms;
	int64_t steady_us; /* monotonic */
};

/*
 * Who judges. A surface calls ask() with all that it could read at once (CHECK_GROUP_MAX at most), and gets answers in the
 * same order. Of a bundle nothing was counted but those that are CHECK_BLOCKED and do not try, if there are any: what passed
 * is as if it had been peeked; an answer that is neither is that of all. One with CHECK_LATER is answered afterwards by the surface's answered(). All in one thread.
 */
struct check_judge {
	void *context;
	void (*ask)(void *context, const struct check_ask *asks, uint32_t count, struct check_answer *answers);
	const struct weir_policy *(*policy)(void *context); /* in force; borrowed until the next turn */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layout: how the buckets of one zone are written, from one version of its
 * limits to the next.
 *
 * A key whose rates an operator multiplies has limits of its own, and with them
 * a layout of its own: the zone's, scaled (compiled_policy.h). Its number is the zone's
 * with LAYOUT_SCALED set, and its buckets say by how much, so that each can be
 * read by itself.
 *
 *   bytes  part of a block
 *   24     header (struct bucket)
 *   4      thousandths           only in a bucket of a scaled layout
 *   12     blocked at, until     only in a bucket that has published a decision
 *   2      which block it is      only where that is not the key's first
 *   6 n    newest time of each   only where the limits' newest times differ (limit_state.h)
 *   …      fixed part of each limit
 *   …      ring of each limit that keeps times, as long as its room says
 *
 * A bucket with one recorded event of cost 1 and nothing else is its header
 * alone: what its limits hold follows from the one time.
 */
#ifndef LIMITER_BUCKET_LAYOUT_H
#define LIMITER_BUCKET_LAYOUT_H

#include "common/algorithm/limit_state.h"
#include "common/policy/policy.h"

enum {
	LAYOUT_ID_MAX = (1 << 23) - 1,
	LAYOUT_SCALED = 1 << 23,
	LAYOUT_NUMBER_MASK = (1 << 24) - 1,
	SCALE_BYTES = 4,
	SCALE_ONE = WEIR_SCALE_ONE,
	SCALE_MAX = 100 * SCALE_ONE,
};

enum layout_fast {
	LAYOUT_SLOW,
	LAYOUT_FAST,  /* only sliding windows of plain times and fixed windows */
	LAYOUT_ONE,   /* one of them, that slides, alone */
	LAYOUT_THREE, /* a sliding window of few times, then two fixed ones whose counts fit into a word */
};

/* LAYOUT_THREE: where the newest count of a fixed window is in the eight bytes that end with the fixed parts. */
struct layout_counts {
	unsigned shift, bits;     /* where the count of the newest window is, how wide; that of the one before lies above */
	uint64_t mask, rate, one; /* of the newest window's; one: what counting an event adds */
	uint64_t both;            /* the bits of both counts, where they are */
};

struct layout {
	uint32_t id;    /* 1 on; of a scaled one with LAYOUT_SCALED */
	uint32_t scale; /* thousandths: SCALE_ONE unless it is scaled */
	uint32_t zone_id;
	uint64_t version; /* of the policy that brought it */
	uint32_t limit_count;
	uint32_t times_count;                 /* limits that keep times */
	unsigned times_mask;                  /* a bit for each of them */
	bool shadow;                          /* its zone was in shadow mode under the last policy that it served */
	bool ends_shadow;                     /* the layout before was shadow: decisions made there are left behind */
	bool has_queue;                       /* something may leave at an event */
	bool is_charged;                      /* some limit is charged by every event */
	enum layout_fast fast;                /* whether the short way serves it (bucket_fast.h) */
	struct layout_counts counts[2];       /* LAYOUT_THREE: of limits 1 and 2 */
	int64_t memory_ms;                    /* the longest of its limits */
	int64_t forgive_ms;                   /* how long a block is remembered after its end; 0: not at all */
	uint32_t fixed_bytes[3];              /* of all fixed parts, by form: plain times, runs, runs that lie apart */
	uint32_t at[3][WEIR_ZONE_LIMITS_MAX]; /* where each begins among them */
	int8_t before[WEIR_ZONE_LIMITS_MAX];  /* each limit's place in the layout before this one; -1: it starts empty */
	const struct layout *next;            /* what took its place; NULL: in force, or the zone was removed */
	uint64_t ended_version;               /* the policy that replaced it or removed its zone; 0: in force */
	struct weir_limit_shape limits[WEIR_ZONE_LIMITS_MAX];
};

/**
 * The layout of a zone's limits.
 *
 * @param previous  the layout in force before, NULL if there was none: limits that it has too keep their state
 */
void layout_init(struct layout *layout, uint32_t id, uint64_t version, const struct weir_zone *zone,
                 const struct layout *previous);

/**
 * The layout of the same limits with their rates multiplied: a rate, and what may come in one burst or wait, is
 * multiplied and rounded down, an interval divided and rounded up; both stay within a limit's bounds, 1 at least.
 *
 * @param thousandths  1 to SCALE_MAX, not SCALE_ONE
 */
void layout_init_scaled(struct layout *layout, const struct layout *base, uint32_t thousandths);

/** Whether two layouts differ by their scale alone. */
static inline bool layout_is_rescaled(const struct layout *a, const struct layout *b)
{
	return (a->id & LAYOUT_ID_MAX) == (b->id & LAYOUT_ID_MAX) && a->scale != b->scale;
}

/** Whether limit i means the same in a scaled form of a layout and in another form of it: it keeps its state. */
static inline bool layout_same_limit(const struct layout *a, const struct layout *b, uint32_t i)
{
	return weir_limit_equal(&a->limits[i].limit, &b->limits[i].limit);
}

/** Whether buckets of a layout serve the zone as it stands in a later policy. */
bool layout_serves(const struct layout *layout, const struct weir_zone *zone);

#endif

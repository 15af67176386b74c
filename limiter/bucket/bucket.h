/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket: the state of one (zone, key) pair, as a block of bytes.
 *
 * Its zone's layout (bucket_layout.h) says how to read it. It starts as its
 * header alone and is laid out anew, in a larger block, when it needs more: a
 * second event, more room for times, counts besides times, a decision.
 */
#ifndef LIMITER_BUCKET_H
#define LIMITER_BUCKET_H

#include "common/bytes/hash.h"
#include "limiter/bucket/bucket_layout.h"

enum bucket_flags {
	BUCKET_SINGLE = 1,    /* one event of cost 1 was recorded, at newest_ms: nothing follows the header */
	BUCKET_DECIDED = 2,   /* has published a decision: when, and until when */
	BUCKET_OWN_TIMES = 4, /* a newest time for each limit */
	BUCKET_RUNS = 8,      /* times are kept as runs */
	BUCKET_USED = 16,     /* touched since the hand came by */
	BUCKET_DIRTY = 32,    /* changed since the last snapshot */
	BUCKET_NTH = 64,      /* BUCKET_DECIDED, and which block of the key that was: not the first */
	BUCKET_APART = 128,   /* BUCKET_RUNS, in a layout with a queue: its runs lie apart, and it knows of more entries */
	/* what is after the header */
	BUCKET_FORM = BUCKET_SINGLE | BUCKET_DECIDED | BUCKET_OWN_TIMES | BUCKET_RUNS | BUCKET_NTH | BUCKET_APART,
};

enum { BUCKET_GENERATION_BITS = 4, BUCKET_GENERATION_MASK = (1 << BUCKET_GENERATION_BITS) - 1 };

/* The header. The rest of the block follows it. */
struct bucket {
	uint64_t low;            /* the key's fingerprint */
	uint64_t newest_ms : 48; /* newest recorded event, 0 if none */
	uint64_t high : WEIR_FINGERPRINT_HIGH_BITS;
	uint64_t generation : BUCKET_GENERATION_BITS; /* of the last snapshot that holds it */
	uint32_t clock_s;                             /* the clock at its last event, rounded up */
	uint32_t layout : 24;                         /* its id */
	uint32_t flags  : 8;                          /* enum bucket_flags */
};

_Static_assert(sizeof(struct bucket) == 24, "a user seen once takes no more than that");

/* A bucket opened for reading and writing. Not for a single one: it has nothing to open. */
struct bucket_view {
	struct bucket *bucket;
	const struct layout *layout;
	uint8_t *decided;   /* at, until, with BUCKET_NTH which one; NULL if there is none */
	uint8_t *own_times; /* NULL if the limits share one */
	struct weir_limit_view limits[WEIR_ZONE_LIMITS_MAX];
};

/** Notes a snapshot: the lowest bits of its number. */
static inline void bucket_set_generation(struct bucket *bucket, uint32_t generation)
{
	bucket->generation = generation & BUCKET_GENERATION_MASK;
}

/** Whether that is the snapshot that it notes, or another whose number has the same bits: every sixteenth. */
static inline bool bucket_has_generation(const struct bucket *bucket, uint32_t generation)
{
	return bucket->generation == (generation & BUCKET_GENERATION_MASK);
}

/** A form as a layout has it: where there is a queue, runs lie apart. */
static inline unsigned bucket_form(const struct layout *layout, unsigned form)
{
	return layout->has_queue && (form & BUCKET_RUNS) ? form | BUCKET_APART : form & ~(unsigned)BUCKET_APART;
}

/** Bytes of a block. @param rooms  one for each limit, those without times ignored; not for a single one */
size_t bucket_bytes(const struct layout *layout, unsigned flags, const uint32_t *rooms);

/** Bytes that are used of a block: those of its parts and rooms. */
size_t bucket_used(const struct bucket *bucket, const struct layout *layout);

/** Opens a block that is written in the layout. */
void bucket_open(struct bucket_view *view, struct bucket *bucket, const struct layout *layout);

/** Lays out an empty bucket: header and fixed parts zeroed, form and rooms set. Fingerprint and clock are the caller's. */
void bucket_init(struct bucket *bucket, const struct layout *layout, unsigned form, const uint32_t *rooms);

/**
 * Copies what a bucket holds into one that bucket_init() laid out: header (but form and layout) and state.
 *
 * @param to  of the same layout, or of the one that took its place; its form has all that `from` has (but a decision
 *            that is left behind), and room
 */
void bucket_copy(const struct bucket_view *to, const struct bucket_view *from);

/** The newest times as the limits see them, after newest_ms changed. */
void bucket_refresh(struct bucket_view *view);

/** Records the one event of a single bucket in an empty one (same layout) that has room for it. */
void bucket_expand(const struct bucket_view *to, const struct bucket *single);

/** The fewest rooms that hold what there is, in any form. */
void bucket_rooms(const struct bucket_view *view, uint32_t *rooms);

/** Adds to rooms what may be needed soon: a quarter as many, and no fewer than two, so that buckets seldom move as they grow. */
void bucket_grow(const struct layout *layout, uint32_t *rooms);

/**
 * Spreads a larger block's spare bytes over the rings.
 *
 * @param rooms  in: what is needed; out: no more than the limits can use
 */
void bucket_widen(const struct layout *layout, unsigned form, size_t bytes, uint32_t *rooms);

/**
 * Plans a block for what a bucket holds and, as bucket_grow() has it, what may be needed soon: one more time at least.
 *
 * @param rooms  set, for bucket_place()
 * @return how many bytes the block needs
 */
size_t bucket_plan(const struct bucket *bucket, const struct layout *layout, uint32_t *rooms);

/**
 * Lays a bucket out anew, in a block of its own; a single one as any other.
 *
 * @param bytes  of the block: as planned, or more
 * @param rooms  as planned; set to what the rings have, which is all that there is
 */
void bucket_place(struct bucket *block, size_t bytes, const struct bucket *bucket, const struct layout *layout,
                  uint32_t *rooms);

/**
 * Gives a bucket's only ring, where it lies, all of a block's bytes.
 *
 * @return whether it has more room now; no: there are no bytes to spare, there are several rings, or it does not begin at
 *         the first of its places
 */
bool bucket_spread(struct bucket *bucket, size_t bytes, const struct layout *layout);

/** Whether bytes from outside are a bucket of the layout: `length` as bucket_used() says, and every part sound. */
bool bucket_check(const struct bucket *bucket, const struct layout *layout, size_t length);

/** Thousandths that the rates of the limits that it was last judged by are multiplied by. */
static inline uint32_t bucket_scale(const struct bucket *bucket)
{
	return bucket->layout & LAYOUT_SCALED ? (uint32_t)weir_bytes_get((const uint8_t *)(bucket + 1), SCALE_BYTES)
	                                      : SCALE_ONE;
}

static inline int64_t bucket_decided_at(const struct bucket_view *view)
{
	return weir_time_get(view->decided);
}

static inline int64_t bucket_decided_until(const struct bucket_view *view)
{
	return weir_time_get(view->decided + WEIR_TIME_BYTES);
}

/* Bytes of a decision: when, until when; and which block of the key it is, unless it is the first. */
enum { DECIDED_BYTES = 2 * WEIR_TIME_BYTES, NTH_BYTES = 2, NTH_MAX = UINT16_MAX };

_Static_assert(BUCKET_NTH / NTH_BYTES == 32, "decided_bytes() shifts the flag to its bytes");

/** Bytes of the decision of a bucket that has one. */
static inline size_t decided_bytes(unsigned flags)
{
	return DECIDED_BYTES + ((flags & BUCKET_NTH) >> 5);
}

/** Which block of its key a decision made, from 1. @param decided  the decision of a bucket with these flags */
static inline uint32_t decided_nth(const uint8_t *decided, unsigned flags)
{
	return flags & BUCKET_NTH ? (uint32_t)weir_bytes_get(decided + DECIDED_BYTES, NTH_BYTES) : 1;
}

/** Where a bucket of any layout keeps its last decision: when, and until when; NULL if there was none. */
static inline uint8_t *bucket_decided(struct bucket *bucket)
{
	if (!(bucket->flags & BUCKET_DECIDED))
		return NULL;
	return (uint8_t *)(bucket + 1) + (bucket->layout & LAYOUT_SCALED ? SCALE_BYTES : 0);
}

/** When the last decision ends; 0 if there was none, as its own layout has it. */
static inline int64_t bucket_blocked_until(const struct bucket *bucket)
{
	const uint8_t *decided = bucket_decided((struct bucket *)bucket);
	return decided != NULL ? weir_time_get(decided + WEIR_TIME_BYTES) : 0;
}

/** The last clock, ms, at which the bucket is remembered. @param blocked_until_ms  when its last decision ends, 0: none */
static inline int64_t bucket_remembered_until(const struct bucket *bucket, const struct layout *layout,
                                              int64_t lateness_ms, int64_t blocked_until_ms)
{
	if (bucket->clock_s == UINT32_MAX) /* the clock has run past what a bucket can note */
		return INT64_MAX;
	int64_t quiet = INT64_C(1000) * bucket->clock_s + layout->memory_ms + lateness_ms;
	if (layout->forgive_ms > 0 && blocked_until_ms > 0)
		blocked_until_ms += layout->forgive_ms + lateness_ms;
	return quiet > blocked_until_ms ? quiet : blocked_until_ms;
}

#endif

/*
 * Limits: what each algorithm keeps for a bucket, and how it judges by it.
 *
 * One file an algorithm, each with its functions in a table. A limit's state
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
#ifndef LIMITER_LIMIT_H
#define LIMITER_LIMIT_H

#include "common/policy/policy.h"
#include "limiter/algorithm/times.h"

typedef __int128 limit_wide;

enum { LIMIT_PLAIN_COST_MAX = 32 }; /* rates up to here keep a cost as so many plain times; above, as a run */

/* What a limit means to all its buckets: computed once. */
struct limit_shape {
	const struct limit_ops *ops;
	struct weir_limit limit; /* numbers only, `done` is left out */
	bool counts_past;        /* counts may exceed the rate: "count" is or was "all" */
	bool has_times;
	bool runs_only;          /* times are always kept as runs */
	uint8_t value_bytes;     /* of one number: fixed_window's counts, token_bucket, gcra */
	uint64_t value_mask;     /* fixed_window: the bits of one number */
	uint32_t fixed_bytes[2]; /* of the fixed part, in a bucket of plain times and in one of runs */
	struct times_shape times;
	int64_t span;             /* units that times lie in at most, counted from the newest */
	struct divider window;    /* fixed_window */
	struct divider precision; /* sliding_window; by 1 without precision */
};

/* One limit of one bucket. */
struct limit_view {
	const struct limit_shape *shape;
	uint8_t *fixed;
	uint8_t *entries;
	int64_t newest_ms; /* newest recorded time; says nothing while the state is empty */
	bool runs;
};

enum limit_judgement { LIMIT_LATE = 1, LIMIT_OVER = 2 };

enum limit_recorded {
	LIMIT_RECORDED,
	LIMIT_NEEDS_ROOM,     /* nothing was recorded: the bucket must have room for more entries first */
	LIMIT_NEEDS_RUNS,     /* nothing was recorded: the bucket must take the run form first */
	LIMIT_NEEDS_OWN_TIME, /* nothing was recorded: the bucket must keep a newest time for each limit first */
};

struct limit_image;

struct limit_ops {
	/** Fills what depends on the algorithm: times, value_bytes, fixed_bytes. */
	void (*shape)(struct limit_shape *shape);

	/** LIMIT_LATE, LIMIT_OVER or 0 for an event at t of cost c. Changes nothing. */
	unsigned (*judge)(const struct limit_view *view, int64_t t, int64_t c);

	/**
	 * Records an event that is not late: c >= 1, or any where charged_by_all.
	 *
	 * @param view  newest_ms is still the one before the event
	 */
	enum limit_recorded (*record)(const struct limit_view *view, int64_t t, int64_t c, bool blocked);
	bool charged_by_all; /* recorded whatever the verdict and the cost */

	/* Of an event at t that was just recorded, with the newest time after it: */

	/** When cost 1 would pass; t at least. */
	int64_t (*reset)(const struct limit_view *view, int64_t t);
	/** What the limit holds. */
	int64_t (*held)(const struct limit_view *view, int64_t t);

	/** Queue only, else NULL. What has left by t goes; whether anything did. */
	bool (*leave)(const struct limit_view *view, int64_t t);
	/** Queue only, else NULL. The oldest entry goes; whether there was one. */
	bool (*done)(const struct limit_view *view);

	/** Copies a state that is not empty into another bucket's zeroed one (widths may differ, room is there). */
	void (*copy)(const struct limit_view *to, const struct limit_view *from);
	/** Whether nothing was recorded. */
	bool (*is_empty)(const struct limit_view *view);
	/** Whether bytes from outside are a state: then no other function breaks on them. */
	bool (*check)(const struct limit_view *view);
	/** The state in words of its own; the image is zeroed. Only if it is not empty. */
	void (*image)(const struct limit_view *view, struct limit_image *image);
};

extern const struct limit_ops limit_sliding_window;
extern const struct limit_ops limit_fixed_window;
extern const struct limit_ops limit_token_bucket;
extern const struct limit_ops limit_penalizing_bucket;
extern const struct limit_ops limit_gcra;
extern const struct limit_ops limit_queue;

/** The shape of a limit. */
struct limit_shape limit_shape_of(const struct weir_limit *limit, bool counts_past);

/** The times of a view whose limit has them. @param anchor  the newest unit that may be among them */
static inline struct times limit_times(const struct limit_view *view, int64_t anchor)
{
	return times_open(&view->shape->times, view->runs, view->fixed, view->entries, anchor);
}

/** a / b rounded up, b > 0. */
static inline limit_wide limit_ceil_divide(limit_wide a, limit_wide b)
{
	return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

/* ---- what a state says, in the words of the design ---- */

struct limit_run {
	int64_t time_ms;
	int64_t count;
};

struct limit_image {
	bool recorded;          /* else nothing else is set */
	struct limit_run *runs; /* sliding_window, uniform, queue: oldest first; the holder frees */
	size_t run_count;
	int64_t bucket, count, previous; /* fixed_window */
	int64_t level;                   /* token_bucket: units; with penalize: whole tokens */
	int64_t time_ms;                 /* token_bucket */
	limit_wide tat;                  /* gcra, in 1/N ms */
};

/** Fills runs from times. @param unit_ms  what a unit of theirs is; after_ms: only times above it */
void limit_image_runs(struct limit_image *image, const struct times *times, int64_t unit_ms, int64_t after_ms);

#endif

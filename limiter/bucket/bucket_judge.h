/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judging: what becomes of one bucket at one event.
 *
 * A bucket is judged where it lies. If it must be laid out anew (it was single,
 * empty, of an older layout, needs room, or counts, or the time of a decision) a
 * copy in a scratch block takes its place; the caller moves that into a block of
 * its own afterwards.
 */
#ifndef LIMITER_BUCKET_JUDGE_H
#define LIMITER_BUCKET_JUDGE_H

#include "common/frame/frame.h"
#include "limiter/bucket/bucket.h"
#include "limiter/bucket/compiled_policy.h"

/* Two blocks that grow as needed, used in turn. One a shard. */
struct bucket_scratch {
	struct bucket *blocks[2];
	size_t bytes[2];
	unsigned next;
};

void bucket_scratch_deinit(struct bucket_scratch *scratch);

/** A bucket at work. */
struct bucket_work {
	struct bucket_view view;
	struct bucket_scratch *scratch;
	bool moved;      /* the view is a scratch block, whatever it was before */
	bool changed;    /* something was recorded, left or published */
	int64_t sent_ms; /* when the event was sent; 0: nobody says, as whoever opens a bucket leaves it */
};

/** Opens a block where it lies: of the layout in force, and not single. */
void bucket_work_open(struct bucket_work *work, struct bucket_scratch *scratch, struct bucket *bucket,
                      const struct layout *layout);

/** Opens an empty bucket in scratch. */
void bucket_work_new(struct bucket_work *work, struct bucket_scratch *scratch, const struct layout *layout, int64_t c);

/**
 * Opens a single bucket, or one of an older layout (taken through every layout since), in scratch.
 *
 * @param to  the layout in force; its scale may be another than that of `from`: limits that are not the same then start
 *            empty, which is a change
 */
void bucket_work_convert(struct bucket_work *work, struct bucket_scratch *scratch, struct bucket *bucket,
                         const struct layout *from, const struct layout *to, int64_t c);

/* What a decision does. */
enum bucket_decision {
	BUCKET_BLOCKS,
	BUCKET_SHORTENS, /* the open block ends sooner than was published: a queue has room again; another limit, or an operator, still blocks */
	BUCKET_LIFTS, /* it has ended: a queue has room again */
};

struct bucket_verdict {
	unsigned bits; /* enum weir_verdict_bits, without NONE; the rest: of a decision, if one was made */
	enum bucket_decision kind;
	uint32_t limit;                /* that decided; in a lift the queue that has room again, the first of several */
	const struct weir_limit *rule; /* that limit as it was judged by, without `done`; lives as long as the layout */
	int64_t at_ms, until_ms;
	int64_t count;
	uint32_t nth; /* which block of the key it is, where the zone has a list of them; else 0 */
};

/* A check was answered before it came here: that is its verdict. */
enum bucket_answer { ANSWER_NONE, ANSWER_PASS, ANSWER_BLOCK };

/** @param bits  enum weir_verdict_bits */
static inline enum bucket_answer bucket_answer(unsigned bits)
{
	return bits & WEIR_VERDICT_BLOCK ? ANSWER_BLOCK : ANSWER_PASS;
}

/**
 * Judges an event at t of cost c, and records it as the zone says.
 *
 * @param barred  an operator blocks the key: the verdict is block, and nothing is decided
 * @param answer  the verdict; what is over, late and decided, and until when, is as without it
 */
void bucket_judge(struct bucket_work *work, const struct weir_zone *zone, int64_t t, int64_t c, bool barred,
                  enum bucket_answer answer, struct bucket_verdict *verdict);

/* What settles a reservation: what it took, and by how much the real cost differs. */
struct bucket_correction {
	int64_t t, cost; /* of the reservation, as recorded */
	int64_t more;    /* the real cost less that; below 0: so much is given back */
};

/**
 * Corrects what a reservation took: gives back, which ends an open block as a done record does, or records more at t,
 * whatever the limits say.
 *
 * @param held_until_ms  as bucket_done()
 * @param verdict        likewise
 */
void bucket_correct(struct bucket_work *work, const struct weir_zone *zone, int64_t t,
                    const struct bucket_correction *correction, int64_t held_until_ms, struct bucket_verdict *verdict);

/** Has the work in scratch, whatever it was before: the block stays as it is, whatever is done. */
void bucket_work_detach(struct bucket_work *work);

/** Whether an event at t of cost c would be blocked. What has left by t goes, nothing is recorded. */
bool bucket_peek(struct bucket_work *work, const struct weir_zone *zone, int64_t t, int64_t c);

/**
 * Notes in an empty bucket how many blocks of its key still count, when an operator has taken the last one back.
 *
 * @param at_ms  when that one began: it lasted no time
 */
void bucket_keep_blocks(struct bucket_work *work, int64_t at_ms, uint32_t count);

/**
 * A done record: the oldest entry of every queue goes. Where that frees a place under an open block, the block ends when
 * the limits let an event pass; its new end is a decision. A block of a zone with `block_for` is a penalty, and stays.
 *
 * @param held_until_ms  the end of an operator's block of the key, which holds whatever the limits say: the decision does
 *                       not end it; 0: there is none
 * @param verdict  its bits are 0, or WEIR_VERDICT_DECIDED alone
 */
void bucket_done(struct bucket_work *work, const struct weir_zone *zone, int64_t t, int64_t held_until_ms,
                 struct bucket_verdict *verdict);

#endif

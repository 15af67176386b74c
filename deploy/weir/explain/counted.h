/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events that a limit counts for one bucket: those that it recorded and that an event of this moment still meets. A
 * limiter keeps times or numbers alone; this keeps the events that they came from, and is held to what the limiter's
 * own state says that it holds.
 */
#ifndef DEPLOY_WEIR_EXPLAIN_COUNTED_H
#define DEPLOY_WEIR_EXPLAIN_COUNTED_H

#include "deploy/weir/explain/question.h"
#include "limiter/shard/shard.h"

/* Zero-initialised is empty. */
struct counted {
	struct explained_event *events; /* owned, by the order of judging, without lines */
	size_t count, room;
	size_t looked;     /* how many there were when old ones were last dropped */
	int64_t newest_ms; /* of those recorded */
	/* earlier ones, which are not kept */
	size_t left_out;
	int64_t left_out_ms; /* the newest time of them */
	/* of a limit that keeps a level */
	bool judged; /* some event was */
	bool rested; /* the level held nothing at some time since judging began */
};

/* One event as the limiter has judged it. */
struct counted_step {
	const struct weir_limit *limit;  /* as it is judged by */
	struct shard_held before, after; /* what the limit held for an event at this time */
	unsigned verdict;                /* enum weir_verdict_bits */
	bool records;                    /* the zone has events of this verdict recorded: it passed, or all are counted */
	bool done;                       /* it took an entry out, and was not judged */
	int64_t since_ms;                /* events of before this time may not have been judged */
};

/** Takes an event that was judged. */
void counted_take(struct counted *counted, const struct counted_step *step, const struct explained_event *event);

/**
 * Finds the events that made a decision at t: of those that it met, the newest that make up its count.
 *
 * @param held    the decision's count
 * @param question  gets what is known to be missing or left out
 * @param events    returned, the caller frees; without lines, and with room for one more
 * @return how many: at most QUESTION_EVENTS_MAX
 */
size_t counted_of(const struct counted *counted, const struct weir_limit *limit, int64_t t, int64_t held,
                  struct question *question, struct explained_event **events);

void counted_deinit(struct counted *counted);

#endif

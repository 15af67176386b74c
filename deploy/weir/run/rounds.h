/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds: how --once judges on several threads and still writes one order.
 *
 * The reading thread fills a round with frames for all partitions; each worker
 * judges the frames of its own partitions; when all are done the reading thread
 * writes the round's lines in order. Several rounds are under way at once, so
 * reading and judging overlap.
 *
 * Threads: the reader owns the round it fills; a worker owns its lanes from
 * rounds_submit() until that round is done; after rounds_drain() the reader may
 * touch the lanes.
 */
#ifndef DEPLOY_WEIR_RUN_ROUNDS_H
#define DEPLOY_WEIR_RUN_ROUNDS_H

#include "deploy/weir/decision_events/decision_events.h"
#include "deploy/weir/run/once_archive.h"
#include "deploy/weir/run/once_watch.h"
#include "deploy/weir/run/outputs.h"
#include "limiter/checkpoint/checkpoint.h"

struct rounds;

struct rounds_options {
	struct lane **lanes;                     /* by partition; borrowed */
	struct checkpoint_partition *partitions; /* NULL: nothing is ever evicted */
	uint32_t partition_count;
	uint32_t threads;
	const char *state_directory; /* where workers read evicted segments; NULL: none are */
	struct output_choice choice;
	struct output_files *files;     /* borrowed */
	struct once_archive *archive;   /* NULL: none is kept; borrowed */
	size_t archive_bytes;           /* of one partition's rows: more of them want a cut */
	struct decision_events *events; /* are given all decisions; NULL: nobody counts them; borrowed */
	const struct once_watch *watch; /* NULL: nobody looks; borrowed */
};

/** Starts the workers. */
WEIR_MUST_USE enum weir_status rounds_new(const struct rounds_options *options, struct rounds **rounds,
                                          struct weir_error *error);
/** Drained before. Joins the workers. */
void rounds_free(struct rounds *rounds);

/** Adds a frame to the round being filled: a framer_emit. */
void rounds_emit(void *context, uint32_t partition, struct weir_span frame);

/**
 * Judges what is in the round being filled, on this thread: for who must know what was decided before the next record.
 * The workers have been given nothing else.
 */
WEIR_MUST_USE enum weir_status rounds_judge(struct rounds *rounds, struct weir_error *error);

/** Hands the filled round to the workers; waits for the oldest one, and writes its lines, if all are under way. */
WEIR_MUST_USE enum weir_status rounds_submit(struct rounds *rounds, struct weir_error *error);

/** Whether some shard, or the archive, is short of memory that only a checkpoint can free. @thread the reader */
bool rounds_want_cut(const struct rounds *rounds);

/** Waits for all rounds and writes their lines. */
WEIR_MUST_USE enum weir_status rounds_drain(struct rounds *rounds, struct weir_error *error);

#endif

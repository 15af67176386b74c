/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines that come from several workers and must leave in one order: by record,
 * then by the zone's place in the policy.
 *
 * Each worker appends to batches of its own; the owner of a round gathers them,
 * sorts and writes. So the files' bytes do not depend on the number of threads.
 */
#ifndef DEPLOY_WEIR_RUN_OUTPUTS_H
#define DEPLOY_WEIR_RUN_OUTPUTS_H

#include "common/base/text.h"
#include "common/files/line_file.h"
#include "common/log/log.h"
#include "deploy/weir/terminal/progress.h"
#include "limiter/lane/lane.h"

enum output_kind { OUTPUT_DECISIONS, OUTPUT_SHADOW, OUTPUT_JUDGED, OUTPUT_COUNT };

/* One line in a batch, and what it is sorted by. */
struct output_line {
	uint64_t record; /* number of the record in the merged order */
	uint32_t zone;   /* its place in the policy */
	uint32_t length;
	const char *at; /* set when gathered; before, the offset in the batch's text */
};

/* The lines of one worker in one round. Zero-initialised is empty. */
struct output_batch {
	struct weir_text text[OUTPUT_COUNT];
	struct output_line *lines[OUTPUT_COUNT];
	size_t count[OUTPUT_COUNT], capacity[OUTPUT_COUNT];
};

/* What is to be written at all, and how. */
struct output_choice {
	bool wanted[OUTPUT_COUNT];
	bool words; /* decisions as lines for people, not JSON */
	bool coloured;
};

/** Appends a decision's line. @param record  number of its record @thread the worker */
void output_batch_decision(struct output_batch *batch, enum output_kind kind, uint32_t partition,
                           const struct shard_decision *decision, uint64_t record);
/** Appends what a judged frame gives. @thread the worker */
void output_batch_add(struct output_batch *batch, const struct output_choice *choice, const struct lane *lane,
                      const struct lane_result *result);
void output_batch_deinit(struct output_batch *batch);

/* Where gathered lines go: files by kind (NULL where not wanted), and scratch for sorting. */
struct output_files {
	struct weir_line_file *files[OUTPUT_COUNT];
	const struct weir_log *log; /* borrowed */
	const _Atomic bool *stop;   /* borrowed: ends the retries */
	struct progress *progress;  /* borrowed; taken off the screen before lines go there */
	bool on_screen;             /* lines go to a terminal */
	struct weir_fault fault;
	struct output_line *sorted;
	size_t capacity;
};

void output_files_deinit(struct output_files *files);

/**
 * Puts all files on disk; a disk that is full is said once and retried each second.
 *
 * @return WEIR_OK; WEIR_AGAIN: `stop` was set before it worked
 */
WEIR_MUST_USE enum weir_status output_files_sync(struct output_files *files, struct weir_error *error);

/** Writes the lines of all batches in order, and clears them; retries as sync does. */
WEIR_MUST_USE enum weir_status output_files_write(struct output_files *files, struct output_batch *batches,
                                                  size_t count, struct weir_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One --once run: what its steps share. once.c reads and judges, once_open.c
 * brings everything up (afresh or from a cut), once_cut.c takes cuts, and
 * once_sort.c puts the records in the order of their times where that is asked.
 */
#ifndef DEPLOY_WEIR_RUN_ONCE_RUN_H
#define DEPLOY_WEIR_RUN_ONCE_RUN_H

#include "collector/follow/inputs.h"
#include "collector/send/framer.h"
#include "collector/source/source_memory.h"
#include "common/files/record_sort.h"
#include "deploy/weir/backend/state_directory.h"
#include "deploy/weir/run/once_note.h"
#include "deploy/weir/run/rounds.h"
#include "deploy/weir/run/run_options.h"
#include "deploy/weir/terminal/progress.h"

struct once {
	const struct run_options *options; /* borrowed, as are config and log */
	const struct weir_config *config;
	const struct weir_log *log;
	struct progress *progress; /* borrowed */

	struct state_directory state; /* empty without one */
	char *spill_directory;        /* made for this run where a ceiling is set without a state; removed at the end */
	struct weir_store *store;     /* the state's, or NULL */
	struct once_note before;      /* what an earlier run left */
	bool resumed;
	struct source_memory *memory;

	struct policy_registry *registry;
	uint64_t policy_version;
	uint32_t partition_count;
	struct lane **lanes;
	struct checkpoint_partition *partitions;

	struct source_context source_context;
	struct inputs *inputs;
	struct merge_input *merge_inputs; /* every stream, in order */
	size_t stream_count;
	struct merge *merge;

	struct output_files files;
	struct weir_line_file *dead_file;
	struct dead_letters *dead;
	struct once_archive *archive;   /* NULL: none is kept */
	struct decision_events *events; /* NULL: no zone counts decisions */
	struct rounds *rounds;
	struct framer *framer;
	struct weir_record_sort *sort; /* NULL: records are judged as they are read */
	struct weir_text sort_text;    /* of a record */

	uint64_t records;      /* in the merged order, all runs, with the decisions that are records */
	uint64_t round_start;  /* records when the round at work began */
	uint64_t judged;       /* records that this run read, and judged */
	uint64_t lines_before; /* lines that earlier runs read */
	int64_t started_ms, checkpoint_due_ms;
	bool source_failed;
	uint64_t dead_letters_lost; /* that their file did not take */
};

/** Brings everything up. On failure what is up is taken down by once_close(). */
WEIR_MUST_USE enum weir_status once_open(struct once *once, struct weir_error *error);
void once_close(struct once *once);

/** Takes the input's newest record into the sort. @return WEIR_OK; WEIR_AGAIN: stopped; WEIR_IO */
WEIR_MUST_USE enum weir_status once_sort_add(struct once *once, const struct merge_input *input,
                                             const struct weir_matched *matched, struct weir_error *error);

/* A sorted record again, valid until the next one. Zero-initialised; free `events` and `zones` at the end. */
struct once_sorted {
	struct weir_matched matched;
	struct weir_record record; /* its time alone */
	struct weir_matched_event *events;
	struct weir_frame_zone *zones;
	size_t event_room, zone_room;
};

/** The next record in order. @return WEIR_OK; WEIR_END; WEIR_IO */
WEIR_MUST_USE enum weir_status once_sort_next(struct once *once, struct once_sorted *sorted, struct weir_error *error);

/** Whether the store is to be given a cut now: the time has come, or memory is short. */
bool once_cut_due(const struct once *once);

/**
 * Waits for all rounds and stores one cut of everything. The last one of a run says whether it finished.
 *
 * @return WEIR_OK; WEIR_AGAIN: a signal ended the wait for a file or the store, the cut before this one stands
 */
WEIR_MUST_USE enum weir_status once_cut(struct once *once, bool finished, struct weir_error *error);

#endif

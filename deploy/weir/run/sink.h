/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions file of follow mode: a reader of the decisions topic that
 * writes each decision once, also when a partition is judged again after a
 * crash and publishes the same ones a second time.
 *
 * It remembers, with the file's length, the last (offset, index) written of
 * each partition; a decision that is not newer was written before.
 */
#ifndef DEPLOY_WEIR_RUN_SINK_H
#define DEPLOY_WEIR_RUN_SINK_H

#include "common/bus/bus.h"
#include "common/config/config.h"
#include "common/log/log.h"
#include "common/store/store.h"
#include "deploy/weir/terminal/progress.h"

struct sink;

struct sink_options {
	struct weir_bus *bus;  /* borrowed */
	enum weir_topic topic; /* WEIR_TOPIC_DECISIONS or WEIR_TOPIC_SHADOW */
	const char *path;      /* "-": standard output: what a crash left unwritten there may come twice */
	int64_t rotate_bytes;  /* 0: never */
	uint32_t keep;
	bool words; /* lines for people */
	bool coloured;
	struct weir_store *store; /* taken: the sink's own handle */
	const struct weir_log *log;
	struct progress *progress; /* borrowed: kept off the screen while lines go there; NULL: they go elsewhere */
};

/** Goes on where the store says it left off. WEIR_INVALID: nothing was written before, but the file is not empty. */
WEIR_MUST_USE enum weir_status sink_start(const struct sink_options *options, struct sink **sink,
                                          struct weir_error *error);

/**
 * Forgets the file that an earlier run wrote of a topic, so that its place there holds nothing any more. A later
 * sink_start begins with what the topic has then.
 */
WEIR_MUST_USE enum weir_status sink_forget(struct weir_bus *bus, struct weir_store *store, enum weir_topic topic,
                                           struct weir_error *error);

/** Opens the path afresh between two lines (SIGHUP). @thread any */
void sink_reopen(struct sink *sink);

/** Why decisions cannot be written now, and are tried again. @return false: they can @thread any */
bool sink_problem(struct sink *sink, char *words, size_t size);

/** Whether it cannot go on: nobody reads the pipe that it writes to, a sync of its file failed, or the log is damaged. @thread any */
bool sink_ended(const struct sink *sink);

/** Writes what is in the topic by now, puts it on disk, joins and frees. WEIR_IO: the disk did not take it. */
WEIR_MUST_USE enum weir_status sink_stop(struct sink *sink, struct weir_error *error);

#endif

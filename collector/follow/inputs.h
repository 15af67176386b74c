/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configured sources, and what turns their lines into events: a format for
 * each stream, the matcher, the dead letters.
 *
 * @thread the one that reads
 */
#ifndef COLLECTOR_INPUTS_H
#define COLLECTOR_INPUTS_H

#include "collector/follow/merge.h"
#include "collector/follow/record_reader.h"
#include "collector/match/matcher.h"
#include "collector/source/source.h"
#include "common/config/config.h"
#include "common/log/metrics.h"

#include <pthread.h>

/* How far a stream was counted, and what that came to. */
struct inputs_count {
	uint8_t id[SOURCE_ID_BYTES];
	uint64_t position;
	struct record_counts counts;
};

struct inputs {
	const struct weir_config *config; /* borrowed */
	struct source_context context;
	struct source_memory *own_memory; /* where the context has none: one for all sources, as in a run */
	struct field_table fields;
	struct matcher *matcher;
	struct source **sources; /* in the configuration's order; NULL: it could not be opened again */
	size_t source_count;
	struct dead_letters *dead;   /* borrowed; may be NULL */
	struct inputs_count *counts; /* of readers that are gone, until their streams are read again */
	size_t count_count;
	pthread_mutex_t lock; /* sources, against being exchanged while others ask for their status */
};

/**
 * Opens the sources and prepares the matcher.
 *
 * @param policy   borrowed, outlives the inputs or the next inputs_set_policy
 * @param context  borrowed; the memory in it outlives the inputs
 */
WEIR_MUST_USE enum weir_status inputs_new(const struct weir_config *config, const struct weir_policy *policy,
                                          const struct source_context *context, struct dead_letters *dead,
                                          struct inputs **inputs, struct weir_error *error);
void inputs_free(struct inputs *inputs);

/**
 * Whether every source of a configuration and its format can be made: for a start that must not get half way. A
 * configuration without zones (a cluster's policy has them) is checked by itself.
 *
 * @return WEIR_OK; WEIR_INVALID with the path, the line and what would be accepted
 */
WEIR_MUST_USE enum weir_status inputs_check(const struct weir_config *config, struct weir_error *error);

/**
 * Whether a policy's fields fit the formats of a configuration's sources: for a policy that is to replace another,
 * before anyone learns of it. Opens nothing. A field that a format cannot give is simply absent.
 *
 * @return WEIR_OK: inputs_set_policy will take it; WEIR_INVALID: more fields than there may be
 */
WEIR_MUST_USE enum weir_status inputs_check_policy(const struct weir_config *config, const struct weir_policy *policy,
                                                   struct weir_error *error);

/** Makes the format of a source for these fields. @param format  returned: format_free() */
WEIR_MUST_USE enum weir_status inputs_format(const struct weir_config *config, const struct field_table *fields,
                                             size_t place, struct format **format, struct weir_error *error);

/** A zone that no source can ever put a record in, and a field that it lacks. */
typedef void inputs_unmatched(void *context, const struct weir_zone *zone, const char *field);

/**
 * Calls for each zone of a policy whose key, or match, has a field that no format of the sources can give: in a cluster
 * other collectors may have it. Opens nothing.
 */
WEIR_MUST_USE enum weir_status inputs_each_unmatched(const struct weir_config *config, const struct weir_policy *policy,
                                                     inputs_unmatched *call, void *context, struct weir_error *error);

/** The streams of sources[place]; 0 where it is not open. */
size_t inputs_streams(const struct inputs *inputs, size_t place, struct source_stream ***streams);

/** The reader of a stream of sources[place], made at its first use and kept in stream->context. */
WEIR_MUST_USE enum weir_status inputs_reader(struct inputs *inputs, size_t place, struct source_stream *stream,
                                             struct record_reader **reader, struct weir_error *error);

/** Matches by another policy from the next record on. On failure nothing has changed. */
WEIR_MUST_USE enum weir_status inputs_set_policy(struct inputs *inputs, const struct weir_policy *policy,
                                                 struct weir_error *error);

/** Whether what the source has handed out can be had again. */
bool inputs_replayable(const struct inputs *inputs, size_t place);

/**
 * Closes a source and opens it again, so that it continues at its acknowledged positions. Its readers are gone.
 *
 * @return WEIR_OK; else sources[place] is NULL and a later try may succeed
 */
WEIR_MUST_USE enum weir_status inputs_reopen(struct inputs *inputs, size_t place, struct weir_error *error);

/** Sums what all readers have counted. */
void inputs_counts(const struct inputs *inputs, struct record_counts *sum);

/** Whether every source can be read; else appends why one of them cannot, in words. @thread any */
bool inputs_ready(struct inputs *inputs, struct weir_text *why);

/** Appends a row of Markdown for each metric that the next two append: which they are depends on what kinds there are. */
void inputs_metrics_describe(struct weir_text *text);

/** Appends the metrics of what all readers have counted. @thread any */
void inputs_metrics_counts(const struct record_counts *counts, struct weir_text *text);

/** Appends the streams' metrics. @thread any */
void inputs_metrics(struct inputs *inputs, struct weir_text *text);

/** Bytes that are known and not yet read, over all streams. @thread any */
uint64_t inputs_lag_bytes(struct inputs *inputs);

/** Bytes handed out and bytes there are, over all streams: for progress. */
void inputs_progress(const struct inputs *inputs, uint64_t *done_bytes, uint64_t *all_bytes);

#endif

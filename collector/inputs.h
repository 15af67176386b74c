/*
 * The configured sources with what turns their lines into events: a format for
 * each stream, the matcher, the dead letter.
 *
 * @thread the one that reads
 */
#ifndef COLLECTOR_INPUTS_H
#define COLLECTOR_INPUTS_H

#include "collector/matcher.h"
#include "collector/merge.h"
#include "collector/record_reader.h"
#include "collector/source.h"
#include "common/config.h"

struct inputs {
	const struct weir_config *config; /* borrowed */
	struct field_table fields;
	struct matcher *matcher;
	struct source **sources; /* in the configuration's order */
	size_t source_count;
	struct dead_letters *dead;  /* borrowed; may be NULL */
	struct record_counts ended; /* of readers that are gone */
};

/**
 * Opens the sources and prepares the matcher.
 *
 * @param policy   borrowed, outlives the inputs or the next inputs_set_policy
 * @param context  borrowed
 */
WEIR_MUST_USE enum weir_status inputs_new(const struct weir_config *config, const struct weir_policy *policy,
                                          const struct source_context *context, struct dead_letters *dead,
                                          struct inputs **inputs, struct weir_error *error);
void inputs_free(struct inputs *inputs);

/**
 * Whether every source of a configuration and its format can be made: for a start that must not get half way.
 *
 * @return WEIR_OK; WEIR_INVALID with the path, the line and what would be accepted
 */
WEIR_MUST_USE enum weir_status inputs_check(const struct weir_config *config, struct weir_error *error);

/**
 * Whether a policy's fields fit the formats of a configuration's sources: for a policy that is to replace another,
 * before anyone learns of it. Opens nothing.
 *
 * @return WEIR_OK: inputs_set_policy will take it; WEIR_INVALID
 */
WEIR_MUST_USE enum weir_status inputs_check_policy(const struct weir_config *config, const struct weir_policy *policy,
                                                   struct weir_error *error);

/** The reader of a stream of sources[place], made at its first use and kept in stream->context. */
WEIR_MUST_USE enum weir_status inputs_reader(struct inputs *inputs, size_t place, struct source_stream *stream,
                                             struct record_reader **reader, struct weir_error *error);

/** Matches by another policy from the next record on. On failure nothing has changed. */
WEIR_MUST_USE enum weir_status inputs_set_policy(struct inputs *inputs, const struct weir_policy *policy,
                                                 struct weir_error *error);

/** Sums what all readers have counted. */
void inputs_counts(const struct inputs *inputs, struct record_counts *sum);

/** Appends the streams' metrics. @thread any */
void inputs_metrics(const struct inputs *inputs, struct weir_text *text);

/** Bytes handed out and bytes there are, over all streams: for progress. */
void inputs_progress(const struct inputs *inputs, uint64_t *done_bytes, uint64_t *all_bytes);

#endif

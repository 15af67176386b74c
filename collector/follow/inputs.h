/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configured sources, and what turns their lines into events: a format for
 * each stream, the matcher, the dead letters.
 *
 * @thread the one that reads, except where noted
 */
#ifndef COLLECTOR_INPUTS_H
#define COLLECTOR_INPUTS_H

#include "collector/follow/merge.h"
#include "collector/follow/policy_doubts.h"
#include "collector/follow/record_reader.h"
#include "collector/source/source.h"
#include "common/config/config.h"
#include "common/log/metrics.h"
#include "common/matcher/matcher.h"

#include <pthread.h>

/* A stream's counts, and the position up to which they count. */
struct inputs_count {
	uint8_t id[SOURCE_ID_BYTES];
	uint64_t position;
	struct record_counts counts;
};

/* What a source counted before it was opened anew: else a loss would be gone before anybody has seen it. */
struct inputs_ended {
	const struct source_ops *kind;
	struct source_status counts;
};

struct inputs {
	const struct weir_config *config; /* borrowed */
	struct source_context context;
	const struct weir_policy *policy; /* in force; borrowed */
	struct source_memory *own_memory; /* where the context has none: one for all sources, as in a run */
	struct weir_field_table fields;
	struct weir_exempt_lists *lists; /* borrowed; may be NULL */
	struct weir_matcher *matcher;
	struct source **sources;    /* in the configuration's order; NULL: it could not be reopened */
	struct inputs_ended *ended; /* of each */
	size_t source_count;
	struct dead_letters *dead;   /* borrowed; may be NULL */
	struct inputs_count *counts; /* of readers that were freed, until their streams are read again */
	size_t count_count;
	pthread_mutex_t
		lock; /* held while an element of `sources` or `ended` is replaced, or another thread asks for statuses */
};

/**
 * Opens the sources and prepares the matcher.
 *
 * @param policy   borrowed; must outlive the inputs, or last until the next inputs_set_policy()
 * @param lists    borrowed: of its "exempt", and that of later policies; NULL: each matcher reads its own
 * @param context  copied; what it points to is borrowed and must outlive the inputs
 */
WEIR_MUST_USE enum weir_status inputs_new(const struct weir_config *config, const struct weir_policy *policy,
                                          struct weir_exempt_lists *lists, const struct source_context *context,
                                          struct dead_letters *dead, struct inputs **inputs, struct weir_error *error);
void inputs_free(struct inputs *inputs);

/**
 * Opens the lists that the zones of a configuration name.
 *
 * @return WEIR_OK; WEIR_INVALID: one that was never read cannot be; the error has its place in the configuration
 */
WEIR_MUST_USE enum weir_status inputs_check_lists(const struct weir_config *config, struct weir_exempt_lists *lists,
                                                  struct weir_error *error);

/**
 * Checks that every source of a configuration and its format can be created, so that a start does not fail half-way. A
 * configuration without zones (in a cluster the policy has them) is checked without a policy.
 *
 * @return WEIR_OK; WEIR_INVALID: the error has the path, the line and what would be accepted
 */
WEIR_MUST_USE enum weir_status inputs_check(const struct weir_config *config, struct weir_exempt_lists *lists,
                                            struct weir_error *error);

/**
 * Checks that a policy's fields fit the formats of a configuration's sources, before the policy replaces another, and
 * reads anew the lists of its "exempt" that have changed. Opens no source. It is no error if a format does not provide a
 * field: the field is absent then.
 *
 * @return WEIR_OK: inputs_set_policy() will accept it; WEIR_INVALID: too many fields, of a list, or a zone takes a
 *         source's records for what they are not; WEIR_IO: of a list
 */
WEIR_MUST_USE enum weir_status inputs_check_policy(const struct weir_config *config, const struct weir_policy *policy,
                                                   struct weir_exempt_lists *lists, struct weir_error *error);

/** Creates the format of a source for these fields. @param format  returned, the caller frees it with format_free() */
WEIR_MUST_USE enum weir_status inputs_format(const struct weir_config *config, const struct weir_field_table *fields,
                                             size_t place, struct format **format, struct weir_error *error);

/**
 * Tells of each zone of a policy that no source can match, as every format of its sources lacks a field of the zone's key
 * or match (the member is NULL then); else of what it asks in vain of fields that they all lack: "not", its history, the
 * user agents of robots that are exempt, and values that none of them can give. Nothing is told without a source, of a zone that checks can be in, and of what
 * no configuration can say, as JSON has any field. Opens nothing.
 */
WEIR_MUST_USE enum weir_status inputs_each_lack(const struct weir_config *config, const struct weir_policy *policy,
                                                struct weir_exempt_lists *lists, policy_doubt *tell, void *context,
                                                struct weir_error *error);

enum { ABSENT_TELLING_RECORDS = 20 /* fewer say nothing */ };

/**
 * A field without which no record is in a zone of the policy in force, and that none of the first records of its sources
 * had, although their formats may give it; NULL: there is none.
 *
 * @param records  returned: how many were looked at, RECORDS_LOOKED_AT of each stream at most
 */
const char *inputs_absent_field(const struct inputs *inputs, const struct weir_zone *zone, uint64_t *records);

/** Appends the same as words for people, a string. @return false: there is no such field, or too few records tell */
bool inputs_absent_words(const struct inputs *inputs, const struct weir_zone *zone, struct weir_text *words);

/** The streams of sources[place]. @return how many; 0 if it is not open */
size_t inputs_streams(const struct inputs *inputs, size_t place, struct source_stream ***streams);

/** The reader of a stream of sources[place], created at the first call and kept in stream->context. */
WEIR_MUST_USE enum weir_status inputs_reader(struct inputs *inputs, size_t place, struct source_stream *stream,
                                             struct record_reader **reader, struct weir_error *error);

/** Matches by another policy from the next record on. On failure nothing has changed. */
WEIR_MUST_USE enum weir_status inputs_set_policy(struct inputs *inputs, const struct weir_policy *policy,
                                                 struct weir_error *error);

/** Matches by the newest lists of the same policy's "exempt" from the next record on. */
void inputs_renew_lists(struct inputs *inputs);

/** Whether the source's lines can be read again. */
bool inputs_replayable(const struct inputs *inputs, size_t place);

/**
 * Closes a source and opens it again, so that it continues at its acknowledged positions. Frees its readers.
 *
 * @return WEIR_OK; otherwise sources[place] is NULL, and a later attempt may succeed
 */
WEIR_MUST_USE enum weir_status inputs_reopen(struct inputs *inputs, size_t place, struct weir_error *error);

/** Adds the counts of all readers, present and freed, to `sum`. */
void inputs_counts(const struct inputs *inputs, struct record_counts *sum);

/** Whether every source can be read; otherwise appends why not, a line for each that cannot. @thread any */
bool inputs_ready(struct inputs *inputs, struct weir_text *why);

/** Appends a row of Markdown for each metric of the next two functions, over all kinds of sources. */
void inputs_metrics_describe(struct weir_text *text);

/** Appends the metrics of the readers' counts. @thread any */
void inputs_metrics_counts(const struct record_counts *counts, struct weir_text *text);

/** Keeps what a source has counted, before it is closed. The caller holds the lock. */
void inputs_metrics_end(struct source *source, struct inputs_ended *ended);
/** Appends the streams' metrics. @thread any */
void inputs_metrics(struct inputs *inputs, struct weir_text *text);

/** Bytes known to exist and not yet read, over all streams. @thread any */
uint64_t inputs_lag_bytes(struct inputs *inputs);

/** Bytes handed out, and bytes known to exist, over all streams: to show progress. */
void inputs_progress(const struct inputs *inputs, uint64_t *done_bytes, uint64_t *all_bytes);

#endif

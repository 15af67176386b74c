/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of sources to which others push: one stream, read from a spool.
 *
 * A kind puts `struct push_source` first in its own struct, opens it, listens, appends what it receives to `spool`, and
 * puts the functions below into its source_ops. The spool is in the state directory, as "spool-NAME".
 */
#ifndef COLLECTOR_SOURCE_PUSH_SOURCE_H
#define COLLECTOR_SOURCE_PUSH_SOURCE_H

#include "collector/source/push/push_spool.h"
#include "common/http/http.h"

#include <pthread.h>

struct source_memory;
struct source_memory_stream;
struct source_metric;

struct push_source {
	struct source source;
	char name[80]; /* of the stream, for people: "push:NAME" */
	struct source_stream stream;
	struct source_stream *streams[1];
	struct push_spool *spool; /* NULL: with `once` nothing is read */
	struct source_memory *memory;
	struct source_memory_stream *record;
	size_t line_max;
	pthread_mutex_t mutex;
	struct source_status status; /* guarded by the mutex */
	char unready[256];           /* with `once`: what would keep it from listening; "": nothing */
};

/* Its own counts (source_status.own). */
enum { PUSH_SPOOL_BYTES, PUSH_KNOWN_BATCHES, PUSH_PUSHED_BACK, PUSH_WAITING_MS, PUSH_REFUSED, PUSH_OWN_COUNTS };

extern const struct source_metric push_metric_spool, push_metric_known, push_metric_pushed_back, push_metric_waiting,
	push_metric_refused;
extern const struct source_metric *const push_source_metrics[];

struct push_source_options {
	const char *name;    /* of the source in the configuration: letters, digits, "-", "_" and "." */
	int64_t spool_bytes; /* "spool" */
	int64_t line_max;    /* 0: the context's */
};

/**
 * Opens the spool, and continues where the memory says. With context->once there is none, and reading ends at once.
 *
 * @param ops  of the kind
 * @return WEIR_OK; otherwise as push_spool_open(): push_source_deinit() is still due
 */
WEIR_MUST_USE enum weir_status push_source_init(struct push_source *source, const struct source_ops *ops,
                                                const struct push_source_options *options,
                                                const struct source_context *context, struct weir_error *error);
/**
 * With `once`, where nothing listens: looks at what would keep it from that, for its status.
 *
 * @param opened  whether the secrets that it needs could be read; else `error` says why, and is used up
 * @param tls     its certificate may be NULL: there is none to look at
 */
void push_source_look_ahead(struct push_source *source, enum weir_status opened, const struct weir_http_tls *tls,
                            struct weir_error *error);
/** After the kind has stopped listening. */
void push_source_deinit(struct push_source *source);

/** As in source_ops. */
enum weir_status push_source_count_left(const char *directory, const char *name, const struct source_memory *memory,
                                        struct source_left *left, struct weir_error *error);

/** Whether a name can be that of a spool's folder. */
bool push_source_name_is_good(const char *name);

/* As in source_ops. */
enum weir_status push_source_collect(struct source *source, struct source_stream *stream, struct source_chunk *chunk,
                                     struct weir_error *error);
size_t push_source_streams(struct source *source, struct source_stream ***streams);
int push_source_fd(const struct source *source);
void push_source_acknowledge(struct source *source, struct source_stream *stream, uint64_t position);
enum weir_status push_source_resume(struct source *source, struct source_stream *stream, uint64_t position,
                                    struct weir_error *error);
/** The kind adds what it has refused. */
size_t push_source_status(struct source *source, struct source_status *statuses, size_t count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The archiver's HTTP API: read-only access to the archive, as described in
 * openapi.json; and the files of a web page, if there are any.
 *
 * Requests run on archiver.api_workers threads, each with a store of its own.
 */
#ifndef ARCHIVER_API_H
#define ARCHIVER_API_H

#include "common/base/text.h"
#include "common/cluster/key_hash.h"
#include "common/config/config.h"
#include "common/log/log.h"
#include "common/log/metrics.h"
#include "common/store/store.h"

/* A file that is served to everybody, as it stands: a page's, which asks for a token itself. */
struct api_file {
	const char *path; /* "/", "/app.js" */
	const char *content_type;
	const unsigned char *bytes;
	size_t length;
};

struct api_options {
	const struct weir_config *config; /* its "archiver"; borrowed for as long as the API runs, as all of this is */
	struct weir_key_hash *hash;       /* by which keys were hashed that are looked up; NULL: none */
	const struct weir_log *log;
	/**
	 * Opens a store to read from: called on each worker when it first needs one, and again as long as it fails. The
	 * API closes it, on another thread, when all workers have ended.
	 */
	enum weir_status (*open_store)(void *context, struct weir_store **store, struct weir_error *error);
	void *context;
	bool momentary; /* such a store is as of the moment at which it was opened: it is for one request alone */
	/** Appends `"name": number, …` for "figures" of /api/v1/status; NULL: there are none. @thread any worker */
	void (*figures)(void *context, struct weir_text *members);
	void *figures_context;
	/** Appends what is not well with this process, in lines, for "troubles" of it; NULL: unknown. @thread any worker */
	void (*troubles)(void *context, struct weir_text *lines);
	void *troubles_context;
	/**
	 * Appends the object of /api/v1/why. NULL: this process has no log of events.
	 *
	 * @return WEIR_OK; WEIR_INVALID: there can be no such decision; WEIR_IO: it cannot be told now. The words say why, to
	 *         whoever asked. @thread any worker
	 */
	enum weir_status (*why)(void *context, const char *id, struct weir_text *json, struct weir_error *error);
	void *why_context;
	const struct api_file *files;
	size_t file_count;
};

struct api;

/**
 * Whether what the API asks for is there: its tokens, its certificate.
 *
 * @param doubts  appended to, as weir_http_tls_check() does
 * @return WEIR_OK, also where no API is configured; WEIR_INVALID
 */
WEIR_MUST_USE enum weir_status api_check(const struct weir_config *config, struct weir_text *doubts,
                                         struct weir_error *error);

extern const struct weir_metric_table api_metric_table;
/** Appends the API's metrics. NULL is fine. */
void api_metrics(const struct api *api, struct weir_text *page);

/**
 * Listens on archiver.api.
 *
 * @param api  returned: api_stop(); NULL where archiver.api is not configured
 * @return as weir_http_start(); a store that is down is no reason not to start
 */
WEIR_MUST_USE enum weir_status api_start(const struct api_options *options, struct api **api, struct weir_error *error);

/* A parameter of a question, decoded. */
struct api_argument {
	const char *name;
	struct weir_span value;
};

/**
 * Answers within the process, in JSON, what GET of a path would be answered: from a store that is opened for it alone.
 * No token is asked for, and no client is counted.
 *
 * @param options  its open_store and log
 * @param body     appended to
 * @return WEIR_OK; WEIR_INVALID: it is refused, in the API's words; as opening the store gave; WEIR_IO: the store failed
 */
WEIR_MUST_USE enum weir_status api_ask(const struct api_options *options, const char *path,
                                       const struct api_argument *arguments, size_t count, struct weir_text *body,
                                       struct weir_error *error);

uint16_t api_port(const struct api *api);

/** Ends all requests: those that wait for the store, when it answers. NULL is fine. */
void api_stop(struct api *api);

#endif

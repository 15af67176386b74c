/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where `weir top` reads: an archiver's API over HTTP, or a state directory,
 * which the same code answers for within this process. Both give the API's own
 * JSON, so that their numbers are alike.
 */
#ifndef DEPLOY_WEIR_TOP_TOP_SOURCE_H
#define DEPLOY_WEIR_TOP_TOP_SOURCE_H

#include "archiver/api/api.h"
#include "common/json/json.h"

struct top_source {
	/**
	 * Asks for a path with parameters.
	 *
	 * @param body  appended to
	 * @return WEIR_OK; WEIR_INVALID: it was refused (no such zone, a wrong token), or is nothing that could answer;
	 *         WEIR_IO: it is away
	 */
	enum weir_status (*get)(struct top_source *source, const char *path, const struct api_argument *arguments,
	                        size_t count, struct weir_text *body, struct weir_error *error);
	void (*close)(struct top_source *source);
	const char *name; /* what was given: a URL, a directory; borrowed */
};

/** @param url, token  borrowed; the token may be NULL. @return WEIR_INVALID: it is no URL of HTTP */
WEIR_MUST_USE enum weir_status top_source_url(const char *url, const char *token, const char *ca_path,
                                              struct top_source **source, struct weir_error *error);
/** A state directory, which a `weir run` may hold meanwhile. It is opened anew for each question. */
struct top_source *top_source_state(const char *directory);

/** Asks, and parses what comes. @param answer  returned: json_decref() */
WEIR_MUST_USE enum weir_status top_source_ask(struct top_source *source, const char *path,
                                              const struct api_argument *arguments, size_t count, json_t **answer,
                                              struct weir_error *error);

#endif

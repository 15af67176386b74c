/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What WebHDFS answers, read as JSON: statuses, listings, whether a file is open, errors.
 *
 * Anything may come, also a proxy's web page: what is no such answer is refused in words.
 *
 * @thread any
 */
#ifndef COLLECTOR_SOURCE_WEBHDFS_JSON_H
#define COLLECTOR_SOURCE_WEBHDFS_JSON_H

#include "common/base/span.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { WEBHDFS_WORDS_BYTES = 200, WEBHDFS_NAME_MOST = 4096 };

struct webhdfs_status {
	const char *name; /* within its folder: "" of what was asked for by its own path; borrowed */
	uint64_t id, length;
	int64_t modified_ms;
	bool folder;
};

typedef void webhdfs_take(void *context, const struct webhdfs_status *status);

/** FileStatus. */
WEIR_MUST_USE enum weir_status webhdfs_json_status(struct weir_span body, webhdfs_take *take, void *context,
                                                   struct weir_error *error);
/**
 * FileStatuses, whole or one page: each status in its order. Those without a use (links, names with a slash) are left out.
 *
 * @param remaining  entries behind this page
 * @param last       of at least WEBHDFS_NAME_MOST bytes: the last name; "": none
 */
WEIR_MUST_USE enum weir_status webhdfs_json_listing(struct weir_span body, webhdfs_take *take, void *context,
                                                    uint64_t *remaining, char *last, struct weir_error *error);
/** LocatedBlocks: whether somebody writes to the file. */
WEIR_MUST_USE enum weir_status webhdfs_json_open(struct weir_span body, bool *open, struct weir_error *error);
/**
 * RemoteException.
 *
 * @param name   its class: "StandbyException"; "": there is none
 * @param words  its first line, or what came in place of it
 */
void webhdfs_json_exception(struct weir_span body, char name[WEBHDFS_WORDS_BYTES], char words[WEBHDFS_WORDS_BYTES]);

#endif

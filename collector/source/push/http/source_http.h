/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines that others push by HTTP, as a source. */
#ifndef COLLECTOR_SOURCE_HTTP_H
#define COLLECTOR_SOURCE_HTTP_H

#include "collector/source/source.h"

/*
 * { "type": "http", "name": "edge", "listen": "127.0.0.1:8089", "token": {"file": "/etc/weir/edge.token"},
 *   "format": "json" }: POST to "path" takes lines and JSON; other paths are those of shippers' own protocols
 * (http_doors.c). A request is answered when its lines are in the spool on disk: then they are read like a file.
 */
extern const struct source_ops source_http_ops;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs the problems of the sources' streams: once when one begins, once when it is
 * over. Sources only state it (source.h, status).
 *
 * @thread one owner
 */
#ifndef COLLECTOR_SOURCE_REPORTS_H
#define COLLECTOR_SOURCE_REPORTS_H

#include "collector/source/source.h"
#include "common/log/log.h"

enum { SOURCE_REPORTS_MAX = 1024 }; /* streams of a source that are looked at each time */

struct source_reports;

/** @param log  borrowed */
struct source_reports *source_reports_new(const struct weir_log *log);
void source_reports_free(struct source_reports *reports);

/** Says what is new in the sources' statuses. @param sources  each in its place; NULL: it is closed just now */
void source_reports_tell(struct source_reports *reports, struct source *const *sources, size_t count);

#endif

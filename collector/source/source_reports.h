/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs the problems of the sources' streams: once when one begins, once when it is
 * over. Sources only report them in their statuses (source.h).
 *
 * @thread one owner
 */
#ifndef COLLECTOR_SOURCE_REPORTS_H
#define COLLECTOR_SOURCE_REPORTS_H

#include "collector/source/source.h"
#include "common/log/log.h"

enum { SOURCE_REPORTS_MAX = 1024 }; /* how many streams of a source are checked */

struct source_reports;

/** @param log  borrowed */
struct source_reports *source_reports_new(const struct weir_log *log);
void source_reports_free(struct source_reports *reports);

/** Logs what is new in the sources' statuses. @param sources  always in the same order; NULL: one is closed now */
void source_reports_tell(struct source_reports *reports, struct source *const *sources, size_t count);

#endif

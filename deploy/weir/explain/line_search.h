/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines by their time and key alone: for a decision whose record is no longer in the log, and for events whose position
 * leads nowhere, as files were joined or rewritten. Every file of the sources is read, up to a bound.
 */
#ifndef DEPLOY_WEIR_EXPLAIN_LINE_SEARCH_H
#define DEPLOY_WEIR_EXPLAIN_LINE_SEARCH_H

#include "deploy/weir/explain/lines.h"

#define LINE_SEARCH_BYTES (INT64_C(256) << 20) /* uncompressed, of all files of one question */

/**
 * Finds lines for the events of a question that have none. A question that has no events, but a published decision of a
 * limit, gets those of its zone and key that the limit can have counted, by their times: they were not judged.
 *
 * @return false: the bound was reached before all files were read
 */
bool line_search(const struct lines_options *options, struct question *question);

#endif

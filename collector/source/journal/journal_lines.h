/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of systemd's journal by their numbers, for who looks for a line again: as the source `journal` handed it out. */
#ifndef COLLECTOR_JOURNAL_LINES_H
#define COLLECTOR_JOURNAL_LINES_H

#include "common/base/text.h"
#include "common/json/json.h"

struct journal_lines; /* the files as they were listed once */

/** @param source  an element of "sources", of the type "journal" @return returned: journal_lines_free() */
struct journal_lines *journal_lines_new(const struct weir_json *source);
void journal_lines_free(struct journal_lines *lines);

/**
 * Reads an entry.
 *
 * @param position  of its event
 * @param stream  as the collector calls it: its seqnum id is in the name
 * @param line    cleared and filled
 * @param path    the file that has it; borrowed
 * @return false: no file has it any more
 */
bool journal_lines_read(const struct journal_lines *lines, const char *stream, uint64_t position, size_t line_max,
                        struct weir_text *line, const char **path);

#endif

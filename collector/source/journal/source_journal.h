/* SPDX-License-Identifier: Apache-2.0 */
/* systemd's journal as a source. */
#ifndef COLLECTOR_SOURCE_JOURNAL_H
#define COLLECTOR_SOURCE_JOURNAL_H

#include "collector/source/source.h"

/*
 * { "type": "journal", "units": ["nginx.service"], "match": {"PRIORITY": ["3", "4"]}, "start": "end" }: each entry is a
 * line, a JSON object as `journalctl -o json` prints it.
 *
 * A stream is a seqnum id and a file name without what rotation adds. Its positions are the entries' sequence numbers,
 * which no restart, rotation or clock changes. The memory keeps the last one read, under the source's name or, without
 * one, under its directory, units and match. Reading continues from there, each entry once. Entries that were removed
 * before they were read are counted as lost.
 */
extern const struct source_ops source_journal_ops;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* systemd's journal as a source. */
#ifndef COLLECTOR_SOURCE_JOURNAL_H
#define COLLECTOR_SOURCE_JOURNAL_H

#include "collector/source/source.h"

/*
 * { "type": "journal", "units": ["nginx.service"], "match": {"PRIORITY": ["3", "4"]}, "start": "end" }: each entry is a
 * line, a JSON object as `journalctl -o json` prints it.
 *
 * A stream is a seqnum id and a file name, without what rotation adds: its positions are the entries' sequence numbers,
 * which neither a restart nor a rotation nor a clock changes. Which was read last is kept in the memory under the
 * source's name, or, without one, under its directory, units and match: the journal is read on from there, each entry
 * once. What was removed before it was read is counted as lost.
 */
extern const struct source_ops source_journal_ops;

#endif

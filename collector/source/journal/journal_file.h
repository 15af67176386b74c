/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file of systemd's journal, read from an entry on: the one place where libsystemd is met.
 *
 * A handle on a whole directory would merge its files by their clocks, and leave out what a clock that was set back
 * puts before what was read already. Within a file the order is that of the sequence numbers, and nothing else.
 *
 * @thread one owner
 */
#ifndef COLLECTOR_JOURNAL_FILE_H
#define COLLECTOR_JOURNAL_FILE_H

#include "common/base/text.h"

#include <stdint.h>

struct journal_file;

/* Which entries are wanted: "FIELD=value"; values of one field are alternatives, different fields must all match. */
struct journal_filter {
	char **matches; /* owned by whoever has the filter */
	size_t count;
};

struct journal_entry {
	uint64_t seqnum;
	int64_t realtime_us;
};

/** Whether this program was built with libsystemd. */
bool journal_built_in(void);

/**
 * Opens a file, and goes behind an entry.
 *
 * @param fd      borrowed
 * @param id      the file's seqnum id, 16 bytes
 * @param after   seqnum; 0: from the first entry on
 * @return WEIR_OK; WEIR_INVALID: it is no journal that can be read; WEIR_IO
 */
WEIR_MUST_USE enum weir_status journal_file_open(int fd, const struct journal_filter *filter, const uint8_t *id,
                                                 uint64_t after, struct journal_file **file, struct weir_error *error);
void journal_file_close(struct journal_file *file);

/**
 * The next entry that is wanted.
 *
 * @return WEIR_OK; WEIR_AGAIN: there is none, yet; WEIR_INVALID: the file is damaged, nothing more comes from it
 */
WEIR_MUST_USE enum weir_status journal_file_next(struct journal_file *file, struct journal_entry *entry,
                                                 struct weir_error *error);

/**
 * Appends the newest entry as a JSON object, without a newline: "__REALTIME_TIMESTAMP", then its fields, which may hold
 * any bytes. Fields above 4 KiB but MESSAGE are left out, as journalctl does.
 *
 * @param most  of a MESSAGE: what is beyond is left out
 * @return how many bytes of MESSAGE were left out
 */
uint64_t journal_file_text(struct journal_file *file, const struct journal_entry *entry, size_t most,
                           struct weir_text *text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file of systemd's journal, read from an entry on. Only its .c uses libsystemd.
 *
 * A handle on a whole directory would merge its files by their clocks. After a clock was set back it would leave out
 * entries with times before what was read already. Within a file the order is that of the sequence numbers alone.
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
	char **matches; /* owned by the filter's owner */
	size_t count;
};

struct journal_entry {
	uint64_t seqnum;
	int64_t realtime_us;
};

/** Whether this program was built with libsystemd. */
bool journal_built_in(void);

/**
 * Opens a file, and moves past an entry.
 *
 * @param fd      borrowed
 * @param id      the file's seqnum id, 16 bytes
 * @param after   seqnum of that entry; 0: start at the first entry
 * @return WEIR_OK; WEIR_INVALID: it cannot be read as a journal; WEIR_IO
 */
WEIR_MUST_USE enum weir_status journal_file_open(int fd, const struct journal_filter *filter, const uint8_t *id,
                                                 uint64_t after, struct journal_file **file, struct weir_error *error);
void journal_file_close(struct journal_file *file);

/**
 * Moves to the next entry that passes the filter.
 *
 * @return WEIR_OK; WEIR_AGAIN: there is none yet; WEIR_INVALID: the file is damaged, and has no more entries
 */
WEIR_MUST_USE enum weir_status journal_file_next(struct journal_file *file, struct journal_entry *entry,
                                                 struct weir_error *error);

/**
 * Appends the entry of the last journal_file_next() as a JSON object, without a newline: "__REALTIME_TIMESTAMP", then
 * its fields, which may hold any bytes. A field that is above 4 KiB as it is written, other than MESSAGE, is left out
 * where the entry would then be above half of `most`.
 *
 * @param most  the limit on a MESSAGE, which is cut to it
 * @return how many bytes of MESSAGE were cut
 */
uint64_t journal_file_text(struct journal_file *file, const struct journal_entry *entry, size_t most,
                           struct weir_text *text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From when on an archive has all its rows: a note of the store, which whoever deletes old rows writes before. So whoever
 * reads the archive need not know by which settings, of now or before, that was done.
 */
#ifndef WEIR_COMMON_KEPT_NOTE_H
#define WEIR_COMMON_KEPT_NOTE_H

#include "common/store/store.h"

/* Unix ms, by table: rows before that may be deleted. 0: none ever was. */
struct weir_kept_note {
	int64_t from_ms[WEIR_ARCHIVE_TABLES];
};

WEIR_MUST_USE enum weir_status weir_kept_note_get(struct weir_store *store, struct weir_kept_note *note,
                                                  struct weir_error *error);
/** Notes that rows older than keep_ms (0: for ever) are deleted by a time. What was deleted before stays noted. */
WEIR_MUST_USE enum weir_status weir_kept_note_add(struct weir_store *store, const int64_t keep_ms[WEIR_ARCHIVE_TABLES],
                                                  int64_t now_ms, struct weir_error *error);

#endif

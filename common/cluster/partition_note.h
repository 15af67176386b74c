/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a limiter says of a partition to whoever looks from elsewhere, and need not reach its pages: a note in the store.
 *
 * A note holds while its epoch is the partition's in the store. So nobody has to take one away: whoever takes the partition
 * again, or has it go on, raises the epoch.
 */
#ifndef WEIR_COMMON_PARTITION_NOTE_H
#define WEIR_COMMON_PARTITION_NOTE_H

#include "common/store/store.h"

enum weir_partition_note {
	WEIR_PARTITION_STOPPED,    /* why it is */
	WEIR_PARTITION_UNARCHIVED, /* its limiter publishes no judged frames: who that is */
};

/**
 * Makes a note. One of an epoch before the stored one is not made, as it would hold of nothing.
 *
 * @param epoch  under which the partition was taken; 0: it could not be, and the note is of the epoch that is stored
 * @param words  "": what was said under the same epoch is over
 */
WEIR_MUST_USE enum weir_status weir_partition_note_put(struct weir_store *store, enum weir_partition_note which,
                                                       uint32_t partition, uint64_t epoch, const char *words,
                                                       struct weir_error *error);

/** The words that hold of a partition: returned, the caller frees; *words NULL: none do. */
WEIR_MUST_USE enum weir_status weir_partition_note_get(struct weir_store *store, enum weir_partition_note which,
                                                       uint32_t partition, char **words, struct weir_error *error);

#endif

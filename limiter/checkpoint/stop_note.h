/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a partition is stopped, as a note in the store: its limiter's own pages say it too, but whoever looks at the cluster
 * as a whole need not reach them.
 *
 * A note holds while its epoch is the partition's in the store. So nobody has to take one away: whoever takes the partition
 * again, or has it go on, raises the epoch.
 */
#ifndef LIMITER_STOP_NOTE_H
#define LIMITER_STOP_NOTE_H

#include "common/store/store.h"

/**
 * Says why a partition is stopped.
 *
 * @param epoch  under which it was taken; 0: it could not be, and the note is of the epoch that is stored
 * @param words  "": it is stopped no longer, under the same epoch
 */
WEIR_MUST_USE enum weir_status stop_note_put(struct weir_store *store, uint32_t partition, uint64_t epoch,
                                             const char *words, struct weir_error *error);

/** The words that hold of a partition: returned, the caller frees; *words NULL: it is not said to be stopped. */
WEIR_MUST_USE enum weir_status stop_note_get(struct weir_store *store, uint32_t partition, char **words,
                                             struct weir_error *error);

#endif

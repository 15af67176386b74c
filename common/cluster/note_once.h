/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes that the first process writes once, and that all processes of a store agree
 * on from then on.
 */
#ifndef WEIR_COMMON_NOTE_ONCE_H
#define WEIR_COMMON_NOTE_ONCE_H

#include "common/store/store.h"

/**
 * Puts notes, all or none, unless the first of them is there already.
 *
 * @return WEIR_OK: they are there, these or those of another process that was sooner; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_note_once(struct weir_store *store, const char *const *names,
                                              const struct weir_span *values, size_t count, struct weir_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes in a store on which all of its processes agree: those that only the first one puts, and numbers that no process
 * makes lower than another did.
 */
#ifndef WEIR_COMMON_PUT_IF_ABSENT_H
#define WEIR_COMMON_PUT_IF_ABSENT_H

#include "common/store/store.h"

/**
 * Puts notes, all or none, unless the first of them exists already.
 *
 * @return WEIR_OK: they exist, with these values or those of another process that was faster; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_put_if_absent(struct weir_store *store, const char *const *names,
                                                  const struct weir_span *values, size_t count,
                                                  struct weir_error *error);

/** Makes a note this number, unless it is as high already. @return WEIR_OK: it is as high; WEIR_IO */
WEIR_MUST_USE enum weir_status weir_put_if_higher(struct weir_store *store, const char *name, uint64_t number,
                                                  struct weir_error *error);

#endif

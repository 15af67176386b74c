/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes in a store that only the first process puts, and on which all processes of
 * the store agree from then on.
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

#endif

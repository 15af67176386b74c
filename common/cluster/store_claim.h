/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose store it is. A store remembers the "bus.prefix" of the cluster that works on it, in the note "prefix": offsets in
 * it are of the topics with that prefix, and mean nothing in others.
 */
#ifndef WEIR_COMMON_STORE_CLAIM_H
#define WEIR_COMMON_STORE_CLAIM_H

#include "common/config/config.h"
#include "common/store/store.h"

/**
 * Looks whether the store is this configuration's.
 *
 * @return WEIR_OK: it is, or nobody has claimed it yet; WEIR_INVALID: it is of another "bus.prefix"; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_store_check_claim(struct weir_store *store, const struct weir_config *config,
                                                      struct weir_error *error);

/** Likewise, and claims one that nobody has claimed yet. */
WEIR_MUST_USE enum weir_status weir_store_claim(struct weir_store *store, const struct weir_config *config,
                                                struct weir_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all limiters of one store agree on, as set by the first one: the seed of the
 * fingerprints, so that any limiter finds the buckets that another stored, and the
 * number of partitions.
 */
#ifndef LIMITER_AGREEMENT_H
#define LIMITER_AGREEMENT_H

#include "common/store/store.h"

/**
 * Reads it, or makes it if this is the first limiter.
 *
 * @return WEIR_OK; WEIR_INVALID: the store is of another number of partitions; WEIR_IO
 */
WEIR_MUST_USE enum weir_status agreement_reach(struct weir_store *store, uint32_t partitions, uint64_t *seed,
                                               struct weir_error *error);

/** Only reads it. @return as agreement_reach(); WEIR_END: there was no limiter yet */
WEIR_MUST_USE enum weir_status agreement_find(struct weir_store *store, uint32_t partitions, uint64_t *seed,
                                              struct weir_error *error);

#endif

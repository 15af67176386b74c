/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cluster metadata: what all limiters of one store agree on, as set by the first one:
 * the seed of the fingerprints, so that any limiter finds the buckets that another
 * stored, and the number of partitions.
 */
#ifndef LIMITER_CLUSTER_METADATA_H
#define LIMITER_CLUSTER_METADATA_H

#include "common/store/store.h"

/**
 * Reads the metadata, or creates it if this is the first limiter.
 *
 * @return WEIR_OK; WEIR_INVALID: the store has another number of partitions; WEIR_IO
 */
WEIR_MUST_USE enum weir_status cluster_metadata_establish(struct weir_store *store, uint32_t partitions, uint64_t *seed,
                                                          struct weir_error *error);

/** Only reads it. @return as cluster_metadata_establish(); WEIR_END: no limiter has created it yet */
WEIR_MUST_USE enum weir_status cluster_metadata_read(struct weir_store *store, uint32_t partitions, uint64_t *seed,
                                                     struct weir_error *error);

#endif

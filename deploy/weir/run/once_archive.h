/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The archive of a --once run: what its workers judge goes into a ledger of each
 * partition, and to the store with the cut that it belongs to. So a run that was
 * killed continues with counts that are neither short nor double.
 */
#ifndef DEPLOY_WEIR_RUN_ONCE_ARCHIVE_H
#define DEPLOY_WEIR_RUN_ONCE_ARCHIVE_H

#include "archiver/work/batch.h"
#include "limiter/lane/lane.h"

struct once_archive;

/**
 * @param store      has the policy `version`; borrowed within this call
 * @param hash_keys  archiver.hash_keys
 * @return WEIR_INVALID: the secret cannot serve, or its archive is of another one
 */
WEIR_MUST_USE enum weir_status once_archive_new(uint32_t partitions, uint64_t version, struct weir_store *store,
                                                const char *hash_keys, struct once_archive **archive,
                                                struct weir_error *error);
/** NULL is fine. */
void once_archive_free(struct once_archive *archive);

/** Takes what a judged frame gives. @thread whoever has the lane */
void once_archive_add(struct once_archive *archive, const struct lane *lane, const struct lane_result *result);
/** Memory of one partition's rows. @thread likewise */
size_t once_archive_bytes(const struct once_archive *archive, uint32_t partition);

/** What is to be stored, until anything is added; while no worker is at work. NULL is fine, and gives NULL. */
const struct weir_archive_batch *once_archive_batch(struct once_archive *archive);
/** It has been stored. NULL is fine. */
void once_archive_stored(struct once_archive *archive);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of several partitions as one batch, in the order of the tables' primary
 * keys: rows that are adjacent in the store are inserted one after the other,
 * which is several times as fast. If keys are hashed, it is done here, as all rows
 * that are archived pass here.
 */
#ifndef ARCHIVER_BATCH_H
#define ARCHIVER_BATCH_H

#include "archiver/ledger/ledger.h"
#include "common/cluster/key_hash.h"

struct batch;

/** @param hash  hashes keys, borrowed; NULL: they stay as they are */
struct batch *batch_new(struct weir_key_hash *hash);
/** NULL is fine. */
void batch_free(struct batch *batch);

/**
 * Collects the rows of some ledgers.
 *
 * @return borrowed, like the ledgers' bytes in it, until a ledger changes or the batch is filled again
 */
const struct weir_archive_batch *batch_fill(struct batch *batch, struct ledger *const *ledgers, size_t count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What several partitions have to be stored, as one batch, in the order of the
 * tables' primary keys: rows that lie beside each other in the store come one
 * after the other, which is several times as fast. Here keys become what the
 * store has in their place: whatever is archived comes this way.
 */
#ifndef ARCHIVER_BATCH_H
#define ARCHIVER_BATCH_H

#include "archiver/ledger/ledger.h"
#include "common/cluster/key_hash.h"

struct batch;

/** @param hash  by which keys are hashed, borrowed; NULL: they stay as they are */
struct batch *batch_new(struct weir_key_hash *hash);
/** NULL is fine. */
void batch_free(struct batch *batch);

/**
 * Collects what some ledgers hold.
 *
 * @return borrowed, as are the ledgers' bytes in it, until a ledger changes or the batch is filled again
 */
const struct weir_archive_batch *batch_fill(struct batch *batch, struct ledger *const *ledgers, size_t count);

#endif

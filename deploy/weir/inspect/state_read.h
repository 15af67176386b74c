/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limiter's state as its store has it, read partition by partition through a
 * lane, as a start would: so what is read is what a start would continue with.
 */
#ifndef DEPLOY_WEIR_INSPECT_STATE_READ_H
#define DEPLOY_WEIR_INSPECT_STATE_READ_H

#include "common/store/store.h"
#include "deploy/weir/inspect/state_keys.h"
#include "limiter/lane/policy_registry.h"
#include "limiter/overrides/overrides.h"
#include "limiter/shard/shard.h"

struct state_read {
	struct weir_store *store;
	struct policy_registry *registry; /* with every policy of the store */
	uint64_t seed;
	uint32_t partitions;           /* of the log, where it matters who publishes for networks; 0: as 1 */
	int64_t lateness_ms;           /* < 0: nothing counts as forgotten */
	const struct state_keys *only; /* the buckets of these keys; NULL: all */
	/** Each bucket that is not forgotten; the image is borrowed. NULL: none is read */
	void (*each)(void *context, uint32_t partition, const struct shard_bucket *bucket);
	/** What operators' commands hold. NULL: not wanted */
	void (*overrides)(void *context, uint32_t partition, const struct overrides *overrides);
	void *context;
};

/**
 * Reads a partition as of its current checkpoint. Where another owner takes it over meanwhile it is read again, a few
 * times; then buckets may come twice.
 *
 * @return WEIR_OK; WEIR_INVALID: what is stored is damaged; WEIR_IO
 */
WEIR_MUST_USE enum weir_status state_read_partition(const struct state_read *read, uint32_t partition,
                                                    struct weir_error *error);

#endif

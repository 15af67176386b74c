/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies into the log: numbering them in the store, and appending them to
 * every partition and to the policy topic.
 *
 * The order of writing is what keeps every reader right, whatever is cut off
 * where: the store first, so that a number never names two policies and a
 * limiter that meets one in its log can read those before it; then the
 * partitions, and when all of them have it, the policy topic, so that no event
 * is matched under a policy that its partition may not have; then a note of the
 * newest that is everywhere. What a crash leaves out is appended by the next
 * call, oldest first; partitions that already have it skip it.
 */
#ifndef WEIR_COMMON_POLICY_LOG_H
#define WEIR_COMMON_POLICY_LOG_H

#include "common/bus/bus.h"
#include "common/policy/policy.h"
#include "common/store/store.h"

/* Every policy that there was, by ascending version. */
struct weir_policy_history {
	struct weir_policy **policies; /* owned */
	size_t count;
};

WEIR_MUST_USE enum weir_status weir_policy_history_load(struct weir_store *store, struct weir_policy_history *history,
                                                        struct weir_error *error);
void weir_policy_history_deinit(struct weir_policy_history *history);

/**
 * Gives a policy its number: that of the newest one if their zones are the same, else the next, under which the store
 * keeps it from then on.
 *
 * @param history  every policy so far, by ascending version; borrowed
 * @param store    NULL: none keeps it (--once without a state)
 * @return WEIR_OK; WEIR_INVALID: it cannot follow one that there was, as buckets of a zone that is gone may still be
 *         stored under its id; or someone else has just numbered another
 */
WEIR_MUST_USE enum weir_status weir_policy_number(struct weir_store *store, const struct weir_policy *const *history,
                                                  size_t count, const struct weir_policy *policy, uint64_t *version,
                                                  struct weir_error *error);

/** The newest version that is in every partition and in the policy topic; 0: none. */
WEIR_MUST_USE enum weir_status weir_policy_appended(struct weir_store *store, uint64_t *version,
                                                    struct weir_error *error);

/**
 * Appends what the store has up to a version and is not everywhere yet, and waits until it is durable.
 *
 * @param now_ms   the sending time of the records
 * @param wait_ms  how long the bus may take for each step
 * @return WEIR_OK; WEIR_IO: the bus did not take it in that time: calling again goes on
 */
WEIR_MUST_USE enum weir_status weir_policy_append(struct weir_store *store, struct weir_bus *bus, uint64_t version,
                                                  int64_t now_ms, int64_t wait_ms, struct weir_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes policies to the log: numbers them in the store, and appends them to every
 * partition and to the policy topic.
 *
 * The order of writing keeps every reader correct, wherever a crash interrupts it.
 * First the store: so a number never names two policies, and a limiter that finds
 * one in its log can read those before it. Then the partitions and, when all of
 * them have it, the policy topic: so no event is matched under a policy that its
 * partition may not have. Then a note of the newest version that is everywhere.
 * What a crash leaves out is appended by the next call, oldest first; limiters skip
 * it in partitions that already have it.
 */
#ifndef WEIR_COMMON_POLICY_LOG_H
#define WEIR_COMMON_POLICY_LOG_H

#include "common/bus/bus.h"
#include "common/policy/policy.h"
#include "common/store/store.h"

/* All policies so far, by ascending version. */
struct weir_policy_history {
	struct weir_policy **policies; /* owned */
	size_t count;
};

WEIR_MUST_USE enum weir_status weir_policy_history_load(struct weir_store *store, struct weir_policy_history *history,
                                                        struct weir_error *error);
void weir_policy_history_deinit(struct weir_policy_history *history);

/**
 * Numbers a policy: with the number of the newest one if the two are the same, otherwise with the next number, under
 * which it is stored. Its zones get their ids first.
 *
 * @param store    NULL: it is not stored (--once without a state)
 * @param history  all policies so far, by ascending version; borrowed
 * @return WEIR_OK; WEIR_INVALID: it cannot follow an earlier one, as buckets of a removed zone may still be stored
 *         under the zone's id; WEIR_AGAIN: another process has just used the number
 */
WEIR_MUST_USE enum weir_status weir_policy_number(struct weir_store *store, const struct weir_policy *const *history,
                                                  size_t count, struct weir_policy *policy, uint64_t *version,
                                                  struct weir_error *error);

/** A policy's record. @return the message; the caller frees */
char *weir_policy_message(const struct weir_policy *policy, struct weir_span text, int64_t now_ms, size_t *length);

/**
 * Reads the newest version that is in every partition and in the policy topic; 0: none.
 *
 * @param bus  to look whether the policy topic has it still, as one that was made anew has not; NULL: as was noted
 */
WEIR_MUST_USE enum weir_status weir_policy_appended(struct weir_store *store, struct weir_bus *bus, uint64_t *version,
                                                    struct weir_error *error);

/** Reads the newest version that the policy topic has; 0: none. @return WEIR_OK; WEIR_IO, WEIR_INVALID: not readable */
WEIR_MUST_USE enum weir_status weir_policy_topic_newest(struct weir_bus *bus, uint64_t *version,
                                                        struct weir_error *error);

/**
 * Appends the store's policies, up to a version, that are not everywhere yet, and waits until they are durable.
 *
 * @param now_ms   the sending time of the records
 * @param wait_ms  how long the bus may take for each step
 * @return WEIR_OK; WEIR_IO: the bus did not take them in that time: calling again continues
 */
WEIR_MUST_USE enum weir_status weir_policy_append(struct weir_store *store, struct weir_bus *bus, uint64_t version,
                                                  int64_t now_ms, int64_t wait_ms, struct weir_error *error);

#endif

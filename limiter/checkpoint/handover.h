/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handover from one limiter to the next: a limiter that must give up a partition
 * announces it, stores a last checkpoint, and reports that it is stored. The next
 * owner waits for that, within a bound, and then need not judge the same messages
 * again.
 *
 * This is an optimisation and correctness does not depend on it: the epoch decides
 * who owns a partition, and a limiter that announces nothing is not waited for.
 */
#ifndef LIMITER_HANDOVER_H
#define LIMITER_HANDOVER_H

#include "common/store/store.h"

#include <stdbool.h>

/** Announces that the owner of an epoch is leaving the partition, or (left) has left it. */
WEIR_MUST_USE enum weir_status handover_announce(struct weir_store *store, uint32_t partition, uint64_t epoch,
                                                 bool left, struct weir_error *error);

/**
 * Asks whether to take a partition.
 *
 * @param waited_ms  the time since the caller first asked
 * @return WEIR_OK: take it; WEIR_AGAIN: ask again in a moment; WEIR_IO
 */
WEIR_MUST_USE enum weir_status handover_ask(struct weir_store *store, uint32_t partition, int64_t waited_ms,
                                            struct weir_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What operators' commands hold for a partition now: what its checkpoint has, and what the log says since. */
#ifndef DEPLOY_WEIR_INSPECT_OVERRIDES_READ_H
#define DEPLOY_WEIR_INSPECT_OVERRIDES_READ_H

#include "common/bus/bus.h"
#include "common/store/store.h"
#include "limiter/lane/policy_registry.h"
#include "limiter/overrides/overrides.h"

struct overrides_read {
	struct weir_store *store;
	struct weir_bus *bus;             /* NULL: the log of `directory` is read from beside its owner */
	const char *directory;            /* borrowed */
	struct policy_registry *registry; /* with every policy of the store */
	uint32_t partitions;
	int64_t lateness_ms; /* < 0: nothing is forgotten */
	int64_t until_ms;    /* when reading gives up, of the monotonic clock; INT64_MAX: never */
	/** Called once; they are borrowed. */
	void (*overrides)(void *context, const struct overrides *overrides);
	void *context;
};

/** @return WEIR_OK; WEIR_INVALID: it cannot be known, the words say why; WEIR_IO: likewise, and it took too long or a server failed */
WEIR_MUST_USE enum weir_status overrides_read(const struct overrides_read *read, uint32_t partition,
                                              struct weir_error *error);

#endif

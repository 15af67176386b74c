/* SPDX-License-Identifier: Apache-2.0 */
/* Every partition has all networks, so that of the key is enough. */
#include "deploy/weir/overrides/override_around.h"

#include "common/base/clock.h"
#include "deploy/weir/backend/policy_apply.h"
#include "deploy/weir/inspect/overrides_read.h"

enum { WAIT_MS = 3000 };

struct looking {
	const struct override_command *command;
	uint32_t zone_id;
	struct weir_text *networks;
};

static void take(void *context, const struct overrides *overrides)
{
	struct looking *looking = context;
	struct weir_span key = override_key(looking->command);
	struct overrides_walk walk = {0};
	const struct override *override;
	while ((override = overrides_next(overrides, looking->zone_id, key, weir_wall_ms(), &walk)) != NULL) {
		if (override->scope != OVERRIDE_OF_NETWORK || !override->block.active)
			continue;
		weir_text_puts(looking->networks, looking->networks->length > 0 ? ", " : "");
		weir_text_append(looking->networks, override->key.at, override->key.length);
	}
}

enum weir_status override_around(const struct backend *backend, const struct override_command *command,
                                 uint32_t zone_id, uint32_t partition, struct weir_text *networks,
                                 struct weir_error *error)
{
	struct looking looking = {.command = command, .zone_id = zone_id, .networks = networks};
	struct overrides_read read = {.store = backend->store,
	                              .bus = backend->bus,
	                              .directory = backend->state_path,
	                              .registry = policy_registry_new(),
	                              .lateness_ms = backend->lateness_ms,
	                              .until_ms = weir_monotonic_ms() + WAIT_MS,
	                              .overrides = take,
	                              .context = &looking};
	enum weir_status status = policy_log_load(backend->store, read.registry, error);
	if (status == WEIR_OK)
		status = backend_partitions(backend, &read.partitions, error);
	if (status == WEIR_OK)
		status = overrides_read(&read, partition, error);
	policy_registry_free(read.registry);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The policy registry and the policy log together: what one process needs that is collector and limiter. */
#include "deploy/weir/backend/policy_apply.h"

#include "common/base/alloc.h"
#include "common/cluster/policy_log.h"
#include "common/cluster/policy_note.h"
#include "deploy/weir/terminal/author.h"

#include <stdlib.h>

enum { WAIT_MS = 30000 };

struct loading {
	struct policy_registry *registry;
	struct weir_error *error;
};

static enum weir_status add_policy(void *context, uint64_t version, struct weir_span text)
{
	const struct loading *loading = context;
	return policy_registry_add(loading->registry, version, text, loading->error);
}

enum weir_status policy_log_load(struct weir_store *store, struct policy_registry *registry, struct weir_error *error)
{
	struct loading loading = {registry, error};
	return store->ops->policy_each(store, 1, add_policy, &loading, error);
}

static enum weir_status number_policy(struct weir_store *store, struct policy_registry *registry,
                                      struct weir_policy *policy, uint64_t *version, struct weir_error *error)
{
	uint64_t newest = policy_registry_newest(registry);
	const struct weir_policy **history = weir_alloc(newest, sizeof(const struct weir_policy *));
	size_t count = 0;
	for (uint64_t earlier = 1; earlier <= newest; earlier++)
		if (policy_registry_policy(registry, earlier) != NULL)
			history[count++] = policy_registry_policy(registry, earlier);
	enum weir_status status = weir_policy_number(store, history, count, policy, version, error);
	free(history);
	return status;
}

/* Notes who did it, and appends it. */
static enum weir_status put_in_log(struct weir_store *store, struct weir_bus *bus, uint64_t number, const char *by,
                                   int64_t now_ms, struct weir_error *error)
{
	struct weir_policy_note note = {.at_ms = now_ms};
	author_name(by, note.by, sizeof note.by);
	enum weir_status status = weir_policy_note_put(store, number, &note, error);
	return status == WEIR_OK ? weir_policy_append(store, bus, number, now_ms, WAIT_MS, error) : status;
}

enum weir_status policy_log_apply(struct weir_store *store, struct policy_registry *registry, struct weir_bus *bus,
                                  struct weir_policy *policy, const char *by, int64_t now_ms, uint64_t *version,
                                  struct weir_error *error)
{
	uint64_t number, before = policy_registry_newest(registry);
	weir_policy_stay_armed(policy, policy_registry_policy(registry, before));
	enum weir_status status = number_policy(store, registry, policy, &number, error);
	if (status == WEIR_OK)
		status = policy_registry_add(registry, number, weir_span_of(policy->text), error);
	/* One that weir itself wrote may have been left without its author, by a crash. */
	if (status == WEIR_OK && number == before &&
	    weir_policy_is_arming(policy_registry_policy(registry, number - 1), policy))
		by = WEIR_POLICY_AUTHOR_SELF;
	if (status == WEIR_OK && bus != NULL && store != NULL)
		status = put_in_log(store, bus, number, by, now_ms, error);
	if (status == WEIR_OK)
		*version = number;
	return status;
}

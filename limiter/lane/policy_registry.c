/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing array behind a mutex: policies change a few times a day, and workers
 * look up a version only when their log has a new one. Of a history of years only
 * few are looked up, so each is compiled when it is first asked for.
 */
#include "limiter/lane/policy_registry.h"

#include "common/base/alloc.h"

#include <pthread.h>
#include <stdlib.h>

struct entry {
	struct weir_policy *policy;
	struct compiled_policy *compiled; /* NULL: not asked for yet */
};

struct policy_registry {
	pthread_mutex_t lock;
	struct entry *entries; /* by version, ascending */
	size_t count;
};

struct policy_registry *policy_registry_new(void)
{
	struct policy_registry *registry = weir_alloc(1, sizeof *registry);
	pthread_mutex_init(&registry->lock, NULL);
	return registry;
}

void policy_registry_free(struct policy_registry *registry)
{
	if (registry == NULL)
		return;
	for (size_t i = 0; i < registry->count; i++) {
		compiled_policy_free(registry->entries[i].compiled);
		weir_policy_free(registry->entries[i].policy);
	}
	free(registry->entries);
	pthread_mutex_destroy(&registry->lock);
	free(registry);
}

static struct entry *find(const struct policy_registry *registry, uint64_t version)
{
	for (size_t i = registry->count; i-- > 0;)
		if (registry->entries[i].policy->version == version)
			return &registry->entries[i];
	return NULL;
}

/* Compiles a policy: compiled_policy_new() takes all policies so far, the newest last. */
static struct compiled_policy *compile(const struct policy_registry *registry, const struct entry *newest)
{
	size_t count = (size_t)(newest - registry->entries) + 1;
	const struct weir_policy **policies = weir_alloc(count, sizeof(const struct weir_policy *));
	for (size_t i = 0; i < count; i++)
		policies[i] = registry->entries[i].policy;
	struct compiled_policy *compiled = compiled_policy_new(policies, count);
	free(policies);
	return compiled;
}

static enum weir_status add_locked(struct policy_registry *registry, uint64_t version, struct weir_span text,
                                   struct weir_error *error)
{
	if (find(registry, version) != NULL)
		return WEIR_OK;
	const struct weir_policy *last = registry->count > 0 ? registry->entries[registry->count - 1].policy : NULL;
	if (last != NULL && version < last->version)
		return weir_fail(error, WEIR_INVALID, "policy %llu is missing, although policy %llu exists",
		                 (unsigned long long)version, (unsigned long long)last->version);
	struct weir_policy *policy;
	enum weir_status status = weir_policy_decode(version, text.at, text.length, &policy, error);
	if (status != WEIR_OK)
		return status;
	registry->entries = weir_realloc(registry->entries, registry->count + 1, sizeof *registry->entries);
	registry->entries[registry->count++] = (struct entry){.policy = policy};
	return WEIR_OK;
}

enum weir_status policy_registry_add(struct policy_registry *registry, uint64_t version, struct weir_span text,
                                     struct weir_error *error)
{
	pthread_mutex_lock(&registry->lock);
	enum weir_status status = add_locked(registry, version, text, error);
	pthread_mutex_unlock(&registry->lock);
	return status;
}

const struct compiled_policy *policy_registry_compiled(struct policy_registry *registry, uint64_t version)
{
	pthread_mutex_lock(&registry->lock);
	struct entry *entry = find(registry, version);
	if (entry != NULL && entry->compiled == NULL)
		entry->compiled = compile(registry, entry);
	const struct compiled_policy *compiled = entry != NULL ? entry->compiled : NULL;
	pthread_mutex_unlock(&registry->lock);
	return compiled;
}

const struct weir_policy *policy_registry_policy(struct policy_registry *registry, uint64_t version)
{
	pthread_mutex_lock(&registry->lock);
	const struct entry *entry = find(registry, version);
	const struct weir_policy *policy = entry != NULL ? entry->policy : NULL;
	pthread_mutex_unlock(&registry->lock);
	return policy;
}

uint64_t policy_registry_newest(struct policy_registry *registry)
{
	pthread_mutex_lock(&registry->lock);
	uint64_t version = registry->count > 0 ? registry->entries[registry->count - 1].policy->version : 0;
	pthread_mutex_unlock(&registry->lock);
	return version;
}

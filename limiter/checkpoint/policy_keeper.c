/* SPDX-License-Identifier: Apache-2.0 */
/* The topic comes first: it has those that this process has not read, too. */
#include "limiter/checkpoint/policy_keeper.h"

#include "common/base/clock.h"
#include "common/cluster/policy_recall.h"

#include <stdio.h>

enum { APART_MS = 5000 };

static void tell_recalled(const struct policy_keeper *keeper, uint64_t first, uint64_t last, const char *from)
{
	char which[64];
	snprintf(which, sizeof which, first == last ? "policy %llu" : "policies %llu to %llu", (unsigned long long)first,
	         (unsigned long long)last);
	weir_log(
		keeper->log, WEIR_LOG_WARNING, "policy",
		"the store had lost %s, and has it again from %s. Nothing else is to be done; if nobody restored the store "
		"from a copy, find out who changed it (runbook: store-failed-over)",
		which, from);
}

/* Those that this process has read, oldest first. */
static enum weir_status put_known(const struct policy_keeper *keeper, struct weir_store *store,
                                  struct policy_registry *registry, uint64_t version, struct weir_error *error)
{
	uint64_t stored;
	enum weir_status status = weir_policy_stored_newest(store, 1, &stored, error);
	uint64_t first = stored + 1, next = first;
	while (status == WEIR_OK && next <= version) {
		const struct weir_policy *policy = policy_registry_policy(registry, next);
		if (policy == NULL)
			return weir_fail(error, WEIR_INVALID, "neither the topic %s nor this process has policy %llu",
			                 weir_topic_name(WEIR_TOPIC_POLICY), (unsigned long long)next);
		status = store->ops->policy_put(store, next, weir_span_of(policy->text), error);
		next += status == WEIR_OK;
	}
	if (next > first)
		tell_recalled(keeper, first, next - 1, "this process");
	return status;
}

static enum weir_status put_back(const struct policy_keeper *keeper, struct weir_store *store,
                                 struct policy_registry *registry, uint64_t version, struct weir_error *error)
{
	struct weir_policies_recalled recalled = {0};
	struct weir_error why;
	if (keeper->bus != NULL && weir_policy_recall(store, keeper->bus, &recalled, &why) == WEIR_OK)
		why.text[0] = '\0';
	if (recalled.last > 0)
		tell_recalled(keeper, recalled.first, recalled.last, "the topic policy");
	enum weir_status status = put_known(keeper, store, registry, version, error);
	if (status == WEIR_INVALID && keeper->bus != NULL && why.text[0] != '\0')
		*error = why;
	return status;
}

void policy_keeper_look(struct policy_keeper *keeper, struct weir_store *store, struct policy_registry *registry,
                        uint64_t version)
{
	struct weir_error error;
	uint64_t stored = 0;
	if (weir_policy_stored_newest(store, version, &stored, &error) != WEIR_OK)
		return; /* the store is away, which is said by whoever waits for it */
	enum weir_status status = WEIR_OK;
	if (stored < version) {
		if (keeper->failed_ms != 0 && weir_monotonic_ms() - keeper->failed_ms < APART_MS)
			return;
		status = put_back(keeper, store, registry, version, &error);
		keeper->failed_ms = status == WEIR_OK ? 0 : weir_monotonic_ms();
	}
	if (status == WEIR_OK)
		weir_fault_over(&keeper->fault, keeper->log, "policy", "the store has every policy again");
	else
		weir_fault_raise_at(
			&keeper->fault, keeper->log, WEIR_LOG_ERROR, "policy",
			"the store has lost policy %llu, and it cannot be put back: %s. A partition that was saved under it cannot be "
			"taken by a limiter that starts (runbook: store-failed-over)",
			(unsigned long long)version, error.text);
}

void policy_keeper_look_sometimes(struct policy_keeper *keeper, struct weir_store *store,
                                  struct policy_registry *registry, uint64_t version)
{
	int64_t now_ms = weir_monotonic_ms();
	if (keeper->looked_ms != 0 && now_ms - keeper->looked_ms < APART_MS)
		return;
	keeper->looked_ms = now_ms;
	policy_keeper_look(keeper, store, registry, version);
}

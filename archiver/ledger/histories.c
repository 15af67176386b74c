/* SPDX-License-Identifier: Apache-2.0 */
/* A list for each policy version; most lists are empty. */
#include "archiver/ledger/histories.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/policy/policy.h"

#include <stdlib.h>

enum { ASK_MS = 1000 };

struct version {
	uint64_t version;
	struct history *zones; /* ascending */
	size_t count;
	bool unread;
};

struct histories {
	struct version *versions; /* ascending */
	size_t count;
	uint64_t lacking; /* the newest version that the store did not have */
	int64_t asked_ms; /* monotonic: then */
};

struct histories *histories_new(void)
{
	return weir_alloc(1, sizeof(struct histories));
}

void histories_free(struct histories *histories)
{
	if (histories == NULL)
		return;
	for (size_t i = 0; i < histories->count; i++) {
		struct version *version = &histories->versions[i];
		for (size_t k = 0; k < version->count; k++) {
			for (uint32_t f = 0; f < version->zones[k].field_count; f++)
				free(version->zones[k].fields[f]);
			free(version->zones[k].fields);
		}
		free(version->zones);
	}
	free(histories->versions);
	free(histories);
}

static struct history of_zone(const struct weir_zone *zone)
{
	struct history history = {.zone = zone->id, .field_count = zone->history_field_count};
	history.fields = weir_alloc(history.field_count + (size_t)1, sizeof *history.fields);
	for (uint32_t i = 0; i < history.field_count; i++)
		history.fields[i] = weir_copy(zone->history_fields[i], strlen(zone->history_fields[i]));
	return history;
}

/* A text that this program does not read has no zones for it: a newer weir's, or damage. */
static enum weir_status take_policy(void *context, uint64_t number, struct weir_span text)
{
	struct histories *histories = context;
	struct weir_policy *policy;
	histories->versions = weir_realloc(histories->versions, histories->count + 1, sizeof *histories->versions);
	struct version *version = &histories->versions[histories->count++];
	*version = (struct version){.version = number};
	if (weir_policy_decode(number, text.at, text.length, &policy, NULL) != WEIR_OK) {
		version->unread = true;
		return WEIR_OK;
	}
	version->zones = weir_alloc(policy->zone_count + 1, sizeof *version->zones);
	for (uint32_t i = 0; i < policy->zone_count; i++)
		if (policy->zones[i].history)
			version->zones[version->count++] = of_zone(&policy->zones[i]);
	weir_policy_free(policy);
	return WEIR_OK;
}

static uint64_t newest_of(const struct histories *histories)
{
	return histories->count > 0 ? histories->versions[histories->count - 1].version : 0;
}

enum weir_status histories_know(struct histories *histories, struct weir_store *store, uint64_t version,
                                struct weir_error *error)
{
	if (version <= newest_of(histories))
		return WEIR_OK;
	int64_t now_ms = weir_monotonic_ms();
	if (version <= histories->lacking && now_ms - histories->asked_ms < ASK_MS)
		return WEIR_OK;
	enum weir_status status = store->ops->policy_each(store, newest_of(histories) + 1, take_policy, histories, error);
	histories->lacking = status == WEIR_OK && version > newest_of(histories) ? version : 0;
	histories->asked_ms = now_ms;
	return status;
}

static const struct version *find(const struct histories *histories, uint64_t version)
{
	for (size_t i = histories->count; i > 0; i--)
		if (histories->versions[i - 1].version == version)
			return &histories->versions[i - 1];
	return NULL;
}

bool histories_has(const struct histories *histories, uint64_t version)
{
	const struct version *found = find(histories, version);
	return version == 0 || (found != NULL && !found->unread);
}

bool histories_any(const struct histories *histories, uint64_t version)
{
	const struct version *found = find(histories, version);
	return found != NULL && found->count > 0;
}

const struct history *histories_find(const struct histories *histories, uint64_t version, uint32_t zone)
{
	const struct version *found = find(histories, version);
	for (size_t i = 0; found != NULL && i < found->count; i++)
		if (found->zones[i].zone == zone)
			return &found->zones[i];
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a policy record: what is accepted has one canonical text, which reads as the same policy. */
#include "common/policy/policy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_zone(const struct weir_zone *zone, const struct weir_zone *again)
{
	char *words = weir_zone_describe(zone), *same_words = weir_zone_describe(again);
	assert(strcmp(words, same_words) == 0);
	free(words);
	free(same_words);
	assert(zone->id == again->id && zone->limit_count == again->limit_count && zone->limit_count >= 1);
	for (uint32_t i = 0; i < zone->limit_count; i++) {
		assert(weir_limit_equal(&zone->limits[i], &again->limits[i]));
		assert(weir_limit_memory_ms(&zone->limits[i]) >= 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_policy *policy = NULL, *again = NULL;
	struct weir_error error = {.text = ""};
	/* No file is read: what a list names would be another input. */
	if (memmem(data, size, "file", 4) != NULL)
		return 0;
	if (weir_policy_decode(1, (const char *)data, size, &policy, &error) != WEIR_OK) {
		assert(error.text[0] != '\0' && strchr(error.text, '\n') == NULL);
		return 0;
	}
	enum weir_status status = weir_policy_decode(2, policy->text, strlen(policy->text), &again, &error);
	assert(status == WEIR_OK && strcmp(policy->text, again->text) == 0 && policy->zone_count == again->zone_count);
	status = weir_policy_check_successor(policy, again, &error);
	assert(status == WEIR_OK);
	(void)status;
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		assert(weir_policy_zone(policy, policy->zones[i].id) == &policy->zones[i]);
		check_zone(&policy->zones[i], &again->zones[i]);
	}
	weir_policy_free(policy);
	weir_policy_free(again);
	return 0;
}

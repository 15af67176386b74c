/* SPDX-License-Identifier: Apache-2.0 */
/* Structured fields of draft-ietf-httpapi-ratelimit-headers since its version 08, or the X- fields of old. */
#include "limiter/check/told.h"

#include "common/policy/policy.h"

#include <stdio.h>

enum { ZONE_BYTES = WEIR_ZONE_NAME_MAX_BYTES + 64, VALUE_BYTES = TOLD_ZONES_MAX * ZONE_BYTES };

int64_t told_wait_ms(const struct check_answer *answer)
{
	bool waits = answer->outcome == CHECK_BLOCKED && answer->retry_after_ms >= 0;
	return waits ? answer->retry_after_ms : answer->reset_after_ms;
}

/* @return the length with what was added */
static int add(char *value, int length, const char *format, const char *zone, int64_t one, int64_t other)
{
	return length + snprintf(value + length, VALUE_BYTES - (size_t)length, format, length > 0 ? ", " : "", zone,
	                         (long long)one, (long long)other);
}

static void put_draft(const struct told *told, uint32_t count, told_put *put, void *context)
{
	char policy[VALUE_BYTES], quota[VALUE_BYTES];
	int policy_length = 0, quota_length = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct check_answer *answer = told[i].answer;
		const char *format = answer->window_ms > 0 ? "%s\"%s\";q=%lld;w=%lld" : "%s\"%s\";q=%lld";
		policy_length =
			add(policy, policy_length, format, told[i].zone, answer->limit, told_seconds(answer->window_ms));
		quota_length = add(quota, quota_length, "%s\"%s\";r=%lld;t=%lld", told[i].zone, answer->remaining,
		                   told_seconds(told_wait_ms(answer)));
	}
	put(context, "RateLimit-Policy", (struct weir_span){.at = policy, .length = (uint32_t)policy_length});
	put(context, "RateLimit", (struct weir_span){.at = quota, .length = (uint32_t)quota_length});
}

static void put_number(told_put *put, void *context, const char *name, int64_t number)
{
	char value[32];
	int length = snprintf(value, sizeof value, "%lld", (long long)number);
	put(context, name, (struct weir_span){.at = value, .length = (uint32_t)length});
}

void told_fields(enum weir_rate_limit_fields fields, const struct told *told, uint32_t count, told_put *put,
                 void *context)
{
	if (count == 0 || fields == WEIR_FIELDS_OFF)
		return;
	if (fields == WEIR_FIELDS_DRAFT) {
		put_draft(told, count, put, context);
		return;
	}
	put_number(put, context, "X-RateLimit-Limit", told[0].answer->limit);
	put_number(put, context, "X-RateLimit-Remaining", told[0].answer->remaining);
	put_number(put, context, "X-RateLimit-Reset", told_seconds(told_wait_ms(told[0].answer)));
}

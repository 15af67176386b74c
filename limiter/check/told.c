/* SPDX-License-Identifier: Apache-2.0 */
/* The order of answers, and structured fields of draft-ietf-httpapi-ratelimit-headers since its version 08, or the X- fields of old. */
#include "limiter/check/told.h"

#include "common/policy/policy.h"

#include <stdio.h>
#include <string.h>

enum { ZONE_BYTES = WEIR_ZONE_NAME_MAX_BYTES + 64, VALUE_BYTES = TOLD_ZONES_MAX * ZONE_BYTES };

void told_settle(struct check_answer *answer, enum weir_on_unavailable on_unavailable)
{
	bool unavailable = answer->outcome == CHECK_UNAVAILABLE;
	if (answer->outcome == CHECK_PASSED || answer->outcome == CHECK_BLOCKED ||
	    (unavailable && on_unavailable == WEIR_ON_UNAVAILABLE_ERROR))
		return;
	bool denied = unavailable && on_unavailable == WEIR_ON_UNAVAILABLE_DENY;
	*answer = (struct check_answer){.outcome = denied ? CHECK_BLOCKED : CHECK_PASSED,
	                                .retry_after_ms = denied ? TOLD_DENIED_AGAIN_MS : -1,
	                                .remaining = denied ? 0 : INT64_MAX};
}

void told_sum(struct told_verdict *verdict, const struct check_answer *answer)
{
	if (answer->outcome == CHECK_UNAVAILABLE)
		verdict->why = check_why_word(answer->why);
	if (answer->outcome != CHECK_BLOCKED)
		return;
	verdict->blocked = true;
	verdict->never |= answer->retry_after_ms < 0;
	if (answer->retry_after_ms > verdict->retry_ms)
		verdict->retry_ms = answer->retry_after_ms;
}

int64_t told_retry_ms(const struct told_verdict *verdict)
{
	return verdict->blocked && !verdict->never ? verdict->retry_ms : -1;
}

bool told_is_tighter(const struct check_answer *a, const struct check_answer *b)
{
	if (a->outcome != b->outcome)
		return a->outcome == CHECK_BLOCKED;
	if (a->outcome != CHECK_BLOCKED)
		return a->remaining < b->remaining;
	return b->retry_after_ms >= 0 && (a->retry_after_ms < 0 || a->retry_after_ms > b->retry_after_ms);
}

uint32_t told_add(struct told told[TOLD_ZONES_MAX], uint32_t count, const struct told *zone)
{
	uint32_t at = 0;
	if (zone->answer->limit == 0 || zone->answer->outcome == CHECK_UNAVAILABLE)
		return count;
	for (uint32_t same = 0; same < count; same++) /* of a zone that was asked twice the tighter one is told */
		if (strcmp(told[same].zone, zone->zone) == 0) {
			if (!told_is_tighter(zone->answer, told[same].answer))
				return count;
			count--;
			memmove(&told[same], &told[same + 1], (count - same) * sizeof *told);
			break;
		}
	while (at < count && !told_is_tighter(zone->answer, told[at].answer))
		at++;
	if (at == TOLD_ZONES_MAX)
		return count;
	count += count < TOLD_ZONES_MAX;
	memmove(&told[at + 1], &told[at], (count - at - 1) * sizeof *told);
	told[at] = *zone;
	return count;
}

int64_t told_wait_ms(const struct check_answer *answer)
{
	bool waits = answer->outcome == CHECK_BLOCKED && answer->retry_after_ms >= 0;
	return waits ? answer->retry_after_ms : answer->reset_after_ms;
}

/* A zone and two numbers, of which the second may be none. @return the length with what was added */
static int add(char *value, int length, const char *const formats[2], const char *zone, int64_t one, bool has_other,
               int64_t other)
{
	return length + snprintf(value + length, VALUE_BYTES - (size_t)length, formats[has_other], length > 0 ? ", " : "",
	                         zone, (long long)one, (long long)other);
}

static void put_draft(const struct told *told, uint32_t count, told_put *put, void *context)
{
	static const char *const policies[] = {"%s\"%s\";q=%lld", "%s\"%s\";q=%lld;w=%lld"};
	static const char *const quotas[] = {"%s\"%s\";r=%lld", "%s\"%s\";r=%lld;t=%lld"};
	char policy[VALUE_BYTES], quota[VALUE_BYTES];
	int policy_length = 0, quota_length = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct check_answer *answer = told[i].answer;
		int64_t wait_ms = told_wait_ms(answer);
		policy_length = add(policy, policy_length, policies, told[i].zone, answer->limit, answer->window_ms > 0,
		                    told_seconds(answer->window_ms));
		quota_length = add(quota, quota_length, quotas, told[i].zone, answer->remaining, wait_ms >= 0,
		                   wait_ms >= 0 ? told_seconds(wait_ms) : 0);
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
	int64_t wait_ms = told_wait_ms(told[0].answer);
	if (wait_ms >= 0)
		put_number(put, context, "X-RateLimit-Reset", told_seconds(wait_ms));
}

void told_retry_after(const struct told_verdict *verdict, told_put *put, void *context)
{
	int64_t retry_ms = told_retry_ms(verdict);
	if (retry_ms >= 0)
		put_number(put, context, "Retry-After", told_seconds(retry_ms));
}

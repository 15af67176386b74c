/* SPDX-License-Identifier: Apache-2.0 */
/* What decides is in whole numbers, so that every machine decides alike. */
#include "archiver/arming/arming_rule.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { MILLION = 1000000, DATE_BYTES = 32, COUNT_BITS = 40 };

uint32_t arming_days_needed(const struct weir_arming *terms)
{
	return (uint32_t)(terms->span_ms / ARMING_DAY_MS);
}

/* What is above 2^40 is no count of keys: products with a million then fit. */
static uint64_t bounded(uint64_t count)
{
	return count < UINT64_C(1) << COUNT_BITS ? count : UINT64_C(1) << COUNT_BITS;
}

static bool says_something(const struct weir_arming *terms, const struct arming_day *day)
{
	return day->keys >= (uint64_t)weir_arming_least_keys(terms);
}

static bool is_below(const struct weir_arming *terms, const struct arming_day *day)
{
	return bounded(day->blocked) * MILLION < bounded(day->keys) * (uint64_t)terms->share_ppm;
}

/* Whether one day's share is higher than another's. */
static bool is_worse(const struct arming_day *one, const struct arming_day *other)
{
	return (double)one->blocked * (double)other->keys > (double)other->blocked * (double)one->keys;
}

bool arming_rule_add(struct arming_verdict *verdict, const struct weir_arming *terms, const struct arming_day *day)
{
	if (verdict->days++ == 0)
		verdict->newest = *day;
	if (!says_something(terms, day))
		return true;
	if (!is_below(terms, day)) {
		verdict->broken = true;
		verdict->above = *day;
		return false;
	}
	if (verdict->below++ == 0)
		verdict->last = verdict->worst = *day;
	verdict->first = *day;
	if (is_worse(day, &verdict->worst))
		verdict->worst = *day;
	verdict->arms = verdict->below >= arming_days_needed(terms);
	return !verdict->arms;
}

static const char *date(int64_t time_ms, char text[DATE_BYTES])
{
	time_t seconds = (time_t)(time_ms / 1000);
	struct tm parts;
	if (gmtime_r(&seconds, &parts) == NULL || strftime(text, DATE_BYTES, "%Y-%m-%d", &parts) == 0)
		snprintf(text, DATE_BYTES, "%" PRId64, time_ms);
	return text;
}

static void put_day(struct weir_text *text, const struct arming_day *day)
{
	weir_text_printf(text, "%" PRIu64 " of %" PRIu64 " keys (%.4f%%)", day->blocked, day->keys,
	                 day->keys > 0 ? 100.0 * (double)day->blocked / (double)day->keys : 0.0);
}

void arming_rule_words(struct weir_text *text, const struct weir_arming *terms, const struct arming_verdict *verdict)
{
	char share[WEIR_SHARE_BYTES], one[DATE_BYTES], other[DATE_BYTES];
	uint32_t needed = arming_days_needed(terms);
	weir_share_text(terms->share_ppm, share);
	if (verdict->arms) {
		weir_text_puts(text, "at most ");
		put_day(text, &verdict->worst);
		weir_text_printf(text, " would have been blocked on a day, on %" PRIu32 " day%s from %s to %s", needed,
		                 needed == 1 ? "" : "s", date(verdict->first.begin_ms, one),
		                 date(verdict->last.begin_ms, other));
		return;
	}
	if (verdict->days == 0) {
		weir_text_puts(text, "no whole day has been counted yet");
		return;
	}
	weir_text_printf(text, "%" PRIu32 " of %" PRIu32 " days in a row below %s; on %s, ", verdict->below, needed, share,
	                 date(verdict->newest.begin_ms, one));
	put_day(text, &verdict->newest);
	weir_text_puts(text, " would have been blocked");
	if (!says_something(terms, &verdict->newest))
		weir_text_printf(text, ", but a day with fewer than %" PRId64 " keys says nothing",
		                 weir_arming_least_keys(terms));
	if (verdict->broken && verdict->above.begin_ms != verdict->newest.begin_ms) {
		weir_text_printf(text, "; the last day that was not below is %s with ", date(verdict->above.begin_ms, other));
		put_day(text, &verdict->above);
	}
}

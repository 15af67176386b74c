/* SPDX-License-Identifier: Apache-2.0 */
/* The forms are those of the API, which takes a time without a zone for UTC: what it reads is then taken for local. */
#include "deploy/weir/terminal/when.h"

#include "archiver/api/api_time.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DATE_LENGTH = 10, TEXT_BYTES = 48 };

/* Whether a time has no zone: with one more it would be none. A date alone has none either. */
static bool is_local(const char *text)
{
	char zoned[TEXT_BYTES + 1];
	int64_t ignored_ms;
	snprintf(zoned, sizeof zoned, "%sZ", text);
	return api_time_read(weir_span_of(zoned), &ignored_ms) || (strlen(text) == DATE_LENGTH && text[4] == '-');
}

static bool localise(int64_t *time_ms)
{
	int64_t rest_ms = (*time_ms % 1000 + 1000) % 1000;
	time_t seconds = (time_t)((*time_ms - rest_ms) / 1000);
	struct tm parts;
	if (gmtime_r(&seconds, &parts) == NULL)
		return false;
	parts.tm_isdst = -1;
	*time_ms = (int64_t)mktime(&parts) * 1000 + rest_ms;
	return true;
}

/* The day that it is where a time of day is from: its zone's, or that of whoever writes it. */
static bool find_today(const char *text, int64_t now_ms, struct tm *today)
{
	char zoned[TEXT_BYTES + DATE_LENGTH];
	const char *zone = text + strspn(text, "0123456789:.,");
	int64_t behind_ms; /* UTC */
	time_t now = (time_t)(now_ms / 1000);
	if (*zone == '\0')
		return localtime_r(&now, today) != NULL;
	snprintf(zoned, sizeof zoned, "1970-01-01T00:00%s", zone);
	if (!api_time_read(weir_span_of(zoned), &behind_ms))
		return false;
	now = (time_t)((now_ms - behind_ms) / 1000);
	return gmtime_r(&now, today) != NULL;
}

bool when_read(const char *text, int64_t now_ms, int64_t *time_ms)
{
	char dated[TEXT_BYTES];
	struct tm today;
	if (strlen(text) >= TEXT_BYTES - DATE_LENGTH - 1)
		return false;
	if (strlen(text) >= 5 && text[2] == ':') {
		if (!find_today(text, now_ms, &today) || strftime(dated, DATE_LENGTH + 1, "%Y-%m-%d", &today) != DATE_LENGTH)
			return false;
		snprintf(dated + DATE_LENGTH, sizeof dated - DATE_LENGTH, "T%s", text);
		text = dated;
	}
	if (!api_time_read(weir_span_of(text), time_ms))
		return false;
	return !is_local(text) || localise(time_ms);
}

/*
 * A zone as a sentence: what `weir validate` shows, so that whoever wrote the
 * configuration can see whether it means what was meant.
 */
#include "common/base/text.h"
#include "common/json/units.h"
#include "common/policy/internal.h"

#include <string.h>

enum { EXEMPT_SHOWN = 4 };

static void put_time(struct weir_text *text, int64_t duration_ms)
{
	char buffer[24];
	weir_text_puts(text, weir_format_duration(duration_ms, buffer, sizeof buffer));
}

/* "a", "a or b", "a, b or c". */
static void put_values(struct weir_text *text, const struct weir_match_field *field, const char *quote)
{
	for (uint32_t i = 0; i < field->value_count; i++) {
		weir_text_puts(text, i == 0 ? "" : i + 1 == field->value_count ? " or " : ", ");
		weir_text_printf(text, "%s%s%s", quote, field->values[i].text, quote);
	}
}

static const struct weir_match_field *find_field(const struct weir_match *match, const char *name)
{
	for (uint32_t i = 0; i < match->field_count; i++)
		if (strcmp(match->fields[i].field, name) == 0)
			return &match->fields[i];
	return NULL;
}

/* "POST requests to /login or /api/... with status 4xx and user "a" or "b"" */
static void put_match(struct weir_text *text, const struct weir_match *match)
{
	const struct weir_match_field *method = find_field(match, "method"), *path = find_field(match, "path");
	if (match->field_count == 0)
		weir_text_puts(text, "all ");
	if (method != NULL) {
		put_values(text, method, "");
		weir_text_puts(text, " ");
	}
	weir_text_puts(text, "requests");
	if (path != NULL) {
		weir_text_puts(text, " to ");
		put_values(text, path, "");
	}
	const char *before = " with ";
	for (uint32_t i = 0; i < match->field_count; i++) {
		const struct weir_match_field *field = &match->fields[i];
		if (field == method || field == path)
			continue;
		weir_text_printf(text, "%s%s ", before, field->field);
		put_values(text, field, strcmp(field->field, "status") == 0 ? "" : "\"");
		before = " and ";
	}
}

static void put_key(struct weir_text *text, const struct weir_zone *zone)
{
	if (zone->key_count == 0)
		weir_text_puts(text, ", counted all together");
	for (uint32_t i = 0; i < zone->key_count; i++) {
		const struct weir_key_field *field = &zone->key[i];
		weir_text_printf(text, "%s%s", i == 0 ? ", counted by " : " and ", field->field);
		if (!field->grouped)
			continue;
		weir_text_puts(text, " (");
		if (field->prefix4 < 32)
			weir_text_printf(text, "IPv4 in networks of /%d, ", field->prefix4);
		if (field->prefix6 < 128)
			weir_text_printf(text, "IPv6 in networks of /%d, ", field->prefix6);
		weir_text_puts(text, "in canonical form)");
	}
}

static void put_exempt(struct weir_text *text, const struct weir_zone *zone)
{
	char buffer[WEIR_ADDRESS_TEXT_BYTES + 4];
	uint32_t total = zone->exempt_network_count + zone->exempt_word_count;
	for (uint32_t i = 0; i < total && i < EXEMPT_SHOWN; i++) {
		weir_text_puts(text, i == 0 ? "; exempt: " : ", ");
		weir_text_puts(text, i < zone->exempt_network_count ? weir_network_format(&zone->exempt_networks[i], buffer)
		                                                    : zone->exempt_words[i - zone->exempt_network_count]);
	}
	if (total > EXEMPT_SHOWN)
		weir_text_printf(text, " and %u more", total - EXEMPT_SHOWN);
}

/* "hour" for the times that have a name, else "90s". */
static void put_period(struct weir_text *text, int64_t duration_ms)
{
	switch (duration_ms) {
	case 1000: weir_text_puts(text, "second"); break;
	case 60000: weir_text_puts(text, "minute"); break;
	case 3600000: weir_text_puts(text, "hour"); break;
	case 86400000: weir_text_puts(text, "day"); break;
	default: put_time(text, duration_ms);
	}
}

static void put_limit(struct weir_text *text, const struct weir_limit *limit)
{
	switch (limit->algorithm) {
	case WEIR_SLIDING_WINDOW:
		weir_text_printf(text, "%lld in any ", (long long)limit->rate);
		put_time(text, limit->window_ms);
		if (limit->precision_ms > 0) {
			weir_text_puts(text, " (times rounded up to ");
			put_time(text, limit->precision_ms);
			weir_text_puts(text, ")");
		}
		break;
	case WEIR_FIXED_WINDOW:
		weir_text_printf(text, "%lld in each ", (long long)limit->rate);
		put_period(text, limit->window_ms);
		if (limit->offset_ms > 0) {
			weir_text_puts(text, " (begun ");
			put_time(text, limit->offset_ms);
			weir_text_puts(text, " early)");
		}
		break;
	case WEIR_UNIFORM:
		weir_text_puts(text, "1 in any ");
		put_time(text, limit->window_ms);
		break;
	case WEIR_TOKEN_BUCKET:
		weir_text_printf(text, "%lld at once, with %lld more each ", (long long)limit->burst, (long long)limit->rate);
		put_period(text, limit->window_ms);
		if (limit->penalize)
			weir_text_puts(text, " (blocked requests delay the refill)");
		break;
	case WEIR_GCRA:
		weir_text_printf(text, "%lld each ", (long long)limit->rate);
		put_period(text, limit->window_ms);
		weir_text_printf(text, " evenly spaced, with %lld ahead of time", (long long)limit->burst);
		break;
	case WEIR_QUEUE:
		weir_text_printf(text, "%lld waiting, each for up to ", (long long)limit->length);
		put_time(text, limit->hold_ms);
		if (limit->done.field_count > 0) {
			weir_text_puts(text, " or until ");
			put_match(text, &limit->done);
		}
		break;
	case WEIR_ALGORITHM_COUNT: break;
	}
}

char *weir_zone_describe(const struct weir_zone *zone)
{
	struct weir_text text = {0};
	weir_text_printf(&text, "zone \"%s\" (%u): ", zone->name, zone->id);
	put_match(&text, &zone->match);
	put_key(&text, zone);
	put_exempt(&text, zone);
	weir_text_puts(&text, "; at most ");
	for (uint32_t i = 0; i < zone->limit_count; i++) {
		weir_text_puts(&text, i > 0 ? ", " : "");
		put_limit(&text, &zone->limits[i]);
	}
	weir_text_puts(&text, zone->count_all ? "; blocked requests count too" : "; only passed requests count");
	weir_text_puts(&text, "; a breach blocks until the limit would pass again");
	if (zone->block_for_ms > 0) {
		weir_text_puts(&text, ", for at least ");
		put_time(&text, zone->block_for_ms);
	}
	if (zone->mode == WEIR_SHADOW)
		weir_text_puts(&text, "; in shadow: decisions go to the shadow stream alone");
	if (zone->history)
		weir_text_puts(&text, "; every event is kept as history");
	weir_text_append(&text, "", 1);
	return text.at;
}

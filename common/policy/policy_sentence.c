/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zone as a sentence: what `weir validate` shows, so that whoever wrote the
 * configuration can see whether it means what was meant.
 */
#include "common/base/text.h"
#include "common/bytes/http_address.h"
#include "common/json/units.h"
#include "common/policy/internal.h"

#include <string.h>

enum { EXEMPT_SHOWN = 4 };

static void put_time(struct weir_text *text, int64_t duration_ms)
{
	char buffer[24];
	weir_text_puts(text, weir_format_duration(duration_ms, buffer, sizeof buffer));
}

static void put_key(struct weir_text *text, const struct weir_zone *zone)
{
	if (zone->key_count == 0)
		weir_text_puts(text, ", all counted together");
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
	char buffer[WEIR_NETWORK_TEXT_BYTES];
	uint32_t total = zone->exempt_network_count + zone->exempt_word_count;
	for (uint32_t i = 0; i < total && i < EXEMPT_SHOWN; i++) {
		weir_text_puts(text, i == 0 ? "; exempt: " : ", ");
		weir_text_puts(text, i < zone->exempt_network_count ? weir_network_format(&zone->exempt_networks[i], buffer)
		                                                    : zone->exempt_words[i - zone->exempt_network_count]);
	}
	if (total > EXEMPT_SHOWN)
		weir_text_printf(text, " and %u more", total - EXEMPT_SHOWN);
	for (uint32_t i = 0; i < zone->exempt_match_count && i < EXEMPT_SHOWN; i++) {
		weir_text_puts(text, total == 0 && i == 0 ? "; exempt: " : ", ");
		weir_match_describe(text, &zone->exempt_matches[i]);
	}
	total += zone->exempt_match_count;
	for (uint32_t i = 0; i < zone->exempt_list_count && i < EXEMPT_SHOWN; i++) {
		weir_text_printf(text, "%sthe entries of ", total == 0 && i == 0 ? "; exempt: " : ", ");
		weir_http_address_show(zone->exempt_lists[i], text);
	}
	total += zone->exempt_list_count;
	for (uint32_t i = 0; i < zone->exempt_verified_count && i < EXEMPT_SHOWN; i++)
		weir_text_printf(text, "%sverified %s", total == 0 && i == 0 ? "; exempt: " : ", ",
		                 zone->exempt_verified[i].name != NULL ? zone->exempt_verified[i].name
		                                                       : zone->exempt_verified[i].agent);
}

static void put_sources(struct weir_text *text, const struct weir_zone *zone)
{
	for (uint32_t i = 0; i < zone->source_count; i++)
		weir_text_printf(text, "%s\"%s\"", i == 0 ? " of " : ", ", zone->sources[i]);
}

static void put_blocks(struct weir_text *text, const struct weir_zone *zone)
{
	weir_text_puts(text, "; a breach blocks until the limit would pass again");
	if (zone->block_for_ms > 0) {
		weir_text_puts(text, ", for at least ");
		put_time(text, zone->block_for_ms);
	}
	for (uint32_t i = 1; i < zone->block_list_count; i++) {
		weir_text_puts(text, i == 1 ? ", the next time " : ", then ");
		put_time(text, zone->block_list_ms[i]);
	}
	if (zone->block_list_count > 0) {
		weir_text_puts(text, ", and is forgiven ");
		put_time(text, zone->forgive_after_ms);
		weir_text_puts(text, " after its end");
	}
}

char *weir_zone_describe(const struct weir_zone *zone)
{
	struct weir_text text = {0};
	weir_text_printf(&text, "zone \"%s\" (%u): ", zone->name, zone->id);
	weir_match_describe(&text, &zone->match);
	put_sources(&text, zone);
	put_key(&text, zone);
	put_exempt(&text, zone);
	weir_text_puts(&text, "; at most ");
	for (uint32_t i = 0; i < zone->limit_count; i++) {
		weir_text_puts(&text, i > 0 ? ", " : "");
		zone->limits[i].algorithm->describe(&text, &zone->limits[i]);
		weir_text_printf(&text, " [%s]", zone->limits[i].algorithm->name);
	}
	weir_text_puts(&text, zone->count_all ? "; blocked requests count too" : "; only passed requests count");
	if (zone->feed != WEIR_FEED_BOTH)
		weir_text_puts(&text, zone->feed == WEIR_FEED_LOG ? "; log lines alone count" : "; checks alone count");
	if (zone->durable)
		weir_text_puts(&text, "; checks are answered once the log has them");
	put_blocks(&text, zone);
	weir_mode_describe(&text, zone);
	if (zone->history)
		weir_text_puts(&text, "; every event is kept as history");
	for (uint32_t i = 0; i < zone->history_field_count; i++)
		weir_text_printf(&text, "%s%s",
		                 i == 0                              ? ", with "
		                 : i + 1 < zone->history_field_count ? ", "
		                                                     : " and ",
		                 zone->history_fields[i]);
	weir_text_append(&text, "", 1);
	return text.at;
}

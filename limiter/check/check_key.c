/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most keys are one field as it stands and stay where they are: only an address that can be written in more than one way,
 * or that a zone groups, is written anew. What is done to a value is what common/matcher/key_template.c does.
 */
#include "limiter/check/check_key.h"

#include "common/bytes/scan.h"

#include <stdio.h>

enum { V4_WHOLE = 32, V6_WHOLE = 128, V4_IN_V6 = 96, NAMES_BYTES = 256 };

/* Whether an address may be written in more than one way, or stands for a network. */
static bool varies(const struct weir_key_field *field, struct weir_span value)
{
	return (field->grouped && field->prefix4 != V4_WHOLE) || memchr(value.at, ':', value.length) != NULL;
}

/* Where a value ends: at a bar that is not escaped. @return NULL: an escape of anything but `|` and `\` */
static const char *value_end(const char *at, const char *end)
{
	for (; at < end && *at != '|'; at++) {
		if (*at != '\\')
			continue;
		if (++at == end || (*at != '|' && *at != '\\'))
			return NULL;
	}
	return at;
}

/* What an address is counted by: itself in its one form, or its network. @return false: the value stays as it is */
static bool settled_value(const struct weir_key_field *field, struct weir_span value,
                          char text[WEIR_NETWORK_TEXT_BYTES])
{
	struct weir_network network;
	uint8_t prefix4 = field->grouped ? field->prefix4 : V4_WHOLE, prefix6 = field->grouped ? field->prefix6 : V6_WHOLE;
	if (!weir_key_field_is_address(field) || !varies(field, value) || !weir_address_read(value, &network.base))
		return false;
	bool v4 = weir_address_is_v4(&network.base);
	network.prefix = (uint8_t)(v4 ? V4_IN_V6 + prefix4 : prefix6);
	weir_address_mask(&network.base, prefix4, prefix6);
	return !weir_span_equal(value, weir_span_of(weir_network_format(&network, text)));
}

/* The fields' names as a key has them: "ip|path". @return names */
static const char *names_of(const struct weir_zone *zone, char names[NAMES_BYTES])
{
	size_t length = 0;
	for (uint32_t i = 0; i < zone->key_count && length < NAMES_BYTES; i++)
		length += (size_t)snprintf(names + length, NAMES_BYTES - length, "%s%s", i > 0 ? "|" : "", zone->key[i].field);
	return names;
}

static enum weir_status refuse_parts(const struct weir_zone *zone, struct weir_error *error)
{
	char names[NAMES_BYTES];
	if (zone->key_count == 0)
		return weir_fail(error, WEIR_INVALID, "zone '%s' has one bucket for all: give an empty key", zone->name);
	return weir_fail(error, WEIR_INVALID, "a key of zone '%s' is %s: write | and \\ inside of a value as \\| and \\\\",
	                 zone->name, names_of(zone, names));
}

/* A record with an empty field does not have it, and so is not in the zone. */
static enum weir_status refuse_empty(const struct weir_zone *zone, uint32_t field, struct weir_error *error)
{
	char names[NAMES_BYTES];
	return weir_fail(error, WEIR_INVALID, "the key has no %s: a key of zone '%s' is %s, and none of it is empty",
	                 zone->key[field].field, zone->name, names_of(zone, names));
}

static bool put(char **at, const char *end, struct weir_span value)
{
	if (value.length > (size_t)(end - *at))
		return false;
	if (value.length > 0)
		memcpy(*at, value.at, value.length);
	*at += value.length;
	return true;
}

static enum weir_status refuse_length(struct weir_error *error)
{
	return weir_fail(error, WEIR_INVALID, "a key has at most %d bytes", WEIR_KEY_MAX_BYTES);
}

/* The values one by one. @param written  set where room holds the key from now on */
static enum weir_status join(const struct weir_zone *zone, struct weir_span given, char *room, struct weir_span *joined,
                             struct weir_error *error)
{
	const char *at = given.at, *end = given.at + given.length;
	char text[WEIR_NETWORK_TEXT_BYTES], *out = room;
	bool written = false;
	for (uint32_t i = 0; i < zone->key_count; i++) {
		const char *stop = value_end(at, end);
		if (stop == NULL || (stop < end) != (i + 1 < zone->key_count))
			return refuse_parts(zone, error);
		struct weir_span value = {.at = at, .length = (uint32_t)(stop - at)};
		if (value.length == 0)
			return refuse_empty(zone, i, error);
		if (settled_value(&zone->key[i], value, text)) {
			value = weir_span_of(text);
			written = true;
		}
		if (written && room == NULL)
			return WEIR_FULL;
		bool fits = room == NULL || (put(&out, room + WEIR_KEY_MAX_BYTES, value) &&
		                             (stop == end || put(&out, room + WEIR_KEY_MAX_BYTES, weir_span_of("|"))));
		if (!fits)
			return refuse_length(error);
		at = stop < end ? stop + 1 : end;
	}
	*joined = written ? (struct weir_span){.at = room, .length = (uint32_t)(out - room)} : given;
	return WEIR_OK;
}

enum weir_status check_key(const struct weir_zone *zone, struct weir_span given, char *room, struct weir_span *joined,
                           struct weir_error *error)
{
	bool plain = zone->key_count == 1 && !weir_scan_has(given.at, given.length, '|', '\\');
	if (zone->feed == WEIR_FEED_LOG)
		return weir_zone_takes_checks(zone, error);
	if (given.length > WEIR_KEY_MAX_BYTES)
		return refuse_length(error);
	*joined = given;
	if (zone->key_count == 0)
		return given.length == 0 ? WEIR_OK : refuse_parts(zone, error);
	if (given.length == 0)
		return refuse_empty(zone, 0, error);
	if (plain && (!weir_key_field_is_address(&zone->key[0]) || !varies(&zone->key[0], given)))
		return WEIR_OK;
	return join(zone, given, room, joined, error);
}

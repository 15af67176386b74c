/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most keys are one field as it stands and stay where they are: only what can be written in more than one way, an address,
 * a path, a host or a method, or an address that a zone groups, is written anew. What is done to a value is what formats and
 * common/matcher/key_template.c do. It is done once: a path that is decoded twice may be another.
 */
#include "limiter/check/check_key.h"

#include "common/base/alloc.h"
#include "common/bytes/scan.h"
#include "common/matcher/key_template.h"
#include "common/record/field_value.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { V4_WHOLE = 32, V6_WHOLE = 128, V4_IN_V6 = 96, NAMES_BYTES = 256 };

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Whether an address may be written in more than one way, or stands for a network. @param value  not empty */
static bool varies(const struct weir_key_field *field, struct weir_span value)
{
	return (field->grouped && field->prefix4 != V4_WHOLE) || value.at[0] == '[' || is_blank(value.at[0]) ||
	       is_blank(value.at[value.length - 1]) || memchr(value.at, ':', value.length) != NULL;
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

static enum weir_status refuse_length(struct weir_error *error)
{
	return weir_fail(error, WEIR_INVALID, "a key has at most %d bytes", WEIR_KEY_MAX_BYTES);
}

/* ---- values ---- */

/* One value of a key. */
struct value {
	struct weir_span given;
	struct weir_span counted;           /* the same, or settled */
	bool escaped;                       /* `|` and `\` in what is counted have their `\` */
	char text[WEIR_NETWORK_TEXT_BYTES]; /* a settled address */
	/* of a path, a host or a method */
	char *plain; /* without escapes; owned */
	struct weir_field_value_room room;
};

/* The field of a record whose values have a form that servers bring them to; WEIR_FIELD_STANDARD_COUNT: none of these. */
static uint32_t served_field(const struct weir_key_field *field)
{
	return field->grouped                        ? WEIR_FIELD_STANDARD_COUNT
	       : strcmp(field->field, "path") == 0   ? WEIR_FIELD_PATH
	       : strcmp(field->field, "host") == 0   ? WEIR_FIELD_HOST
	       : strcmp(field->field, "method") == 0 ? WEIR_FIELD_METHOD
	                                             : WEIR_FIELD_STANDARD_COUNT;
}

/* Whether a single value without escapes is counted as it stands. */
static bool stands(const struct weir_key_field *field, struct weir_span value)
{
	uint32_t served = served_field(field);
	if (served == WEIR_FIELD_STANDARD_COUNT)
		return !weir_key_field_is_address(field) || !varies(field, value);
	struct weir_field_value_room room = {0};
	bool same = weir_span_equal(weir_field_value(served, value, &room), value);
	weir_field_value_room_deinit(&room);
	return same;
}

/* @param plain  nothing has to be escaped */
static enum weir_status read_values(const struct weir_zone *zone, struct weir_span given, bool plain,
                                    enum check_key_form form, struct value *values, struct weir_error *error)
{
	const char *at = given.at, *end = given.at + given.length;
	if (zone->key_count == 1 && (plain || form == CHECK_KEY_GIVEN)) {
		values[0].given = given;
		values[0].escaped = plain;
		return WEIR_OK;
	}
	for (uint32_t i = 0; i < zone->key_count; i++) {
		const char *stop = value_end(at, end);
		if (stop == NULL || (stop < end) != (i + 1 < zone->key_count))
			return refuse_parts(zone, error);
		values[i].given = (struct weir_span){.at = at, .length = (uint32_t)(stop - at)};
		values[i].escaped = true;
		if (values[i].given.length == 0)
			return refuse_empty(zone, i, error);
		at = stop < end ? stop + 1 : end;
	}
	return WEIR_OK;
}

/* Takes the escapes off. @param out  as long as the value */
static uint32_t unescape(struct weir_span value, char *out)
{
	uint32_t length = 0;
	for (uint32_t i = 0; i < value.length; i++) {
		i += value.at[i] == '\\' && i + 1 < value.length;
		out[length++] = value.at[i];
	}
	return length;
}

/* A path, a host or a method as it is served. @return false: it is as it was given */
static bool settle_served(uint32_t field, struct value *value)
{
	struct weir_span raw = value->given;
	if (value->escaped && memchr(raw.at, '\\', raw.length) != NULL) {
		value->plain = weir_alloc(raw.length, 1);
		raw = (struct weir_span){.at = value->plain, .length = unescape(raw, value->plain)};
	}
	struct weir_span served = weir_field_value(field, raw, &value->room);
	if (weir_span_equal(served, raw))
		return false;
	value->counted = served;
	value->escaped = false;
	return true;
}

/* Sets what each value is counted as. @return whether all are counted as they were given */
static bool settle_values(const struct weir_zone *zone, enum check_key_form form, struct value *values)
{
	bool same = true;
	for (uint32_t i = 0; i < zone->key_count; i++) {
		struct value *value = &values[i];
		uint32_t served = served_field(&zone->key[i]);
		value->counted = value->given;
		if (served != WEIR_FIELD_STANDARD_COUNT) {
			same &= form == CHECK_KEY_JOINED || !settle_served(served, value);
		} else if (settled_value(&zone->key[i], value->given, value->text)) {
			value->counted = weir_span_of(value->text);
			same = false;
		}
		same &= value->escaped;
	}
	return same;
}

static void free_values(struct value *values, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		free(values[i].plain);
		weir_field_value_room_deinit(&values[i].room);
	}
}

/* What stands in a key as it is. @return the end; NULL: it does not fit */
static char *put_whole(char *at, const char *end, struct weir_span value)
{
	if (value.length > (size_t)(end - at))
		return NULL;
	memcpy(at, value.at, value.length); /* none is empty */
	return at + value.length;
}

/* Joins what is counted. @return the end; NULL: it does not fit */
static char *put_values(const struct value *values, uint32_t count, char *room)
{
	char *at = room;
	const char *end = room + WEIR_KEY_MAX_BYTES;
	for (uint32_t i = 0; i < count && at != NULL; i++) {
		if (i > 0)
			at = put_whole(at, end, weir_span_of("|"));
		if (at != NULL)
			at =
				values[i].escaped ? put_whole(at, end, values[i].counted) : weir_key_append(at, end, values[i].counted);
	}
	return at;
}

bool check_key_values(const struct weir_zone *zone, struct weir_span given, struct weir_text *room,
                      struct weir_span values[WEIR_ZONE_KEY_MAX])
{
	struct value read[WEIR_ZONE_KEY_MAX];
	struct weir_error ignored;
	if ((zone->key_count == 0) != (given.length == 0) ||
	    read_values(zone, given, false, CHECK_KEY_GIVEN, read, &ignored) != WEIR_OK)
		return false;
	weir_text_clear(room);
	char *at = weir_text_reserve(room, given.length + (size_t)1);
	for (uint32_t i = 0; i < zone->key_count; i++) {
		values[i] = read[i].given;
		if (!read[i].escaped || memchr(values[i].at, '\\', values[i].length) == NULL)
			continue;
		values[i] = (struct weir_span){.at = at, .length = unescape(read[i].given, at)};
		at += values[i].length;
	}
	return true;
}

struct weir_span check_key_value(struct weir_span joined, char *room)
{
	if (memchr(joined.at, '\\', joined.length) == NULL)
		return joined;
	return (struct weir_span){.at = room, .length = unescape(joined, room)};
}

/* The same with the long values shortened. */
static __attribute__((noinline, cold)) char *put_shortened(struct value *values, uint32_t count, char *room)
{
	char texts[WEIR_ZONE_KEY_MAX][WEIR_KEY_VALUE_WHOLE_BYTES];
	for (uint32_t i = 0; i < count; i++) {
		struct value *value = &values[i];
		char *plain = value->escaped ? weir_alloc(value->counted.length, 1) : NULL;
		struct weir_span raw = value->counted;
		if (plain != NULL)
			raw = (struct weir_span){.at = plain, .length = unescape(value->counted, plain)};
		if (raw.length > WEIR_KEY_VALUE_WHOLE_BYTES) {
			value->counted = weir_key_shorten(raw, texts[i]);
			value->escaped = false;
		}
		free(plain);
	}
	char *end = put_values(values, count, room);
	assert(end != NULL);
	return end;
}

/* Joins what was read. @param joined  set, unless it is as it was given */
static enum weir_status join(const struct weir_zone *zone, bool same, struct value *values, char *room,
                             struct weir_span *joined)
{
	if (same)
		return WEIR_OK;
	if (room == NULL)
		return WEIR_FULL;
	char *end = put_values(values, zone->key_count, room);
	if (end == NULL)
		end = put_shortened(values, zone->key_count, room);
	*joined = (struct weir_span){.at = room, .length = (uint32_t)(end - room)};
	return WEIR_OK;
}

enum weir_status check_key(const struct weir_zone *zone, struct weir_span given, enum check_key_form form, char *room,
                           struct weir_span *joined, struct weir_error *error)
{
	bool plain = !weir_scan_has(given.at, given.length, '|', '\\'), fits = given.length <= WEIR_KEY_MAX_BYTES;
	if (zone->feed == WEIR_FEED_LOG)
		return weir_zone_takes_checks(zone, error);
	*joined = given;
	if (zone->key_count == 0)
		return given.length == 0 ? WEIR_OK : refuse_parts(zone, error);
	if (given.length == 0)
		return refuse_empty(zone, 0, error);
	if (plain && fits && zone->key_count == 1 && stands(&zone->key[0], given))
		return WEIR_OK;
	if (!fits && form == CHECK_KEY_JOINED)
		return refuse_length(error);
	struct value values[WEIR_ZONE_KEY_MAX];
	for (uint32_t i = 0; i < zone->key_count; i++) {
		values[i].plain = NULL;
		values[i].room.path = (struct weir_served_path_room){0};
	}
	enum weir_status status = read_values(zone, given, plain, form, values, error);
	if (status == WEIR_OK)
		status = join(zone, settle_values(zone, form, values) && fits, values, room, joined);
	free_values(values, zone->key_count);
	return status;
}

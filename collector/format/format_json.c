/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `json`: one object per line; and what else has its shape, as the journal's entries do.
 *
 * The scanner (json_scan.c) gathers the wanted members; this only says which name serves which field.
 */
#include "collector/format/format_slots.h"
#include "collector/format/line_text.h"
#include "collector/record/json_scan.h"
#include "common/base/alloc.h"
#include "common/record/client_ip.h"

#include <assert.h>
#include <stdlib.h>

static_assert((int)FORMAT_NAME_MAX_BYTES <= (int)JSON_SCAN_NAME_MAX_BYTES, "the scanner takes every name");

struct format_json {
	struct format format;
	struct format_options options;
	struct format_slots slots;
	struct json_scan scan;
	uint32_t nodes[FORMAT_SLOTS_MAX]; /* the scanner's node of each slot: two names may mean one member */
	bool is_preset;
	uint32_t others[FORMAT_SLOTS_MAX][JSON_NAMES_MAX - 1]; /* of a preset: where else; NO_NODE: nowhere */
	int ip_slot;                                           /* of a preset; -1: not wanted */
	int hash_slot;           /* of a preset: the path, if a '#' is part of it; -1: it is not, or not wanted */
	struct weir_text hashed; /* the last path that had one */
};

enum { NO_NODE = 0 }; /* the root, which has no value */

/* A target with each '#' of its path as it is served: "%23". One in the query stays. */
static __attribute__((noinline, cold)) struct weir_span escape_hashes(struct weir_text *room, struct weir_span target)
{
	uint32_t i = 0;
	weir_text_clear(room);
	for (; i < target.length && target.at[i] != '?'; i++)
		weir_text_append(room, target.at[i] == '#' ? "%23" : target.at + i, target.at[i] == '#' ? 3 : 1);
	weir_text_append(room, target.at + i, target.length - i);
	return weir_text_span(room);
}

/* Takes off the values what a program writes around them. */
static void finish_preset(struct format_json *json, struct weir_span *values)
{
	for (uint32_t slot = 0; slot < json->slots.count; slot++) {
		values[slot] = text_or_absent(values[slot]);
		for (int i = 0; i < JSON_NAMES_MAX - 1 && values[slot].at == NULL; i++)
			if (json->others[slot][i] != NO_NODE)
				values[slot] = text_or_absent(json_scan_value(&json->scan, json->others[slot][i]));
	}
	if (json->ip_slot >= 0 && values[json->ip_slot].at != NULL)
		values[json->ip_slot] = text_without_any_port(values[json->ip_slot]);
	struct weir_span *path = json->hash_slot >= 0 ? &values[json->hash_slot] : NULL;
	if (path != NULL && path->at != NULL && memchr(path->at, '#', path->length) != NULL)
		*path = escape_hashes(&json->hashed, *path);
}

/* "@cee:", by which programs say to syslog that an object follows. */
static void skip_cookie(const char **line, uint32_t *length)
{
	static const char cookie[] = "@cee:";
	uint32_t at = sizeof cookie - 1;
	if (*length < at || memcmp(*line, cookie, at) != 0)
		return;
	while (at < *length && ((*line)[at] == ' ' || (*line)[at] == '\t'))
		at++;
	*line += at;
	*length -= at;
}

static enum format_reason parse(struct format *format, const char *line, uint32_t length, struct weir_record *record)
{
	struct format_json *json = (struct format_json *)format;
	struct weir_span values[FORMAT_SLOTS_MAX];
	if (line[0] == '@')
		skip_cookie(&line, &length);
	if (!json_scan_ends(&json->scan, line, length, format->tail) && !(json->scan.cut && format->takes_cut))
		return format->malformed;
	for (uint32_t slot = 0; slot < json->slots.count; slot++)
		values[slot] = json_scan_value(&json->scan, json->nodes[slot]);
	if (json->is_preset)
		finish_preset(json, values);
	enum format_reason reason = format_slots_finish(&json->slots, &json->options, values, record);
	if (!json->scan.cut)
		return reason;
	/* A line that ends too early counts if it says when and who. */
	bool nobody = format->client_ip == NULL && record->fields[WEIR_FIELD_IP].at == NULL;
	record->cut = true;
	return reason == FORMAT_NO_TIME || nobody ? format->malformed : reason;
}

/* The addresses of a header may be an array: a line of the header each. */
static void join_lists(struct format_json *json)
{
	const struct weir_client_ip *client_ip = json->format.client_ip;
	if (client_ip == NULL)
		return;
	const uint32_t fields[] = {(uint32_t)weir_client_ip_header(client_ip), WEIR_FIELD_IP};
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		int slot = format_slots_of_field(&json->slots, fields[i]);
		if (slot >= 0)
			json_scan_join(&json->scan, json->nodes[slot]);
	}
}

static void json_free(struct format *format)
{
	struct format_json *json = (struct format_json *)format;
	json_scan_deinit(&json->scan);
	format_options_deinit(&json->options);
	weir_text_deinit(&json->hashed);
	free(json);
}

enum weir_status format_json_members_new(const struct weir_json *config, const struct format_kind *kind,
                                         const char *time_name, enum time_unit unit,
                                         const struct weir_field_table *fields, struct format **format,
                                         struct weir_error *error)
{
	struct format_json *json = weir_alloc(1, sizeof *json);
	json->format.parse = parse;
	json->format.reads_objects = true;
	json->format.free = json_free;
	json_scan_init(&json->scan);
	enum weir_status status = format_options_init(&json->options, config, fields, kind, &json->format, error);
	if (status != WEIR_OK) {
		format_free(&json->format);
		return status;
	}
	if (time_name != NULL)
		format_options_set_time(&json->options, time_name, unit);
	format_slots_init(&json->slots, &json->options);
	for (uint32_t slot = 0; slot < json->slots.count; slot++)
		json->nodes[slot] = json_scan_want(&json->scan, json->slots.names[slot].at);
	join_lists(json);
	json->format.takes_cut = (kind->takes & FORMAT_NEEDS_IP) != 0;
	*format = &json->format;
	return WEIR_OK;
}

struct json_scan *format_json_scan(struct format *format)
{
	assert(format->parse == parse);
	return &((struct format_json *)format)->scan;
}

void format_json_take_bytes(struct format *format)
{
	struct format_json *json = (struct format_json *)format;
	assert(format->parse == parse);
	for (uint32_t slot = 0; slot < json->slots.count; slot++)
		if (json->slots.names[slot].at[0] != '/')
			json_scan_take_bytes(&json->scan, json->nodes[slot], true);
}

enum format_reason format_json_missing(const struct format *format, uint32_t field)
{
	const struct format_json *json = (const struct format_json *)format;
	int slot = format_slots_of_field(&json->slots, field);
	assert(format->parse == parse && slot >= 0);
	if (json_scan_value(&json->scan, json->nodes[slot]).at != NULL)
		return FORMAT_SKIP;
	return json_scan_is_null(&json->scan, json->nodes[slot]) ? FORMAT_LEFT_OUT : FORMAT_NO_MESSAGE;
}

static const struct json_place *place_of(const struct json_place *places, struct weir_span name)
{
	for (; places->field != NULL; places++)
		if (text_is(name, places->field))
			return places;
	return NULL;
}

enum weir_status format_json_preset_create(const struct weir_json *config, const struct format_kind *kind,
                                           const struct weir_field_table *fields, struct format **format,
                                           struct weir_error *error)
{
	enum weir_status status = format_json_members_new(config, kind, "time", TIME_UNIT_ANY, fields, format, error);
	if (status != WEIR_OK)
		return status;
	struct format_json *json = (struct format_json *)*format;
	json->is_preset = json->format.dash_is_absent = true;
	json->options.time.unit_given =
		false; /* a number's size says the unit, and then it must be a time of this century */
	json->ip_slot = format_slots_find(&json->slots, "ip", 2);
	json->hash_slot = kind->serves_hashes ? format_slots_find(&json->slots, "path", 4) : -1;
	for (uint32_t slot = 0; slot < json->slots.count; slot++) {
		const struct json_place *place = place_of(kind->places, json->slots.names[slot]);
		if (place == NULL)
			continue;
		json->nodes[slot] = json_scan_want(&json->scan, place->names[0]);
		for (int i = 1; i < JSON_NAMES_MAX; i++)
			if (place->names[i] != NULL)
				json->others[slot][i - 1] = json_scan_want(&json->scan, place->names[i]);
	}
	join_lists(json);
	return WEIR_OK;
}

static enum weir_status create(const struct weir_json *config, const struct format_kind *kind,
                               const struct weir_field_table *fields, struct format **format, struct weir_error *error)
{
	struct weir_json message = weir_json_member(config, "message"), line = weir_json_member(config, "line");
	if (weir_json_exists(&message))
		return format_json_message_new(config, kind, fields, format, error);
	if (weir_json_exists(&line))
		return weir_json_fail(&line, error, "says where a line of another format stands, which \"message\" names");
	return format_json_members_new(config, kind, NULL, TIME_UNIT_S, fields, format, error);
}

static const struct weir_json_rule options[] = {
	{.name = "message", .meaning = "the format of a line that a member holds", .shape = format_message_shape},
	{.name = "line", .meaning = "the member that holds the line of another format", .shape = format_name_shape},
	{.name = NULL},
};

const struct format_kind format_json = {
	.name = "json",
	.meaning = "one object per line",
	.malformed = "not json",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_TIME | FORMAT_TAKES_YEAR | FORMAT_NEEDS_IP,
	.options = options,

	.create = create,
};

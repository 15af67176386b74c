/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line has the values' own bytes: what is not UTF-8 stays as it is, so that two keys never become one.
 *
 * A path among them was served: its escapes are decoded. As the format decodes what it reads as a path, "%", "?" and "#"
 * are escaped here, and the path comes out as it was.
 *
 * A field's name may be a JSON pointer, as it is where the log has objects within objects. The line has no objects: there
 * it is a member's name, with another byte for the first slash, and the format is told so.
 */
#include "collector/source/decisions/decision_line.h"

#include "common/base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTER_BEGIN '\x1f'

enum { INDEX_BITS = 18 }; /* a frame has at most 262,144 pairs */

/* What the line says itself: a key's field of such a name is left out. */
static const char *const own_names[] = {"time", "zone", "key", "action", "mode", "by"};

static void put_byte(struct weir_text *line, unsigned char byte)
{
	if (byte == '"' || byte == '\\')
		weir_text_append(line, "\\", 1);
	if (byte < 0x20)
		weir_text_printf(line, "\\u%04x", byte);
	else
		weir_text_append(line, (const char *)&byte, 1);
}

static void put_string(struct weir_text *line, const char *name, struct weir_span value)
{
	bool is_path = strcmp(name, "path") == 0 && value.length > 0 && value.at[0] == '/';
	weir_text_append(line, ",\"", 2);
	for (const char *at = name; *at != '\0'; at++)
		put_byte(line, (unsigned char)(at == name && *at == '/' ? POINTER_BEGIN : *at));
	weir_text_puts(line, "\":\"");
	for (uint32_t i = 0; i < value.length; i++) {
		unsigned char byte = (unsigned char)value.at[i];
		if (is_path && (byte == '%' || byte == '?' || byte == '#'))
			weir_text_printf(line, "%%%02X", byte);
		else
			put_byte(line, byte);
	}
	weir_text_append(line, "\"", 1);
}

/* One value of a joined key, without its escapes. @param value  room for all of the key */
static struct weir_span next_value(struct weir_span *key, char *value)
{
	uint32_t used = 0, length = 0;
	while (used < key->length && key->at[used] != '|') {
		if (key->at[used] == '\\' && used + 1 < key->length)
			used++;
		value[length++] = key->at[used++];
	}
	used += used < key->length; /* the '|' */
	key->at += used;
	key->length -= used;
	return (struct weir_span){.at = value, .length = length};
}

static bool is_own_name(const char *name)
{
	for (size_t i = 0; i < sizeof own_names / sizeof *own_names; i++)
		if (strcmp(own_names[i], name) == 0)
			return true;
	return false;
}

static void put_key(struct weir_text *line, struct weir_span key, const struct weir_zone *zone)
{
	char value[WEIR_KEY_MAX_BYTES];
	put_string(line, "key", key);
	for (uint32_t i = 0; zone != NULL && i < zone->key_count; i++) {
		struct weir_span part = next_value(&key, value);
		if (!is_own_name(zone->key[i].field))
			put_string(line, zone->key[i].field, part);
	}
}

static bool read_position(const char *id, uint64_t *position)
{
	uint64_t offset, index;
	int used = 0;
	if (id == NULL || sscanf(id, "%*" SCNu32 "-%" SCNu64 "-%" SCNu64 "%n", &offset, &index, &used) != 2 ||
	    id[used] != '\0' || index >> INDEX_BITS != 0 || offset >> (63 - INDEX_BITS) != 0)
		return false;
	*position = (offset << INDEX_BITS | index) + 1;
	return true;
}

static void put_member(struct weir_text *line, const json_t *decision, const char *name)
{
	const json_t *value = json_object_get(decision, name);
	if (json_is_string(value))
		put_string(line, name,
		           (struct weir_span){.at = json_string_value(value), .length = (uint32_t)json_string_length(value)});
}

static void put_decision(struct weir_text *line, const json_t *decision, struct weir_span message_key,
                         const struct weir_policy *policy)
{
	const char *zone = json_string_value(json_object_get(decision, "zone"));
	int64_t at_ms = json_integer_value(json_object_get(decision, "at"));
	size_t head = strlen(zone) + 1;
	weir_text_printf(line, "{\"time\":%" PRId64, at_ms);
	put_member(line, decision, "zone");
	if (json_is_array(json_object_get(decision, "key")))
		put_key(line, (struct weir_span){.at = message_key.at + head, .length = message_key.length - (uint32_t)head},
		        weir_policy_zone_named(policy, weir_span_of(zone)));
	put_member(line, decision, "action");
	put_member(line, decision, "mode");
	put_member(line, decision, "by");
	weir_text_append(line, "}\n", 2);
}

/* A block that is published again as it ends sooner: it was an event when it began. */
static bool is_known_block(const json_t *decision)
{
	const char *action = json_string_value(json_object_get(decision, "action"));
	return json_is_true(json_object_get(decision, "freed")) && action != NULL && strcmp(action, "block") == 0;
}

bool decision_line_put(struct weir_text *line, const struct weir_message *message, const struct weir_policy *policy,
                       uint64_t *position)
{
	if (message->payload.length == 0)
		return false;
	json_t *decision = json_loadb(message->payload.at, message->payload.length, JSON_ALLOW_NUL, NULL);
	const char *zone = json_string_value(json_object_get(decision, "zone"));
	const json_t *at = json_object_get(decision, "at");
	size_t head = zone != NULL ? strlen(zone) + 1 : 0;
	bool good = zone != NULL && json_is_integer(at) && json_integer_value(at) >= 0 &&
	            read_position(json_string_value(json_object_get(decision, "id")), position) &&
	            message->key.length >= head && message->key.length - head <= WEIR_KEY_MAX_BYTES &&
	            memcmp(message->key.at, zone, head - 1) == 0 && message->key.at[head - 1] == '|' &&
	            !is_known_block(decision);
	if (good)
		put_decision(line, decision, message->key, policy);
	json_decref(decision);
	return good;
}

json_t *decision_line_fields(const struct weir_field_table *fields)
{
	json_t *map = json_object();
	for (uint32_t i = 0; i < fields->count; i++) {
		const char *name = fields->names[i];
		if (name[0] != '/')
			continue;
		char *plain = weir_copy(name, strlen(name));
		plain[0] = POINTER_BEGIN;
		json_object_set_new(map, name, json_string(plain));
		free(plain);
	}
	return map;
}

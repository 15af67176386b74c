/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys lie one after another in a text, joined as they were added; the index is
 * a table from fingerprint to key and zone. A zone's own joined key is made
 * again when it is asked for: there may be millions of keys, and most are asked
 * for once.
 */
#include "deploy/weir/inspect/state_keys.h"

#include "common/base/alloc.h"
#include "common/base/text.h"
#include "common/json/json.h"
#include "common/matcher/key_template.h"
#include "common/record/field_value.h"
#include "limiter/shard/shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct key_place {
	size_t at;
	uint32_t length;
	uint32_t values;
};

/* One zone's way to make a joined key of values. */
struct key_zone {
	uint32_t id;
	struct weir_field_table fields;
	struct weir_key_template template;
	struct weir_field_value_room rooms[WEIR_ZONE_KEY_MAX]; /* of its parts */
};

struct key_entry {
	struct weir_fingerprint fingerprint;
	uint32_t key; /* its place, plus 1; 0: this entry is free */
	uint32_t zone;
};

struct state_keys {
	struct weir_text text;
	struct key_place *keys;
	size_t count, capacity;
	char *values; /* of the key that is joined, escapes taken off: room for the longest */
	struct key_zone *zones;
	uint32_t zone_count;
	struct key_entry *entries;
	size_t room;       /* a power of two */
	uint8_t *segments; /* a bit for each segment of each partition: some key's bucket would lie there */
};

struct state_keys *state_keys_new(void)
{
	return weir_alloc(1, sizeof(struct state_keys));
}

void state_keys_free(struct state_keys *keys)
{
	if (keys == NULL)
		return;
	for (uint32_t i = 0; i < keys->zone_count; i++) {
		weir_key_template_deinit(&keys->zones[i].template);
		for (uint32_t k = 0; k < WEIR_ZONE_KEY_MAX; k++)
			weir_field_value_room_deinit(&keys->zones[i].rooms[k]);
		weir_field_table_deinit(&keys->zones[i].fields);
	}
	free(keys->zones);
	free(keys->entries);
	free(keys->segments);
	free(keys->keys);
	free(keys->values);
	weir_text_deinit(&keys->text);
	free(keys);
}

/* ---- adding ---- */

static void append_value(struct weir_text *text, const char *at, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (at[i] == '|' || at[i] == '\\')
			weir_text_puts(text, "\\");
		weir_text_append(text, at + i, 1);
	}
}

static void end_key(struct state_keys *keys, size_t from, size_t values)
{
	if (keys->count == keys->capacity) {
		keys->capacity = keys->capacity == 0 ? 64 : keys->capacity * 2;
		keys->keys = weir_realloc(keys->keys, keys->capacity, sizeof *keys->keys);
	}
	keys->keys[keys->count++] =
		(struct key_place){.at = from, .length = (uint32_t)(keys->text.length - from), .values = (uint32_t)values};
}

/* An array of strings. */
static enum weir_status add_array(struct state_keys *keys, const json_t *array, struct weir_error *error)
{
	size_t from = keys->text.length, count = json_array_size(array);
	for (size_t i = 0; i < count; i++) {
		const json_t *value = json_array_get(array, i);
		if (!json_is_string(value)) {
			keys->text.length = from;
			return weir_fail(error, WEIR_INVALID, "a key's values must be strings");
		}
		if (i > 0)
			weir_text_puts(&keys->text, "|");
		append_value(&keys->text, json_string_value(value), json_string_length(value));
	}
	end_key(keys, from, count);
	return WEIR_OK;
}

static uint32_t count_values(struct weir_span joined)
{
	uint32_t values = joined.length > 0;
	for (uint32_t i = 0; i < joined.length; i++) {
		if (joined.at[i] == '\\')
			i++;
		else
			values += joined.at[i] == '|';
	}
	return values;
}

enum weir_status state_keys_add(struct state_keys *keys, struct weir_span line, struct weir_error *error)
{
	struct weir_json_document *document;
	/* "[2001:db8::1]" is no array, but may be a value. */
	if (line.length > 0 && line.at[0] == '[' &&
	    weir_json_parse_record("key", line.at, line.length, &document, NULL) == WEIR_OK) {
		enum weir_status status = add_array(keys, weir_json_root(document).value, error);
		weir_json_document_free(document);
		return status;
	}
	size_t from = keys->text.length;
	weir_text_append(&keys->text, line.at, line.length);
	end_key(keys, from, count_values(line));
	return WEIR_OK;
}

enum weir_status state_keys_read(struct state_keys *keys, const char *path, struct weir_error *error)
{
	bool is_input = strcmp(path, "-") == 0;
	FILE *file = is_input ? stdin : fopen(path, "re");
	if (file == NULL)
		return weir_fail(error, WEIR_IO, "cannot open %s: %s", path, weir_errno_words(errno));
	enum weir_status status = WEIR_OK;
	char *line = NULL;
	size_t capacity = 0, number = 0;
	ssize_t length;
	while (status == WEIR_OK && (length = getline(&line, &capacity, file)) >= 0) {
		number++;
		if (length > 0 && line[length - 1] == '\n')
			length--;
		if (length == 0)
			continue;
		status = state_keys_add(keys, (struct weir_span){.at = line, .length = (uint32_t)length}, error);
		if (status != WEIR_OK)
			weir_error_prefix(error, "%s:%zu", path, number);
	}
	if (status == WEIR_OK && ferror(file))
		status = weir_fail(error, WEIR_IO, "cannot read %s: %s", path, weir_errno_words(errno));
	free(line);
	if (!is_input)
		fclose(file);
	return status;
}

/* ---- finding ---- */

/*
 * A zone's joined key of a key's values, until the next one is asked for. The values are put into a record, as a log's
 * line would bring them.
 */
static struct weir_span join(const struct state_keys *keys, const struct key_place *place, struct key_zone *zone)
{
	struct weir_record record;
	struct weir_address_cache cache = {0};
	const char *at = place->length > 0 ? keys->text.at + place->at : "", *end = at + place->length;
	uint32_t used = 0;
	for (uint32_t i = 0; i < zone->template.part_count; i++) {
		uint32_t from = used;
		for (; at < end && *at != '|'; at++) {
			if (*at == '\\' && at + 1 < end)
				at++;
			keys->values[used++] = *at;
		}
		at += at < end;
		struct weir_span value = {.at = keys->values + from, .length = used - from};
		uint32_t field = zone->template.parts[i].field;
		record.fields[field] = value.length > 0 ? weir_field_value(field, value, &zone->rooms[i]) : value;
	}
	return weir_key_template_join(&zone->template, &record, &cache);
}

static struct key_entry *find_entry(const struct state_keys *keys, struct weir_fingerprint fingerprint)
{
	size_t place = fingerprint.low & (keys->room - 1);
	for (;; place = (place + 1) & (keys->room - 1)) {
		struct key_entry *entry = &keys->entries[place];
		if (entry->key == 0 ||
		    (entry->fingerprint.low == fingerprint.low && entry->fingerprint.high == fingerprint.high))
			return entry;
	}
}

static void add_zone(struct state_keys *keys, const struct weir_zone *from)
{
	struct key_zone *zone = &keys->zones[keys->zone_count++];
	zone->id = from->id;
	weir_field_table_init(&zone->fields);
	/* A zone's few fields always have room in a table of their own. */
	enum weir_status ignored = weir_key_template_init(&zone->template, from, &zone->fields, NULL);
	(void)ignored;
}

static size_t segment_place(uint32_t partition, uint32_t segment)
{
	return (size_t)partition * SHARD_SEGMENTS + segment;
}

bool state_keys_in_segment(const struct state_keys *keys, uint32_t partition, uint32_t segment)
{
	size_t place = segment_place(partition, segment);
	return (keys->segments[place / 8] >> (place % 8) & 1) != 0;
}

/* One key in one zone, if it has as many values. */
static void add_entry(struct state_keys *keys, uint32_t zone, size_t key, uint64_t seed, uint32_t partitions)
{
	if (keys->keys[key].values != keys->zones[zone].template.part_count)
		return;
	struct weir_span joined = join(keys, &keys->keys[key], &keys->zones[zone]);
	struct weir_fingerprint fingerprint = weir_fingerprint(seed, keys->zones[zone].id, joined);
	*find_entry(keys, fingerprint) =
		(struct key_entry){.fingerprint = fingerprint, .key = (uint32_t)key + 1, .zone = zone};
	size_t place = segment_place(weir_partition(weir_slot(joined), partitions), shard_segment_of(fingerprint.low));
	keys->segments[place / 8] |= (uint8_t)(1 << place % 8);
}

void state_keys_index(struct state_keys *keys, const struct weir_policy *policy, uint64_t seed, uint32_t partitions)
{
	uint32_t longest = 1;
	for (size_t i = 0; i < keys->count; i++)
		longest = keys->keys[i].length > longest ? keys->keys[i].length : longest;
	keys->values = weir_alloc(longest, 1);
	keys->zones = weir_alloc(policy->zone_count, sizeof *keys->zones);
	/* The one bucket of a zone without key fields needs no naming. */
	end_key(keys, keys->text.length, 0);
	for (keys->room = 64; keys->room < keys->count * policy->zone_count * 3 / 2;)
		keys->room *= 2;
	keys->entries = weir_alloc(keys->room, sizeof *keys->entries);
	keys->segments = weir_alloc(segment_place(partitions, 0) / 8, 1);
	for (uint32_t z = 0; z < policy->zone_count; z++) {
		add_zone(keys, &policy->zones[z]);
		for (size_t i = 0; i < keys->count; i++)
			add_entry(keys, z, i, seed, partitions);
	}
}

bool state_keys_find(const struct state_keys *keys, struct weir_fingerprint fingerprint, char *room,
                     struct weir_span *key)
{
	const struct key_entry *entry = find_entry(keys, fingerprint);
	if (entry->key == 0)
		return false;
	struct weir_span joined = join(keys, &keys->keys[entry->key - 1], &keys->zones[entry->zone]);
	memcpy(room, joined.at, joined.length);
	*key = (struct weir_span){.at = room, .length = joined.length};
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As JSON, the names that weir gives are weir's alone: an entry's own field of such a name is left out, so that nobody who
 * writes an entry says which stream it is of. Other bytes stand as they are, as in a file's line.
 */
#include "collector/source/redis/redis_entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static bool read_part(const char **at, const char *end, uint64_t limit, uint64_t *part)
{
	const char *begin = *at;
	uint64_t value = 0;
	for (; *at < end && **at >= '0' && **at <= '9' && value < limit; ++*at)
		value = value * 10 + (uint64_t)(**at - '0');
	*part = value;
	return *at > begin && value < limit;
}

bool redis_id_position(struct weir_span id, uint64_t *position)
{
	const char *at = id.at, *end = id.at + id.length;
	uint64_t ms, sequence;
	if (id.at == NULL || !read_part(&at, end, UINT64_C(1) << REDIS_TIME_BITS, &ms) || at == end || *at++ != '-' ||
	    !read_part(&at, end, UINT64_C(1) << REDIS_SEQUENCE_BITS, &sequence) || at != end)
		return false;
	*position = ms << REDIS_SEQUENCE_BITS | sequence;
	return true;
}

void redis_position_id(uint64_t position, char id[REDIS_ID_BYTES])
{
	snprintf(id, REDIS_ID_BYTES, "%" PRIu64 "-%" PRIu64, position >> REDIS_SEQUENCE_BITS,
	         position & ((UINT64_C(1) << REDIS_SEQUENCE_BITS) - 1));
}

bool redis_id_number(struct weir_span id, uint64_t *number)
{
	const char *at = id.at, *end = id.at + id.length;
	uint64_t ms;
	return id.at != NULL && read_part(&at, end, UINT64_C(1) << REDIS_TIME_BITS, &ms) && at < end && *at++ == '-' &&
	       read_part(&at, end, UINT64_C(1) << 59, number) && at == end;
}

void redis_number_id(uint64_t position, uint64_t number, char id[REDIS_ID_BYTES])
{
	snprintf(id, REDIS_ID_BYTES, "%" PRIu64 "-%" PRIu64, position >> REDIS_SEQUENCE_BITS, number);
}

/* ---- JSON ---- */

/* As much of a string as there is room for. */
static void put_bytes(struct redis_entry *entry, struct weir_span bytes)
{
	size_t left = entry->line_max > entry->text.length ? entry->line_max - entry->text.length : 0;
	if (bytes.length > left) {
		entry->full = true;
		bytes.length = (uint32_t)left;
	}
	weir_text_json_bytes(&entry->text, bytes);
	entry->full |= entry->text.length > entry->line_max;
}

static void put_head(struct redis_entry *entry, struct weir_span key, int64_t ms)
{
	time_t second = (time_t)(ms / 1000);
	if (entry->second != second || entry->stamp[0] == '\0') {
		struct tm parts;
		gmtime_r(&second, &parts);
		strftime(entry->stamp, sizeof entry->stamp, "%Y-%m-%dT%H:%M:%S.", &parts);
		entry->second = second;
	}
	weir_text_puts(&entry->text, "{\"_stream\":");
	put_bytes(entry, key);
	weir_text_printf(&entry->text, ",\"time\":\"%s%03dZ\"", entry->stamp, (int)(ms % 1000));
}

void redis_entry_begin(struct redis_entry *entry, struct weir_span key, uint64_t position)
{
	weir_text_clear(&entry->text);
	entry->found = entry->wanted = entry->full = false;
	entry->names[0] = '\0';
	if (entry->field != NULL)
		return;
	char id[REDIS_ID_BYTES];
	redis_position_id(position, id);
	put_head(entry, key, redis_position_ms(position));
	weir_text_printf(&entry->text, ",\"_id\":\"%s\"", id);
}

/* ---- fields ---- */

static bool is(struct weir_span name, const char *word)
{
	return weir_span_equal(name, weir_span_of(word));
}

/* For words about entries that lack the field: a few names, without what a terminal would obey. */
static void note_name(struct redis_entry *entry, struct weir_span name)
{
	size_t used = strlen(entry->names), room = sizeof entry->names - used - 1;
	if (room < 8)
		return;
	if (used > 0) {
		memcpy(entry->names + used, ", ", 2);
		used += 2;
		room -= 2;
	}
	for (uint32_t i = 0; i < name.length && i < room; i++)
		entry->names[used++] = name.at[i] >= 0x20 && name.at[i] < 0x7F ? name.at[i] : '?';
	entry->names[used] = '\0';
}

void redis_entry_name(struct redis_entry *entry, struct weir_span name)
{
	if (entry->field != NULL) {
		entry->wanted = !entry->found && is(name, entry->field);
		if (!entry->found && !entry->wanted)
			note_name(entry, name);
		return;
	}
	entry->wanted =
		!entry->full && !is(name, "_stream") && !is(name, "_id") && !is(name, "_event") && !is(name, "time");
	if (!entry->wanted)
		return;
	weir_text_puts(&entry->text, ",");
	put_bytes(entry, name);
	weir_text_puts(&entry->text, ":");
}

void redis_entry_value(struct redis_entry *entry, struct weir_span value, uint64_t whole)
{
	if (!entry->wanted)
		return;
	if (entry->field == NULL) {
		put_bytes(entry, value);
		entry->full |= whole > value.length;
		return;
	}
	entry->found = true;
	weir_text_append(&entry->text, value.at, value.length);
}

void redis_entry_end(struct redis_entry *entry)
{
	if (entry->field == NULL && !entry->full)
		weir_text_puts(&entry->text, "}");
}

void redis_entry_departed(struct redis_entry *entry, struct weir_span key, int64_t now_ms)
{
	weir_text_clear(&entry->text);
	put_head(entry, key, now_ms);
	weir_text_puts(&entry->text, ",\"_event\":\"departed\"}");
}

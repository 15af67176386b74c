/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines stay as text until they are written: their order by key bytes is
 * only known when all partitions have been read.
 */
#include "deploy/weir/inspect/state_lines.h"

#include "common/base/alloc.h"
#include "common/files/durable_file.h"
#include "common/json/json_writer.h"
#include "limiter/lane/decision.h"

#include <stdlib.h>

struct state_line {
	uint32_t zone;       /* its place in the policy */
	uint32_t key_length; /* the joined key stands before the line in the text */
	bool has_key;
	struct weir_fingerprint print;
	size_t at;
	uint32_t length;
	const char *text; /* set when the lines are sorted: key and line, `at` counted in */
};

struct state_lines {
	struct weir_text text;
	struct state_line *lines;
	size_t count, capacity;
};

struct state_lines *state_lines_new(void)
{
	return weir_alloc(1, sizeof(struct state_lines));
}

void state_lines_free(struct state_lines *lines)
{
	if (lines == NULL)
		return;
	weir_text_deinit(&lines->text);
	free(lines->lines);
	free(lines);
}

/* ---- one line ---- */

/* A time, null where there is none. */
static void put_time(struct weir_json_writer *json, const char *name, int64_t time_ms)
{
	if (time_ms >= 0)
		weir_json_write_int(json, name, time_ms);
	else
		weir_json_write_null(json, name);
}

/* @param shown  as its algorithm writes it; empty where nothing was recorded */
static void put_limit(struct weir_json_writer *json, const struct weir_text *shown)
{
	if (shown->length > 0)
		weir_text_append(weir_json_write_value(json, NULL), shown->at, shown->length);
	else
		weir_json_write_null(json, NULL);
}

static void put_bucket(struct weir_text *text, const struct shard_bucket *bucket, struct weir_span key,
                       uint32_t partition)
{
	const struct weir_zone *zone = bucket->zone->zone;
	struct weir_json_writer json = weir_json_writer(text);
	char hash[WEIR_FINGERPRINT_DIGITS + 1];
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "zone", zone->name);
	if (key.at != NULL) {
		decision_key_json(weir_json_write_value(&json, "key"), zone, key);
	} else {
		weir_fingerprint_words(bucket->print, hash);
		weir_json_write_words(&json, "key_hash", hash);
	}
	weir_json_write_uint(&json, "partition", partition);
	put_time(&json, "blocked_at", bucket->decided_at_ms);
	put_time(&json, "blocked_until", bucket->decided_until_ms);
	if (zone->block_list_count > 0)
		weir_json_write_uint(&json, "blocks", bucket->decided_nth);
	weir_json_write_array(&json, "limits");
	for (uint32_t i = 0; i < bucket->limit_count; i++)
		put_limit(&json, &bucket->limits[i]);
	weir_json_write_end(&json);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}

/* ---- all lines ---- */

static bool holds_nothing(const struct shard_bucket *bucket)
{
	bool recorded = bucket->decided_until_ms >= 0;
	for (uint32_t i = 0; i < bucket->limit_count; i++)
		recorded |= bucket->limits[i].length > 0;
	return !recorded;
}

void state_lines_add(struct state_lines *lines, const struct shard_bucket *bucket, struct weir_span key,
                     uint32_t partition)
{
	if (holds_nothing(bucket))
		return;
	if (lines->count == lines->capacity) {
		lines->capacity = lines->capacity == 0 ? 1024 : lines->capacity * 2;
		lines->lines = weir_realloc(lines->lines, lines->capacity, sizeof *lines->lines);
	}
	struct state_line *line = &lines->lines[lines->count++];
	*line = (struct state_line){.zone = bucket->zone->order,
	                            .key_length = key.length,
	                            .has_key = key.at != NULL,
	                            .print = bucket->print,
	                            .at = lines->text.length};
	if (line->has_key)
		weir_text_append(&lines->text, key.at, key.length);
	size_t from = lines->text.length;
	put_bucket(&lines->text, bucket, key, partition);
	line->length = (uint32_t)(lines->text.length - from);
}

static int compare_lines(const void *a, const void *b)
{
	const struct state_line *left = a, *right = b;
	if (left->zone != right->zone)
		return left->zone < right->zone ? -1 : 1;
	if (left->has_key != right->has_key)
		return left->has_key ? -1 : 1;
	uint32_t length = left->key_length < right->key_length ? left->key_length : right->key_length;
	int order = left->has_key && length > 0 ? memcmp(left->text, right->text, length) : 0;
	if (order != 0)
		return order;
	if (left->key_length != right->key_length)
		return left->key_length < right->key_length ? -1 : 1;
	return weir_fingerprint_compare(&left->print, &right->print);
}

void state_lines_sort(struct state_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		lines->lines[i].text = lines->text.at + lines->lines[i].at;
	if (lines->count > 0)
		qsort(lines->lines, lines->count, sizeof *lines->lines, compare_lines);
}

int state_lines_write(struct state_lines *lines, int fd)
{
	enum { WRITE_BYTES = 64 * 1024 };
	struct weir_text out = {0};
	int result = 0;
	for (size_t i = 0; i <= lines->count && result == 0; i++) {
		size_t written;
		if (i == lines->count || out.length >= WRITE_BYTES) {
			result = weir_write_all(fd, out.at, out.length, &written);
			weir_text_clear(&out);
		}
		if (i < lines->count) {
			const struct state_line *line = &lines->lines[i];
			weir_text_append(&out, line->text + line->key_length, line->length);
		}
	}
	weir_text_deinit(&out);
	weir_text_clear(&lines->text);
	lines->count = 0;
	return result;
}

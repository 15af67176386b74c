/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nginx-map, nginx-geo: a map's or a geo's body that nginx includes, and a
 * command that makes it read it again. nginx has no other way in; so changes
 * are gathered for a second, but for the first few.
 *
 * A map compares texts, by a hash that clients can aim at: what would overfill one
 * of its buckets is left out. A geo takes addresses and networks, of which the
 * longest that matches counts, and nothing else: one other key would spoil it.
 */
#include "deploy/gateways/target/nginx/target_nginx.h"

#include "common/base/alloc.h"
#include "deploy/gateways/target/file/target_file.h"
#include "deploy/gateways/target/nginx/nginx_map.h"

#include <stdlib.h>

enum { INTERVAL_MS = 1000, BURST = 4, CHECK_MS = 1000 };

static const char map_kind[] = "nginx-map", geo_kind[] = "nginx-geo";

static int compare(const void *a, const void *b)
{
	const struct block_entry *x = *(const struct block_entry *const *)a, *y = *(const struct block_entry *const *)b;
	int order = nginx_map_compare(block_entry_key(x), block_entry_key(y));
	/* Of the same, the one that ends last comes first. */
	return order != 0 ? order : (x->until_ms < y->until_ms) - (x->until_ms > y->until_ms);
}

static bool fits(const struct target *target, const struct block_table *table, const struct block_entry *entry)
{
	char text[NGINX_GEO_KEY_BYTES];
	struct weir_span key = block_entry_key(entry);
	return target->ops->kind == geo_kind ? nginx_geo_key(key, block_table_has_operators(table, key), text)
	                                     : nginx_map_fits(key);
}

static const struct block_entry **sorted(struct file_target *file, const struct block_table *table, size_t *count)
{
	const struct block_entry **entries =
		weir_alloc((size_t)block_table_count(table) + 1, sizeof(const struct block_entry *));
	struct block_walk walk = {0};
	const struct block_entry *entry;
	*count = 0;
	while ((entry = block_table_next(table, &walk)) != NULL) {
		if (fits(&file->target, table, entry))
			entries[(*count)++] = entry;
		else
			weir_counter_add(&file->target.unfit, 1);
	}
	qsort(entries, *count, sizeof(const struct block_entry *), compare);
	return entries;
}

static void write_line(struct file_target *file, const struct block_entry *entry)
{
	char text[NGINX_GEO_KEY_BYTES];
	struct weir_span key = block_entry_key(entry);
	if (file->target.ops->kind == geo_kind && nginx_geo_key(key, true, text)) /* it fits */
		key = weir_span_of(text);
	nginx_map_line(&file->file.buffer, key, entry->until_ms);
}

static enum weir_status copy(struct target *target, const struct block_table *table, int64_t now_ms,
                             struct weir_error *error)
{
	(void)now_ms;
	struct file_target *file = (struct file_target *)target;
	enum weir_status status = list_file_begin(&file->file, error);
	if (status != WEIR_OK)
		return status;
	size_t count;
	uint64_t bytes = 0;
	struct nginx_map_buckets buckets;
	const struct block_entry **entries = sorted(file, table, &count);
	for (size_t i = 0; i < count; i++)
		bytes += nginx_map_bytes(block_entry_key(entries[i]));
	nginx_map_buckets_init(&buckets, bytes);
	for (size_t i = 0; i < count; i++) {
		struct weir_span key = block_entry_key(entries[i]);
		if (i > 0 && nginx_map_compare(block_entry_key(entries[i - 1]), key) == 0)
			continue;
		if (target->ops->kind == map_kind && !nginx_map_buckets_take(&buckets, key)) {
			weir_counter_add(&target->unfit, 1);
			continue;
		}
		write_line(file, entries[i]);
		list_file_flow(&file->file);
	}
	nginx_map_buckets_deinit(&buckets);
	free(entries);
	return file_target_end(file, error);
}

static enum weir_status age(struct target *target, int64_t now_ms, struct weir_error *error)
{
	return file_target_age((struct file_target *)target, nginx_map_read, now_ms, error);
}

/* ---- read back ---- */

/* nginx tells no case apart. */
static void put_folded(struct weir_text *words, const char *at, size_t length)
{
	size_t from = words->length;
	weir_text_append(words, at, length);
	for (size_t i = from; i < words->length; i++)
		if (words->at[i] >= 'A' && words->at[i] <= 'Z')
			words->at[i] = (char)(words->at[i] + ('a' - 'A'));
}

/* The key as the line has it, with its quotes. */
static size_t key_length(const char *at, const char *end)
{
	const char *key_end = at + 1;
	while (key_end < end && *key_end != '"')
		key_end += *key_end == '\\' && key_end + 1 < end ? 2 : 1;
	return (size_t)(key_end - at) + (key_end < end);
}

static enum weir_status read_back(struct target *target, int64_t end_ms, target_seen *seen, void *context,
                                  struct target_reading *reading, struct weir_error *error)
{
	(void)end_ms;
	struct weir_text words = {0};
	struct weir_span text;
	char *bytes = NULL;
	int64_t until_ms;
	enum weir_status status = file_target_bytes((struct file_target *)target, &bytes, &text, reading, error);
	if (status != WEIR_OK)
		return status;
	reading->without_zones = true;
	const char *at = text.at, *end = text.at + text.length;
	for (const char *from = at; at < end && nginx_map_read(&at, end, &until_ms); from = at) {
		weir_text_clear(&words);
		put_folded(&words, from, key_length(from, at));
		seen(context, weir_text_span(&words));
	}
	if (at < end)
		seen(context, weir_span_of("lines that weir did not write"));
	weir_text_deinit(&words);
	free(bytes);
	return WEIR_OK;
}

static bool spell(struct target *target, const struct block_table *table, const struct block_entry *entry,
                  struct weir_text *words)
{
	char address[NGINX_GEO_KEY_BYTES];
	struct weir_text line = {0};
	struct weir_span key = block_entry_key(entry);
	if (!fits(target, table, entry))
		return false;
	if (target->ops->kind == geo_kind && nginx_geo_key(key, true, address))
		key = weir_span_of(address);
	nginx_map_line(&line, key, entry->until_ms);
	put_folded(words, line.at, key_length(line.at, line.at + line.length));
	weir_text_deinit(&line);
	return true;
}

#define OPS(the_kind)                                                                                                 \
	{                                                                                                                 \
		.kind = (the_kind), .interval_ms = INTERVAL_MS, .burst = BURST, .copies_only = true, .may_reload = true,      \
		.check_after_ms = CHECK_MS, .copy = copy, .check = file_target_check, .age = age, .close = file_target_close, \
		.lists = file_target_lists, .read = read_back, .spell = spell,                                                \
	}

static const struct target_ops map_ops = OPS(map_kind), geo_ops = OPS(geo_kind);

enum weir_status target_nginx_map_make(const char *rest, const struct target_options *options, struct target **target,
                                       struct weir_error *error)
{
	return file_target_make(&map_ops, rest, options, target, error);
}

enum weir_status target_nginx_geo_make(const char *rest, const struct target_options *options, struct target **target,
                                       struct weir_error *error)
{
	return file_target_make(&geo_ops, rest, options, target, error);
}

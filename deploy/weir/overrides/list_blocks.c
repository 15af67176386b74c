/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions say who is blocked, by whom and until when, and of each bucket the
 * newest counts (deploy/gateways/table/block_table.h).
 *
 * On one machine the log's decisions are removed once the decisions file has
 * them, so a block that runs for long may be missing there. What operators block
 * is in the checkpoint with its key: it is taken in first, as older than any
 * decision. A limit's block is there with a hash of its key only: those that no
 * decision names are listed by it.
 */
#include "deploy/weir/overrides/list_blocks.h"

#include "common/base/alloc.h"
#include "common/json/json_writer.h"
#include "deploy/weir/backend/policy_apply.h"
#include "deploy/weir/inspect/state_overrides.h"
#include "deploy/weir/inspect/state_read.h"
#include "deploy/weir/inspect/topic_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { UNNAMED_MAX = 1000000 };

struct reading {
	struct backend *backend;
	const struct list_filter *filter;
	struct list_blocks *blocks;
	const struct weir_policy *policy; /* the newest, NULL: none */
	int64_t now_ms;
	struct weir_fingerprint *named; /* of every bucket that some decision is about */
	size_t named_count, named_room;
	uint32_t unnamed_room;
	struct weir_text text;
};

static bool wanted(const struct list_filter *filter, struct weir_span zone, struct weir_span key)
{
	if (filter->zone != NULL && !weir_span_equal(zone, weir_span_of(filter->zone)))
		return false;
	struct weir_network asked, network;
	const char *why;
	return filter->key.at == NULL || weir_span_equal(key, filter->key) ||
	       (weir_network_parse(filter->key, &asked, &why) && weir_network_parse(key, &network, &why) &&
	        network.prefix <= asked.prefix && weir_network_contains(&network, &asked.base));
}

/* The key that is asked for, as a zone has it: of an address, in the zone's spelling, or the network that it is in. */
static struct weir_span key_in_zone(const struct list_filter *filter, const struct weir_zone *zone,
                                    char text[WEIR_NETWORK_TEXT_BYTES])
{
	struct weir_network network;
	if (!weir_zone_counts_addresses(zone) || zone->key_count != 1 || !weir_address_parse(filter->key, &network.base))
		return filter->key;
	const struct weir_key_field *field = &zone->key[0];
	bool v4 = weir_address_is_v4(&network.base);
	uint8_t prefix4 = field->grouped ? field->prefix4 : 32, prefix6 = field->grouped ? field->prefix6 : 128;
	weir_address_mask(&network.base, prefix4, prefix6);
	network.prefix = v4 ? (uint8_t)(96 + prefix4) : prefix6;
	if (network.prefix == 128)
		return (struct weir_span){.at = text, .length = weir_address_format(&network.base, text)};
	return weir_span_of(weir_network_format(&network, text));
}

/* ---- the state of one machine ---- */

/* An operator's block, as the decision that it published. */
static void take_block(struct reading *reading, uint32_t partition, const struct override *override,
                       const struct weir_zone *zone)
{
	struct weir_text *text = &reading->text;
	const struct override_setting *setting = &override->block;
	weir_text_clear(text);
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "zone", zone->name);
	state_override_key_json(weir_json_write_value(&json, "key"), zone, override);
	weir_json_write_words(&json, "action", "block");
	weir_json_write_int(&json, "at", setting->at_ms);
	weir_json_write_int(&json, "until", setting->until_ms);
	weir_json_write_string(&json, "by", weir_span_of(setting->by));
	weir_json_write_string(&json, "reason", weir_span_of(setting->reason));
	weir_json_write_words(&json, "mode", zone->mode == WEIR_SHADOW ? "shadow" : "enforce");
	weir_json_write_end(&json);
	struct decision_record record = {
		.partition = partition,
		.at_ms = setting->at_ms,
		.until_ms = setting->until_ms >= OVERRIDE_NO_END ? DECISION_NO_END : setting->until_ms,
		.zone = weir_span_of(zone->name),
		.key = override->key,
		.json = {.at = text->at, .length = (uint32_t)text->length},
	};
	block_table_apply(reading->blocks->table, &record, reading->now_ms);
}

static void take_overrides(void *context, uint32_t partition, const struct overrides *overrides)
{
	struct reading *reading = context;
	for (uint32_t i = 0; i < overrides->count; i++) {
		const struct override *override = overrides->list[i];
		const struct weir_zone *zone = weir_policy_zone(reading->policy, override->zone_id);
		if (zone == NULL || zone->mode == WEIR_SHADOW || !override->block.active ||
		    !overrides_publish(overrides, override->scope, override->key) ||
		    !wanted(reading->filter, weir_span_of(zone->name), override->key))
			continue;
		take_block(reading, partition, override, zone);
	}
}

/* The state keeps no keys, but of one that is asked for the fingerprint is known. */
static bool is_asked(const struct reading *reading, struct list_unnamed *bucket)
{
	char text[WEIR_NETWORK_TEXT_BYTES];
	if (reading->filter->key.at == NULL)
		return true;
	struct weir_span key = key_in_zone(reading->filter, bucket->zone, text);
	struct weir_fingerprint asked = weir_fingerprint(reading->backend->seed, bucket->zone->id, key);
	if (weir_fingerprint_compare(&asked, &bucket->print) != 0)
		return false;
	bucket->key = weir_copy(key.at, key.length);
	bucket->key_bytes = key.length;
	return true;
}

static void take_bucket(void *context, uint32_t partition, const struct shard_bucket *image)
{
	struct reading *reading = context;
	struct list_blocks *blocks = reading->blocks;
	const struct weir_zone *zone = image->zone->zone;
	struct list_unnamed bucket = {.zone = zone,
	                              .print = image->print,
	                              .partition = partition,
	                              .at_ms = image->decided_at_ms,
	                              .until_ms = image->decided_until_ms};
	if (bucket.until_ms <= reading->now_ms || zone->mode == WEIR_SHADOW ||
	    (reading->filter->zone != NULL && strcmp(reading->filter->zone, zone->name) != 0) ||
	    (reading->named_count > 0 && bsearch(&bucket.print, reading->named, reading->named_count, sizeof bucket.print,
	                                         weir_fingerprint_compare) != NULL) ||
	    !is_asked(reading, &bucket))
		return;
	if (blocks->unnamed_count == UNNAMED_MAX) {
		free(bucket.key);
		blocks->unnamed_left_out++;
		return;
	}
	if (blocks->unnamed_count == reading->unnamed_room) {
		reading->unnamed_room = reading->unnamed_room == 0 ? 64 : reading->unnamed_room * 2;
		blocks->unnamed = weir_realloc(blocks->unnamed, reading->unnamed_room, sizeof *blocks->unnamed);
	}
	blocks->unnamed[blocks->unnamed_count++] = bucket;
}

static enum weir_status read_state(struct reading *reading, bool buckets, struct weir_error *error)
{
	struct backend *backend = reading->backend;
	struct state_read read = {.store = backend->store,
	                          .registry = reading->blocks->registry,
	                          .seed = backend->seed,
	                          .lateness_ms = backend->lateness_ms,
	                          .each = buckets ? take_bucket : NULL,
	                          .overrides = buckets ? NULL : take_overrides,
	                          .context = reading};
	enum weir_status status = backend_partitions(backend, &read.partitions, error);
	for (uint32_t i = 0; status == WEIR_OK && i < read.partitions; i++)
		status = state_read_partition(&read, i, error);
	return status;
}

/* ---- decisions ---- */

/* Notes which bucket a decision is about, so that the state's own word for it is known. */
static void note_name(struct reading *reading, const struct decision_record *record)
{
	const struct weir_zone *zone = weir_policy_zone_named(reading->policy, record->zone);
	if (zone == NULL || record->whole_zone)
		return;
	if (reading->named_count == reading->named_room) {
		reading->named_room = reading->named_room == 0 ? 1024 : reading->named_room * 2;
		reading->named = weir_realloc(reading->named, reading->named_room, sizeof *reading->named);
	}
	reading->named[reading->named_count++] = weir_fingerprint(reading->backend->seed, zone->id, record->key);
}

static enum weir_status read_decisions(struct reading *reading, struct weir_error *error)
{
	struct topic_read *read;
	struct weir_message message;
	struct decision_record record;
	struct list_blocks *blocks = reading->blocks;
	bool is_local = reading->backend->bus == NULL;
	enum weir_status status = topic_read_open(reading->backend->bus, reading->backend->state_path, WEIR_TOPIC_DECISIONS,
	                                          WEIR_BUS_EVERY_PARTITION, 0, &read, error);
	if (status != WEIR_OK)
		return status;
	while ((status = topic_read_next(read, &message, error)) != WEIR_END) {
		if (status != WEIR_OK && status != WEIR_INVALID && !is_local)
			break;
		if (status != WEIR_OK || decision_record_parse(&message, &record, error) != WEIR_OK) {
			*(status != WEIR_OK && is_local ? &blocks->unread : &blocks->damaged) += 1;
			continue;
		}
		if (is_local)
			note_name(reading, &record);
		if (record.whole_zone || wanted(reading->filter, record.zone, record.key))
			block_table_apply(blocks->table, &record, reading->now_ms);
		block_table_settle(blocks->table);
	}
	topic_read_free(read);
	if (reading->named_count > 0)
		qsort(reading->named, reading->named_count, sizeof *reading->named, weir_fingerprint_compare);
	return status == WEIR_END ? WEIR_OK : status;
}

static int compare_spans(struct weir_span a, struct weir_span b)
{
	uint32_t length = a.length < b.length ? a.length : b.length;
	int order = length > 0 ? memcmp(a.at, b.at, length) : 0;
	return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

static int compare_entries(const void *a, const void *b)
{
	const struct block_entry *const *left = a, *const *right = b;
	int order = compare_spans(block_entry_zone(*left), block_entry_zone(*right));
	if (order == 0)
		order = ((*left)->at_ms > (*right)->at_ms) - ((*left)->at_ms < (*right)->at_ms);
	return order != 0 ? order : compare_spans(block_entry_key(*left), block_entry_key(*right));
}

static void collect(struct list_blocks *blocks, int64_t now_ms)
{
	struct block_walk walk = {0};
	const struct block_entry *entry;
	block_table_expire(blocks->table, now_ms);
	blocks->entries = weir_alloc(block_table_count(blocks->table), sizeof(const struct block_entry *));
	while ((entry = block_table_next(blocks->table, &walk)) != NULL)
		blocks->entries[blocks->count++] = entry;
	if (blocks->count > 0)
		qsort(blocks->entries, blocks->count, sizeof(const struct block_entry *), compare_entries);
}

enum weir_status list_blocks_check_zone(const struct backend *backend, const char *zone, struct weir_error *error)
{
	struct weir_policy_history history;
	if (zone == NULL)
		return WEIR_OK;
	enum weir_status status = weir_policy_history_load(backend->store, &history, error);
	if (status != WEIR_OK)
		return status;
	if (history.count > 0 &&
	    weir_policy_find_zone(history.policies[history.count - 1], weir_span_of(zone), error) == NULL)
		status = WEIR_INVALID;
	weir_policy_history_deinit(&history);
	return status;
}

enum weir_status list_blocks_read(struct backend *backend, const struct list_filter *filter, int64_t now_ms,
                                  struct list_blocks *blocks, struct weir_error *error)
{
	struct reading reading = {.backend = backend, .filter = filter, .blocks = blocks, .now_ms = now_ms};
	struct block_table_options options = {
		.partitions = WEIR_BUS_PARTITIONS_MAX, .max = BLOCK_TABLE_MAX_DEFAULT, .keep_json = true};
	*blocks = (struct list_blocks){.registry = policy_registry_new()};
	if (getrandom(&options.seed, sizeof options.seed, 0) != (ssize_t)sizeof options.seed)
		return weir_fail(error, WEIR_IO, "cannot get random bytes: %s", weir_errno_words(errno));
	blocks->table = block_table_new(&options);
	bool is_local = backend->kind != BACKEND_CLUSTER;
	enum weir_status status = is_local ? policy_log_load(backend->store, blocks->registry, error) : WEIR_OK;
	if (status == WEIR_OK && policy_registry_newest(blocks->registry) > 0)
		reading.policy = policy_registry_policy(blocks->registry, policy_registry_newest(blocks->registry));
	if (status == WEIR_OK && reading.policy != NULL)
		status = read_state(&reading, false, error);
	if (status == WEIR_OK && !backend->once)
		status = read_decisions(&reading, error);
	if (status == WEIR_OK && reading.policy != NULL)
		status = read_state(&reading, true, error);
	if (status == WEIR_OK)
		collect(blocks, now_ms);
	free(reading.named);
	weir_text_deinit(&reading.text);
	return status;
}

void list_blocks_deinit(struct list_blocks *blocks)
{
	block_table_free(blocks->table);
	policy_registry_free(blocks->registry);
	free(blocks->entries);
	for (uint32_t i = 0; i < blocks->unnamed_count; i++)
		free(blocks->unnamed[i].key);
	free(blocks->unnamed);
	*blocks = (struct list_blocks){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list with a hash index over it. Overrides are few and change seldom, while
 * every key of every frame asks whether there is one for it: so looking up is
 * one probe and one more for each length of prefix, and of network, that there
 * is, and changing may cost a walk over all. A key is read as an address only
 * where there are networks.
 */
#include "limiter/overrides/overrides.h"

#include "common/base/alloc.h"
#include "common/bytes/address.h"
#include "common/bytes/hash.h"

#include <stdlib.h>

enum { INDEX_LEAST = 16, RATE_ONE = 1000, MAPPED_BITS = 96 };

/* What the index knows an override by: its key, or its network in one form. */
static struct weir_span name_of(const struct override *override)
{
	if (override->scope != OVERRIDE_OF_NETWORK)
		return override->key;
	return (struct weir_span){.at = override->network, .length = OVERRIDE_NETWORK_BYTES};
}

/* A network's name. */
static struct weir_span network_name(const struct weir_network *network, char name[OVERRIDE_NETWORK_BYTES])
{
	memcpy(name, network->base.bytes, sizeof network->base.bytes);
	name[sizeof network->base.bytes] = (char)network->prefix;
	return (struct weir_span){.at = name, .length = OVERRIDE_NETWORK_BYTES};
}

static uint64_t hash_of(uint32_t zone_id, enum override_scope scope, struct weir_span name)
{
	uint64_t place = ((uint64_t)zone_id << 2 | scope) * UINT64_C(0x9e3779b97f4a7c15);
	return weir_hash64(name.at, name.length) ^ place;
}

static bool is_of(const struct override *override, uint32_t zone_id, enum override_scope scope, struct weir_span name)
{
	return override->zone_id == zone_id && override->scope == scope && weir_span_equal(name_of(override), name);
}

static struct override *find(const struct overrides *overrides, uint32_t zone_id, enum override_scope scope,
                             struct weir_span name)
{
	if (overrides->count == 0)
		return NULL;
	uint64_t hash = hash_of(zone_id, scope, name);
	for (uint32_t at = (uint32_t)hash & (overrides->index_room - 1); overrides->index[at] != 0;
	     at = (at + 1) & (overrides->index_room - 1)) {
		struct override *override = overrides->list[overrides->index[at] - 1];
		if (override->hash == hash && is_of(override, zone_id, scope, name))
			return override;
	}
	return NULL;
}

/* That of a key as commands write it. */
static struct override *find_written(const struct overrides *overrides, uint32_t zone_id, enum override_scope scope,
                                     struct weir_span key)
{
	char name[OVERRIDE_NETWORK_BYTES];
	struct weir_network network;
	if (scope == OVERRIDE_OF_NETWORK)
		key = override_network_parse(key, &network) ? network_name(&network, name) : (struct weir_span){0};
	return find(overrides, zone_id, scope, key);
}

/* The longest prefix of a key from some length on. @param from  place in the lengths; gives that behind the found */
static struct override *find_prefix(const struct overrides *overrides, uint32_t zone_id, struct weir_span key,
                                    uint32_t *from)
{
	while (*from < overrides->prefixes.count) {
		uint16_t length = overrides->prefixes.all[(*from)++];
		if (length > key.length)
			continue;
		struct override *override =
			find(overrides, zone_id, OVERRIDE_OF_PREFIX, (struct weir_span){.at = key.at, .length = length});
		if (override != NULL)
			return override;
	}
	return NULL;
}

/* The narrowest network that a key lies in, from some length on. @param from  as find_prefix() */
static struct override *find_network(const struct overrides *overrides, uint32_t zone_id,
                                     const struct weir_network *key, uint32_t *from)
{
	char name[OVERRIDE_NETWORK_BYTES];
	bool v4 = weir_address_is_v4(&key->base);
	while (*from < overrides->networks.count) {
		uint8_t length = (uint8_t)overrides->networks.all[(*from)++];
		if (length > key->prefix || (v4 && length < MAPPED_BITS))
			continue;
		struct weir_network wider = {.base = key->base, .prefix = length};
		weir_address_mask(&wider.base, v4 ? (uint8_t)(length - MAPPED_BITS) : 0, length);
		struct override *override = find(overrides, zone_id, OVERRIDE_OF_NETWORK, network_name(&wider, name));
		if (override != NULL)
			return override;
	}
	return NULL;
}

/* A key as what may lie in networks. @return false: there are none, or it is no address */
static bool read_address(const struct overrides *overrides, struct weir_span key, struct weir_network *network)
{
	const char *why;
	return overrides->networks.count > 0 && weir_network_parse(key, network, &why);
}

bool overrides_touch(const struct overrides *overrides, uint32_t zone_id, struct weir_span key)
{
	uint32_t from = 0;
	struct weir_network network;
	if (find(overrides, zone_id, OVERRIDE_OF_KEY, key) != NULL || find_prefix(overrides, zone_id, key, &from) != NULL)
		return true;
	from = 0;
	return read_address(overrides, key, &network) && find_network(overrides, zone_id, &network, &from) != NULL;
}

static int64_t ended_at(const struct override_setting *setting)
{
	return setting->active && setting->until_ms < OVERRIDE_NO_END ? setting->until_ms : INT64_MAX;
}

/* Takes an override's block or allow if it is for an event of that time. @return whether it is */
static bool take_verdict(const struct override *override, int64_t t, struct override_effect *effect)
{
	effect->blocked = override->block.active && t < override->block.until_ms;
	effect->allowed = override->allow.active && t < override->allow.until_ms;
	return effect->blocked || effect->allowed;
}

/* Whether an override's rate is in force. Those that ended may still be there, as checks are judged before their clock is in the log. */
static bool has_rate(const struct override *override, int64_t clock_ms)
{
	return override->rate.active && clock_ms < ended_at(&override->rate);
}

struct override_effect overrides_effect(const struct overrides *overrides, uint32_t zone_id, struct weir_span key,
                                        int64_t t, int64_t clock_ms)
{
	struct override_effect effect = {.thousandths = RATE_ONE};
	uint32_t from = 0;
	struct weir_network network;
	const struct override *override = find(overrides, zone_id, OVERRIDE_OF_KEY, key), *wider;
	if ((override == NULL || !take_verdict(override, t, &effect)) && read_address(overrides, key, &network))
		while ((wider = find_network(overrides, zone_id, &network, &from)) != NULL && !take_verdict(wider, t, &effect))
			continue;
	from = 0;
	if (override == NULL || !has_rate(override, clock_ms))
		while ((override = find_prefix(overrides, zone_id, key, &from)) != NULL && !has_rate(override, clock_ms))
			continue;
	if (override != NULL)
		effect.thousandths = override->thousandths;
	return effect;
}

const struct override *overrides_next(const struct overrides *overrides, uint32_t zone_id, struct weir_span key,
                                      int64_t t, struct overrides_walk *walk)
{
	struct override_effect effect;
	struct weir_network network;
	const struct override *override = walk->begun ? NULL : find(overrides, zone_id, OVERRIDE_OF_KEY, key);
	walk->begun = true;
	if (override != NULL && take_verdict(override, t, &effect))
		return override;
	if (!read_address(overrides, key, &network))
		return NULL;
	while ((override = find_network(overrides, zone_id, &network, &walk->from)) != NULL)
		if (take_verdict(override, t, &effect))
			return override;
	return NULL;
}

const struct override_setting *overrides_block_after(const struct overrides *overrides, uint32_t zone_id,
                                                     enum override_scope scope, struct weir_span key, int64_t at_ms)
{
	const struct override *override = find_written(overrides, zone_id, scope, key);
	return override != NULL && override->block.active && override->block.until_ms > at_ms ? &override->block : NULL;
}

bool overrides_publish(const struct overrides *overrides, enum override_scope scope, struct weir_span key)
{
	return scope != OVERRIDE_OF_NETWORK || overrides->partitions <= 1 ||
	       weir_partition(weir_slot(key), overrides->partitions) == overrides->partition;
}

/* ---- changing ---- */

static size_t setting_bytes(const struct override_setting *setting)
{
	return setting->active ? strlen(setting->by) + strlen(setting->reason) + 2 : 0;
}

static void clear_setting(struct overrides *overrides, struct override_setting *setting)
{
	overrides->bytes -= setting_bytes(setting);
	free(setting->by);
	free(setting->reason);
	*setting = (struct override_setting){0};
}

void overrides_set(struct overrides *overrides, struct override_setting *setting, int64_t at_ms, int64_t until_ms,
                   uint64_t offset, const char *by, const char *reason)
{
	clear_setting(overrides, setting);
	*setting = (struct override_setting){.active = true,
	                                     .at_ms = at_ms,
	                                     .until_ms = until_ms,
	                                     .offset = offset,
	                                     .by = weir_copy(by, strlen(by)),
	                                     .reason = weir_copy(reason, strlen(reason))};
	overrides->bytes += setting_bytes(setting);
}

static void free_override(struct overrides *overrides, struct override *override)
{
	clear_setting(overrides, &override->block);
	clear_setting(overrides, &override->allow);
	clear_setting(overrides, &override->rate);
	overrides->bytes -= sizeof *override + override->key.length;
	free((char *) override->key.at);
	free(override);
}

void overrides_init(struct overrides *overrides, int64_t lateness_ms, uint32_t partition, uint32_t partitions)
{
	*overrides = (struct overrides){
		.lateness_ms = lateness_ms, .next_end_ms = INT64_MAX, .partition = partition, .partitions = partitions};
}

void overrides_deinit(struct overrides *overrides)
{
	for (uint32_t i = 0; i < overrides->count; i++)
		free_override(overrides, overrides->list[i]);
	free(overrides->list);
	free(overrides->index);
	free(overrides->prefixes.all);
	free(overrides->networks.all);
	overrides_init(overrides, overrides->lateness_ms, overrides->partition, overrides->partitions);
}

static void index_add(struct overrides *overrides, uint32_t place)
{
	uint32_t at = (uint32_t)overrides->list[place]->hash & (overrides->index_room - 1);
	while (overrides->index[at] != 0)
		at = (at + 1) & (overrides->index_room - 1);
	overrides->index[at] = place + 1;
}

static void rebuild_index(struct overrides *overrides)
{
	uint32_t room = INDEX_LEAST;
	while (room < overrides->room * 2)
		room *= 2;
	free(overrides->index);
	overrides->index = weir_alloc(room, sizeof *overrides->index);
	overrides->index_room = room;
	for (uint32_t i = 0; i < overrides->count; i++)
		index_add(overrides, i);
}

struct override *overrides_make(struct overrides *overrides, uint32_t zone_id, enum override_scope scope,
                                struct weir_span key)
{
	struct override *override = find_written(overrides, zone_id, scope, key);
	struct weir_network network;
	if (override != NULL)
		return override;
	override = weir_alloc(1, sizeof *override);
	*override = (struct override){.zone_id = zone_id,
	                              .scope = scope,
	                              .key = {.at = weir_copy(key.at, key.length), .length = key.length},
	                              .thousandths = RATE_ONE};
	if (scope == OVERRIDE_OF_NETWORK && override_network_parse(key, &network))
		network_name(&network, override->network);
	override->hash = hash_of(zone_id, scope, name_of(override));
	overrides->bytes += sizeof *override + key.length;
	if (overrides->count == overrides->room) {
		overrides->room = overrides->room == 0 ? INDEX_LEAST : overrides->room * 2;
		overrides->list = weir_realloc(overrides->list, overrides->room, sizeof(struct override *));
		rebuild_index(overrides);
	}
	overrides->list[overrides->count++] = override;
	index_add(overrides, overrides->count - 1);
	return override;
}

static int longer_first(const void *a, const void *b)
{
	const uint16_t *left = a, *right = b;
	return (*left < *right) - (*left > *right);
}

static void note_lengths_of(const struct overrides *overrides, enum override_scope scope,
                            struct override_lengths *lengths)
{
	uint32_t count = 0, each = 0;
	lengths->all = weir_realloc(lengths->all, overrides->count, sizeof *lengths->all);
	for (uint32_t i = 0; i < overrides->count; i++) {
		const struct override *override = overrides->list[i];
		if (override->scope == scope)
			lengths->all[count++] = scope == OVERRIDE_OF_NETWORK
			                            ? (unsigned char) override->network[OVERRIDE_NETWORK_BYTES - 1]
			                            : (uint16_t) override->key.length;
	}
	if (count > 0)
		qsort(lengths->all, count, sizeof *lengths->all, longer_first);
	for (uint32_t i = 0; i < count; i++)
		if (i == 0 || lengths->all[i] != lengths->all[each - 1])
			lengths->all[each++] = lengths->all[i];
	lengths->count = each;
}

static void note_lengths(struct overrides *overrides)
{
	note_lengths_of(overrides, OVERRIDE_OF_PREFIX, &overrides->prefixes);
	note_lengths_of(overrides, OVERRIDE_OF_NETWORK, &overrides->networks);
}

/* The first clock at which a block or an allow is forgotten, INT64_MAX: never. */
static int64_t forgotten_at(const struct overrides *overrides, const struct override_setting *setting)
{
	if (!setting->active || setting->until_ms >= OVERRIDE_NO_END || overrides->lateness_ms < 0)
		return INT64_MAX;
	return setting->until_ms + overrides->lateness_ms + 1;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* When something of an override ends first. */
static int64_t next_end(const struct overrides *overrides, const struct override *override)
{
	int64_t verdict = earlier(forgotten_at(overrides, &override->block), forgotten_at(overrides, &override->allow));
	return earlier(verdict, ended_at(&override->rate));
}

void overrides_settle(struct overrides *overrides)
{
	overrides->next_end_ms = INT64_MAX;
	for (uint32_t i = 0; i < overrides->count; i++)
		overrides->next_end_ms = earlier(overrides->next_end_ms, next_end(overrides, overrides->list[i]));
	note_lengths(overrides);
}

/* Takes out the overrides of which nothing is in force. */
static void drop_empty(struct overrides *overrides)
{
	uint32_t kept = 0, before = overrides->count;
	for (uint32_t i = 0; i < before; i++) {
		struct override *override = overrides->list[i];
		if (override->block.active || override->allow.active || override->rate.active)
			overrides->list[kept++] = override;
		else
			free_override(overrides, override);
	}
	overrides->count = kept;
	if (kept < before)
		rebuild_index(overrides);
	overrides_settle(overrides);
}

static void purge(struct overrides *overrides)
{
	int64_t clock_ms = overrides->clock_ms;
	if (overrides->count == 0 || clock_ms < overrides->next_end_ms)
		return;
	for (uint32_t i = 0; i < overrides->count; i++) {
		struct override *override = overrides->list[i];
		if (clock_ms >= forgotten_at(overrides, &override->block))
			clear_setting(overrides, &override->block);
		if (clock_ms >= forgotten_at(overrides, &override->allow))
			clear_setting(overrides, &override->allow);
		if (clock_ms >= ended_at(&override->rate))
			clear_setting(overrides, &override->rate);
	}
	drop_empty(overrides);
}

void overrides_advance(struct overrides *overrides, int64_t sent_ms)
{
	if (sent_ms > overrides->clock_ms)
		overrides->clock_ms = sent_ms;
	purge(overrides);
}

void overrides_keep_zones(struct overrides *overrides, bool (*in_force)(const void *context, uint32_t zone_id),
                          const void *context)
{
	if (overrides->count == 0)
		return;
	for (uint32_t i = 0; i < overrides->count; i++) {
		struct override *override = overrides->list[i];
		if (in_force(context, override->zone_id))
			continue;
		clear_setting(overrides, &override->block);
		clear_setting(overrides, &override->allow);
		clear_setting(overrides, &override->rate);
	}
	drop_empty(overrides);
}

/* Whether one more override, or longer words, would be too much. */
static bool is_full(const struct overrides *overrides, const struct override *known,
                    const struct override_command *command)
{
	size_t more = strlen(command->by) + strlen(command->reason) + 2;
	if (known == NULL)
		more += sizeof *known + command->key_length;
	return (known == NULL && overrides->count >= OVERRIDES_MAX) || overrides->bytes + more > OVERRIDES_BYTES_MAX;
}

static bool ends_something(const struct override_command *command, int64_t at_ms)
{
	switch (command->kind) {
	case OVERRIDE_LIFT: return true;
	case OVERRIDE_ALLOW: return command->until_ms <= at_ms;
	case OVERRIDE_RATE: return command->thousandths == RATE_ONE;
	default: return false;
	}
}

enum weir_status overrides_apply(struct overrides *overrides, uint32_t zone_id, const struct override_command *command,
                                 int64_t at_ms, struct weir_error *error)
{
	struct weir_span key = override_key(command);
	struct override *override = find_written(overrides, zone_id, command->scope, key);
	bool ends = ends_something(command, at_ms);
	if (!ends && is_full(overrides, override, command))
		return weir_fail(error, WEIR_FULL,
		                 "this partition holds %u overrides (%zu bytes); the limit is %d (%d bytes): lift some",
		                 overrides->count, overrides->bytes, OVERRIDES_MAX, OVERRIDES_BYTES_MAX);
	if (ends && override == NULL)
		return WEIR_OK;
	bool is_new = override == NULL;
	if (is_new)
		override = overrides_make(overrides, zone_id, command->scope, key);
	struct override_setting *setting = command->kind == OVERRIDE_RATE    ? &override->rate
	                                   : command->kind == OVERRIDE_ALLOW ? &override->allow
	                                                                     : &override->block;
	clear_setting(overrides, setting);
	if (command->kind == OVERRIDE_BLOCK)
		clear_setting(overrides, &override->allow);
	if (command->kind == OVERRIDE_ALLOW && !ends)
		clear_setting(overrides, &override->block);
	if (command->kind == OVERRIDE_RATE)
		override->thousandths = command->thousandths;
	if (ends) {
		drop_empty(overrides);
		return WEIR_OK;
	}
	overrides_set(overrides, setting, at_ms, command->until_ms, command->offset, command->by, command->reason);
	overrides->clock_ms = at_ms;
	/* What ended sooner and was replaced costs a walk too many later, not one now. */
	overrides->next_end_ms = earlier(overrides->next_end_ms, next_end(overrides, override));
	if (is_new && command->scope != OVERRIDE_OF_KEY)
		note_lengths(overrides);
	return WEIR_OK;
}

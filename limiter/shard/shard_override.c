/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators' commands: what each does to the overrides, and to the one bucket that
 * it is about; one for a network or a prefix is about none. They come through the
 * log like frames, and wait like frames if that bucket is not in memory.
 */
#include "limiter/shard/shard_copies.h"
#include "limiter/shard/shard_frame.h"
#include "limiter/shard/shard_reserve.h"

#include <assert.h>
#include <stddef.h>

static const struct compiled_zone *find_zone(const struct compiled_policy *compiled, const char *name)
{
	for (uint32_t i = 0; i < compiled_policy_zone_count(compiled); i++)
		if (strcmp(compiled_policy_zone_at(compiled, i)->zone->name, name) == 0)
			return compiled_policy_zone_at(compiled, i);
	return NULL;
}

void shard_advance_clock(struct shard *shard, int64_t sent_ms)
{
	assert(shard->work.frame == NULL);
	if (sent_ms > shard->clock_ms)
		shard->clock_ms = sent_ms;
	overrides_advance(&shard->overrides, sent_ms);
}

enum weir_status shard_command_begin(struct shard *shard, const struct override_command *command, int64_t at_ms,
                                     struct weir_error *error)
{
	struct shard_frame *work = &shard->work;
	assert(work->frame == NULL);
	const struct compiled_zone *zone = find_zone(shard->compiled, command->zone);
	if (zone == NULL)
		return weir_fail(error, WEIR_INVALID, "%s: there is no zone \"%s\" in policy %llu",
		                 override_kind_name(command->kind), command->zone,
		                 (unsigned long long)compiled_policy_version(shard->compiled));
	enum weir_status status = override_command_check(command, zone->zone, error);
	if (status != WEIR_OK)
		return status;
	if (command->kind != OVERRIDE_ALLOW && command->until_ms <= at_ms)
		return weir_fail(error, WEIR_INVALID, "%s: its end (%lld) is not after its start (%lld)",
		                 override_kind_name(command->kind), (long long)command->until_ms, (long long)at_ms);
	shard_advance_clock(shard, at_ms);
	work->clock_ms = shard->clock_ms;
	work->frame = &work->no_events;
	work->command = command;
	work->command_at_ms = at_ms;
	work->command_zone = zone;
	work->lookup_count = work->asked = work->guessed = work->fetched = 0;
	if (command->kind != OVERRIDE_RATE && command->scope == OVERRIDE_OF_KEY)
		shard_command_look_up(shard, zone, override_key(command));
	return WEIR_OK;
}

/* The bucket that the command is about; NULL: there is none, or it is forgotten. */
static struct bucket *find_bucket(struct shard *shard, struct lookup *lookup)
{
	if (lookup->state == LOOKUP_NEW)
		shard_guess(shard, lookup);
	if (lookup->state == LOOKUP_GUESSED)
		shard_make_sure(shard, lookup);
	return lookup->bucket;
}

/* How many blocks of the key count when its last one is taken back, which is done once. */
static uint32_t blocks_left(struct shard *shard, struct bucket *bucket)
{
	if (shard_blocked_until(shard, bucket) == 0)
		return 0;
	const uint8_t *decided = bucket_decided(bucket);
	return decided_nth(decided, bucket->flags) - (bucket_blocked_until(bucket) > weir_time_get(decided));
}

/*
 * Replaces the bucket by an empty one, which knows the key's earlier blocks where they count. Dropping it would not do:
 * the store may have it, and it would come back.
 */
static void empty_bucket(struct shard *shard, struct lookup *lookup)
{
	struct bucket_work work;
	uint32_t blocks = lookup->zone->zone->block_list_count > 0 ? blocks_left(shard, lookup->bucket) : 0;
	int64_t blocked_at_ms = blocks > 0 ? weir_time_get(bucket_decided(lookup->bucket)) : 0;
	shard_open(shard, NULL, lookup->low, lookup->high, lookup->zone->layout, 1, &work);
	work.view.bucket->clock_s = shard_noted_clock(shard->clock_ms);
	if (blocks > 0)
		bucket_keep_blocks(&work, blocked_at_ms, blocks);
	lookup->ref = shard_place(shard, work.view.bucket, work.view.layout, lookup->ref);
	shard_set_dirty(shard, slab_at(&shard->slab, lookup->ref), lookup->ref);
}

/* Ends the bucket's last decision, if it is still in force. @return whether it was */
static bool end_block(struct shard *shard, struct lookup *lookup, int64_t at_ms)
{
	struct bucket *bucket = lookup->bucket;
	if (shard_blocked_until(shard, bucket) <= at_ms)
		return false;
	uint8_t *decided = bucket_decided(bucket);
	int64_t decided_at_ms = weir_time_get(decided);
	weir_time_put(decided + WEIR_TIME_BYTES, decided_at_ms > at_ms ? decided_at_ms : at_ms);
	shard_set_dirty(shard, bucket, lookup->ref);
	return true;
}

/*
 * What reservations took is gone, or was counted at other rates: they give nothing back. Whose key has a prefix is not
 * known: all of the zone.
 */
static void void_reservations(struct shard *shard)
{
	const struct override_command *command = shard->work.command;
	uint32_t zone_id = shard->work.command_zone->zone->id;
	if (command->scope != OVERRIDE_OF_KEY) {
		shard_void_zone(shard, zone_id);
		return;
	}
	struct weir_fingerprint print = weir_fingerprint(shard->options.seed, zone_id, override_key(command));
	shard_void_bucket(shard, print.low, print.high);
}

/*
 * Applies the command to its bucket.
 *
 * @param lookup    NULL: it is about none
 * @param decision  its end and `lift` are set
 * @return whether it is published
 */
static bool apply_to_bucket(struct shard *shard, struct lookup *lookup, bool was_blocked,
                            struct shard_override_decision *decision)
{
	const struct override_command *command = shard->work.command;
	struct bucket *bucket = lookup != NULL ? find_bucket(shard, lookup) : NULL;
	int64_t blocked_until_ms = bucket != NULL ? shard_blocked_until(shard, bucket) : 0;
	decision->lift = command->kind != OVERRIDE_BLOCK;
	decision->until_ms = decision->at_ms;
	switch (command->kind) {
	case OVERRIDE_BLOCK:
		decision->until_ms = command->until_ms > blocked_until_ms ? command->until_ms : blocked_until_ms;
		return true;
	case OVERRIDE_LIFT:
		if (bucket != NULL)
			empty_bucket(shard, lookup);
		return true;
	case OVERRIDE_ALLOW:
		if (command->until_ms <= decision->at_ms)
			return false;
		return (bucket != NULL && end_block(shard, lookup, decision->at_ms)) || was_blocked;
	default: return false;
	}
}

enum weir_status shard_command_apply(struct shard *shard, const struct shard_override_decision **decision,
                                     struct weir_error *error)
{
	struct shard_frame *work = &shard->work;
	const struct override_command *command = work->command;
	uint32_t zone_id = work->command_zone->zone->id;
	assert(work->frame == &work->no_events);
	*decision = NULL;
	work->override_decision = (struct shard_override_decision){.zone = work->command_zone->zone,
	                                                           .key = override_key(command),
	                                                           .at_ms = work->command_at_ms,
	                                                           .by = command->by,
	                                                           .reason = command->reason};
	bool was_blocked = overrides_block_after(&shard->overrides, zone_id, command->scope, override_key(command),
	                                         work->command_at_ms) != NULL;
	struct lookup *lookup = work->lookup_count > 0 ? &work->lookups[0] : NULL;
	enum weir_status status = overrides_apply(&shard->overrides, zone_id, command, work->command_at_ms, error);
	if (status == WEIR_OK && (command->kind == OVERRIDE_RATE || (command->kind == OVERRIDE_LIFT && lookup != NULL)))
		void_reservations(shard);
	if (status == WEIR_OK && command->kind != OVERRIDE_RATE &&
	    apply_to_bucket(shard, lookup, was_blocked, &work->override_decision) &&
	    overrides_publish(&shard->overrides, command->scope, override_key(command)))
		*decision = &work->override_decision;
	if (status == WEIR_OK)
		shard_checks_set_back(shard);
	if (status == WEIR_OK && lookup != NULL)
		shard_copy_again(shard, lookup->zone, override_key(command));
	else if (status == WEIR_OK && command->scope == OVERRIDE_OF_NETWORK && shard->checks != NULL)
		copies_outdate(shard->checks); /* whose keys lie in it is not known */
	work->frame = NULL;
	work->command = NULL;
	shard_tidy(shard);
	return status;
}

const struct overrides *shard_overrides(const struct shard *shard)
{
	return &shard->overrides;
}

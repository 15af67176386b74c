/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reservation is a check that was counted at its estimate. When it is settled, the bucket gives back what was too much,
 * or takes what was too little. Both follow from the log alone: what is open is a part of the shard's state.
 */
#include "limiter/shard/shard_reserve.h"
#include "limiter/shard/shard_copies.h"
#include "limiter/shard/shard_frame.h"

bool shard_find_correction(const struct reservations *reservations, const uint8_t *id, uint64_t low, uint32_t high,
                           int64_t t, int64_t cost, const struct override_effect *effect,
                           struct bucket_correction *correction)
{
	const struct reservation *found = reservations_find(reservations, id, t);
	if (found == NULL || found->low != low || found->high != high)
		return false;
	*correction = (struct bucket_correction){.t = found->t, .cost = found->cost, .more = cost - found->cost};
	bool gives_back = found->counts && found->thousandths == effect->thousandths;
	if (correction->more < 0 ? !gives_back : effect->allowed)
		correction->more = 0;
	return true;
}

static struct override_effect effect_of(struct shard *shard, const struct lookup *lookup,
                                        const struct weir_frame_event *event)
{
	if (!lookup->overridden)
		return (struct override_effect){.thousandths = SCALE_ONE};
	return overrides_effect(&shard->overrides, lookup->zone->zone->id, shard->work.frame->keys[event->key],
	                        event->time_ms, shard->overrides.clock_ms);
}

static int64_t barred_until(struct shard *shard, const struct lookup *lookup, const struct weir_frame_event *event)
{
	if (!lookup->overridden)
		return 0;
	const struct override_setting *block =
		overrides_block_after(&shard->overrides, lookup->zone->zone->id, OVERRIDE_OF_KEY,
	                          shard->work.frame->keys[event->key], event->time_ms);
	return block != NULL ? block->until_ms : 0;
}

/* @return whether the bucket has changed */
static bool correct(struct shard *shard, struct lookup *lookup, const struct weir_frame_event *event,
                    const struct bucket_correction *correction, uint32_t thousandths, struct bucket_verdict *verdict)
{
	struct bucket_work work;
	const struct layout *layout = shard_layout(shard, lookup->zone->layout->id, thousandths);
	shard_open(shard, lookup->bucket, lookup->low, lookup->high, layout, correction->more > 0 ? correction->more : 1,
	           &work);
	work.sent_ms = shard->work.frame->sending_time_ms;
	bucket_correct(&work, lookup->zone->zone, event->time_ms, correction, barred_until(shard, lookup, event), verdict);
	if (work.moved && work.changed) {
		lookup->ref = shard_place(shard, work.view.bucket, work.view.layout, lookup->ref);
		lookup->bucket = slab_at(&shard->slab, lookup->ref);
	}
	return work.changed;
}

bool shard_settle(struct shard *shard, struct lookup *lookup, const struct weir_frame_event *event,
                  const struct weir_frame_reservation *named, struct bucket_correction *correction,
                  struct bucket_verdict *verdict)
{
	struct override_effect effect = effect_of(shard, lookup, event);
	verdict->bits = 0;
	if (!shard_find_correction(&shard->reserved, named->id, lookup->low, lookup->high, event->time_ms, event->cost,
	                           &effect, correction))
		return false;
	reservations_remove(&shard->reserved, named->id);
	if (shard->checks != NULL)
		reservations_remove(&shard->checks->open, named->id);
	shard_look_closer(shard, lookup);
	bool changed = false;
	if (correction->more > 0 || (correction->more < 0 && lookup->bucket != NULL))
		changed = correct(shard, lookup, event, correction, effect.thousandths, verdict);
	if (lookup->bucket == NULL)
		return true;
	uint32_t clock_s = shard_noted_clock(shard->work.clock_ms);
	if (!(lookup->bucket->flags & BUCKET_DIRTY) && (changed || lookup->bucket->clock_s != clock_s))
		shard_set_dirty(shard, lookup->bucket, lookup->ref);
	lookup->bucket->clock_s = clock_s;
	lookup->bucket->flags |= BUCKET_USED;
	return true;
}

void shard_open_reservation(struct shard *shard, const struct lookup *lookup, const struct weir_frame_event *event,
                            int64_t ttl_ms, unsigned bits, bool is_own)
{
	struct override_effect effect = effect_of(shard, lookup, event);
	bool recorded = !effect.allowed && (!(bits & WEIR_VERDICT_BLOCK) || lookup->zone->zone->count_all);
	struct reservation one = {
		.low = lookup->low,
		.high = lookup->high,
		.t = event->time_ms,
		.cost = recorded ? event->cost : 0,
		.ends_ms = event->time_ms + ttl_ms,
		.zone_id = lookup->zone->zone->id,
		.thousandths = effect.thousandths,
		.counts = true,
	};
	weir_reservation_id(shard->work.frame->source, event->position, one.id);
	(void)reservations_add(&shard->reserved, &one); /* beyond the bound its estimate stands */
	if (!is_own && shard->checks != NULL)
		(void)reservations_add(&shard->checks->open, &one);
}

void shard_void_bucket(struct shard *shard, uint64_t low, uint32_t high)
{
	reservations_void_bucket(&shard->reserved, low, high);
	if (shard->checks == NULL)
		return;
	reservations_void_bucket(&shard->checks->open, low, high);
	copies_outdate_one(shard->checks, low, high);
}

static void void_zone(struct shard *shard, uint32_t zone_id)
{
	reservations_void_zone(&shard->reserved, zone_id);
	if (shard->checks != NULL)
		reservations_void_zone(&shard->checks->open, zone_id);
}

void shard_void_zone(struct shard *shard, uint32_t zone_id)
{
	void_zone(shard, zone_id);
	if (shard->checks != NULL)
		copies_outdate(shard->checks);
}

static bool limits_stay(const struct weir_zone *zone, const struct weir_zone *next)
{
	bool stay = next != NULL && zone->limit_count == next->limit_count;
	for (uint32_t i = 0; stay && i < zone->limit_count; i++)
		stay = weir_limit_equal(&zone->limits[i], &next->limits[i]);
	return stay;
}

void shard_void_changed(struct shard *shard, const struct compiled_policy *next)
{
	for (uint32_t i = 0; shard->compiled != NULL && i < compiled_policy_zone_count(shard->compiled); i++) {
		const struct weir_zone *zone = compiled_policy_zone_at(shard->compiled, i)->zone;
		const struct compiled_zone *after = compiled_policy_zone(next, zone->id);
		if (!limits_stay(zone, after != NULL ? after->zone : NULL))
			void_zone(shard, zone->id); /* a policy outdates all copies */
	}
}

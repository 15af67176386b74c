/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The obvious overrides: a list of every command so far for each key or prefix, and
 * what holds of them by the words of the specification. The part of the obvious shard
 * (shard_model.h) that operators command.
 */
#ifndef TESTS_UNIT_OVERRIDE_MODEL_H
#define TESTS_UNIT_OVERRIDE_MODEL_H

#include "limiter/overrides/override_command.h"
#include "tests/unit/limit_model.h"

#include <assert.h>

enum { MODEL_OVERRIDES = 4096 };

/* What was commanded last for a key, a prefix or a network; an end of 0 holds for nothing. */
struct model_override {
	uint32_t zone_id;
	enum override_scope scope;
	char key[64];
	uint32_t key_length;
	int64_t block_until, allow_until, rate_until;
	int64_t thousandths;
};

struct model_overrides {
	struct model_override all[MODEL_OVERRIDES];
	uint32_t count;
	int64_t clock_ms; /* the highest time from the newest command that holds on */
};

struct model_effect {
	bool blocked, allowed;
	int64_t thousandths;
};

static inline struct model_override *model_override_of(struct model_overrides *overrides, uint32_t zone_id,
                                                       enum override_scope scope, struct weir_span key)
{
	for (uint32_t i = 0; i < overrides->count; i++) {
		struct model_override *override = &overrides->all[i];
		if (override->zone_id == zone_id && override->scope == scope && override->key_length == key.length &&
		    memcmp(override->key, key.at, key.length) == 0)
			return override;
	}
	assert(overrides->count < MODEL_OVERRIDES && key.length < sizeof overrides->all[0].key);
	struct model_override *override = &overrides->all[overrides->count++];
	*override = (struct model_override){.zone_id = zone_id, .scope = scope, .key_length = key.length};
	memcpy(override->key, key.at, key.length);
	return override;
}

static inline bool model_override_matches(const struct model_override *override, uint32_t zone_id, struct weir_span key)
{
	if (override->zone_id != zone_id || override->scope == OVERRIDE_OF_NETWORK || override->key_length > key.length ||
	    (override->scope == OVERRIDE_OF_KEY && override->key_length < key.length))
		return false;
	return memcmp(override->key, key.at, override->key_length) == 0;
}

/* A block or an allow is remembered until the clock is past its end and the lateness. */
static inline bool model_holds(int64_t until, int64_t t, int64_t clock_ms, int64_t lateness_ms)
{
	return t < until && (until >= OVERRIDE_NO_END || lateness_ms < 0 || clock_ms <= until + lateness_ms);
}

/* A record came: what has ended is over, whatever the clock is after the next command. */
static inline void model_overrides_advance(struct model_overrides *overrides, int64_t sent_ms, int64_t lateness_ms)
{
	if (sent_ms > overrides->clock_ms)
		overrides->clock_ms = sent_ms;
	for (uint32_t i = 0; i < overrides->count; i++) {
		struct model_override *override = &overrides->all[i];
		if (!model_holds(override->block_until, -1, overrides->clock_ms, lateness_ms))
			override->block_until = 0;
		if (!model_holds(override->allow_until, -1, overrides->clock_ms, lateness_ms))
			override->allow_until = 0;
		if (override->rate_until <= overrides->clock_ms && override->rate_until < OVERRIDE_NO_END)
			override->rate_until = 0;
	}
}

/* How many bits of a network a key shares, all of them; -1: it does not lie in it. Bit by bit, and IPv4 in no IPv6. */
static inline int model_bits(const struct model_override *override, struct weir_span key)
{
	struct weir_network network, member;
	const char *why;
	bool read = weir_network_parse((struct weir_span){override->key, override->key_length}, &network, &why);
	assert(read);
	if (!weir_network_parse(key, &member, &why) || member.prefix < network.prefix ||
	    weir_address_is_v4(&member.base) != weir_address_is_v4(&network.base))
		return -1;
	for (int bit = 0; bit < network.prefix; bit++)
		if (((network.base.bytes[bit / 8] ^ member.base.bytes[bit / 8]) >> (7 - bit % 8)) & 1)
			return -1;
	return network.prefix;
}

static inline struct model_effect model_effect(const struct model_overrides *overrides, uint32_t zone_id,
                                               struct weir_span key, int64_t t, int64_t clock_ms, int64_t lateness_ms)
{
	struct model_effect effect = {.thousandths = 1000};
	int64_t best = -1, best_bits = -1;
	for (uint32_t i = 0; i < overrides->count; i++) {
		const struct model_override *override = &overrides->all[i];
		bool blocks = model_holds(override->block_until, t, clock_ms, lateness_ms);
		bool allows = model_holds(override->allow_until, t, clock_ms, lateness_ms);
		int64_t bits = override->scope == OVERRIDE_OF_KEY ? 1000 : -1;
		if (override->zone_id == zone_id && override->scope == OVERRIDE_OF_NETWORK)
			bits = model_bits(override, key);
		if ((blocks || allows) && bits > best_bits &&
		    (override->scope == OVERRIDE_OF_NETWORK || model_override_matches(override, zone_id, key))) {
			effect.blocked = blocks;
			effect.allowed = allows;
			best_bits = bits;
		}
		if (!model_override_matches(override, zone_id, key))
			continue;
		int64_t weight = override->scope == OVERRIDE_OF_PREFIX ? override->key_length : INT64_MAX;
		if ((clock_ms < override->rate_until || override->rate_until >= OVERRIDE_NO_END) && weight > best) {
			effect.thousandths = override->thousandths;
			best = weight;
		}
	}
	return effect;
}

/* Whether an operator blocks this very key, whatever networks it is in. */
/* The end of the operator's block of just this key that holds at t; 0: there is none. */
static inline int64_t model_blocks_key(const struct model_overrides *overrides, uint32_t zone_id, struct weir_span key,
                                       int64_t t, int64_t clock_ms, int64_t lateness_ms)
{
	for (uint32_t i = 0; i < overrides->count; i++) {
		const struct model_override *override = &overrides->all[i];
		if (override->scope == OVERRIDE_OF_KEY && model_override_matches(override, zone_id, key))
			return model_holds(override->block_until, t, clock_ms, lateness_ms) ? override->block_until : 0;
	}
	return 0;
}

static inline int64_t model_times(int64_t number, int64_t thousandths, int64_t least)
{
	model_wide times = (model_wide)number * thousandths / 1000;
	if (times > WEIR_RATE_MAX)
		return WEIR_RATE_MAX;
	return times < least ? least : (int64_t)times;
}

/* A limit as an override has it. */
static inline struct weir_limit model_scaled(const struct weir_limit *limit, int64_t thousandths)
{
	struct weir_limit scaled = *limit;
	if (model_kind(limit) == MODEL_UNIFORM)
		scaled.window_ms = (int64_t)model_ceil_div((model_wide)limit->window_ms * 1000, thousandths);
	else
		scaled.rate = model_times(limit->rate, thousandths, 1);
	if (model_kind(limit) == MODEL_TOKEN_BUCKET)
		scaled.burst = model_times(limit->burst, thousandths, 1);
	else if (model_kind(limit) == MODEL_GCRA)
		scaled.burst = model_times(limit->burst, thousandths, 0);
	return scaled;
}

#endif

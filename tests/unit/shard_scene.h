/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random scenes for the shard: policies of every algorithm, frames of few keys
 * and colliding times, so that every rule and every boundary is met often.
 */
#ifndef TESTS_UNIT_SHARD_SCENE_H
#define TESTS_UNIT_SHARD_SCENE_H

#include "shard_model.h"

#include <stdio.h>

/* A generator of numbers (xorshift64*). */
struct scene_random {
	uint64_t state;
};

static inline uint64_t scene_next(struct scene_random *random)
{
	random->state ^= random->state >> 12;
	random->state ^= random->state << 25;
	random->state ^= random->state >> 27;
	return random->state * UINT64_C(2685821657736338717);
}

/* 0 to below - 1. */
static inline int64_t scene_below(struct scene_random *random, int64_t below)
{
	return (int64_t)((scene_next(random) >> 1) % (uint64_t)below);
}

static inline int64_t scene_among(struct scene_random *random, const int64_t *numbers, size_t count)
{
	return numbers[scene_below(random, (int64_t)count)];
}

enum { SCENE_ZONES = 200 }; /* ids */

static inline struct weir_limit scene_limit_of(struct scene_random *random, enum model_kind kind)
{
	static const int64_t rates[] = {1, 2, 3, 5, 10, 40, 300, 70000};
	static const int64_t windows[] = {1, 2, 7, 10, 64, 100, 1000, 60000};
	struct weir_limit limit = {.algorithm = model_algorithm(kind)};
	int64_t rate = scene_among(random, rates, 8), window_ms = scene_among(random, windows, 8);
	switch (kind) {
	case MODEL_SLIDING_WINDOW:
		limit.rate = rate;
		limit.window_ms = window_ms;
		if (scene_below(random, 3) == 0 && window_ms > 1)
			limit.own[MODEL_PRECISION] = 2 + scene_below(random, window_ms - 1);
		if (scene_below(random, 3) == 0)
			limit.own[MODEL_LATENESS] = 1 + scene_below(random, 4 * window_ms);
		break;
	case MODEL_FIXED_WINDOW:
		limit.rate = rate;
		limit.window_ms = window_ms;
		limit.own[MODEL_OFFSET] = scene_below(random, 2) ? scene_below(random, window_ms) : 0;
		break;
	case MODEL_UNIFORM:
		limit.rate = 1;
		limit.window_ms = window_ms;
		break;
	case MODEL_TOKEN_BUCKET:
		limit.rate = rate;
		limit.window_ms = window_ms;
		limit.burst = scene_below(random, 2) ? rate : 1 + scene_below(random, 12);
		limit.own[MODEL_PENALIZE] = scene_below(random, 2);
		break;
	case MODEL_GCRA:
		limit.rate = rate;
		limit.window_ms = window_ms;
		limit.burst = scene_below(random, 8);
		break;
	default:
		limit.rate = scene_among(random, rates, 7);
		limit.window_ms = window_ms;
		break;
	}
	return limit;
}

static inline struct weir_limit scene_limit(struct scene_random *random)
{
	return scene_limit_of(random, (enum model_kind)scene_below(random, MODEL_KINDS));
}

static inline char *scene_zone_name(uint32_t id)
{
	static char names[SCENE_ZONES][8];
	snprintf(names[id], sizeof names[id], "z%u", id);
	return names[id];
}

/* How long a zone blocks: as long as its limits say, always the same, or longer each time. */
static inline void scene_blocks(struct scene_random *random, struct weir_zone *zone)
{
	static const int64_t blocks[] = {0, 0, 1, 13, 500}, forgiven[] = {1, 20, 700, 100000};
	zone->block_for_ms = scene_among(random, blocks, 5);
	zone->block_list_count = 0;
	zone->forgive_after_ms = 0;
	if (scene_below(random, 3) > 0)
		return;
	zone->block_list_count = (uint32_t)(1 + scene_below(random, 4));
	zone->block_list_ms[0] = zone->block_for_ms = 1 + scene_below(random, 20);
	for (uint32_t i = 1; i < zone->block_list_count; i++)
		zone->block_list_ms[i] = zone->block_list_ms[i - 1] * (1 + scene_below(random, 3));
	zone->forgive_after_ms = scene_among(random, forgiven, 4);
}

static inline struct weir_zone scene_zone(struct scene_random *random, uint32_t id)
{
	/* What most people ask for has a way of its own (bucket_fast.h). */
	static const enum model_kind usual[] = {MODEL_SLIDING_WINDOW, MODEL_FIXED_WINDOW, MODEL_FIXED_WINDOW};
	static char ip[] = "ip";
	struct weir_zone zone = {.id = id, .name = scene_zone_name(id), .description = "", .key_count = 1};
	zone.key[0] = (struct weir_key_field){.field = ip, .prefix4 = 32, .prefix6 = 128};
	zone.limit_count = (uint32_t)(1 + scene_below(random, scene_below(random, 4) == 0 ? WEIR_ZONE_LIMITS_MAX : 3));
	bool is_usual = scene_below(random, 4) == 0;
	if (is_usual)
		zone.limit_count = 3;
	for (uint32_t i = 0; i < zone.limit_count; i++)
		zone.limits[i] = is_usual ? scene_limit_of(random, usual[i]) : scene_limit(random);
	zone.count_all = scene_below(random, 3) == 0;
	scene_blocks(random, &zone);
	zone.mode = scene_below(random, 3) == 0 ? WEIR_SHADOW : WEIR_ENFORCE;
	return zone;
}

/* A policy of up to four zones, ids 1 to 4. The caller frees zones and the policy. */
static inline struct weir_policy *scene_policy(struct scene_random *random, uint64_t version)
{
	struct weir_policy *policy = weir_alloc(1, sizeof *policy);
	policy->version = version;
	policy->zones = weir_alloc(4, sizeof *policy->zones);
	for (uint32_t id = 1; id <= 4; id++)
		if (id == 1 || scene_below(random, 2))
			policy->zones[policy->zone_count++] = scene_zone(random, id);
	return policy;
}

/* The next policy: some limits other, some moved, zones gone and new. A zone that is gone does not come back. */
static inline struct weir_policy *scene_next_policy(struct scene_random *random, const struct weir_policy *before,
                                                    uint32_t *next_id)
{
	struct weir_policy *policy = weir_alloc(1, sizeof *policy);
	policy->version = before->version + 1 + (uint64_t)scene_below(random, 2);
	policy->zones = weir_alloc(before->zone_count + 1, sizeof *policy->zones);
	for (uint32_t i = 0; i < before->zone_count; i++) {
		struct weir_zone zone = before->zones[i];
		if (before->zone_count > 1 && scene_below(random, 6) == 0)
			continue;
		int64_t change = scene_below(random, 5);
		if (change == 0)
			zone.limits[scene_below(random, zone.limit_count)] = scene_limit(random);
		else if (change == 1 && zone.limit_count < WEIR_ZONE_LIMITS_MAX)
			zone.limits[zone.limit_count++] = scene_limit(random);
		else if (change == 2 && zone.limit_count > 1)
			zone.limits[0] = zone.limits[--zone.limit_count];
		else if (change == 3)
			zone.count_all = !zone.count_all;
		if (scene_below(random, 4) == 0)
			scene_blocks(random, &zone);
		if (scene_below(random, 3) == 0)
			zone.mode = zone.mode == WEIR_SHADOW ? WEIR_ENFORCE : WEIR_SHADOW;
		policy->zones[policy->zone_count++] = zone;
	}
	if (policy->zone_count == 0 || scene_below(random, 3) == 0)
		policy->zones[policy->zone_count++] = scene_zone(random, (*next_id)++);
	return policy;
}

enum { SCENE_KEYS = 12, SCENE_SETS = 6, SCENE_EVENTS = 64, SCENE_SET_ZONES = 6, SCENE_SOURCES = 3 };

/* A frame and its arrays. */
struct scene_frame {
	struct weir_frame frame;
	struct weir_span keys[SCENE_KEYS];
	char key_bytes[SCENE_KEYS][32];
	struct weir_frame_zone_set sets[SCENE_SETS];
	struct weir_frame_zone zones[SCENE_SETS][SCENE_SET_ZONES];
	struct weir_frame_event events[SCENE_EVENTS];
	uint8_t answers[SCENE_EVENTS * SCENE_SET_ZONES / 2 + 1];
	struct weir_frame_reservation reservations[SCENE_EVENTS];
};

/* A reservation that some frame has opened. */
struct scene_reservation {
	uint8_t id[WEIR_RESERVATION_ID_BYTES];
	uint32_t zone_id;
	char key[32];
	uint32_t key_length;
};

enum { SCENE_RESERVATIONS = 32 };

/* What frames follow on from. */
struct scene {
	struct scene_random random;
	int64_t now_ms;    /* about which times lie */
	int64_t spread_ms; /* how far */
	int64_t sent_ms;   /* sending times, which never fall much */
	int64_t sent_step_ms;
	uint32_t key_space;
	uint64_t positions[SCENE_SOURCES];
	bool costs;
	struct scene_reservation reserved[SCENE_RESERVATIONS]; /* the last ones */
	uint32_t reserved_count;
};

/* Words, and addresses of both families that lie close together. @return the length */
static inline int scene_key(int64_t number, char text[32])
{
	long long low = (long long)(number / 3 % 256), high = (long long)(number / 3 / 256);
	switch (number % 3) {
	case 0: return snprintf(text, 32, "k%lld", (long long)number);
	case 1: return snprintf(text, 32, "10.0.%lld.%lld", high, low);
	default: return snprintf(text, 32, "2001:db8::%llx", (unsigned long long)number);
	}
}

static inline void scene_fill(struct scene *scene, const struct weir_policy *policy, struct scene_frame *out)
{
	struct scene_random *random = &scene->random;
	memset(out, 0, sizeof *out);
	struct weir_frame *frame = &out->frame;
	frame->kind = WEIR_FRAME_EVENTS;
	uint32_t source = (uint32_t)scene_below(random, SCENE_SOURCES);
	memset(frame->source, (int)source + 1, sizeof frame->source);
	bool strange = scene_below(random, 10) == 0;
	frame->key_count = (uint32_t)(1 + scene_below(random, SCENE_KEYS));
	for (uint32_t i = 0; i < frame->key_count; i++) {
		/* Each key once a frame, as the writer gives them; sometimes as a stranger might. */
		int64_t key = scene_below(random, scene->key_space);
		int length = scene_key(key, out->key_bytes[i]);
		out->keys[i] = (struct weir_span){.at = out->key_bytes[i], .length = (uint32_t)length};
		for (uint32_t j = 0; !strange && j < i; j++)
			if (weir_span_equal(out->keys[j], out->keys[i]))
				out->keys[i].length = 0, i--, j = i;
		if (!strange && scene->key_space <= SCENE_KEYS && i + 1 >= scene->key_space) {
			frame->key_count = i + 1;
			break;
		}
	}
	frame->zone_set_count = (uint32_t)(1 + scene_below(random, SCENE_SETS));
	for (uint32_t i = 0; i < frame->zone_set_count; i++) {
		out->sets[i] = (struct weir_frame_zone_set){.zones = out->zones[i]};
		for (uint32_t j = 0; j < policy->zone_count && out->sets[i].count < SCENE_SET_ZONES; j++)
			if (scene_below(random, 3) > 0)
				out->zones[i][out->sets[i].count++] =
					(struct weir_frame_zone){policy->zones[j].id, scene_below(random, 8) == 0};
		if (strange && out->sets[i].count > 0 && out->sets[i].count < SCENE_SET_ZONES) {
			out->zones[i][out->sets[i].count] = out->zones[i][0];
			out->sets[i].count++;
		}
		if (scene_below(random, 9) == 0 && out->sets[i].count < SCENE_SET_ZONES)
			out->zones[i][out->sets[i].count++] = (struct weir_frame_zone){9999, false};
	}
	frame->event_count = (uint32_t)scene_below(random, SCENE_EVENTS + 1);
	uint64_t position = scene->positions[source];
	if (scene_below(random, 5) == 0) /* some of it again */
		position -= position < 20 ? position : (uint64_t)scene_below(random, 20);
	for (uint32_t i = 0; i < frame->event_count; i++) {
		struct weir_frame_event *event = &out->events[i];
		event->key = (uint32_t)scene_below(random, frame->key_count);
		event->zone_set = (uint32_t)scene_below(random, frame->zone_set_count);
		position += (uint64_t)scene_below(random, 3);
		event->position = position;
		static const int64_t costs[] = {0, 1, 1, 1, 1, 2, 3, 7, 33, 400, INT64_C(1) << 40};
		event->cost = scene->costs && scene_below(random, 3) == 0 ? scene_among(random, costs, 11) : 1;
		if (scene_below(random, 3) == 0)
			scene->now_ms += scene_below(random, scene->spread_ms + 1);
		int64_t back = scene_below(random, 4) == 0 ? scene_below(random, 3 * scene->spread_ms + 1) : 0;
		event->time_ms = scene->now_ms > back ? scene->now_ms - back : 0;
		frame->pair_count += out->sets[event->zone_set].count;
	}
	if (position > scene->positions[source])
		scene->positions[source] = position;
	scene->sent_ms += scene_below(random, 2 * scene->sent_step_ms + 1) - scene->sent_step_ms / 4;
	frame->sending_time_ms = scene->sent_ms > 0 ? scene->sent_ms : 0;
	if (scene_below(random, 80) == 0) /* a clock that is ahead for a moment */
		frame->sending_time_ms += scene_below(random, 20 * scene->spread_ms + 1);
	frame->keys = out->keys;
	frame->zone_sets = out->sets;
	frame->events = out->events;
}

/* Makes of a key that is an address some network around it; of another it does nothing. */
static inline void scene_network(struct scene_random *random, struct override_command *command, char key[32])
{
	struct weir_network network;
	char text[WEIR_NETWORK_TEXT_BYTES];
	if (!weir_address_parse(weir_span_of(key), &network.base))
		return;
	bool v4 = weir_address_is_v4(&network.base);
	/* Most of them as long as some keys' common part is. */
	int64_t least = scene_below(random, 3) == 0 ? 1 : v4 ? 20 : 116;
	uint8_t prefix = (uint8_t)(least + scene_below(random, (v4 ? 32 : 128) - least));
	weir_address_mask(&network.base, prefix, prefix);
	network.prefix = (uint8_t)(v4 ? 96 + prefix : prefix);
	snprintf(key, 32, "%s", weir_network_format(&network, text));
	command->scope = OVERRIDE_OF_NETWORK;
}

/* A command about a key that frames may have, a prefix of some, or a network. @return its zone */
static inline const struct weir_zone *scene_command(struct scene *scene, const struct weir_policy *policy,
                                                    struct override_command *command, int64_t *at_ms)
{
	static const int64_t rates[] = {1, 100, 500, 999, 1000, 1500, 3000, 10000, 100000};
	struct scene_random *random = &scene->random;
	const struct weir_zone *zone = &policy->zones[scene_below(random, policy->zone_count)];
	char key[32];
	*at_ms = scene->sent_ms > 0 ? scene->sent_ms : 0;
	*command =
		(struct override_command){.kind = (enum override_kind)scene_below(random, 4), .by = "ann", .reason = "why"};
	snprintf(command->zone, sizeof command->zone, "%s", zone->name);
	scene_key(scene_below(random, scene->key_space), key);
	if (command->kind != OVERRIDE_RATE && scene_below(random, 2))
		scene_network(random, command, key);
	if (command->kind == OVERRIDE_RATE && scene_below(random, 2)) {
		command->scope = OVERRIDE_OF_PREFIX;
		key[scene_below(random, 4)] = '\0';
	}
	override_key_add(command, weir_span_of(key));
	command->thousandths = (uint32_t)scene_among(random, rates, 9);
	command->until_ms = OVERRIDE_NO_END;
	if (command->kind != OVERRIDE_LIFT && scene_below(random, 3) > 0) {
		int64_t reach = scene_below(random, 2) ? scene->spread_ms : scene->sent_step_ms;
		command->until_ms = *at_ms + 1 + scene_below(random, 20 * reach + 1);
		if (command->kind == OVERRIDE_ALLOW && scene_below(random, 6) == 0)
			command->until_ms = *at_ms - scene_below(random, *at_ms < 5 ? *at_ms + 1 : 5);
	}
	return zone;
}

/* Remembers what an event opens. */
static inline void scene_reserved(struct scene *scene, const uint8_t *source, uint64_t position, uint32_t zone_id,
                                  struct weir_span key)
{
	struct scene_reservation *one = &scene->reserved[scene->reserved_count++ % SCENE_RESERVATIONS];
	*one = (struct scene_reservation){.zone_id = zone_id, .key_length = key.length};
	memcpy(one->key, key.at, key.length);
	weir_reservation_id(source, position, one->id);
}

/* One of them, of a key if there is any; NULL: none was opened yet. */
static inline const struct scene_reservation *scene_settled(struct scene *scene, uint32_t zone_id, struct weir_span key)
{
	uint32_t count = scene->reserved_count < SCENE_RESERVATIONS ? scene->reserved_count : SCENE_RESERVATIONS;
	uint32_t first = count > 0 ? (uint32_t)scene_below(&scene->random, count) : 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct scene_reservation *one = &scene->reserved[(first + i) % count];
		if (one->zone_id == zone_id && one->key_length == key.length && memcmp(one->key, key.at, key.length) == 0)
			return one;
	}
	return count > 0 ? &scene->reserved[first] : NULL;
}

static inline int64_t scene_ttl(struct scene_random *random)
{
	static const int64_t ttls[] = {1, 50, 5000, 3600000};
	return scene_among(random, ttls, 4);
}

/* Some of an answered frame's events open reservations; what is done settles one. */
static inline void scene_reserve(struct scene *scene, struct scene_frame *out)
{
	struct weir_frame *frame = &out->frame;
	for (uint32_t i = 0; i < frame->zone_set_count; i++)
		for (uint32_t j = 0; frame->zone_sets[i].count != 1 && j < frame->zone_sets[i].count; j++)
			out->zones[i][j].done = false;
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
		struct weir_frame_reservation *one = &out->reservations[frame->reservation_count];
		*one = (struct weir_frame_reservation){.event = i};
		if (set->count == 1 && set->zones[0].done) {
			const struct scene_reservation *settled = scene_settled(scene, set->zones[0].id, frame->keys[event->key]);
			if (settled != NULL)
				memcpy(one->id, settled->id, sizeof one->id);
		} else if (set->count == 1 && scene_below(&scene->random, 3) == 0) {
			one->ttl_ms = scene_ttl(&scene->random);
			scene_reserved(scene, frame->source, event->position, set->zones[0].id, frame->keys[event->key]);
		} else {
			continue;
		}
		frame->reservation_count++;
	}
	frame->reservations = out->reservations;
}

/* The frame's events were asked before they came here, and answered somehow. */
static inline void scene_answer(struct scene *scene, struct scene_frame *out)
{
	bool strict = scene_below(&scene->random, 2);
	out->frame.kind = WEIR_FRAME_CHECKS;
	out->frame.verdicts = out->answers;
	for (uint32_t pair = 0; pair < out->frame.pair_count; pair++)
		if (scene_below(&scene->random, strict ? 2 : 8) == 0)
			out->answers[pair / 2] |= (uint8_t)(WEIR_VERDICT_BLOCK << (pair % 2 * 4));
	scene_reserve(scene, out);
}

/* One more event of one zone, with an answer. */
static inline void scene_add(struct scene_frame *open, uint32_t zone_id, bool done, struct weir_span key,
                             struct weir_frame_event event, int answer)
{
	struct weir_frame *frame = &open->frame;
	uint32_t k = 0, z = 0;
	while (k < frame->key_count && !weir_span_equal(open->keys[k], key))
		k++;
	while (z < frame->zone_set_count && (open->zones[z][0].id != zone_id || open->zones[z][0].done != done))
		z++;
	if (k == SCENE_KEYS || z == SCENE_SETS || frame->event_count == SCENE_EVENTS)
		abort();
	if (k == frame->key_count) {
		memcpy(open->key_bytes[k], key.at, key.length);
		open->keys[k] = (struct weir_span){open->key_bytes[k], key.length};
		frame->key_count++;
	}
	if (z == frame->zone_set_count) {
		open->zones[z][0] = (struct weir_frame_zone){.id = zone_id, .done = done};
		open->sets[z] = (struct weir_frame_zone_set){.zones = open->zones[z], .count = 1};
		frame->zone_set_count++;
	}
	open->answers[frame->pair_count / 2] |= (uint8_t)(answer << (frame->pair_count % 2 * 4));
	event.key = k;
	event.zone_set = z;
	open->events[frame->event_count++] = event;
	frame->pair_count++;
}

/* A frame whose arrays are its own, wherever it lies now. */
static inline void scene_close(struct scene_frame *frame)
{
	frame->frame.keys = frame->keys;
	frame->frame.zone_sets = frame->sets;
	frame->frame.events = frame->events;
	for (uint32_t i = 0; i < frame->frame.key_count; i++)
		frame->keys[i].at = frame->key_bytes[i];
	for (uint32_t i = 0; i < frame->frame.zone_set_count; i++)
		frame->sets[i].zones = frame->zones[i];
	frame->frame.reservations = frame->reservations;
	if (frame->frame.verdicts != NULL)
		frame->frame.verdicts = frame->answers;
}

static inline struct scene scene_new(uint64_t seed)
{
	struct scene scene = {.random = {seed * UINT64_C(0x9e3779b97f4a7c15) + 1}};
	static const int64_t spreads[] = {0, 1, 5, 50, 2000, 100000}, steps[] = {1, 400, 5000, 700000};
	static const int64_t spaces[] = {1, 3, 12, 200, 3000};
	struct scene_random *random = &scene.random;
	scene.spread_ms = scene_among(random, spreads, 6);
	scene.sent_step_ms = scene_among(random, steps, 4);
	scene.key_space = (uint32_t)scene_among(random, spaces, 5);
	scene.now_ms = scene_below(random, 2) ? INT64_C(1700000000000) + scene_below(random, 100000) : 0;
	scene.sent_ms = scene.now_ms;
	scene.costs = scene_below(random, 2);
	return scene;
}

#endif

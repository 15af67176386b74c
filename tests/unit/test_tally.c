/* SPDX-License-Identifier: Apache-2.0 */
/* Counters by zone, the most blocked keys, and both through a checkpoint's bytes. */
#include "limiter/lane/tally.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* One event of one zone under a key, with its verdict bits. */
static void count(struct tally *tally, uint32_t zone_id, const char *key, uint8_t bits)
{
	struct weir_frame_zone zone = {.id = zone_id};
	struct weir_frame_zone_set set = {.zones = &zone, .count = 1};
	struct weir_span span = weir_span_of(key);
	struct weir_frame_event event = {.key = 0, .zone_set = 0};
	struct weir_frame frame = {.zone_sets = &set,
	                           .zone_set_count = 1,
	                           .keys = &span,
	                           .key_count = 1,
	                           .events = &event,
	                           .event_count = 1,
	                           .pair_count = 1};
	struct weir_zone policy_zone = {.id = zone_id};
	struct compiled_zone compiled = {.zone = &policy_zone};
	struct shard_decision decision = {.zone = &compiled};
	struct shard_result result = {.verdicts = &bits, .pair_count = 1, .decisions = &decision};
	result.decision_count = (bits & WEIR_VERDICT_DECIDED) != 0;
	bits = bits & WEIR_VERDICT_NONE ? WEIR_VERDICT_NONE : bits; /* a done record's */
	tally_frame(tally, &frame, &result);
}

static const struct top_key *find(const struct tally *tally, uint32_t zone_id, const char *key)
{
	const struct top_key *const *keys;
	size_t keys_count = top_keys_list(tally_keys(tally), &keys);
	for (size_t i = 0; i < keys_count; i++)
		if (keys[i]->zone_id == zone_id && keys[i]->key_length == strlen(key) &&
		    memcmp(keys[i]->key, key, strlen(key)) == 0)
			return keys[i];
	return NULL;
}

static void verdicts_are_counted_by_zone(void **state)
{
	(void)state;
	struct tally *tally = tally_new();
	count(tally, 1, "a", 0);
	count(tally, 1, "a", WEIR_VERDICT_BLOCK | WEIR_VERDICT_DECIDED);
	count(tally, 1, "a", WEIR_VERDICT_BLOCK | WEIR_VERDICT_LATE);
	count(tally, 2, "a", WEIR_VERDICT_BLOCK);
	count(tally, 2, "b", WEIR_VERDICT_NONE);
	assert_int_equal(tally_zone(tally, 1)->passed, 1);
	assert_int_equal(tally_zone(tally, 1)->blocked, 2);
	assert_int_equal(tally_zone(tally, 1)->late, 1);
	assert_int_equal(tally_zone(tally, 1)->decisions, 1);
	assert_int_equal(tally_zone(tally, 2)->passed, 0);
	assert_int_equal(tally_zone(tally, 2)->decisions, 0);
	count(tally, 2, "b", WEIR_VERDICT_NONE | WEIR_VERDICT_DECIDED); /* a queue's place that was freed */
	assert_int_equal(tally_zone(tally, 2)->decisions, 1);
	assert_int_equal(tally_zone(tally, 2)->passed + tally_zone(tally, 2)->blocked, 1);
	assert_null(tally_zone(tally, 3));
	assert_int_equal(find(tally, 1, "a")->count, 2);
	assert_int_equal(find(tally, 2, "a")->count, 1);
	assert_null(find(tally, 2, "b"));
	tally_free(tally);
}

/* Space-Saving's promise: a key blocked more than total / keys times is there, and its count is within its error. */
static void a_key_that_is_blocked_often_is_never_missed(void **state)
{
	(void)state;
	enum { RARE = 5000, HEAVY = 400 };
	struct tally *tally = tally_new();
	char key[32];
	srand(11);
	for (int i = 0; i < RARE; i++) {
		snprintf(key, sizeof key, "rare-%d", i);
		count(tally, 1, key, WEIR_VERDICT_BLOCK);
		if (i % (RARE / HEAVY) == 0)
			count(tally, 1, "heavy", WEIR_VERDICT_BLOCK);
	}
	const struct top_key *heavy = find(tally, 1, "heavy");
	assert_non_null(heavy);
	uint64_t truth = (RARE + RARE / HEAVY - 1) / (RARE / HEAVY);
	assert_true(heavy->count >= truth && heavy->count - heavy->error <= truth);
	tally_free(tally);
}

enum { SETS = 6, SET_ZONES = 40, EVENTS = 300, ZONES = 50 };

/* Frames of events in several sets of zones, most of which pass, count as each of their pairs alone. */
static void a_frame_counts_as_its_pairs_do(void **state)
{
	(void)state;
	static struct weir_frame_zone zones[SETS][SET_ZONES];
	static struct weir_frame_event events[EVENTS];
	static uint8_t verdicts[EVENTS * SET_ZONES / 2 + 1];
	struct tally *together = tally_new(), *each = tally_new();
	struct weir_span keys[] = {weir_span_of("a"), weir_span_of("b")};
	uint32_t random = 1, blocked = 0;
	for (int round = 0; round < 40; round++) {
		struct weir_frame_zone_set sets[SETS];
		struct weir_frame frame = {.zone_sets = sets,
		                           .zone_set_count = SETS,
		                           .keys = keys,
		                           .key_count = 2,
		                           .events = events,
		                           .event_count = EVENTS};
		memset(verdicts, 0, sizeof verdicts);
		for (uint32_t i = 0; i < SETS; i++) {
			sets[i] = (struct weir_frame_zone_set){.zones = zones[i], .count = ((uint32_t)round + i) % SET_ZONES};
			for (uint32_t k = 0; k < sets[i].count; k++)
				zones[i][k] = (struct weir_frame_zone){.id = 1 + (i * 7 + k) % ZONES};
		}
		for (uint32_t i = 0; i < EVENTS; i++) {
			random = random * 1664525 + 1013904223;
			events[i] = (struct weir_frame_event){.key = random >> 31, .zone_set = (random >> 24) % SETS};
			for (uint32_t k = 0; k < sets[events[i].zone_set].count; k++, frame.pair_count++) {
				random = random * 1664525 + 1013904223;
				static const uint8_t kinds[] = {WEIR_VERDICT_BLOCK, WEIR_VERDICT_LATE, WEIR_VERDICT_NONE,
				                                WEIR_VERDICT_BLOCK | WEIR_VERDICT_LATE};
				uint8_t bits = (random >> 20) % 32 == 0 ? kinds[random >> 30] : 0;
				verdicts[frame.pair_count / 2] |= (uint8_t)(bits << (frame.pair_count % 2 * 4));
				count(each, zones[events[i].zone_set][k].id, keys[events[i].key].at, bits);
				blocked += (bits & WEIR_VERDICT_BLOCK) != 0;
			}
		}
		struct shard_result result = {.verdicts = verdicts, .pair_count = frame.pair_count};
		tally_frame(together, &frame, &result);
	}
	assert_true(blocked > 1000);
	for (uint32_t id = 1; id <= ZONES; id++) {
		const struct tally_zone *a = tally_zone(together, id), *b = tally_zone(each, id);
		assert_non_null(a);
		assert_true(a->passed == b->passed && a->blocked == b->blocked && a->late == b->late);
		for (int k = 0; k < 2; k++)
			assert_int_equal(find(together, id, keys[k].at)->count, find(each, id, keys[k].at)->count);
	}
	tally_free(together);
	tally_free(each);
}

static void bytes_give_the_same_tally(void **state)
{
	(void)state;
	struct tally *tally = tally_new(), *copy = tally_new();
	struct weir_error error;
	for (int i = 0; i < 50; i++)
		count(tally, 1 + (uint32_t)i % 3, i % 2 ? "x" : "y\xFF", WEIR_VERDICT_BLOCK);
	struct weir_text bytes = {0}, again = {0};
	tally_export(tally, &bytes);
	struct weir_span span = {.at = bytes.at, .length = (uint32_t)bytes.length};
	assert_int_equal(tally_import(copy, span, &error), WEIR_OK);
	tally_export(copy, &again);
	assert_int_equal(again.length, bytes.length);
	assert_memory_equal(again.at, bytes.at, bytes.length);
	for (uint32_t length = 0; length < bytes.length; length++) {
		span.length = length;
		assert_int_equal(tally_import(copy, span, &error), WEIR_INVALID);
		assert_null(tally_zone(copy, 1));
	}
	weir_text_deinit(&bytes);
	weir_text_deinit(&again);
	tally_free(tally);
	tally_free(copy);
}

/* What is left of a key that is forgotten is nothing; those that come later are counted as if it had never been. */
static void a_key_is_forgotten(void **state)
{
	(void)state;
	struct tally *tally = tally_new(), *read = tally_new();
	struct weir_text bytes = {0};
	char key[16];
	for (uint32_t i = 0; i < 10; i++)
		count(tally, 1 + i % 2, "somebody", WEIR_VERDICT_BLOCK);
	count(tally, 1, "other", WEIR_VERDICT_BLOCK);
	top_keys_forget(tally_keys(tally), 1, weir_span_of("somebody"));
	top_keys_forget(tally_keys(tally), 3, weir_span_of("somebody"));
	assert_null(find(tally, 1, "somebody"));
	assert_int_equal(find(tally, 2, "somebody")->count, 5);
	assert_int_equal(find(tally, 1, "other")->count, 1);
	assert_int_equal(tally_zone(tally, 1)->blocked, 6);
	count(tally, 1, "somebody", WEIR_VERDICT_BLOCK);
	assert_int_equal(find(tally, 1, "somebody")->count, 1);
	assert_int_equal(find(tally, 1, "somebody")->error, 0);
	/* With all places taken the next to come may have been blocked before as often as the least. */
	for (int i = 0; i < 3 * TOP_KEYS; i++) {
		snprintf(key, sizeof key, "u%d", i);
		count(tally, 1, key, WEIR_VERDICT_BLOCK);
	}
	for (int i = 0; i < 100; i++)
		count(tally, 1, "busy", WEIR_VERDICT_BLOCK);
	top_keys_forget(tally_keys(tally), 1, weir_span_of("busy"));
	tally_export(tally, &bytes);
	assert_null(memmem(bytes.at, bytes.length, "busy", 4));
	assert_int_equal(tally_import(read, (struct weir_span){bytes.at, (uint32_t)bytes.length}, NULL), WEIR_OK);
	count(read, 1, "new", WEIR_VERDICT_BLOCK);
	const struct top_key *found = find(read, 1, "new");
	assert_non_null(found);
	assert_true(found->count == found->error + 1 && found->error >= 2 && found->error < 100);
	weir_text_deinit(&bytes);
	tally_free(tally);
	tally_free(read);
}

/* Zones come and go, and their ids with them: each is counted, however many there were before. */
static void zones_that_are_gone_leave_their_places(void **state)
{
	(void)state;
	struct tally *tally = tally_new(), *sums = tally_new();
	struct weir_zone *zones = calloc(WEIR_ZONES_MAX, sizeof *zones);
	struct weir_policy policy = {.zones = zones, .zone_count = WEIR_ZONES_MAX};
	for (uint32_t round = 0; round < 5; round++) {
		for (uint32_t i = 0; i < WEIR_ZONES_MAX; i++)
			zones[i].id = i % 2 == 0 ? i + 1 : 10000 * round + i + 1; /* every second one goes and another comes */
		tally_keep_zones(tally, &policy);
		tally_fold(sums, tally, true, &policy);
		for (uint32_t i = 0; i < WEIR_ZONES_MAX; i++)
			count(tally, zones[i].id, "a", i % 3 == 0 ? WEIR_VERDICT_BLOCK : 0);
		tally_fold(sums, tally, false, &policy);
		for (uint32_t i = 0; i < WEIR_ZONES_MAX; i++) {
			const struct tally_zone *zone = tally_zone(tally, zones[i].id), *sum = tally_zone(sums, zones[i].id);
			assert_int_equal(zone->passed + zone->blocked, i % 2 == 0 ? round + 1 : 1);
			assert_int_equal(zone->blocked, i % 3 == 0 ? zone->passed + zone->blocked : 0);
			assert_int_equal(sum->passed + sum->blocked, zone->passed + zone->blocked);
		}
		assert_null(tally_zone(tally, 10000 * round - 9998));
		struct weir_text bytes = {0};
		tally_export(tally, &bytes);
		assert_int_equal(tally_import(tally, (struct weir_span){bytes.at, (uint32_t)bytes.length}, NULL), WEIR_OK);
		weir_text_deinit(&bytes);
	}
	free(zones);
	tally_free(tally);
	tally_free(sums);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts_are_counted_by_zone),
		cmocka_unit_test(a_key_that_is_blocked_often_is_never_missed),
		cmocka_unit_test(a_frame_counts_as_its_pairs_do),
		cmocka_unit_test(bytes_give_the_same_tally),
		cmocka_unit_test(a_key_is_forgotten),
		cmocka_unit_test(zones_that_are_gone_leave_their_places),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

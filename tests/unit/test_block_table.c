/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of live blocks: against a slow model on random decisions, and what
 * single decisions do.
 *
 * The model keeps every decision that it was ever given, and says of a bucket
 * what the newest of them says: none is forgotten, so none can come back.
 */
#include "deploy/gateways/table/block_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { PARTITIONS = 3, ZONES = 3, KEYS = 40, STEPS = 40000, START_MS = 1000000 };

static struct block_table *table_of(uint32_t max)
{
	struct block_table_options options = {.partitions = PARTITIONS, .max = max, .keep_json = true, .seed = 7};
	return block_table_new(&options);
}

static struct decision_record record_of(const char *zone, const char *key, uint64_t offset, int64_t until_ms)
{
	return (struct decision_record){.version = {.offset = offset},
	                                .lift = until_ms == 0,
	                                .at_ms = START_MS,
	                                .until_ms = until_ms,
	                                .zone = weir_span_of(zone),
	                                .key = weir_span_of(key),
	                                .json = weir_span_of("{\"key\":[\"k\"],\n\"zone\":\"z\"}")};
}

static enum block_outcome give(struct block_table *table, const char *zone, const char *key, uint64_t offset,
                               int64_t until_ms, int64_t now_ms)
{
	struct decision_record record = record_of(zone, key, offset, until_ms);
	return block_table_apply(table, &record, now_ms);
}

static bool is_live(const struct block_table *table, const char *zone, const char *key)
{
	return block_table_find(table, weir_span_of(zone), weir_span_of(key)) != NULL;
}

static void give_by(struct block_table *table, const char *zone, const char *key, uint64_t offset, int64_t until_ms,
                    bool by_operator)
{
	struct decision_record record = record_of(zone, key, offset, until_ms);
	record.by_operator = by_operator;
	assert_int_equal(BLOCK_APPLIED, block_table_apply(table, &record, START_MS));
}

static uint32_t change_count(const struct block_table *table)
{
	uint32_t count;
	block_table_changes(table, &count);
	return count;
}

/* ---- single decisions ---- */

static void test_a_block_is_there_until_its_end(void **state)
{
	(void)state;
	struct block_table *table = table_of(10);
	assert_int_equal(BLOCK_APPLIED, give(table, "site", "a", 1, START_MS + 100, START_MS));
	assert_int_equal(START_MS + 100, block_table_expire(table, START_MS + 99));
	assert_true(is_live(table, "site", "a"));
	assert_int_equal(INT64_MAX, block_table_expire(table, START_MS + 100));
	assert_false(is_live(table, "site", "a"));
	assert_int_equal(0, block_table_count(table));
	block_table_free(table);
}

static void test_what_is_over_when_it_comes_is_not_taken(void **state)
{
	(void)state;
	struct block_table *table = table_of(10);
	assert_int_equal(BLOCK_OVER, give(table, "site", "a", 1, START_MS, START_MS));
	assert_int_equal(BLOCK_OVER, give(table, "site", "a", 2, 0, START_MS));
	assert_int_equal(0, change_count(table));
	block_table_free(table);
}

static void test_an_older_version_changes_nothing(void **state)
{
	(void)state;
	struct block_table *table = table_of(10);
	give(table, "site", "a", 5, START_MS + 100, START_MS);
	assert_int_equal(BLOCK_OLDER, give(table, "site", "a", 5, START_MS + 900, START_MS));
	assert_int_equal(BLOCK_OLDER, give(table, "site", "a", 4, START_MS + 900, START_MS));
	assert_int_equal(BLOCK_OLDER, give(table, "site", "a", 4, 0, START_MS));
	block_table_expire(table, START_MS + 100);
	assert_false(is_live(table, "site", "a"));
	block_table_free(table);
}

static void test_a_block_that_was_lifted_does_not_come_back(void **state)
{
	(void)state;
	struct block_table *table = table_of(10);
	give(table, "site", "a", 5, START_MS + 100, START_MS);
	assert_int_equal(BLOCK_APPLIED, give(table, "site", "a", 6, 0, START_MS + 10));
	block_table_settle(table);
	assert_int_equal(BLOCK_OLDER, give(table, "site", "a", 5, START_MS + 100, START_MS + 20));
	assert_false(is_live(table, "site", "a"));
	assert_int_equal(0, change_count(table));
	/* A newer one does block. */
	assert_int_equal(BLOCK_APPLIED, give(table, "site", "a", 7, START_MS + 90, START_MS + 20));
	assert_true(is_live(table, "site", "a"));
	block_table_free(table);
}

static void test_a_shorter_block_ends_a_longer_one(void **state)
{
	(void)state;
	struct block_table *table = table_of(10);
	give(table, "site", "a", 1, START_MS + 1000, START_MS);
	give(table, "site", "a", 2, START_MS + 100, START_MS);
	block_table_expire(table, START_MS + 100);
	assert_false(is_live(table, "site", "a"));
	assert_int_equal(BLOCK_OLDER, give(table, "site", "a", 1, START_MS + 1000, START_MS + 100));
	/* One that is over as it comes, too. */
	give(table, "site", "b", 3, START_MS + 1000, START_MS + 100);
	assert_int_equal(BLOCK_APPLIED, give(table, "site", "b", 4, START_MS + 50, START_MS + 100));
	assert_false(is_live(table, "site", "b"));
	block_table_free(table);
}

static void test_a_lift_of_a_zone_ends_its_blocks_of_that_partition(void **state)
{
	(void)state;
	struct block_table *table = table_of(10);
	give(table, "site", "a", 1, START_MS + 100, START_MS);
	give(table, "site", "b", 9, START_MS + 100, START_MS);
	give(table, "shop", "a", 1, START_MS + 100, START_MS);
	struct decision_record other = record_of("site", "c", 1, START_MS + 100);
	other.partition = 1;
	block_table_apply(table, &other, START_MS);
	struct decision_record lift = record_of("site", "", 5, 0);
	lift.whole_zone = true;
	assert_int_equal(BLOCK_APPLIED, block_table_apply(table, &lift, START_MS));
	assert_false(is_live(table, "site", "a"));
	assert_true(is_live(table, "site", "b")); /* newer than the lift */
	assert_true(is_live(table, "shop", "a"));
	assert_true(is_live(table, "site", "c")); /* of another partition */
	assert_int_equal(BLOCK_OLDER, give(table, "site", "a", 1, START_MS + 100, START_MS));
	block_table_free(table);
}

static void test_a_key_is_blocked_as_long_as_in_any_zone(void **state)
{
	(void)state;
	struct block_table *table = table_of(10);
	give(table, "site", "a", 1, START_MS + 100, START_MS);
	give(table, "shop", "a", 2, START_MS + 300, START_MS);
	give(table, "shop", "b", 2, START_MS + 900, START_MS);
	assert_int_equal(START_MS + 300, block_table_find_key(table, weir_span_of("a"))->until_ms);
	give(table, "shop", "a", 3, 0, START_MS);
	assert_int_equal(START_MS + 100, block_table_find_key(table, weir_span_of("a"))->until_ms);
	block_table_expire(table, START_MS + 100);
	assert_null(block_table_find_key(table, weir_span_of("a")));
	block_table_free(table);
}

static void test_a_full_table_leaves_out_what_ends_first(void **state)
{
	(void)state;
	struct block_table *table = table_of(2);
	give(table, "site", "a", 1, START_MS + 200, START_MS);
	give(table, "site", "b", 2, START_MS + 300, START_MS);
	assert_int_equal(BLOCK_NO_ROOM, give(table, "site", "c", 3, START_MS + 100, START_MS));
	assert_int_equal(BLOCK_APPLIED, give(table, "site", "d", 4, START_MS + 250, START_MS));
	assert_false(is_live(table, "site", "a"));
	assert_true(is_live(table, "site", "b"));
	assert_true(is_live(table, "site", "d"));
	assert_int_equal(2, block_table_left_out(table));
	assert_int_equal(2, block_table_count(table));
	/* A mark gives way to a block. */
	give(table, "site", "b", 5, 0, START_MS);
	assert_int_equal(BLOCK_APPLIED, give(table, "site", "e", 6, START_MS + 260, START_MS));
	assert_int_equal(2, block_table_left_out(table) - (is_live(table, "site", "d") ? 0 : 1));
	block_table_free(table);
}

static void test_a_cleared_table_takes_in_what_it_had(void **state)
{
	(void)state;
	struct block_table *table = table_of(10);
	uint32_t count;
	give(table, "site", "a", 1, START_MS + 200, START_MS);
	give(table, "site", "b", 2, START_MS + 300, START_MS);
	give(table, "site", "b", 3, 0, START_MS); /* a mark */
	block_table_clear(table);
	block_table_changes(table, &count);
	assert_int_equal(0, count);
	assert_int_equal(0, block_table_count(table));
	assert_false(is_live(table, "site", "a"));
	assert_int_equal(INT64_MAX, block_table_expire(table, START_MS));
	assert_int_equal(BLOCK_APPLIED, give(table, "site", "b", 2, START_MS + 300, START_MS));
	assert_true(is_live(table, "site", "b"));
	assert_int_equal(1, block_table_count(table));
	block_table_free(table);
}

static void test_what_is_kept_gives_way_to_any_version(void **state)
{
	(void)state;
	struct block_table *table = table_of(100);
	give(table, "z", "stays", 70, START_MS + 100, START_MS);
	give(table, "z", "longer", 71, START_MS + 100, START_MS);
	give(table, "z", "lifted", 72, START_MS + 100, START_MS);
	give(table, "y", "with its zone", 73, START_MS + 100, START_MS);
	block_table_settle(table);
	block_table_keep(table);
	assert_int_equal(block_table_count(table), 4);
	assert_int_equal(change_count(table), 0);
	assert_int_equal(BLOCK_APPLIED, give(table, "z", "longer", 1, START_MS + 200, START_MS));
	assert_int_equal(BLOCK_APPLIED, give(table, "z", "lifted", 2, 0, START_MS));
	struct decision_record zone = record_of("y", "", 3, 0);
	zone.whole_zone = true;
	assert_int_equal(BLOCK_APPLIED, block_table_apply(table, &zone, START_MS));
	assert_false(is_live(table, "z", "lifted") || is_live(table, "y", "with its zone"));
	/* Among those of the new topic the newest counts again. */
	assert_int_equal(BLOCK_OLDER, give(table, "z", "longer", 1, 0, START_MS));
	assert_int_equal(BLOCK_OLDER, give(table, "z", "lifted", 1, START_MS + 300, START_MS));
	block_table_expire(table, START_MS + 100);
	assert_true(!is_live(table, "z", "stays") && is_live(table, "z", "longer"));
	block_table_free(table);
}

static void test_changes_are_a_list_of_buckets(void **state)
{
	(void)state;
	struct block_table *table = table_of(10);
	uint32_t count;
	give(table, "site", "a", 1, START_MS + 100, START_MS);
	give(table, "site", "a", 2, START_MS + 200, START_MS);
	give(table, "site", "b", 3, START_MS + 50, START_MS);
	struct block_entry *const *changes = block_table_changes(table, &count);
	assert_int_equal(2, count);
	assert_int_equal(START_MS + 200, changes[0]->until_ms);
	assert_string_equal("{\"key\":[\"k\"], \"zone\":\"z\"}", changes[0]->json); /* a line of its own */
	block_table_settle(table);
	block_table_expire(table, START_MS + 50);
	changes = block_table_changes(table, &count);
	assert_int_equal(1, count);
	assert_int_equal(BLOCK_ENDED, changes[0]->state);
	assert_non_null(changes[0]->json);
	/* One that is gone is told even where another of the bucket has come. */
	give(table, "site", "b", 4, START_MS + 90, START_MS + 60);
	changes = block_table_changes(table, &count);
	assert_int_equal(2, count);
	assert_int_equal(BLOCK_LIVE, changes[1]->state);
	block_table_free(table);
}

static void test_what_was_told_is_known(void **state)
{
	(void)state;
	struct block_table *table = table_of(10);
	uint32_t count;
	give(table, "site", "a", 1, START_MS + 100, START_MS);
	assert_false(block_table_was_told(table, weir_span_of("a")));
	block_table_settle(table);
	assert_true(block_table_was_told(table, weir_span_of("a")));
	assert_false(block_table_was_told(table, weir_span_of("b")));
	give(table, "shop", "a", 2, START_MS + 200, START_MS);
	give(table, "site", "a", 3, 0, START_MS);
	assert_true(block_table_was_told(table, weir_span_of("a"))); /* by site's, until this is settled */
	give(table, "shop", "a", 4, 0, START_MS);
	block_table_settle(table);
	assert_false(block_table_was_told(table, weir_span_of("a")));
	give(table, "site", "b", 5, START_MS + 100, START_MS);
	block_table_settle(table);
	block_table_expire(table, START_MS + 100);
	assert_false(block_table_was_told(table, weir_span_of("b"))); /* gone: its own change says so */
	assert_true(block_table_changes(table, &count)[0]->told);
	block_table_free(table);
}

/* Though another zone's block of the same key ends later, or came later. */
static void test_an_operators_block_is_known_beside_others(void **state)
{
	(void)state;
	struct block_table *table = table_of(100);
	struct weir_span key = weir_span_of("10.0.0.0/8");
	give_by(table, "net", "10.0.0.0/8", 1, START_MS + 5000, false);
	assert_false(block_table_has_operators(table, key));
	give_by(table, "site", "10.0.0.0/8", 2, START_MS + 1000, true);
	assert_true(block_table_has_operators(table, key));
	assert_false(block_table_find_key(table, key)->by_operator); /* that one ends last */
	assert_false(block_table_has_operators(table, weir_span_of("10.0.0.0/9")));
	give_by(table, "site", "10.0.0.0/8", 3, 0, true);
	assert_false(block_table_has_operators(table, key));
	block_table_free(table);
}

static void test_a_block_without_end_stays_until_it_is_lifted(void **state)
{
	(void)state;
	struct block_table *table = table_of(10);
	give(table, "site", "a", 1, DECISION_NO_END, START_MS);
	block_table_expire(table, INT64_MAX - 1);
	assert_true(is_live(table, "site", "a"));
	give(table, "site", "a", 2, 0, START_MS);
	assert_false(is_live(table, "site", "a"));
	/* Its mark does not stay for ever. */
	assert_int_equal(START_MS + BLOCK_TABLE_GUARD_MAX_MS, block_table_expire(table, START_MS));
	assert_int_equal(INT64_MAX, block_table_expire(table, START_MS + BLOCK_TABLE_GUARD_MAX_MS));
	block_table_free(table);
}

/* ---- against the model ---- */

struct model_decision {
	uint32_t partition, zone, key; /* key KEYS: the whole zone */
	uint64_t offset;
	int64_t until_ms; /* 0: a lift */
};

struct model {
	struct model_decision *given;
	size_t count;
};

static const char *const zone_names[ZONES] = {"site", "shop", "mail"};

static void key_name(uint32_t key, char text[16])
{
	snprintf(text, 16, "key-%u", key);
}

/* A bucket is always of one partition. */
static uint32_t partition_of(uint32_t key)
{
	return key % PARTITIONS;
}

static int64_t model_until(const struct model *model, uint32_t zone, uint32_t key)
{
	const struct model_decision *newest = NULL;
	for (size_t i = 0; i < model->count; i++) {
		const struct model_decision *one = &model->given[i];
		bool about =
			one->zone == zone && (one->key == key || (one->key == KEYS && one->partition == partition_of(key)));
		if (about && (newest == NULL || one->offset > newest->offset))
			newest = one;
	}
	return newest != NULL ? newest->until_ms : 0;
}

static void check_against_model(const struct block_table *table, const struct model *model, int64_t now_ms)
{
	uint32_t live = 0, walked = 0;
	for (uint32_t zone = 0; zone < ZONES; zone++)
		for (uint32_t key = 0; key < KEYS; key++) {
			char name[16];
			key_name(key, name);
			int64_t until_ms = model_until(model, zone, key);
			const struct block_entry *entry =
				block_table_find(table, weir_span_of(zone_names[zone]), weir_span_of(name));
			assert_int_equal(until_ms > now_ms, entry != NULL);
			if (entry != NULL)
				assert_int_equal(until_ms, entry->until_ms);
			live += entry != NULL;
		}
	struct block_walk walk = {0};
	while (block_table_next(table, &walk) != NULL)
		walked++;
	assert_int_equal(live, walked);
	assert_int_equal(live, block_table_count(table));
}

/* What a target makes of the changes must be the table. */
struct mirror {
	int64_t until_ms[ZONES][KEYS];
};

static void carry_out(struct mirror *mirror, const struct block_table *table)
{
	uint32_t count;
	struct block_entry *const *changes = block_table_changes(table, &count);
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t zone = 0; zone < ZONES; zone++)
			for (uint32_t key = 0; key < KEYS; key++) {
				char name[16];
				key_name(key, name);
				if (weir_span_equal(block_entry_zone(changes[i]), weir_span_of(zone_names[zone])) &&
				    weir_span_equal(block_entry_key(changes[i]), weir_span_of(name)))
					mirror->until_ms[zone][key] = changes[i]->state == BLOCK_LIVE ? changes[i]->until_ms : 0;
			}
}

static void check_mirror(const struct mirror *mirror, const struct block_table *table)
{
	for (uint32_t zone = 0; zone < ZONES; zone++)
		for (uint32_t key = 0; key < KEYS; key++) {
			char name[16];
			key_name(key, name);
			const struct block_entry *entry =
				block_table_find(table, weir_span_of(zone_names[zone]), weir_span_of(name));
			assert_int_equal(entry != NULL ? entry->until_ms : 0, mirror->until_ms[zone][key]);
		}
}

static void test_random_decisions_as_the_model(void **state)
{
	(void)state;
	const char *given = getenv("WEIR_SEED");
	unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
	print_message("WEIR_SEED=%u\n", seed);
	srand(seed);
	struct block_table *table = table_of(ZONES * KEYS);
	struct model model = {.given = calloc(STEPS, sizeof *model.given)};
	struct mirror mirror = {{{0}}};
	int64_t now_ms = START_MS;
	uint64_t offset = 1;
	for (int step = 0; step < STEPS; step++) {
		now_ms += rand() % 4 == 0 ? rand() % 20 : 0;
		struct model_decision one = {.zone = (uint32_t)rand() % ZONES, .key = (uint32_t)rand() % KEYS};
		one.partition = partition_of(one.key);
		int kind = rand() % 100;
		if (kind < 10 && model.count > 0) {
			/* One of the last is published again, as it was. */
			size_t back = (size_t)rand() % (model.count < 200 ? model.count : 200) + 1;
			one = model.given[model.count - back];
		} else {
			one.offset = offset++;
			one.until_ms = kind < 30 ? 0 : now_ms + rand() % 500 - 20;
			if (kind == 10) {
				one.until_ms = 0;
				one.key = KEYS;
			}
		}
		char name[16];
		key_name(one.key, name);
		struct decision_record record =
			record_of(zone_names[one.zone], one.key == KEYS ? "" : name, one.offset, one.until_ms);
		record.whole_zone = one.key == KEYS;
		record.partition = one.partition;
		block_table_apply(table, &record, now_ms);
		model.given[model.count++] = one;
		if (rand() % 8 == 0) {
			block_table_expire(table, now_ms);
			carry_out(&mirror, table);
			block_table_settle(table);
			check_mirror(&mirror, table);
		}
		if (step % 97 == 0) {
			block_table_expire(table, now_ms);
			check_against_model(table, &model, now_ms);
		}
		/* What is older than all that can come again says nothing any more once it is over. */
		if (model.count > 6000) {
			memmove(model.given, model.given + 3000, (model.count - 3000) * sizeof *model.given);
			model.count -= 3000;
		}
	}
	block_table_free(table);
	free(model.given);
}

static void test_many_entries_are_found_again(void **state)
{
	(void)state;
	enum { MANY = 50000 };
	struct block_table *table = table_of(MANY);
	char name[16];
	for (uint32_t i = 0; i < MANY; i++) {
		key_name(i, name);
		give(table, "site", name, i, START_MS + 1 + i, START_MS);
	}
	assert_int_equal(MANY, block_table_count(table));
	for (uint32_t i = 0; i < MANY; i++) {
		key_name(i, name);
		assert_true(is_live(table, "site", name));
	}
	block_table_expire(table, START_MS + MANY / 2);
	assert_int_equal(MANY / 2, block_table_count(table));
	assert_int_equal(MANY - 1, block_table_seen(table, 0).offset);
	block_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_block_is_there_until_its_end),
		cmocka_unit_test(test_what_is_over_when_it_comes_is_not_taken),
		cmocka_unit_test(test_an_older_version_changes_nothing),
		cmocka_unit_test(test_a_block_that_was_lifted_does_not_come_back),
		cmocka_unit_test(test_a_shorter_block_ends_a_longer_one),
		cmocka_unit_test(test_a_lift_of_a_zone_ends_its_blocks_of_that_partition),
		cmocka_unit_test(test_a_key_is_blocked_as_long_as_in_any_zone),
		cmocka_unit_test(test_a_full_table_leaves_out_what_ends_first),
		cmocka_unit_test(test_a_cleared_table_takes_in_what_it_had),
		cmocka_unit_test(test_what_is_kept_gives_way_to_any_version),
		cmocka_unit_test(test_changes_are_a_list_of_buckets),
		cmocka_unit_test(test_what_was_told_is_known),
		cmocka_unit_test(test_an_operators_block_is_known_beside_others),
		cmocka_unit_test(test_a_block_without_end_stays_until_it_is_lifted),
		cmocka_unit_test(test_random_decisions_as_the_model),
		cmocka_unit_test(test_many_entries_are_found_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

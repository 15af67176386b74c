/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a limiter believes to answer for a partition: rows of the store against what it had itself. */
#include "limiter/owners/owners.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PARTITIONS = 100 };

static void learn_at(struct owners *owners, int64_t now_ms, uint32_t partition, uint64_t stored_epoch, const char *row)
{
	owners_read_begin(owners, now_ms);
	owners_learn(owners, partition, stored_epoch, weir_span_of(row));
	owners_read_end(owners);
}

static void learn(struct owners *owners, uint32_t partition, uint64_t stored_epoch, const char *row)
{
	learn_at(owners, 1000, partition, stored_epoch, row);
}

static void assert_place(struct owners *owners, uint32_t partition, const char *host, uint16_t port)
{
	struct owners_place place;
	uint32_t number = owners_of(owners, partition);
	assert_int_not_equal(number, OWNERS_NONE);
	assert_true(owners_place(owners, number, &place));
	assert_string_equal(place.host, host);
	assert_int_equal(place.port, port);
}

static void the_newest_owner_is_believed(void **state)
{
	struct owners *owners = owners_new(PARTITIONS, "a", 6390);
	(void)state;
	assert_int_equal(owners_of(owners, 3), OWNERS_NONE);
	learn(owners, 3, 10, "10 b:6391");
	assert_place(owners, 3, "b", 6391);
	assert_int_equal(owners_of(owners, 4), OWNERS_NONE);
	learn(owners, 3, 11, "11 [2001:db8::1]:6392");
	assert_place(owners, 3, "2001:db8::1", 6392);
	learn(owners, 3, 12, "11 b:6391"); /* somebody has taken it, and has not said where he is */
	assert_int_equal(owners_of(owners, 3), OWNERS_NONE);
	learn(owners, 4, 12, "12 b:6391"); /* of 3 there is no row any more */
	assert_int_equal(owners_of(owners, 3), OWNERS_NONE);
	owners_free(owners);
}

/* What this process had later, another has no more: so of two limiters one knows better. */
static void an_older_owner_is_not_believed(void **state)
{
	struct owners *owners = owners_new(PARTITIONS, "a", 6390);
	(void)state;
	learn(owners, 3, 10, "10 b:6391");
	owners_took(owners, 3, 20);
	assert_int_equal(owners_of(owners, 3), OWNERS_NONE);
	assert_int_equal(owners_epoch(owners, 3), 20);
	learn(owners, 3, 10, "10 b:6391"); /* a reading that began before */
	assert_int_equal(owners_of(owners, 3), OWNERS_NONE);
	assert_false(owners_lost(owners, 3));
	learn(owners, 3, 30, "20 a:6390"); /* taken by somebody, who did not say where he is */
	assert_true(owners_lost(owners, 3));
	owners_left(owners, 3);
	assert_false(owners_lost(owners, 3));
	assert_int_equal(owners_epoch(owners, 3), 0);
	learn(owners, 3, 20, "20 c:6391");
	assert_int_equal(owners_of(owners, 3), OWNERS_NONE);
	learn(owners, 3, 21, "21 a:6390"); /* an earlier life of this one */
	assert_int_equal(owners_of(owners, 3), OWNERS_NONE);
	learn(owners, 3, 21, "21 c:6391");
	assert_place(owners, 3, "c", 6391);
	owners_free(owners);
}

static void what_is_no_row_is_passed_over(void **state)
{
	static const char *const rows[] = {
		"",       "10",         "10 ",         "x b:1",  "10 b",    "10 b:", " :1",
		"10 b:x", "10 b:70000", "10 b:1 more", "-1 b:1", "10 :::1", "b:1",   "99999999999999999999999 b:1"};
	struct owners *owners = owners_new(PARTITIONS, "a", 6390);
	char large[400];
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		learn(owners, 3, 10, rows[i]);
		assert_int_equal(owners_of(owners, 3), OWNERS_NONE);
	}
	int length = snprintf(large, sizeof large, "10 %0300d:1", 0);
	assert_true(length > OWNERS_HOST_BYTES);
	learn(owners, 3, 10, large);
	assert_int_equal(owners_of(owners, 3), OWNERS_NONE);
	learn(owners, PARTITIONS, 10, "10 b:1");
	owners_free(owners);
}

/* Whoever publishes this process's address under a higher epoch is another; what stood there before may be its own earlier life. */
static void another_with_the_same_address_is_told(void **state)
{
	struct owners *owners = owners_new(PARTITIONS, "a", 6390);
	(void)state;
	learn(owners, 3, 10, "10 a:6390");
	learn(owners, 3, 10, "10 a:6390");
	assert_false(owners_share_address(owners)); /* of a life before */
	owners_took(owners, 3, 11);
	learn(owners, 3, 11, "11 a:6390");
	assert_false(owners_share_address(owners)); /* its own */
	learn(owners, 3, 12, "11 a:6390");
	assert_false(owners_share_address(owners)); /* the next has not said where it is */
	learn(owners, 3, 12, "12 a:6390");
	assert_true(owners_share_address(owners));
	assert_int_equal(owners_of(owners, 3), OWNERS_NONE);
	learn(owners, 3, 12, "12 b:6390"); /* it has been given its own */
	assert_false(owners_share_address(owners));
	owners_free(owners);
}

/* Of two that start together, each finds the other's rows at its first reading. */
static void another_that_was_there_as_early_is_told_later(void **state)
{
	struct owners *owners = owners_new(PARTITIONS, "a", 6390);
	(void)state;
	learn_at(owners, 1000, 3, 10, "10 a:6390");
	learn_at(owners, 1000 + OWNERS_SETTLED_MS, 3, 10, "10 a:6390");
	learn_at(owners, 1000 + OWNERS_SETTLED_MS, 3, 10, "10 a:6390");
	assert_false(owners_share_address(owners)); /* nobody has taken anything: it may be of a life before */
	owners_took(owners, 4, 11);
	learn_at(owners, 1001 + OWNERS_SETTLED_MS, 4, 11, "11 a:6390");
	learn_at(owners, 1002 + OWNERS_SETTLED_MS, 3, 10, "10 a:6390");
	assert_true(owners_share_address(owners));
	learn_at(owners, 1003 + OWNERS_SETTLED_MS, 3, 12, "12 b:6390");
	assert_false(owners_share_address(owners));
	owners_free(owners);
}

/* Limiters come and go under new addresses: numbers of those that have nothing are given again. */
static void places_are_given_again(void **state)
{
	struct owners *owners = owners_new(PARTITIONS, "a", 6390);
	struct owners_place place;
	char row[64];
	(void)state;
	for (unsigned life = 0; life < 3 * OWNERS_PLACES_MAX; life++) {
		snprintf(row, sizeof row, "%u b:%u", 10 + life, 1000 + life);
		learn(owners, 3, 10 + life, row);
		snprintf(row, sizeof row, "b");
		assert_place(owners, 3, row, (uint16_t)(1000 + life));
	}
	assert_true(owners_place(owners, owners_of(owners, 3), &place));
	assert_true(place.version > 1);
	/* With more at once than there are numbers, the rest is not known. */
	owners_read_begin(owners, 1000);
	for (uint32_t i = 0; i < PARTITIONS; i++) {
		snprintf(row, sizeof row, "500 c:%u", 2000 + i);
		owners_learn(owners, i, 500, weir_span_of(row));
	}
	owners_read_end(owners);
	uint32_t known = 0;
	for (uint32_t i = 0; i < PARTITIONS; i++)
		known += owners_of(owners, i) != OWNERS_NONE;
	assert_in_range(known, OWNERS_PLACES_MAX - 1, OWNERS_PLACES_MAX);
	owners_free(owners);
}

static void a_row_says_where_this_process_is(void **state)
{
	char row[OWNERS_ROW_BYTES];
	(void)state;
	struct owners *owners = owners_new(1, "2001:db8::1", 6390), *other = owners_new(1, "b", 1);
	struct weir_span said = owners_row(owners, UINT64_MAX, row);
	assert_true(weir_span_equal(said, weir_span_of("18446744073709551615 [2001:db8::1]:6390")));
	owners_read_begin(other, 1000);
	owners_learn(other, 0, UINT64_MAX, said);
	owners_read_end(other);
	assert_place(other, 0, "2001:db8::1", 6390);
	assert_false(owners_take_doubt(owners));
	owners_doubt(owners);
	assert_true(owners_take_doubt(owners));
	assert_false(owners_take_doubt(owners));
	owners_free(owners);
	owners_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newest_owner_is_believed),
		cmocka_unit_test(an_older_owner_is_not_believed),
		cmocka_unit_test(what_is_no_row_is_passed_over),
		cmocka_unit_test(places_are_given_again),
		cmocka_unit_test(a_row_says_where_this_process_is),
		cmocka_unit_test(another_with_the_same_address_is_told),
		cmocka_unit_test(another_that_was_there_as_early_is_told_later),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The table of fields: standard names first, each name once, a bound. What records count that stand for several. */
#include "common/record/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void begins_with_the_standard_names(void **state)
{
	(void)state;
	struct weir_field_table table;
	weir_field_table_init(&table);
	assert_int_equal(table.count, WEIR_FIELD_STANDARD_COUNT);
	assert_int_equal(table.wanted, 0);
	assert_int_equal(weir_field_table_find(&table, weir_span_of("ip")), WEIR_FIELD_IP);
	assert_int_equal(weir_field_table_find(&table, weir_span_of("agent")), WEIR_FIELD_AGENT);
	assert_int_equal(weir_field_table_find(&table, weir_span_of("i")), -1);
	assert_int_equal(weir_field_table_find(&table, weir_span_of("")), -1);
	weir_field_table_deinit(&table);
}

static void wanting_adds_a_name_once(void **state)
{
	(void)state;
	struct weir_field_table table;
	weir_field_table_init(&table);
	assert_int_equal(weir_field_table_want(&table, "status"), WEIR_FIELD_STATUS);
	int query = weir_field_table_want(&table, "query");
	assert_int_equal(query, WEIR_FIELD_STANDARD_COUNT);
	assert_int_equal(weir_field_table_want(&table, "query"), query);
	assert_int_equal(table.count, WEIR_FIELD_STANDARD_COUNT + 1);
	assert_int_equal(table.wanted, UINT64_C(1) << WEIR_FIELD_STATUS | UINT64_C(1) << query);
	weir_field_table_deinit(&table);
}

static void a_full_table_takes_no_more(void **state)
{
	(void)state;
	struct weir_field_table table;
	weir_field_table_init(&table);
	for (int i = WEIR_FIELD_STANDARD_COUNT; i < WEIR_FIELD_MAX; i++) {
		char name[16];
		snprintf(name, sizeof name, "field%d", i);
		assert_int_equal(weir_field_table_want(&table, name), i);
	}
	assert_int_equal(weir_field_table_want(&table, "one more"), -1);
	assert_int_equal(weir_field_table_want(&table, "field63"), 63);
	assert_true((table.wanted >> 63 & 1) != 0);
	weir_field_table_deinit(&table);
}

/* Whatever is left of a limit, as many pass as of single events, and the last one finds nothing left if not all did. */
static void parts_pass_as_single_ones_do(void **state)
{
	(void)state;
	uint32_t parts[WEIR_RECORD_PARTS_MAX];
	for (uint32_t times = 0; times <= 3000; times++) {
		uint32_t sum = 0, count = weir_record_parts(times, parts);
		assert_true(count <= WEIR_RECORD_PARTS_MAX);
		for (uint32_t i = 0; i < count; i++) {
			assert_true(parts[i] > 0 && (times > 32 || parts[i] == 1));
			sum += parts[i];
		}
		assert_int_equal(sum, times);
		for (uint32_t room = 0; room<times; room += times> 200 ? 7 : 1) {
			uint32_t left = room, before_last = 0;
			for (uint32_t i = 0; i < count; i++) {
				before_last = left;
				left -= parts[i] <= left ? parts[i] : 0;
			}
			assert_int_equal(left, 0);
			assert_int_equal(before_last, 0);
		}
	}
	assert_int_equal(weir_record_parts(WEIR_RECORD_TIMES_MAX, parts), 46);
	assert_int_equal(weir_record_parts(UINT32_MAX, parts), 46);
	assert_int_equal(weir_record_times(3, 2), 6);
	assert_int_equal(weir_record_times(WEIR_RECORD_TIMES_MAX, WEIR_RECORD_TIMES_MAX), WEIR_RECORD_TIMES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begins_with_the_standard_names),
		cmocka_unit_test(parts_pass_as_single_ones_do),
		cmocka_unit_test(wanting_adds_a_name_once),
		cmocka_unit_test(a_full_table_takes_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

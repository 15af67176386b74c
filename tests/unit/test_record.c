/* SPDX-License-Identifier: Apache-2.0 */
/* The table of fields: standard names first, each name once, a bound. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begins_with_the_standard_names),
		cmocka_unit_test(wanting_adds_a_name_once),
		cmocka_unit_test(a_full_table_takes_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

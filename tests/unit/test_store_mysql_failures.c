/* SPDX-License-Identifier: Apache-2.0 */
/* Which entry of the runbook an error of the store's server leads to. */
#include "common/store/mysql/store_mysql_failures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void assert_leads(unsigned number, const char *runbook, bool refused)
{
	const struct weir_mysql_failure *failure = weir_mysql_failure(number);
	assert_string_equal(failure->runbook, runbook);
	assert_int_equal(failure->refused, refused);
	assert_true(failure->words[0] != '\0' && failure->remedy[0] != '\0');
}

static void each_number_leads_to_what_ends_it(void **state)
{
	(void)state;
	static const struct {
		unsigned number;
		const char *runbook;
		bool refused;
	} cases[] = {
		{1146, "store-tables", false},    {1932, "store-tables", false}, {1226, "store-limits", false},
		{1203, "store-limits", false},    {1040, "store-limits", false}, {1153, "store-limits", false},
		{2020, "store-limits", false},    {1969, "store-limits", false}, {4151, "credentials", true},
		{3118, "credentials", true},      {1820, "credentials", true},   {1862, "credentials", true},
		{1045, "credentials", true},      {1142, "credentials", true},   {1290, "store-read-only", false},
		{1836, "store-read-only", false}, {1205, "store-locked", false}, {1021, "store-away", false},
		{2002, "store-away", false},      {2026, "certificates", false}, {1064, "store-away", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_leads(cases[i].number, cases[i].runbook, cases[i].refused);
}

static void no_remedy_but_that_of_a_server_that_is_read_only_makes_it_writable(void **state)
{
	(void)state;
	for (unsigned number = 1; number < 5000; number++) {
		const struct weir_mysql_failure *failure = weir_mysql_failure(number);
		assert_int_equal(strstr(failure->remedy, "read_only = 0") != NULL,
		                 strcmp(failure->runbook, "store-read-only") == 0);
	}
}

static void the_last_number_of_a_text_is_the_servers(void **state)
{
	(void)state;
	const struct weir_mysql_failure *failure = weir_mysql_failure_in(
		"weir@127.0.0.1:3306/weir: Table 'weir.note' doesn't exist (1146): restore it (runbook: store-tables)");
	assert_non_null(failure);
	assert_int_equal(failure->number, 1146);
	failure = weir_mysql_failure_in("a: Can't connect to server on 'h' (111) (2002): look (runbook: store-away)");
	assert_string_equal(failure->remedy, "start the store");
	assert_null(weir_mysql_failure_in("this database belongs to another program (see there)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_number_leads_to_what_ends_it),
		cmocka_unit_test(no_remedy_but_that_of_a_server_that_is_read_only_makes_it_writable),
		cmocka_unit_test(the_last_number_of_a_text_is_the_servers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

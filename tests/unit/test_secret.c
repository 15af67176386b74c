/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets that are given, and what is none. */
#include "common/bytes/secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void the_whole_secret_is_one(void **state)
{
	(void)state;
	assert_true(weir_secret_is(weir_span_of("s3cret"), weir_span_of("s3cret")));
	assert_true(weir_secret_is((struct weir_span){"a\0\xff", 3}, (struct weir_span){"a\0\xff", 3}));
}

static void all_else_is_none(void **state)
{
	(void)state;
	static const char *const given[] = {"", "s", "s3cre", "s3creT", "S3cret", "s3crets", "s3crets3cret", "xxxxxx"};
	for (size_t i = 0; i < sizeof given / sizeof *given; i++)
		assert_false(weir_secret_is(weir_span_of("s3cret"), weir_span_of(given[i])));
	assert_false(weir_secret_is(weir_span_of("s3cret"), (struct weir_span){"s3cret\0", 7}));
	assert_false(weir_secret_is(weir_span_of("s3cret"), (struct weir_span){0}));
	assert_false(weir_secret_is(weir_span_of(""), weir_span_of("s3cret")));
	assert_false(weir_secret_is((struct weir_span){"a\0b", 3}, (struct weir_span){"a\0c", 3}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_whole_secret_is_one),
		cmocka_unit_test(all_else_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

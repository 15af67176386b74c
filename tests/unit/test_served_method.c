/* SPDX-License-Identifier: Apache-2.0 */
/* A method of HTTP, whatever letters a client wrote it with. */
#include "common/record/served_method.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_method(struct weir_span method, struct weir_span expected)
{
	/* From memory of just its size: a sanitizer sees a read past it. */
	char *copy = malloc(method.length + (size_t)1);
	assert_non_null(copy);
	memmove(copy + 1, method.at, method.length);
	struct weir_span served = weir_served_method((struct weir_span){.at = copy + 1, .length = method.length});
	if (!weir_span_equal(served, expected))
		fail_msg("\"%.*s\" gives \"%.*s\", not \"%.*s\"", (int)method.length, method.at, (int)served.length, served.at,
		         (int)expected.length, expected.at);
	free(copy);
}

static void a_method_has_one_form(void **state)
{
	(void)state;
	for (const char *const *name = weir_served_methods(); *name != NULL; name++) {
		struct weir_span capitals = weir_span_of(*name);
		char small[64], mixed[64];
		for (uint32_t i = 0; i < capitals.length; i++) {
			small[i] = (char)(capitals.at[i] == '-' ? '-' : capitals.at[i] | 0x20);
			mixed[i] = i % 2 == 0 ? capitals.at[i] : small[i];
		}
		assert_method(capitals, capitals);
		assert_method((struct weir_span){.at = small, .length = capitals.length}, capitals);
		assert_method((struct weir_span){.at = mixed, .length = capitals.length}, capitals);
	}
}

static void what_is_no_method_of_http_stays(void **state)
{
	(void)state;
	static const char *const others[] = {
		"",      "FROBNICATE",   "frobnicate", "password",  "publickey", "pam",
		"PLAIN", "getBalance",   "eth_call",   "pos",       "posts",     "post ",
		"p*",    "Mkredirectre", "get_",       "m\rsearch", "\xc7xt",    "VersionControl"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_method(weir_span_of(others[i]), weir_span_of(others[i]));
	assert_method((struct weir_span){.at = "get\0", .length = 4}, (struct weir_span){.at = "get\0", .length = 4});
	static char many[1 << 20];
	memset(many, 'a', sizeof many);
	assert_method((struct weir_span){.at = many, .length = sizeof many},
	              (struct weir_span){.at = many, .length = sizeof many});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_method_has_one_form),
		cmocka_unit_test(what_is_no_method_of_http_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The host that was asked for, whatever way a client wrote it. */
#include "common/record/served_host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_host(struct weir_span host, const char *expected)
{
	char room[WEIR_SERVED_HOST_BYTES];
	/* From memory of just its size: a sanitizer sees a read past it. */
	char *copy = malloc(host.length);
	assert_non_null(copy);
	memcpy(copy, host.at, host.length);
	struct weir_span served = weir_served_host((struct weir_span){.at = copy, .length = host.length}, room);
	if (!weir_span_equal(served, weir_span_of(expected)))
		fail_msg("\"%.*s\" gives \"%.*s\", not \"%s\"", (int)host.length, host.at, (int)served.length, served.at,
		         expected);
	free(copy);
}

static void a_host_has_one_form(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{"api.example.com", "api.example.com"},
		{"API.example.com", "api.example.com"},
		{"aPi.Example.COM:443", "api.example.com"},
		{"api.example.com:", "api.example.com"},
		{"api.example.com.", "api.example.com"},
		{"Api.example.com.:8443", "api.example.com"},
		{"localhost", "localhost"},
		{"A", "a"},
		{"192.0.2.7:80", "192.0.2.7"},
		{"[::1]:8443", "[::1]"},
		{"[2001:DB8::7]", "[2001:db8::7]"},
		{"web_1-A:65535", "web_1-a"},
		{"A:b", "a"},
		{"A.example:80:90", "a.example"},
		{"A.example:*", "a.example"},
		{"A.example.: 80", "a.example"},
		{"[::1]:x", "[::1]"},
		{"*.Example.com", "*.example.com"},
		{"B\xc3\x9c"
	     "cher.example",
	     "b\xc3\x9c"
	     "cher.example"},
	};
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		assert_host(weir_span_of(pairs[i][0]), pairs[i][1]);
		assert_host(weir_span_of(pairs[i][1]), pairs[i][1]);
	}
}

static void what_is_no_host_stays(void **state)
{
	(void)state;
	static const char *const others[] = {
		".",    "..",     "A..", ":80", "2001:DB8::7", "FE80::1%eth0", "[A",  "[]:80",
		"[A]B", "[G]:80", "A b", "A/b", "A@b:80",      "{\"A\":1}",    "A,B",
	};
	char name[WEIR_SERVED_HOST_BYTES + 2];
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_host(weir_span_of(others[i]), others[i]);
	memset(name, 'A', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	assert_host(weir_span_of(name), name);
	name[1] = ':'; /* the port alone is long */
	assert_host(weir_span_of(name), "a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_has_one_form),
		cmocka_unit_test(what_is_no_host_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

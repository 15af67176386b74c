/* SPDX-License-Identifier: Apache-2.0 */
/* Targets of requests in absolute form, and what is none. */
#include "common/bytes/http_target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void an_address_is_taken_apart(void **state)
{
	(void)state;
	static const struct {
		const char *target, *rest, *authority; /* authority: NULL, there is none */
		bool good;
	} cases[] = {
		{"/v1/check", "/v1/check", NULL, true},
		{"*", "*", NULL, true},
		{"", "", NULL, true},
		{"//a/b", "//a/b", NULL, true},
		{"/http://a/b", "/http://a/b", NULL, true},
		{"http:/a", "http:/a", NULL, true},
		{"ftp://a/b", "ftp://a/b", NULL, true},
		{"a:80", "a:80", NULL, true},
		{"http://a/v1/check?b=c", "/v1/check?b=c", "a", true},
		{"HTTP://A.Example:80/b", "/b", "A.Example:80", true},
		{"https://[::1]:8443/b//c", "/b//c", "[::1]:8443", true},
		{"http://a", "/", "a", true},
		{"http://a?b", "?b", "a", true},
		{"http://a/b@c", "/b@c", "a", true},
		{"http://", "/", "", false},
		{"http:///b", "/b", "", false},
		{"http://:80/b", "/b", ":80", false},
		{"http://ann@a/b", "/b", "ann@a", false},
		{"http://ann:secret@a/b", "/b", "ann:secret@a", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct weir_span target = weir_span_of(cases[i].target), authority;
		bool good = weir_http_target_split(&target, &authority);
		bool same = weir_span_equal(target, weir_span_of(cases[i].rest)) &&
		            (authority.at != NULL) == (cases[i].authority != NULL) &&
		            (authority.at == NULL || weir_span_equal(authority, weir_span_of(cases[i].authority)));
		if (good != cases[i].good || !same)
			fail_msg("%s", cases[i].target);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_taken_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

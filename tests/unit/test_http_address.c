/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of an address that may have a secret in it. */
#include "common/bytes/http_address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void secrets_are_not_shown(void **state)
{
	(void)state;
	static const struct {
		const char *address, *shown;
		bool account;
	} cases[] = {
		{"https://lists.example/bots?token=secret", "https://lists.example/bots", false},
		{"https://ann:secret@lists.example:8443/a@b#secret", "https://lists.example:8443/a@b", true},
		{"https://secret@lists.example?secret", "https://lists.example", true},
		{"https://lists.example/@ann", "https://lists.example/@ann", false},
		{"/etc/weir/allow?a@b#c", "/etc/weir/allow?a@b#c", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct weir_text shown = {0};
		weir_http_address_show(cases[i].address, &shown);
		weir_text_append(&shown, "", 1);
		assert_string_equal(shown.at, cases[i].shown);
		assert_int_equal(weir_http_address_has_account(cases[i].address), cases[i].account);
		weir_text_deinit(&shown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secrets_are_not_shown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* HMAC-SHA256 by the cases of RFC 4231. */
#include "common/bytes/hmac.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void assert_digits(const char *secret, const char *bytes, const char *expected)
{
	char digits[WEIR_HMAC_DIGITS];
	struct weir_hmac *hmac = weir_hmac_new(weir_span_of(secret));
	assert_non_null(hmac);
	for (int i = 0; i < 2; i++) { /* again by the same one */
		weir_hmac_digits(hmac, weir_span_of(bytes), digits, sizeof digits);
		assert_memory_equal(expected, digits, sizeof digits);
	}
	weir_hmac_free(hmac);
}

static void test_known_answers(void **state)
{
	(void)state;
	assert_digits("Jefe", "what do ya want for nothing?",
	              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	assert_digits("\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b", "Hi There",
	              "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_answers)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

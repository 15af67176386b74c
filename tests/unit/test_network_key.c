/* SPDX-License-Identifier: Apache-2.0 */
/* Networks as keys of a gateway's list: how wide they may be, and which of IPv6 hide all of IPv4. */
#include "deploy/gateways/target/network_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool holds(const char *key, bool any_size)
{
	struct weir_network network;
	return network_key(weir_span_of(key), any_size, &network);
}

static bool has_mapped(const char *key)
{
	struct weir_network network;
	assert_true(network_key(weir_span_of(key), true, &network));
	return network_key_has_mapped(&network);
}

static void test_no_limit_is_about_a_wide_network(void **state)
{
	(void)state;
	assert_true(holds("10.0.0.0/16", false) && holds("2001:db8::/32", false) && holds("::1", false));
	assert_false(holds("10.0.0.0/15", false) || holds("2000::/31", false) || holds("bob", true) || holds("", true));
	assert_true(holds("10.0.0.0/8", true) && holds("::/0", true));
}

static void test_networks_around_the_mapped_addresses(void **state)
{
	(void)state;
	static const char *const around[] = {"::/0",  "::/1",          "::/32",         "::/64",        "::/79",
	                                     "::/80", "::8000:0:0/81", "::ffc0:0:0/90", "::fffe:0:0/95"};
	static const char *const beside[] = {"::/81",     "::/96",      "::1",          "::/128",           "::fffc:0:0/95",
	                                     "8000::/1",  "2000::/3",   "::1:0:0:0/80", "0:0:0:1::/64",     "2001:db8::/32",
	                                     "0.0.0.0/0", "10.0.0.0/8", "127.0.0.1",    "::ffff:192.0.2.1", "64:ff9b::/96"};
	for (size_t i = 0; i < sizeof around / sizeof *around; i++)
		if (!has_mapped(around[i]))
			fail_msg("%s", around[i]);
	for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
		if (has_mapped(beside[i]))
			fail_msg("%s", beside[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_limit_is_about_a_wide_network),
		cmocka_unit_test(test_networks_around_the_mapped_addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

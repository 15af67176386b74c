/* SPDX-License-Identifier: Apache-2.0 */
/* What `ipset -t list` says, and keys as elements of a set. */
#include "deploy/gateways/target/ipset/ipset_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static enum weir_status read_set(const char *type, const char *header, struct ipset_set *set)
{
	char listing[512];
	struct weir_error error;
	snprintf(listing, sizeof listing, "Name: t\nType: %s\nRevision: 7\nHeader: %s\nNumber of entries: 0\n", type,
	         header);
	return ipset_set_read("t", weir_span_of(listing), set, &error);
}

static void test_listings(void **state)
{
	(void)state;
	struct ipset_set set;
	assert_int_equal(WEIR_OK,
	                 read_set("hash:net", "family inet hashsize 1024 maxelem 3 timeout 0 bucketsize 12", &set));
	assert_true(set.networks && !set.v6 && set.most == 3);
	assert_int_equal(WEIR_OK, read_set("hash:ip", "family inet6 hashsize 1024 maxelem 65536 timeout 60", &set));
	assert_true(!set.networks && set.v6 && set.most == 65536);
	assert_int_equal(WEIR_INVALID, read_set("hash:ip", "family inet hashsize 1024 maxelem 65536", &set));
	assert_int_equal(WEIR_INVALID, read_set("hash:ip,port", "family inet maxelem 65536 timeout 0", &set));
	assert_int_equal(WEIR_INVALID, read_set("hash:ip", "family inet netmask 24 maxelem 65536 timeout 0", &set));
	assert_int_equal(WEIR_INVALID, read_set("bitmap:ip", "range 10.0.0.0-10.0.0.9 timeout 0", &set));
	struct weir_error error;
	assert_int_equal(WEIR_INVALID, ipset_set_read("t", (struct weir_span){0}, &set, &error));
}

static void assert_element(bool v6, bool networks, const char *key, const char *expected)
{
	char text[IPSET_ELEMENT_BYTES];
	const struct ipset_set set = {.v6 = v6, .networks = networks};
	bool good = ipset_set_element(&set, weir_span_of(key), false, text);
	assert_int_equal(expected != NULL, good);
	if (good)
		assert_string_equal(expected, text);
}

static void test_elements(void **state)
{
	(void)state;
	assert_element(false, false, "203.0.113.9", "203.0.113.9");
	assert_element(false, false, "203.0.113.0/24", NULL); /* it would become 256 elements */
	assert_element(false, true, "203.0.113.0/24", "203.0.113.0/24");
	assert_element(true, true, "203.0.113.9", NULL);
	assert_element(true, false, "2001:DB8::9", "2001:db8::9");
	assert_element(true, true, "2001:db8::/64", "2001:db8::/64");
	assert_element(false, true, "0.0.0.0/0", NULL);
	assert_element(false, true, "ann", NULL);
	assert_element(false, true, "1.2.3.4 timeout 0\nflush t", NULL);
}

static void test_timeouts(void **state)
{
	(void)state;
	assert_int_equal(1, ipset_timeout_s(1001, 1000));
	assert_int_equal(1, ipset_timeout_s(2000, 1000));
	assert_int_equal(2, ipset_timeout_s(2001, 1000));
	assert_int_equal(1, ipset_timeout_s(500, 1000)); /* not 0, which has no end */
	assert_int_equal(2147483, ipset_timeout_s(2147483000, 0));
	assert_int_equal(0, ipset_timeout_s(2147483001, 0));
	assert_int_equal(0, ipset_timeout_s(INT64_MAX, 1000));
}

static void test_names(void **state)
{
	(void)state;
	assert_true(ipset_is_name(weir_span_of("weir-4.x_Y")));
	assert_false(ipset_is_name(weir_span_of("-x")));
	assert_false(ipset_is_name(weir_span_of("a b")));
	assert_false(ipset_is_name(weir_span_of("")));
	assert_false(ipset_is_name(weir_span_of("12345678901234567890123456789012")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listings),
		cmocka_unit_test(test_elements),
		cmocka_unit_test(test_timeouts),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

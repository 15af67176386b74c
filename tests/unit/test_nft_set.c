/* SPDX-License-Identifier: Apache-2.0 */
/* Sets as nft lists them, keys as their elements. */
#include "deploy/gateways/target/nft/nft_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_listings(void **state)
{
	(void)state;
	struct nft_set set;
	assert_true(nft_set_read(weir_span_of("table inet weir {\n\tset blocked {\n\t\ttype ipv4_addr\n\t\tflags "
	                                      "timeout\n\t}\n}\n"),
	                         &set));
	assert_true(!set.v6 && !set.interval && set.timeout);
	assert_true(nft_set_read(weir_span_of("set b {\n type ipv6_addr\n flags interval,timeout\n}"), &set));
	assert_true(set.v6 && set.interval && set.timeout);
	assert_true(nft_set_read(weir_span_of("set b {\n typeof ip saddr\n}"), &set));
	assert_true(!set.v6 && !set.interval && !set.timeout);
	assert_true(nft_set_read(weir_span_of("set b {\n typeof ip6 saddr\n flags dynamic,timeout"), &set));
	assert_true(set.v6 && set.timeout && !set.ends && !set.merges);
	assert_true(nft_set_read(weir_span_of("set b {\n type ipv4_addr\n flags timeout\n timeout 1h\n}"), &set));
	assert_true(set.timeout && set.ends && !set.merges);
	assert_true(nft_set_read(weir_span_of("set b {\n type ipv4_addr\n flags interval\n timeout 1h\n}"), &set));
	assert_true(set.interval && set.timeout && set.ends && set.most == 0);
	assert_true(nft_set_read(weir_span_of("set b {\n type ipv4_addr\n size 2\n flags timeout\n}"), &set));
	assert_true(set.most == 2 && set.timeout && !set.ends);
	assert_true(
		nft_set_read(weir_span_of("set b {\n type ipv4_addr\n size 65535\t# count 12\n flags timeout\n}"), &set));
	assert_int_equal(set.most, 65535);
	assert_true(nft_set_read(weir_span_of("set b {\n type ipv4_addr\n size 99999999999999999999\n}"), &set));
	assert_int_equal(set.most, UINT32_MAX);
	assert_true(nft_set_read(weir_span_of("set b {\n type ipv4_addr\n flags interval,timeout\n auto-merge\n}"), &set));
	assert_true(set.interval && set.timeout && !set.ends && set.merges);
	assert_false(nft_set_read(weir_span_of("set b {\n type inet_service\n}"), &set));
	assert_false(nft_set_read(weir_span_of("set b {\n type ipv4_addr . inet_service\n}"), &set));
	assert_false(nft_set_read(weir_span_of("set b {\n typeof tcp dport\n}"), &set));
	assert_false(nft_set_read(weir_span_of(""), &set));
}

static void gather(void *context, struct weir_span element)
{
	char *into = context;
	strcat(strncat(into, element.at, element.length), ";");
}

static void test_elements_of_a_listing(void **state)
{
	(void)state;
	char seen[200] = "";
	nft_set_elements(
		weir_span_of("table inet weir {\n\tset b {\n\t\ttype ipv4_addr\n\t\telements = { 192.0.2.1 timeout "
	                 "1h expires 59m,\n\t\t\t     198.51.100.0/24 timeout 2s, 192.0.2.9 }\n\t}\n}\n"),
		gather, seen);
	assert_string_equal(seen, "192.0.2.1;198.51.100.0/24;192.0.2.9;");
	seen[0] = '\0';
	nft_set_elements(weir_span_of("set b {\n type ipv6_addr\n elements = { 2001:db8::/32 }\n}"), gather, seen);
	assert_string_equal(seen, "2001:db8::/32;");
	seen[0] = '\0';
	nft_set_elements(weir_span_of("set b {\n type ipv4_addr\n}"), gather, seen);
	nft_set_elements(weir_span_of("elements = { 192.0.2.1,"), gather, seen);
	nft_set_elements(weir_span_of(""), gather, seen);
	assert_string_equal(seen, "");
}

static void assert_element(struct nft_set set, const char *key, const char *expected)
{
	char text[NFT_SET_ELEMENT_BYTES];
	bool found = nft_set_element(&set, weir_span_of(key), false, text);
	assert_int_equal(expected != NULL, found);
	if (found)
		assert_string_equal(expected, text);
}

static void test_elements(void **state)
{
	(void)state;
	struct nft_set v4 = {.v6 = false}, v6 = {.v6 = true};
	struct nft_set v4_networks = {.interval = true}, v6_networks = {.v6 = true, .interval = true};
	assert_element(v4, "203.0.113.9", "203.0.113.9");
	assert_element(v6, "203.0.113.9", NULL);
	assert_element(v6, "2001:db8::1", "2001:db8::1");
	assert_element(v4, "2001:db8::1", NULL);
	assert_element(v4, "::ffff:203.0.113.9", "203.0.113.9");
	assert_element(v4, "203.0.113.0/24", NULL);
	assert_element(v4, "203.0.113.9/32", "203.0.113.9");
	assert_element(v4_networks, "203.0.113.0/24", "203.0.113.0/24");
	assert_element(v4_networks, "203.0.0.0/16", "203.0.0.0/16");
	assert_element(v4_networks, "203.0.0.0/15", NULL);
	assert_element(v4_networks, "0.0.0.0/0", NULL);
	assert_element(v4_networks, "::/0", NULL);
	assert_element(v6_networks, "::/0", NULL);
	assert_element(v6_networks, "::ffff:0.0.0.0/96", NULL);
	assert_element(v6_networks, "2001:db8::/31", NULL);
	assert_element(v6_networks, "2001:db8::/32", "2001:db8::/32");
	assert_element(v4, "", NULL);
	assert_element(v4, "bob", NULL);
	assert_element(v4, "203.0.113.9|/login", NULL);
	assert_element(v4, "203.0.113.9 } ; flush ruleset", NULL);
}

static void assert_timeout(bool ends, int64_t until_ms, const char *expected)
{
	struct weir_text text = {0};
	nft_set_timeout(&(struct nft_set){.timeout = true, .ends = ends}, &text, until_ms, 1000);
	weir_text_append(&text, "", 1);
	assert_string_equal(expected, text.at);
	weir_text_deinit(&text);
}

static void test_timeouts(void **state)
{
	(void)state;
	assert_timeout(false, 56007, " timeout 55007ms");
	assert_timeout(false, 1001, " timeout 20ms"); /* 0 would be none */
	assert_timeout(false, 0, " timeout 20ms");
	assert_timeout(false, 1000 + INT64_C(86400000), " timeout 1d0ms");
	assert_timeout(false, 999 + 3 * INT64_C(86400000), " timeout 2d86399999ms"); /* nft takes eight digits at most */
	assert_timeout(false, INT64_MAX, "");
	assert_timeout(true, INT64_MAX, " timeout 36500d0ms"); /* in place of the set's own */
	assert_timeout(false, INT64_MAX - 1, " timeout 36500d0ms");
	assert_timeout(true, 56007, " timeout 55007ms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listings),
		cmocka_unit_test(test_elements_of_a_listing),
		cmocka_unit_test(test_elements),
		cmocka_unit_test(test_timeouts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

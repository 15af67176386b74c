/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and networks against inet_pton and inet_ntop, and by hand where those say nothing. */
#include "common/bytes/address.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The address as the C library reads it, in the 128-bit form. */
static bool reference_parse(const char *text, uint8_t out[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	memcpy(out, mapped, sizeof mapped);
	return inet_pton(AF_INET, text, out + 12) == 1 || inet_pton(AF_INET6, text, out) == 1;
}

static void compare_parse(const char *text)
{
	uint8_t expected[16];
	struct weir_address address;
	bool valid = reference_parse(text, expected);
	if (weir_address_parse(weir_span_of(text), &address) != valid)
		fail_msg("\"%s\" should be %s", text, valid ? "an address" : "refused");
	if (valid && memcmp(expected, address.bytes, 16) != 0)
		fail_msg("\"%s\" is read wrongly", text);
}

static void compare_format(const struct weir_address *address)
{
	char expected[INET6_ADDRSTRLEN], text[WEIR_ADDRESS_TEXT_BYTES];
	if (weir_address_is_v4(address))
		inet_ntop(AF_INET, address->bytes + 12, expected, sizeof expected);
	else
		inet_ntop(AF_INET6, address->bytes, expected, sizeof expected);
	uint32_t length = weir_address_format(address, text);
	assert_string_equal(text, expected);
	assert_int_equal(length, strlen(expected));
}

static void reads_what_inet_pton_reads(void **state)
{
	(void)state;
	static const char *const texts[] = {"0.0.0.0",
	                                    "255.255.255.255",
	                                    "256.1.1.1",
	                                    "1.2.3",
	                                    "1.2.3.4.5",
	                                    "01.2.3.4",
	                                    "1.2.3.04",
	                                    "1.2.3.4 ",
	                                    " 1.2.3.4",
	                                    "1..2.3",
	                                    "1.2.3.",
	                                    ".1.2.3",
	                                    "",
	                                    ":",
	                                    "::",
	                                    ":::",
	                                    "::1",
	                                    "1::",
	                                    "1::2::3",
	                                    ":1",
	                                    "1:",
	                                    "1:2:3:4:5:6:7:8",
	                                    "1:2:3:4:5:6:7",
	                                    "1:2:3:4:5:6:7:8:9",
	                                    "1:2:3:4:5:6:7::",
	                                    "::2:3:4:5:6:7:8",
	                                    "1:2:3:4::5:6:7:8",
	                                    "1:2:3::5:6:7:8",
	                                    "12345::",
	                                    "g::",
	                                    "ABCD:ef01::",
	                                    "::ffff:1.2.3.4",
	                                    "::1.2.3.4",
	                                    "::1.2.3.256",
	                                    "1:2:3:4:5:6:1.2.3.4",
	                                    "1:2:3:4:5:6:7:1.2.3.4",
	                                    "1:2:3:4:5:1.2.3.4",
	                                    "::1.2.3.4:5",
	                                    "1.2.3.4::",
	                                    "fe80::1%eth0",
	                                    "[::1]",
	                                    "1.2.3.4:80",
	                                    "::00001",
	                                    "0000:0000:0000:0000:0000:ffff:192.168.100.228",
	                                    "-",
	                                    "localhost"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		compare_parse(texts[i]);
}

static void agrees_with_the_library_on_random_text(void **state)
{
	(void)state;
	static const char alphabet[] = "0012345678fF::::..";
	srandom(1);
	for (int round = 0; round < 400000; round++) {
		char text[24];
		size_t length = (size_t)random() % sizeof text;
		for (size_t i = 0; i < length; i++)
			text[i] = alphabet[(size_t)random() % (sizeof alphabet - 1)];
		text[length] = '\0';
		compare_parse(text);
	}
}

static void writes_what_inet_ntop_writes(void **state)
{
	(void)state;
	srandom(2);
	for (int round = 0; round < 400000; round++) {
		struct weir_address address;
		for (size_t i = 0; i < 16; i++)
			address.bytes[i] = random() % 3 == 0 ? (uint8_t)random() : 0;
		if (round % 3 == 0)
			memcpy(address.bytes, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
		compare_format(&address);
		char text[WEIR_ADDRESS_TEXT_BYTES];
		struct weir_address again;
		weir_address_format(&address, text);
		assert_true(weir_address_parse(weir_span_of(text), &again));
		assert_memory_equal(&again, &address, sizeof address);
	}
}

static void unwraps_mapped_addresses(void **state)
{
	(void)state;
	struct weir_address address;
	char text[WEIR_ADDRESS_TEXT_BYTES];
	assert_true(weir_address_parse(weir_span_of("::ffff:cb00:7109"), &address));
	assert_true(weir_address_is_v4(&address));
	weir_address_format(&address, text);
	assert_string_equal(text, "203.0.113.9");
}

static void masks_by_family(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint8_t prefix4, prefix6;
		const char *masked;
	} cases[] = {{"203.0.113.9", 24, 64, "203.0.113.0"},
	             {"203.0.113.9", 32, 0, "203.0.113.9"},
	             {"203.0.113.9", 0, 64, "0.0.0.0"},
	             {"203.0.113.255", 30, 64, "203.0.113.252"},
	             {"2001:db8:1:2:3::4", 24, 64, "2001:db8:1:2::"},
	             {"2001:db8:1:2:3::4", 24, 0, "::"},
	             {"2001:db8:1:2:3::4", 24, 128, "2001:db8:1:2:3::4"},
	             {"2001:db8:ffff::", 24, 33, "2001:db8:8000::"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct weir_address address;
		char text[WEIR_ADDRESS_TEXT_BYTES];
		assert_true(weir_address_parse(weir_span_of(cases[i].text), &address));
		weir_address_mask(&address, cases[i].prefix4, cases[i].prefix6);
		weir_address_format(&address, text);
		assert_string_equal(text, cases[i].masked);
	}
}

static bool contains(const char *network_text, const char *address_text)
{
	struct weir_network network;
	struct weir_address address;
	const char *why;
	assert_true(weir_network_parse(weir_span_of(network_text), &network, &why));
	assert_true(weir_address_parse(weir_span_of(address_text), &address));
	return weir_network_contains(&network, &address);
}

static void networks_hold_their_addresses(void **state)
{
	(void)state;
	assert_true(contains("10.0.0.0/8", "10.255.0.1"));
	assert_true(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
	assert_false(contains("10.0.0.0/8", "11.0.0.0"));
	assert_true(contains("0.0.0.0/0", "192.0.2.1"));
	assert_false(contains("0.0.0.0/0", "2001:db8::1"));
	assert_true(contains("192.0.2.7", "192.0.2.7"));
	assert_false(contains("192.0.2.7", "192.0.2.6"));
	assert_true(contains("192.0.2.4/30", "192.0.2.7"));
	assert_false(contains("192.0.2.4/30", "192.0.2.8"));
	assert_true(contains("2001:db8::/32", "2001:db8:ffff::1"));
	assert_false(contains("2001:db8::/32", "2001:db9::"));
	assert_true(contains("::ffff:10.0.0.0/104", "10.1.2.3"));
}

static void an_address_of_v4_is_in_no_network_of_v6(void **state)
{
	(void)state;
	assert_false(contains("::/0", "192.0.2.1"));
	assert_false(contains("::/80", "192.0.2.1"));
	assert_true(contains("::/0", "2001:db8::1"));
}

static void says_why_a_network_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *why;
	} cases[] = {{"10.0.0.1/8", "host bits are set"},
	             {"2001:db8::1/64", "host bits are set"},
	             {"::ffff:0:0/90", "host bits are set"},
	             {"10.0.0.0/33", "prefix above 32"},
	             {"::/129", "prefix above 128"},
	             {"10.0.0.0/", "the part after \"/\" is not a prefix length"},
	             {"10.0.0.0/08", "the part after \"/\" is not a prefix length"},
	             {"10.0.0.0/8/8", "the part after \"/\" is not a prefix length"},
	             {"10.0.0/8", "not an address"},
	             {"/8", "not an address"},
	             {"", "not an address"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct weir_network network;
		const char *why = NULL;
		assert_false(weir_network_parse(weir_span_of(cases[i].text), &network, &why));
		assert_string_equal(why, cases[i].why);
	}
}

static void as_logs_write_it(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{"192.0.2.1", "192.0.2.1"},
		{"192.0.2.1:443", "192.0.2.1"},
		{"::ffff:192.0.2.1", "192.0.2.1"},
		{"2001:DB8:0::1", "2001:db8::1"},
		{"[2001:db8::1]", "2001:db8::1"},
		{"[2001:db8::1]:443", "2001:db8::1"},
		{"fe80::1%eth0", "fe80::1"},
		{"[fe80::1%25eth0]:80", "fe80::1"},
		{"[::ffff:192.0.2.1]:1", "192.0.2.1"},
		{"2001:db8::1:443", "2001:db8::1:443"},
		{"fe80::1%", "fe80::1"},
		{"[192.0.2.1]", "192.0.2.1"},
		{"[192.0.2.1]:443", "192.0.2.1"},
		{" 192.0.2.1", "192.0.2.1"},
		{"192.0.2.1\t ", "192.0.2.1"},
		{"  192.0.2.1:443 ", "192.0.2.1"},
		{" 2001:DB8::1 ", "2001:db8::1"},
		{"\t[2001:db8::1]:443", "2001:db8::1"},
		{" ::1", "::1"},
	};
	static const char *const others[] = {"",
	                                     "192.0.2.01",
	                                     "192.0.2.1:",
	                                     "192.0.2.1:123456",
	                                     "192.0.2.1:8o",
	                                     "[192.0.2.1",
	                                     "[192.0.2.1]x",
	                                     "[192.0.2.1:443]",
	                                     "[192.0.2.1%e]",
	                                     "[ 192.0.2.1]",
	                                     "[[192.0.2.1]]",
	                                     "192.0.2.1%e",
	                                     "192.0.2.1 :443",
	                                     "192.0.2.1 192.0.2.1",
	                                     "  ",
	                                     " ",
	                                     "[2001:db8::1",
	                                     "[2001:db8::1]x",
	                                     "[]",
	                                     "%eth0",
	                                     "192.0.2.1, 1.1.1.1",
	                                     "host:80",
	                                     "a"};
	struct weir_address address;
	char text[WEIR_ADDRESS_TEXT_BYTES];
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		assert_true(weir_address_read(weir_span_of(pairs[i][0]), &address));
		weir_address_format(&address, text);
		assert_string_equal(text, pairs[i][1]);
	}
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (weir_address_read(weir_span_of(others[i]), &address))
			fail_msg("%s is taken", others[i]);
}

/* A range is the addresses from its first to its last, and no other. */
static void a_range_is_its_networks(void **state)
{
	(void)state;
	struct weir_network networks[WEIR_RANGE_NETWORKS_MAX];
	const char *why;
	for (unsigned first = 0; first < 256; first += 7)
		for (unsigned last = first; last < 256; last += 5) {
			char text[64];
			snprintf(text, sizeof text, "192.0.2.%u-192.0.2.%u", first, last);
			uint32_t count = weir_networks_parse(weir_span_of(text), networks, &why);
			for (unsigned host = 0; host < 256; host++) {
				struct weir_address address;
				bool inside = false;
				snprintf(text, sizeof text, "192.0.2.%u", host);
				assert_true(weir_address_parse(weir_span_of(text), &address));
				for (uint32_t i = 0; i < count; i++)
					inside |= weir_network_contains(&networks[i], &address);
				assert_int_equal(inside, host >= first && host <= last);
			}
		}
	assert_int_equal(weir_networks_parse(weir_span_of("0.0.0.0-255.255.255.255"), networks, &why), 1);
	assert_int_equal(networks[0].prefix, 96);
	assert_int_equal(weir_networks_parse(weir_span_of("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), networks, &why),
	                 1);
	assert_int_equal(weir_networks_parse(weir_span_of("::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"), networks, &why),
	                 254);
	assert_int_equal(weir_networks_parse(weir_span_of("192.0.2.1"), networks, &why), 1);
	assert_int_equal(weir_networks_parse(weir_span_of("a-b"), networks, &why), 0);
	assert_int_equal(weir_networks_parse(weir_span_of("192.0.2.0 - 192.0.2.255"), networks, &why),
	                 1); /* as whois writes it */
	assert_int_equal(networks[0].prefix, 120);
	assert_int_equal(weir_networks_parse(weir_span_of("192.0.2.9 - 192.0.2.1"), networks, &why), 0);
	assert_true(weir_network_meant("192.0.2.9 - 192.0.2.1") && weir_network_meant("10.0.0.0 /8"));
	assert_false(weir_network_meant("2026-11-30 10:00") || weir_network_meant("a - b"));
}

/* IPv6 as logs and other programs' lists write it. */
static void brackets_and_zones_are_no_part_of_a_network(void **state)
{
	(void)state;
	static const struct {
		const char *text, *canonical;
	} cases[] = {
		{"[2001:DB8::1]", "2001:db8::1"},  {"[2001:db8::]/32", "2001:db8::/32"},
		{"[::FFFF:10.0.0.1]", "10.0.0.1"}, {"::FFFF:10.0.0.0/104", "10.0.0.0/8"},
		{"fe80::1%eth0", "fe80::1"},       {"2001:0db8:0:0::0001", "2001:db8::1"},
		{"10.0.0.1/32", "10.0.0.1"},       {"[10.0.0.1]", "10.0.0.1"},
		{"[10.0.0.0]/8", "10.0.0.0/8"},    {" 10.0.0.1\t", "10.0.0.1"},
		{"fe80::1%", "fe80::1"},           {" [2001:db8::]/32 ", "2001:db8::/32"},
	};
	struct weir_network networks[WEIR_RANGE_NETWORKS_MAX];
	const char *why;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[WEIR_NETWORK_TEXT_BYTES];
		if (weir_networks_parse(weir_span_of(cases[i].text), networks, &why) != 1)
			fail_msg("%s: %s", cases[i].text, why);
		assert_string_equal(weir_network_format(&networks[0], text), cases[i].canonical);
	}
	static const char *const others[] = {
		"[10.0.0.1", "[2001:db8::1]:443", "[2001:db8::1", "[[::1]]", "[10.0.0.1]:1", "[fe80::1%eth0]", "[::1]x",
		"%eth0",     "fe80::/10%eth0",    "[]",           "[::1]/",  "10.0.0.1%eth0"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (weir_networks_parse(weir_span_of(others[i]), networks, &why) != 0)
			fail_msg("%s is taken", others[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_inet_pton_reads),
		cmocka_unit_test(agrees_with_the_library_on_random_text),
		cmocka_unit_test(writes_what_inet_ntop_writes),
		cmocka_unit_test(unwraps_mapped_addresses),
		cmocka_unit_test(masks_by_family),
		cmocka_unit_test(networks_hold_their_addresses),
		cmocka_unit_test(an_address_of_v4_is_in_no_network_of_v6),
		cmocka_unit_test(brackets_and_zones_are_no_part_of_a_network),
		cmocka_unit_test(says_why_a_network_is_refused),
		cmocka_unit_test(as_logs_write_it),
		cmocka_unit_test(a_range_is_its_networks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* From records to events: zones, keys and exemptions. */
#include "common/bytes/hash.h"
#include "common/matcher/matcher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A matcher over zones, and the record that it is asked about. */
struct fixture {
	struct weir_policy *policy;
	struct weir_field_table fields;
	struct weir_matcher *matcher;
	struct weir_record record;
	struct weir_matched matched;
};

static enum weir_status try_setup(struct fixture *fixture, const char *zones, struct weir_error *error)
{
	*fixture = (struct fixture){0};
	struct weir_json_document *document;
	assert_int_equal(weir_json_parse("zones", zones, strlen(zones), &document, error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	if (weir_policy_parse(&root, NULL, &fixture->policy, error) != WEIR_OK)
		fail_msg("%s", error->text);
	weir_json_document_free(document);
	/* Whoever has it made may move the fields elsewhere. */
	struct weir_field_table *given = malloc(sizeof *given);
	assert_non_null(given);
	weir_field_table_init(given);
	enum weir_status status = weir_matcher_new(fixture->policy, NULL, given, 16, &fixture->matcher, error);
	fixture->fields = *given;
	free(given);
	return status;
}

static void setup(struct fixture *fixture, const char *zones)
{
	struct weir_error error;
	if (try_setup(fixture, zones, &error) != WEIR_OK)
		fail_msg("%s", error.text);
}

static void teardown(struct fixture *fixture)
{
	weir_matcher_free(fixture->matcher);
	weir_field_table_deinit(&fixture->fields);
	weir_policy_free(fixture->policy);
}

static void clear_fields(struct fixture *fixture)
{
	memset(fixture->record.fields, 0, sizeof fixture->record.fields);
}

static void set_field(struct fixture *fixture, const char *name, const char *value)
{
	int index = weir_field_table_find(&fixture->fields, weir_span_of(name));
	assert_true(index >= 0);
	fixture->record.fields[index] = value != NULL ? weir_span_of(value) : (struct weir_span){0};
}

/*
 * The record's events as one text: "key: 1 2 3-done; other key: 4".
 */
static const char *match(struct fixture *fixture)
{
	static char text[8192];
	size_t used = 0;
	text[0] = '\0';
	weir_matcher_match(fixture->matcher, &fixture->record, &fixture->matched);
	for (uint32_t i = 0; i < fixture->matched.event_count; i++) {
		const struct weir_matched_event *event = &fixture->matched.events[i];
		assert_true(event->key_hash == weir_hash64(event->key.at, event->key.length));
		assert_int_equal(event->partition, weir_partition(weir_slot(event->key), 16));
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s:", i > 0 ? "; " : "", (int)event->key.length,
		                         event->key.at);
		for (uint32_t k = 0; k < event->zone_count; k++)
			used += (size_t)snprintf(text + used, sizeof text - used, " %u%s", event->zones[k].id,
			                         event->zones[k].done ? "-done" : "");
	}
	return text;
}

#define LIMITS "\"limits\": [{\"algorithm\": \"sliding_window\", \"rate\": 10, \"window\": \"1m\"}]"
#define ZONE(name, members) "{\"name\": \"" name "\", " members ", " LIMITS "}"

/* What zones ask to keep goes with the record, once, and only where one of them takes it. */
static void history_names_fields_that_are_kept(void **state)
{
	(void)state;
	struct fixture fixture;
	struct weir_text json = {0};
	setup(
		&fixture,
		"[" ZONE("a", "\"key\": [\"ip\"], \"history\": {\"fields\": [\"tls\", \"path\"]}") "," ZONE(
			"b",
			"\"key\": [\"user\"], \"match\": {\"method\": \"POST\"}, "
			"\"history\": {\"fields\": [\"path\", \"status\"]}") "," ZONE("c",
	                                                                      "\"key\": [\"user\"], \"history\": true") "]");
	set_field(&fixture, "user", "ann");
	set_field(&fixture, "path", "/login");
	set_field(&fixture, "status", "401");
	set_field(&fixture, "method", "GET");
	assert_string_equal(match(&fixture), "ann: 3");
	assert_int_equal(fixture.matched.fields.length, 0);
	set_field(&fixture, "method", "POST");
	assert_string_equal(match(&fixture), "ann: 2 3");
	assert_true(weir_fields_json(&json, fixture.matched.fields, NULL, 0));
	set_field(&fixture, "ip", "192.0.2.1");
	set_field(&fixture, "tls", "1.3");
	assert_string_equal(match(&fixture), "192.0.2.1: 1; ann: 2 3");
	assert_true(weir_fields_json(&json, fixture.matched.fields, NULL, 0));
	weir_text_append(&json, "", 1);
	assert_string_equal(json.at, "{\"path\":\"/login\",\"status\":\"401\"}"
	                             "{\"path\":\"/login\",\"status\":\"401\",\"tls\":\"1.3\"}");
	weir_text_deinit(&json);
	teardown(&fixture);
}

static void zones_with_the_same_key_share_an_event(void **state)
{
	(void)state;
	struct fixture fixture;
	setup(
		&fixture,
		"[" ZONE("a", "\"key\": [\"ip\"]") "," ZONE("b", "\"key\": [\"user\"]") "," ZONE(
			"c",
			"\"key\": [\"ip\"], \"match\": {\"method\": [\"POST\"]}") "," ZONE("d",
	                                                                           "\"key\": []") "," ZONE("e",
	                                                                                                   "\"key\": [\"ip\", \"path\"]") "]");
	set_field(&fixture, "ip", "203.0.113.9");
	assert_string_equal(match(&fixture), "203.0.113.9: 1; : 4");
	set_field(&fixture, "method", "POST");
	assert_string_equal(match(&fixture), "203.0.113.9: 1 3; : 4");
	set_field(&fixture, "path", "/a|b\\c");
	set_field(&fixture, "user", "alice");
	assert_string_equal(match(&fixture), "203.0.113.9: 1 3; alice: 2; : 4; 203.0.113.9|/a\\|b\\\\c: 5");
	/* Another template that happens to give the same key. */
	set_field(&fixture, "user", "203.0.113.9");
	set_field(&fixture, "path", NULL);
	assert_string_equal(match(&fixture), "203.0.113.9: 1 2 3; : 4");
	clear_fields(&fixture);
	assert_string_equal(match(&fixture), ": 4");
	teardown(&fixture);
}

static void keys_are_escaped_and_joined(void **state)
{
	(void)state;
	struct fixture fixture;
	setup(&fixture, "[" ZONE("a", "\"key\": [\"user\"]") "," ZONE("b", "\"key\": [\"user\", \"host\"]") "]");
	set_field(&fixture, "user", "a|b");
	set_field(&fixture, "host", "c");
	assert_string_equal(match(&fixture), "a\\|b: 1; a\\|b|c: 2");
	set_field(&fixture, "user", "a");
	set_field(&fixture, "host", "b|c");
	assert_string_equal(match(&fixture), "a: 1; a|b\\|c: 2");
	/* The same bytes, from another number of fields: one key. */
	set_field(&fixture, "user", "\\");
	set_field(&fixture, "host", "\\|");
	assert_string_equal(match(&fixture), "\\\\: 1; \\\\|\\\\\\|: 2");
	teardown(&fixture);
}

/* A value of so many bytes; the caller frees. */
static char *long_value(char byte, size_t length)
{
	char *value = malloc(length + 1);
	assert_non_null(value);
	memset(value, byte, length);
	value[length] = '\0';
	return value;
}

static void long_values_are_shortened_where_the_key_is_too_long(void **state)
{
	(void)state;
	struct fixture fixture;
	setup(&fixture, "[" ZONE("a", "\"key\": [\"user\"]") "," ZONE("b", "\"key\": [\"user\", \"host\"]") "]");
	char *user = long_value('x', WEIR_KEY_MAX_BYTES + 1), *host = long_value('h', 61);
	char whole[WEIR_KEY_MAX_BYTES + 128];

	/* At the bound everything stands as it is, one byte above only for the zone that it is too long for. */
	user[WEIR_KEY_MAX_BYTES] = '\0';
	set_field(&fixture, "user", user);
	snprintf(whole, sizeof whole, "%s: 1", user);
	assert_string_equal(match(&fixture), whole);
	set_field(&fixture, "host", "");
	snprintf(whole, sizeof whole, "%s: 1; xxxxxxxxxxxxxxxxxxxxxxxxxxx~445dcf97d7880d62fc56a7ce85b3164a|: 2", user);
	assert_string_equal(match(&fixture), whole);
	user[WEIR_KEY_MAX_BYTES] = 'x';
	set_field(&fixture, "user", user);
	set_field(&fixture, "host", NULL);
	assert_string_equal(match(&fixture), "xxxxxxxxxxxxxxxxxxxxxxxxxxx~ae69e0b3ccd9c7399cd2e05a61b8a761: 1");

	/* Values of more than 60 bytes only: those are as short as they get. */
	set_field(&fixture, "host", host);
	assert_string_equal(
		match(&fixture),
		"xxxxxxxxxxxxxxxxxxxxxxxxxxx~ae69e0b3ccd9c7399cd2e05a61b8a761: 1; "
		"xxxxxxxxxxxxxxxxxxxxxxxxxxx~ae69e0b3ccd9c7399cd2e05a61b8a761|hhhhhhhhhhhhhhhhhhhhhhhhhhh~47d0ef6cd0769558d4c3a90050e3d975: 2");
	set_field(&fixture, "host", host + 1);
	snprintf(whole, sizeof whole,
	         "xxxxxxxxxxxxxxxxxxxxxxxxxxx~ae69e0b3ccd9c7399cd2e05a61b8a761: 1; "
	         "xxxxxxxxxxxxxxxxxxxxxxxxxxx~ae69e0b3ccd9c7399cd2e05a61b8a761|%s: 2",
	         host + 1);
	assert_string_equal(match(&fixture), whole);
	free(user);
	free(host);
	teardown(&fixture);
}

static void escapes_count_for_a_keys_length_but_not_for_a_values(void **state)
{
	(void)state;
	struct fixture fixture;
	setup(&fixture, "[" ZONE("a", "\"key\": [\"user\"]") "," ZONE(
						"b", "\"key\": [\"a\", \"b\", \"c\", {\"field\": \"ip\", \"prefix4\": 24}]") "]");
	char *bars = long_value('|', WEIR_KEY_MAX_BYTES / 2 + 1), *slashes = long_value('\\', 60);
	set_field(&fixture, "user", bars + 1);
	match(&fixture);
	assert_int_equal(fixture.matched.events[0].key.length, WEIR_KEY_MAX_BYTES);
	set_field(&fixture, "user", bars);
	assert_string_equal(match(&fixture),
	                    "\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|\\|"
	                    "~6a4d2a11e571ebca965c08e5d8b55887: 1");

	/* Three values that stay as they are and are twice as long escaped, and an address that is none. */
	set_field(&fixture, "user", NULL);
	set_field(&fixture, "a", slashes);
	set_field(&fixture, "b", slashes);
	set_field(&fixture, "c", slashes);
	char *address = long_value('9', 2000);
	set_field(&fixture, "ip", address);
	match(&fixture);
	struct weir_span key = fixture.matched.events[0].key;
	assert_int_equal(key.length, 3 * (2 * 60 + 1) + 60);
	for (uint32_t i = 0; i < 3 * 121; i++)
		assert_int_equal(key.at[i], i % 121 == 120 ? '|' : '\\');
	assert_memory_equal(key.at + 363, "999999999999999999999999999~dcc0a9dd4cb3a261dfb9af8a3eadda70", 60);
	free(bars);
	free(slashes);
	free(address);
	teardown(&fixture);
}

static void addresses_are_grouped_by_prefix(void **state)
{
	(void)state;
	static const struct {
		const char *ip, *events;
	} cases[] = {
		{"203.0.113.9", "203.0.113.9: 1; 203.0.113.0/24: 2; 0.0.0.0/0: 3"},
		{"::ffff:203.0.113.9", "203.0.113.9: 1; 203.0.113.0/24: 2; 0.0.0.0/0: 3"},
		{"2001:DB8:1:2:3::4", "2001:db8:1:2::/64: 1; 2001:db8:1:2:3::4: 2; 2000::/4: 3"},
		{"2001:db8:0:0:0:0:0:1", "2001:db8::/64: 1; 2001:db8::1: 2; 2000::/4: 3"},
		{"unknown", "unknown: 1 2 3"},
		{"1.2.3.4:80", "1.2.3.4: 1; 1.2.3.0/24: 2; 0.0.0.0/0: 3"},
		{"[2001:db8::1]:443", "2001:db8::/64: 1; 2001:db8::1: 2; 2000::/4: 3"},
		{"[2001:DB8:0::1]", "2001:db8::/64: 1; 2001:db8::1: 2; 2000::/4: 3"},
		{"fe80::1%eth0", "fe80::/64: 1; fe80::1: 2; f000::/4: 3"},
		{"01.2.3.4", "01.2.3.4: 1 2 3"},
		{"a|b", "a\\|b: 1 2 3"},
	};
	struct fixture fixture;
	setup(
		&fixture,
		"[" ZONE("a", "\"key\": [{\"field\": \"ip\", \"prefix6\": 64}]") "," ZONE(
			"b",
			"\"key\": [{\"field\": \"ip\", \"prefix4\": 24}]") "," ZONE("c",
	                                                                    "\"key\": [{\"field\": \"ip\", \"prefix4\": 0, \"prefix6\": 4}]") "]");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		set_field(&fixture, "ip", cases[i].ip);
		assert_string_equal(match(&fixture), cases[i].events);
	}
	teardown(&fixture);
	setup(&fixture, "[" ZONE("a", "\"key\": [{\"field\": \"ip\", \"prefix6\": 120}, \"user\"]") "]");
	set_field(&fixture, "ip", "2001:db8::ffff");
	set_field(&fixture, "user", "u");
	assert_string_equal(match(&fixture), "2001:db8::ff00/120|u: 1");
	teardown(&fixture);
}

/* A parser that has seen an address saves the matcher reading it, and changes no key. */
static void an_address_that_was_told_is_grouped_like_any(void **state)
{
	(void)state;
	static const char *const zones[] = {
		"[" ZONE("a", "\"key\": [\"ip\"]") "]",
		"[" ZONE("a", "\"key\": [{\"field\": \"ip\", \"prefix6\": 64}]") "]",
		"[" ZONE("a", "\"key\": [{\"field\": \"ip\", \"prefix4\": 24}]") "]",
		"[" ZONE("a", "\"key\": [{\"field\": \"user\", \"prefix6\": 48}, {\"field\": \"ip\", \"prefix6\": 48}]") "]",
	};
	static const char *const addresses[] = {
		"192.0.2.7",         "255.255.255.255",     "1.1.1.1", "2001:db8::7", "::1", "::",
		"64:ff9b::c000:201", "2001:db8:1:2:3:4:5:6"};
	for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++) {
		struct fixture fixture;
		setup(&fixture, zones[i]);
		for (size_t k = 0; k < sizeof addresses / sizeof addresses[0]; k++) {
			char expected[256];
			set_field(&fixture, "ip", addresses[k]);
			set_field(&fixture, "user", "192.0.2.300");
			fixture.record.ip = WEIR_RECORD_IP_UNTOLD;
			snprintf(expected, sizeof expected, "%s", match(&fixture));
			assert_int_equal(fixture.matched.event_count, 1);
			fixture.record.ip = WEIR_RECORD_IP_PLAIN;
			assert_string_equal(match(&fixture), expected);
		}
		teardown(&fixture);
	}
}

static void matches_are_anded_over_fields_and_ored_over_values(void **state)
{
	(void)state;
	static const struct {
		const char *method, *path, *status;
		bool in;
	} cases[] = {
		{"POST", "/login", "404", true},   {"POST", "/api/", "200", true},   {"POST", "/api/x/y", "499", true},
		{"PUT", "/login", "400", true},    {"GET", "/login", "404", false},  {"POST", "/logins", "404", false},
		{"post", "/login", "404", false},  {"POST", "/login", "201", false}, {"POST", "/login", "4xx", false},
		{"POST", "/login", "4000", false}, {"POST", "/login", "40", false},  {"POST", "/login", NULL, false},
		{NULL, "/login", "404", false},    {"POST", "/api", "404", false},   {"POST", "x/login", "404", false}};
	struct fixture fixture;
	setup(&fixture, "[" ZONE("a", "\"key\": [], \"match\": {\"method\": [\"POST\", \"PUT\"], \"path\": [\"/login\", "
	                              "\"/api/*\"], \"status\": [\"4xx\", 200]}") "]");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		set_field(&fixture, "method", cases[i].method);
		set_field(&fixture, "path", cases[i].path);
		set_field(&fixture, "status", cases[i].status);
		assert_string_equal(match(&fixture), cases[i].in ? ": 1" : "");
	}
	teardown(&fixture);
}

static void exempt_values_are_in_no_zone_of_their_own(void **state)
{
	(void)state;
	struct fixture fixture;
	setup(&fixture,
	      "[" ZONE("a", "\"key\": [\"ip\", \"user\"], \"exempt\": [\"10.0.0.0/8\", \"192.0.2.7\", \"2001:db8::/32\", "
	                    "\"bob\"]") "," ZONE("b", "\"key\": [\"ip\"]") "]");
	static const struct {
		const char *ip, *user;
		bool exempt;
	} cases[] = {{"203.0.113.9", "alice", false},    {"10.1.2.3", "alice", true},   {"::ffff:10.1.2.3", "alice", true},
	             {"192.0.2.7", "alice", true},       {"192.0.2.8", "alice", false}, {"2001:db8::9", "alice", true},
	             {"2001:db9::9", "alice", false},    {"203.0.113.9", "bob", true},  {"203.0.113.9", "bobby", false},
	             {"203.0.113.9", "10.9.9.9", false}, {"bob", "alice", true},        {"not an ip", "alice", false}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char expected[128];
		set_field(&fixture, "ip", cases[i].ip);
		set_field(&fixture, "user", cases[i].user);
		snprintf(expected, sizeof expected, "%s|%s: 1; %s: 2", cases[i].ip, cases[i].user, cases[i].ip);
		if (cases[i].exempt)
			snprintf(expected, sizeof expected, "%s: 2", cases[i].ip);
		assert_string_equal(match(&fixture), expected);
	}
	teardown(&fixture);
	/* The value is looked at before it is grouped. */
	setup(&fixture,
	      "[" ZONE("a", "\"key\": [{\"field\": \"ip\", \"prefix4\": 24}], \"exempt\": [\"203.0.113.9\"]") "]");
	set_field(&fixture, "ip", "203.0.113.9");
	assert_string_equal(match(&fixture), "");
	set_field(&fixture, "ip", "203.0.113.8");
	assert_string_equal(match(&fixture), "203.0.113.0/24: 1");
	teardown(&fixture);
}

/* A word is compared with each field of the key: that it may be a host does not make it about more than it says. */
static void a_word_with_a_colon_exempts_a_host_by_its_port_alone(void **state)
{
	(void)state;
	struct fixture fixture;
	setup(&fixture,
	      "[" ZONE("a", "\"key\": [\"user\", \"host\"], \"exempt\": [\"*:internal\", \"*:443\", \"svc:backup\", "
	                    "\"Api.example:443\", \"[2001:DB8::1]:443\"]") "]");
	static const struct {
		const char *user, *host, *expected;
	} cases[] = {{"ann", "h", "ann|h: 1"},     {"svc", "h", "svc|h: 1"},
	             {"ann", "svc", "ann|svc: 1"}, {"svc:backup", "h", ""},
	             {"ann", "api.example", ""},   {"net:internal", "h", ""},
	             {"ann", "[2001:db8::1]", ""}, {"ann", "[2001:db8::2]", "ann|[2001:db8::2]: 1"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		set_field(&fixture, "user", cases[i].user);
		set_field(&fixture, "host", cases[i].host);
		assert_string_equal(match(&fixture), cases[i].expected);
	}
	teardown(&fixture);
}

/* Whoever writes an address into his user agent is not exempt by it. */
static void exempt_networks_are_about_the_zones_address(void **state)
{
	(void)state;
	struct fixture fixture;
	setup(
		&fixture,
		"[" ZONE("a", "\"key\": [\"ip\", \"agent\"], \"exempt\": [\"10.0.0.0/8\"]") "," ZONE(
			"b",
			"\"key\": [{\"field\": \"peer\", \"prefix6\": 64}, \"agent\"], \"exempt\": [\"10.0.0.0/8\"]") "," ZONE("c",
	                                                                                                               "\"key\": [\"agent\"], \"exempt\": [\"10.0.0.0/8\"]") "]");
	set_field(&fixture, "ip", "203.0.113.9");
	set_field(&fixture, "peer", "203.0.113.8");
	set_field(&fixture, "agent", "10.0.0.1");
	assert_string_equal(match(&fixture), "203.0.113.9|10.0.0.1: 1; 203.0.113.8|10.0.0.1: 2; 10.0.0.1: 3");
	set_field(&fixture, "peer", "10.0.0.2:443");
	assert_string_equal(match(&fixture), "203.0.113.9|10.0.0.1: 1; 10.0.0.1: 3");
	set_field(&fixture, "ip", "10.0.0.3");
	set_field(&fixture, "peer", "203.0.113.8");
	assert_string_equal(match(&fixture), "203.0.113.8|10.0.0.1: 2");
	teardown(&fixture);
}

/* Whether a record with these fields is in the zone; fields as "name=value name=value". */
static void assert_in(const char *zone, const char *fields, bool expected)
{
	struct fixture fixture;
	char zones[1024], copy[512], *rest = copy;
	snprintf(zones, sizeof zones, "[{\"name\": \"a\", \"key\": [\"ip\", \"user\", \"agent\"], %s, " LIMITS "}]", zone);
	snprintf(copy, sizeof copy, "%s", fields);
	setup(&fixture, zones);
	set_field(&fixture, "ip", "203.0.113.9");
	set_field(&fixture, "user", "ann");
	set_field(&fixture, "agent", "curl/8");
	for (char *field; (field = strtok_r(rest, " ", &rest)) != NULL;) {
		char *value = strchr(field, '=');
		*value = '\0';
		if (strcmp(field, "source") == 0)
			fixture.record.source = value + 1;
		else if (strcmp(field, "cut") == 0)
			fixture.record.cut = true;
		else
			set_field(&fixture, field, value + 1);
	}
	if ((match(&fixture)[0] != '\0') != expected)
		fail_msg("%s, %s: %s", zone, fields, expected ? "not in it" : "in it");
	teardown(&fixture);
}

static void a_match_takes_networks_ranges_and_not(void **state)
{
	(void)state;
	static const struct {
		const char *zone, *fields;
		bool in;
	} cases[] = {
		{"\"match\": {\"ip\": [\"203.0.113.0/24\"]}", "", true},
		{"\"match\": {\"ip\": [\"203.0.113.0/24\"]}", "ip=203.0.114.9", false},
		{"\"match\": {\"ip\": \"203.0.113.1-203.0.113.9\"}", "", true},
		{"\"match\": {\"ip\": \"203.0.113.1-203.0.113.9\"}", "ip=203.0.113.10", false},
		{"\"match\": {\"ip\": \"2001:DB8:0::1\"}", "ip=2001:db8::1", true},
		{"\"match\": {\"user\": [\"10.0.0.0/8\", \"b*\"]}", "user=10.9.9.9", true},
		{"\"match\": {\"user\": [\"10.0.0.0/8\", \"b*\"]}", "user=bob", true},
		{"\"match\": {\"user\": [\"10.0.0.0/8\", \"b*\"]}", "", false},
		{"\"match\": {\"ip\": {\"not\": [\"203.0.113.0/24\"]}}", "", false},
		{"\"match\": {\"ip\": {\"not\": [\"203.0.113.0/24\"]}}", "ip=198.51.100.1", true},
		{"\"match\": {\"path\": {\"is\": [\"/a*\"], \"not\": [\"/a/b\", \"*.png\"]}}", "path=/a/c", true},
		{"\"match\": {\"path\": {\"is\": [\"/a*\"], \"not\": [\"/a/b\", \"*.png\"]}}", "path=/a/b", false},
		{"\"match\": {\"path\": {\"is\": [\"/a*\"], \"not\": [\"/a/b\", \"*.png\"]}}", "path=/a/c.png", false},
		{"\"match\": {\"path\": {\"is\": [\"/a*\"], \"not\": [\"/a/b\", \"*.png\"]}}", "path=/c", false},
		{"\"match\": {\"path\": {\"not\": \"/a\"}}", "", true},
		{"\"match\": {\"path\": {\"is\": \"/login.aspx\"}}", "path=/LOGIN.aspx", false},
		{"\"match\": {\"path\": {\"is\": [\"/Login.aspx\", \"/b\"], \"ignore_case\": true}}", "path=/lOGIN.ASPX", true},
		{"\"match\": {\"path\": {\"is\": [\"/Login.aspx\", \"/b\"], \"ignore_case\": true}}", "path=/login", false},
		{"\"match\": {\"path\": {\"is\": \"/A/../Login*\", \"ignore_case\": true}}", "path=/a/../login/x", true},
		{"\"match\": {\"path\": {\"is\": \"/A/../Login\", \"ignore_case\": true}}", "path=/LOGIN", true},
		{"\"match\": {\"path\": {\"not\": \"/Login\", \"ignore_case\": true}}", "path=/LOGIN", false},
		{"\"match\": {\"path\": {\"is\": \"/*\", \"not\": \"*.PNG\", \"ignore_case\": true}}", "path=/x.png", false},
		{"\"match\": {\"method\": {\"is\": \"p*\", \"ignore_case\": true}}", "method=Purge", true},
		{"\"match\": {\"user\": {\"is\": [\"2001:DB8::/32\", \"Ann\"], \"ignore_case\": true}}", "user=2001:dB8::1",
	     true},
		{"\"match\": {\"user\": {\"is\": \"\303\204nne\", \"ignore_case\": true}}", "user=\303\244NNE", false},
		{"\"match\": {\"status\": {\"not\": [\"2xx\", 304]}}", "status=304", false},
		{"\"match\": {\"status\": {\"not\": [\"2xx\", 304]}}", "status=404", true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_in(cases[i].zone, cases[i].fields, cases[i].in);
}

static void exempt_takes_ranges_wildcards_and_fields(void **state)
{
	(void)state;
	static const struct {
		const char *zone, *fields;
		bool in;
	} cases[] = {
		{"\"exempt\": [\"203.0.113.1-203.0.113.20\"]", "", false},
		{"\"exempt\": [\"203.0.113.1-203.0.113.8\"]", "", true},
		{"\"exempt\": [\"2001:db8::1-2001:db8::ffff\"]", "ip=2001:db8::100", false},
		{"\"exempt\": [\"2001:db8::1-2001:db8::ffff\"]", "ip=2001:db8::1:0", true},
		{"\"exempt\": [\"bot-*\"]", "user=bot-7", false},
		{"\"exempt\": [\"bot-*\"]", "user=robot-7", true},
		{"\"exempt\": [{\"agent\": [\"curl/*\"]}]", "", false},
		{"\"exempt\": [{\"agent\": [\"curl/*\"]}]", "agent=wget", true},
		{"\"exempt\": [{\"path\": [\"/health\"], \"ip\": [\"203.0.113.0/24\"]}]", "path=/health", false},
		{"\"exempt\": [{\"path\": [\"/health\"], \"ip\": [\"10.0.0.0/8\"]}]", "path=/health", true},
		{"\"exempt\": [{\"path\": {\"not\": [\"/login\"]}}]", "path=/a", false},
		{"\"exempt\": [{\"path\": {\"not\": [\"/login\"]}}]", "path=/login", true},
		/* Of a line that is cut nobody knows what would stand there: its length is the client's. */
		{"\"exempt\": [{\"status\": {\"not\": [\"401\"]}}]", "", false},
		{"\"exempt\": [{\"status\": {\"not\": [\"401\"]}}]", "cut=yes", true},
		{"\"exempt\": [{\"status\": {\"not\": [\"401\"]}}]", "cut=yes status=200", false},
		{"\"exempt\": [{\"path\": [\"/health\"]}]", "cut=yes path=/health", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_in(cases[i].zone, cases[i].fields, cases[i].in);
}

/* A path of the policy is brought into the form that records have theirs in, where that form has one meaning. */
static void a_path_may_be_written_as_clients_write_it(void **state)
{
	(void)state;
	static const struct {
		const char *zone, *fields;
		bool in;
	} cases[] = {
		{"\"match\": {\"path\": \"/a/../b\"}", "path=/b", true},
		{"\"match\": {\"path\": [\"/x\", \"/A//b\", \"/c/./d/\"]}", "path=/A/b", true},
		{"\"match\": {\"path\": [\"/x\", \"/A//b\", \"/c/./d/\"]}", "path=/c/d/", true},
		{"\"match\": {\"path\": [\"/x\", \"/A//b\", \"/c/./d/\"]}", "path=/a/b", false},
		{"\"match\": {\"path\": \"/%7Euser\"}", "path=/~user", true},
		{"\"match\": {\"path\": {\"not\": \"/%6Cogin\"}}", "path=/login", false},
		{"\"match\": {\"path\": \"/a?b\"}", "path=/a", false},
		{"\"match\": {\"path\": \"/a//*\"}", "path=/a/b", false},
		{"\"match\": {\"target\": \"/a//b\"}", "target=/a/b", false},
		{"\"match\": {\"path\": \"*\"}", "path=*", true},
		{"\"exempt\": [{\"path\": \"//health\"}]", "path=/health", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_in(cases[i].zone, cases[i].fields, cases[i].in);
}

/* Words of "exempt" are values of the key: where that has a path, they may be paths. */
static void a_word_may_be_a_path_of_the_key(void **state)
{
	(void)state;
	struct fixture fixture;
	setup(&fixture,
	      "[{\"name\": \"a\", \"key\": [\"path\"], \"exempt\": [\"//health\", \"/a?b\", \"/x//*\"], \"limits\": "
	      "[{\"algorithm\": \"fixed_window\", \"rate\": 1, \"window\": \"1m\"}]}, {\"name\": \"b\", \"key\": "
	      "[\"target\"], \"exempt\": [\"//health\"], \"limits\": [{\"algorithm\": \"fixed_window\", \"rate\": 1, "
	      "\"window\": \"1m\"}]}]");
	set_field(&fixture, "path", "/health");
	assert_string_equal(match(&fixture), "");
	set_field(&fixture, "path", "/a");
	assert_string_equal(match(&fixture), "/a: 1");
	clear_fields(&fixture);
	set_field(&fixture, "target", "/health");
	assert_string_equal(match(&fixture), "/health: 2");
	set_field(&fixture, "target", "//health");
	assert_string_equal(match(&fixture), "");
	teardown(&fixture);
}

static void a_zone_may_name_its_sources(void **state)
{
	(void)state;
	assert_in("\"sources\": [\"web\", \"api\"]", "source=api", true);
	assert_in("\"sources\": [\"web\", \"api\"]", "source=mail", false);
	assert_in("\"sources\": [\"web\", \"api\"]", "", false);
}

/* Also where a zone that takes lines is like it in all else. */
static void no_line_is_in_a_zone_of_checks(void **state)
{
	(void)state;
	struct fixture fixture;
	setup(
		&fixture,
		"[{\"name\": \"lines\", \"key\": [\"user\"], \"limits\": [{\"algorithm\": \"uniform\", \"interval\": \"1s\"}],"
		"\"feed\": \"log\"},"
		"{\"name\": \"checks\", \"key\": [\"user\"], \"limits\": [{\"algorithm\": \"uniform\", \"interval\": \"1s\"}],"
		"\"feed\": \"check\"},"
		"{\"name\": \"all\", \"key\": [\"user\"], \"limits\": [{\"algorithm\": \"uniform\", \"interval\": \"1s\"}]}]");
	set_field(&fixture, "user", "u");
	assert_string_equal(match(&fixture), "u: 1 3");
	teardown(&fixture);
}

/* What is known by its name goes to no zone that does not say it, though it names no source at all. */
static void records_by_name_are_for_zones_that_name_their_source(void **state)
{
	(void)state;
	struct fixture fixture;
	setup(
		&fixture,
		"[{\"name\": \"all\", \"key\": [\"user\"], \"limits\": [{\"algorithm\": \"uniform\", \"interval\": \"1s\"}]},"
		"{\"name\": \"of\", \"key\": [\"user\"], \"sources\": [\"web\", \"decisions\"], \"match\": {\"zone\": \"all\"},"
		"\"limits\": [{\"algorithm\": \"uniform\", \"interval\": \"1s\"}]}]");
	set_field(&fixture, "user", "u");
	set_field(&fixture, "zone", "all");
	assert_string_equal(match(&fixture), "u: 1");
	fixture.record.source = "decisions";
	fixture.record.by_name = true;
	assert_string_equal(match(&fixture), "u: 2");
	fixture.record.by_name = false;
	fixture.record.source = "web";
	assert_string_equal(match(&fixture), "u: 1 2");
	teardown(&fixture);
}

static void done_is_tested_before_match(void **state)
{
	(void)state;
	struct fixture fixture;
	setup(&fixture,
	      "[{\"name\": \"q\", \"key\": [\"user\"], \"match\": {\"path\": [\"/in\", \"/both\"]}, \"exempt\": [\"root\"],"
	      "\"limits\": [{\"algorithm\": \"queue\", \"length\": 2, \"hold\": \"1m\", \"done\": {\"path\": [\"/out\", "
	      "\"/both\"]}}, {\"algorithm\": \"queue\", \"length\": 2, \"hold\": \"1m\", \"done\": {\"status\": "
	      "[500]}}]}]");
	set_field(&fixture, "user", "u");
	set_field(&fixture, "path", "/in");
	assert_string_equal(match(&fixture), "u: 1");
	set_field(&fixture, "path", "/out");
	assert_string_equal(match(&fixture), "u: 1-done");
	set_field(&fixture, "path", "/both");
	assert_string_equal(match(&fixture), "u: 1-done");
	set_field(&fixture, "path", "/else");
	assert_string_equal(match(&fixture), "");
	set_field(&fixture, "status", "500");
	assert_string_equal(match(&fixture), "u: 1-done");
	set_field(&fixture, "user", "root");
	assert_string_equal(match(&fixture), "");
	set_field(&fixture, "user", NULL);
	assert_string_equal(match(&fixture), "");
	teardown(&fixture);
}

/* Who makes long lines frees no place in a queue by what they lack. */
static void a_cut_record_is_done_by_what_it_has(void **state)
{
	(void)state;
	struct fixture fixture;
	setup(&fixture, "[{\"name\": \"q\", \"key\": [\"user\"], \"limits\": [{\"algorithm\": \"queue\", \"length\": 2, "
	                "\"hold\": \"1m\", \"done\": {\"status\": {\"not\": [\"429\"]}}}]}]");
	set_field(&fixture, "user", "u");
	assert_string_equal(match(&fixture), "u: 1-done");
	fixture.record.cut = true;
	assert_string_equal(match(&fixture), "u: 1");
	set_field(&fixture, "status", "200");
	assert_string_equal(match(&fixture), "u: 1-done");
	teardown(&fixture);
}

/* Zones that differ in nothing but their limits are asked about once: each record is in all of them, or in none. */
static void zones_that_take_the_same_records_agree(void **state)
{
	(void)state;
	struct fixture fixture;
	static const char queue[] =
		"{\"algorithm\": \"queue\", \"length\": 1, \"hold\": \"1m\", \"done\": {\"path\": [\"/out\"]}}";
	static const char other[] =
		"{\"algorithm\": \"queue\", \"length\": 9, \"hold\": \"2m\", \"done\": {\"path\": [\"/out\"]}}";
	char zones[4096];
	const char *form = "[{\"name\": \"a\", %s, \"limits\": [%s]}, {\"name\": \"b\", %s, \"limits\": [%s, %s]},"
					   " {\"name\": \"c\", %s, \"limits\": [%s]}, {\"name\": \"d\", %s, " LIMITS "},"
					   " {\"name\": \"e\", %s, " LIMITS "}]";
	static const char first[] = "\"key\": [\"ip\"], \"match\": {\"path\": [\"/in\"]}, \"exempt\": [\"192.0.2.9\"]";
	static const char second[] = "\"key\": [\"ip\"], \"match\": {\"path\": [\"/in\"]}";
	snprintf(zones, sizeof zones, form, first, queue, first, other, queue, second, queue, first, first);
	setup(&fixture, zones);
	static const struct {
		const char *ip, *path, *want;
	} cases[] = {
		{"192.0.2.1", "/in", "192.0.2.1: 1 2 3 4 5"},
		{"192.0.2.9", "/in", "192.0.2.9: 3"},
		{"192.0.2.1", "/out", "192.0.2.1: 1-done 2-done 3-done"},
		{"192.0.2.9", "/out", "192.0.2.9: 3-done"},
		{"192.0.2.1", "/", ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		set_field(&fixture, "ip", cases[i].ip);
		set_field(&fixture, "path", cases[i].path);
		assert_string_equal(match(&fixture), cases[i].want);
	}
	teardown(&fixture);
}

static void too_many_fields_are_refused(void **state)
{
	(void)state;
	char zones[16384];
	size_t used = (size_t)snprintf(zones, sizeof zones, "[");
	for (int i = 0; i < 60; i++)
		used += (size_t)snprintf(zones + used, sizeof zones - used,
		                         "%s{\"name\": \"z%d\", \"key\": [\"f%d\"], " LIMITS "}", i > 0 ? "," : "", i, i);
	snprintf(zones + used, sizeof zones - used, "]");
	struct fixture fixture;
	struct weir_error error;
	assert_int_equal(try_setup(&fixture, zones, &error), WEIR_INVALID);
	assert_string_equal(error.text, "zones and formats use more than 64 fields: \"f56\" is one too many");
	fixture.matcher = NULL;
	teardown(&fixture);
}

static void only_fields_of_zones_are_wanted(void **state)
{
	(void)state;
	struct fixture fixture;
	setup(&fixture,
	      "[{\"name\": \"q\", \"key\": [\"ip\"], \"match\": {\"x\": [\"1\"]}, \"limits\": [{\"algorithm\": \"queue\", "
	      "\"length\": 2, \"hold\": \"1m\", \"done\": {\"y\": [\"2\"]}}]}]");
	assert_true(fixture.fields.wanted == (1u << WEIR_FIELD_IP | 3u << WEIR_FIELD_STANDARD_COUNT));
	teardown(&fixture);
}

/* The events that a record has, as "key=cost key=cost". */
static const char *costs(struct fixture *fixture)
{
	static char text[65536];
	size_t used = 0;
	text[0] = '\0';
	(void)match(fixture);
	for (uint32_t i = 0; i < fixture->matched.event_count; i++) {
		const struct weir_matched_event *event = &fixture->matched.events[i];
		const struct weir_matched_event *first = &fixture->matched.events[i % fixture->matched.key_count];
		assert_ptr_equal(event->zones, first->zones);
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s=%lld", i > 0 ? " " : "",
		                         (int)event->key.length, event->key.at, (long long)event->cost);
	}
	return text;
}

static void a_record_that_stands_for_several_has_as_many_events(void **state)
{
	(void)state;
	struct fixture fixture;
	setup(&fixture, "[" ZONE("a", "\"key\": [\"ip\"]") "," ZONE("b", "\"key\": [\"user\"]") "]");
	set_field(&fixture, "ip", "192.0.2.7");
	set_field(&fixture, "user", "ann");
	fixture.record.cost = 5;
	assert_string_equal(costs(&fixture), "192.0.2.7=5 ann=5");
	fixture.record.times = 1;
	assert_string_equal(costs(&fixture), "192.0.2.7=5 ann=5");
	fixture.record.times = 3;
	assert_string_equal(costs(&fixture), "192.0.2.7=5 ann=5 192.0.2.7=5 ann=5 192.0.2.7=5 ann=5");
	assert_int_equal(fixture.matched.key_count, 2);
	set_field(&fixture, "user", NULL);
	fixture.record.times = 34;
	assert_true(strncmp(costs(&fixture), "192.0.2.7=85 192.0.2.7=5 192", 28) == 0);
	fixture.record.cost = WEIR_COST_MAX;
	assert_true(strncmp(costs(&fixture), "192.0.2.7=1099511627776 192", 27) == 0);
	set_field(&fixture, "ip", NULL);
	assert_string_equal(costs(&fixture), "");
	teardown(&fixture);
	setup(
		&fixture,
		"[{\"name\": \"q\", \"key\": [\"ip\"], \"match\": {\"path\": [\"/add\"]}, \"limits\": [{\"algorithm\": \"queue\", "
		"\"length\": 2, \"hold\": \"1m\", \"done\": {\"path\": [\"/done\"]}}]}]");
	set_field(&fixture, "ip", "192.0.2.7");
	set_field(&fixture, "path", "/done");
	for (uint32_t times = 1000; times <= 1000000; times *= 10) {
		fixture.record.times = times;
		weir_matcher_match(fixture.matcher, &fixture.record, &fixture.matched);
		assert_int_equal(fixture.matched.event_count, times < WEIR_ZONES_MAX ? times : WEIR_ZONES_MAX);
		assert_true(fixture.matched.events[999].zones[0].done);
	}
	teardown(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(history_names_fields_that_are_kept),
		cmocka_unit_test(zones_with_the_same_key_share_an_event),
		cmocka_unit_test(a_record_that_stands_for_several_has_as_many_events),
		cmocka_unit_test(keys_are_escaped_and_joined),
		cmocka_unit_test(long_values_are_shortened_where_the_key_is_too_long),
		cmocka_unit_test(escapes_count_for_a_keys_length_but_not_for_a_values),
		cmocka_unit_test(addresses_are_grouped_by_prefix),
		cmocka_unit_test(an_address_that_was_told_is_grouped_like_any),
		cmocka_unit_test(matches_are_anded_over_fields_and_ored_over_values),
		cmocka_unit_test(exempt_values_are_in_no_zone_of_their_own),
		cmocka_unit_test(exempt_networks_are_about_the_zones_address),
		cmocka_unit_test(a_word_with_a_colon_exempts_a_host_by_its_port_alone),
		cmocka_unit_test(a_match_takes_networks_ranges_and_not),
		cmocka_unit_test(exempt_takes_ranges_wildcards_and_fields),
		cmocka_unit_test(a_path_may_be_written_as_clients_write_it),
		cmocka_unit_test(a_word_may_be_a_path_of_the_key),
		cmocka_unit_test(a_zone_may_name_its_sources),
		cmocka_unit_test(no_line_is_in_a_zone_of_checks),
		cmocka_unit_test(records_by_name_are_for_zones_that_name_their_source),
		cmocka_unit_test(done_is_tested_before_match),
		cmocka_unit_test(a_cut_record_is_done_by_what_it_has),
		cmocka_unit_test(zones_that_take_the_same_records_agree),
		cmocka_unit_test(too_many_fields_are_refused),
		cmocka_unit_test(only_fields_of_zones_are_wanted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

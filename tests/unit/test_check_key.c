/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of checks: as those of log lines, whatever a caller writes, and refused where it cannot be one of the zone. */
#include "limiter/check/check_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/json/json.h"
#include "common/matcher/key_template.h"

#include <cmocka.h>

static struct weir_policy *policy;

static int make_policy(void **state)
{
	static const char text[] =
		"[{\"name\":\"one\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":1,\"window\":\"1m\"}]},"
		"{\"name\":\"net\",\"key\":[{\"field\":\"ip\",\"prefix4\":24,\"prefix6\":64}],"
		"\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":1,\"window\":\"1m\"}]},"
		"{\"name\":\"two\",\"key\":[{\"field\":\"ip\",\"prefix6\":64},\"path\"],"
		"\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":1,\"window\":\"1m\"}]},"
		"{\"name\":\"user\",\"key\":[\"user\"],\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":1,\"window\":\"1m\"}]},"
		"{\"name\":\"whole\",\"key\":[{\"field\":\"ip\",\"prefix6\":128},\"user\"],"
		"\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":1,\"window\":\"1m\"}]},"
		"{\"name\":\"page\",\"key\":[\"path\"],\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":1,\"window\":\"1m\"}]},"
		"{\"name\":\"verb\",\"key\":[\"method\"],\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":1,\"window\":\"1m\"}]},"
		"{\"name\":\"site\",\"key\":[\"host\",\"path\"],\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":1,\"window\":\"1m\"}]},"
		"{\"name\":\"lines\",\"key\":[\"ip\"],\"feed\":\"log\","
		"\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":1,\"window\":\"1m\"}]},"
		"{\"name\":\"all\",\"key\":[],\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":1,\"window\":\"1m\"}]}]";
	struct weir_json_document *document;
	struct weir_error error;
	(void)state;
	if (weir_json_parse("zones", text, sizeof text - 1, &document, &error) != WEIR_OK)
		return 1;
	struct weir_json root = weir_json_root(document);
	enum weir_status status = weir_policy_parse(&root, NULL, &policy, &error);
	weir_json_document_free(document);
	return status != WEIR_OK;
}

static int free_policy(void **state)
{
	(void)state;
	weir_policy_free(policy);
	return 0;
}

/* @param wanted  NULL: it is refused */
static void expect_form(const char *zone_name, const char *given, enum check_key_form form, const char *wanted)
{
	const struct weir_zone *zone = weir_policy_zone_named(policy, weir_span_of(zone_name));
	struct weir_span joined = {0}, span = weir_span_of(given);
	struct weir_error error = {.text = ""};
	char room[WEIR_KEY_MAX_BYTES];
	enum weir_status without = check_key(zone, span, form, NULL, &joined, &error);
	if (wanted != NULL && strcmp(given, wanted) == 0)
		assert_int_equal(without, WEIR_OK);
	if (without == WEIR_OK)
		assert_ptr_equal(joined.at, given); /* nothing was written anew */
	enum weir_status status = check_key(zone, span, form, room, &joined, &error);
	assert_int_equal(status, wanted != NULL ? WEIR_OK : WEIR_INVALID);
	if (wanted == NULL) {
		assert_string_not_equal(error.text, "");
		assert_int_equal(without, WEIR_INVALID);
		return;
	}
	assert_int_equal(joined.length, strlen(wanted));
	assert_memory_equal(joined.at, wanted, joined.length);
}

static void expect(const char *zone_name, const char *given, const char *wanted)
{
	expect_form(zone_name, given, CHECK_KEY_GIVEN, wanted);
	if (wanted != NULL) /* what goes to another limiter is there what it is here */
		expect_form(zone_name, wanted, CHECK_KEY_JOINED, wanted);
}

static void a_plain_value_stays(void **state)
{
	(void)state;
	expect("one", "192.0.2.1", "192.0.2.1");
	expect("one", "2001:db8::1:2", "2001:db8::1:2");
	expect("one", "a:b", "a:b");
	expect("user", "2001:DB8::1", "2001:DB8::1");
	expect("all", "", "");
	expect("lines", "192.0.2.1", NULL);
}

static void an_address_is_counted_where_its_zone_groups_it(void **state)
{
	(void)state;
	expect("net", "192.0.2.77", "192.0.2.0/24");
	expect("net", "::ffff:192.0.2.77", "192.0.2.0/24");
	expect("net", "192.0.2.0/24", "192.0.2.0/24");
	expect("net", "[2001:DB8::1]:443", "2001:db8::/64");
	expect("net", "no address", "no address");
	expect("two", "192.0.2.77|/x", "192.0.2.77|/x");
	expect("two", "2001:DB8::1|/a\\|b", "2001:db8::/64|/a\\|b");
}

static void an_address_has_one_form(void **state)
{
	(void)state;
	expect("one", "2001:DB8::1", "2001:db8::1");
	expect("one", "2001:db8:0:0:0:0:0:1", "2001:db8::1");
	expect("one", "::ffff:192.0.2.7", "192.0.2.7");
	expect("one", "::FFFF:C000:207", "192.0.2.7");
	expect("one", "192.0.2.7:443", "192.0.2.7");
	expect("one", "[2001:db8::1]:443", "2001:db8::1");
	expect("one", "fe80::1%eth0", "fe80::1");
	expect("one", " 192.0.2.7", "192.0.2.7");
	expect("one", "192.0.2.7\t", "192.0.2.7");
	expect("one", " 2001:db8::1 ", "2001:db8::1");
	expect("one", "[192.0.2.7]", "192.0.2.7");
	expect("one", "[192.0.2.7]:443", "192.0.2.7");
	expect("one", " nobody ", " nobody ");
	expect("net", " 192.0.2.7", "192.0.2.0/24");
	expect("two", " [192.0.2.7] |/b", "192.0.2.7|/b");
	expect("user", " 192.0.2.7", " 192.0.2.7");
	expect("whole", "2001:DB8::1|::ffff:192.0.2.7", "2001:db8::1|::ffff:192.0.2.7");
	expect("whole", "::ffff:192.0.2.7|x", "192.0.2.7|x");
}

/* The joined key that a log line of these fields has. @return text */
static const char *logged(const char *zone_name, const char *const *values, char text[WEIR_KEY_MAX_BYTES + 1])
{
	const struct weir_zone *zone = weir_policy_zone_named(policy, weir_span_of(zone_name));
	struct weir_field_table fields;
	struct weir_key_template template;
	struct weir_address_cache cache = {0};
	struct weir_record record = {.ip = WEIR_RECORD_IP_UNTOLD};
	struct weir_error error;
	weir_field_table_init(&fields);
	assert_int_equal(weir_key_template_init(&template, zone, &fields, &error), WEIR_OK);
	for (uint32_t i = 0; i < zone->key_count; i++)
		record.fields[template.parts[i].field] = weir_span_of(values[i]);
	struct weir_span key = weir_key_template_join(&template, &record, &cache);
	memcpy(text, key.at, key.length);
	text[key.length] = '\0';
	weir_key_template_deinit(&template);
	weir_field_table_deinit(&fields);
	return text;
}

static void a_path_and_a_host_are_counted_as_they_are_served(void **state)
{
	(void)state;
	static const struct {
		const char *zone, *given, *joined;
	} keys[] = {
		{"page", "/b", "/b"},
		{"page", "/a/../%62?x=y", "/b"},
		{"page", "//b//c/.", "/b/c/"},
		{"page", "http://www.example.com/b", "/b"},
		{"page", "/a%7Cb", "/a\\|b"},
		{"page", "/a|b", "/a\\|b"},
		{"page", "/%5C|%25", "/\\\\\\|%"},
		{"site", "api.example.com|/b", "api.example.com|/b"},
		{"site", "API.Example.COM.:443|/a/../b", "api.example.com|/b"},
		{"site", "api.example.com|/a%7Cb\\|c", "api.example.com|/a\\|b\\|c"},
		{"site", "API.example.com|/a\\|b", "api.example.com|/a\\|b"},
		{"two", "::ffff:192.0.2.7|/./x", "192.0.2.7|/x"},
		{"user", "/a/../b", "/a/../b"},
	};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		expect(keys[i].zone, keys[i].given, keys[i].joined);
	expect("page", "?x=y", "/");
	expect("site", "a|?x", "a|/");
	/* Once: another limiter has decoded it. */
	expect_form("page", "/%2562", CHECK_KEY_GIVEN, "/%62");
	expect_form("page", "/%62", CHECK_KEY_JOINED, "/%62");
	char given[3 * WEIR_KEY_MAX_BYTES], wanted[WEIR_KEY_MAX_BYTES + 1], path[2 * WEIR_KEY_MAX_BYTES] = "/";
	memset(path + 1, 'x', WEIR_KEY_MAX_BYTES + 100);
	path[WEIR_KEY_MAX_BYTES + 101] = '\0';
	snprintf(given, sizeof given, "/./%s?y", path);
	expect_form("page", given, CHECK_KEY_GIVEN, logged("page", (const char *const[]){path}, wanted));
}

static void a_method_of_http_is_counted_in_capitals(void **state)
{
	(void)state;
	expect("verb", "POST", "POST");
	expect("verb", "post", "POST");
	expect("verb", "M-search", "M-SEARCH");
	/* It may be sshd's, or JSON-RPC's. */
	expect("verb", "password", "password");
	expect("verb", "eth_call", "eth_call");
	expect("verb", "po|st", "po\\|st");
}

static void what_is_no_key_of_the_zone_is_refused(void **state)
{
	(void)state;
	expect_form("one", "a|b", CHECK_KEY_JOINED, NULL);
	expect_form("one", "a\\", CHECK_KEY_JOINED, NULL);
	expect("two", "a\\|b", NULL);
	expect("two", "a\\b|c", NULL);
	expect("two", "a", NULL);
	expect("two", "2001:db8::1", NULL);
	expect("two", "a|b|c", NULL);
	expect("all", "a", NULL);
	expect("one", "", NULL);
	expect("net", "", NULL);
	expect("two", "", NULL);
	expect("two", "|", NULL);
	expect("two", "192.0.2.1|", NULL);
	expect("two", "|/x", NULL);
	char long_one[WEIR_KEY_MAX_BYTES + 2];
	memset(long_one, 'x', sizeof long_one);
	long_one[WEIR_KEY_MAX_BYTES + 1] = '\0';
	expect_form("one", long_one, CHECK_KEY_JOINED, NULL);
}

static void a_value_is_counted_as_a_log_line_has_it(void **state)
{
	(void)state;
	enum { LONG = 20000 };
	char wanted[WEIR_KEY_MAX_BYTES + 1], room[WEIR_KEY_MAX_BYTES];
	char *many = malloc(LONG + 1), *bars = malloc(LONG + 1), *just = malloc(LONG + 1);
	memset(many, 'x', LONG);
	memset(bars, '|', LONG);
	memset(just, 'y', LONG);
	many[LONG] = '\0';
	bars[WEIR_KEY_MAX_BYTES / 2 + 1] = '\0'; /* escaped it is too long */
	just[WEIR_KEY_MAX_BYTES] = '\0';
	const char *const values[] = {"a|b", "a\\", "a\\b", "a\\|b", "|", "\\\\", many, bars, just};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		expect("user", values[i], logged("user", &values[i], wanted));
		if (values[i] == just)
			assert_string_equal(wanted, just);
		/* What decisions show of it is the same bucket again. */
		struct weir_span shown = check_key_value(weir_span_of(wanted), room);
		char again[WEIR_KEY_MAX_BYTES + 1];
		memcpy(again, shown.at, shown.length);
		again[shown.length] = '\0';
		expect("user", again, wanted);
	}
	free(many);
	free(bars);
	free(just);
}

static void long_values_of_several_are_shortened(void **state)
{
	(void)state;
	enum { LONG = 3000 };
	char wanted[WEIR_KEY_MAX_BYTES + 1], given[LONG + 64], value[LONG + 64] = "a|";
	memset(value + 2, 'x', LONG);
	snprintf(given, sizeof given, "2001:DB8::1|a\\|%.*s", LONG, value + 2);
	expect("two", given, logged("two", (const char *const[]){"2001:DB8::1", value}, wanted));
	char grows[WEIR_KEY_MAX_BYTES + 1] = "a::1|"; /* a::/64 is longer */
	memset(grows + 5, 'x', WEIR_KEY_MAX_BYTES - 5);
	expect("two", grows, logged("two", (const char *const[]){"a::1", grows + 5}, wanted));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_value_stays),
		cmocka_unit_test(an_address_is_counted_where_its_zone_groups_it),
		cmocka_unit_test(an_address_has_one_form),
		cmocka_unit_test(a_path_and_a_host_are_counted_as_they_are_served),
		cmocka_unit_test(a_method_of_http_is_counted_in_capitals),
		cmocka_unit_test(what_is_no_key_of_the_zone_is_refused),
		cmocka_unit_test(a_value_is_counted_as_a_log_line_has_it),
		cmocka_unit_test(long_values_of_several_are_shortened),
	};
	return cmocka_run_group_tests(tests, make_policy, free_policy);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of checks: as those of log lines, whatever a caller writes, and refused where it cannot be one of the zone. */
#include "limiter/check/check_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/json/json.h"

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
static void expect(const char *zone_name, const char *given, const char *wanted)
{
	const struct weir_zone *zone = weir_policy_zone_named(policy, weir_span_of(zone_name));
	struct weir_span joined = {0}, span = weir_span_of(given);
	struct weir_error error = {.text = ""};
	char room[WEIR_KEY_MAX_BYTES];
	enum weir_status without = check_key(zone, span, NULL, &joined, &error);
	if (wanted != NULL && strcmp(given, wanted) == 0)
		assert_int_equal(without, WEIR_OK);
	if (without == WEIR_OK)
		assert_ptr_equal(joined.at, given); /* nothing was written anew */
	enum weir_status status = check_key(zone, span, room, &joined, &error);
	assert_int_equal(status, wanted != NULL ? WEIR_OK : WEIR_INVALID);
	if (wanted == NULL) {
		assert_string_not_equal(error.text, "");
		assert_int_equal(without, WEIR_INVALID);
		return;
	}
	assert_int_equal(joined.length, strlen(wanted));
	assert_memory_equal(joined.at, wanted, joined.length);
}

static void a_plain_value_stays(void **state)
{
	(void)state;
	expect("one", "192.0.2.1", "192.0.2.1");
	expect("one", "2001:db8::1:2", "2001:db8::1:2");
	expect("one", "a:b", "a:b");
	expect("user", "2001:DB8::1", "2001:DB8::1");
	expect("one", "a\\|b\\\\", "a\\|b\\\\");
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
	expect("whole", "2001:DB8::1|::ffff:192.0.2.7", "2001:db8::1|::ffff:192.0.2.7");
	expect("whole", "::ffff:192.0.2.7|x", "192.0.2.7|x");
}

static void what_is_no_key_of_the_zone_is_refused(void **state)
{
	(void)state;
	expect("one", "a|b", NULL);
	expect("one", "a\\", NULL);
	expect("one", "a\\b", NULL);
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
	char longest[WEIR_KEY_MAX_BYTES + 2];
	memset(longest, 'x', sizeof longest);
	longest[WEIR_KEY_MAX_BYTES] = '\0';
	expect("one", longest, longest);
	longest[WEIR_KEY_MAX_BYTES] = 'x';
	longest[WEIR_KEY_MAX_BYTES + 1] = '\0';
	expect("one", longest, NULL);
}

static void a_key_that_grows_beyond_the_bound_is_refused(void **state)
{
	(void)state;
	char given[WEIR_KEY_MAX_BYTES + 1] = "a::1|"; /* a::/64 is longer */
	struct weir_span joined;
	struct weir_error error;
	char room[WEIR_KEY_MAX_BYTES];
	memset(given + 5, 'x', WEIR_KEY_MAX_BYTES - 5);
	const struct weir_zone *zone = weir_policy_zone_named(policy, weir_span_of("two"));
	assert_int_equal(check_key(zone, weir_span_of(given), room, &joined, &error), WEIR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_value_stays),
		cmocka_unit_test(an_address_is_counted_where_its_zone_groups_it),
		cmocka_unit_test(an_address_has_one_form),
		cmocka_unit_test(what_is_no_key_of_the_zone_is_refused),
		cmocka_unit_test(a_key_that_grows_beyond_the_bound_is_refused),
	};
	return cmocka_run_group_tests(tests, make_policy, free_policy);
}

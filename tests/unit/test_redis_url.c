/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of Redis servers. */
#include "common/bytes/redis_url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void assert_text(const char *expected, const char *found)
{
	if (expected == NULL)
		assert_null(found);
	else
		assert_string_equal(expected, found);
}

static void assert_url(const char *text, const char *host, unsigned port, const char *user, const char *password,
                       unsigned database)
{
	struct weir_redis_url url;
	struct weir_error error;
	if (weir_redis_url_parse(text, &url, &error) != WEIR_OK)
		fail_msg("%s: %s", text, error.text);
	assert_text(host, url.host);
	assert_int_equal(port, url.port);
	assert_text(user, url.user);
	assert_text(password, url.password);
	assert_int_equal(database, url.database);
	weir_redis_url_deinit(&url);
}

/* Whom TLS trusts, and what it shows. */
static void test_files(void **state)
{
	(void)state;
	struct weir_redis_url url;
	struct weir_error error;
	assert_int_equal(weir_redis_url_parse("rediss://:a?b@h/3?certificate=/c%26.pem&ca=/a.pem&key=/k.pem", &url, &error),
	                 WEIR_OK);
	assert_text("a?b", url.password);
	assert_text("/a.pem", url.ca);
	assert_text("/c&.pem", url.certificate);
	assert_text("/k.pem", url.key);
	assert_int_equal(3, url.database);
	weir_redis_url_deinit(&url);
	static const char *const bad[] = {
		"rediss://h?ca=/a&ca=/b",  "rediss://h?certificate=/c", "rediss://h?key=/k",
		"rediss://h?ca=/a&user=u", "rediss://h?ca=/a&",         "rediss://h?ca=&certificate=/c&key=/k",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(weir_redis_url_parse(bad[i], &url, &error), WEIR_INVALID);
}

static void test_addresses(void **state)
{
	(void)state;
	assert_url("redis://localhost", "localhost", 6379, NULL, NULL, 0);
	assert_url("redis://127.0.0.1:7000/3", "127.0.0.1", 7000, NULL, NULL, 3);
	assert_url("redis://127.0.0.1/", "127.0.0.1", 6379, NULL, NULL, 0);
	assert_url("rediss://u:p@h:7000/3", "h", 7000, "u", "p", 3);
	assert_url("rediss://:p%3Fca=@h?ca=/etc/ca.pem", "h", 6379, NULL, "p?ca=", 0);
	assert_url("redis://:secret@h:1", "h", 1, NULL, "secret", 0);
	assert_url("redis://weir:p%40s%2fs@h", "h", 6379, "weir", "p@s/s", 0);
	assert_url("redis://secret@h", "h", 6379, NULL, "secret", 0);
	assert_url("redis://:a@b@h/15", "h", 6379, NULL, "a@b", 15);
	assert_url("redis://[::1]", "::1", 6379, NULL, NULL, 0);
	assert_url("redis://[::1]:7000/1", "::1", 7000, NULL, NULL, 1);
	assert_url("redis://:@h", "h", 6379, NULL, "", 0);
}

static void test_what_is_none(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"",
		"redis:",
		"redis://",
		"redis:///1",
		"rediss://",
		"rediss://h?ca=",
		"rediss://h?ca=%0",
		"redis://h?ca=/x",
		"redisss://h",
		"redis://h:",
		"redis://h:0",
		"redis://h:65536",
		"redis://h:7x",
		"redis://h/x",
		"redis://h/1/2",
		"redis://[::1",
		"redis://[::1]7",
		"redis://:%@h",
		"redis://:%4@h",
		"redis://:%00@h",
		"redis://:%zz@h",
		"redis://h:99999999999999999999",
		"redis://h/99999999999999999999",
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct weir_redis_url url;
		struct weir_error error = {.text = ""};
		if (weir_redis_url_parse(texts[i], &url, &error) != WEIR_INVALID)
			fail_msg("%s is taken", texts[i]);
		assert_non_null(strstr(error.text, "redis://"));
		weir_redis_url_deinit(&url); /* of nothing */
	}
}

static void test_a_refusal_does_not_repeat_the_password(void **state)
{
	(void)state;
	struct weir_redis_url url;
	struct weir_error error;
	assert_int_equal(WEIR_INVALID, weir_redis_url_parse("redis://:hunter2@h:x", &url, &error));
	assert_null(strstr(error.text, "hunter2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_what_is_none),
		cmocka_unit_test(test_a_refusal_does_not_repeat_the_password),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

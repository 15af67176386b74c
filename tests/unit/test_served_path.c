/* SPDX-License-Identifier: Apache-2.0 */
/* The path that a server served, whatever way a client wrote it. */
#include "common/record/served_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct weir_served_path_room room;

static void assert_paths(const char *const (*pairs)[2])
{
	for (size_t i = 0; pairs[i][0] != NULL; i++) {
		/* From memory of just its size: a sanitizer sees a read past it. */
		struct weir_span target = weir_span_of(pairs[i][0]);
		char *copy = malloc(target.length);
		assert_non_null(copy);
		memcpy(copy, target.at, target.length);
		target.at = copy;
		struct weir_span path = weir_served_path(target, &room);
		if (!weir_span_equal(path, weir_span_of(pairs[i][1])))
			fail_msg("\"%s\" gives \"%.*s\", not \"%s\"", pairs[i][0], (int)path.length, path.at, pairs[i][1]);
		free(copy);
	}
}

static void usual_targets_are_their_paths(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{"/", "/"},
		{"/login", "/login"},
		{"/a.b/c..d/e.", "/a.b/c..d/e."},
		{"/a/b/", "/a/b/"},
		{"/sixteen/bytes/x", "/sixteen/bytes/x"},
		{"/exactly/fifteen/and/then/a/long/one", "/exactly/fifteen/and/then/a/long/one"},
		{NULL, NULL},
	};
	assert_paths(pairs);
}

static void a_query_and_a_fragment_are_cut(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{"/login?next=/a", "/login"},
		{"/login?", "/login"},
		{"/login#top", "/login"},
		{"/login#a?b", "/login"},
		{"/login?a#b", "/login"},
		{"/login?//../%2e", "/login"},
		{"/a/b?/../c", "/a/b"},
		{"?a=b", "/"},
		{"?", "/"},
		{"?/login", "/"},
		{"#", "/"},
		{"#x?y", "/"},
		{"*?x", "*"},
		{"/login%3Fx", "/login?x"},
		{"/login%23x", "/login#x"},
		{NULL, NULL},
	};
	assert_paths(pairs);
}

static void an_absolute_form_loses_its_authority(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{"http://www.example.com/login", "/login"},
		{"HTTPS://www.example.com:443/login?x", "/login"},
		{"http://user@[2001:db8::1]:80/a//b", "/a/b"},
		{"http://www.example.com", "/"},
		{"http://www.example.com?x", "/"},
		{"http://www.example.com#/login", "/"},
		{"http:///login", "/login"},
		{"svn+ssh-2.0://h/%6cogin", "/login"},
		{"http:/login", "/login"},
		{"http:/x/../%6cogin?x", "/login"},
		{"http:?/login", "/"},
		{"x:/login", "/login"},
		{"http:login", "http:login"},
		{"1http://h/login", "1http://h/login"},
		{"://h/login", "://h/login"},
		{"/http://h/login", "/http:/h/login"},
		{NULL, NULL},
	};
	assert_paths(pairs);
}

static void what_is_no_path_stays(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{"*", "*"},         {"www.example.com:443", "www.example.com:443"},
		{"login", "login"}, {"%2flogin", "%2flogin"},
		{"..", ".."},       {"a//b", "a//b"},
		{NULL, NULL},
	};
	assert_paths(pairs);
}

static void escapes_are_decoded_once(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{"/%6Cogin", "/login"},         {"/%6c%6F%67in", "/login"}, {"/%256cogin", "/%6cogin"},
		{"/login%", "/login%"},         {"/login%2", "/login%2"},   {"/%zzlogin%6", "/%zzlogin%6"},
		{"/caf%C3%A9", "/caf\xc3\xa9"}, {"/%%36c", "/%6c"},         {NULL, NULL},
	};
	assert_paths(pairs);
	struct weir_span path = weir_served_path(weir_span_of("/a%00b"), &room);
	assert_int_equal(path.length, 4);
	assert_memory_equal(path.at, "/a\0b", 4);
}

static void slashes_and_dots_are_resolved(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{"//login", "/login"},
		{"///login", "/login"},
		{"//evil.example/login", "/evil.example/login"},
		{"/a//b///c", "/a/b/c"},
		{"/login/", "/login/"},
		{"/login//", "/login/"},
		{"/%2flogin", "/login"},
		{"/./login", "/login"},
		{"/a/../login", "/login"},
		{"/a/%2e%2E/login", "/login"},
		{"/a/..%2flogin", "/login"},
		{"/a//../login", "/login"},
		{"/../../login", "/login"},
		{"/a/b/c/./../../g", "/a/g"},
		{"/mid/content=5/../6", "/mid/6"},
		{"/a/.", "/a/"},
		{"/a/..", "/"},
		{"/a/b/..", "/a/"},
		{"/..", "/"},
		{"/.", "/"},
		{"/...", "/..."},
		{"/.a/..b/c", "/.a/..b/c"},
		{"/a/./", "/a/"},
		{"/a/../", "/"},
		/* at the edges of blocks */
		{"/fifteen/bytes//x", "/fifteen/bytes/x"},
		{"/fourteen/byte/./x", "/fourteen/byte/x"},
		{"/thirty/one/bytes/of/a/target//x", "/thirty/one/bytes/of/a/target/x"},
		{NULL, NULL},
	};
	assert_paths(pairs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual_targets_are_their_paths),
		cmocka_unit_test(a_query_and_a_fragment_are_cut),
		cmocka_unit_test(an_absolute_form_loses_its_authority),
		cmocka_unit_test(what_is_no_path_stays),
		cmocka_unit_test(escapes_are_decoded_once),
		cmocka_unit_test(slashes_and_dots_are_resolved),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	weir_served_path_room_deinit(&room);
	return failed;
}

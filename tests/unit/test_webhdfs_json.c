/* SPDX-License-Identifier: Apache-2.0 */
/* WebHDFS's answers: what they give, and the words for what is none. */
#include "collector/source/remote/webhdfs/webhdfs_json.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct taken {
	char text[256];
};

static void take(void *context, const struct webhdfs_status *status)
{
	struct taken *taken = context;
	size_t used = strlen(taken->text);
	snprintf(taken->text + used, sizeof taken->text - used, "%s%s %llu %llu %lld;", status->name,
	         status->folder ? "/" : "", (unsigned long long)status->id, (unsigned long long)status->length,
	         (long long)status->modified_ms);
}

#define ENTRY(name, type, id) \
	"{\"pathSuffix\":\"" name "\",\"type\":\"" type "\",\"fileId\":" #id ",\"length\":5,\"modificationTime\":7}"

static void listings_are_read(void **state)
{
	(void)state;
	struct taken taken = {.text = ""};
	struct weir_error error;
	uint64_t remaining;
	char last[WEBHDFS_NAME_MOST];
	static const char page[] =
		"{\"DirectoryListing\":{\"partialListing\":{\"FileStatuses\":{\"FileStatus\":[" ENTRY("a", "FILE", 1) "," ENTRY(
			"b", "DIRECTORY", 2) "," ENTRY("c", "SYMLINK", 3) "," ENTRY("..", "DIRECTORY",
	                                                                    4) "]}},\"remainingEntries\":9}}";
	assert_int_equal(webhdfs_json_listing(weir_span_of(page), take, &taken, &remaining, last, &error), WEIR_OK);
	assert_string_equal(taken.text, "a 1 5 7;b/ 2 5 7;");
	assert_string_equal(last, "b");
	assert_int_equal(remaining, 9);
	taken.text[0] = '\0';
	static const char whole[] = "{\"FileStatuses\":{\"FileStatus\":[" ENTRY("x", "FILE", 8) "]}}";
	assert_int_equal(webhdfs_json_listing(weir_span_of(whole), take, &taken, &remaining, last, &error), WEIR_OK);
	assert_string_equal(taken.text, "x 8 5 7;");
	assert_int_equal(remaining, 0);
}

static void one_status_and_whether_it_is_open(void **state)
{
	(void)state;
	struct taken taken = {.text = ""};
	struct weir_error error;
	bool open = false;
	static const char one[] = "{\"FileStatus\":" ENTRY("", "FILE", 5) "}";
	assert_int_equal(webhdfs_json_status(weir_span_of(one), take, &taken, &error), WEIR_OK);
	assert_string_equal(taken.text, " 5 5 7;");
	assert_int_equal(
		webhdfs_json_open(weir_span_of("{\"LocatedBlocks\":{\"isUnderConstruction\":true}}"), &open, &error), WEIR_OK);
	assert_true(open);
}

static void what_is_no_answer_is_said(void **state)
{
	(void)state;
	static const struct {
		const char *body, *words;
	} cases[] = {
		{"", "the answer is empty"},
		{"\r\n <html><body>Sign in</body></html>", "a web page came in place of JSON"},
		{"{\"FileStatuses\":{\"FileStatus\":[{\"pathSu", "it cannot be parsed"},
		{"{\"FileStatuses\":{\"FileStatus\":7}}", "not those of WebHDFS"},
		{"{\"RemoteException\":{\"exception\":\"StandbyException\",\"message\":\"Operation category READ\\nat\"}}",
	     "Operation category READ"},
		{"{\"RemoteException\":{\"exception\":\"StandbyException\",\"message\":\"\"}}", "it says no more"},
		{"{\"RemoteException\":{\"exception\":\"StandbyException\",\"message\":\"\\nat\"}}", "it says no more"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct taken taken = {.text = ""};
		struct weir_error error = {.text = ""};
		uint64_t remaining;
		char last[WEBHDFS_NAME_MOST];
		assert_int_equal(webhdfs_json_listing(weir_span_of(cases[i].body), take, &taken, &remaining, last, &error),
		                 WEIR_IO);
		if (strstr(error.text, cases[i].words) == NULL)
			fail_msg("\"%s\" is not in \"%s\"", cases[i].words, error.text);
		assert_string_equal(taken.text, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listings_are_read),
		cmocka_unit_test(one_status_and_whether_it_is_open),
		cmocka_unit_test(what_is_no_answer_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

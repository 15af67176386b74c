/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the source "s3": what is refused, and in which words; which two sources would read the same. */
#include "collector/source/kinds/source_kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct weir_json parse(const char *text, struct weir_json_document **document)
{
	struct weir_error error;
	if (weir_json_parse("weir.json", text, strlen(text), document, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return weir_json_root(*document);
}

static void what_is_wrong_is_refused_in_words(void **state)
{
	(void)state;
	static const struct {
		const char *members, *words;
	} cases[] = {
		{"\"region\": \"eu-central-1\"", "give the bucket's name"},
		{"\"bucket\": \"a\"", "is not a bucket's name"},
		{"\"bucket\": \"a/b/c\"", "is not a bucket's name"},
		{"\"bucket\": \"logs\", \"region\": \"eu central\"", "is not a region"},
		{"\"bucket\": \"logs\", \"url\": \"s3.example.org\"", "must be an address"},
		{"\"bucket\": \"logs\", \"url\": \"https://\"", "must be an address"},
		{"\"bucket\": \"logs\", \"url\": \"https://s3.example.org/?x\"", "must be an address"},
		{"\"bucket\": \"logs\", \"url\": \"https://me:pw@s3.example.org\"", "must not have an account"},
		{"\"bucket\": \"logs\", \"key\": \"k\"", "give the secret"},
		{"\"bucket\": \"logs\", \"secret\": \"s\"", "give the key"},
		{"\"bucket\": \"logs\", \"session_token\": \"t\"", "belongs to a \"key\""},
		{"\"bucket\": \"logs\", \"key\": {\"env\": 1}, \"secret\": \"s\"", "key"},
		{"\"bucket\": \"logs\", \"key\": {\"env\": \"WEIR_NO_SUCH\"}, \"secret\": \"s\"", "WEIR_NO_SUCH is not set"},
		{"\"bucket\": \"logs\", \"key\": \"k\", \"secret\": \"s\", \"session_token\": \"t\", \"url\": \"http://10.0.0.1:9000\"",
	     "must begin with https://"},
		{"\"bucket\": \"logs\", \"prefix\": [\"a/\", \"a/b/\"]", "have keys in common"},
		{"\"bucket\": \"logs\", \"prefix\": \"/a\"", "begins with a slash"},
		{"\"bucket\": \"logs\", \"prefix\": []", "prefix"},
		{"\"bucket\": \"logs\", \"prefixes\": \"a\"", "prefix"},
		{"\"bucket\": \"logs\", \"late\": \"1s\"", "late"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[512];
		snprintf(text, sizeof text, "{\"type\": \"s3\", \"format\": \"json\", %s}", cases[i].members);
		struct weir_json_document *document;
		struct weir_json config = parse(text, &document);
		struct source_context context = {.once = true};
		struct source *source;
		struct weir_error error;
		assert_int_equal(source_new(&config, &context, &source, &error), WEIR_INVALID);
		if (strstr(error.text, cases[i].words) == NULL)
			fail_msg("%s: '%s' does not have '%s'", cases[i].members, error.text, cases[i].words);
		weir_json_document_free(document);
	}
}

static enum weir_status apart(const char *one, const char *other)
{
	char text[1024];
	snprintf(text, sizeof text,
	         "[{\"type\": \"s3\", \"format\": \"json\", %s}, {\"type\": \"s3\", \"format\": \"json\", %s}]", one,
	         other);
	struct weir_json_document *document;
	struct weir_json sources = parse(text, &document);
	struct weir_error error;
	enum weir_status status = source_apart(&sources, 1, &error);
	weir_json_document_free(document);
	return status;
}

static void two_sources_do_not_read_the_same_keys(void **state)
{
	(void)state;
	assert_int_equal(apart("\"bucket\": \"logs\"", "\"bucket\": \"logs\""), WEIR_INVALID);
	assert_int_equal(apart("\"bucket\": \"logs\"", "\"bucket\": \"logs\", \"prefix\": \"a/\""), WEIR_INVALID);
	assert_int_equal(
		apart("\"bucket\": \"logs\", \"prefix\": [\"b/\", \"a/\"]", "\"bucket\": \"logs\", \"prefix\": \"a/b\""),
		WEIR_INVALID);
	assert_int_equal(apart("\"bucket\": \"logs\", \"match\": \"*.gz\"", "\"bucket\": \"logs\""), WEIR_INVALID);
	assert_int_equal(apart("\"bucket\": \"logs\", \"name\": \"a\"", "\"bucket\": \"other\", \"name\": \"a\""),
	                 WEIR_INVALID);
	assert_int_equal(apart("\"bucket\": \"logs\", \"prefix\": \"a/\"", "\"bucket\": \"logs\", \"prefix\": \"b/\""),
	                 WEIR_OK);
	assert_int_equal(apart("\"bucket\": \"logs\"", "\"bucket\": \"others\""), WEIR_OK);
	assert_int_equal(apart("\"bucket\": \"logs\", \"match\": \"*.gz\"", "\"bucket\": \"logs\", \"match\": \"*.log\""),
	                 WEIR_OK);
	assert_int_equal(apart("\"bucket\": \"logs\"", "\"bucket\": \"logs\", \"url\": \"https://s3.example.org\""),
	                 WEIR_OK);
}

static void a_description_names_the_bucket_and_no_secret(void **state)
{
	(void)state;
	struct weir_json_document *document;
	struct weir_json config =
		parse("{\"type\": \"s3\", \"bucket\": \"logs\", \"prefix\": [\"a/\", \"b/\"], \"match\": \"*.gz\", "
	          "\"key\": \"AKIA\", \"secret\": \"hidden\", \"format\": \"alb\"}",
	          &document);
	struct weir_text place = {0}, manner = {0};
	source_kind(&config)->describe(&config, &place, &manner);
	weir_text_append(&place, "", 1);
	assert_string_equal(place.at, "s3://logs/a/, b/ (*.gz)");
	weir_text_deinit(&place);
	weir_text_deinit(&manner);
	weir_json_document_free(document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_refused_in_words),
		cmocka_unit_test(two_sources_do_not_read_the_same_keys),
		cmocka_unit_test(a_description_names_the_bucket_and_no_secret),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

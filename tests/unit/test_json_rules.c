/* SPDX-License-Identifier: Apache-2.0 */
/* Members read by a table: each kind of value into its place, absent ones left alone, others refused. */
#include "common/json/json_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct settings {
	bool flag;
	int word;
	const char *text;
	int64_t number, bytes, time_ms;
};

#define AT(member) offsetof(struct settings, member)

static const char *const words[] = {"one", "two", NULL};
static const struct weir_json_rule rules[] = {
	{.name = "flag", .kind = WEIR_JSON_FLAG, .offset = AT(flag)},
	{.name = "word", .kind = WEIR_JSON_WORD, .offset = AT(word), .words = words},
	{.name = "text", .kind = WEIR_JSON_TEXT, .offset = AT(text)},
	{.name = "number", .kind = WEIR_JSON_NUMBER, .offset = AT(number), .least = 1, .most = 9},
	{.name = "bytes", .kind = WEIR_JSON_SIZE, .offset = AT(bytes), .least = 1, .most = 4096},
	{.name = "time", .kind = WEIR_JSON_TIME, .offset = AT(time_ms), .least = 1, .most = 5000},
	{.name = "other"},
	{.name = NULL},
};

static enum weir_status read_text(const char *text, struct settings *settings, struct weir_error *error)
{
	struct weir_json_document *document;
	*error = (struct weir_error){.text = ""};
	assert_int_equal(weir_json_parse("test", text, strlen(text), &document, error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	enum weir_status status = weir_json_known(&root, rules, error);
	if (status == WEIR_OK)
		status = weir_json_read(&root, rules, settings, error);
	if (status == WEIR_OK && settings->text != NULL)
		assert_string_equal(settings->text, "x");
	weir_json_document_free(document);
	return status;
}

static void each_kind_goes_to_its_place(void **state)
{
	(void)state;
	struct settings settings = {0};
	struct weir_error error;
	assert_int_equal(
		read_text("{\"flag\": true, \"word\": \"two\", \"text\": \"x\", \"number\": 7, \"bytes\": \"1KiB\", "
	              "\"time\": \"2s\", \"other\": []}",
	              &settings, &error),
		WEIR_OK);
	assert_true(settings.flag);
	assert_int_equal(settings.word, 1);
	assert_int_equal(settings.number, 7);
	assert_int_equal(settings.bytes, 1024);
	assert_int_equal(settings.time_ms, 2000);
}

static void what_is_absent_stays(void **state)
{
	(void)state;
	struct settings settings = {.flag = true, .word = 1, .number = 3, .bytes = 4, .time_ms = 5};
	struct weir_error error;
	assert_int_equal(read_text("{}", &settings, &error), WEIR_OK);
	assert_true(settings.flag && settings.word == 1 && settings.number == 3 && settings.bytes == 4 &&
	            settings.time_ms == 5 && settings.text == NULL);
}

static void what_is_wrong_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *words;
	} cases[] = {
		{"{\"flga\": true}", "did you mean \"flag\"?"},
		{"{\"flag\": 1}", "flag: "},
		{"{\"word\": \"three\"}", "word: must be one of"},
		{"{\"text\": 5}", "text: "},
		{"{\"number\": 10}", "number: must be a whole number from 1 to 9"},
		{"{\"bytes\": \"8KiB\"}", "bytes: "},
		{"{\"time\": \"6s\"}", "time: "},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct settings settings = {0};
		struct weir_error error;
		assert_int_equal(read_text(cases[i].text, &settings, &error), WEIR_INVALID);
		if (strstr(error.text, cases[i].words) == NULL)
			fail_msg("\"%s\" is not in \"%s\"", cases[i].words, error.text);
	}
}

static void what_is_needed_is_asked_for(void **state)
{
	(void)state;
	static const struct weir_json_rule needed[] = {{.name = "text", .kind = WEIR_JSON_TEXT, .needed = "give a text"},
	                                               {.name = "other", .needed = "give it"},
	                                               {.name = NULL}};
	static const struct {
		const char *text, *words;
	} cases[] = {{"{}", "text: is missing; give a text"},
	             {"{\"text\": \"x\"}", "other: is missing; give it"},
	             {"{\"text\": \"x\", \"other\": 1}", NULL}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct weir_json_document *document;
		struct weir_error error = {.text = ""};
		const char *text = NULL;
		assert_int_equal(weir_json_parse("test", cases[i].text, strlen(cases[i].text), &document, &error), WEIR_OK);
		struct weir_json root = weir_json_root(document);
		enum weir_status status = weir_json_read(&root, needed, &text, &error);
		assert_int_equal(status, cases[i].words == NULL ? WEIR_OK : WEIR_INVALID);
		if (cases[i].words != NULL && strstr(error.text, cases[i].words) == NULL)
			fail_msg("\"%s\" is not in \"%s\"", cases[i].words, error.text);
		weir_json_document_free(document);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_goes_to_its_place),
		cmocka_unit_test(what_is_absent_stays),
		cmocka_unit_test(what_is_wrong_is_refused),
		cmocka_unit_test(what_is_needed_is_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

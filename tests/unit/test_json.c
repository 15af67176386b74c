/* SPDX-License-Identifier: Apache-2.0 */
/* What a person reads when a configuration is wrong: the path, the line, and what would be accepted. */
#include "common/base/alloc.h"
#include "common/base/suggest.h"
#include "common/json/json.h"
#include "common/json/json_line.h"
#include "common/json/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct weir_json_document *parse(const char *text)
{
	struct weir_json_document *document = NULL;
	struct weir_error error;
	if (weir_json_parse("weir.json", text, strlen(text), &document, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return document;
}

/* The member of the root object, for getters. */
static struct weir_json member_of(const struct weir_json_document *document, const char *name)
{
	struct weir_json root = weir_json_root(document);
	return weir_json_member(&root, name);
}

static void expect_error(enum weir_status status, const struct weir_error *error, const char *words)
{
	assert_int_equal(status, WEIR_INVALID);
	assert_int_equal(error->status, WEIR_INVALID);
	assert_string_equal(error->text, words);
}

static void syntax_errors_have_line_and_column(void **state)
{
	(void)state;
	struct weir_json_document *document;
	struct weir_error error;
	const char *text = "{\n  \"zones\": [\n  ],\n}\n";
	enum weir_status status = weir_json_parse("weir.json", text, strlen(text), &document, &error);
	expect_error(status, &error, "weir.json:4:1: not valid JSON: string or '}' expected near '}'");
	text = "{\"a\": 1,\n \"a\": 2}";
	status = weir_json_parse("weir.json", text, strlen(text), &document, &error);
	assert_int_equal(status, WEIR_INVALID);
	assert_non_null(strstr(error.text, "weir.json:2:"));
	assert_non_null(strstr(error.text, "duplicate"));
	text = "{\"a\": \"\n\"}";
	status = weir_json_parse("weir.json", text, strlen(text), &document, &error);
	assert_int_equal(status, WEIR_INVALID);
	assert_null(strchr(error.text, '\n'));
}

static void refuses_what_cannot_be_read(void **state)
{
	(void)state;
	struct weir_json_document *document;
	struct weir_error error;
	assert_int_equal(weir_json_load("/nonexistent/weir.json", &document, &error), WEIR_IO);
	assert_string_equal(error.text, "cannot open /nonexistent/weir.json: No such file or directory");
	assert_int_equal(weir_json_load("/", &document, &error), WEIR_IO);
	assert_string_equal(error.text, "cannot read /: Is a directory");
}

/* A file with this text. */
static struct weir_json_document *load(const char *text, struct weir_error *error)
{
	char path[] = "/tmp/weir-json-XXXXXX";
	FILE *file = fdopen(mkstemp(path), "w");
	fputs(text, file);
	fclose(file);
	struct weir_json_document *document = NULL;
	if (weir_json_load(path, &document, error) != WEIR_OK)
		memmove(error->text, error->text + strlen(path), strlen(error->text + strlen(path)) + 1);
	unlink(path);
	return document;
}

static void a_file_may_have_comments_and_a_last_comma(void **state)
{
	(void)state;
	struct weir_error error;
	static const char *const same[] = {
		"{\"a\": [1, {\"b\": \"// no, /* no */ ,]\\\",}\"}], \"c\": 2}",
		"// first\n{\"a\": [1, /* two\n lines, */ {\"b\": \"// no, /* no */ ,]\\\",}\",},], // here ]\n \"c\": 2 /**/ , /* } */\n}\n//",
		"{\"a\":[1,{\"b\":\"// no, /* no */ ,]\\\",}\",\n\t}\n,\n]\r\n,\"c\":2,}",
	};
	struct weir_json_document *first = load(same[0], &error);
	for (size_t i = 1; i < sizeof same / sizeof *same; i++) {
		struct weir_json_document *other = load(same[i], &error);
		assert_non_null(other);
		assert_true(json_equal(weir_json_root(first).value, weir_json_root(other).value));
		weir_json_document_free(other);
	}
	weir_json_document_free(first);
	static const struct {
		const char *text, *words;
	} wrong[] = {
		{"[,]", ":1:2: not valid JSON: "},
		{"[1,,]", ":1:4: not valid JSON: "},
		{"{,}", ":1:2: not valid JSON: "},
		{"{\"a\":,}", ":1:6: not valid JSON: "},
		{"{\n# no\n}", "; a comment begins with // or stands between /* and */"},
		{"{\"a\": 1 /* no }", "; a comment that begins with /* ends with */"},
		{"{'a': 1}", "; a string stands between double quotes"},
		{"{/* two\nlines */ \"a\" 1}", ":2:14: not valid JSON: "},
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_null(load(wrong[i].text, &error));
		if (strstr(error.text, wrong[i].words) == NULL)
			fail_msg("%s: %s", wrong[i].text, error.text);
	}
}

/* Reads as a loader would: each member of each element, the first mistake ends it. */
static enum weir_status read_list(const struct weir_json_document *document, struct weir_error *error)
{
	static const char *const names[] = {"list", "last", NULL}, *const members[] = {"name", "rate", "of", NULL};
	struct weir_json root = weir_json_root(document), list = weir_json_member(&root, "list");
	struct weir_json last = weir_json_member(&root, "last");
	size_t count = 0;
	int64_t number;
	const char *of;
	enum weir_status status = weir_json_only(&root, names, error);
	if (status == WEIR_OK)
		status = weir_json_list(&list, 1, 9, &count, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json at = weir_json_element(&list, i), rate = weir_json_member(&at, "rate");
		struct weir_json of_at = weir_json_member(&at, "of");
		of = "";
		status = weir_json_only(&at, members, error);
		if (status == WEIR_OK)
			status = weir_json_require(&rate, "a number", error);
		if (status == WEIR_OK)
			status = weir_json_int(&rate, 1, 9, &number, error);
		if (status == WEIR_OK)
			status = weir_json_string(&of_at, &of, error);
		bool found = *of == '\0';
		for (size_t k = 0; status == WEIR_OK && k < count; k++)
			found |= strcmp(of, json_string_value(json_object_get(json_array_get(list.value, k), "name"))) == 0;
		if (status == WEIR_OK && !found)
			status = weir_json_fail(&of_at, error, "there is no \"%s\"", of);
	}
	return status == WEIR_OK ? weir_json_int(&last, 1, 9, &number, error) : status;
}

static void every_mistake_is_found_once(void **state)
{
	(void)state;
	static const char text[] = "{\"list\": [\n"                                         /* 1 */
							   "{\"name\": \"a\", \"rate\": 10},\n"                     /* 2 */
							   "{\"name\": \"b\"},\n"                                   /* 3 */
							   "{\"name\": \"c\", \"rate\": 3},\n"                      /* 4 */
							   "{\"name\": \"d\", \"rat.e[0]\": 3, \"rate\": \"x\"},\n" /* 5 */
							   "{\"name\": \"e\", \"rate\": 4, \"of\": \"a\"},\n"       /* 6: gone, as the first is */
							   "{\"name\": \"f\", \"rate\": 4, \"of\": \"z\"}],\n"      /* 7 */
							   "\"last\": 99}\n";                                       /* 8 */
	static const char *const words[] = {
		"weir.json:2: list[0].rate: must be",
		"weir.json:3: list[1].rate: is missing",
		"weir.json:5: list[3]: unknown key \"rat.e[0]\"",
		"weir.json:5: list[3].rate: must be",
		"weir.json:7: list[5].of: there is no \"z\"",
		"weir.json:8: last: must be",
	};
	struct weir_json_document *document = parse(text);
	struct weir_error error;
	size_t told = 0, rounds = 0;
	bool more = true, new_mistake;
	while (more && read_list(document, &error) != WEIR_OK) {
		assert_true(rounds++ < 20);
		more = weir_json_read_on(document, &error, &new_mistake);
		if (!new_mistake)
			continue;
		assert_true(told < sizeof words / sizeof *words);
		if (strncmp(error.text, words[told], strlen(words[told])) != 0)
			fail_msg("%s, not %s", error.text, words[told]);
		told++;
	}
	assert_int_equal(told, sizeof words / sizeof *words);
	weir_json_document_free(document);
	/* A mistake of the whole is told, and ends it. */
	document = parse("[1]");
	assert_int_equal(read_list(document, &error), WEIR_INVALID);
	assert_false(weir_json_read_on(document, &error, &new_mistake));
	assert_true(new_mistake);
	weir_json_document_free(document);
}

static void a_byte_order_mark_is_passed_over(void **state)
{
	(void)state;
	weir_json_document_free(parse("\xef\xbb\xbf{}"));
}

static void finds_the_line_of_every_path(void **state)
{
	(void)state;
	static const char text[] = "\n"                                   /* 1 */
							   "{ \"a\": [ 1,\n"                      /* 2 */
							   "  {\"b\": \"x]}\\\"{\",\n"            /* 3 */
							   "   \"c.d\": true,\n"                  /* 4 */
							   "   \"c\": {\n"                        /* 5 */
							   "     \"d\": 1, \"e\":\n"              /* 6 */
							   "       null, \"e[0]\": [\n"           /* 7 */
							   "     -2.5e3]}}, []],\n"               /* 8 */
							   "  \"\\u0066\\\\\": {},\n"             /* 9 */
							   "  \"g\": {\"empty\": {}, \"list\":\n" /* 10 */
							   "    [[],\n"                           /* 11 */
							   "     [[3]]]}\n"                       /* 12 */
							   "}\n";                                 /* 13 */
	static const struct {
		const char *path;
		unsigned line;
	} cases[] = {{"", 2},
	             {"a", 2},
	             {"a[0]", 2},
	             {"a[1]", 3},
	             {"a[1].b", 3},
	             {"a[1].c.d", 4}, /* "c.d" is met first */
	             {"a[1].c", 5},
	             {"a[1].c.e", 7},
	             {"a[1].c.e[0]", 7},
	             {"a[1].c.e[0][0]", 8},
	             {"a[2]", 8},
	             {"a[3]", 2},      /* not there: the list it should be in */
	             {"a[1].c.zz", 5}, /* not there: the object it should be in */
	             {"f\\", 9},
	             {"g", 10},
	             {"g.empty", 10},
	             {"g.list", 11},
	             {"g.list[1][0]", 12},
	             {"g.list[1][0][0]", 12},
	             {"nowhere.at.all", 2}};
	weir_json_document_free(parse(text));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		unsigned line = weir_json_line(weir_span_of(text), cases[i].path);
		if (line != cases[i].line)
			fail_msg("%s: line %u, not %u", cases[i].path, line, cases[i].line);
	}
}

static void whole_numbers_are_checked(void **state)
{
	(void)state;
	struct weir_json_document *document =
		parse("{\"zones\": [{\n\"limits\": [1, {\n\"rate\": \"ten\", \"b\": 5, \"c\": 2.5, \"d\": 0}]}]}");
	struct weir_json zones = member_of(document, "zones");
	struct weir_json zone = weir_json_element(&zones, 0);
	struct weir_json limits = weir_json_member(&zone, "limits");
	struct weir_json limit = weir_json_element(&limits, 1);
	struct weir_json at = weir_json_member(&limit, "rate");
	struct weir_error error;
	int64_t value = 7;
	expect_error(weir_json_int(&at, 1, 1000000000, &value, &error), &error,
	             "weir.json:3: zones[0].limits[1].rate: must be a whole number from 1 to 1000000000, not \"ten\"");
	at = weir_json_member(&limit, "c");
	expect_error(weir_json_int(&at, 1, 9, &value, &error), &error,
	             "weir.json:3: zones[0].limits[1].c: must be a whole number from 1 to 9, not 2.5");
	at = weir_json_member(&limit, "d");
	expect_error(weir_json_int(&at, 1, 9, &value, &error), &error,
	             "weir.json:3: zones[0].limits[1].d: must be a whole number from 1 to 9, not 0");
	assert_int_equal(value, 7);
	at = weir_json_member(&limit, "absent");
	assert_int_equal(weir_json_int(&at, 1, 9, &value, &error), WEIR_OK);
	assert_int_equal(value, 7);
	at = weir_json_member(&limit, "b");
	assert_int_equal(weir_json_int(&at, 1, 9, &value, &error), WEIR_OK);
	assert_int_equal(value, 5);
	weir_json_document_free(document);
}

/* JSON tells 5 from 5.0 as little as programs do that write all numbers alike. */
static void a_whole_number_may_have_a_fraction_of_zero(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t wanted; /* 0: it is refused */
	} cases[] = {{"5", 5},   {"5.0", 5},   {"-5.0", -5},     {"1e3", 1000}, {"9007199254740992.0", 9007199254740992},
	             {"2.5", 0}, {"1e300", 0}, {"1.0000001", 0}, {"-1e300", 0}, {"1e19", 0}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[64];
		struct weir_error error;
		int64_t value = 0;
		snprintf(text, sizeof text, "{\"n\": %s}", cases[i].text);
		struct weir_json_document *document = parse(text);
		struct weir_json at = member_of(document, "n");
		enum weir_status status = weir_json_int(&at, INT64_MIN, INT64_MAX, &value, &error);
		assert_int_equal(status, cases[i].wanted != 0 ? WEIR_OK : WEIR_INVALID);
		assert_int_equal(value, cases[i].wanted);
		weir_json_document_free(document);
	}
}

static void each_getter_says_what_it_takes(void **state)
{
	(void)state;
	struct weir_json_document *document = parse("{\"n\": 3, \"s\": \"infoo\", \"o\": {}, \"a\": [], \"z\": null}");
	struct weir_json n = member_of(document, "n"), s = member_of(document, "s"), o = member_of(document, "o"),
					 a = member_of(document, "a"), z = member_of(document, "z");
	struct weir_error error;
	bool flag = false;
	const char *string = NULL;
	int64_t value = 0;
	int word = 0;
	char *secret = NULL;
	static const char *const words[] = {"debug", "info", NULL};
	expect_error(weir_json_bool(&n, &flag, &error), &error, "weir.json:1: n: must be true or false, not 3");
	expect_error(weir_json_string(&o, &string, &error), &error, "weir.json:1: o: must be a string, not an object");
	expect_error(weir_json_string(&z, &string, &error), &error, "weir.json:1: z: must be a string, not null");
	expect_error(weir_json_duration(&n, 1, 60000, &value, &error), &error,
	             "weir.json:1: n: must be a time from \"1ms\" to \"1m\", a whole number of ms, s, m, h or d such as "
	             "\"10s\", not 3");
	expect_error(
		weir_json_size(&a, 1024, INT64_C(1) << 31, &value, &error), &error,
		"weir.json:1: a: must be a size from \"1KiB\" to \"2GiB\", a number of bytes or of KiB, MiB, GiB or TiB "
		"such as \"64MiB\", not an array");
	expect_error(weir_json_word(&s, words, &word, &error), &error,
	             "weir.json:1: s: must be one of \"debug\", \"info\", not \"infoo\"; did you mean \"info\"?");
	expect_error(weir_json_secret(&o, &secret, &error), &error,
	             "weir.json:1: o: must be a string, {\"file\": PATH} or {\"env\": NAME}");
	struct weir_json root = weir_json_root(document);
	expect_error(weir_json_bool(&root, &flag, &error), &error, "weir.json:1: must be true or false, not an object");
	weir_json_document_free(document);
}

static void unknown_keys_are_refused_with_the_nearest(void **state)
{
	(void)state;
	static const char *const names[] = {"algorithm", "rate", "window", NULL};
	struct weir_json_document *document =
		parse("{\"x\": {\"rate\": 1,\n\"algoritm\": 2}, \"y\": {\"zzzzz\": 1}, \"v\": 1}");
	struct weir_json x = member_of(document, "x"), y = member_of(document, "y"), v = member_of(document, "v");
	struct weir_error error;
	expect_error(
		weir_json_only(&x, names, &error), &error,
		"weir.json:2: x: unknown key \"algoritm\"; did you mean \"algorithm\"? (known: algorithm, rate, window)");
	expect_error(weir_json_only(&y, names, &error), &error,
	             "weir.json:2: y: unknown key \"zzzzz\" (known: algorithm, rate, window)");
	expect_error(weir_json_only(&v, names, &error), &error, "weir.json:2: v: must be an object, not 1");
	weir_json_document_free(document);
}

static void a_list_of_names_is_cut_between_names(void **state)
{
	(void)state;
	static const char *const names[] = {"one", "three", "eleven", NULL};
	static const struct {
		size_t bytes;
		const char *list;
	} cases[] = {{99, "'one', 'three', 'eleven'"},
	             {25, "'one', 'three', 'eleven'"},
	             {24, "'one', 'three', ..."},
	             {20, "'one', 'three', ..."},
	             {19, "'one', ..."},
	             {11, "'one', ..."},
	             {10, ""},
	             {1, ""}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *buffer = weir_alloc(cases[i].bytes, 1); /* not one byte more */
		weir_list_names(names, "'", buffer, cases[i].bytes);
		assert_string_equal(buffer, cases[i].list);
		free(buffer);
	}
}

static void suggestions_are_near(void **state)
{
	(void)state;
	static const char *const names[] = {"window", "rate", "burst", "limits", NULL};
	assert_string_equal(weir_nearest_name("widnow", names), "window");
	assert_string_equal(weir_nearest_name("windows", names), "window");
	assert_string_equal(weir_nearest_name("limit", names), "limits");
	assert_string_equal(weir_nearest_name("brst", names), "burst");
	assert_string_equal(weir_nearest_name("rtae", names), "rate");
	assert_string_equal(weir_nearest_name("LIMITS", names), "limits");
	assert_null(weir_nearest_name("x", names));
	assert_null(weir_nearest_name("history", names));
	assert_null(weir_nearest_name("", names));
	assert_null(weir_nearest_name("a-very-long-name-a-very-long-name-a-very-long-name-a-very-long-name", names));
}

static void an_option_of_the_command_line_has_no_line(void **state)
{
	(void)state;
	struct weir_json_document *document;
	struct weir_error error;
	assert_int_equal(weir_json_parse("--format", "{\"a\": 1}", 8, &document, &error), WEIR_OK);
	struct weir_json a = member_of(document, "a");
	expect_error(weir_json_fail(&a, &error, "is wrong"), &error, "--format: a: is wrong");
	weir_json_document_free(document);
}

static void times_and_sizes_are_read_and_written(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t value;
	} times[] = {{"250ms", 250}, {"10s", 10000}, {"1m", 60000}, {"1h", 3600000}, {"1d", 86400000}, {"0s", 0}},
	  sizes[] = {{"4095", 4095}, {"64KiB", 65536}, {"10MiB", 10485760}, {"2GiB", INT64_C(1) << 31}, {"0", 0}};
	char buffer[24];
	int64_t value;
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		assert_true(weir_parse_duration(times[i].text, &value));
		assert_int_equal(value, times[i].value);
		assert_string_equal(weir_format_duration(value, buffer, sizeof buffer), times[i].text);
	}
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		assert_true(weir_parse_size(sizes[i].text, &value));
		assert_int_equal(value, sizes[i].value);
		assert_string_equal(weir_format_size(value, buffer, sizeof buffer), sizes[i].text);
	}
	assert_string_equal(weir_format_duration(90000, buffer, sizeof buffer), "90s");
	static const char *const bad[] = {
		"", "10", "s", "1.5s", "-1s", "1 s", "1s ", "1M", "99999999999999999999s", "9e9s", "9223372036854775807d"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(weir_parse_duration(bad[i], &value));
	static const char *const bad_sizes[] = {"", "KiB", "64KB", "64K", "-1", "1.5GiB", "9223372036854775807KiB"};
	for (size_t i = 0; i < sizeof bad_sizes / sizeof *bad_sizes; i++)
		assert_false(weir_parse_size(bad_sizes[i], &value));
}

static void secrets_come_from_a_file_or_the_environment(void **state)
{
	(void)state;
	char path[] = "/tmp/weir-secret-XXXXXX", text[256];
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "s3cret\r\nmore\n", 13), 13);
	close(fd);
	setenv("WEIR_TEST_SECRET", "from env", 1);
	unsetenv("WEIR_TEST_ABSENT");
	snprintf(text, sizeof text,
	         "{\"f\": {\"file\": \"%s\"}, \"e\": {\"env\": \"WEIR_TEST_SECRET\"}, \"p\": \"plain\",\n"
	         "\"m\": {\"env\": \"WEIR_TEST_ABSENT\"}, \"g\": {\"file\": \"/nonexistent/s\"}}",
	         path);
	struct weir_json_document *document = parse(text);
	static const char *const names[] = {"f", "e", "p"};
	static const char *const expected[] = {"s3cret", "from env", "plain"};
	struct weir_error error;
	char *secret;
	for (int i = 0; i < 3; i++) {
		struct weir_json at = member_of(document, names[i]);
		assert_int_equal(weir_json_secret(&at, &secret, &error), WEIR_OK);
		assert_string_equal(secret, expected[i]);
		free(secret);
	}
	struct weir_json m = member_of(document, "m"), g = member_of(document, "g");
	expect_error(weir_json_secret(&m, &secret, &error), &error,
	             "weir.json:2: m.env: environment variable WEIR_TEST_ABSENT is not set");
	expect_error(weir_json_secret(&g, &secret, &error), &error,
	             "weir.json:2: g.file: cannot open /nonexistent/s: No such file or directory");
	weir_json_document_free(document);
	unlink(path);
}

static void long_paths_are_cut_not_overrun(void **state)
{
	(void)state;
	struct weir_json_document *document = parse("[]");
	struct weir_json at = weir_json_root(document);
	for (int i = 0; i < 100; i++) {
		at = weir_json_member(&at, "name");
		at = weir_json_element(&at, (size_t)i);
	}
	assert_int_equal(strlen(at.path), WEIR_JSON_PATH_BYTES - 1);
	struct weir_error error;
	assert_int_equal(weir_json_fail(&at, &error, "is wrong"), WEIR_INVALID);
	weir_json_document_free(document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syntax_errors_have_line_and_column),
		cmocka_unit_test(refuses_what_cannot_be_read),
		cmocka_unit_test(a_file_may_have_comments_and_a_last_comma),
		cmocka_unit_test(every_mistake_is_found_once),
		cmocka_unit_test(a_byte_order_mark_is_passed_over),
		cmocka_unit_test(finds_the_line_of_every_path),
		cmocka_unit_test(whole_numbers_are_checked),
		cmocka_unit_test(a_whole_number_may_have_a_fraction_of_zero),
		cmocka_unit_test(each_getter_says_what_it_takes),
		cmocka_unit_test(unknown_keys_are_refused_with_the_nearest),
		cmocka_unit_test(a_list_of_names_is_cut_between_names),
		cmocka_unit_test(suggestions_are_near),
		cmocka_unit_test(an_option_of_the_command_line_has_no_line),
		cmocka_unit_test(times_and_sizes_are_read_and_written),
		cmocka_unit_test(secrets_come_from_a_file_or_the_environment),
		cmocka_unit_test(long_paths_are_cut_not_overrun),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

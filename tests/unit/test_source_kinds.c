/* SPDX-License-Identifier: Apache-2.0 */
/* What every kind of source says of itself, and that nothing else has to know which kinds there are. */
#include "collector/source/kinds/source_kinds.h"

#include "collector/format/format.h"
#include "collector/source/source_metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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

static bool has_member(const struct source_ops *kind, const char *name)
{
	for (const struct weir_json_rule *rule = kind->members; rule->name != NULL; rule++)
		if (strcmp(rule->name, name) == 0)
			return true;
	return false;
}

static void every_kind_is_whole(void **state)
{
	(void)state;
	static const char *const members[] = {"type", "name", "format", "line_max"};
	size_t count;
	const struct source_ops *const *kinds = source_kinds(&count);
	assert_true(count >= 5);
	for (size_t i = 0; i < count; i++) {
		const struct source_ops *kind = kinds[i];
		for (size_t j = 0; j < sizeof members / sizeof *members; j++)
			if (!has_member(kind, members[j]) && (kind->own_name == NULL || j == 0))
				fail_msg("%s has no %s", kind->type, members[j]);
		assert_in_range(kind->guarantee, SOURCE_AT_MOST_ONCE, SOURCE_EXACTLY_ONCE);
		assert_true(kind->replayable || kind->guarantee == SOURCE_AT_MOST_ONCE);
		bool shown = false;
		for (const struct source_metric *const *metric = kind->metrics; *metric != NULL; metric++)
			shown |= *metric == &source_metric_guarantee;
		assert_true(shown);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(kinds[j]->type, kind->type);
		assert_true(kind->create != NULL && kind->describe != NULL && kind->collect != NULL && kind->streams != NULL &&
		            kind->fd != NULL && kind->metrics != NULL && kind->acknowledge != NULL && kind->resume != NULL &&
		            kind->status != NULL && kind->free != NULL);
	}
}

static void assert_refused(const char *text, const char *words)
{
	struct weir_json_document *document;
	struct weir_json config = parse(text, &document);
	struct source_context context = {.once = true};
	struct source *source;
	struct weir_error error;
	assert_int_equal(source_new(&config, &context, &source, &error), WEIR_INVALID);
	if (strstr(error.text, words) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", words, error.text);
	weir_json_document_free(document);
}

static void what_is_no_kind_is_refused(void **state)
{
	(void)state;
	static const char all[] =
		"\"file\", \"stdin\", \"syslog\", \"journal\", \"kafka\", \"nats\", \"amqp\", \"redis\", \"webhdfs\", \"s3\", \"http\", \"forward\", \"decisions\"";
	assert_refused("{}", "type: is missing; give one of");
	assert_refused("{}", all);
	assert_refused("{\"type\": \"fil\"}", all);
	assert_refused("{\"type\": \"fil\"}", "did you mean \"file\"?");
	assert_refused("{\"type\": \"stdin\", \"name\": \"decisions\"}", "is the name of the source of type \"decisions\"");
	assert_refused("{\"type\": \"stdin\", \"pth\": \"-\"}", "unknown key \"pth\"; did you mean \"path\"?");
}

static void assert_described(const char *text, const char *place, const char *manner)
{
	struct weir_json_document *document;
	struct weir_json config = parse(text, &document);
	struct weir_text said[2] = {{0}};
	source_kind(&config)->describe(&config, &said[0], &said[1]);
	for (int i = 0; i < 2; i++) {
		weir_text_append(&said[i], "", 1);
		assert_string_equal(said[i].at, i == 0 ? place : manner);
		weir_text_deinit(&said[i]);
	}
	weir_json_document_free(document);
}

static void each_is_described(void **state)
{
	(void)state;
	assert_described("{\"type\": \"file\", \"path\": [\"a.log\", \"b*.log\"]}", "a.log, b*.log", "read to its end");
	assert_described("{\"type\": \"file\", \"path\": \"a.log\", \"follow\": true, \"start\": \"end\"}", "a.log",
	                 "followed; initially from the end of what exists");
	assert_described("{\"type\": \"stdin\"}", "-", "read to its end");
	assert_described("{\"type\": \"syslog\", \"listen\": \"udp://*:514\"}", "udp://*:514", "listened to");
	assert_described("{\"type\": \"journal\"}", "journal", "followed; initially from the beginning of what exists");
	assert_described("{\"type\": \"journal\", \"units\": [\"a\", \"b\"], \"directory\": \"/j\", \"follow\": false}",
	                 "journal of a, b in /j", "read to its end");
	assert_described("{\"type\": \"kafka\", \"topics\": [\"a\", \"b\"], \"brokers\": \"h:1\"}", "topics a, b at h:1",
	                 "followed from its consumer group's offset; initially from the beginning of what exists");
	assert_described("{\"type\": \"redis\", \"url\": \"redis://me:secret@h:1/2\", \"streams\": [\"a\", \"b*\"]}",
	                 "streams a, b* at h:1/2", "followed; initially from the beginning of what exists");
	assert_described("{\"type\": \"nats\", \"stream\": \"S\", \"subjects\": [\"a.>\", \"b\"], \"url\": \"nats://h:1\"}",
	                 "stream S, subjects a.>, b at nats://h:1",
	                 "followed; initially from the beginning of what exists");
	assert_described("{\"type\": \"amqp\", \"queue\": \"q\", \"url\": \"amqp://h:1\"}", "queue q at amqp://h:1",
	                 "consumed");
	assert_described("{\"type\": \"amqp\", \"queue\": \"q\", \"url\": \"amqp://h:1\", \"stream\": true}",
	                 "stream queue q at amqp://h:1", "followed; initially from the beginning of what exists");
	assert_described("{\"type\": \"decisions\"}", "weir's own decisions",
	                 "followed, for zones that name it; --once takes its own");
}

/* There is one standard input, and whoever validates is told what whoever runs is told: both ask source_apart(). */
static void standard_input_is_one_source(void **state)
{
	(void)state;
	struct weir_json_document *document;
	struct weir_error error = {.text = ""};
	struct weir_json sources = parse("[{\"type\": \"stdin\"}, {\"type\": \"file\", \"path\": \"-\"}, "
	                                 "{\"type\": \"stdin\", \"path\": \"-\"}]",
	                                 &document);
	assert_int_equal(source_apart(&sources, 0, &error), WEIR_OK);
	assert_int_equal(source_apart(&sources, 1, &error), WEIR_OK);
	assert_int_equal(source_apart(&sources, 2, &error), WEIR_INVALID);
	assert_non_null(strstr(error.text, "[2]: is a second source of standard input, after [0]"));
	weir_json_document_free(document);
}

/* The head that a kind's lines have is a format, and a message behind it has one of its own. */
static void heads_are_formats(void **state)
{
	(void)state;
	size_t count;
	const struct source_ops *const *kinds = source_kinds(&count);
	struct weir_json_document *document;
	struct weir_json config = parse("{\"format\": \"combined\"}", &document), at = weir_json_member(&config, "format");
	struct weir_field_table fields;
	weir_field_table_init(&fields);
	for (size_t i = 0; i < count; i++) {
		struct weir_error error;
		struct format *format;
		assert_int_equal(format_new_behind(kinds[i]->head, &at, &fields, &format, &error), WEIR_OK);
		format_free(format);
	}
	weir_field_table_deinit(&fields);
	weir_json_document_free(document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_whole), cmocka_unit_test(what_is_no_kind_is_refused),
		cmocka_unit_test(each_is_described),   cmocka_unit_test(standard_input_is_one_source),
		cmocka_unit_test(heads_are_formats),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

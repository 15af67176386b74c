/* SPDX-License-Identifier: Apache-2.0 */
/* The kafka source's configuration: what it takes, and what it says of the rest. Nothing is connected to. */
#include "collector/source/kafka/source_kafka.h"

#include "collector/source/kinds/source_kinds.h"
#include "common/bus/kafka/kafka.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_source(const char *more, const char *expected)
{
	struct weir_json_document *document;
	struct weir_error error = {.text = "OK"};
	struct source_context context = {.once = true};
	struct source *source;
	char text[2048];
	snprintf(text, sizeof text, "{\"type\": \"kafka\"%s%s}", more[0] != '\0' ? ",\n " : "", more);
	if (weir_json_parse("weir.json", text, strlen(text), &document, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	struct weir_json root = weir_json_root(document);
	enum weir_status status = source_new(&root, &context, &source, &error);
	assert_int_equal(strcmp(expected, "OK") == 0 ? WEIR_OK : WEIR_INVALID, status);
	if (strstr(error.text, expected) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", expected, error.text);
	if (status == WEIR_OK) {
		struct source_chunk chunk;
		assert_true(source->ops->endless);
		assert_int_equal(WEIR_IO, source->ops->collect(source, NULL, &chunk, &error));
		source->ops->free(source);
	}
	weir_json_document_free(document);
}

#define WHERE "\"brokers\": \"127.0.0.1:1\", \"topics\": [\"app-logs\"]"

static void what_is_needed(void **state)
{
	(void)state;
	assert_source("", "brokers: is missing; give HOST:PORT");
	assert_source("\"brokers\": \"\", \"topics\": [\"app-logs\"]", "weir.json:2: brokers: must not be empty");
	assert_source("\"brokers\": \"127.0.0.1:1\"", "topics: is missing; list one or more topics");
	assert_source(WHERE, "OK");
	assert_source(WHERE ", \"group\": \"mine\", \"generation\": 2, \"start\": \"end\", \"line_max\": \"4KiB\", "
	                    "\"name\": \"shop\", \"format\": \"json\", \"kafka\": {\"fetch.wait.max.ms\": 100}",
	              "OK");
}

static void what_is_refused(void **state)
{
	(void)state;
	assert_source("\"brokers\": \"127.0.0.1:1\", \"topics\": []", "topics: must be a list of 1 to 256");
	assert_source("\"brokers\": \"127.0.0.1:1\", \"topics\": [\"a b\"]", "topics[0]: is not a topic name");
	assert_source("\"brokers\": \"127.0.0.1:1\", \"topics\": [\"a\", \"a\"]", "topics[1]: is listed twice");
	assert_source(WHERE ", \"group\": \"\"", "group: must have 1 to 200 bytes");
	assert_source(WHERE ", \"generation\": 0", "generation: must be a whole number from 1");
	assert_source(WHERE ", \"start\": \"middle\"", "start: must be one of");
	assert_source(WHERE ", \"topic\": \"a\"", "unknown key \"topic\"; did you mean \"topics\"?");
	assert_source(WHERE ", \"format\": {\"type\": \"delimited\", \"header\": true}",
	              "format.header: is for files: a topic has no header line");
}

static void properties_that_are_not_a_users(void **state)
{
	(void)state;
	static const char *const names[] = {
		"group.id",           "auto.offset.reset",
		"enable.auto.commit", "enable.auto.offset.store",
		"bootstrap.servers",  "partition.assignment.strategy",
		"log.queue",          "statistics.interval.ms",
		"enabled_events",
	};
	char more[256], expected[256];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(more, sizeof more, WHERE ",\n \"kafka\": {\"%s\": \"x\"}", names[i]);
		snprintf(expected, sizeof expected, "weir.json:3: kafka.%s: cannot be set here: ", names[i]);
		assert_source(more, expected);
	}
	assert_source(WHERE ", \"kafka\": {\"no.such\": 1}", "kafka.no.such: No such configuration property");
	assert_source(WHERE ", \"kafka\": [1]", "kafka: must be an object");
}

static void assert_apart(const char *more, const char *expected)
{
	struct weir_json_document *document;
	struct weir_error error = {.text = "OK"};
	char text[2048];
	snprintf(text, sizeof text, "[{\"type\": \"kafka\", " WHERE "},\n{\"type\": %s}]", more);
	if (weir_json_parse("weir.json", text, strlen(text), &document, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	struct weir_json root = weir_json_root(document);
	assert_int_equal(WEIR_OK, source_apart(&root, 0, &error));
	assert_int_equal(strcmp(expected, "OK") == 0 ? WEIR_OK : WEIR_INVALID, source_apart(&root, 1, &error));
	if (strstr(error.text, expected) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", expected, error.text);
	weir_json_document_free(document);
}

/* Their streams would have the same ids, whatever the groups are. */
static void two_sources_of_one_topic(void **state)
{
	(void)state;
	assert_apart("\"kafka\", " WHERE, "weir.json:2: [1].topics[0]: is already read by another source");
	assert_apart("\"kafka\", \"brokers\": \"127.0.0.1:1\", \"topics\": [\"a\", \"app-logs\"], \"group\": \"other\"",
	             "topics[1]: is already read by another source");
	assert_apart("\"kafka\", " WHERE ", \"generation\": 2", "OK");
	assert_apart("\"kafka\", \"brokers\": \"127.0.0.1:1\", \"topics\": [\"a\"]", "OK");
	assert_apart("\"kafka\", \"brokers\": \"127.0.0.1:2\", \"topics\": [\"app-logs\"]", "OK");
	assert_apart("\"stdin\"", "OK");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_needed),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(two_sources_of_one_topic),
		cmocka_unit_test(properties_that_are_not_a_users),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

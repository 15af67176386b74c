/* SPDX-License-Identifier: Apache-2.0 */
/* What a source has counted stays on the page when the source is opened anew. */
#include "collector/follow/inputs.h"
#include "collector/follow/low_water.h"
#include "collector/source/kinds/source_kinds.h"

#include "tests/unit/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *page_of(struct inputs *inputs)
{
	struct weir_text page = {0};
	inputs_metrics(inputs, &page);
	weir_text_append(&page, "", 1);
	return page.at;
}

static void assert_said(struct inputs *inputs, const char *line, bool there)
{
	char *page = page_of(inputs);
	if ((strstr(page, line) != NULL) != there)
		fail_msg("%s is %son the page:\n%s", line, there ? "not " : "", page);
	free(page);
}

/* As the collector does: its readers count, and the sources show what they have counted. */
static void count(struct inputs *inputs, uint64_t lines)
{
	struct source_stream **streams;
	struct record_reader *reader;
	struct weir_error error;
	for (size_t i = 0; i < inputs->source_count; i++) {
		assert_int_equal(inputs_streams(inputs, i, &streams), 1);
		assert_int_equal(inputs_reader(inputs, i, streams[0], &reader, &error), WEIR_OK);
		reader->counts.lines += lines;
	}
	low_water_publish_lines(inputs);
}

static void assert_stream(struct inputs *inputs, const char *directory, int i, int lines)
{
	char line[512];
	snprintf(line, sizeof line, "weir_source_lines_total{source=\"%s/%d.log\"} %d\n", directory, i, lines);
	assert_said(inputs, line, true);
}

static const struct source_ops *kind_of(const char *type)
{
	size_t count;
	const struct source_ops *const *kinds = source_kinds(&count);
	for (size_t i = 0; i < count; i++)
		if (strcmp(kinds[i]->type, type) == 0)
			return kinds[i];
	fail_msg("no kind %s", type);
	return NULL;
}

static void counts_of_a_source_that_is_opened_anew_stay(void **state)
{
	(void)state;
	static const struct weir_policy no_zones = {0};
	const struct source_context context = {.once = false};
	struct weir_config *config;
	struct inputs *inputs;
	struct weir_error error;
	char text[1024], *directory = scratch_new();
	for (int i = 0; i < 2; i++) {
		snprintf(text, sizeof text, "%s/%d.log", directory, i);
		FILE *file = fopen(text, "w");
		assert_non_null(file);
		fclose(file);
	}
	snprintf(text, sizeof text,
	         "{\"zones\": [{\"name\": \"all\", \"key\": [\"path\"], \"limits\": [{\"algorithm\": \"fixed_window\", "
	         "\"rate\": 1, \"window\": \"1m\"}]}], \"sources\": ["
	         "{\"type\": \"file\", \"path\": \"%s/0.log\", \"format\": \"combined\", \"follow\": true},"
	         "{\"type\": \"file\", \"path\": \"%s/1.log\", \"format\": \"combined\", \"follow\": true}]}",
	         directory, directory);
	if (weir_config_parse("config", text, strlen(text), &config, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	assert_int_equal(inputs_new(config, &no_zones, NULL, &context, NULL, &inputs, &error), WEIR_OK);
	assert_said(inputs, "weir_source_lost_bytes_total{source=\"(ended)\"} 0\n", true); /* before anything is lost */
	assert_said(inputs, "weir_source_errors_total{source=\"(ended)\"} 0\n", true);
	assert_said(inputs, "weir_source_lag_bytes{source=\"(ended)\"}", false);
	inputs->ended[0].kind =
		kind_of("nats"); /* streams that are found later: their first sample may be a loss already */
	assert_said(inputs, "weir_source_lost_messages_total{source=\"(ended)\"} 0\n", true);
	inputs->ended[0].kind = kind_of("file");
	count(inputs, 7);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(inputs_reopen(inputs, i, &error), WEIR_OK);
	for (int i = 0; i < 2; i++)
		assert_stream(inputs, directory, i, 7); /* before it is read again, too */
	count(inputs, 5);
	assert_int_equal(inputs_reopen(inputs, 0, &error), WEIR_OK);
	count(inputs, 1);
	for (int i = 0; i < 2; i++)
		assert_stream(inputs, directory, i, 13); /* each line once */
	assert_said(inputs, "weir_source_lines_total{source=\"(ended)\"} 0\n", true);
	inputs_free(inputs);
	weir_config_free(config);
	scratch_remove(directory);
	free(directory);
}

static size_t two_failed(struct source *source, struct source_status *statuses, size_t room)
{
	(void)source;
	for (size_t i = 0; i < 2 && i < room; i++)
		statuses[i] = (struct source_status){.lines = 100, .errors = 3 + i, .lost_records = 1, .own = {1, 2}};
	return 2;
}

static void counts_that_do_not_continue_are_summed(void **state)
{
	(void)state;
	const struct source_ops kind = {.status = two_failed};
	struct source source = {.ops = &kind};
	struct inputs_ended ended = {0};
	for (int i = 0; i < 2; i++)
		inputs_metrics_end(&source, &ended);
	assert_int_equal(ended.counts.errors, 14);
	assert_int_equal(ended.counts.lost_records, 4);
	assert_int_equal(ended.counts.own[1], 8);
	assert_int_equal(ended.counts.lines, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_of_a_source_that_is_opened_anew_stay),
		cmocka_unit_test(counts_that_do_not_continue_are_summed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

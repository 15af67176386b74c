/* SPDX-License-Identifier: Apache-2.0 */
/* What a source has counted stays on the page when the source is opened anew. */
#include "collector/follow/inputs.h"

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

static void count(struct inputs *inputs, uint64_t lines)
{
	struct source_stream **streams;
	for (size_t i = 0; i < inputs->source_count; i++) {
		assert_int_equal(inputs_streams(inputs, i, &streams), 1);
		atomic_store(&streams[0]->lines, lines);
	}
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
	assert_said(inputs, "weir_source_lag_bytes{source=\"(ended)\"}", false);
	count(inputs, 7);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(inputs_reopen(inputs, i, &error), WEIR_OK);
	assert_said(inputs, "weir_source_lines_total{source=\"(ended)\"} 14\n", true); /* one sample, of both */
	count(inputs, 5);
	assert_int_equal(inputs_reopen(inputs, 0, &error), WEIR_OK);
	assert_said(inputs, "weir_source_lines_total{source=\"(ended)\"} 19\n", true);
	inputs_free(inputs);
	weir_config_free(config);
	scratch_remove(directory);
	free(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_of_a_source_that_is_opened_anew_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

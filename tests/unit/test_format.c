/* SPDX-License-Identifier: Apache-2.0 */
/* Formats by name, the options that all share, and the words for what is wrong. */
#include "collector/format/format_kinds.h"
#include "common/base/text.h"
#include "tests/unit/format_fixture.h"

static void every_reason_has_words(void **state)
{
	(void)state;
	int kinds = 0;
	for (int reason = 0; reason < FORMAT_REASON_COUNT; reason++) {
		const char *text = format_reason_text((enum format_reason)reason);
		assert_true(text != NULL || reason > FORMAT_MALFORMED);
		kinds += text != NULL && reason >= FORMAT_MALFORMED;
		for (int other = 0; text != NULL && other < reason; other++) {
			const char *others = format_reason_text((enum format_reason)other);
			assert_true(others == NULL || strcmp(text, others) != 0);
		}
	}
	assert_true(kinds >= 8); /* the patterns, ready or not, share one */
	assert_string_equal(format_reason_text(FORMAT_TIME_RANGE), "time out of range");
	assert_string_equal(format_reason_text(FORMAT_LINE_TOO_LONG), "line too long");
}

static void a_format_is_a_name_or_an_object(void **state)
{
	(void)state;
	static const char *const good[] = {"\"combined\"",  "\"common\"", "\"json\"",
	                                   "\"delimited\"", "\"logfmt\"", "\"nginx_error\"",
	                                   "\"haproxy\"",   "\"sshd\"",   "{\"type\": \"json\"}"};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		struct fixture fixture;
		fixture_init(&fixture, good[i], "ip");
		assert_reason(&fixture, "", FORMAT_SKIP);
		fixture_deinit(&fixture);
	}
	assert_refused("\"combind\"", "combined");
	assert_refused("{\"type\": \"jsn\"}", "config:1: format.type");
	assert_refused("{}", "config:1: format.type: is missing: give one of \"combined\", ");
	assert_refused("{\"type\": 5}", "config:1: format.type: must be one of \"combined\", ");
	assert_refused("[]", "config:1: format: must be one of \"combined\", ");
	assert_refused("5", "config:1: format: must be one of \"combined\", ");
}

/* "`time` `unit` `year`": what a kind takes besides the options of all. */
static void put_options(struct weir_text *row, const struct format_kind *kind)
{
	static const struct {
		unsigned takes;
		const char *names;
	} shared[] = {{FORMAT_TAKES_TIME, " `time` `unit` `time_format`"},
	              {FORMAT_TAKES_YEAR, " `year`"},
	              {FORMAT_TAKES_FIELDS, " `fields`"}};
	for (const struct weir_json_rule *own = kind->options; own != NULL && own->name != NULL; own++)
		weir_text_printf(row, " `%s`", own->name);
	for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
		weir_text_puts(row, (kind->takes & shared[i].takes) != 0 ? shared[i].names : "");
}

static void read_page(const char *path, char *page, size_t bytes)
{
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_true(fread(page, 1, bytes - 1, file) < bytes - 1);
	fclose(file);
}

/* Of each kind the pages have the row that it says of itself, and its reason. */
static void the_page_has_every_kind(void **state)
{
	(void)state;
#define LISTED(name) &format_##name,
	static const struct format_kind *const kinds[] = {FORMAT_KINDS(LISTED)};
	static char page[1 << 16], log_page[1 << 16];
	read_page("collector/formats.md", page, sizeof page);
	read_page("common/specification/log.md", log_page, sizeof log_page);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct weir_text row = {0};
		char reason[64];
		weir_text_printf(&row, "| `%s` | %s |", kinds[i]->name, kinds[i]->meaning);
		put_options(&row, kinds[i]);
		weir_text_append(&row, " |\n", sizeof " |\n");
		snprintf(reason, sizeof reason, "`%s`", kinds[i]->malformed);
		if (strstr(page, row.at) == NULL)
			fail_msg("collector/formats.md lacks the row %s", row.at);
		if (strstr(log_page, reason) == NULL)
			fail_msg("common/specification/log.md lacks the reason %s", reason);
		weir_text_deinit(&row);
	}
}

static void options_are_checked(void **state)
{
	(void)state;
	assert_refused("{\"type\": \"json\", \"tme\": \"x\"}", "did you mean \"time\"");
	assert_refused("{\"type\": \"json\", \"time\": \"\"}", "name");
	assert_refused("{\"type\": \"json\", \"time\": 5}", "format.time");
	assert_refused("{\"type\": \"json\", \"unit\": \"min\"}", "format.unit");
	assert_refused("{\"type\": \"json\", \"time_zone\": \"Mars/Olympus\"}", "Mars/Olympus");
	assert_refused("{\"type\": \"json\", \"time_zone\": 5}", "format.time_zone");
	assert_refused("{\"type\": \"json\", \"fields\": []}", "format.fields");
	assert_refused("{\"type\": \"json\", \"fields\": {\"ip\": 5}}", "format.fields.ip");
	assert_refused("{\"type\": \"json\", \"fields\": {\"ip\": \"\"}}", "format.fields.ip");
	assert_refused("{\"type\": \"json\", \"cost\": true}", "format.cost");
	assert_refused("{\"type\": \"json\", \"client_ip\": true}", "format.client_ip");
}

static void a_format_called_by_its_program_is_suggested(void **state)
{
	(void)state;
	assert_refused("\"nginx\"", "not \"nginx\"; did you mean \"combined\"?");
	assert_refused("{\"type\": \"Apache\"}", "did you mean \"combined\"?");
	assert_refused("\"iiss\"", "did you mean \"w3c\"?");
	assert_refused("\"JSON\"", "did you mean \"json\"?");
}

static void fields_of_a_format_are_its_own(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"logfmt\", \"cost\": \"weight\"}", "ip");
	assert_int_equal(weir_field_table_find(&fixture.fields, weir_span_of("weight")), -1);
	assert_reason(&fixture, "time=1714564800 weight=9", FORMAT_OK);
	assert_int_equal(fixture.record.cost, 9);
	fixture_deinit(&fixture);
}

static void too_many_fields_are_refused(void **state)
{
	(void)state;
	struct weir_json_document *document;
	struct weir_error error;
	struct format *format;
	struct weir_field_table fields;
	static const char text[] = "{\"type\": \"logfmt\", \"cost\": \"weight\"}";
	assert_int_equal(weir_json_parse("config", text, sizeof text - 1, &document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	weir_field_table_init(&fields);
	for (int i = WEIR_FIELD_STANDARD_COUNT; i < WEIR_FIELD_MAX; i++) {
		char name[16];
		snprintf(name, sizeof name, "f%d", i);
		weir_field_table_want(&fields, name);
	}
	assert_int_equal(format_new(&root, &fields, &format, &error), WEIR_INVALID);
	assert_non_null(strstr(error.text, "cost"));
	weir_field_table_deinit(&fields);
	weir_json_document_free(document);
}

static void a_format_without_header_has_none(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"json\"", "ip");
	format_begin(fixture.format, (struct weir_span){0});
	assert_null(format_header(fixture.format).at);
	fixture_deinit(&fixture);
	format_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_page_has_every_kind),
		cmocka_unit_test(every_reason_has_words),
		cmocka_unit_test(a_format_is_a_name_or_an_object),
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(a_format_called_by_its_program_is_suggested),
		cmocka_unit_test(fields_of_a_format_are_its_own),
		cmocka_unit_test(too_many_fields_are_refused),
		cmocka_unit_test(a_format_without_header_has_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* combined and common: fields, and the quick way against the grammar on lines of every kind. */
#include "collector/format/combined_line.h"
#include "collector/record/time_text.h"
#include "tests/unit/format_fixture.h"

#define LINE "192.0.2.7 - - [17/May/2015:10:05:03 +0000] \"GET /a?b HTTP/1.1\" 200 1234 \"http://x/\" \"Agent (x)\""

static const char every_field[] = "ip ident user method path status bytes referer agent xff host other";

static void fields_of_a_line(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"combined\"", every_field);
	assert_reason(&fixture, LINE " \"198.51.100.1\" rest", FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1431857103000);
	assert_int_equal(fixture.record.cost, 1);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "ident", NULL);
	assert_field(&fixture, "user", NULL);
	assert_field(&fixture, "method", "GET");
	assert_field(&fixture, "path", "/a");
	assert_field(&fixture, "status", "200");
	assert_field(&fixture, "bytes", "1234");
	assert_field(&fixture, "referer", "http://x/");
	assert_field(&fixture, "agent", "Agent (x)");
	assert_field(&fixture, "xff", "198.51.100.1");
	assert_field(&fixture, "host", NULL);
	assert_field(&fixture, "other", NULL);
	fixture_deinit(&fixture);
}

static void a_dash_is_nothing_and_so_is_an_empty_value(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"common\"", every_field);
	assert_reason(&fixture, "- -  [17/May/2015:10:05:03 +0000] \"-\" 408 - \"-\" \"\" \"-\"", FORMAT_OK);
	static const char *const absent[] = {"ip", "ident", "user", "method", "path", "bytes", "referer", "agent", "xff"};
	for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
		assert_field(&fixture, absent[i], NULL);
	assert_field(&fixture, "status", "408");
	assert_reason(&fixture, "h - - [17/May/2015:10:05:03 +0000] \"- - HTTP/1.1\" 200 5", FORMAT_OK);
	assert_field(&fixture, "method", NULL);
	assert_field(&fixture, "path", NULL);
	fixture_deinit(&fixture);
}

static void each_kind_has_its_reason(void **state)
{
	(void)state;
	struct fixture combined, common;
	fixture_init(&combined, "{\"type\": \"combined\", \"cost\": \"bytes\"}", "ip");
	fixture_init(&common, "{\"type\": \"common\"}", "ip");
	assert_reason(&combined, "", FORMAT_SKIP);
	assert_malformed(&combined, " ", "not combined");
	assert_malformed(&common, " \"curl/7.54.0\"", "not common");
	assert_reason(&common, "h - - [-] \"GET / HTTP/1.1\" 200 5", FORMAT_NO_TIME);
	assert_reason(&common, "h - - [] \"GET / HTTP/1.1\" 200 5", FORMAT_NO_TIME);
	assert_reason(&common, "h - - [17/Foo/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5", FORMAT_BAD_TIME);
	assert_reason(&common, "h - - [31/Dec/1969:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5", FORMAT_TIME_RANGE);
	assert_reason(&common, "h - - [2015-05-17T10:05:03Z] \"GET / HTTP/1.1\" 200 5", FORMAT_OK);
	assert_reason(&combined, LINE, FORMAT_OK);
	assert_int_equal(combined.record.cost, 1234);
	assert_reason(&combined, "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 -", FORMAT_OK);
	assert_int_equal(combined.record.cost, 1);
	assert_reason(&combined, "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1099511627776", FORMAT_OK);
	assert_int_equal(combined.record.cost, WEIR_COST_MAX);
	assert_reason(&combined, "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1099511627777",
	              FORMAT_BAD_COST);
	assert_reason(&combined, "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 18446744073709551617",
	              FORMAT_BAD_COST);
	fixture_deinit(&combined);
	fixture_deinit(&common);
}

static void options(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture,
	             "{\"type\": \"combined\", \"time_zone\": \"Europe/Berlin\", "
	             "\"client_ip\": {\"header\": \"xff\", \"trusted\": [\"10.0.0.0/8\"]}}",
	             "ip");
	assert_reason(&fixture,
	              "10.0.0.1 - - [17/May/2015:12:05:03] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\" "
	              "\"203.0.113.9, 198.51.100.7, 10.1.2.3\"",
	              FORMAT_OK);
	assert_field(&fixture, "ip", "198.51.100.7");
	assert_int_equal(fixture.record.time_ms, 1431857103000);
	fixture_deinit(&fixture);
	assert_refused("{\"type\": \"combined\", \"fields\": {}}", "unknown key \"fields\"");
	assert_refused("{\"type\": \"combined\", \"time_zome\": \"UTC\"}", "did you mean \"time_zone\"");
}

/* What the whole grammar makes of a line. */
static enum format_reason parse_by_grammar(struct fixture *fixture, struct time_reader *time, struct record *record)
{
	static const enum combined_part parts[] = {COMBINED_IP,    COMBINED_IDENT,  COMBINED_USER,  COMBINED_METHOD,
	                                           COMBINED_PATH,  COMBINED_STATUS, COMBINED_BYTES, COMBINED_REFERER,
	                                           COMBINED_AGENT, COMBINED_XFF,    COMBINED_NONE,  COMBINED_NONE};
	char names[sizeof every_field], *rest = names;
	struct combined_line line;
	memcpy(names, every_field, sizeof names);
	if (!combined_line_split((struct weir_span){.at = fixture->line, .length = record->fields[0].length}, &line))
		return fixture->format->malformed;
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		int field = field_table_find(&fixture->fields, weir_span_of(strtok_r(rest, " ", &rest)));
		struct weir_span part = line.parts[parts[i]];
		bool absent = part.length == 0 || (part.length == 1 && *part.at == '-');
		record->fields[field] = absent ? (struct weir_span){0} : part;
	}
	struct weir_span text = line.parts[COMBINED_TIME];
	if (text.length == 1 && *text.at == '-')
		text.length = 0;
	return time_read(time, text, &record->time_ms);
}

static void the_quick_way_is_the_grammar(void **state)
{
	(void)state;
	static const char *const lines[] = {
		LINE,
		LINE " \"198.51.100.1\" rest",
		"2001:db8:85a3:8d3:1319:8a2e:370:7348 - bob [17/May/2015:10:05:03 +0000] \"POST /login HTTP/2.0\" 302 - \"-\" "
		"\"-\"",
		"h - - [17/May/2015:10:05:03 +0000] \"HEAD / HTTP/1.0\" 200 5",
		"a.very.long.host.name.example.com - - [18/May/2015:10:05:03 +0200] \"GET "
		"/a/path/that/is/longer/than/one/block/of/sixty/four/bytes/so/that/the/search/goes/on?with=a&query=too "
		"HTTP/1.1\" 200 123456789012345678 \"http://example.com/\" \"Mozilla/5.0 (X11; Linux x86_64)\"",
		"1.2.3.4 - frank lee [17/May/2015:10:05:03 +0000] \"OPTIONS * HTTP/1.1\" 204 0 \"-\" \"a \\\" b\"",
		"1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"GET /\\\"x HTTP/1.1\" 200 5 \"-\" \"-\"",
		"1.2.3.4 -  [17/May/2015:10:05:60 +0000] \"GET ?q HTTP/1.1\" 200 5 \"-\" \"-\"",
	};
	static const char alphabet[] = " \"\\[]-?:/+09GP.\t\0\x80";
	struct fixture fixture;
	struct time_zone *zone;
	struct time_reader time;
	struct weir_error error;
	fixture_init(&fixture, "\"combined\"", every_field);
	assert_int_equal(time_zone_new("UTC", &zone, &error), WEIR_OK);
	time_reader_init(&time, zone);
	uint64_t random = 5;
	int taken = 0;
	for (int round = 0; round < 300000; round++) {
		const char *line = lines[fixture_random(&random) % (sizeof lines / sizeof lines[0])];
		char text[512];
		size_t length = strlen(line);
		memcpy(text, line, length);
		length = fixture_mutate(&random, text, length, sizeof text, alphabet, sizeof alphabet - 1);
		if (length == 0)
			continue;
		enum format_reason reason = fixture_parse_bytes(&fixture, text, length);
		struct record expected = {.fields[0].length = (uint32_t)length};
		enum format_reason expected_reason = parse_by_grammar(&fixture, &time, &expected);
		if (reason != expected_reason)
			fail_msg("%s instead of %s: %.*s", format_reason_text(reason), format_reason_text(expected_reason),
			         (int)length, text);
		if (reason != FORMAT_OK)
			continue;
		taken++;
		assert_int_equal(fixture.record.time_ms, expected.time_ms);
		for (uint32_t i = 0; i < fixture.fields.count; i++) {
			if (fixture.record.fields[i].at != expected.fields[i].at ||
			    fixture.record.fields[i].length != expected.fields[i].length)
				fail_msg("%s differs: %.*s", fixture.fields.names[i], (int)length, text);
		}
	}
	assert_true(taken > 100000);
	time_reader_deinit(&time);
	fixture_deinit(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_of_a_line),
		cmocka_unit_test(a_dash_is_nothing_and_so_is_an_empty_value),
		cmocka_unit_test(each_kind_has_its_reason),
		cmocka_unit_test(options),
		cmocka_unit_test(the_quick_way_is_the_grammar),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

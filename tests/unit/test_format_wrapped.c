/* SPDX-License-Identifier: Apache-2.0 */
/* wrapped: lines within those of Docker, of CRI and of an envelope. */
#include "tests/unit/format_fixture.h"

#define COMBINED "192.0.2.7 - - [17/May/2024:10:05:03 +0000] \\\"GET /a HTTP/1.1\\\" 200 12"

static void docker(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"wrapped\", \"in\": \"docker\", \"message\": \"combined\"}", "ip path stream");
	assert_reason(&fixture, "{\"log\":\"" COMBINED "\\n\",\"stream\":\"stderr\",\"time\":\"2024-05-17T10:05:09Z\"}",
	              FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1715940303000); /* the line's own */
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "path", "/a");
	assert_field(&fixture, "stream", "stderr");
	/* A path is decoded once, not once in each format. */
	assert_reason(
		&fixture,
		"{\"log\":\"192.0.2.7 - - [17/May/2024:10:05:03 +0000] \\\"GET /api/x%252f..%252f..%252fhealth HTTP/1.1\\\" "
		"200 1\\n\",\"stream\":\"stderr\",\"time\":\"2024-05-17T10:05:09Z\"}",
		FORMAT_OK);
	assert_field(&fixture, "path", "/api/x%2f..%2f..%2fhealth");
	/* A long line in parts, with one of the other stream between them. */
	assert_reason(&fixture,
	              "{\"log\":\"192.0.2.8 - - [17/May/2024\",\"stream\":\"stdout\",\"time\":\"2024-05-17T10:05:09Z\"}",
	              FORMAT_SKIP);
	assert_reason(&fixture, "{\"log\":\"" COMBINED "\\n\",\"stream\":\"stderr\",\"time\":\"2024-05-17T10:05:09Z\"}",
	              FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_reason(
		&fixture,
		"{\"log\":\":10:05:03 +0000] \\\"GET /b HTTP/1.1\\\" 200 12\\n\",\"stream\":\"stdout\",\"time\":\"2024-05-17T10:05:09Z\"}",
		FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.8");
	assert_field(&fixture, "path", "/b");
	/* A log is rotated between parts, so another file begins with the rest: it is no line, whatever it looks like. */
	assert_reason(&fixture,
	              "{\"log\":\"192.0.2.8 - - [17/May/2024:10:05:03 +0000] \\\"GET /\",\"stream\":\"stdout\","
	              "\"time\":\"2024-05-17T10:05:09Z\"}",
	              FORMAT_SKIP);
	format_begin(fixture.format, (struct weir_span){0});
	assert_reason(&fixture, "{\"log\":\"" COMBINED "\\n\",\"stream\":\"stdout\",\"time\":\"2024-05-17T10:05:09Z\"}",
	              FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.8");
	assert_malformed(&fixture, "{\"log\":\"x\\n\",\"stream\":\"stdout\",\"time\":\"2024-05-17T10:05:09Z\"}",
	                 "not combined");
	assert_malformed(&fixture, "{\"stream\":\"stdout\"}", "not wrapped");
	assert_reason(&fixture, "{\"log\":null,\"stream\":\"stdout\",\"time\":\"2024-05-17T10:05:09Z\"}", FORMAT_LEFT_OUT);
	assert_reason(&fixture, "{\"log\":\"\\n\",\"stream\":\"stdout\",\"time\":\"2024-05-17T10:05:09Z\"}", FORMAT_SKIP);
	fixture_deinit(&fixture);
}

static void cri(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(
		&fixture,
		"{\"type\": \"wrapped\", \"in\": \"cri\", \"message\": {\"type\": \"pattern\", \"pattern\": \"ip=(?<ip>\\\\S+)\"}}",
		"ip stream");
	assert_reason(&fixture, "2024-05-17T10:05:03.133721Z stdout F ip=192.0.2.7 x", FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1715940303133); /* the outer one */
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "stream", "stdout");
	assert_reason(&fixture, "2024-05-17T10:05:03Z stdout P ip=192.0", FORMAT_SKIP);
	assert_reason(&fixture, "2024-05-17T10:05:03Z stdout P .2", FORMAT_SKIP);
	assert_reason(&fixture, "2024-05-17T10:05:04Z stdout F:x .8", FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.8");
	assert_reason(&fixture, "2024-05-17T10:05:04Z stdout F ip=192.0.2.9", FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.9");
	assert_malformed(&fixture, "2024-05-17T10:05:04Z stdin F x", "not wrapped");
	assert_malformed(&fixture, "192.0.2.7 - - [", "not wrapped");
	assert_reason(&fixture, "yesterday stdout F ip=192.0.2.9", FORMAT_BAD_TIME);

	/* What is joined has a bound. */
	static char part[300000];
	int head = snprintf(part, sizeof part, "2024-05-17T10:05:03Z stdout P ");
	memset(part + head, 'a', sizeof part - (size_t)head - 1);
	for (int i = 0; i < 20; i++)
		assert_reason(&fixture, part, FORMAT_SKIP);
	assert_reason(&fixture, "2024-05-17T10:05:04Z stdout F ip=192.0.2.9", FORMAT_LINE_TOO_LONG);
	assert_reason(&fixture, "2024-05-17T10:05:04Z stdout F ip=192.0.2.9", FORMAT_OK);
	fixture_deinit(&fixture);
}

static void parts_without_an_end(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"wrapped\", \"in\": \"cri\", \"message\": \"json\"}", "ip");
	assert_null(format_unfinished(fixture.format).at);
	assert_reason(&fixture, "2024-05-17T10:05:03Z stdout P a", FORMAT_SKIP);
	assert_reason(&fixture, "2024-05-17T10:05:03Z stderr P b", FORMAT_SKIP);
	assert_reason(&fixture, "2024-05-17T10:05:03Z stdout P c", FORMAT_SKIP);
	assert_span(format_unfinished(fixture.format), "ac", "the first");
	assert_span(format_unfinished(fixture.format), "b", "the second");
	assert_null(format_unfinished(fixture.format).at);
	/* A line that was joined is whole. */
	assert_reason(&fixture, "2024-05-17T10:05:03Z stdout P {\"ip\":", FORMAT_SKIP);
	assert_reason(&fixture, "2024-05-17T10:05:03Z stdout F \"192.0.2.7\"}", FORMAT_OK);
	assert_null(format_unfinished(fixture.format).at);
	fixture_deinit(&fixture);
	fixture_init(&fixture,
	             "{\"type\": \"json\", \"message\": {\"type\": \"wrapped\", \"in\": \"cri\", \"message\": \"json\"}}",
	             "ip");
	assert_reason(&fixture, "{\"msg\":\"2024-05-17T10:05:03Z stdout P a\"}", FORMAT_SKIP);
	assert_span(format_unfinished(fixture.format), "a", "within another");
	fixture_deinit(&fixture);
	fixture_init(&fixture, "\"combined\"", "ip");
	assert_null(format_unfinished(fixture.format).at);
	fixture_deinit(&fixture);
}

/* A restart begins before the first part of a line: the last one alone would pass for a line. */
static void reading_goes_on_before_the_parts(void **state)
{
	(void)state;
	struct fixture fixture, next;
	fixture_init(&fixture, "{\"type\": \"wrapped\", \"in\": \"cri\", \"message\": \"json\"}", "ip");
	assert_true(format_held(fixture.format) == UINT64_MAX);
	assert_reason(&fixture, "2024-05-17T10:05:03Z stdout P {\"ip\":", FORMAT_SKIP);
	format_note_part(fixture.format, 7);
	assert_int_equal(format_held(fixture.format), 7);
	assert_reason(&fixture, "2024-05-17T10:05:03Z stderr P {\"ip\":", FORMAT_SKIP);
	format_note_part(fixture.format, 9);
	assert_reason(&fixture, "2024-05-17T10:05:03Z stdout P ", FORMAT_SKIP);
	format_note_part(fixture.format, 11);
	assert_int_equal(format_held(fixture.format), 7);
	assert_reason(&fixture, "2024-05-17T10:05:03Z stdout F \"192.0.2.7\"}", FORMAT_OK);
	assert_int_equal(format_held(fixture.format), 9);
	/* What a file is looked at for its header adds nothing. */
	fixture.format->looks_back = true;
	assert_reason(&fixture, "2024-05-17T10:05:03Z stdout P x", FORMAT_SKIP);
	fixture.format->looks_back = false;
	format_note_part(fixture.format, 20);
	assert_int_equal(format_held(fixture.format), 9);
	/* A format that takes this one's place goes on with the parts. */
	fixture_init(&next, "{\"type\": \"wrapped\", \"in\": \"cri\", \"message\": \"json\"}", "ip");
	format_take_over(next.format, fixture.format);
	fixture_deinit(&fixture);
	assert_int_equal(format_held(next.format), 9);
	assert_reason(&next, "2024-05-17T10:05:03Z stderr F \"192.0.2.8\"}", FORMAT_OK);
	assert_field(&next, "ip", "192.0.2.8");
	assert_true(format_held(next.format) == UINT64_MAX);
	/* One whose end does not come is not waited for without a bound. */
	assert_reason(&next, "2024-05-17T10:05:03Z stderr P {\"ip\":", FORMAT_SKIP);
	format_note_part(next.format, 30);
	static char line[1 << 20];
	int head = snprintf(line, sizeof line, "2024-05-17T10:05:03Z stdout F {\"ip\":\"192.0.2.7\",\"x\":\"");
	memset(line + head, 'a', sizeof line - (size_t)head - 3);
	memcpy(line + sizeof line - 3, "\"}", 3);
	for (int i = 0; i < 16; i++) {
		assert_int_equal(format_held(next.format), 30);
		assert_reason(&next, line, FORMAT_OK);
	}
	assert_reason(&next, line, FORMAT_OK);
	assert_true(format_held(next.format) == UINT64_MAX);
	fixture_deinit(&next);
	/* Within another format, as well. */
	fixture_init(&fixture,
	             "{\"type\": \"syslog\", \"message\": {\"type\": \"wrapped\", \"in\": \"cri\", \"message\": \"json\"}}",
	             "ip");
	assert_reason(&fixture, "<34>1 2024-05-17T10:05:03Z h a 1 - - 2024-05-17T10:05:03Z stdout P a", FORMAT_SKIP);
	format_note_part(fixture.format, 5);
	assert_int_equal(format_held(fixture.format), 5);
	assert_span(format_unfinished(fixture.format), "a", "behind a head");
	fixture_deinit(&fixture);
}

/* A client makes a line longer than all that is joined: it counts by what stands at its ends. */
static void a_line_that_is_too_long_to_be_joined(void **state)
{
	(void)state;
	enum { PARTS = 90, PART = 16 << 10 };
	static char line[PART + 200];
	static const char *const formats[][3] = {
		{"\"json\"", "{\\\"ip\\\":\\\"192.0.2.7\\\",\\\"x\\\":\\\"", "\\\",\\\"status\\\":401}\\n"},
		{"\"combined\"", "192.0.2.7 - - [17/May/2024:10:05:03 +0000] \\\"GET /", "\\\" 401 5 \\\"-\\\" \\\"-\\\"\\n"},
		{"\"sshd\"", "Invalid user ", " from 192.0.2.7\\n"}};
	for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
		struct fixture fixture;
		char config[200];
		snprintf(config, sizeof config, "{\"type\": \"wrapped\", \"in\": \"docker\", \"message\": %s}", formats[i][0]);
		fixture_init(&fixture, config, "ip status");
		for (int part = 0; part < PARTS; part++) {
			int head =
				snprintf(line, sizeof line, "{\"time\":\"2024-05-17T10:05:03Z\",\"stream\":\"stdout\",\"log\":\"%s",
			             part == 0 ? formats[i][1] : "");
			memset(line + head, 'a', PART);
			memcpy(line + head + PART, "\"}", 3);
			assert_reason(&fixture, line, FORMAT_SKIP);
		}
		snprintf(line, sizeof line, "{\"time\":\"2024-05-17T10:05:03Z\",\"stream\":\"stdout\",\"log\":\"%s\"}",
		         formats[i][2]);
		if (i == 2) { /* it says who at its end */
			assert_reason(&fixture, line, FORMAT_LINE_TOO_LONG);
		} else {
			assert_reason(&fixture, line, FORMAT_OK);
			assert_true(fixture.record.cut);
			assert_field(&fixture, "ip", "192.0.2.7");
			assert_field(&fixture, "status", i == 0 ? "401" : NULL);
		}
		assert_reason(&fixture, "{\"time\":\"2024-05-17T10:05:03Z\",\"log\":\"x\\n\"}",
		              i == 2 ? FORMAT_OK : fixture.format->inner->malformed);
		fixture_deinit(&fixture);
	}
}

static void envelopes(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(
		&fixture,
		"{\"type\": \"wrapped\", \"in\": \"json\", \"line\": \"/event/original\", \"message\": \"combined\", \"fields\": {\"pod\": "
		"\"/kubernetes/pod\"}}",
		"ip pod");
	assert_reason(&fixture, "{\"event\":{\"original\":\"" COMBINED "\"},\"kubernetes\":{\"pod\":\"web-1\"}}",
	              FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "pod", "web-1");
	fixture_deinit(&fixture);
	fixture_init(&fixture, "{\"type\": \"json\", \"message\": \"combined\"}", "ip host");
	assert_reason(&fixture, "{\"host\":\"web\",\"message\":\"" COMBINED "\"}", FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "host", "web");
	assert_reason(&fixture, "{\"log\":\"" COMBINED "\\n\"}", FORMAT_OK);
	assert_malformed(&fixture, "{\"text\":\"x\"}", "not json");
	fixture_deinit(&fixture);
	/* Within a line within a line. */
	fixture_init(
		&fixture,
		"{\"type\": \"wrapped\", \"in\": \"cri\", \"message\": {\"type\": \"json\", \"message\": {\"type\": \"logfmt\"}}}",
		"ip");
	assert_reason(&fixture, "2024-05-17T10:05:03Z stdout F {\"msg\":\"ip=192.0.2.7 a=b\"}", FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_int_equal(fixture.record.time_ms, 1715940303000);
	fixture_deinit(&fixture);
}

static void options(void **state)
{
	(void)state;
	assert_refused("\"wrapped\"", "docker");
	assert_refused("{\"type\": \"wrapped\", \"in\": \"docker\"}", "message");
	assert_refused("{\"type\": \"wrapped\", \"in\": \"podman\", \"message\": \"json\"}", "cri");
	assert_refused("{\"type\": \"wrapped\", \"in\": \"cri\", \"line\": \"x\", \"message\": \"json\"}", "line");
	assert_refused("{\"type\": \"wrapped\", \"in\": \"cri\", \"cost\": \"x\", \"message\": \"json\"}", "message");
	assert_refused("{\"type\": \"json\", \"line\": \"x\"}", "message");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(docker),
		cmocka_unit_test(cri),
		cmocka_unit_test(parts_without_an_end),
		cmocka_unit_test(reading_goes_on_before_the_parts),
		cmocka_unit_test(a_line_that_is_too_long_to_be_joined),
		cmocka_unit_test(envelopes),
		cmocka_unit_test(options),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

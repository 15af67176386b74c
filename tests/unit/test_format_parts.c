/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that an engine, a shipper or journald has cut, in envelopes and in the journal: a part never passes for a line. */
#include "collector/cut/line_parts.h"
#include "common/base/text.h"
#include "tests/unit/format_fixture.h"

#define HEAD "203.0.113.66 - - [17/May/2024:10:05:03 +0000] \\\"GET /mine HTTP/1.1\\\" 200 5 \\\"-\\\" \\\""
/* What a stranger has the line go on with behind the cut. */
#define TAIL "198.51.100.1 - - [17/May/2024:10:05:03 +0000] \\\"GET /his HTTP/1.1\\\" 200 5 \\\"-\\\" \\\"-\\\""
#define OTHER "192.0.2.7 - - [17/May/2024:10:05:03 +0000] \\\"GET / HTTP/1.1\\\" 200 5 \\\"-\\\" \\\"-\\\""

static const char envelope[] = "{\"type\": \"json\", \"message\": \"combined\"}";
static const char journal[] = "{\"type\": \"journal\", \"message\": \"combined\"}";

static void init(struct fixture *fixture, const char *config)
{
	fixture_init(fixture, config, "ip path stream");
}

static void assert_ip(struct fixture *fixture, const char *line, const char *ip)
{
	assert_reason(fixture, line, FORMAT_OK);
	assert_field(fixture, "ip", ip);
}

/* ---- what each of them writes ---- */

#define FLUENTD(text, id, number, last)                                                                 \
	"{\"container_id\":\"c1\",\"source\":\"stdout\",\"log\":\"" text "\",\"partial_message\":\"true\"," \
	"\"partial_id\":\"" id "\",\"partial_ordinal\":\"" number "\",\"partial_last\":\"" last "\"}"

static void docker_to_fluentd(void **state)
{
	(void)state;
	struct fixture fixture;
	init(&fixture, envelope);
	assert_reason(&fixture, FLUENTD(HEAD, "a", "1", "false"), FORMAT_SKIP);
	/* Between its parts are lines of the same container's other stream, of others, and parts of others. */
	assert_ip(&fixture, "{\"container_id\":\"c1\",\"source\":\"stderr\",\"log\":\"" OTHER "\"}", "192.0.2.7");
	assert_reason(&fixture, FLUENTD("192.0.2.8 - - ", "b", "1", "false"), FORMAT_SKIP);
	assert_reason(&fixture, FLUENTD("x", "a", "2", "false"), FORMAT_SKIP);
	assert_ip(&fixture, FLUENTD("[17/May/2024:10:05:03 +0000] \\\"GET /b HTTP/1.1\\\" 200 5", "b", "2", "true"),
	          "192.0.2.8");
	assert_field(&fixture, "path", "/b");
	assert_ip(&fixture, FLUENTD(TAIL, "a", "3", "true"), "203.0.113.66");
	assert_field(&fixture, "path", "/mine");
	/* Values may be booleans and numbers; one part may be all. */
	assert_reason(&fixture,
	              "{\"log\":\"" HEAD "\",\"partial_message\":true,\"partial_id\":\"n\",\"partial_ordinal\":1,"
	              "\"partial_last\":false}",
	              FORMAT_SKIP);
	assert_ip(&fixture,
	          "{\"log\":\"" TAIL "\",\"partial_message\":true,\"partial_id\":\"n\",\"partial_ordinal\":2,"
	          "\"partial_last\":true}",
	          "203.0.113.66");
	assert_ip(&fixture, FLUENTD(OTHER, "whole", "1", "true"), "192.0.2.7");
	assert_null(format_unfinished(fixture.format).at);
	fixture_deinit(&fixture);
}

static void numbers_that_do_not_follow_make_no_line(void **state)
{
	(void)state;
	struct fixture fixture;
	init(&fixture, envelope);
	/* Without the first, once at its end. */
	assert_reason(&fixture, FLUENTD("x", "a", "2", "false"), FORMAT_SKIP);
	assert_reason(&fixture, FLUENTD(TAIL, "a", "3", "true"), FORMAT_LINE_TOO_LONG);
	assert_reason(&fixture, FLUENTD(TAIL, "a", "3", "true"), FORMAT_LINE_TOO_LONG);
	/* Without one in the middle; one that comes twice; one without a number. */
	static const char *const middles[] = {FLUENTD("x", "a", "3", "false"), FLUENTD("x", "a", "1", "false"),
	                                      FLUENTD("x", "a", "", "false"), FLUENTD("x", "a", "-2", "false")};
	for (size_t i = 0; i < sizeof middles / sizeof middles[0]; i++) {
		assert_reason(&fixture, FLUENTD(HEAD, "a", "1", "false"), FORMAT_SKIP);
		assert_reason(&fixture, middles[i], FORMAT_SKIP);
		assert_reason(&fixture, FLUENTD("x", "a", "2", "false"), FORMAT_SKIP);
		assert_reason(&fixture, FLUENTD(TAIL, "a", "3", "true"), FORMAT_LINE_TOO_LONG);
	}
	/* A last part of which nothing says that it is not the first is none. */
	assert_reason(&fixture, FLUENTD(TAIL, "a", "", "true"), FORMAT_LINE_TOO_LONG);
	assert_reason(&fixture, "{\"log\":\"" TAIL "\",\"CONTAINER_PARTIAL_ID\":\"a\"}", FORMAT_LINE_TOO_LONG);
	/* An end that does not come is told at the end of all. */
	assert_reason(&fixture, FLUENTD("abc", "a", "1", "false"), FORMAT_SKIP);
	assert_span(format_unfinished(fixture.format), "abc", "unfinished");
	assert_null(format_unfinished(fixture.format).at);
	fixture_deinit(&fixture);
}

/* Engines before 19.03, and podman: the last part has no mark. */
static void parts_without_numbers_belong_to_the_stream_of_a_container(void **state)
{
	(void)state;
	struct fixture fixture;
	init(&fixture, envelope);
	assert_reason(&fixture,
	              "{\"container_id\":\"c1\",\"source\":\"stdout\",\"log\":\"" HEAD "\",\"partial_message\":\"true\"}",
	              FORMAT_SKIP);
	assert_ip(&fixture, "{\"container_id\":\"c2\",\"source\":\"stdout\",\"log\":\"" OTHER "\"}", "192.0.2.7");
	assert_ip(&fixture, "{\"container_id\":\"c1\",\"source\":\"stderr\",\"log\":\"" OTHER "\"}", "192.0.2.7");
	assert_ip(&fixture, "{\"log\":\"" OTHER "\"}", "192.0.2.7");
	assert_ip(&fixture, "{\"container_id\":\"c1\",\"source\":\"stdout\",\"log\":\"" TAIL "\"}", "203.0.113.66");
	assert_ip(&fixture, "{\"container_id\":\"c1\",\"source\":\"stdout\",\"log\":\"" OTHER "\"}", "192.0.2.7");
	/* Fluent Bit's input of the journal has the journal's names. */
	assert_reason(&fixture, "{\"_STREAM_ID\":\"s\",\"MESSAGE\":\"" HEAD "\",\"_LINE_BREAK\":\"line-max\"}",
	              FORMAT_SKIP);
	assert_ip(&fixture, "{\"_STREAM_ID\":\"t\",\"MESSAGE\":\"" OTHER "\"}", "192.0.2.7");
	assert_ip(&fixture, "{\"_STREAM_ID\":\"s\",\"MESSAGE\":\"" TAIL "\"}", "203.0.113.66");
	fixture_deinit(&fixture);
}

/* CRI's lines as parsers of Fluent Bit and Fluentd take them apart, with what names their container. */
static void cri_taken_apart(void **state)
{
	(void)state;
#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
	static const char *const names[][2] = {
		{"\"container_id\":\"a\"", "\"container_id\":\"b\""},
		{"\"kubernetes\":{\"docker_id\":\"a\",\"pod_name\":\"x\"}",
	     "\"kubernetes\":{\"docker_id\":\"b\",\"pod_name\":\"x\"}"},
		{"\"kubernetes\":{\"container_id\":\"a\"}", "\"kubernetes\":{\"container_id\":\"b\"}"},
		{"\"docker\":{\"container_id\":\"a\"}", "\"docker\":{\"container_id\":\"b\"}"},
		{"\"kubernetes\":{\"pod_name\":\"x\",\"container_name\":\"a\"}",
	     "\"kubernetes\":{\"pod_name\":\"x\",\"container_name\":\"b\"}"},
		{"\"kubernetes\":{\"pod_name\":\"x\",\"namespace_name\":\"a\",\"container_name\":\"n\"}",
	     "\"kubernetes\":{\"pod_name\":\"x\",\"namespace_name\":\"b\",\"container_name\":\"n\"}"},
		{"\"tag\":\"kube.var.log.containers.x-" ID "a.log\"", "\"tag\":\"kube.var.log.containers.x-" ID "b.log\""},
		{"\"filename\":\"/var/log/containers/x-" ID "a.log\"", "\"filename\":\"/var/log/containers/x-" ID "b.log\""},
	};
	static const char *const marks[] = {"logtag", "_p"};
	struct fixture fixture;
	init(&fixture, envelope);
	for (size_t i = 0; i < 2 * sizeof names / sizeof names[0]; i++) {
		const char *mark = marks[i % 2], *own = names[i / 2][0], *other = names[i / 2][1];
		char line[1024];
		snprintf(line, sizeof line, "{%s,\"stream\":\"stdout\",\"%s\":\"P\",\"log\":\"" HEAD "\"}", own, mark);
		assert_reason(&fixture, line, FORMAT_SKIP);
		snprintf(line, sizeof line, "{%s,\"stream\":\"stdout\",\"%s\":\"F\",\"log\":\"" OTHER "\"}", other, mark);
		assert_ip(&fixture, line, "192.0.2.7");
		snprintf(line, sizeof line, "{%s,\"stream\":\"stderr\",\"%s\":\"F\",\"log\":\"" OTHER "\"}", own, mark);
		assert_ip(&fixture, line, "192.0.2.7");
		snprintf(line, sizeof line, "{%s,\"stream\":\"stdout\",\"%s\":\"P:x\",\"log\":\"y\"}", own, mark);
		assert_reason(&fixture, line, FORMAT_SKIP);
		snprintf(line, sizeof line, "{%s,\"stream\":\"stdout\",\"%s\":\"F\",\"log\":\"" TAIL "\"}", own, mark);
		assert_ip(&fixture, line, "203.0.113.66");
		assert_ip(&fixture, line, "198.51.100.1"); /* a line of its own, this time */
	}
	/* What another's "_p" says is nothing. */
	assert_ip(&fixture, "{\"_p\":\"Portland\",\"log\":\"" OTHER "\"}", "192.0.2.7");
	fixture_deinit(&fixture);
}

/* Nothing says whose part it is: until its end must have come, no line that might be it is believed. */
static void parts_of_nobody_make_no_line(void **state)
{
	(void)state;
	struct fixture fixture;
	init(&fixture, envelope);
	assert_ip(&fixture, "{\"logtag\":\"F\",\"log\":\"" OTHER "\"}", "192.0.2.7");
	static const char *const parts[] = {"{\"logtag\":\"P\",\"log\":\"" HEAD "\"}",
	                                    "{\"logtag\":\"P\",\"tag\":\"kube.x.log\",\"log\":\"" HEAD "\"}",
	                                    "{\"partial_message\":\"true\",\"log\":\"" HEAD "\"}"};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		assert_reason(&fixture, parts[i], FORMAT_AMBIGUOUS);
		assert_reason(&fixture, "{\"logtag\":\"F\",\"log\":\"" TAIL "\"}", FORMAT_AMBIGUOUS);
		assert_ip(&fixture, "{\"logtag\":\"F\",\"container_id\":\"c\",\"log\":\"" OTHER "\"}", "192.0.2.7");
	}
	static char line[LINE_PARTS_UNNAMED_BYTES / 16];
	int head = snprintf(line, sizeof line, "{\"container_id\":\"c\",\"log\":\"" OTHER "\",\"x\":\"");
	memset(line + head, 'a', sizeof line - (size_t)head - 3);
	memcpy(line + sizeof line - 3, "\"}", 3);
	for (int i = 0; i < 17; i++) {
		if (i < 16)
			assert_reason(&fixture, "{\"logtag\":\"F\",\"log\":\"" TAIL "\"}", FORMAT_AMBIGUOUS);
		assert_ip(&fixture, line, "192.0.2.7");
	}
	assert_ip(&fixture, "{\"logtag\":\"F\",\"log\":\"" OTHER "\"}", "192.0.2.7");
	fixture_deinit(&fixture);
}

#define ENTRY(more, text) "{\"__REALTIME_TIMESTAMP\":\"1715940309000000\"," more ",\"MESSAGE\":\"" text "\"}"

static void the_journal(void **state)
{
	(void)state;
	struct fixture fixture;
	init(&fixture, journal);
	/* Of Docker's driver, with numbers. */
#define NUMBERED(number, more) \
	"\"CONTAINER_PARTIAL_ID\":\"i\",\"CONTAINER_PARTIAL_ORDINAL\":\"" number "\",\"CONTAINER_PARTIAL_LAST\":" more
	assert_reason(&fixture, ENTRY(NUMBERED("1", "\"false\",\"CONTAINER_PARTIAL_MESSAGE\":\"true\""), HEAD),
	              FORMAT_SKIP);
	assert_ip(&fixture, ENTRY("\"CONTAINER_ID\":\"c\"", OTHER), "192.0.2.7");
	assert_ip(&fixture, ENTRY(NUMBERED("2", "\"true\""), TAIL), "203.0.113.66");
	assert_reason(&fixture, ENTRY(NUMBERED("2", "\"true\""), TAIL), FORMAT_LINE_TOO_LONG);
	/* Without numbers: by the container and its stream, which is the priority. */
#define OLD "\"CONTAINER_ID_FULL\":\"c\",\"PRIORITY\":\"6\""
	assert_reason(&fixture, ENTRY(OLD ",\"CONTAINER_PARTIAL_MESSAGE\":\"true\"", HEAD), FORMAT_SKIP);
	assert_ip(&fixture, ENTRY("\"CONTAINER_ID_FULL\":\"c\",\"PRIORITY\":\"3\"", OTHER), "192.0.2.7");
	assert_ip(&fixture, ENTRY("\"_SYSTEMD_UNIT\":\"ssh.service\"", OTHER), "192.0.2.7");
	assert_ip(&fixture, ENTRY(OLD, TAIL), "203.0.113.66");
	/* journald's own cuts. */
	assert_reason(&fixture, ENTRY("\"_STREAM_ID\":\"s\",\"_LINE_BREAK\":\"line-max\"", HEAD), FORMAT_SKIP);
	assert_ip(&fixture, ENTRY("\"_STREAM_ID\":\"t\"", OTHER), "192.0.2.7");
	assert_reason(&fixture, ENTRY("\"_STREAM_ID\":\"s\",\"_LINE_BREAK\":\"pid-change\"", "x"), FORMAT_SKIP);
	assert_ip(&fixture, ENTRY("\"_STREAM_ID\":\"s\",\"_LINE_BREAK\":\"eof\"", TAIL), "203.0.113.66");
	assert_ip(&fixture, ENTRY("\"_STREAM_ID\":\"s\"", OTHER), "192.0.2.7");
	fixture_deinit(&fixture);
}

/* A part whose text its writer left out: what the others are joined to would be another line. */
static void parts_that_were_left_out(void **state)
{
	(void)state;
#define BARE(more) "{\"__REALTIME_TIMESTAMP\":\"1715940309000000\"," more "}"
#define PART "\"_STREAM_ID\":\"s\",\"_LINE_BREAK\":\"line-max\""
	static const char *const configs[] = {journal, envelope};
	for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
		struct fixture fixture;
		init(&fixture, configs[i]);
		assert_reason(&fixture, ENTRY(PART, HEAD), FORMAT_SKIP);
		assert_reason(&fixture, BARE(PART ",\"MESSAGE\":null"), FORMAT_LEFT_OUT);
		assert_reason(&fixture, BARE(PART ",\"MESSAGE\":null"), FORMAT_SKIP); /* the line is counted once */
		assert_reason(&fixture, ENTRY("\"_STREAM_ID\":\"s\"", TAIL), FORMAT_SKIP);
		/* The first. */
		assert_reason(&fixture, BARE(PART ",\"MESSAGE\":null"), FORMAT_LEFT_OUT);
		format_note_part(fixture.format, 7);
		assert_int_equal(format_held(fixture.format), 7); /* a restart must not take the rest for a line either */
		assert_reason(&fixture, ENTRY("\"_STREAM_ID\":\"s\"", TAIL), FORMAT_SKIP);
		/* The last. */
		assert_reason(&fixture, ENTRY(PART, HEAD), FORMAT_SKIP);
		assert_reason(&fixture, BARE("\"_STREAM_ID\":\"s\",\"MESSAGE\":null"), FORMAT_LEFT_OUT);
		assert_ip(&fixture, ENTRY("\"_STREAM_ID\":\"s\"", OTHER), "192.0.2.7");
		/* The end does not come. */
		assert_reason(&fixture, BARE(PART ",\"MESSAGE\":null"), FORMAT_LEFT_OUT);
		assert_null(format_unfinished(fixture.format).at);
		/* Where there is no room for one more line, another is given up and counted with it. */
		for (int line = 0; line < LINE_PARTS_LINES_MAX; line++) {
			char part[256];
			snprintf(part, sizeof part, ENTRY("\"_STREAM_ID\":\"%d\",\"_LINE_BREAK\":\"line-max\"", HEAD), line);
			assert_reason(&fixture, part, FORMAT_SKIP);
		}
		assert_reason(&fixture, BARE(PART ",\"MESSAGE\":null"), FORMAT_LINE_TOO_LONG);
		assert_reason(&fixture, ENTRY("\"_STREAM_ID\":\"s\"", TAIL), FORMAT_LINE_TOO_LONG);
		fixture_deinit(&fixture);
	}
}

/* Of the members that may hold the line an empty one does not hide another. */
static void the_member_with_a_line(void **state)
{
	(void)state;
	struct fixture fixture;
	init(&fixture, envelope);
	assert_ip(&fixture, "{\"message\":\"\",\"log\":\"" OTHER "\"}", "192.0.2.7");
	assert_ip(&fixture, "{\"message\":null,\"MESSAGE\":\"" OTHER "\"}", "192.0.2.7");
	assert_reason(&fixture, "{\"message\":\"\",\"log\":null}", FORMAT_SKIP);
	assert_reason(&fixture, "{\"message\":[97,98,10],\"time\":\"2024-05-17T10:05:09Z\"}",
	              fixture_parse(&fixture, "{\"message\":\"ab\"}"));
	assert_malformed(&fixture, "{\"message\":[\"a\",\"b\"]}", "not json");
	fixture_deinit(&fixture);
}

/* ---- all of them, at random ---- */

enum { CONTAINERS = 4, SPELLINGS = 7, PARTS = 6, LINE_BYTES = 512 };

/* A line on its way: what is still to be sent of it. */
struct sent {
	char text[LINE_BYTES];
	size_t length, at;
	uint32_t number, id;
	bool open, lacks; /* a part was lost, or came twice */
};

/* A part as one of those who cut lines writes it. */
static void write_part(struct weir_text *out, int spelling, int container, const struct sent *sent, size_t end)
{
	bool last = end == sent->length, cut = !last || sent->number > 1;
	struct weir_span text = {.at = sent->text + sent->at, .length = (uint32_t)(end - sent->at)};
	const char *truth = last ? "true" : "false";
	weir_text_clear(out);
	weir_text_printf(out, "{\"__REALTIME_TIMESTAMP\":\"1715940309000000\",\"%s\":", spelling < 4 ? "log" : "MESSAGE");
	weir_text_json(out, text);
	if (spelling == 0 && cut)
		weir_text_printf(
			out,
			",\"partial_message\":\"true\",\"partial_id\":\"%u\",\"partial_ordinal\":\"%u\",\"partial_last\":\"%s\"",
			sent->id, sent->number, truth);
	if (spelling == 0 || spelling == 1)
		weir_text_printf(out, ",\"container_id\":\"%d\",\"source\":\"stdout\"", container);
	if (spelling == 1 && !last)
		weir_text_printf(out, ",\"partial_message\":true");
	if (spelling == 2)
		weir_text_printf(out, ",\"logtag\":\"%s\",\"stream\":\"stdout\",\"kubernetes\":{\"docker_id\":\"%d\"}",
		                 last ? "F" : "P", container);
	if (spelling == 3)
		weir_text_printf(out, ",\"_p\":\"%s\",\"kubernetes\":{\"pod_name\":\"p\",\"container_name\":\"%d\"}",
		                 last ? "F" : "P", container);
	if (spelling == 4 && cut)
		weir_text_printf(
			out,
			",\"CONTAINER_PARTIAL_ID\":\"%u\",\"CONTAINER_PARTIAL_ORDINAL\":\"%u\",\"CONTAINER_PARTIAL_LAST\":\"%s\"",
			sent->id, sent->number, truth);
	if ((spelling == 4 || spelling == 5) && !last)
		weir_text_printf(out, ",\"CONTAINER_PARTIAL_MESSAGE\":\"true\"");
	if (spelling == 5)
		weir_text_printf(out, ",\"CONTAINER_ID_FULL\":\"%d\",\"PRIORITY\":\"6\"", container);
	if (spelling == 6)
		weir_text_printf(out, ",\"_STREAM_ID\":\"%d\"%s", container, last ? "" : ",\"_LINE_BREAK\":\"line-max\"");
	weir_text_puts(out, "}");
}

/* A new line of a container, of which each byte behind the head may look like the beginning of another. */
static void begin_line(uint64_t *random, struct sent *sent, uint32_t id)
{
	*sent = (struct sent){.open = true, .id = id};
	int length = snprintf(sent->text, sizeof sent->text,
	                      "192.0.2.%d - - [17/May/2024:10:05:%02d +0000] \"GET /%u HTTP/1.1\" 200 5 \"-\" \"",
	                      (int)(fixture_random(random) % 200), (int)(fixture_random(random) % 60), id);
	for (uint64_t i = fixture_random(random) % 3; i > 0; i--)
		length += snprintf(sent->text + length, sizeof sent->text - (size_t)length,
		                   "198.51.100.1 - - [17/May/2024:10:05:03 +0000] \"GET /his HTTP/1.1\" 200 5 \"-\" \"");
	sent->length = (size_t)length + (size_t)snprintf(sent->text + length, sizeof sent->text - (size_t)length, "-\"");
}

/* The record of the whole line is what the parts give. */
static void assert_same(struct fixture *fixture, struct fixture *oracle, const struct sent *sent, int spelling)
{
	struct weir_text line = {0};
	weir_text_printf(&line, "{\"__REALTIME_TIMESTAMP\":\"1715940309000000\",\"%s\":", spelling < 4 ? "log" : "MESSAGE");
	weir_text_json(&line, (struct weir_span){.at = sent->text, .length = (uint32_t)sent->length});
	weir_text_puts(&line, "}");
	assert_int_equal(fixture_parse_bytes(oracle, line.at, line.length), FORMAT_OK);
	assert_int_equal(fixture->record.time_ms, oracle->record.time_ms);
	assert_true(weir_span_equal(fixture_field(fixture, "ip"), fixture_field(oracle, "ip")));
	assert_true(weir_span_equal(fixture_field(fixture, "path"), fixture_field(oracle, "path")));
	weir_text_deinit(&line);
}

/* Sends a part of a container's line. @return whether a record came of it */
static bool send(struct fixture *fixture, struct fixture *oracle, uint64_t *random, struct sent *sent, int spelling,
                 int container, bool faults)
{
	struct weir_text part = {0};
	size_t left = sent->length - sent->at, end = sent->length;
	if (sent->number < PARTS && fixture_random(random) % 3 > 0)
		end = sent->at + fixture_random(random) % left;
	sent->number++;
	write_part(&part, spelling, container, sent, end);
	int times =
		faults && (sent->number > 1 || end < sent->length) ? (int[]){0, 2, 1, 1, 1, 1}[fixture_random(random) % 6] : 1;
	bool record = false, last = end == sent->length;
	for (int i = 0; i < times; i++) {
		enum format_reason reason = fixture_parse_bytes(fixture, part.at, part.length), expected = FORMAT_SKIP;
		if (last)
			expected = sent->lacks || i > 0 ? FORMAT_LINE_TOO_LONG : FORMAT_OK;
		if (!last && faults && reason == FORMAT_LINE_TOO_LONG)
			expected = reason; /* of those whose ends are lost, the oldest had to go */
		if (reason != expected)
			fail_msg("spelling %d: %.*s: %s", spelling, (int)part.length, part.at, format_reason_text(reason));
		if (reason == FORMAT_OK)
			assert_same(fixture, oracle, sent, spelling);
		record |= reason == FORMAT_OK;
	}
	sent->lacks |= last ? times == 0 : times != 1;
	sent->at = end;
	sent->open = !last;
	weir_text_deinit(&part);
	return record;
}

static void run(int spelling, bool faults)
{
	struct fixture fixture, oracle;
	struct sent lines[CONTAINERS] = {0};
	uint64_t random = (uint64_t)spelling * 2 + faults + 1;
	uint32_t begun = 0, records = 0, whole = 0;
	bool in_journal = spelling >= 4;
	init(&fixture, in_journal ? journal : envelope);
	init(&oracle, in_journal ? journal : envelope);
	for (int i = 0; i < 20000; i++) {
		int container = (int)(fixture_random(&random) % CONTAINERS);
		struct sent *sent = &lines[container];
		if (!sent->open)
			begin_line(&random, sent, ++begun);
		records += send(&fixture, &oracle, &random, sent, spelling, container, faults);
		whole += !sent->open && !sent->lacks;
	}
	assert_int_equal(records, whole);
	assert_true(whole > 1000);
	fixture_deinit(&fixture);
	fixture_deinit(&oracle);
}

static void cut_anywhere_they_give_the_record_of_the_whole(void **state)
{
	(void)state;
	for (int spelling = 0; spelling < SPELLINGS; spelling++)
		run(spelling, false);
}

/* Lost and repeated parts: only numbers show them. */
static void what_lacks_a_part_gives_none(void **state)
{
	(void)state;
	run(0, true);
	run(4, true);
}

/* ---- what goes on ---- */

static void parts_outlast_policies_and_are_read_again_after_a_restart(void **state)
{
	(void)state;
	static const char *const configs[] = {envelope, journal};
	static const char first[] = ENTRY("\"_STREAM_ID\":\"s\",\"_LINE_BREAK\":\"line-max\"", HEAD);
	static const char last[] = ENTRY("\"_STREAM_ID\":\"s\"", TAIL);
	for (int i = 0; i < 2; i++) {
		struct fixture fixture, next;
		init(&fixture, configs[i]);
		init(&next, configs[i]);
		assert_true(format_held(fixture.format) == UINT64_MAX);
		assert_reason(&fixture, first, FORMAT_SKIP);
		format_note_part(fixture.format, 7);
		assert_int_equal(format_held(fixture.format), 7);
		format_begin(fixture.format, (struct weir_span){0}); /* another file */
		format_take_over(next.format, fixture.format);
		fixture_deinit(&fixture);
		assert_int_equal(format_held(next.format), 7);
		assert_ip(&next, last, "203.0.113.66");
		assert_true(format_held(next.format) == UINT64_MAX);
		/* While a header is looked for, nothing is kept. */
		next.format->looks_back = true;
		assert_reason(&next, first, FORMAT_SKIP);
		assert_ip(&next, ENTRY("\"_STREAM_ID\":\"t\"", OTHER), "192.0.2.7");
		next.format->looks_back = false;
		assert_null(format_unfinished(next.format).at);
		assert_reason(&next, first, FORMAT_SKIP);
		assert_true(format_unfinished(next.format).length > 0);
		assert_string_equal(format_reason_text(next.format->malformed), i == 0 ? "not json" : "not journal");
		assert_null(format_unfinished(next.format).at);
		fixture_deinit(&next);
	}
	/* The inner of two. */
	struct fixture fixture;
	fixture_init(&fixture,
	             "{\"type\": \"json\", \"message\": {\"type\": \"wrapped\", \"in\": \"cri\", \"message\": \"json\"}}",
	             "ip");
	assert_reason(&fixture, "{\"msg\":\"2024-05-17T10:05:03Z stdout P a\"}", FORMAT_SKIP);
	format_note_part(fixture.format, 9);
	assert_int_equal(format_held(fixture.format), 9);
	fixture_deinit(&fixture);
}

/* ---- bounds ---- */

static struct line_part part_of(uint64_t key, uint32_t number, bool more)
{
	return (struct line_part){.key.low = key, .named = true, .number = number, .more = more, .continues = number > 1};
}

static enum format_reason join(struct line_parts *parts, struct line_part part, uint32_t length)
{
	static char bytes[1 << 20];
	struct weir_span text = {.at = bytes, .length = length};
	line_parts_next(parts, length);
	return line_parts_join(parts, &part, &text);
}

static void what_is_kept_has_a_bound(void **state)
{
	(void)state;
	struct line_parts parts;
	line_parts_init(&parts);
	/* Of bytes: the oldest are given up, and none of them is a line. */
	for (uint64_t key = 0; key < 20; key++)
		assert_int_equal(join(&parts, part_of(key, 0, true), 1 << 20), FORMAT_SKIP);
	assert_true(parts.gathered <= LINE_PARTS_BYTES_MAX);
	for (uint64_t key = 0; key < 20; key++)
		assert_int_equal(join(&parts, part_of(key, 0, false), 0), key < 4 ? FORMAT_LINE_TOO_LONG : FORMAT_OK);
	assert_int_equal(parts.gathered, 0);
	/* Of one line. */
	for (int i = 0; i < 30; i++)
		assert_int_equal(join(&parts, part_of(1, 0, true), 1 << 20), FORMAT_SKIP);
	assert_true(parts.gathered <= (1 << 20) + 3 * LINE_PARTS_TAIL_BYTES);
	assert_int_equal(join(&parts, part_of(1, 0, false), 0), FORMAT_OK);
	assert_int_equal(parts.tail.length, LINE_PARTS_TAIL_BYTES);
	assert_int_equal(parts.gathered, 0);
	assert_int_equal(join(&parts, part_of(1, 0, false), 1), FORMAT_OK);
	assert_null(parts.tail.at);
	/* Of lines: first those whose parts are numbered, as these show themselves. */
	assert_int_equal(join(&parts, part_of(1, 0, true), 1), FORMAT_SKIP);
	for (uint64_t key = 1000; key < 1000 + LINE_PARTS_LINES_MAX - 1; key++)
		assert_int_equal(join(&parts, part_of(key, 1, true), 1), FORMAT_SKIP);
	assert_int_equal(join(&parts, part_of(2, 0, true), 1), FORMAT_LINE_TOO_LONG);
	assert_int_equal(join(&parts, part_of(1000, 2, false), 1), FORMAT_LINE_TOO_LONG);
	assert_int_equal(join(&parts, part_of(1, 0, false), 1), FORMAT_OK);
	assert_int_equal(join(&parts, part_of(2, 0, false), 1), FORMAT_OK);
	assert_int_equal(join(&parts, part_of(1001, 2, false), 1), FORMAT_OK);
	line_parts_deinit(&parts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(docker_to_fluentd),
		cmocka_unit_test(numbers_that_do_not_follow_make_no_line),
		cmocka_unit_test(parts_without_numbers_belong_to_the_stream_of_a_container),
		cmocka_unit_test(cri_taken_apart),
		cmocka_unit_test(parts_of_nobody_make_no_line),
		cmocka_unit_test(the_journal),
		cmocka_unit_test(parts_that_were_left_out),
		cmocka_unit_test(the_member_with_a_line),
		cmocka_unit_test(cut_anywhere_they_give_the_record_of_the_whole),
		cmocka_unit_test(what_lacks_a_part_gives_none),
		cmocka_unit_test(parts_outlast_policies_and_are_read_again_after_a_restart),
		cmocka_unit_test(what_is_kept_has_a_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

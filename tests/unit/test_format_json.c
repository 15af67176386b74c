/* SPDX-License-Identifier: Apache-2.0 */
/* json: what is found, what is refused, and which of equal members counts. */
#include "tests/unit/format_fixture.h"

static void members_by_name_and_by_pointer(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(
		&fixture,
		"{\"type\": \"json\", \"unit\": \"s\", \"time\": \"ts\", \"fields\": {\"ip\": \"id.orig_h\", \"user\": \"/request/user/id\", "
		"\"second\": \"/list/1\", \"odd\": \"/a~1b/~0/\"}}",
		"ip user second odd /list/0/x status whole");
	assert_reason(
		&fixture,
		"{\"ts\":\"2018-03-24T17:15:20.866Z\",\"id.orig_h\":\"10.47.1.100\",\"request\":{\"user\":{\"id\":42}},"
		"\"list\":[{\"x\":true},-1.50e3],\"a/b\":{\"~\":{\"\":\"deep\"}},\"status\":null,\"whole\":{\"a\":1}}",
		FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1521911720866);
	assert_field(&fixture, "ip", "10.47.1.100");
	assert_field(&fixture, "user", "42");
	assert_field(&fixture, "second", "-1.50e3");
	assert_field(&fixture, "odd", "deep");
	assert_field(&fixture, "/list/0/x", "true");
	assert_field(&fixture, "status", NULL);
	assert_field(&fixture, "whole", NULL);
	assert_reason(&fixture, " \t{ \"ts\" : 1521911720.8669 , \"list\" : { \"1\" : \"by key\" , \"0\" : 5 } } \r",
	              FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1521911720866);
	assert_field(&fixture, "second", "by key");
	assert_field(&fixture, "/list/0/x", NULL);
	assert_field(&fixture, "ip", NULL);
	fixture_deinit(&fixture);
}

static void one_member_may_serve_many_fields(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(
		&fixture,
		"{\"type\": \"json\", \"unit\": \"s\", \"time\": \"t\", \"fields\": {\"ip\": \"t\", \"user\": \"/t\"}}",
		"ip user t");
	assert_reason(&fixture, "{\"t\":5}", FORMAT_OK);
	assert_field(&fixture, "ip", "5");
	assert_field(&fixture, "user", "5");
	assert_field(&fixture, "t", "5");
	assert_int_equal(fixture.record.time_ms, 5000);
	fixture_deinit(&fixture);
}

static void strings_are_unescaped(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"json\", \"unit\": \"s\"}", "ip user path");
	assert_reason(&fixture, "{\"time\":1,\"\\u0069p\":\"\\u00e9\\n\\x22\",\"user\":\"a\\\\\",\"path\":\"\xff\t\"}",
	              FORMAT_OK);
	assert_field(&fixture, "ip", "\xc3\xa9\n\"");
	assert_field(&fixture, "user", "a\\");
	assert_field(&fixture, "path", "\xff\t");
	assert_reason(&fixture, "{\"time\":1,\"ip\":\"\"}", FORMAT_OK);
	assert_field(&fixture, "ip", NULL);
	static const char with_nul[] = "{\"time\":1,\"ip\":\"a\0b\"}";
	assert_int_equal(fixture_parse_bytes(&fixture, with_nul, sizeof with_nul - 1), FORMAT_OK);
	assert_int_equal(fixture_field(&fixture, "ip").length, 3);
	fixture_deinit(&fixture);
}

static void of_equal_members_the_last_counts(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"json\", \"unit\": \"s\", \"fields\": {\"inner\": \"/a/b\"}}", "ip inner a");
	assert_reason(&fixture, "{\"time\":1,\"ip\":\"x\",\"ip\":\"y\",\"a\":{\"b\":1},\"a\":{}}", FORMAT_OK);
	assert_field(&fixture, "ip", "y");
	assert_field(&fixture, "inner", NULL);
	assert_reason(&fixture, "{\"time\":1,\"ip\":\"x\",\"ip\":null,\"a\":{\"b\":1,\"\\u0062\":2}}", FORMAT_OK);
	assert_field(&fixture, "ip", NULL);
	assert_field(&fixture, "inner", "2");
	assert_reason(&fixture, "{\"time\":1,\"a\":{\"b\":1},\"a\":7}", FORMAT_OK);
	assert_field(&fixture, "inner", NULL);
	assert_field(&fixture, "a", "7");
	assert_reason(&fixture, "{\"time\":1,\"time\":null}", FORMAT_NO_TIME);
	fixture_deinit(&fixture);
}

static void what_is_not_json(void **state)
{
	(void)state;
	static const char *const lines[] = {
		" ",
		"[]",
		"1",
		"\"a\"",
		"null",
		"{",
		"}",
		"{}x",
		"{} {}",
		"{\"a\"}",
		"{\"a\":1,}",
		"{,}",
		"{a:1}",
		"{'a':1}",
		"{\"a\":1 \"b\":2}",
		"{\"a\":1,,\"b\":2}",
		"{\"a\":\"x\",2}",
		"{\"a\":[],2}",
		"{\"a\":N\"N\"}",
		"{\"a\":_}",
		"{\"a\":[1,,2]}",
		"{\"a\":[1,]}",
		"{\"a\":[,1]}",
		"{\"a\":[1}",
		"{\"a\":\"b}",
		"{\"a\":\"b\\\"}",
		"{\"a",
		"{\"a\":\"b\"",
		"{\"a\":1}\v",
		"{\"a\":[}",
		"{\"a\"\"b\"}",
		"{\"a\" 1}",
		"{\"a\":{\"b\"}}",
		"\xef\xbb\xbf{}",
	};
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"json\", \"unit\": \"s\"}", "a");
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		assert_malformed(&fixture, lines[i], "not json");
	assert_reason(&fixture, "{}", FORMAT_NO_TIME);
	assert_reason(&fixture, "{\"time\":[1]}", FORMAT_NO_TIME);
	assert_reason(&fixture, "{\"time\":\"\"}", FORMAT_NO_TIME);
	assert_reason(&fixture, "{\"time\":true}", FORMAT_BAD_TIME);
	assert_reason(&fixture, "{\"time\":1e9}", FORMAT_OK);
	assert_reason(&fixture, "{\"time\":\"1e\"}", FORMAT_BAD_TIME);
	assert_reason(&fixture, "{\"time\":-1}", FORMAT_TIME_RANGE);
	fixture_deinit(&fixture);
}

/* Programs that write to syslog put "@cee:" before their objects. */
static void a_cookie_may_stand_before_the_object(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"json\"", "ip");
	static const char *const lines[] = {"@cee:{\"time\":1732173600,\"ip\":\"192.0.2.1\"}",
	                                    "@cee: {\"time\":1732173600,\"ip\":\"192.0.2.1\"}"};
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		assert_reason(&fixture, lines[i], FORMAT_OK);
		assert_field(&fixture, "ip", "192.0.2.1");
	}
	static const char *const others[] = {"@", "@cee:", "@cee", "@cee:@cee:{}", " @cee:{}", "@CEE:{}"};
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		assert_malformed(&fixture, others[i], "not json");
	fixture_deinit(&fixture);
	fixture_init(&fixture, "{\"type\": \"syslog\", \"message\": \"json\"}", "ip");
	assert_reason(&fixture, "<134>1 2024-11-21T10:00:00Z h app 1 - - @cee: {\"ip\":\"192.0.2.1\"}", FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.1");
	fixture_deinit(&fixture);
}

/* An address is one with blanks around it, for whoever counts it and whoever trusts it; what is none stays as it is. */
static void blanks_are_no_part_of_an_address(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"json\"", "ip user");
	assert_reason(&fixture, "{\"time\":1732173600,\"ip\":\" 2001:DB8::1 \",\"user\":\" 10.0.0.1\"}", FORMAT_OK);
	assert_field(&fixture, "ip", "2001:db8::1");
	assert_field(&fixture, "user", " 10.0.0.1");
	assert_reason(&fixture, "{\"time\":1732173600,\"ip\":\"\t192.0.2.1\"}", FORMAT_OK);
	assert_reason(&fixture, "{\"time\":1732173600,\"ip\":\"192.0.2.1 \"}", FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.1");
	assert_int_equal(fixture.record.ip, WEIR_RECORD_IP_PLAIN);
	assert_reason(&fixture, "{\"time\":1732173600,\"ip\":\" gate \"}", FORMAT_OK);
	assert_field(&fixture, "ip", " gate ");
	assert_int_equal(fixture.record.ip, WEIR_RECORD_IP_WORD);
	assert_reason(&fixture, "{\"time\":1732173600,\"ip\":\"  \"}", FORMAT_OK);
	fixture_deinit(&fixture);
	fixture_init(&fixture, "{\"type\": \"json\", \"client_ip\": {\"header\": \"xff\", \"trusted\": [\"10.0.0.0/8\"]}}",
	             "ip");
	assert_reason(&fixture, "{\"time\":1732173600,\"ip\":\" 10.0.0.1 \",\"xff\":\"192.0.2.7\"}", FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.7");
	fixture_deinit(&fixture);
}

/* What servers write where they have no number: other zones' fields count all the same. */
static void a_value_that_is_no_json_is_absent(void **state)
{
	(void)state;
	static const char *const values[] = {"NaN",   "-",   "-Infinity",    "",   "0.1, 0.2",  "0.1, 0.2 : 0.3", "01",
	                                     "+1",    "1.",  ".5",           "1e", "--1",       "True",           "tru",
	                                     "nulll", "1 2", "-, -, 0.004 ", " ",  "502 : 200", "null, 0.1"};
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"json\", \"unit\": \"s\"}", "ip a b");
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		char line[128];
		snprintf(line, sizeof line, "{\"ip\":\"203.0.113.7\",\"a\":%s,\"b\":\"c\",\"x\":[%s1],\"time\":1}", values[i],
		         values[i]);
		assert_reason(&fixture, line, FORMAT_OK);
		assert_field(&fixture, "ip", "203.0.113.7");
		assert_field(&fixture, "a", NULL);
		assert_field(&fixture, "b", "c");
		snprintf(line, sizeof line, "{\"time\":1,\"ip\":\"203.0.113.7\",\"a\":%s}", values[i]);
		assert_reason(&fixture, line, FORMAT_OK);
		assert_field(&fixture, "a", NULL);
	}
	assert_reason(&fixture, "{\"time\":NaN}", FORMAT_NO_TIME);
	fixture_deinit(&fixture);
}

/* Of members with equal names the last counts, however the names are written, and with all that lies in it. */
static void the_last_of_equal_members_counts(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"json\", \"unit\": \"s\", \"fields\": {\"user\": \"/u/id\"}}", "ip user");
	assert_reason(&fixture, "{\"time\":9,\"ip\":\"192.0.2.1\",\"time\":1,\"ip\":\"192.0.2.2\"}", FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1000);
	assert_field(&fixture, "ip", "192.0.2.2");
	assert_reason(&fixture, "{\"time\":1,\"ip\":\"192.0.2.1\",\"\\u0069p\":\"192.0.2.2\"}", FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.2");
	assert_reason(&fixture, "{\"time\":1,\"\\u0069p\":\"192.0.2.1\",\"ip\":\"192.0.2.2\"}", FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.2");
	static const char *const nothing[] = {"null", "\"\"", "{}", "[]", "NaN", "-"};
	for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++) {
		char line[128];
		snprintf(line, sizeof line, "{\"time\":1,\"ip\":\"192.0.2.1\",\"ip\":%s}", nothing[i]);
		assert_reason(&fixture, line, FORMAT_OK);
		assert_field(&fixture, "ip", NULL);
	}
	assert_reason(&fixture, "{\"time\":1,\"u\":{\"id\":\"a\"},\"u\":{\"x\":1}}", FORMAT_OK);
	assert_field(&fixture, "user", NULL);
	assert_reason(&fixture, "{\"time\":1,\"u\":{\"id\":\"a\"},\"u\":{\"id\":\"b\",\"id\":\"c\"}}", FORMAT_OK);
	assert_field(&fixture, "user", "c");
	fixture_deinit(&fixture);
}

static void a_line_that_is_cut_counts_if_it_says_when_and_who(void **state)
{
	(void)state;
	static const char line[] =
		"{\"time\":1,\"ip\":\"203.0.113.7\",\"n\":12,\"o\":{\"a\":[1,\"x\"]},\"path\":\"/a//b\"}";
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"json\", \"unit\": \"s\"}", "ip n path");
	for (size_t length = 1; length < sizeof line - 1; length++) {
		enum format_reason reason = fixture_parse_bytes(&fixture, line, length);
		assert_int_equal(reason, length < 28 ? fixture.format->malformed : FORMAT_OK);
		if (reason != FORMAT_OK)
			continue;
		assert_true(fixture.record.cut);
		assert_field(&fixture, "ip", "203.0.113.7");
		assert_field(&fixture, "n", length >= 36 ? "12" : NULL);
		assert_field(&fixture, "path", length == sizeof line - 2 ? "/a/b" : NULL);
	}
	assert_malformed(&fixture, "{\"ip\":\"203.0.113.7\",\"time\":1", "not json");
	assert_malformed(&fixture, "{\"time\":1,\"ipx\":\"203.0.113.7\",", "not json");
	fixture_deinit(&fixture);
}

/* A line above the limit: the first bytes of it, and the last ones. */
static enum format_reason parse_ends(struct fixture *fixture, const char *line, size_t length, size_t head, size_t tail)
{
	char *last = weir_alloc(tail > 0 ? tail : 1, 1); /* of just their size: a read past them is seen */
	memcpy(last, line + length - tail, tail);
	fixture->format->cut = true;
	fixture->format->tail = (struct weir_span){.at = last, .length = (uint32_t)tail};
	enum format_reason reason = fixture_parse_bytes(fixture, line, head);
	fixture->format->cut = false;
	fixture->format->tail = (struct weir_span){0};
	for (uint32_t i = 0; reason == FORMAT_OK && i < fixture->fields.count; i++) {
		struct weir_span *value = &fixture->record.fields[i];
		if (value->at >= last && value->at < last + tail)
			value->at = line + length - tail + (value->at - last);
	}
	free(last);
	return reason;
}

/* What is whole at either end counts, and nothing that a string says. */
static void a_line_without_its_middle(void **state)
{
	(void)state;
	static const char line[] =
		"{\"time\":1,\"ip\":\"203.0.113.7\",\"path\":\"/a\\\\\\\",\\\"n\\\":\\\"x\\\\\",\"o\":{\"n\":"
		"\"y\",\"l\":[\"}\",{}]},\"m\":\"}\",\"n\":12 , \"k\":0.1, 0.2,\"z\":\"\\\\\"}\r";
	size_t length = sizeof line - 1, first = (size_t)(strstr(line, "\"path\"") - line);
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"json\", \"unit\": \"s\"}", "ip n m path z");
	for (size_t head = first; head < length; head++)
		for (size_t tail = 0; tail <= length - head; tail++) {
			assert_int_equal(parse_ends(&fixture, line, length, head, tail), FORMAT_OK);
			assert_true(fixture.record.cut);
			assert_field(&fixture, "ip", "203.0.113.7");
			bool known = head > (size_t)(strstr(line, "\"n\":12 ,") - line) + 7;
			assert_field(&fixture, "n",
			             known || tail >= strlen(",\"n\":12 , \"k\":0.1, 0.2,\"z\":\"\\\\\"}\r") ? "12" : NULL);
			known = head > (size_t)(strstr(line, "\"m\":\"}\"") - line) + 6;
			assert_field(&fixture, "m",
			             known || tail >= strlen(",\"m\":\"}\",\"n\":12 , \"k\":0.1, 0.2,\"z\":\"\\\\\"}\r") ? "}"
			                                                                                                 : NULL);
			assert_field(&fixture, "z", tail >= strlen(",\"z\":\"\\\\\"}\r") || head + 3 > length ? "\\" : NULL);
		}
	/* The time may stand there alone, as in Traefik's lines. A member that comes again counts. */
	static const char sorted[] = "{\"ip\":\"203.0.113.7\",\"path\":\"/aaaaaaaa\",\"time\":1,\"ip\":\"203.0.113.8\"}";
	assert_int_equal(parse_ends(&fixture, sorted, sizeof sorted - 1, 30, 30), FORMAT_OK);
	assert_field(&fixture, "ip", "203.0.113.8");
	assert_int_equal(parse_ends(&fixture, sorted, sizeof sorted - 1, 30, 20), fixture.format->malformed);
	/* What ends otherwise than an object does says nothing of it; what is none behind its middle is none. */
	static const char torn[] = "{\"time\":1,\"ip\":\"203.0.113.7\",\"path\":\"/a}\\\",\\\"n\\\":\\\"x\\\"}";
	assert_int_equal(parse_ends(&fixture, torn, sizeof torn - 1, 40, 15), FORMAT_OK);
	assert_field(&fixture, "n", NULL);
	static const char two[] = "{\"time\":1,\"ip\":\"203.0.113.7\",\"path\":\"/a\",\"n\":\"x\"}{\"n\":1}";
	assert_int_equal(parse_ends(&fixture, two, sizeof two - 1, 40, 14), FORMAT_OK);
	assert_field(&fixture, "n", NULL);
	static const char bad[] = "{\"time\":1,\"ip\":\"203.0.113.7\",\"path\":\"/aaaa\",\"n\":{,\"x\":[}}}";
	assert_int_equal(parse_ends(&fixture, bad, sizeof bad - 1, 40, 15), fixture.format->malformed);
	fixture_deinit(&fixture);
}

/* A client makes the line longer than the limit: what stands before that says when and who. */
static void presets_take_a_line_without_its_end(void **state)
{
	(void)state;
	static const struct {
		const char *config, *line;
	} samples[] = {
		{"\"caddy\"", "{\"ts\":1715940303,\"request\":{\"client_ip\":\"192.0.2.7\",\"method\":\"GET\",\"uri\":\"/aaa"},
		{"\"envoy\"",
	     "{\"start_time\":\"2024-05-17T10:05:03Z\",\"downstream_remote_address\":\"192.0.2.7:4\",\"path\":\"/a"},
		{"\"cloudflare\"", "{\"EdgeStartTimestamp\":1715940303,\"ClientIP\":\"192.0.2.7\",\"ClientRequestURI\":\"/a"},
		{"\"traefik\"",
	     "{\"ClientHost\":\"192.0.2.7\",\"StartUTC\":\"2024-05-17T10:05:03Z\",\"request_User-Agent\":\"x"},
	};
	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
		struct fixture fixture;
		fixture_init(&fixture, samples[i].config, "ip");
		assert_true(fixture.format->takes_cut);
		assert_reason(&fixture, samples[i].line, FORMAT_OK);
		assert_true(fixture.record.cut);
		assert_field(&fixture, "ip", "192.0.2.7");
		fixture_deinit(&fixture);
	}
}

static void a_header_that_did_not_come(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"json\", \"client_ip\": {\"header\": \"xff\", \"trusted\": [\"10.0.0.0/8\"]}}",
	             "ip");
	assert_reason(&fixture, "{\"time\":1715940303,\"ip\":\"10.0.0.1\",\"xff\":\"-\"}", FORMAT_OK);
	assert_field(&fixture, "ip", "10.0.0.1");
	assert_reason(&fixture, "{\"time\":1715940303,\"ip\":\"10.0.0.1\",\"xff\":\"-\",\"a\":\"b", FORMAT_OK);
	assert_field(&fixture, "ip", "10.0.0.1"); /* it stands whole before the cut */
	assert_reason(&fixture, "{\"time\":1715940303,\"ip\":\"10.0.0.1\",\"xff\":\"-", FORMAT_NO_CLIENT);
	/* Anybody can send the header, and make a line so long that it is cut before who sent it. */
	assert_reason(&fixture, "{\"time\":1715940303,\"xff\":\"203.0.113.7\",\"path\":\"/a", FORMAT_NO_CLIENT);
	assert_reason(&fixture, "{\"time\":1715940303,\"xff\":\"203.0.113.7\",\"ip\":\"198.51.100", FORMAT_NO_CLIENT);
	assert_reason(&fixture, "{\"time\":1715940303,\"xff\":\"203.0.113.7\",\"path\":\"/a\"}", FORMAT_OK);
	assert_field(&fixture, "ip", "203.0.113.7");
	assert_reason(&fixture, "{\"time\":1715940303,\"ip\":\"10.0.0.1\",\"xff\":[\"-\"]}", FORMAT_OK);
	assert_field(&fixture, "ip", "10.0.0.1");
	fixture_deinit(&fixture);
}

static void lines_of_a_header_in_an_array(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture,
	             "{\"type\": \"json\", \"unit\": \"s\", \"fields\": {\"xff\": \"/h/X-Forwarded-For\"}, "
	             "\"client_ip\": {\"header\": \"xff\", \"trusted\": [\"10.0.0.0/8\"]}}",
	             "ip");
#define HEADER(array) "{\"time\":1,\"ip\":\"10.0.0.1\",\"h\":{\"X-Forwarded-For\":" array "}}"
	assert_reason(&fixture, HEADER("[\"1.1.1.1\",\"203.0.113.7, 10.0.0.2\"]"), FORMAT_OK);
	assert_field(&fixture, "ip", "203.0.113.7");
	assert_reason(&fixture, HEADER("[ \"1.1.1.1\" , \"203.0.113.7\" , \"10.0.0.2\", \"\" ]"), FORMAT_OK);
	assert_field(&fixture, "ip", "203.0.113.7");
	assert_reason(&fixture, HEADER("[\"2\\u0030\\u0033.0.113.8\"]"), FORMAT_OK);
	assert_field(&fixture, "ip", "203.0.113.8");
	assert_reason(&fixture, HEADER("\"203.0.113.9\""), FORMAT_OK);
	assert_field(&fixture, "ip", "203.0.113.9");
	assert_reason(&fixture, HEADER("[]"), FORMAT_OK);
	assert_field(&fixture, "ip", "10.0.0.1");
	assert_reason(&fixture, HEADER("[\"203.0.113.7\",1]"), FORMAT_NO_CLIENT);
	assert_reason(&fixture, HEADER("[[\"203.0.113.7\"]]"), FORMAT_NO_CLIENT);
	assert_reason(&fixture, "{\"time\":1,\"ip\":\"10.0.0.1\",\"h\":{\"X-Forwarded-For\":[\"203.0.113.7\"",
	              FORMAT_NO_CLIENT);
#undef HEADER
	fixture_deinit(&fixture);
}

static void depth_is_bounded(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"json\", \"unit\": \"s\"}", "a");
	for (int depth = 60; depth < 70; depth++) {
		char line[256] = "{\"time\":1,\"a\":";
		size_t length = strlen(line);
		memset(line + length, '[', (size_t)depth - 1); /* the object is the first level */
		memset(line + length + depth - 1, ']', (size_t)depth - 1);
		line[length + 2 * (size_t)(depth - 1)] = '}';
		assert_reason(&fixture, line, depth <= 64 ? FORMAT_OK : fixture.format->malformed);
	}
	char bottomless[5000];
	memset(bottomless, '[', sizeof bottomless);
	memcpy(bottomless, "{\"a\":", 5);
	assert_int_equal(fixture_parse_bytes(&fixture, bottomless, sizeof bottomless), fixture.format->malformed);
	fixture_deinit(&fixture);
}

static void cost_and_units(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(
		&fixture,
		"{\"type\": \"json\", \"unit\": \"ms\", \"cost\": \"tokens\", \"fields\": {\"tokens\": \"/usage/all\"}}", "ip");
	assert_reason(&fixture, "{\"time\":1714564800123,\"usage\":{\"all\":250}}", FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1714564800123);
	assert_int_equal(fixture.record.cost, 250);
	assert_reason(&fixture, "{\"time\":1,\"usage\":{\"all\":\"007\"}}", FORMAT_OK);
	assert_int_equal(fixture.record.cost, 7);
	assert_reason(&fixture, "{\"time\":1,\"usage\":{\"all\":null}}", FORMAT_OK);
	assert_int_equal(fixture.record.cost, 1);
	assert_reason(&fixture, "{\"time\":1,\"usage\":{\"all\":0}}", FORMAT_OK);
	assert_int_equal(fixture.record.cost, 0);
	assert_reason(&fixture, "{\"time\":1,\"usage\":{\"all\":2.0}}", FORMAT_BAD_COST);
	assert_reason(&fixture, "{\"time\":1,\"usage\":{\"all\":-1}}", FORMAT_BAD_COST);
	fixture_deinit(&fixture);
}

/* Escapes in a later, longer line move the scratch: values of one line still stand together. */
static void scratch_grows_between_lines(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"json\", \"unit\": \"s\"}", "ip user");
	for (int size = 1; size < 3000; size += 97) {
		char line[8000];
		int length =
			snprintf(line, sizeof line, "{\"time\":1,\"ip\":\"\\n%0*d\",\"user\":\"\\t%0*d\"}", size, 1, size, 2);
		assert_int_equal(fixture_parse_bytes(&fixture, line, (size_t)length), FORMAT_OK);
		assert_int_equal(fixture_field(&fixture, "ip").length, size + 1);
		assert_int_equal(fixture_field(&fixture, "ip").at[0], '\n');
		assert_int_equal(fixture_field(&fixture, "ip").at[size], '1');
		assert_int_equal(fixture_field(&fixture, "user").at[size], '2');
	}
	fixture_deinit(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_by_name_and_by_pointer),
		cmocka_unit_test(one_member_may_serve_many_fields),
		cmocka_unit_test(strings_are_unescaped),
		cmocka_unit_test(of_equal_members_the_last_counts),
		cmocka_unit_test(what_is_not_json),
		cmocka_unit_test(a_cookie_may_stand_before_the_object),
		cmocka_unit_test(blanks_are_no_part_of_an_address),
		cmocka_unit_test(a_value_that_is_no_json_is_absent),
		cmocka_unit_test(the_last_of_equal_members_counts),
		cmocka_unit_test(a_line_that_is_cut_counts_if_it_says_when_and_who),
		cmocka_unit_test(a_line_without_its_middle),
		cmocka_unit_test(presets_take_a_line_without_its_end),
		cmocka_unit_test(a_header_that_did_not_come),
		cmocka_unit_test(lines_of_a_header_in_an_array),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(cost_and_units),
		cmocka_unit_test(scratch_grows_between_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

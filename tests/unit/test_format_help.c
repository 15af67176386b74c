/* SPDX-License-Identifier: Apache-2.0 */
/* What would help to read a line is said with the names that stand in it. */
#include "format_fixture.h"

/* @param said  a part of the words; "": there is no help */
static void assert_help(const char *config, const char *header, const char *line, bool of_client, const char *said)
{
	struct fixture fixture;
	char words[FORMAT_HELP_BYTES];
	fixture_init(&fixture, config, "ip");
	if (header != NULL)
		(void)fixture_parse(&fixture, header);
	enum format_reason reason = fixture_parse(&fixture, line);
	struct weir_span at = {.at = fixture.line, .length = (uint32_t)strlen(line)};
	if (of_client)
		format_help_client(fixture.format, at, words);
	else
		format_help(fixture.format, reason, at, words);
	if (*said == '\0' ? words[0] != '\0' : strstr(words, said) == NULL)
		fail_msg("%s: \"%s\", not \"%s\"", line, words, said);
	fixture_deinit(&fixture);
}

static void the_name_of_the_time_is_found(void **state)
{
	(void)state;
	static const struct {
		const char *config, *header, *line, *said;
	} cases[] = {
		{"\"json\"", NULL, "{\"ts\": 1, \"ip\": \"10.0.0.1\"}",
	     "no \"time\" but \"ts\": say \"format\": {\"type\": \"json\", \"time\": \"ts\"}"},
		{"\"json\"", NULL, "{\"a\":{\"@timestamp\" : \"x\"}}", "\"time\": \"/a/@timestamp\"}"},
		{"\"json\"", NULL, "{\"ts\":1,\"timestamp\":2}", "\"time\": \"timestamp\""},
		{"{\"type\": \"json\", \"time\": \"when\"}", NULL, "{\"date\":1}",
	     "no \"when\" but \"date\": say \"format\": {\"type\": \"json\", ..., \"time\": \"date\"}"},
		{"{\"type\": \"json\", \"time\": \"ts\"}", NULL, "{\"ts\":null}", ""},
		{"\"json\"", NULL, "{\"x\":\"ts\"}", ""},
		{"\"json\"", NULL, "{\"tst\":1,\"my_ts\":1}", ""},
		{"\"json\"", NULL, "{}", ""},
		{"\"logfmt\"", NULL, "a=1 ts=2", "{\"type\": \"logfmt\", \"time\": \"ts\"}"},
		{"\"logfmt\"", NULL, "a=ts b=2", ""},
		{"{\"type\": \"delimited\", \"separator\": \",\"}", "ip,date", "10.0.0.1,x",
	     "{\"type\": \"delimited\", ..., \"time\": \"date\"}"},
		{"\"caddy\"", NULL, "{\"timestamp\": 1}", ""}, /* has no such option */
		{"\"json\"", NULL, "{\"time\":\"yesterday\"}", "\"%d.%m.%Y %H:%M:%S\", in \"format\": {\"type\": \"json\"}"},
		{"\"json\"", NULL, "{\"time\":1732173600000}", "say \"unit\": \"ms\", in \"format\": {\"type\": \"json\"}"},
		{"{\"type\": \"syslog\", \"message\": \"json\"}", NULL,
	     "<1>1 2024-11-21T10:00:00Z h a - - - {\"time\":1732173600000}",
	     "say \"unit\": \"ms\", in \"message\": {\"type\": \"json\"}, within \"format\""},
		{"\"caddy\"", NULL, "{\"ts\":\"yesterday\"}", "a form that this format does not have"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_help(cases[i].config, cases[i].header, cases[i].line, false, cases[i].said);
}

static void the_name_of_the_client_is_found(void **state)
{
	(void)state;
	static const struct {
		const char *config, *line, *said;
	} cases[] = {
		{"\"json\"", "{\"time\":1732173600,\"remote_addr\":\"192.0.2.1\"}",
	     "no \"ip\" but \"remote_addr\": say \"format\": {\"type\": \"json\", \"fields\": {\"ip\": \"remote_addr\"}}"},
		{"\"json\"", "{\"time\":1732173600,\"host\":\"web\",\"src_ip\": \"[2001:db8::1]:443\"}",
	     "{\"ip\": \"src_ip\"}"},
		{"\"json\"", "{\"time\":1732173600,\"host\":\"192.0.2.1\"}", "{\"ip\": \"host\"}"},
		{"\"json\"", "{\"time\":1732173600,\"host\":\"web\"}", ""},
		{"{\"type\": \"json\", \"fields\": {\"ip\": \"peer\"}}", "{\"time\":1732173600,\"ip\":\"192.0.2.1\"}",
	     "no \"peer\" but \"ip\""},
		{"\"logfmt\"", "time=1732173600 client_ip=192.0.2.1", "{\"ip\": \"client_ip\"}"},
		{"\"caddy\"", "{\"ts\":1732173600,\"remote_addr\":\"192.0.2.1\"}", ""},
		{"{\"type\": \"syslog\", \"message\": \"json\"}",
	     "<1>1 2024-11-21T10:00:00Z h a - - - {\"client\":\"192.0.2.1\"}",
	     "say \"message\": {\"type\": \"json\", \"fields\": {\"ip\": \"client\"}}, within \"format\""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_help(cases[i].config, NULL, cases[i].line, true, cases[i].said);
}

/* A name alone is that of a top-level member: what lies deeper is named by a pointer. */
static void what_lies_within_an_object_is_named_by_a_pointer(void **state)
{
	(void)state;
	static const struct {
		const char *config, *line, *said;
	} cases[] = {
		{"{\"type\": \"json\", \"fields\": {\"ip\": \"client.ip\"}}",
	     "{\"time\":1732173600,\"client\":{\"ip\":\"192.0.2.1\"}}",
	     "no \"client.ip\" but \"/client/ip\": say \"format\": {\"type\": \"json\", ..., \"fields\": {\"ip\": \"/client/ip\"}}"},
		{"{\"type\": \"json\", \"fields\": {\"ip\": \"peer.address\"}}",
	     "{\"time\":1732173600,\"peer\":{\"address\":\"192.0.2.1\"}}", "but \"/peer/address\""},
		{"\"json\"", "{\"time\":1732173600,\"a/b\":{\"c\":{\"client_ip\":\"192.0.2.1\"}}}",
	     "but \"/a~1b/c/client_ip\""},
		{"\"json\"", "{\"time\":1732173600,\"a\":{\"client_ip\":\"192.0.2.1\"},\"client_ip\":\"192.0.2.2\"}",
	     "but \"client_ip\""},
		{"{\"type\": \"json\", \"fields\": {\"ip\": \"client.ip\"}}", "{\"time\":1732173600,\"client\":{\"ip\":\"-\"}}",
	     ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_help(cases[i].config, NULL, cases[i].line, true, cases[i].said);
}

/* Who writes a line may have chosen its names: they neither leave a buffer nor reach a terminal. */
static void names_that_are_long_or_no_words_are_not_said(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"{\"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\":{\"\":{\"\":{\"\":{\"\":{\"\":{\"\":{\"timestamp\":1}}}}}}}}",
		"{\"a\":{\"\\u001b]0;x\":{\"timestamp\":1}}}",
		"{\"a\":{\"\\n\":{\"timestamp\":1}}}",
		"{\"a\":{\"\\\"}\":{\"timestamp\":1}}}",
	};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		assert_help("\"json\"", NULL, lines[i], false, "");
}

static void an_object_behind_a_header_is_told(void **state)
{
	(void)state;
	static const char said[] = "{\"type\": \"syslog\", \"message\": \"json\"}";
	assert_help("\"json\"", NULL, "<134>Nov 21 10:00:00 host app[1]: {\"a\":1}", false, said);
	assert_help("\"json\"", NULL, "Nov 21 10:00:00 host app[1]: @cee: {\"a\":1}", false, said);
	assert_help("\"json\"", NULL, "<134>Nov 21 10:00:00 host app[1]: no object", false, "");
	assert_help("\"json\"", NULL, "{\"a\":", false, "");
	assert_help("\"logfmt\"", NULL, "\"", false, "");
}

static void assert_forged(const char *config, const char *line, const char *said)
{
	struct fixture fixture;
	char words[FORMAT_HELP_BYTES];
	fixture_init(&fixture, config, "ip");
	assert_reason(&fixture, line, FORMAT_OK);
	format_help_forged((struct weir_span){.at = fixture.line, .length = (uint32_t)strlen(line)}, words);
	if (*said == '\0' ? words[0] != '\0' : strstr(words, said) == NULL)
		fail_msg("%s: \"%s\", not \"%s\"", line, words, said);
	fixture_deinit(&fixture);
}

static void a_log_whose_lines_may_be_forged_is_told(void **state)
{
	(void)state;
#define COMMON "192.0.2.7 - - [17/May/2024:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"-\""
	assert_forged("\"combined\"", COMMON " 17 \"r@file\" \"http://127.0.0.1:80\" 0ms", "\"traefik\"");
	assert_forged("\"common\"", COMMON " 17 \"-\" \"-\" 12ms", "\"json\"");
	assert_forged("{\"type\": \"wrapped\", \"in\": \"cri\", \"message\": \"combined\"}",
	              "2024-05-17T10:05:03Z stdout F " COMMON " 17 \"-\" \"-\" 12ms", "Traefik");
	assert_forged(
		"{\"type\": \"wrapped\", \"in\": \"docker\", \"message\": \"common\"}",
		"{\"log\":\"192.0.2.7 - - [17/May/2024:10:05:03 +0000] \\\"GET / HTTP/1.1\\\" 200 1 \\\"-\\\" \\\"-\\\" 17 "
		"\\\"r@file\\\" \\\"-\\\" 3ms\\n\",\"stream\":\"stdout\",\"time\":\"2024-05-17T10:05:03Z\"}",
		"Traefik");
	assert_forged("\"combined\"", COMMON, "");
	assert_forged("\"combined\"", COMMON " \"10.0.0.1\" 12ms", "");
	assert_forged("\"combined\"", COMMON " 0.012", "");
#undef COMMON
}

/* Who sends long headers that are captured, or a long URL, has the line cut before his method and path: it is told. */
static void a_line_that_haproxy_cut_is_told(void **state)
{
	(void)state;
	struct fixture fixture;
	char words[FORMAT_HELP_BYTES];
	fixture_init(&fixture, "\"haproxy\"", "ip");
#define BEFORE "192.0.2.7:4002 [17/May/2024:10:05:03.323] fe be/s1 0/0/0/5/5 200 512 - - ---- 1/1/0/0/0 0/0 "
	static const char *const cut[] = {
		BEFORE "{aaaa",      BEFORE "{aaaa}",        BEFORE "{aaaa} {b",        BEFORE "{aaaa} \"",
		BEFORE "{aa} \"GET", BEFORE "{aa} \"GET /a", BEFORE "\"GET /a HTTP/1.1"};
	static const char *const whole[] = {
		BEFORE "{aaaa} \"GET /a HTTP/1.1\"", BEFORE "\"<BADREQ>\"", BEFORE,
		"192.0.2.7:4002 [17/May/2024:10:05:03.323] fe be/s1 0/0/5007 212 -- 0/0/0/0/3 0/0",
		"192.0.2.7:4002 [17/May/2024:10:05:03.323] fe be/s1 site.example 0/0/0/18/18 200"};
#undef BEFORE
	for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
		assert_reason(&fixture, cut[i], FORMAT_OK);
		assert_true(fixture.record.cut);
		assert_field(&fixture, "ip", "192.0.2.7");
	}
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
		assert_reason(&fixture, whole[i], FORMAT_OK);
		assert_false(fixture.record.cut);
	}
	format_help_cut(fixture.format, words);
	assert_non_null(strstr(words, "len 65535"));
	fixture_deinit(&fixture);
	fixture_init(&fixture, "\"combined\"", "ip");
	format_help_cut(fixture.format, words);
	assert_string_equal(words, "");
	fixture_deinit(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_log_whose_lines_may_be_forged_is_told),
		cmocka_unit_test(a_line_that_haproxy_cut_is_told),
		cmocka_unit_test(the_name_of_the_time_is_found),
		cmocka_unit_test(the_name_of_the_client_is_found),
		cmocka_unit_test(what_lies_within_an_object_is_named_by_a_pointer),
		cmocka_unit_test(names_that_are_long_or_no_words_are_not_said),
		cmocka_unit_test(an_object_behind_a_header_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

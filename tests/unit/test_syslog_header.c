/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of syslog messages: RFC 5424, what is written in the manner of RFC 3164, and what is neither. */
#include "collector/record/syslog_header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A line in memory of just its size. */
static struct weir_span copy_of(const char *text)
{
	size_t length = strlen(text);
	char *copy = malloc(length > 0 ? length : 1);
	assert_non_null(copy);
	memcpy(copy, text, length);
	return (struct weir_span){.at = copy, .length = (uint32_t)length};
}

static void put(char *out, size_t bytes, struct weir_span span)
{
	size_t used = strlen(out);
	if (span.at == NULL)
		snprintf(out + used, bytes - used, "|~");
	else
		snprintf(out + used, bytes - used, "|%.*s", (int)span.length, span.at);
}

/* All parts in a row: priority|time|host|app|procid|msgid|data|message, ~ for what is absent; "" where it is no head. */
static const char *parts_of(const char *text)
{
	static char out[1024];
	struct weir_span line = copy_of(text);
	struct syslog_header header;
	out[0] = '\0';
	if (syslog_header_parse(line, &header)) {
		snprintf(out, sizeof out, "%s%d", header.modern ? "modern " : "", header.priority);
		const struct weir_span parts[] = {header.time,  header.host, header.app,    header.procid,
		                                  header.msgid, header.data, header.message};
		for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
			put(out, sizeof out, parts[i]);
	}
	free((char *)line.at);
	return out;
}

static void heads_of_rfc_5424(void **state)
{
	(void)state;
	assert_string_equal(parts_of("<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - 'su root' failed"),
	                    "modern 34|2003-10-11T22:14:15.003Z|mymachine.example.com|su|~|ID47|~|'su root' failed");
	assert_string_equal(
		parts_of("<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - \xef\xbb\xbf%% It's"),
		"modern 165|2003-08-24T05:14:15.000003-07:00|192.0.2.1|myproc|8710|~|~|%% It's");
	assert_string_equal(
		parts_of("<85>1 2026-11-29T09:01:00+00:00 h sshd 7 - -  Failed password for root from 192.0.2.7 port 1 ssh2"),
		"modern 85|2026-11-29T09:01:00+00:00|h|sshd|7|~|~|Failed password for root from 192.0.2.7 port 1 ssh2");
	assert_string_equal(parts_of("<0>1 - - - - - - "), "modern 0|~|~|~|~|~|~|");
	assert_string_equal(parts_of("<191>1 - - - - - -"), "modern 191|~|~|~|~|~|~|");
	assert_string_equal(parts_of("<13>1 - h a p m [x@1 k=\"a \\\"]\\\\ b\" l=\"\"][y] text [z]"),
	                    "modern 13|~|h|a|p|m|[x@1 k=\"a \\\"]\\\\ b\" l=\"\"][y]|text [z]");
}

static void what_goes_wrong_behind_version_1_is_no_head(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"<34>1 ",
		"<34>1 2003-10-11T22:14:15.003Z",
		"<34>1 2003-10-11T22:14:15.003Z host su - ID47",
		"<34>1 2003-10-11T22:14:15.003Z host su - ID47 ",
		"<34>1 2003-10-11T22:14:15.003Z host su - ID47 text",
		"<34>1 2003-10-11T22:14:15.003Z  host su - ID47 -",
		"<34>1 - - - - - -text",
		"<34>1 - - - - - []",
		"<34>1 - - - - - [a",
		"<34>1 - - - - - [a b]",
		"<34>1 - - - - - [a b=c]",
		"<34>1 - - - - - [a b=\"c]",
		"<34>1 - - - - - [a b=\"c\\\"]",
		"<34>1 - - - - - [a =\"c\"]",
		"<34>1 - - - - - [a b=\"c\"",
		"<34>1 - - - - - [a b=\"c\"]text",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (parts_of(bad[i])[0] != '\0')
			fail_msg("%s is taken as %s", bad[i], parts_of(bad[i]));
}

static void heads_in_the_manner_of_rfc_3164(void **state)
{
	(void)state;
	assert_string_equal(parts_of("<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8"),
	                    "34|Oct 11 22:14:15|mymachine|su|~|~|~|'su root' failed for lonvick on /dev/pts/8");
	assert_string_equal(parts_of("<190>Feb  5 17:32:18 www nginx: 192.0.2.7 - - [05/Feb/2024:17:32:18 +0000] \"GET / "),
	                    "190|Feb  5 17:32:18|www|nginx|~|~|~|192.0.2.7 - - [05/Feb/2024:17:32:18 +0000] \"GET / ");
	assert_string_equal(parts_of("<38>Feb  5 17:32:18 10.0.0.99 postfix/smtpd[123]: connect"),
	                    "38|Feb  5 17:32:18|10.0.0.99|postfix/smtpd|123|~|~|connect");
	assert_string_equal(parts_of("<38>2024-05-01T12:00:00.123+02:00 host sshd[1]: x"),
	                    "38|2024-05-01T12:00:00.123+02:00|host|sshd|1|~|~|x");
	/* as files have them */
	assert_string_equal(parts_of("May  1 12:00:00 host CRON[77]: (root) CMD"),
	                    "-1|May  1 12:00:00|host|CRON|77|~|~|(root) CMD");
	assert_string_equal(parts_of("May  1 12:00:00.123456 host CRON[77]: x"),
	                    "-1|May  1 12:00:00.123456|host|CRON|77|~|~|x");
	assert_string_equal(parts_of("2024-05-01 12:00:00.123456-0700  localhost sshd[1]:  x"),
	                    "-1|2024-05-01 12:00:00.123456-0700|localhost|sshd|1|~|~| x");
	assert_string_equal(parts_of("May  1 12:00:00  "), "-1|May  1 12:00:00|~|~|~|~|~|");
	assert_string_equal(parts_of("May 1 12:00:00.1 app: x"), "-1|May 1 12:00:00.1|~|app|~|~|~|x");
	assert_string_equal(parts_of("<13>May  1 12:00:00. app: x"), "13|~|~|~|~|~|~|May  1 12:00:00. app: x");
	assert_string_equal(parts_of("2024-05-01T12:00:00+02:00 host kernel: [ 1.0] x"),
	                    "-1|2024-05-01T12:00:00+02:00|host|kernel|~|~|~|[ 1.0] x");
}

static void what_senders_leave_out(void **state)
{
	(void)state;
	assert_string_equal(parts_of("<13>Oct 11 22:14:15 nginx: no host"), "13|Oct 11 22:14:15|~|nginx|~|~|~|no host");
	assert_string_equal(parts_of("<13>Oct 11 22:14:15 app[5] no host"), "13|Oct 11 22:14:15|~|app|5|~|~|no host");
	assert_string_equal(parts_of("<13>Oct 11 22:14:15 host no tag here"),
	                    "13|Oct 11 22:14:15|host|~|~|~|~|no tag here");
	assert_string_equal(parts_of("<13>Oct 11 22:14:15 fe80::1 app: x"), "13|Oct 11 22:14:15|fe80::1|app|~|~|~|x");
	assert_string_equal(parts_of("<13>Oct 11 22:14:15 word"), "13|Oct 11 22:14:15|~|~|~|~|~|word");
	assert_string_equal(parts_of("<13>Oct 11 22:14:15"), "13|Oct 11 22:14:15|~|~|~|~|~|");
	assert_string_equal(parts_of("<13>app: no time"), "13|~|~|app|~|~|~|no time");
	assert_string_equal(parts_of("<13>no time, no tag: x"), "13|~|~|~|~|~|~|no time, no tag: x");
	assert_string_equal(parts_of("<13>"), "13|~|~|~|~|~|~|");
	assert_string_equal(parts_of("<13>2 x"), "13|~|~|~|~|~|~|2 x");
	assert_string_equal(parts_of("<13>Oct 11 22:14:15host a: b"), "13|~|~|~|~|~|~|Oct 11 22:14:15host a: b");
	assert_string_equal(parts_of("<13>app[]: x"), "13|~|~|app|~|~|~|x");
}

static void levels_as_words_and_tags_in_brackets(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{"May 17 10:05:03 web <auth.info> su[7]: x", "38|May 17 10:05:03|web|su|7|~|~|x"},
		{"May 17 10:05:03 <auth.info> web su[7]: x", "38|May 17 10:05:03|web|su|7|~|~|x"},
		{"May 17 10:05:03 <4.6> web su: x", "38|May 17 10:05:03|web|su|~|~|~|x"},
		{"May 17 10:05:03 <4.8> web su: x", "-1|May 17 10:05:03|<4.8>|~|~|~|~|web su: x"},
		{"May 17 10:05:03 web mail.warn su[7]: x", "20|May 17 10:05:03|web|su|7|~|~|x"},
		{"May 17 10:05:03 mail.info su[7]: x", "-1|May 17 10:05:03|mail.info|su|7|~|~|x"},
		{"May 17 10:05:03 web mail.info is a domain: x", "-1|May 17 10:05:03|web|~|~|~|~|mail.info is a domain: x"},
		{"<13>May 17 10:05:03 web <auth.info> su: x", "13|May 17 10:05:03|web|su|~|~|~|x"},
		{"Fri May 17 10:05:03 2024 authpriv.info su[1]: x", "86|Fri May 17 10:05:03 2024|~|su|1|~|~|x"},
		{"Fri May  7 10:05:03 2024 web su[1]: x", "-1|Fri May  7 10:05:03 2024|web|su|1|~|~|x"},
		{"2024-05-17 10:05:03 web su[12]: x", "-1|2024-05-17 10:05:03|web|su|12|~|~|x"},
		{"2024-05-17 10:05:03,5 +0200 web su: x", "-1|2024-05-17 10:05:03,5 +0200|web|su|~|~|~|x"},
		{"2024-05-17 10:05:03 -02:00 web su: x", "-1|2024-05-17 10:05:03 -02:00|web|su|~|~|~|x"},
		{"2024-05-17 10:05:03 +02 web: x", "-1|2024-05-17 10:05:03|+02|web|~|~|~|x"},
		{"2024-05-17 10:05:03", "-1|2024-05-17 10:05:03|~|~|~|~|~|"},
		{"May 17 10:05:03 web [su]: x", "-1|May 17 10:05:03|web|su|~|~|~|x"},
		{"May 17 10:05:03 [su]: x", "-1|May 17 10:05:03|~|su|~|~|~|x"},
		{"May 17 10:05:03 web [7]: x", "-1|May 17 10:05:03|web|~|~|~|~|[7]: x"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_string_equal(parts_of(rows[i][0]), rows[i][1]);
	assert_string_equal(parts_of("Fri May 17 10:05:03 202"), "");
	assert_string_equal(parts_of("Fri May 17 10:05:03 2024x"), "");
}

/* Cisco's ASA and IOS: a year, a colon that stands alone or behind the time, a number and the host before it. */
static void heads_of_cisco(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{"<166>Oct 11 2024 22:14:15 fw1 : %ASA-6-302013: Built x",
	     "166|Oct 11 2024 22:14:15|fw1|%ASA-6-302013|~|~|~|Built x"},
		{"<166>Oct 11 2024 22:14:15: %ASA-6-302013: Built x", "166|Oct 11 2024 22:14:15|~|%ASA-6-302013|~|~|~|Built x"},
		{"<166>Oct  1 2024 22:14:15 fw1: %ASA-6-302013: Built",
	     "166|Oct  1 2024 22:14:15|~|fw1|~|~|~|%ASA-6-302013: Built"},
		{"<166>Oct 1 2024 22:14:15 fw1 %ASA-6-302013: Built", "166|Oct 1 2024 22:14:15|fw1|%ASA-6-302013|~|~|~|Built"},
		{"Oct 11 2024 22:14:15.123 fw1 su[7]: x", "-1|Oct 11 2024 22:14:15.123|fw1|su|7|~|~|x"},
		{"<166>Oct 11 22:14:15 fw1 : %ASA-6-302013: Built", "166|Oct 11 22:14:15|fw1|%ASA-6-302013|~|~|~|Built"},
		{"<166>:Oct 11 22:14:15 UTC: %ASA-session-6-302013: Built",
	     "166|Oct 11 22:14:15 UTC|~|%ASA-session-6-302013|~|~|~|Built"},
		{"<166>2024-10-11T22:14:15Z: %ASA-6-302013: Built", "166|2024-10-11T22:14:15Z|~|%ASA-6-302013|~|~|~|Built"},
		{"<166>2024-10-11T22:14:15Z fw1 : %ASA-6-302013: Built",
	     "166|2024-10-11T22:14:15Z|fw1|%ASA-6-302013|~|~|~|Built"},
		{"<189>000123: Oct 11 22:14:15.123: %SYS-5-CONFIG_I: x", "189|Oct 11 22:14:15.123|~|%SYS-5-CONFIG_I|~|~|~|x"},
		{"<189>123: rt1: .Oct 11 22:14:15.123 CEST: %SYS-5-X: x", "189|Oct 11 22:14:15.123 CEST|rt1|%SYS-5-X|~|~|~|x"},
		{"<189>123: rt1: *Mar  1 18:46:11.123 UTC: %SYS-5-X: x", "189|Mar  1 18:46:11.123 UTC|rt1|%SYS-5-X|~|~|~|x"},
		{"<189>rt1: Oct 11 22:14:15: %SYS-5-X: x", "189|Oct 11 22:14:15|rt1|%SYS-5-X|~|~|~|x"},
		{"<189>Oct 11 22:14:15: no tag here", "189|Oct 11 22:14:15|~|~|~|~|~|no tag here"},
		{"<189>Oct 11 22:14:15:", "189|Oct 11 22:14:15|~|~|~|~|~|"},
		/* These are none. */
		{"<78>Oct 11 22:14:15 CRON: x", "78|Oct 11 22:14:15|~|CRON|~|~|~|x"},
		{"<78>123: no time", "78|~|~|123|~|~|~|no time"},
		{"<78>a: b: c: Oct 11 22:14:15: x", "78|~|~|a|~|~|~|b: c: Oct 11 22:14:15: x"},
		{"<78>Oct 11 20245 22:14:15 a: x", "78|~|~|~|~|~|~|Oct 11 20245 22:14:15 a: x"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_string_equal(parts_of(rows[i][0]), rows[i][1]);
}

static void neither_priority_nor_time_is_no_head(void **state)
{
	(void)state;
	static const char *const bad[] = {"",          "x",
	                                  "<",         "<>",
	                                  "<1",        "<192>x",
	                                  "<1234",     "< 1>x",
	                                  "<-1>x",     "hello: x",
	                                  "<1234>x",   "17/May/2015:10:05:03",
	                                  "2024",      "2024-05-01 12-00-00 x",
	                                  "{\"a\":1}", "192.0.2.7 - - [x] \"GET /\""};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (parts_of(bad[i])[0] != '\0')
			fail_msg("%s is taken as %s", bad[i], parts_of(bad[i]));
}

static void parameters_of_structured_data(void **state)
{
	(void)state;
	struct weir_span data = copy_of("[a@1 x=\"1\" y=\"\\\"\\]\\\\\\n\"][b][c z=\"\"]"), rest = data, id = {0};
	struct syslog_param param;
	char out[16];
	assert_true(syslog_data_next(&rest, &id, &param));
	assert_memory_equal(param.id.at, "a@1", param.id.length);
	assert_memory_equal(param.name.at, "x", param.name.length);
	assert_memory_equal(param.value.at, "1", param.value.length);
	assert_false(param.escaped);
	assert_true(syslog_data_next(&rest, &id, &param));
	assert_true(param.escaped);
	assert_int_equal(syslog_unescape(param.value, out), 5);
	assert_memory_equal(out, "\"]\\\\n", 5);
	assert_true(syslog_data_next(&rest, &id, &param));
	assert_memory_equal(param.id.at, "c", param.id.length);
	assert_memory_equal(param.name.at, "z", param.name.length);
	assert_int_equal(param.value.length, 0);
	assert_false(syslog_data_next(&rest, &id, &param));
	free((char *)data.at);
}

static void priorities_have_names(void **state)
{
	(void)state;
	assert_string_equal(syslog_facility(0), "kern");
	assert_string_equal(syslog_severity(0), "emerg");
	assert_string_equal(syslog_facility(34), "auth");
	assert_string_equal(syslog_severity(34), "crit");
	assert_string_equal(syslog_facility(SYSLOG_PRIORITY_MAX), "local7");
	assert_string_equal(syslog_severity(SYSLOG_PRIORITY_MAX), "debug");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_of_rfc_5424),
		cmocka_unit_test(what_goes_wrong_behind_version_1_is_no_head),
		cmocka_unit_test(heads_in_the_manner_of_rfc_3164),
		cmocka_unit_test(what_senders_leave_out),
		cmocka_unit_test(levels_as_words_and_tags_in_brackets),
		cmocka_unit_test(heads_of_cisco),
		cmocka_unit_test(neither_priority_nor_time_is_no_head),
		cmocka_unit_test(parameters_of_structured_data),
		cmocka_unit_test(priorities_have_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

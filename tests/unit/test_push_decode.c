/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of every kind as lines. */
#include "collector/source/push/decode/decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void check(push_decode *decode, struct weir_span body, const char *lines, const char *answer)
{
	struct weir_text got = {0}, said = {0};
	struct weir_error error;
	if (decode(body, SIZE_MAX, &got, &said, &error) != WEIR_OK)
		fail_msg("%.*s: %s", (int)body.length, body.at, error.text);
	weir_text_append(&got, "", 1);
	weir_text_append(&said, "", 1);
	assert_string_equal(got.at, lines);
	assert_string_equal(said.at, answer);
	weir_text_deinit(&got);
	weir_text_deinit(&said);
}

static void give(push_decode *decode, const char *body, const char *lines)
{
	check(decode, weir_span_of(body), lines, "");
}

static void refuse(push_decode *decode, const char *body, const char *part)
{
	struct weir_text got = {0}, said = {0};
	struct weir_error error;
	assert_int_equal(decode(weir_span_of(body), SIZE_MAX, &got, &said, &error), WEIR_INVALID);
	if (strstr(error.text, part) == NULL)
		fail_msg("%s: %s", body, error.text);
	weir_text_deinit(&got);
	weir_text_deinit(&said);
}

static void lines_pass_as_they_are(void **state)
{
	(void)state;
	give(decode_lines, "", "");
	give(decode_lines, "a\nb\r\n\nc", "a\nb\r\n\nc\n");
}

static void json_values_are_a_line_each(void **state)
{
	(void)state;
	give(decode_json, "{\"a\": 1}\n{\"b\":\n [1, {}]}", "{\"a\":1}\n{\"b\":[1,{}]}\n");
	give(decode_json, " [ {\"a\":\"x y\"} , {\"b\":2},\n3 ]\n", "{\"a\":\"x y\"}\n{\"b\":2}\n3\n");
	give(decode_json, "{\"a\":1}{\"b\":2}", "{\"a\":1}\n{\"b\":2}\n");
	give(decode_json, "[]", "");
	give(decode_json, "{\"a\":\"]}\\\"\\\\\"}{}", "{\"a\":\"]}\\\"\\\\\"}\n{}\n");
	/* Whatever is no JSON is a line as well, and what is wrong with it is said of that line. */
	give(decode_json, "{\"a\":\"one\ntwo\"}", "{\"a\":\"one two\"}\n");
	give(decode_json, "{\"a\":", "{\"a\":\n");
	give(decode_json, "}}", "}\n}\n");
}

static void firehose_has_records_in_base64(void **state)
{
	(void)state;
	check(
		decode_firehose,
		weir_span_of(
			"{\"requestId\":\"r-1\",\"timestamp\":1,\"records\":[{\"data\":\"b25l\"},{\"data\":\"dHdvCnRocmVlCg==\"}]}"),
		"one\ntwo\nthree\n", "r-1");
	refuse(decode_firehose, "{\"records\":[{\"data\":\"*\"}]}", "base64");
	refuse(decode_firehose, "{\"records\":{}}", "no array");
	refuse(decode_firehose, "{\"Records\":[{\"data\":\"b25l\"}]}", "no \"records\", but \"Records\"");
	refuse(decode_firehose, "[]", "no object");
	refuse(decode_firehose, "{", "no JSON");
}

static void otlp_becomes_objects(void **state)
{
	(void)state;
	give(
		decode_otlp,
		"{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":\"web\"}}]},"
		"\"scopeLogs\":[{\"scope\":{\"name\":\"s\"},\"logRecords\":[{\"timeUnixNano\":\"1732173600123456789\","
		"\"severityText\":\"INFO\",\"body\":{\"stringValue\":\"GET /\\n\"},\"attributes\":["
		"{\"key\":\"n\",\"value\":{\"intValue\":\"200\"}},{\"key\":\"l\",\"value\":{\"arrayValue\":{\"values\":"
		"[{\"boolValue\":true},{\"kvlistValue\":{\"values\":[{\"key\":\"k\",\"value\":{\"doubleValue\":0.5}}]}}]}}}],"
		"\"traceId\":\"ab\"},{}]}]}]}",
		"{\"time\":\"2024-11-21T07:20:00.123Z\",\"severity\":\"INFO\",\"message\":\"GET /\\n\",\"attributes\":{\"n\":200,\"l\":[true,"
		"{\"k\":0.5}]},\"resource\":{\"service.name\":\"web\"},\"scope\":\"s\",\"trace_id\":\"ab\"}\n"
		"{\"resource\":{\"service.name\":\"web\"},\"scope\":\"s\"}\n");
	give(decode_otlp, "{}", "");
	give(decode_otlp,
	     "{\"resourceLogs\":[{\"resource\":{\"attributes\":[]},\"scopeLogs\":null},{\"schemaUrl\":\"x\"}]}", "");
	/* Bytes are what they are, where they are base64. */
	give(decode_otlp,
	     "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"body\":{\"bytesValue\":\"YQD/Ig==\"}},"
	     "{\"body\":{\"bytesValue\":\"*\"}}]}]}]}",
	     "{\"message\":\"a\\u0000\xff\\\"\"}\n{\"message\":\"*\"}\n");
	/* Events that stand elsewhere are not answered as taken: those of other signals, and of OTLP before 1.0. */
	refuse(decode_otlp, "{\"resourceSpans\":[{}]}", "no \"resourceLogs\", but \"resourceSpans\"");
	refuse(decode_otlp, "{\"resourceLogs\":[{\"instrumentationLibraryLogs\":[{\"logs\":[{}]}]}]}", "no \"scopeLogs\"");
	refuse(decode_otlp, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logs\":[{}]}]}]}", "no \"logRecords\"");
	refuse(decode_otlp, "{\"resourceLogs\":[\"x\"]}", "no object");
	refuse(decode_otlp, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[1]}]}]}", "no object");
}

static void loki_becomes_objects(void **state)
{
	(void)state;
	give(
		decode_loki,
		"{\"streams\":[{\"stream\":{\"app\":\"web\"},\"values\":[[\"1732173600123000000\",\"a \\\"line\\\"\"],"
		"[\"1732173600124000000\",\"b\",{\"pod\":\"p\"}]]}]}",
		"{\"time\":\"2024-11-21T07:20:00.123Z\",\"message\":\"a \\\"line\\\"\",\"labels\":{\"app\":\"web\"}}\n"
		"{\"time\":\"2024-11-21T07:20:00.124Z\",\"message\":\"b\",\"labels\":{\"app\":\"web\"},\"metadata\":{\"pod\":\"p\"}}\n");
	/* Microseconds by mistake, and no time at all. */
	give(
		decode_loki,
		"{\"streams\":[{\"values\":[[\"1732173600123000\",\"a\"],[\"now\",\"b\"],[\"4102444800000000000\",\"c\"]]}]}",
		"{\"time\":1732173600123000,\"message\":\"a\"}\n{\"message\":\"b\"}\n{\"time\":4102444800000000000,\"message\":\"c\"}\n");
	refuse(decode_loki, "{\"streams\":[{\"values\":[[1]]}]}", "a time and a line");
	refuse(decode_loki, "{\"streams\":[{\"labels\":\"{}\",\"entries\":[{\"line\":\"a\"}]}]}", "no \"values\"");
	refuse(decode_loki, "{\"streams\":[[]]}", "no object");
}

static void bulk_has_documents_and_items(void **state)
{
	(void)state;
	check(decode_bulk, weir_span_of("{\"create\":{\"_index\":\"logs\"}}\n{\"a\":1}\n{\"delete\":{\"_id\":\"1\"}}\n"),
	      "{\"a\":1}\n",
	      "{\"create\":{\"_index\":\"logs\",\"status\":201,\"result\":\"created\",\"_shards\":{\"total\":1,"
	      "\"successful\":1,\"failed\":0}}},{\"delete\":{\"_index\":\"weir\",\"status\":400,\"error\":{\"type\":"
	      "\"illegal_argument_exception\",\"reason\":\"weir takes documents by create and index alone\"}}}");
	refuse(decode_bulk, "{\"create\":{}}\n", "no document");
	refuse(decode_bulk, "{\"a\":1}\n{}\n", "what to do");
	refuse(decode_bulk, "nothing\n", "no JSON");
}

static const char entries[] =
	"__CURSOR=s=1;i=1\n_PID=7\nMESSAGE\n\x05\0\0\0\0\0\0\0one\nx\n\n_PID=8\nA=1\nA=2\nMESSAGE=t\xff\xc3\n\n_PID=9\n";

static void journal_entries_become_objects(void **state)
{
	(void)state;
	struct weir_span body = {.at = entries, .length = sizeof entries - 1};
	check(decode_journal, body,
	      "{\"__CURSOR\":\"s=1;i=1\",\"_PID\":\"7\",\"MESSAGE\":\"one\\u000ax\"}\n"
	      "{\"_PID\":\"8\",\"A\":[\"1\",\"2\"],\"MESSAGE\":\"t\xff\xc3\"}\n{\"_PID\":\"9\"}\n",
	      "");
	/* An entry that is not whole is not answered as taken. */
	refuse(decode_journal, "A=1\n\nB=2\nC=3", "within an entry, behind byte 9");
	refuse(decode_journal, "A=1\n\nMESSAGE\n\x05", "within an entry");
	give(decode_journal, "\"A\":1=x\nB=1\n\n", "{\"B\":\"1\"}\n");
	/* Of every beginning, what is whole is taken. */
	for (uint32_t length = 0; length < body.length; length++) {
		struct weir_span part = {.at = entries, .length = length};
		size_t whole = decode_journal_whole(part);
		assert_true(whole <= length && (whole == 0 || entries[whole - 1] == '\n'));
	}
	assert_int_equal(decode_journal_whole(body), body.length - 7);
	refuse(decode_journal, "=no name\n\n", "at byte 0");
	refuse(decode_journal, "MESSAGE\n\xff\xff\xff\xff\xff\xff\xff\xff\n\n", "export format");
}

/* A body of many events that share a long part: a line has it, and their lines have it as often. */
static void put_many(struct weir_text *body, const char *head, const char *event, const char *tail)
{
	weir_text_clear(body);
	weir_text_puts(body, head);
	for (int i = 0; i < 1000; i++)
		weir_text_printf(body, "%s%s", i > 0 ? "," : "", event);
	weir_text_puts(body, tail);
}

static void check_bound(push_decode *decode, const struct weir_text *body)
{
	enum { MOST = 20000 };
	struct weir_text got = {0}, said = {0};
	struct weir_error error;
	assert_int_equal(decode(weir_text_span(body), MOST, &got, &said, &error), WEIR_FULL);
	assert_non_null(strstr(error.text, "20000 bytes"));
	assert_true(got.length <= MOST + 2 * body->length);
	weir_text_deinit(&got);
	weir_text_deinit(&said);
}

static void a_small_body_does_not_become_any_number_of_bytes(void **state)
{
	(void)state;
	char name[10001] = {0}, head[10200];
	struct weir_text body = {0};
	memset(name, 'x', sizeof name - 1);
	snprintf(head, sizeof head,
	         "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"%s\",\"value\":{}}]},\"scopeLogs\":"
	         "[{\"logRecords\":[",
	         name);
	put_many(&body, head, "{}", "]}]}]}");
	check_bound(decode_otlp, &body);
	snprintf(head, sizeof head, "{\"resourceLogs\":[{\"scopeLogs\":[{\"scope\":{\"name\":\"%s\"},\"logRecords\":[",
	         name);
	put_many(&body, head, "{}", "]}]}]}");
	check_bound(decode_otlp, &body);
	snprintf(head, sizeof head, "{\"streams\":[{\"stream\":{\"%s\":\"\"},\"values\":[", name);
	put_many(&body, head, "[\"1\",\"\"]", "]}]}");
	check_bound(decode_loki, &body);
	/* What no event shares is bounded all the same. */
	put_many(&body, "", "{\"a\":\"0123456789012345678\"}", "\n");
	check_bound(decode_lines, &body);
	check_bound(decode_json, &body);
	put_many(&body, "{\"records\":[", "{\"data\":\"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5\"}", "]}");
	check_bound(decode_firehose, &body);
	weir_text_clear(&body);
	for (int i = 0; i < 1000; i++)
		weir_text_puts(&body, "{\"create\":{}}\n{\"a\":\"0123456789012345678\"}\n");
	check_bound(decode_bulk, &body);
	weir_text_clear(&body);
	for (int i = 0; i < 1000; i++)
		weir_text_puts(&body, "MESSAGE=0123456789012345678\n\n");
	check_bound(decode_journal, &body);
	weir_text_deinit(&body);
}

static void a_document_of_many_small_parts_is_not_made_a_tree(void **state)
{
	(void)state;
	static const char *const empty[] = {"{}", "[]"};
	for (int kind = 0; kind < 2; kind++) {
		struct weir_text body = {0}, got = {0}, said = {0};
		struct weir_error error;
		weir_text_puts(&body, "{\"resourceLogs\":[],\"a\\\"\":[");
		for (int i = 0; i < 1 << 18; i++)
			weir_text_printf(&body, "%s%s", i > 0 ? "," : "", empty[kind]);
		weir_text_puts(&body, "]}");
		assert_int_equal(decode_otlp(weir_text_span(&body), SIZE_MAX, &got, &said, &error), WEIR_FULL);
		assert_non_null(strstr(error.text, "objects and arrays"));
		weir_text_deinit(&body);
	}
	struct weir_text many = {0}, none = {0}, nothing = {0};
	struct weir_error why;
	weir_text_puts(&many, "{\"resourceLogs\":[],\"a\":[1");
	for (int i = 0; i <= 1 << 19; i++)
		weir_text_puts(&many, ",1");
	weir_text_puts(&many, "]}");
	assert_int_equal(decode_otlp(weir_text_span(&many), SIZE_MAX, &none, &nothing, &why), WEIR_FULL);
	assert_non_null(strstr(why.text, "values"));
	weir_text_deinit(&many);
	/* In a string, they are text. */
	struct weir_text body = {0}, got = {0}, said = {0};
	struct weir_error error;
	weir_text_puts(&body, "{\"resourceLogs\":[],\"a\":\"\\\"");
	for (int i = 0; i < 1 << 18; i++)
		weir_text_puts(&body, "[{");
	weir_text_puts(&body, "\"}");
	assert_int_equal(decode_otlp(weir_text_span(&body), SIZE_MAX, &got, &said, &error), WEIR_OK);
	weir_text_deinit(&body);
}

/* A body of the default max_body, of records that have mostly attributes. */
static void a_long_document_may_have_more_parts(void **state)
{
	(void)state;
	struct weir_text body = {0}, got = {0}, said = {0};
	struct weir_error error;
	weir_text_puts(&body, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{}");
	while (body.length < 16 << 20) {
		weir_text_puts(
			&body,
			",{\"timeUnixNano\":\"1732173600123456789\",\"severityText\":\"INFO\",\"body\":{\"stringValue\":"
			"\"GET /shop/basket HTTP/1.1\"},\"traceId\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"attributes\":[{}");
		for (int i = 0; i < 20; i++)
			weir_text_puts(&body, i % 2 == 0 ? ",{\"key\":\"http.method\",\"value\":{\"stringValue\":\"GET\"}}"
			                                 : ",{\"key\":\"pid\",\"value\":{\"intValue\":\"12\"}}");
		weir_text_puts(&body, "]}");
	}
	weir_text_puts(&body, "]}]}]}");
	if (decode_otlp(weir_text_span(&body), SIZE_MAX, &got, &said, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	weir_text_deinit(&body);
	weir_text_deinit(&got);
	weir_text_deinit(&said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_pass_as_they_are),
		cmocka_unit_test(json_values_are_a_line_each),
		cmocka_unit_test(firehose_has_records_in_base64),
		cmocka_unit_test(otlp_becomes_objects),
		cmocka_unit_test(loki_becomes_objects),
		cmocka_unit_test(bulk_has_documents_and_items),
		cmocka_unit_test(journal_entries_become_objects),
		cmocka_unit_test(a_small_body_does_not_become_any_number_of_bytes),
		cmocka_unit_test(a_document_of_many_small_parts_is_not_made_a_tree),
		cmocka_unit_test(a_long_document_may_have_more_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

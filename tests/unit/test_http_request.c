/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of HTTP: what is read, what must wait, and what is refused. */
#include "limiter/check/http/http_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct http_request request;
static struct http_refusal refusal;

static enum weir_status of(const char *text)
{
	return http_request_read(text, strlen(text), &request, &refusal);
}

#define assert_span(span, text) assert_true(weir_span_equal(span, weir_span_of(text)))

static void reads_a_request_and_leaves_the_next(void **state)
{
	(void)state;
	static const char text[] =
		"POST /v1/check?a=b HTTP/1.1\r\nHost:  weir \r\nX-A: 1\r\nx-a:\t2\r\nContent-Length: 3\r\n\r\nabcGET";
	assert_int_equal(of(text), WEIR_OK);
	assert_span(request.method, "POST");
	assert_span(request.target, "/v1/check?a=b");
	assert_span(request.body, "abc");
	assert_span(http_request_header(&request, "host"), "weir");
	assert_span(http_request_header(&request, "x-a"), "2");
	assert_null(http_request_header(&request, "x-b").at);
	assert_true(request.keeps_alive);
	assert_int_equal(request.bytes, strlen(text) - 3);
}

static void waits_for_the_whole(void **state)
{
	(void)state;
	static const char text[] = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
	for (size_t length = 0; length < sizeof text - 1; length++)
		assert_int_equal(http_request_read(text, length, &request, &refusal), WEIR_AGAIN);
	assert_int_equal(of(text), WEIR_OK);
}

static void says_whether_the_connection_goes_on(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool keeps_alive;
	} cases[] = {
		{"GET / HTTP/1.1\r\n\r\n", true},
		{"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n", false},
		{"GET / HTTP/1.1\r\nConnection: x, close\r\n\r\n", false},
		{"GET / HTTP/1.0\r\n\r\n", false},
		{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(of(cases[i].text), WEIR_OK);
		assert_int_equal(request.keeps_alive, cases[i].keeps_alive);
	}
}

/* RFC 9112, 3.2.2: a server must take it, and believe it more than Host. */
static void takes_a_target_in_absolute_form(void **state)
{
	(void)state;
	assert_int_equal(of("GET /v1/check HTTP/1.1\r\nHost: a\r\n\r\n"), WEIR_OK);
	assert_null(request.authority.at);
	assert_int_equal(of("GET HTTP://b:80/v1/check?c HTTP/1.1\r\nHost: a\r\n\r\n"), WEIR_OK);
	assert_span(request.target, "/v1/check?c");
	assert_span(request.authority, "b:80");
	assert_int_equal(of("GET http://b HTTP/1.1\r\nHost: a\r\n\r\n"), WEIR_OK);
	assert_span(request.target, "/");
}

static void refuses(const char *text, int status)
{
	if (of(text) != WEIR_INVALID || refusal.status != status)
		fail_msg("%s: %d", text, refusal.status);
}

static void refuses_what_two_readers_could_take_for_different_requests(void **state)
{
	(void)state;
	refuses("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400);
	refuses("GET / HTTP/1.1\r\nA : b\r\n\r\n", 400);
	refuses("GET / HTTP/1.1\nA: b\r\n\r\n", 400);
	refuses("GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n", 400);
	refuses("GET / HTTP/1.1\r\nA: b\rC: d\r\n\r\n", 400);
	refuses("GET / HTTP/1.1\r\nno colon\r\n\r\n", 400);
	refuses("GET / HTTP/1.1\r\n: empty\r\n\r\n", 400);
	refuses("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400);
	refuses("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400);
	refuses("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nhost: a\r\n\r\n", 400);
	refuses("GET / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400);
	refuses("GET / HTTP/1.1\r\nContent-Length:\r\n\r\n", 400);
	refuses("GET / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 400);
	refuses("GET / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n", 413);
	refuses("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 411);
	refuses("GET /\r\n\r\n", 400);
	refuses("GET  / HTTP/1.1\r\n\r\n", 400);
	refuses("GET / HTTP/1.2\r\n\r\n", 400);
	refuses("GET http:///v1/check HTTP/1.1\r\n\r\n", 400);
	refuses("GET http://a@b/v1/check HTTP/1.1\r\n\r\n", 400);
	refuses("PRI * HTTP/2.0\r\n\r\n", 400);
	refuses("G\x01T / HTTP/1.1\r\n\r\n", 400);
	refuses("GET / HTTP/1.1\r\nA\x01: b\r\n\r\n", 400);
}

static void a_value_may_have_any_bytes_but_nul_and_line_breaks(void **state)
{
	(void)state;
	assert_int_equal(of("GET / HTTP/1.1\r\nA: b\x01\x1b\x7f\xff\tc\r\n\r\n"), WEIR_OK);
	assert_span(http_request_header(&request, "a"), "b\x01\x1b\x7f\xff\tc");
	static const char nul[] = "GET / HTTP/1.1\r\nA: b\0c\r\n\r\n";
	assert_int_equal(http_request_read(nul, sizeof nul - 1, &request, &refusal), WEIR_INVALID);
	assert_int_equal(refusal.status, 400);
	refuses("GET / HTTP/1.1\r\nA: b\nc\r\n\r\n", 400);
	refuses("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", 400);
}

/* Whoever speaks another protocol sends no more before it is answered. */
static void refuses_at_once_what_begins_as_no_request(void **state)
{
	(void)state;
	static const char *const strangers[] = {
		"PING\r\n",         "*1\r\n$4\r\nPING\r\n", "*1\r", "\x16\x03\x01", "hello\r\n",   "GET /\r\n",
		"GET / HTTP/1.1\n", "GET / HTTP/2.0\r\n",   "\x01", " GET",         "\r\nPING\r\n"};
	static const char whole[] = "\r\n\r\nGET /v1/nginx HTTP/1.1\r\nA: b\r\n\r\n";
	for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
		refuses(strangers[i], 400);
	refuses("\x16\x03\x01", 400);
	assert_non_null(strstr(refusal.words, "without TLS"));
	for (size_t length = 0; length < sizeof whole - 1; length++)
		assert_int_equal(http_request_read(whole, length, &request, &refusal), WEIR_AGAIN);
	assert_int_equal(of(whole), WEIR_OK);
}

static void refuses_what_is_too_large(void **state)
{
	(void)state;
	static char text[HTTP_HEAD_MAX_BYTES + 64];
	memset(text, 'a', sizeof text);
	assert_int_equal(http_request_read(text, HTTP_HEAD_MAX_BYTES - 1, &request, &refusal), WEIR_AGAIN);
	assert_int_equal(http_request_read(text, HTTP_HEAD_MAX_BYTES, &request, &refusal), WEIR_INVALID);
	assert_int_equal(refusal.status, 431);
	int length = snprintf(text, sizeof text, "GET / HTTP/1.1\r\n");
	for (int i = 0; i <= HTTP_HEADERS_MAX; i++)
		length += snprintf(text + length, sizeof text - (size_t)length, "A: b\r\n");
	snprintf(text + length, sizeof text - (size_t)length, "\r\n");
	refuses(text, 431);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_request_and_leaves_the_next),
		cmocka_unit_test(waits_for_the_whole),
		cmocka_unit_test(says_whether_the_connection_goes_on),
		cmocka_unit_test(takes_a_target_in_absolute_form),
		cmocka_unit_test(refuses_what_two_readers_could_take_for_different_requests),
		cmocka_unit_test(a_value_may_have_any_bytes_but_nul_and_line_breaks),
		cmocka_unit_test(refuses_at_once_what_begins_as_no_request),
		cmocka_unit_test(refuses_what_is_too_large),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

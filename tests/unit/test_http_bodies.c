/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server with bodies: whole, chunked and in pieces, refused before and after they came, and those without an end. */
#include "common/base/alloc.h"
#include "common/http/http.h"

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { BODY_MOST = 100000, HUGE_MOST = 100 << 20, PIECE = 1000 };

static struct weir_http *http;
static _Atomic int pieces;

/* Says what came. Pieces are taken up to their last newline. */
static void take(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)context;
	struct weir_span body = weir_http_body(request);
	if (strcmp(weir_http_target(request), "/pieces") == 0 && strcmp(weir_http_method(request), "POST") == 0) {
		uint32_t whole = body.length;
		while (whole > 0 && body.at[whole - 1] != '\n')
			whole--;
		pieces += whole > 0;
		if (memmem(body.at, body.length, "bad", 3) != NULL)
			reply->status = 400;
		if (!weir_http_body_ended(request)) {
			weir_http_taken(request, whole);
			return;
		}
		body.length += (uint32_t)weir_http_taken_before(request);
	}
	weir_text_printf(&reply->body, "%s %u", weir_http_method(request), body.length);
}

static void admit(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)context;
	if (weir_http_field(request, "X-Wrong") != NULL) {
		reply->status = 401;
		weir_text_puts(&reply->body, "who are you");
	}
	if (strcmp(weir_http_target(request), "/pieces") == 0)
		weir_http_take_pieces(request, PIECE);
}

static int start_with(size_t body_most, unsigned turn_s, unsigned connections)
{
	static const struct weir_http_path every = {"*", take, NULL};
	struct weir_http_options options = {.host = "127.0.0.1",
	                                    .paths = &every,
	                                    .path_count = 1,
	                                    .workers = 2,
	                                    .turn_s = turn_s,
	                                    .connections = connections,
	                                    .timeout_s = 30,
	                                    .body_most_bytes = body_most,
	                                    .admit = admit};
	pieces = 0;
	return weir_http_start(&options, &http, NULL) == WEIR_OK ? 0 : -1;
}

static int start(size_t body_most)
{
	return start_with(body_most, 2, 0);
}

static int setup_narrow(void **state)
{
	(void)state;
	return start_with(BODY_MOST, 60, 8);
}

static int setup(void **state)
{
	(void)state;
	return start(BODY_MOST);
}

static int setup_huge(void **state)
{
	(void)state;
	return start(HUGE_MOST);
}

static int teardown(void **state)
{
	(void)state;
	weir_http_stop(http);
	return 0;
}

static int connect_to(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(weir_http_port(http))};
	inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(0, connect(fd, (struct sockaddr *)&address, sizeof address));
	return fd;
}

/* Sends all; false: the server has cut the connection. */
static bool give(int fd, const char *bytes, size_t length)
{
	for (ssize_t sent; length > 0; bytes += sent, length -= (size_t)sent)
		if ((sent = send(fd, bytes, length, MSG_NOSIGNAL)) <= 0)
			return false;
	return true;
}

static void say(int fd, const char *text)
{
	assert_true(give(fd, text, strlen(text)));
}

/* Reads one answer, which must begin and end so. */
static void expect(int fd, const char *status, const char *body)
{
	char answer[4096];
	size_t length = 0;
	char *end = NULL;
	while (end == NULL || strlen(end + 4) < strlen(body)) {
		ssize_t got = read(fd, answer + length, sizeof answer - 1 - length);
		if (got <= 0)
			fail_msg("%.*s: no more", (int)length, answer);
		length += (size_t)got;
		answer[length] = '\0';
		end = strstr(answer, "\r\n\r\n");
	}
	if (strncmp(answer + sizeof "HTTP/1.1", status, strlen(status)) != 0 || strcmp(end + 4, body) != 0)
		fail_msg("%s", answer);
}

static void bodies_come_whole(void **state)
{
	(void)state;
	int fd = connect_to();
	say(fd, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n01234");
	expect(fd, "200", "POST 5");
	say(fd, "PUT /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
	expect(fd, "200", "PUT 5");
	say(fd, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
	expect(fd, "200", "POST 0");
	say(fd, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
	expect(fd, "200", "GET 0");
	say(fd, "DELETE /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	expect(fd, "405", "only GET, HEAD, POST and PUT are allowed\n");
	close(fd);
}

/* What a proxy could read as two requests, or this server as one: the connection ends behind the answer. */
static void a_head_of_two_meanings_is_refused(void **state)
{
	(void)state;
	static const char *const heads[] = {
		"POST /a HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n",
		"POST /a HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
		"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n",
		"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
		"POST /a HTTP/1.1\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
		"POST /a HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n",
		"POST /a HTTP/1.1\r\nTransfer-Encoding: xchunked\r\nContent-Length: 5\r\n",
		"POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n",
		"POST /a HTTP/1.1\r\nContent-Length : 5\r\n",
		"POST /a HTTP/1.1\r\nTransfer-Encoding : chunked\r\n",
		"POST /a HTTP/1.1\r\nContent-Length:\r\n 5\r\n",
		"POST /a HTTP/1.1\r\nX: a\rContent-Length: 5\r\n",
		"POST /a HTTP/1.1\r\nX: \x01\r\nContent-Length: 5\r\n",
		"GET /a HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 0\r\n",
		"GET /a HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
	};
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		char answer[4096];
		size_t length = 0;
		int fd = connect_to();
		say(fd, heads[i]);
		say(fd, "Host: x\r\n\r\n0\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n");
		for (ssize_t got; (got = read(fd, answer + length, sizeof answer - 1 - length)) > 0;)
			length += (size_t)got;
		answer[length] = '\0';
		if (strncmp(answer, "HTTP/1.1 400", 12) != 0 || strstr(answer, "GET 0") != NULL)
			fail_msg("%s%s", heads[i], answer);
		close(fd);
	}
	int fd = connect_to();
	say(fd, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nX:\tm\xc3\xbc\r\nContent-Length: 5\r\n\r\n01234");
	expect(fd, "200", "POST 5");
	close(fd);
}

static void a_refused_body_is_read_so_that_its_sender_hears_why(void **state)
{
	(void)state;
	char *body = weir_alloc(1, 3 * BODY_MOST);
	int fd = connect_to();
	say(fd, "POST /a HTTP/1.1\r\nHost: x\r\nX-Wrong: 1\r\nContent-Length: 300000\r\n\r\n");
	assert_true(give(fd, body, 300000));
	expect(fd, "401", "who are you");
	/* The connection goes on. */
	say(fd, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\n");
	assert_true(give(fd, body, 100001));
	expect(fd, "413", "the body is too large: send smaller ones\n");
	say(fd, "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n186A1\r\n");
	assert_true(give(fd, body, 100001));
	say(fd, "\r\n0\r\n\r\n");
	expect(fd, "413", "the body is too large: send smaller ones\n");
	close(fd);
	/* Who waits to be told, and who has too much, is told at once. */
	fd = connect_to();
	say(fd, "POST /a HTTP/1.1\r\nHost: x\r\nX-Wrong: 1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
	expect(fd, "401", "who are you");
	close(fd);
	fd = connect_to();
	say(fd, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n");
	expect(fd, "413", "the body is too large: send smaller ones\n");
	close(fd);
	free(body);
}

static void a_body_may_come_in_pieces_without_a_bound(void **state)
{
	(void)state;
	int fd = connect_to();
	say(fd, "POST /pieces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 3000; i++)
		say(fd, "10\r\n0123456789abcd\ne\r\n");
	say(fd, "0\r\n\r\n");
	expect(fd, "200", "POST 48000");
	assert_true(pieces > 20);
	say(fd, "POST /pieces HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\nbad\n");
	char rest[4996] = {0};
	assert_true(give(fd, rest, sizeof rest));
	expect(fd, "400", "");
	/* A piece of which nothing is whole is bounded like a body. */
	say(fd, "POST /pieces HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n");
	char *body = weir_alloc(1, 200000);
	assert_true(give(fd, body, 200000));
	expect(fd, "413", "the body is too large: send smaller ones\n");
	free(body);
	close(fd);
}

static void who_sends_a_byte_now_and_then_is_cut(void **state)
{
	(void)state;
	int fd = connect_to();
	say(fd, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n");
	int bytes = 0;
	while (bytes < 3000 && give(fd, "x", 1)) {
		poll(NULL, 0, 10);
		bytes++;
	}
	assert_in_range(bytes, 1, 2999);
	close(fd);
}

/* Sends the head of a body, and so much of it. */
static void give_part(int fd, int length, const char *body, size_t part)
{
	char head[128];
	snprintf(head, sizeof head, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", length);
	say(fd, head);
	assert_true(give(fd, body, part));
}

static void bodies_together_are_bounded(void **state)
{
	(void)state;
	enum { PART = 50 << 20, MORE = 60 << 20, HELD = 2 };
	char *body = weir_alloc(1, MORE), whole[32];
	int held[HELD];
	for (int i = 0; i < HELD; i++) {
		held[i] = connect_to();
		give_part(held[i], PART, body, PART - 1);
	}
	int last = connect_to();
	give_part(last, MORE, body, MORE);
	expect(last, "503", "too many bodies are being received\n");
	snprintf(whole, sizeof whole, "POST %d", PART);
	for (int i = 0; i < HELD; i++) {
		say(held[i], "x");
		expect(held[i], "200", whole);
		close(held[i]);
	}
	/* What was held is given back. */
	give_part(last, MORE, body, MORE);
	snprintf(whole, sizeof whole, "POST %d", MORE);
	expect(last, "200", whole);
	close(last);
	free(body);
}

static void it_stops_while_bodies_come(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		int fd = connect_to();
		say(fd, i % 2 == 0 ? "POST /pieces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n"
		                   : "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\nx");
	}
}

/* Who was admitted and hardly sends anything makes room: a good sender does not wait for the ends of their turns. */
static void bodies_by_the_drop_keep_nobody_out(void **state)
{
	(void)state;
	enum { SLOW = 12, WAIT_MS = 50, TRIES = 400 };
	int slow[SLOW];
	for (int i = 0; i < SLOW; i++) {
		slow[i] = connect_to();
		say(slow[i], "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n");
	}
	int good = connect_to();
	say(good, "POST /good HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx");
	struct pollfd answered = {.fd = good, .events = POLLIN};
	int tries = 0;
	while (tries++ < TRIES && poll(&answered, 1, WAIT_MS) == 0)
		for (int i = 0; i < SLOW; i++)
			(void)give(slow[i], "x", 1);
	assert_true(tries < TRIES);
	expect(good, "200", "POST 1");
	assert_true(weir_http_slow_cut(http) > 0);
	close(good);
	for (int i = 0; i < SLOW; i++)
		close(slow[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bodies_come_whole),
		TEST(a_head_of_two_meanings_is_refused),
		TEST(a_refused_body_is_read_so_that_its_sender_hears_why),
		TEST(a_body_may_come_in_pieces_without_a_bound),
		TEST(who_sends_a_byte_now_and_then_is_cut),
		cmocka_unit_test_setup_teardown(bodies_together_are_bounded, setup_huge, teardown),
		TEST(it_stops_while_bodies_come),
		cmocka_unit_test_setup_teardown(bodies_by_the_drop_keep_nobody_out, setup_narrow, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

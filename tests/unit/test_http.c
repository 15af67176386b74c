/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server as a client meets it: paths, methods, bounds. */
#include "common/base/clock.h"
#include "common/http/http.h"
#include "http_query.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static int calls;

static void hello(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	const char *name = http_query_value(request, "name");
	__atomic_add_fetch((int *)context, 1, __ATOMIC_SEQ_CST);
	weir_text_printf(&reply->body, "hello %s\n", name != NULL ? name : "nobody");
}

static void not_ready(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)context;
	(void)request;
	reply->status = 503;
	reply->content_type = "application/json";
	weir_text_puts(&reply->body, "{}");
}

static void nothing(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)context;
	(void)request;
	reply->status = 204;
}

static void large(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)context;
	(void)request;
	memset(weir_text_reserve(&reply->body, 5000000), 'x', 5000000);
	reply->body.length = 5000000;
}

static weir_http_handle host;

static const struct weir_http_path paths[] = {{"/hello", hello, &calls},
                                              {"/readyz", not_ready, NULL},
                                              {"/nothing", nothing, NULL},
                                              {"/large", large, NULL},
                                              {"/host", host, NULL}};

enum { CONNECTIONS = 8, PATIENCE_MS = 60000 };

static struct weir_http *http;

static int start(unsigned timeout_s)
{
	struct weir_http_options options = {
		.host = "127.0.0.1", .paths = paths, .path_count = 5, .connections = CONNECTIONS, .timeout_s = timeout_s};
	calls = 0;
	return weir_http_start(&options, &http, NULL) == WEIR_OK ? 0 : -1;
}

/* For tests that await the end of a time. */
static int setup_impatient(void **state)
{
	(void)state;
	return start(2);
}

/* For one in which nothing may end by itself. */
static int setup_patient(void **state)
{
	(void)state;
	return start(600);
}

static int setup(void **state)
{
	(void)state;
	return start(0);
}

static int teardown(void **state)
{
	(void)state;
	weir_http_stop(http);
	return 0;
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(0, connect(fd, (struct sockaddr *)&address, sizeof address));
	return fd;
}

/* Everything the server says until it closes. The caller frees. */
static char *read_all(int fd, size_t *length)
{
	struct weir_text text = {0};
	for (;;) {
		ssize_t count = read(fd, weir_text_reserve(&text, 65536), 65536);
		if (count <= 0)
			break;
		text.length += (size_t)count;
	}
	close(fd);
	*length = text.length;
	weir_text_append(&text, "", 1);
	return text.at;
}

static char *ask(const char *request)
{
	size_t length;
	int fd = connect_to(weir_http_port(http));
	char line[256];
	int used = snprintf(line, sizeof line, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", request);
	assert_int_equal(used, write(fd, line, (size_t)used));
	return read_all(fd, &length);
}

static void assert_answer(const char *request, const char *start, const char *end)
{
	char *answer = ask(request);
	if (strncmp(answer, start, strlen(start)) != 0 || strlen(answer) < strlen(end) ||
	    strcmp(answer + strlen(answer) - strlen(end), end) != 0)
		fail_msg("%s: %s", request, answer);
	free(answer);
}

static void host(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)context;
	weir_text_printf(&reply->body, "%s %s\n", weir_http_host(request), weir_http_target(request));
}

/* As it is asked by way of a proxy. Then Host says nothing (RFC 9112, 3.2.2). */
static void a_target_may_be_an_address(void **state)
{
	(void)state;
	assert_answer("GET /host", "HTTP/1.1 200 ", "\r\n\r\nx /host\n");
	assert_answer("GET http://other:1/host", "HTTP/1.1 200 ", "\r\n\r\nother:1 /host\n");
	assert_answer("GET HTTPS://x/hello?name=ann", "HTTP/1.1 200 ", "\r\n\r\nhello ann\n");
	assert_answer("GET http://x", "HTTP/1.1 404 ", "not found\n");
	assert_answer("GET http://x/http://x/hello", "HTTP/1.1 404 ", "not found\n");
	assert_answer("GET http:///hello", "HTTP/1.1 400 ", "the target has no host, or an account before it\n");
	assert_answer("GET http://a:b@x/hello", "HTTP/1.1 400 ", "the target has no host, or an account before it\n");
	assert_int_equal(calls, 1);
}

static void paths_answer_by_their_callbacks(void **state)
{
	(void)state;
	assert_answer("GET /hello", "HTTP/1.1 200 ", "\r\n\r\nhello nobody\n");
	assert_answer("GET /hello?name=a%20b&x", "HTTP/1.1 200 ", "\r\n\r\nhello a b\n");
	assert_answer("GET /hello?name", "HTTP/1.1 200 ", "\r\n\r\nhello \n");
	assert_answer("GET /readyz", "HTTP/1.1 503 ", "\r\n\r\n{}");
	assert_answer("GET /nothing", "HTTP/1.1 204 ", "\r\n\r\n");
	assert_answer("GET /other", "HTTP/1.1 404 ", "\r\n\r\nnot found\n");
	assert_answer("GET /hello/", "HTTP/1.1 404 ", "\r\n\r\nnot found\n");
	char *answer = ask("GET /readyz");
	assert_non_null(strstr(answer, "Content-Type: application/json\r\n"));
	free(answer);
}

static void head_gives_the_length_alone(void **state)
{
	(void)state;
	char *answer = ask("HEAD /hello");
	assert_non_null(strstr(answer, "Content-Length: 13\r\n"));
	assert_string_equal("\r\n\r\n", answer + strlen(answer) - 4);
	free(answer);
}

static void other_methods_are_refused(void **state)
{
	(void)state;
	const char *const methods[] = {"POST /hello", "PUT /hello", "DELETE /other", "OPTIONS *"};
	for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
		char *answer = ask(methods[i]);
		assert_memory_equal("HTTP/1.1 405 ", answer, 13);
		assert_non_null(strstr(answer, "Allow: GET, HEAD\r\n"));
		free(answer);
	}
	assert_int_equal(0, calls);
}

static void a_large_page_comes_whole(void **state)
{
	(void)state;
	int fd = connect_to(weir_http_port(http));
	static const char request[] = "GET /large HTTP/1.0\r\n\r\n";
	assert_int_equal(sizeof request - 1, write(fd, request, sizeof request - 1));
	size_t length;
	free(read_all(fd, &length));
	assert_in_range(length, 5000000, 5001000);
}

static void an_idle_connection_is_closed(void **state)
{
	(void)state;
	size_t length;
	int fd = connect_to(weir_http_port(http));
	assert_int_equal(5, write(fd, "GET /", 5));
	free(read_all(fd, &length)); /* ends, after about the timeout */
	assert_answer("GET /hello", "HTTP/1.1 200 ", "hello nobody\n");
}

static void connections_are_bounded(void **state)
{
	(void)state;
	int fds[20];
	size_t length;
	for (int i = 0; i < 20; i++)
		fds[i] = connect_to(weir_http_port(http));
	for (int i = 0; i < 20; i++)
		free(read_all(fds[i], &length)); /* those within the bound time out, the others are closed at once */
	assert_answer("GET /hello", "HTTP/1.1 200 ", "hello nobody\n");
}

static atomic_bool let_go;
static atomic_int asked; /* so many have a worker */

/* A reply that is made when the test says so. */
static void slow(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)context;
	(void)request;
	asked++;
	while (!let_go)
		usleep(1000);
	weir_text_puts(&reply->body, "at last\n");
}

/* Three quarters of all connections wait for a reply; whoever comes then is not cut for being the only one unheard. */
static void the_last_quarter_is_for_who_comes_newly(void **state)
{
	(void)state;
	static const struct weir_http_path slow_paths[] = {{"/slow", slow, NULL}};
	struct weir_http_options options = {.host = "127.0.0.1",
	                                    .paths = slow_paths,
	                                    .path_count = 1,
	                                    .connections = CONNECTIONS,
	                                    .timeout_s = 600,
	                                    .workers = CONNECTIONS};
	static const char request[] = "GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	int fds[CONNECTIONS];
	size_t length;
	let_go = false;
	asked = 0;
	assert_int_equal(WEIR_OK, weir_http_start(&options, &http, NULL));
	for (int i = 0; i < CONNECTIONS; i++) {
		fds[i] = connect_to(weir_http_port(http));
		usleep(20000);
		assert_int_equal(sizeof request - 1, send(fds[i], request, sizeof request - 1, MSG_NOSIGNAL));
		int64_t until_ms = weir_monotonic_ms() + PATIENCE_MS;
		while (asked <= i) { /* on a busy machine the next one would come before it is heard */
			assert_true(weir_monotonic_ms() < until_ms);
			usleep(1000);
		}
	}
	let_go = true;
	for (int i = 0; i < CONNECTIONS; i++) {
		char *told = read_all(fds[i], &length);
		assert_non_null(strstr(told, "at last"));
		free(told);
	}
	weir_http_stop(http);
}

/* More than there may be, of which none asks, or only half; and then more again, all the while. */
static void who_opens_many_and_asks_nothing_keeps_nobody_out(void **state)
{
	(void)state;
	int fds[5 * CONNECTIONS];
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < CONNECTIONS; i++) {
			int fd = fds[round * CONNECTIONS + i] = connect_to(weir_http_port(http));
			static const char half[] = "GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n";
			size_t said = i % 3 == 0 ? 0 : i % 3 == 1 ? 5 : sizeof half - 1;
			if (said > 0)
				(void)send(fd, half, said, MSG_NOSIGNAL);
			usleep(5000); /* each is taken in, one by one, as they come over a network */
		}
		assert_answer("GET /hello", "HTTP/1.1 200 ", "hello nobody\n");
	}
	for (int i = 0; i < 5 * CONNECTIONS; i++)
		close(fds[i]);
}

struct drips {
	int fds[CONNECTIONS];
	atomic_bool ended;
};

/* A byte of a header for each, far sooner than anyone who takes part counts as idle. */
static void *drip(void *context)
{
	struct drips *drips = context;
	while (!drips->ended) {
		for (int i = 0; i < CONNECTIONS; i++)
			send(drips->fds[i], "y", 1, MSG_NOSIGNAL);
		usleep(20000);
	}
	return NULL;
}

static void requests_by_the_drop_keep_nobody_out(void **state)
{
	(void)state;
	struct drips drips = {.ended = false};
	static const char begin[] = "GET /hello HTTP/1.1\r\nHost: x\r\nX: ",
					  request[] = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n";
	for (int i = 0; i < CONNECTIONS; i++) {
		drips.fds[i] = connect_to(weir_http_port(http));
		assert_int_equal(sizeof begin - 1, send(drips.fds[i], begin, sizeof begin - 1, MSG_NOSIGNAL));
	}
	pthread_t thread;
	assert_int_equal(0, pthread_create(&thread, NULL, drip, &drips));
	bool answered = false;
	for (int64_t until_ms = weir_monotonic_ms() + PATIENCE_MS; !answered && weir_monotonic_ms() < until_ms;) {
		int fd = connect_to(weir_http_port(http)); /* closed at once, or unheard, while there is no room */
		struct timeval patience = {.tv_sec = 1};
		char answer[13];
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
		send(fd, request, sizeof request - 1, MSG_NOSIGNAL);
		answered = recv(fd, answer, sizeof answer, MSG_WAITALL) == sizeof answer &&
		           memcmp(answer, "HTTP/1.1 200 ", sizeof answer) == 0;
		close(fd);
	}
	drips.ended = true;
	pthread_join(thread, NULL);
	for (int i = 0; i < CONNECTIONS; i++)
		close(drips.fds[i]);
	assert_true(answered);
}

static void headers_are_bounded(void **state)
{
	(void)state;
	int fd = connect_to(weir_http_port(http));
	struct weir_text request = {0};
	weir_text_puts(&request, "GET /hello HTTP/1.1\r\nHost: x\r\nX: ");
	memset(weir_text_reserve(&request, 100000), 'x', 100000);
	request.length += 100000;
	weir_text_puts(&request, "\r\n\r\n");
	send(fd, request.at, request.length, MSG_NOSIGNAL);
	weir_text_deinit(&request);
	size_t length;
	free(read_all(fd, &length));
	assert_int_equal(0, calls);
}

enum { CLIENTS = 4, REQUESTS = 25 };

static void *ask_often(void *context)
{
	for (int i = 0; i < REQUESTS; i++)
		free(ask("GET /hello"));
	return context;
}

static void clients_are_served_side_by_side(void **state)
{
	(void)state;
	pthread_t clients[CLIENTS];
	for (int i = 0; i < CLIENTS; i++)
		assert_int_equal(0, pthread_create(&clients[i], NULL, ask_often, NULL));
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(clients[i], NULL);
	assert_int_equal(CLIENTS * REQUESTS, __atomic_load_n(&calls, __ATOMIC_SEQ_CST));
}

static void a_taken_port_and_a_bad_host_are_said(void **state)
{
	(void)state;
	struct weir_http *second = NULL;
	struct weir_error error;
	struct weir_http_options options = {.host = "127.0.0.1", .port = weir_http_port(http)};
	assert_int_equal(WEIR_IO, weir_http_start(&options, &second, &error));
	assert_non_null(strstr(error.text, "Address already in use"));
	options.host = "256.1.1.1.invalid";
	assert_int_equal(WEIR_INVALID, weir_http_start(&options, &second, &error));
	assert_non_null(strstr(error.text, "cannot listen on 256.1.1.1.invalid"));
	weir_http_stop(second);
}

static void every_address_is_listened_on(void **state)
{
	(void)state;
	struct weir_http *all;
	struct weir_http_options options = {.host = "*", .paths = paths, .path_count = 4};
	assert_int_equal(WEIR_OK, weir_http_start(&options, &all, NULL));
	struct weir_http *one = http;
	http = all;
	assert_answer("GET /hello", "HTTP/1.1 200 ", "hello nobody\n");
	http = one;
	weir_http_stop(all);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define test_of_time(name) cmocka_unit_test_setup_teardown(name, setup_impatient, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(paths_answer_by_their_callbacks),
		test(a_target_may_be_an_address),
		test(head_gives_the_length_alone),
		test(other_methods_are_refused),
		test(a_large_page_comes_whole),
		test_of_time(an_idle_connection_is_closed),
		test_of_time(connections_are_bounded),
		cmocka_unit_test(the_last_quarter_is_for_who_comes_newly),
		cmocka_unit_test_setup_teardown(who_opens_many_and_asks_nothing_keeps_nobody_out, setup_patient, teardown),
		test_of_time(requests_by_the_drop_keep_nobody_out),
		test(headers_are_bounded),
		test(clients_are_served_side_by_side),
		test(a_taken_port_and_a_bad_host_are_said),
		test(every_address_is_listened_on),
	};
	return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}

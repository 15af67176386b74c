/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server with workers: callbacks that wait, replies in parts, tags, packing, and who is turned away. */
#include "common/base/alloc.h"
#include "common/bytes/gzip.h"
#include "common/http/http.h"
#include "http_query.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORKERS = 2, WAITING = 3, PARTS = 40, PART_BYTES = 100000 };

/* What callbacks share with the test. */
struct scene {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool closed; /* callbacks of /wait stand before it */
	int inside, ended;
};

static struct scene scene;
static struct weir_http *http;

static void wait_here(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	struct scene *at = context;
	pthread_mutex_lock(&at->mutex);
	at->inside++;
	pthread_cond_broadcast(&at->changed);
	while (at->closed)
		pthread_cond_wait(&at->changed, &at->mutex);
	at->inside--;
	pthread_mutex_unlock(&at->mutex);
	weir_text_printf(&reply->body, "worker %u\n", weir_http_worker(request));
}

static void set_closed(bool closed)
{
	pthread_mutex_lock(&scene.mutex);
	scene.closed = closed;
	pthread_cond_broadcast(&scene.changed);
	pthread_mutex_unlock(&scene.mutex);
}

static void await_inside(int count)
{
	pthread_mutex_lock(&scene.mutex);
	while (scene.inside != count)
		pthread_cond_wait(&scene.changed, &scene.mutex);
	pthread_mutex_unlock(&scene.mutex);
}

/* A reply in parts: each is its number's letter; one is empty. `broken`: the last one fails. */
struct parts {
	int next;
	bool broken;
};

static enum weir_status next_part(void *stream, unsigned worker, struct weir_text *part)
{
	struct parts *parts = stream;
	assert_true(worker < WORKERS);
	int number = parts->next++;
	if (number != 7) {
		memset(weir_text_reserve(part, PART_BYTES), 'a' + number % 26, PART_BYTES);
		part->length += PART_BYTES;
	}
	if (number < PARTS)
		return WEIR_OK;
	return parts->broken ? WEIR_IO : WEIR_END;
}

static void end_parts(void *stream)
{
	free(stream);
	pthread_mutex_lock(&scene.mutex);
	scene.ended++;
	pthread_cond_broadcast(&scene.changed);
	pthread_mutex_unlock(&scene.mutex);
}

static void await_ended(int count)
{
	pthread_mutex_lock(&scene.mutex);
	while (scene.ended < count)
		pthread_cond_wait(&scene.changed, &scene.mutex);
	pthread_mutex_unlock(&scene.mutex);
}

static void in_parts(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)context;
	struct parts *parts = weir_alloc(1, sizeof *parts);
	parts->broken = http_query_value(request, "broken") != NULL;
	weir_text_puts(&reply->body, "begin ");
	reply->more = next_part;
	reply->end = end_parts;
	reply->stream = parts;
	reply->packed = true;
}

static void tagged(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)context;
	const char *size = http_query_value(request, "size");
	size_t length = size != NULL ? (size_t)atoi(size) : 5;
	memset(weir_text_reserve(&reply->body, length), 't', length);
	reply->body.length = length;
	reply->tagged = reply->packed = true;
	weir_http_header(reply, "X-More", "%s", "yes");
}

static void refuse(void *context, const char *words, struct weir_http_reply *reply)
{
	(void)context;
	weir_text_printf(&reply->body, "{\"%u\":\"%s\"}", reply->status, words);
}

static const struct weir_http_path paths[] = {
	{"/wait", wait_here, &scene}, {"/parts", in_parts, NULL}, {"/tagged", tagged, NULL}};

static int start(unsigned turn_s)
{
	struct weir_http_options options = {.host = "127.0.0.1",
	                                    .paths = paths,
	                                    .path_count = 3,
	                                    .connections = 200,
	                                    .timeout_s = 100,
	                                    .request_bytes = 32768,
	                                    .workers = WORKERS,
	                                    .waiting = WAITING,
	                                    .turn_s = turn_s,
	                                    .refuse = refuse};
	scene = (struct scene){.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	return weir_http_start(&options, &http, NULL) == WEIR_OK ? 0 : -1;
}

static int setup(void **state)
{
	(void)state;
	return start(0);
}

static int setup_short_turns(void **state)
{
	(void)state;
	return start(1);
}

static int teardown(void **state)
{
	(void)state;
	weir_http_stop(http);
	return 0;
}

/* ---- a client ---- */

static int send_request(const char *target, const char *fields)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(weir_http_port(http))};
	inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0), small = 4096;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	assert_int_equal(0, connect(fd, (struct sockaddr *)&address, sizeof address));
	struct weir_text text = {0};
	weir_text_printf(&text, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", target, fields);
	assert_int_equal(text.length, send(fd, text.at, text.length, MSG_NOSIGNAL));
	weir_text_deinit(&text);
	return fd;
}

/* All that comes, terminated. The caller frees. */
static char *read_all(int fd, size_t *length)
{
	struct weir_text text = {0};
	ssize_t count;
	while ((count = read(fd, weir_text_reserve(&text, 65536), 65536)) > 0)
		text.length += (size_t)count;
	close(fd);
	if (length != NULL)
		*length = text.length;
	weir_text_append(&text, "", 1);
	return text.at;
}

static char *ask(const char *target, const char *fields)
{
	return read_all(send_request(target, fields), NULL);
}

static void assert_starts(char *answer, const char *start)
{
	if (strncmp(answer, start, strlen(start)) != 0)
		fail_msg("%.300s", answer);
}

/* ---- tests ---- */

static void those_who_wait_hold_up_nobody_else(void **state)
{
	(void)state;
	set_closed(true);
	int waiting = send_request("/wait", "");
	await_inside(1);
	char *answer = ask("/tagged", "");
	assert_starts(answer, "HTTP/1.1 200 ");
	free(answer);
	set_closed(false);
	answer = read_all(waiting, NULL);
	assert_non_null(strstr(answer, "\r\n\r\nworker "));
	free(answer);
}

/* The place of one that has something to read, or has ended. */
static int await_readable(const int *fds, int count)
{
	struct pollfd polled[32];
	for (int i = 0; i < count; i++)
		polled[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
	assert_true(poll(polled, (nfds_t)count, -1) > 0);
	int ready = 0;
	while (polled[ready].revents == 0)
		ready++;
	return ready;
}

static void too_many_who_wait_are_turned_away(void **state)
{
	(void)state;
	enum { ASKED = 20 };
	int fds[ASKED], good = 0, refused = 0;
	set_closed(true);
	for (int i = 0; i < WORKERS; i++)
		fds[i] = send_request("/wait", "");
	await_inside(WORKERS);
	for (int i = WORKERS; i < ASKED; i++)
		fds[i] = send_request("/wait", "");
	/* Those beyond the queue, whichever came too late, are answered while it is full. */
	while (refused < ASKED - WORKERS - WAITING) {
		int ready = await_readable(fds, ASKED);
		char *answer = read_all(fds[ready], NULL);
		assert_starts(answer, "HTTP/1.1 503 ");
		assert_non_null(strstr(answer, "Retry-After: 1\r\n"));
		assert_non_null(strstr(answer, "\r\n\r\n{\"503\":\"too many requests are waiting\"}"));
		free(answer);
		fds[ready] = -1;
		refused++;
	}
	set_closed(false);
	for (int i = 0; i < ASKED; i++) {
		if (fds[i] < 0)
			continue;
		char *answer = read_all(fds[i], NULL);
		good += strncmp(answer, "HTTP/1.1 200 ", 13) == 0;
		free(answer);
	}
	assert_int_equal(WORKERS + WAITING, good);
}

/* The text of chunks. */
static size_t join_chunks(char *at)
{
	char *end = at, *begin = at;
	for (unsigned long size; (size = strtoul(at, &at, 16)) > 0; at += size + 2) {
		memmove(end, at + 2, size);
		end += size;
		at += 2;
	}
	return (size_t)(end - begin);
}

static void assert_parts(const char *body, size_t length)
{
	assert_int_equal(6 + PARTS * PART_BYTES, length);
	assert_memory_equal("begin ", body, 6);
	for (int i = 0; i <= PARTS; i++)
		if (i != 7)
			assert_int_equal('a' + i % 26, body[6 + (i < 7 ? i : i - 1) * PART_BYTES]);
}

static void parts_come_in_order(void **state)
{
	(void)state;
	char *answer = ask("/parts", "");
	assert_non_null(strstr(answer, "Transfer-Encoding: chunked\r\n"));
	char *body = strstr(answer, "\r\n\r\n") + 4;
	assert_parts(body, join_chunks(body));
	free(answer);
	await_ended(1);
}

static size_t unpack(const char *packed, size_t length, char *room, size_t bytes)
{
	z_stream stream = {.next_in = (Bytef *)(uintptr_t)packed,
	                   .avail_in = (unsigned)length,
	                   .next_out = (Bytef *)room,
	                   .avail_out = (unsigned)bytes};
	assert_int_equal(Z_OK, inflateInit2(&stream, 15 + 16));
	assert_int_equal(Z_STREAM_END, inflate(&stream, Z_FINISH));
	inflateEnd(&stream);
	return bytes - stream.avail_out;
}

static void parts_may_be_packed(void **state)
{
	(void)state;
	size_t room = PARTS * PART_BYTES + 1000;
	char *plain = weir_alloc(room, 1), *answer = ask("/parts", "Accept-Encoding: gzip\r\n");
	assert_non_null(strstr(answer, "Content-Encoding: gzip\r\n"));
	char *body = strstr(answer, "\r\n\r\n") + 4;
	assert_parts(plain, unpack(body, join_chunks(body), plain, room));
	free(plain);
	free(answer);
}

static void a_part_that_fails_is_seen(void **state)
{
	(void)state;
	size_t length;
	char *answer = read_all(send_request("/parts?broken", ""), &length);
	assert_starts(answer, "HTTP/1.1 200 ");
	assert_memory_not_equal("0\r\n\r\n", answer + length - 5, 5);
	free(answer);
	await_ended(1);
}

static void readers_in_parts_are_bounded_and_may_leave(void **state)
{
	(void)state;
	int fds[WEIR_HTTP_STREAMS_MAX];
	char begin[13];
	for (int i = 0; i < WEIR_HTTP_STREAMS_MAX; i++) {
		fds[i] = send_request("/parts", "");
		assert_int_equal(sizeof begin, read(fds[i], begin, sizeof begin));
		assert_memory_equal("HTTP/1.1 200 ", begin, sizeof begin);
	}
	char *answer = ask("/parts", "");
	assert_starts(answer, "HTTP/1.1 503 ");
	free(answer);
	answer = ask("/tagged", ""); /* no worker is held by those who do not read */
	assert_starts(answer, "HTTP/1.1 200 ");
	free(answer);
	for (int i = 0; i < WEIR_HTTP_STREAMS_MAX; i++)
		close(fds[i]);
	await_ended(WEIR_HTTP_STREAMS_MAX + 1);
	answer = ask("/parts", "");
	assert_starts(answer, "HTTP/1.1 200 ");
	free(answer);
}

static void a_tag_saves_the_body(void **state)
{
	(void)state;
	char fields[128], tag[32] = "", *answer = ask("/tagged", "");
	assert_non_null(strstr(answer, "X-More: yes\r\n"));
	assert_non_null(strstr(answer, "Cache-Control: private, no-cache\r\n"));
	assert_int_equal(1, sscanf(strstr(answer, "ETag: "), "ETag: %31s", tag));
	free(answer);
	snprintf(fields, sizeof fields, "If-None-Match: \"other\", %s\r\n", tag);
	answer = ask("/tagged", fields);
	assert_starts(answer, "HTTP/1.1 304 ");
	assert_non_null(strstr(answer, tag));
	assert_string_equal("\r\n\r\n", strstr(answer, "\r\n\r\n"));
	free(answer);
	answer = ask("/tagged?size=6", fields);
	assert_starts(answer, "HTTP/1.1 200 ");
	free(answer);
}

static void long_bodies_are_packed_for_those_who_take_it(void **state)
{
	(void)state;
	static const struct {
		const char *fields;
		bool packed;
	} cases[] = {{"", false},
	             {"Accept-Encoding: deflate, gzip;q=0.5\r\n", true},
	             {"Accept-Encoding: gzip;q=0, deflate;q=1\r\n", false},
	             {"Accept-Encoding: gzip ;q=0.000\r\n", false},
	             {"Accept-Encoding: GZIP\r\n", true}};
	char plain[5001];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t length;
		char *answer = read_all(send_request("/tagged?size=5000", cases[i].fields), &length);
		char *body = strstr(answer, "\r\n\r\n") + 4;
		assert_int_equal(cases[i].packed, strstr(answer, "Content-Encoding: gzip\r\n") != NULL);
		size_t left = length - (size_t)(body - answer);
		assert_int_equal(5000, cases[i].packed ? unpack(body, left, plain, sizeof plain) : left);
		free(answer);
	}
}

static void long_addresses_and_fields_are_refused(void **state)
{
	(void)state;
	struct weir_text text = {0};
	weir_text_puts(&text, "/tagged?x=");
	memset(weir_text_reserve(&text, 9000), 'x', 9000);
	text.length += 9000;
	weir_text_append(&text, "", 1);
	char *answer = ask(text.at, "");
	assert_starts(answer, "HTTP/1.1 414 ");
	assert_non_null(strstr(answer, "{\"414\":"));
	free(answer);
	weir_text_clear(&text);
	for (int i = 0; i < 180; i++)
		weir_text_printf(&text, "X-%0100d: y\r\n", i);
	weir_text_append(&text, "", 1);
	answer = ask("/tagged", text.at);
	assert_starts(answer, "HTTP/1.1 431 ");
	free(answer);
	weir_text_deinit(&text);
	answer = ask("/none", "");
	assert_starts(answer, "HTTP/1.1 404 ");
	assert_non_null(strstr(answer, "{\"404\":\"not found\"}"));
	free(answer);
}

/* Never idle for long enough to be ended for that, it is cut when its turn is over. */
static void a_request_by_the_drop_is_cut(void **state)
{
	(void)state;
	int fd = send_request("/tagged", "X: y");
	int sent = 0;
	while (send(fd, "y", 1, MSG_NOSIGNAL) == 1 && sent++ < 600)
		usleep(50000);
	assert_in_range(sent, 10, 599);
	free(read_all(fd, NULL));
}

static void *stop(void *context)
{
	weir_http_stop(http);
	return context;
}

static void it_stops_while_some_wait_and_some_read(void **state)
{
	(void)state;
	int waiting[WORKERS + 1], reading = send_request("/parts", "");
	char begin[13];
	assert_int_equal(sizeof begin, read(reading, begin, sizeof begin));
	set_closed(true);
	for (int i = 0; i <= WORKERS; i++) {
		waiting[i] = send_request("/wait", "");
		if (i == WORKERS - 1)
			await_inside(WORKERS);
	}
	pthread_t thread;
	assert_int_equal(0, pthread_create(&thread, NULL, stop, NULL));
	set_closed(false);
	pthread_join(thread, NULL);
	await_ended(1);
	close(reading);
	for (int i = 0; i <= WORKERS; i++)
		free(read_all(waiting[i], NULL));
	http = NULL;
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(those_who_wait_hold_up_nobody_else),
		test(too_many_who_wait_are_turned_away),
		test(parts_come_in_order),
		test(parts_may_be_packed),
		test(a_part_that_fails_is_seen),
		test(readers_in_parts_are_bounded_and_may_leave),
		test(a_tag_saves_the_body),
		test(long_bodies_are_packed_for_those_who_take_it),
		test(long_addresses_and_fields_are_refused),
		cmocka_unit_test_setup_teardown(a_request_by_the_drop_is_cut, setup_short_turns, teardown),
		test(it_stops_while_some_wait_and_some_read),
	};
	return cmocka_run_group_tests_name("http_workers", tests, NULL, NULL);
}

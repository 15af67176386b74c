/* SPDX-License-Identifier: Apache-2.0 */
/* The bounds of the surface by gRPC, by frames of HTTP/2 as they stand: what is slow, too much, late or reset. */
#include "limiter/check/grpc/grpc_server.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/json/json.h"
#include "common/policy/policy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, GOAWAY = 7, WINDOW_UPDATE = 8, CONTINUATION = 9 };
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };
enum { PENDING_MAX = 1 << 14, PATIENCE_MS = 20000, STREAMS = 64 };

static const char limit_path[] = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
static const char quota_path[] = "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas";
static const char zones_text[] = "[{\"name\":\"z\",\"key\":[\"user\"],\"limits\":[{\"algorithm\":\"sliding_window\","
								 "\"rate\":10,\"window\":\"1m\"}]}]";
/* domain "rl", one descriptor: user=ann */
static const char request_bytes[] = "\0\0\0\0\x15\x0a\x02rl\x12\x0f\x0a\x0d\x0a\x04user\x12\x05"
									"annie";

struct scene {
	struct weir_policy *policy;
	struct link_server *server;
	const struct link_figures *figures;
	uint16_t port;
	int fd;                    /* the client's */
	const char *authorization; /* that its calls have; NULL: none */
	bool later;
	struct check_answer *pending;
	uint32_t pending_count;
	/* what came */
	uint8_t rest[1 << 16];
	size_t rest_length;
	bool ended[STREAMS], reset[STREAMS], left, closed;
};

static void ask(void *context, const struct check_ask *asks, uint32_t count, struct check_answer *answers)
{
	struct scene *scene = context;
	for (uint32_t i = 0; i < count; i++) {
		assert_true(weir_span_equal(asks[i].key, weir_span_of("annie")));
		answers[i] = (struct check_answer){.outcome = CHECK_PASSED,
		                                   .limit = 10,
		                                   .window_ms = 60000,
		                                   .remaining = 9,
		                                   .retry_after_ms = -1,
		                                   .reset_after_ms = 60000,
		                                   .ticket = asks[i].ticket};
		if (!scene->later)
			continue;
		assert_true(scene->pending_count < PENDING_MAX);
		scene->pending[scene->pending_count++] = answers[i];
		answers[i].outcome = CHECK_LATER;
	}
}

static const struct weir_policy *policy(void *context)
{
	const struct scene *scene = context;
	return scene->policy;
}

static void answer_all(struct scene *scene)
{
	while (scene->pending_count > 0)
		link_server_answered(scene->server, &scene->pending[--scene->pending_count]);
}

/* @param stall_ms  0: the protocol's */
static void set_up(struct scene *scene, int64_t stall_ms, struct grpc_options options)
{
	const struct link_options common = {.judge = {.context = scene, .ask = ask, .policy = policy},
	                                    .stall_ms = stall_ms};
	struct weir_json_document *document;
	struct weir_error error;
	const struct check_request_options matching = {0};
	*scene = (struct scene){.fd = -1, .pending = weir_alloc(PENDING_MAX, sizeof *scene->pending)};
	assert_int_equal(weir_json_parse("zones", zones_text, sizeof zones_text - 1, &document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	assert_int_equal(weir_policy_parse(&root, NULL, &scene->policy, &error), WEIR_OK);
	assert_int_equal(weir_policy_follow(scene->policy, NULL, 0, &error), WEIR_OK);
	weir_json_document_free(document);
	assert_int_equal(check_request_new(&matching, &options.request, &error), WEIR_OK);
	scene->server = grpc_server_new(&common, &options);
	scene->figures = &scene->server->figures;
	assert_int_equal(link_server_listen(scene->server, "127.0.0.1", 0, false, NULL, &scene->port, &error), WEIR_OK);
}

static void tear_down(struct scene *scene)
{
	if (scene->fd >= 0)
		close(scene->fd);
	answer_all(scene);
	link_server_free(scene->server);
	weir_policy_free(scene->policy);
	free(scene->pending);
}

static void connect_client(struct scene *scene)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(scene->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int at_once = 1;
	scene->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setsockopt(scene->fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once), 0);
	assert_int_equal(connect(scene->fd, (struct sockaddr *)&address, sizeof address), 0);
}

static void take_frame(struct scene *scene, uint8_t type, uint8_t flags, uint32_t stream)
{
	scene->left |= type == GOAWAY;
	if (stream >= STREAMS)
		return;
	scene->reset[stream] |= type == RST_STREAM;
	scene->ended[stream] |= (type == HEADERS || type == DATA) && (flags & END_STREAM) != 0;
}

static void take_frames(struct scene *scene)
{
	const uint8_t *at = scene->rest, *end = scene->rest + scene->rest_length;
	while (end - at >= 9) {
		size_t length = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];
		if ((size_t)(end - at) < 9 + length)
			break;
		take_frame(scene, at[3], at[4], (uint32_t)at[5] << 24 | (uint32_t)at[6] << 16 | (uint32_t)at[7] << 8 | at[8]);
		at += 9 + length;
	}
	scene->rest_length = (size_t)(end - at);
	memmove(scene->rest, at, scene->rest_length);
}

/* One turn of the server, and what it wrote. */
static void turn(struct scene *scene)
{
	link_server_turn(scene->server, 5);
	while (scene->fd >= 0 && !scene->closed) {
		ssize_t got =
			recv(scene->fd, scene->rest + scene->rest_length, sizeof scene->rest - scene->rest_length, MSG_DONTWAIT);
		scene->closed = got == 0 || (got < 0 && errno != EAGAIN);
		if (got <= 0)
			return;
		scene->rest_length += (size_t)got;
		take_frames(scene);
	}
}

#define UNTIL(scene, condition)                                                 \
	for (int64_t until_ms = weir_monotonic_ms() + PATIENCE_MS; !(condition);) { \
		turn(scene);                                                            \
		if (weir_monotonic_ms() > until_ms)                                     \
			fail_msg("never: %s", #condition);                                  \
	}

static void send_all(struct scene *scene, const void *bytes, size_t length)
{
	const char *at = bytes;
	while (length > 0) {
		ssize_t put = send(scene->fd, at, length, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (put < 0 && errno != EAGAIN) {
			scene->closed = true;
			return;
		}
		if (put < 0) {
			turn(scene);
			continue;
		}
		at += put;
		length -= (size_t)put;
	}
}

static void send_frame(struct scene *scene, uint8_t type, uint8_t flags, uint32_t stream, const void *bytes,
                       size_t length)
{
	const uint8_t head[] = {
		(uint8_t)(length >> 16), (uint8_t)(length >> 8),  (uint8_t)length,        type,           flags,
		(uint8_t)(stream >> 24), (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};
	send_all(scene, head, sizeof head);
	send_all(scene, bytes, length);
}

static void greet(struct scene *scene)
{
	connect_client(scene);
	send_all(scene, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
	send_frame(scene, SETTINGS, 0, 0, NULL, 0);
}

/* A field without compression. */
static size_t put_field(uint8_t *at, const char *name, const char *value)
{
	size_t name_length = strlen(name), value_length = strlen(value);
	assert_true(name_length < 127 && value_length < 127);
	at[0] = 0;
	at[1] = (uint8_t)name_length;
	memcpy(at + 2, name, name_length);
	at[2 + name_length] = (uint8_t)value_length;
	memcpy(at + 3 + name_length, value, value_length);
	return 3 + name_length + value_length;
}

static void send_head(struct scene *scene, uint32_t stream, const char *path, const char *timeout)
{
	uint8_t head[512];
	size_t length = put_field(head, ":method", "POST");
	length += put_field(head + length, ":scheme", "http");
	length += put_field(head + length, ":authority", "x");
	length += put_field(head + length, ":path", path);
	length += put_field(head + length, "content-type", "application/grpc");
	if (timeout != NULL)
		length += put_field(head + length, "grpc-timeout", timeout);
	if (scene->authorization != NULL)
		length += put_field(head + length, "authorization", scene->authorization);
	send_frame(scene, HEADERS, END_HEADERS, stream, head, length);
}

static void send_call(struct scene *scene, uint32_t stream, const char *timeout)
{
	send_head(scene, stream, limit_path, timeout);
	send_frame(scene, DATA, END_STREAM, stream, request_bytes, sizeof request_bytes - 1);
}

#define COUNT(scene, member) ((int)weir_counter_read(&(scene)->figures->member))

static void a_call_is_answered(void **state)
{
	(void)state;
	struct scene scene;
	for (int later = 0; later <= 1; later++) {
		set_up(&scene, 0, (struct grpc_options){0});
		scene.later = later != 0;
		greet(&scene);
		send_call(&scene, 1, NULL);
		send_call(&scene, 3, "1H");
		if (scene.later) {
			UNTIL(&scene, scene.pending_count == 2);
			assert_false(scene.ended[1] || scene.ended[3]);
			answer_all(&scene);
		}
		UNTIL(&scene, scene.ended[1] && scene.ended[3]);
		assert_int_equal(COUNT(&scene, kinds[0]), 2);
		UNTIL(&scene, COUNT(&scene, in_flight) == 0);
		tear_down(&scene);
	}
}

static void what_is_unknown_is_answered_before_its_end(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene, 0, (struct grpc_options){0});
	greet(&scene);
	send_head(&scene, 1, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", NULL);
	UNTIL(&scene, scene.ended[1] && scene.reset[1]);
	assert_int_equal(COUNT(&scene, unknown), 1);
	tear_down(&scene);
}

static void what_is_slow_ends(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene, 50, (struct grpc_options){.greeting_ms = 50});
	connect_client(&scene);
	UNTIL(&scene, scene.closed); /* it never greeted */
	close(scene.fd);
	scene.closed = false;
	greet(&scene);
	send_head(&scene, 1, limit_path, NULL);
	send_frame(&scene, DATA, 0, 1, "\0\0", 2);
	UNTIL(&scene, scene.reset[1]); /* its message never ended */
	assert_false(scene.closed);
	send_all(&scene,
	         "\0\0\x10\0\0\0\0\0\x03"
	         "123",
	         12);
	send_all(&scene,
	         "\0\0\x10\x01\x04\0\0\0\x03"
	         "123",
	         12);
	UNTIL(&scene, scene.closed); /* a frame never ended */
	assert_true(COUNT(&scene, stalled) >= 2);
	tear_down(&scene);
}

/* What a client sends beside a message that does not end is no part of it. */
static void a_message_that_does_not_end_is_not_renewed(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene, 50, (struct grpc_options){0});
	greet(&scene);
	send_head(&scene, 1, quota_path, NULL);
	send_frame(&scene, DATA, 0, 1, "\0\0\0\0\x10\x0a", 6);
	send_head(&scene, 3, quota_path, NULL); /* this one waits between messages */
	int64_t until_ms = weir_monotonic_ms() + PATIENCE_MS;
	while (!scene.reset[1] && weir_monotonic_ms() < until_ms) {
		send_frame(&scene, WINDOW_UPDATE, 0, 1, "\0\0\0\1", 4);
		turn(&scene);
		usleep(2000); /* who sends many of these is cut off */
	}
	assert_true(scene.reset[1]);
	assert_false(scene.reset[3] || scene.closed);
	tear_down(&scene);
}

static void header_fields_that_do_not_end_are_not_renewed(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene, 600, (struct grpc_options){0});
	greet(&scene);
	send_frame(&scene, HEADERS, 0, 1, NULL, 0);
	int64_t next_ms = weir_monotonic_ms() + 300, until_ms = weir_monotonic_ms() + PATIENCE_MS;
	while (!scene.closed && weir_monotonic_ms() < until_ms) {
		if (weir_monotonic_ms() >= next_ms) {
			send_frame(&scene, CONTINUATION, 0, 1, NULL, 0);
			next_ms += 300;
		}
		turn(&scene);
	}
	assert_true(scene.closed);
	assert_int_equal(COUNT(&scene, stalled), 1);
	assert_int_equal(COUNT(&scene, protocol_errors), 0);
	tear_down(&scene);
}

/* Frames of a stream that is over are whole, too, although libnghttp2 tells nobody of them. */
static void a_client_may_rest_after_any_frame(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene, 50, (struct grpc_options){0});
	greet(&scene);
	send_call(&scene, 1, NULL);
	UNTIL(&scene, scene.ended[1]);
	send_frame(&scene, WINDOW_UPDATE, 0, 1, "\0\0\0\1", 4);
	for (int64_t until_ms = weir_monotonic_ms() + 2500; weir_monotonic_ms() < until_ms;)
		turn(&scene);
	assert_false(scene.closed);
	send_call(&scene, 3, NULL);
	UNTIL(&scene, scene.ended[3]);
	tear_down(&scene);
}

static void a_stream_that_is_not_read_ends(void **state)
{
	(void)state;
	static const char reports[] = "\0\0\0\0\x17\x0a\x02rl\x12\x11\x0a\x0f\x0a\x0d\x0a\x04user\x12\x05"
								  "annie";
	struct scene scene;
	set_up(&scene, 50, (struct grpc_options){0});
	greet(&scene);
	send_frame(&scene, SETTINGS, 0, 0, "\0\4\0\0\0\0", 6); /* it takes no bytes of answers */
	send_head(&scene, 1, quota_path, NULL);
	send_frame(&scene, DATA, 0, 1, reports, sizeof reports - 1);
	UNTIL(&scene, scene.reset[1]);
	assert_false(scene.closed);
	UNTIL(&scene, COUNT(&scene, buffered_bytes) == 0); /* with its bucket */
	tear_down(&scene);
}

static void who_shows_no_password_ends(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene, 0, (struct grpc_options){.greeting_ms = 50, .password = "secret"});
	static const char *const shown[] = {NULL, "Bearer wrong", "Bearer secret"};
	for (size_t i = 0; i < 3; i++) {
		scene.authorization = shown[i];
		scene.closed = scene.left = scene.ended[1] = false;
		greet(&scene);
		if (i > 0)
			send_call(&scene, 1, NULL);
		if (i < 2) {
			UNTIL(&scene, scene.closed);
			assert_true(scene.left); /* it was told */
			close(scene.fd);
		}
	}
	UNTIL(&scene, scene.ended[1]);
	for (int64_t until_ms = weir_monotonic_ms() + 2500; weir_monotonic_ms() < until_ms;)
		turn(&scene);
	assert_false(scene.closed || scene.left);
	assert_int_equal(COUNT(&scene, failed_logins), 1);
	assert_int_equal(COUNT(&scene, stalled), 2);
	tear_down(&scene);
}

static void a_deadline_ends_waiting(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene, 0, (struct grpc_options){0});
	scene.later = true;
	greet(&scene);
	send_call(&scene, 1, "30m");
	send_call(&scene, 3, NULL);
	UNTIL(&scene, scene.ended[1]);
	assert_int_equal(COUNT(&scene, late), 1);
	assert_int_equal(scene.pending_count, 2);
	assert_false(scene.ended[3]);
	assert_int_equal(COUNT(&scene, in_flight), 2); /* whoever judges has its key still */
	answer_all(&scene);
	UNTIL(&scene, scene.ended[3] && COUNT(&scene, in_flight) == 0);
	tear_down(&scene);
}

static void calls_that_were_reset_are_bounded(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene, 0, (struct grpc_options){0});
	scene.later = true;
	greet(&scene);
	for (uint32_t i = 0; i < 3 * GRPC_STREAMS_MAX && !scene.closed; i++) {
		send_call(&scene, 2 * i + 1, NULL);
		send_frame(&scene, RST_STREAM, 0, 2 * i + 1, "\0\0\0\x08", 4);
		if (i % 100 == 0)
			turn(&scene);
	}
	UNTIL(&scene, scene.closed);
	assert_int_equal(COUNT(&scene, in_flight), 2 * GRPC_STREAMS_MAX);
	assert_int_equal(COUNT(&scene, connections), 1);
	answer_all(&scene);
	UNTIL(&scene, COUNT(&scene, in_flight) == 0 && COUNT(&scene, connections) == 0);
	assert_int_equal(COUNT(&scene, buffered_bytes), 0);
	tear_down(&scene);
}

enum flood_place { OF_CONNECTION, OF_OPEN_CALL, OF_ENDED_CALL };

/* Sends as fast as it can be read. @return whether it was cut off */
static bool flood(const char *path, enum flood_place place, const void *bytes, size_t length)
{
	struct scene scene;
	static char chunk[1 << 16];
	size_t filled = 0;
	for (; filled + length <= sizeof chunk; filled += length)
		memcpy(chunk + filled, bytes, length);
	set_up(&scene, 0, (struct grpc_options){0});
	greet(&scene);
	if (place == OF_ENDED_CALL)
		send_call(&scene, 1, NULL);
	if (place == OF_OPEN_CALL)
		send_head(&scene, 1, path, NULL);
	if (place == OF_OPEN_CALL && path == quota_path)
		send_frame(&scene, DATA, 0, 1, "\0\0\0\0\x04\x0a\x02rl", 9);
	if (place == OF_ENDED_CALL)
		UNTIL(&scene, scene.ended[1]);
	for (int64_t until_ms = weir_monotonic_ms() + PATIENCE_MS; !scene.closed && weir_monotonic_ms() < until_ms;) {
		send_all(&scene, chunk, filled);
		turn(&scene);
	}
	bool told = scene.left && scene.closed;
	tear_down(&scene);
	return told;
}

/* Whatever their kind: libnghttp2 passes over many, and tells nobody. */
static void frames_that_ask_nothing_are_bounded(void **state)
{
	(void)state;
	static char large[9 + 16384] = "\0\x40\0\x77\0\0\0\0\0", padded[9 + 256] = "\0\1\0\0\x08\0\0\0\1\xff";
#define FLOOD(place, text)            \
	{                                 \
		place, text, sizeof(text) - 1 \
	}
	static const struct {
		enum flood_place place;
		const char *bytes;
		size_t length;
	} floods[] = {
		FLOOD(OF_CONNECTION, "\0\0\x08\6\0\0\0\0\0beat0123"),
		FLOOD(OF_CONNECTION, "\0\0\0\4\0\0\0\0\0"),
		FLOOD(OF_CONNECTION, "\0\0\5\2\0\0\0\0\1\0\0\0\0\1"),    /* PRIORITY */
		FLOOD(OF_CONNECTION, "\0\0\4\x8\0\0\0\0\0\0\0\0\1"),     /* WINDOW_UPDATE */
		FLOOD(OF_CONNECTION, "\0\0\0\x77\0\0\0\0\0"),            /* unknown */
		FLOOD(OF_CONNECTION, "\0\0\3\xa\0\0\0\0\0\0\0x"),        /* ALTSVC */
		FLOOD(OF_CONNECTION, "\0\0\0\xc\0\0\0\0\0"),             /* ORIGIN */
		FLOOD(OF_CONNECTION, "\0\0\7\x10\0\0\0\0\0\0\0\0\1u=1"), /* PRIORITY_UPDATE */
		{OF_CONNECTION, large, sizeof large},                    /* unknown, of 16 KiB */
		FLOOD(OF_OPEN_CALL, "\0\0\0\0\0\0\0\0\1"),               /* empty DATA */
		FLOOD(OF_OPEN_CALL, "\0\0\1\0\x08\0\0\0\1\0"),           /* DATA that is padding */
		{OF_OPEN_CALL, padded, sizeof padded},
		FLOOD(OF_OPEN_CALL, "\0\0\0\x77\0\0\0\0\1"),
		FLOOD(OF_ENDED_CALL, "\0\0\0\x77\0\0\0\0\1"),
		FLOOD(OF_ENDED_CALL, "\0\0\4\x8\0\0\0\0\1\0\0\0\1"), /* WINDOW_UPDATE */
		FLOOD(OF_ENDED_CALL, "\0\0\4\x8\0\0\0\0\1\0\0\0\0"), /* WINDOW_UPDATE of 0 */
		FLOOD(OF_ENDED_CALL, "\0\0\4\3\0\0\0\0\1\0\0\0\x8"), /* RST_STREAM */
		FLOOD(OF_ENDED_CALL, "\0\0\5\2\0\0\0\0\1\0\0\0\0\1"),
	};
	for (size_t i = 0; i < sizeof floods / sizeof *floods; i++)
		if (!flood(limit_path, floods[i].place, floods[i].bytes, floods[i].length))
			fail_msg("flood %zu was not told why", i);
	/* messages that ask nothing, of a stream that may have any number of them */
	assert_true(flood(quota_path, OF_OPEN_CALL, "\0\0\5\0\0\0\0\0\1\0\0\0\0\0", 14));
}

/* What an honest client sends beside its calls, however fast it calls. */
static void a_busy_client_is_not_cut_off(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene, 0, (struct grpc_options){0});
	greet(&scene);
	for (uint32_t stream = 1; stream < 2 * GRPC_FRAMES_MAX; stream += 2) {
		send_call(&scene, stream, NULL);
		send_frame(&scene, WINDOW_UPDATE, 0, 0, "\0\0\1\0", 4);
		send_frame(&scene, PING, 0, 0, "12345678", 8);
		if (stream % 1000 == 1)
			UNTIL(&scene, COUNT(&scene, in_flight) == 0 && COUNT(&scene, kinds[0]) > (int)(stream / 2));
		send_frame(&scene, WINDOW_UPDATE, 0, stream, "\0\0\0\1", 4); /* its call may be over */
		if (stream % 8 == 1)
			send_frame(&scene, RST_STREAM, 0, stream, "\0\0\0\0", 4);
	}
	UNTIL(&scene, COUNT(&scene, in_flight) == 0);
	assert_false(scene.closed || scene.left);
	assert_int_equal(COUNT(&scene, protocol_errors), 0);
	tear_down(&scene);
}

static void what_is_too_large_is_refused(void **state)
{
	(void)state;
	struct scene scene;
	static const uint8_t zeros[16000];
	set_up(&scene, 0, (struct grpc_options){0});
	greet(&scene);
	send_head(&scene, 1, limit_path, NULL);
	send_frame(&scene, DATA, 0, 1, "\0\0\x08\0\0", 5); /* 512 KiB, it says */
	UNTIL(&scene, scene.ended[1]);
	send_frame(&scene, SETTINGS, ACK, 0, NULL, 0); /* as much as the server's settings say may be sent from here on */
	send_head(&scene, 3, limit_path, NULL);
	send_frame(&scene, DATA, 0, 3, "\0\0\0\0\x01", 5);
	for (size_t sent = 0; sent <= GRPC_MESSAGE_MAX_BYTES; sent += sizeof zeros)
		send_frame(&scene, DATA, 0, 3, zeros, sizeof zeros);
	UNTIL(&scene, scene.ended[3]);
	uint8_t head[8192];
	size_t length = put_field(head, ":method", "POST");
	length += put_field(head + length, ":scheme", "http");
	length += put_field(head + length, ":authority", "x");
	length += put_field(head + length, ":path", limit_path);
	const size_t much = length;
	for (int i = 0; i < 60; i++) /* twice beyond GRPC_HEADERS_MAX_BYTES by what HTTP/2 counts */
		length += put_field(
			head + length, "x-much",
			"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789");
	for (uint32_t stream = 5; stream < 9; stream += 2) { /* the connection goes on */
		send_frame(&scene, HEADERS, 0, stream, head, length);
		send_frame(&scene, 9, 0, stream, head, 0);
		send_frame(&scene, 9, END_HEADERS, stream, head + much, length - much);
		UNTIL(&scene, scene.ended[stream]);
	}
	assert_int_equal(COUNT(&scene, protocol_errors), 0);
	for (int i = 0; i < 12; i++) /* what libnghttp2 does not unpack ends the connection, and is counted */
		send_frame(&scene, i == 0 ? HEADERS : 9, i == 11 ? END_HEADERS : 0, 9, head + (i > 0 ? much : 0),
		           length - (i > 0 ? much : 0));
	UNTIL(&scene, scene.closed);
	assert_true(COUNT(&scene, protocol_errors) > 0);
	tear_down(&scene);
}

static void it_ends_when_what_was_asked_is_answered(void **state)
{
	(void)state;
	struct scene scene;
	set_up(&scene, 0, (struct grpc_options){0});
	scene.later = true;
	greet(&scene);
	send_call(&scene, 1, NULL);
	send_head(&scene, 3, "/grpc.health.v1.Health/Watch", NULL);
	send_frame(&scene, DATA, 0, 3, "\0\0\0\0\0", 5);
	UNTIL(&scene, scene.pending_count == 1);
	link_server_stop(scene.server);
	UNTIL(&scene, scene.left && scene.ended[3]);
	assert_false(scene.closed);
	answer_all(&scene);
	UNTIL(&scene, scene.ended[1] && scene.closed && COUNT(&scene, connections) == 0);
	tear_down(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_answered),
		cmocka_unit_test(what_is_unknown_is_answered_before_its_end),
		cmocka_unit_test(what_is_slow_ends),
		cmocka_unit_test(a_message_that_does_not_end_is_not_renewed),
		cmocka_unit_test(header_fields_that_do_not_end_are_not_renewed),
		cmocka_unit_test(a_client_may_rest_after_any_frame),
		cmocka_unit_test(a_stream_that_is_not_read_ends),
		cmocka_unit_test(who_shows_no_password_ends),
		cmocka_unit_test(a_deadline_ends_waiting),
		cmocka_unit_test(calls_that_were_reset_are_bounded),
		cmocka_unit_test(frames_that_ask_nothing_are_bounded),
		cmocka_unit_test(a_busy_client_is_not_cut_off),
		cmocka_unit_test(what_is_too_large_is_refused),
		cmocka_unit_test(it_ends_when_what_was_asked_is_answered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

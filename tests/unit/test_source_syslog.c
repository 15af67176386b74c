/* SPDX-License-Identifier: Apache-2.0 */
/* The source `syslog`: datagrams and connections as lines, each once, and what becomes of those that are lost. */
#include "collector/source/kinds/source_kinds.h"
#include "collector/source/source.h"
#include "collector/source/syslog/source_syslog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 60000 };

struct scene {
	struct weir_json_document *document;
	struct source *source;
	uint16_t port;
	char *text; /* lines taken so far; "line+SKIPPED$" of a long one */
	size_t length;
	uint64_t position;
};

/* A port that was free a moment ago. */
static uint16_t free_port(int type)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, type, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	close(fd);
	return ntohs(address.sin_port);
}

static enum weir_status try_open(struct scene *scene, const char *config, bool once, struct weir_error *error)
{
	*scene = (struct scene){.text = weir_alloc(1, 1)};
	assert_int_equal(weir_json_parse("config", config, strlen(config), &scene->document, error), WEIR_OK);
	struct weir_json root = weir_json_root(scene->document);
	struct source_context context = {.once = once};
	return source_new(&root, &context, &scene->source, error);
}

static void scene_close(struct scene *scene)
{
	if (scene->source != NULL)
		scene->source->ops->free(scene->source);
	weir_json_document_free(scene->document);
	free(scene->text);
}

/* A source on a free port; others may take it in between, so it is tried some times. */
static void scene_open(struct scene *scene, bool tcp, const char *more)
{
	struct weir_error error = {.text = ""};
	for (int i = 0; i < 20; i++) {
		char config[256];
		uint16_t port = free_port(tcp ? SOCK_STREAM : SOCK_DGRAM);
		snprintf(config, sizeof config, "{\"type\":\"syslog\",\"listen\":\"%s://127.0.0.1:%u\"%s}", tcp ? "tcp" : "udp",
		         port, more);
		enum weir_status status = try_open(scene, config, false, &error);
		scene->port = port;
		if (status == WEIR_OK)
			return;
		scene_close(scene);
	}
	fail_msg("%s", error.text);
}

static int connect_to(const struct scene *scene, int type)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(scene->port)};
	int fd = socket(AF_INET, type, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static bool step(struct scene *scene)
{
	struct source_chunk chunk;
	struct weir_error error;
	enum weir_status status = scene->source->ops->collect(scene->source, NULL, &chunk, &error);
	if (status == WEIR_AGAIN)
		return false;
	assert_int_equal(status, WEIR_OK);
	assert_true(chunk.length > 0);
	if (scene->position != 0)
		assert_int_equal(chunk.position, scene->position);
	scene->position = chunk.position + chunk.length + chunk.skipped;
	scene->text = weir_realloc(scene->text, scene->length + chunk.length + 32, 1);
	memcpy(scene->text + scene->length, chunk.data, chunk.length);
	scene->length += chunk.length;
	assert_int_equal(chunk.too_long, chunk.skipped > 0);
	if (chunk.too_long)
		scene->length += (size_t)sprintf(scene->text + scene->length, "+%llu$", (unsigned long long)chunk.skipped);
	return true;
}

static void read_until(struct scene *scene, bool (*done)(const struct scene *scene, const void *wanted),
                       const void *wanted)
{
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	while (!done(scene, wanted) && weir_monotonic_ms() < end_ms)
		if (!step(scene)) {
			struct pollfd ready = {.fd = scene->source->ops->fd(scene->source), .events = POLLIN};
			assert_true(ready.fd >= 0);
			poll(&ready, 1, 10);
		}
}

static bool has_length(const struct scene *scene, const void *wanted)
{
	return scene->length >= strlen(wanted);
}

static void expect(struct scene *scene, const char *text)
{
	read_until(scene, has_length, text);
	assert_int_equal(scene->length, strlen(text));
	assert_memory_equal(scene->text, text, scene->length);
	scene->length = 0;
}

static struct source_status status_of(const struct scene *scene)
{
	struct source_status status;
	assert_int_equal(scene->source->ops->status(scene->source, &status, 1), 1);
	return status;
}

static void a_datagram_is_a_line(void **state)
{
	(void)state;
	struct scene scene;
	scene_open(&scene, false, "");
	int fd = connect_to(&scene, SOCK_DGRAM);
	say(fd, "<34>1 2024-01-01T00:00:00Z h a - - - one\n");
	say(fd, "<34>1 2024-01-01T00:00:00Z h a - - - two\nlines");
	say(fd, "nothing that is known");
	expect(&scene, "<34>1 2024-01-01T00:00:00Z h a - - - one\n<34>1 2024-01-01T00:00:00Z h a - - - two lines\n"
	               "nothing that is known\n");
	assert_false(step(&scene));
	struct source_status status = status_of(&scene);
	assert_int_equal(status.own[SYSLOG_RECEIVED], 3);
	assert_int_equal(status.own[SYSLOG_MALFORMED], 1);
	assert_int_equal(status.own[SYSLOG_DROPPED], 0);
	assert_false(scene.source->ops->replayable);
	close(fd);
	scene_close(&scene);
}

static void long_datagrams_are_counted(void **state)
{
	(void)state;
	struct scene scene;
	scene_open(&scene, false, ",\"line_max\":\"1KiB\"");
	int fd = connect_to(&scene, SOCK_DGRAM);
	char text[3000], expected[4000];
	memset(text, 'x', sizeof text);
	memcpy(text, "<34>1 - h a - - - ", 18);
	text[2000] = '\0';
	say(fd, text);
	snprintf(expected, sizeof expected, "%.1024s+976$", text);
	expect(&scene, expected);
	/* one whose head makes it too long */
	memcpy(text, "<34>Jan  1 00:00:00 h a: ", 25);
	text[1024] = '\0';
	say(fd, text);
	say(fd, "<34>1 2024-01-01T00:00:00Z h a - - - short");
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	while (status_of(&scene).own[SYSLOG_RECEIVED] < 3 && weir_monotonic_ms() < end_ms)
		step(&scene);
	while (step(&scene))
		continue;
	assert_int_equal(status_of(&scene).own[SYSLOG_MALFORMED], 2);
	scene.text[scene.length] = '\0';
	assert_non_null(strstr(scene.text, " short\n"));
	assert_non_null(strstr(scene.text, "xxx+"));
	close(fd);
	scene_close(&scene);
}

static bool has_dropped(const struct scene *scene, const void *wanted)
{
	struct source_status status = status_of(scene);
	return status.own[SYSLOG_RECEIVED] + status.own[SYSLOG_DROPPED] >= *(const uint64_t *)wanted;
}

/* All that were sent were received or dropped: no third thing happens. */
static void what_the_kernel_drops_is_counted(void **state)
{
	(void)state;
	struct scene scene;
	uint64_t sent = 5000;
	scene_open(&scene, false, ",\"receive_buffer\":\"4KiB\"");
	int fd = connect_to(&scene, SOCK_DGRAM);
	for (uint64_t i = 0; i < sent; i++)
		say(fd, "<34>1 2024-01-01T00:00:00Z h a - - - one of many messages that nobody reads in time");
	read_until(&scene, has_dropped, &sent);
	struct source_status status = status_of(&scene);
	assert_int_equal(status.own[SYSLOG_RECEIVED] + status.own[SYSLOG_DROPPED], sent);
	assert_true(status.own[SYSLOG_DROPPED] > 0);
	assert_non_null(strstr(status.problem, "dropped"));
	assert_true(status.reads_on); /* it is ready all the same */
	close(fd);
	scene_close(&scene);
}

static void messages_of_connections_are_lines(void **state)
{
	(void)state;
	struct scene scene;
	scene_open(&scene, true, "");
	int first = connect_to(&scene, SOCK_STREAM), second = connect_to(&scene, SOCK_STREAM);
	say(first, "<34>1 2024-01-01T00:00:00Z h a - - - on");
	say(second, "41 <34>1 2024-01-01T00:00:00Z h a - - - two\n");
	expect(&scene, "<34>1 2024-01-01T00:00:00Z h a - - - two\n");
	say(first, "e\n<34>1 2024-01-01T00:00:00Z h a - - - last");
	expect(&scene, "<34>1 2024-01-01T00:00:00Z h a - - - one\n");
	say(second, "90 <34>1 2024-01-01T00:00:00Z h a - - - cut");
	close(first);
	close(second);
	expect(&scene, "<34>1 2024-01-01T00:00:00Z h a - - - last\n");
	uint64_t all = 4;
	read_until(&scene, has_dropped, &all);
	assert_int_equal(status_of(&scene).own[SYSLOG_MALFORMED], 1);
	scene_close(&scene);
}

static void many_messages_come_in_order(void **state)
{
	(void)state;
	struct scene scene;
	scene_open(&scene, true, "");
	enum { COUNT = 20000 };
	struct {
		char *at;
		size_t length;
	} text = {.at = weir_alloc(COUNT, 64)};
	for (int i = 0; i < COUNT; i++)
		text.length += (size_t)sprintf(text.at + text.length, "<34>1 2024-01-01T00:00:00Z h a - - - number %d\n", i);
	int fd = connect_to(&scene, SOCK_STREAM);
	size_t sent = 0;
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	while (scene.length < text.length && weir_monotonic_ms() < end_ms) {
		ssize_t more =
			sent < text.length ? send(fd, text.at + sent, text.length - sent, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
		sent += more > 0 ? (size_t)more : 0;
		step(&scene);
	}
	assert_int_equal(scene.length, text.length);
	assert_memory_equal(scene.text, text.at, text.length);
	close(fd);
	free(text.at);
	scene_close(&scene);
}

static bool has_ended(int fd)
{
	char byte;
	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void await_end(struct scene *scene, int fd)
{
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	while (!has_ended(fd) && weir_monotonic_ms() < end_ms)
		if (!step(scene))
			poll(NULL, 0, 5);
	assert_true(has_ended(fd));
}

static void connections_are_bounded(void **state)
{
	(void)state;
	struct scene scene;
	scene_open(&scene, true, ",\"connections\":1");
	int first = connect_to(&scene, SOCK_STREAM);
	say(first, "<34>1 2024-01-01T00:00:00Z h a - - - one\n");
	expect(&scene, "<34>1 2024-01-01T00:00:00Z h a - - - one\n");
	int second = connect_to(&scene, SOCK_STREAM);
	await_end(&scene, second);
	assert_non_null(strstr(status_of(&scene).problem, "refused"));
	assert_int_equal(status_of(&scene).own[SYSLOG_REFUSED], 1);
	say(first, "<34>1 2024-01-01T00:00:00Z h a - - - two\n");
	expect(&scene, "<34>1 2024-01-01T00:00:00Z h a - - - two\n");
	close(first);
	close(second);
	scene_close(&scene);
}

/* Whoever opens all connections and says nothing does not keep others out. */
static void silent_connections_make_room(void **state)
{
	(void)state;
	enum { MOST = 8 };
	struct scene scene;
	scene_open(&scene, true, ",\"connections\":8,\"connections_per_address\":8");
	int heard = connect_to(&scene, SOCK_STREAM), silent[MOST];
	say(heard, "<34>1 2024-01-01T00:00:00Z h a - - - one\n");
	expect(&scene, "<34>1 2024-01-01T00:00:00Z h a - - - one\n");
	for (int i = 1; i < MOST; i++)
		silent[i] = connect_to(&scene, SOCK_STREAM);
	int64_t end_ms = weir_monotonic_ms() + 1500;
	while (weir_monotonic_ms() < end_ms)
		if (!step(&scene))
			poll(NULL, 0, 5);
	int late = connect_to(&scene, SOCK_STREAM);
	say(late, "<34>1 2024-01-01T00:00:00Z h a - - - late\n");
	expect(&scene, "<34>1 2024-01-01T00:00:00Z h a - - - late\n");
	assert_non_null(strstr(status_of(&scene).problem, "silent longest"));
	say(heard, "<34>1 2024-01-01T00:00:00Z h a - - - two\n"); /* it is not who went */
	expect(&scene, "<34>1 2024-01-01T00:00:00Z h a - - - two\n");
	int closed = 0;
	for (int i = 1; i < MOST; i++) {
		closed += has_ended(silent[i]);
		close(silent[i]);
	}
	assert_int_equal(closed, 1);
	close(heard);
	close(late);
	scene_close(&scene);
}

static void an_address_has_a_share_of_the_connections(void **state)
{
	(void)state;
	struct scene scene;
	scene_open(&scene, true, ",\"connections\":8");
	int first[2];
	for (int i = 0; i < 2; i++) {
		first[i] = connect_to(&scene, SOCK_STREAM);
		say(first[i], "<34>1 2024-01-01T00:00:00Z h a - - - one\n");
		expect(&scene, "<34>1 2024-01-01T00:00:00Z h a - - - one\n");
	}
	int third = connect_to(&scene, SOCK_STREAM);
	await_end(&scene, third);
	assert_non_null(strstr(status_of(&scene).problem, "127.0.0.1"));
	close(third);
	for (int i = 0; i < 2; i++)
		close(first[i]);
	scene_close(&scene);
}

/* One that sends a message and closes, again and again, has one connection open and no more. */
static void connections_that_have_ended_count_for_nothing(void **state)
{
	(void)state;
	enum { TIMES = 60 };
	static char wanted[TIMES * 64];
	struct scene scene;
	scene_open(&scene, true, ",\"connections\":8");
	for (int i = 0; i < TIMES; i++) {
		char line[64];
		snprintf(line, sizeof line, "<34>1 2024-01-01T00:00:00Z h a - - - %d\n", 100 + i);
		int fd = connect_to(&scene, SOCK_STREAM);
		say(fd, line);
		close(fd);
		strcat(wanted, line);
	}
	read_until(&scene, has_length, wanted);
	assert_int_equal(scene.length, strlen(wanted));
	assert_int_equal(status_of(&scene).own[SYSLOG_REFUSED], 0);
	assert_string_equal(status_of(&scene).problem, "");
	scene_close(&scene);
}

/* The same beside one that stays, of many that come in one turn. */
static void those_that_end_beside_one_that_stays_count_for_nothing(void **state)
{
	(void)state;
	enum { TIMES = 60 };
	struct scene scene;
	scene_open(&scene, true, ",\"connections\":16");
	int stays = connect_to(&scene, SOCK_STREAM);
	say(stays, "<34>1 2024-01-01T00:00:00Z h a - - - one\n");
	expect(&scene, "<34>1 2024-01-01T00:00:00Z h a - - - one\n");
	for (int i = 0; i < TIMES; i++)
		close(connect_to(&scene, SOCK_STREAM));
	say(stays, "<34>1 2024-01-01T00:00:00Z h a - - - two\n");
	expect(&scene, "<34>1 2024-01-01T00:00:00Z h a - - - two\n");
	for (int i = 0; i < 20; i++)
		if (!step(&scene))
			poll(NULL, 0, 1);
	assert_int_equal(status_of(&scene).own[SYSLOG_REFUSED], 0);
	assert_string_equal(status_of(&scene).problem, "");
	close(stays);
	scene_close(&scene);
}

static void only_named_networks_are_heard(void **state)
{
	(void)state;
	for (int tcp = 0; tcp < 2; tcp++) {
		struct scene scene;
		scene_open(&scene, tcp != 0, ",\"from\":[\"192.0.2.0/24\"]");
		int fd = connect_to(&scene, tcp != 0 ? SOCK_STREAM : SOCK_DGRAM);
		say(fd, "<34>1 2024-01-01T00:00:00Z h a - - - one\n");
		int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
		while (status_of(&scene).own[SYSLOG_REFUSED] == 0 && weir_monotonic_ms() < end_ms)
			if (!step(&scene))
				poll(NULL, 0, 5);
		assert_int_equal(status_of(&scene).own[SYSLOG_REFUSED], 1);
		assert_int_equal(scene.length, 0);
		close(fd);
		scene_close(&scene);
		scene_open(&scene, tcp != 0, ",\"from\":[\"192.0.2.0/24\", \"127.0.0.1\"]");
		fd = connect_to(&scene, tcp != 0 ? SOCK_STREAM : SOCK_DGRAM);
		say(fd, "<34>1 2024-01-01T00:00:00Z h a - - - one\n");
		expect(&scene, "<34>1 2024-01-01T00:00:00Z h a - - - one\n");
		close(fd);
		scene_close(&scene);
	}
}

static void silent_connections_are_closed(void **state)
{
	(void)state;
	struct scene scene;
	scene_open(&scene, true, ",\"idle_timeout\":\"1s\"");
	int fd = connect_to(&scene, SOCK_STREAM);
	say(fd, "<34>1 2024-01-01T00:00:00Z h a - - - one");
	await_end(&scene, fd);
	expect(&scene, "<34>1 2024-01-01T00:00:00Z h a - - - one\n");
	close(fd);
	scene_close(&scene);
}

static void it_cannot_be_read_again(void **state)
{
	(void)state;
	struct scene scenes[2];
	struct source_stream **streams;
	struct weir_error error;
	uint8_t ids[2][SOURCE_ID_BYTES];
	for (int i = 0; i < 2; i++) {
		scene_open(&scenes[i], false, "");
		assert_int_equal(scenes[i].source->ops->streams(scenes[i].source, &streams), 1);
		memcpy(ids[i], streams[0]->id, SOURCE_ID_BYTES);
		assert_int_equal(scenes[i].source->ops->resume(scenes[i].source, streams[0], 0, &error), WEIR_OK);
		assert_int_equal(scenes[i].source->ops->resume(scenes[i].source, streams[0], 9, &error), WEIR_INVALID);
	}
	assert_memory_not_equal(ids[0], ids[1], SOURCE_ID_BYTES);
	/* its port is taken */
	char config[128];
	struct scene third;
	snprintf(config, sizeof config, "{\"type\":\"syslog\",\"listen\":\"udp://127.0.0.1:%u\"}", scenes[0].port);
	assert_int_equal(try_open(&third, config, false, &error), WEIR_IO);
	assert_non_null(strstr(error.text, "cannot listen on udp://127.0.0.1:"));
	scene_close(&third);
	/* in `once` nothing is opened */
	assert_int_equal(try_open(&third, config, true, &error), WEIR_OK);
	struct source_chunk chunk;
	assert_true(third.source->ops->endless);
	assert_int_equal(third.source->ops->collect(third.source, NULL, &chunk, &error), WEIR_IO);
	scene_close(&third);
	scene_close(&scenes[0]);
	scene_close(&scenes[1]);
}

static void wrong_configurations_are_refused(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"{\"type\":\"syslog\"}", "listen: is missing"},
		{"{\"type\":\"syslog\",\"listen\":\"127.0.0.1:514\"}", "give udp:// or tcp://"},
		{"{\"type\":\"syslog\",\"listen\":\"udp://127.0.0.1\"}", "give udp:// or tcp://"},
		{"{\"type\":\"syslog\",\"listen\":\"udp://:514\"}", "give udp:// or tcp://"},
		{"{\"type\":\"syslog\",\"listen\":\"udp://[::1:514\"}", "give udp:// or tcp://"},
		{"{\"type\":\"syslog\",\"listen\":\"udp://::1:514\"}", "give udp:// or tcp://"},
		{"{\"type\":\"syslog\",\"listen\":\"udp://a:0\"}", "give udp:// or tcp://"},
		{"{\"type\":\"syslog\",\"listen\":\"udp://a:65536\"}", "give udp:// or tcp://"},
		{"{\"type\":\"syslog\",\"listen\":\"udp://a:5x\"}", "give udp:// or tcp://"},
		{"{\"type\":\"syslog\",\"listen\":\"tcp://a:514\",\"receive_buffer\":\"1MiB\"}",
	     "receive_buffer: is only for udp://"},
		{"{\"type\":\"syslog\",\"listen\":\"udp://a:514\",\"connections\":5}", "connections: is only for tcp://"},
		{"{\"type\":\"syslog\",\"listen\":\"udp://a:514\",\"follow\":false}", "has no end"},
		{"{\"type\":\"syslog\",\"listen\":\"udp://a:514\",\"time_zone\":\"Mars\"}", "time_zone"},
		{"{\"type\":\"syslog\",\"listen\":\"udp://a:514\",\"path\":\"x\"}", "path"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct scene scene;
		struct weir_error error = {.text = ""};
		if (try_open(&scene, cases[i][0], true, &error) != WEIR_INVALID || strstr(error.text, cases[i][1]) == NULL)
			fail_msg("%s: %s", cases[i][0], error.text);
		scene_close(&scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_datagram_is_a_line),
		cmocka_unit_test(long_datagrams_are_counted),
		cmocka_unit_test(what_the_kernel_drops_is_counted),
		cmocka_unit_test(messages_of_connections_are_lines),
		cmocka_unit_test(many_messages_come_in_order),
		cmocka_unit_test(connections_are_bounded),
		cmocka_unit_test(silent_connections_are_closed),
		cmocka_unit_test(silent_connections_make_room),
		cmocka_unit_test(an_address_has_a_share_of_the_connections),
		cmocka_unit_test(connections_that_have_ended_count_for_nothing),
		cmocka_unit_test(those_that_end_beside_one_that_stays_count_for_nothing),
		cmocka_unit_test(only_named_networks_are_heard),
		cmocka_unit_test(it_cannot_be_read_again),
		cmocka_unit_test(wrong_configurations_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

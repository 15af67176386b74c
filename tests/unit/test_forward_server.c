/* SPDX-License-Identifier: Apache-2.0 */
/* The listener of the source `forward`: nobody who begins a message and does not end it keeps others out. */
#include "collector/source/push/forward/internal.h"
#include "common/bytes/hmac.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	MIB = 1 << 20,
	PATIENCE_S = 30,
	BEGINNERS = 6, /* more than have room for their messages */
	HELO_BYTES = 65,
	NONCE_AT = 16,
};

static char directory[64], path[96];
static struct push_spool *spool;
static struct forward_config config;
static struct forward_server *server;

static int make_directory(void **state)
{
	(void)state;
	snprintf(directory, sizeof directory, "/tmp/forward-server-XXXXXX");
	return mkdtemp(directory) != NULL ? 0 : -1;
}

static int remove_directory(void **state)
{
	(void)state;
	char command[256];
	snprintf(command, sizeof command, "rm -rf %s", directory);
	return system(command);
}

/* ---- the server ---- */

static void start(char *shared_key)
{
	struct weir_error error = {0};
	char folder[96];
	snprintf(folder, sizeof folder, "%s/spool", directory);
	snprintf(path, sizeof path, "%s/socket", directory);
	config = (struct forward_config){.socket = path,
	                                 .shared_key = shared_key,
	                                 .frame_most = 16 * MIB,
	                                 .connections = 64,
	                                 .idle_ms = 600000,
	                                 .spool_bytes = 64 * MIB};
	enum weir_status status =
		push_spool_open(&(struct push_spool_options){.directory = folder, .most_bytes = 64 * MIB}, &spool, &error);
	if (status == WEIR_OK)
		status = forward_server_start(&config, spool, MIB, NULL, &server, &error);
	if (status != WEIR_OK)
		fail_msg("%s", error.text);
}

static void stop(void)
{
	forward_server_stop(server);
	push_spool_close(spool);
}

static uint64_t refused(void)
{
	struct forward_status status;
	forward_server_status(server, &status);
	return status.refused;
}

/* ---- senders ---- */

static int sender(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&name, sizeof name), 0);
	assert_int_equal(
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = PATIENCE_S}, sizeof(struct timeval)), 0);
	return fd;
}

/* Of a message with one entry: all its bytes, of which `bytes` are of the record's text. */
static void put_message(struct weir_text *message, const char *chunk, size_t bytes)
{
	const unsigned char text[] = {0xdb, (unsigned char)(bytes >> 24), (unsigned char)(bytes >> 16),
	                              (unsigned char)(bytes >> 8), (unsigned char)bytes};
	weir_text_clear(message);
	weir_text_puts(message, "\x93\xa3"
	                        "app\x91\x92\x01\x81\xa4user");
	weir_text_append(message, text, sizeof text);
	memset(weir_text_reserve(message, bytes), 'x', bytes);
	message->length += bytes;
	weir_text_puts(message, "\x81\xa5"
	                        "chunk\xa3");
	weir_text_puts(message, chunk);
}

/* Sends the beginning of a message that would fill a buffer, as far as it is taken. */
static int begin(void)
{
	struct weir_text message = {0};
	int fd = sender();
	put_message(&message, "one", 15 * MIB);
	message.length -= 100;
	size_t sent = 0;
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	while (sent < message.length && poll(&ready, 1, 1000) > 0) {
		ssize_t got = send(fd, message.at + sent, message.length - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (got < 0)
			break;
		sent += (size_t)got;
	}
	weir_text_deinit(&message);
	return fd;
}

static void expect(int fd, void *bytes, size_t length)
{
	assert_int_equal(recv(fd, bytes, length, MSG_WAITALL), length);
}

static void greet(int fd, const char *shared_key)
{
	char helo[HELO_BYTES], digest[WEIR_SHA512_DIGITS], pong[7];
	struct weir_text ping = {0};
	expect(fd, helo, sizeof helo);
	const struct weir_span parts[] = {weir_span_of("salt"),
	                                  weir_span_of("here"),
	                                  {.at = helo + NONCE_AT, .length = FORWARD_NONCE_DIGITS},
	                                  weir_span_of(shared_key)};
	weir_sha512_digits(parts, 4, digest);
	weir_text_puts(&ping, "\x96\xa4PING\xa4here\xa4salt\xd9\x80");
	weir_text_append(&ping, digest, sizeof digest);
	weir_text_puts(&ping, "\xa0\xa0");
	assert_int_equal(send(fd, ping.at, ping.length, MSG_NOSIGNAL), ping.length);
	weir_text_deinit(&ping);
	expect(fd, pong, sizeof pong);
	assert_memory_equal(pong, "\x95\xa4PONG\xc3", sizeof pong);
	char rest[512];
	assert_true(recv(fd, rest, sizeof rest, 0) > 0);
}

/* Sends a message that no first buffer holds, and waits for its acknowledgement. */
static void send_large(int fd)
{
	struct weir_text message = {0};
	char ack[9];
	put_message(&message, "two", 200000);
	for (size_t sent = 0; sent < message.length;) {
		ssize_t got = send(fd, message.at + sent, message.length - sent, MSG_NOSIGNAL);
		assert_true(got > 0);
		sent += (size_t)got;
	}
	expect(fd, ack, sizeof ack);
	assert_memory_equal(ack,
	                    "\x81\xa3"
	                    "ack\xa3two",
	                    sizeof ack);
	weir_text_deinit(&message);
}

static void who_does_not_know_the_key_gets_no_memory(void **state)
{
	(void)state;
	char shared_key[] = "a secret";
	int begun[BEGINNERS];
	start(shared_key);
	for (int i = 0; i < BEGINNERS; i++)
		begun[i] = begin();
	int fd = sender();
	greet(fd, shared_key);
	send_large(fd);
	assert_int_equal(refused(), BEGINNERS);
	struct forward_status status;
	forward_server_status(server, &status);
	assert_non_null(strstr(status.problem, "give the sender the same shared_key"));
	close(fd);
	for (int i = 0; i < BEGINNERS; i++)
		close(begun[i]);
	stop();
}

static void who_begins_and_goes_silent_keeps_nobody_out_for_long(void **state)
{
	(void)state;
	int begun[BEGINNERS];
	start(NULL);
	for (int i = 0; i < BEGINNERS; i++)
		begun[i] = begin();
	int fd = sender();
	send_large(fd);
	close(fd);
	for (int i = 0; i < BEGINNERS; i++)
		close(begun[i]);
	stop();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_does_not_know_the_key_gets_no_memory),
		TEST(who_begins_and_goes_silent_keeps_nobody_out_for_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The listener of the source `forward`: nobody who begins a message and does not end it keeps others out. */
#include "collector/source/push/forward/internal.h"
#include "common/base/clock.h"
#include "common/bytes/hmac.h"
#include "common/log/log.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	MIB = 1 << 20,
	PATIENCE_S = 120,
	CONNECTIONS = 64,
	BEGINNERS = 6, /* more than have room for their messages */
	HELO_BYTES = 65,
	NONCE_AT = 16,
	RECORD_BYTES = 16 << 10, /* of TLS */
};

static char directory[64], path[96], certificate[96], key[96];
static struct push_spool *spool;
static struct forward_config config;
static struct forward_server *server;
static struct weir_log log_;

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

static void start(char *shared_key, bool tls)
{
	struct weir_error error = {0};
	char folder[96];
	snprintf(folder, sizeof folder, "%s/spool", directory);
	snprintf(path, sizeof path, "%s/socket", directory);
	config = (struct forward_config){.name = "edge",
	                                 .socket = path,
	                                 .shared_key = shared_key,
	                                 .frame_most = 16 * MIB,
	                                 .connections = CONNECTIONS,
	                                 .idle_ms = 600000,
	                                 .spool_bytes = 64 * MIB};
	if (tls)
		config.tls = (struct weir_http_tls){.certificate = certificate, .key = key};
	enum weir_status status =
		push_spool_open(&(struct push_spool_options){.directory = folder, .most_bytes = 64 * MIB}, &spool, &error);
	if (status == WEIR_OK)
		status = forward_server_start(&config, spool, MIB, log_.fd > 0 ? &log_ : NULL, &server, &error);
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
	start(shared_key, false);
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

/* Whether a connection is still open on the other side, as far as is known by now. */
static bool is_open(int fd)
{
	char bytes[HELO_BYTES];
	ssize_t got;
	while ((got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
		;
	return got < 0 && errno == EAGAIN;
}

static void who_does_not_know_the_key_keeps_nobody_out(void **state)
{
	(void)state;
	char shared_key[] = "a secret";
	int strangers[2 * CONNECTIONS], trusted[2];
	start(shared_key, false);
	trusted[0] = sender();
	greet(trusted[0], shared_key);
	for (int i = 0; i < 2 * CONNECTIONS; i++) {
		strangers[i] = sender();
		assert_int_equal(send(strangers[i], "\x96", 1, MSG_NOSIGNAL), 1); /* a PING begins so */
	}
	trusted[1] = sender();
	greet(trusted[1], shared_key);
	for (int i = 0; i < 2; i++)
		send_large(trusted[i]);
	struct forward_status status;
	forward_server_status(server, &status);
	assert_int_equal(status.refused, 0);
	assert_non_null(strstr(status.problem, "one that has not shown that it knows the shared key was closed"));
	for (int i = 0; i < 2; i++)
		close(trusted[i]);
	for (int i = 0; i < 2 * CONNECTIONS; i++)
		close(strangers[i]);
	stop();
}

static void who_sends_byte_by_byte_has_no_longer_to_say_who_it_is(void **state)
{
	(void)state;
	enum { SAID_WITHIN_MS = 30000 };
	char shared_key[] = "a secret";
	start(shared_key, false);
	int fd = sender();
	int64_t begun_ms = weir_monotonic_ms();
	(void)!send(fd, "\x96\xda\x10\x00", 4, MSG_NOSIGNAL); /* and 4096 bytes of its first member */
	while (is_open(fd)) {
		(void)!send(fd, "P", 1, MSG_NOSIGNAL);
		usleep(100000);
		assert_true(weir_monotonic_ms() - begun_ms < SAID_WITHIN_MS);
	}
	close(fd);
	stop();
}

static void who_begins_and_goes_silent_keeps_nobody_out_for_long(void **state)
{
	(void)state;
	int begun[BEGINNERS];
	start(NULL, false);
	for (int i = 0; i < BEGINNERS; i++)
		begun[i] = begin();
	int fd = sender();
	send_large(fd);
	close(fd);
	for (int i = 0; i < BEGINNERS; i++)
		close(begun[i]);
	stop();
}

static void who_does_not_read_acknowledgements_holds_no_memory(void **state)
{
	(void)state;
	enum { CHUNK_BYTES = 255 };
	struct weir_text message = {0};
	char chunk[CHUNK_BYTES];
	memset(chunk, 'c', sizeof chunk);
	put_message(&message, "", 10);
	message.length--; /* the chunk's length is written anew */
	weir_text_puts(&message, "\xd9\xff");
	weir_text_append(&message, chunk, sizeof chunk);
	start(NULL, false);
	int fd = sender();
	for (int64_t end_ms = weir_monotonic_ms() + PATIENCE_S * 1000; refused() == 0;) {
		assert_true(weir_monotonic_ms() < end_ms);
		if (send(fd, message.at, message.length, MSG_NOSIGNAL) < 0)
			usleep(1000); /* it is closed, and counted in a moment */
	}
	struct forward_status status;
	forward_server_status(server, &status);
	assert_non_null(strstr(status.problem, "does not read its acknowledgements"));
	close(fd);
	weir_text_deinit(&message);
	stop();
}

/* The spool is full, so that nobody takes them; nobody sends them again. */
static void what_is_lost_at_a_stop_is_said(void **state)
{
	(void)state;
	struct weir_text message = {0};
	FILE *file = tmpfile();
	put_message(&message, "", 500000);
	message.at[0] = '\x92'; /* without options */
	message.length -= strlen("\x81\xa5"
	                         "chunk\xa3");
	log_ = (struct weir_log){.fd = fileno(file), .level = WEIR_LOG_INFO};
	start(NULL, false);
	int fd = sender();
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	struct forward_status status = {.waits = false};
	for (size_t sent = 0; !status.waits; sent %= message.length) {
		if (poll(&ready, 1, 100) == 0) {
			forward_server_status(server, &status);
			continue;
		}
		ssize_t got = send(fd, message.at + sent, message.length - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
		assert_true(got > 0);
		sent += (size_t)got;
	}
	stop();
	log_.fd = 0;
	char said[1024] = "";
	rewind(file);
	said[fread(said, 1, sizeof said - 1, file)] = '\0';
	const char *at = strstr(said, "it ended: ");
	unsigned lines = 0, messages = 0;
	if (at == NULL || sscanf(at, "it ended: %u lines, and at least %u messages", &lines, &messages) != 2)
		fail_msg("it says: %s", said);
	assert_true(lines > 0 && messages <= 1);
	fclose(file);
	close(fd);
	weir_text_deinit(&message);
}

/* ---- TLS ---- */

static void put(const char *name, const gnutls_datum_t *datum)
{
	FILE *file = fopen(name, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(datum->data, 1, datum->size, file), datum->size);
	fclose(file);
	gnutls_free(datum->data);
}

/* A certificate that signs itself, and its key, in files. */
static void issue(void)
{
	gnutls_x509_privkey_t private;
	gnutls_x509_crt_t made;
	gnutls_datum_t datum;
	time_t now = time(NULL);
	snprintf(certificate, sizeof certificate, "%s/crt", directory);
	snprintf(key, sizeof key, "%s/key", directory);
	gnutls_x509_privkey_init(&private);
	gnutls_x509_crt_init(&made);
	assert_int_equal(
		gnutls_x509_privkey_generate(private, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0), 0);
	gnutls_x509_crt_set_version(made, 3);
	gnutls_x509_crt_set_serial(made, "\x01", 1);
	gnutls_x509_crt_set_dn_by_oid(made, GNUTLS_OID_X520_COMMON_NAME, 0, "here", 4);
	gnutls_x509_crt_set_activation_time(made, now - 86400);
	gnutls_x509_crt_set_expiration_time(made, now + 86400);
	gnutls_x509_crt_set_key(made, private);
	assert_int_equal(gnutls_x509_crt_sign2(made, made, private, GNUTLS_DIG_SHA256, 0), 0);
	assert_int_equal(gnutls_x509_crt_export2(made, GNUTLS_X509_FMT_PEM, &datum), 0);
	put(certificate, &datum);
	assert_int_equal(gnutls_x509_privkey_export2(private, GNUTLS_X509_FMT_PEM, &datum), 0);
	put(key, &datum);
	gnutls_x509_crt_deinit(made);
	gnutls_x509_privkey_deinit(private);
}

/* Where a client's bytes go: to its socket, or, while it gathers, to a text. */
struct wire {
	int fd;
	bool gathers;
	struct weir_text text;
};

static ssize_t push(gnutls_transport_ptr_t to, const void *bytes, size_t length)
{
	struct wire *wire = to;
	if (!wire->gathers)
		return send(wire->fd, bytes, length, MSG_NOSIGNAL);
	weir_text_append(&wire->text, bytes, length);
	return (ssize_t)length;
}

static ssize_t pull(gnutls_transport_ptr_t from, void *room, size_t length)
{
	return recv(((struct wire *)from)->fd, room, length, 0);
}

/* Encrypts the next bytes of a message as records of a size, and moves on. */
static void put_records(gnutls_session_t session, const char **at, size_t count, size_t bytes)
{
	for (size_t i = 0; i < count; i++, *at += bytes)
		assert_int_equal(gnutls_record_send(session, *at, bytes), bytes);
}

/*
 * Messages that come at once, in records of which the server's last read of sixteen takes a part: 13 small ones, and
 * two whose ends find no room in a buffer that doubles from 16 KiB. What it has decrypted then is the message's end, and
 * the socket is empty.
 */
static void what_tls_has_decrypted_does_not_wait(void **state)
{
	(void)state;
	gnutls_session_t session;
	gnutls_certificate_credentials_t credentials;
	struct weir_text message = {0};
	issue();
	start(NULL, true);
	struct wire wire = {.fd = sender()};
	gnutls_certificate_allocate_credentials(&credentials);
	gnutls_init(&session, GNUTLS_CLIENT);
	gnutls_set_default_priority(session);
	gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
	gnutls_transport_set_ptr(session, &wire);
	gnutls_transport_set_push_function(session, push);
	gnutls_transport_set_pull_function(session, pull);
	assert_int_equal(gnutls_handshake(session), 0);
	for (int i = 0; i < 50; i++) {
		char chunk[4], ack[9];
		snprintf(chunk, sizeof chunk, "%03d", i);
		put_message(&message, chunk, 0);
		put_message(&message, chunk, 1024 + 2 * RECORD_BYTES - message.length);
		const char *at = message.at;
		weir_text_clear(&wire.text);
		wire.gathers = true;
		put_records(session, &at, 12, 80);
		put_records(session, &at, 1, 64);
		put_records(session, &at, 2, RECORD_BYTES);
		wire.gathers = false;
		assert_int_equal(at - message.at, message.length);
		assert_int_equal(send(wire.fd, wire.text.at, wire.text.length, MSG_NOSIGNAL), wire.text.length);
		assert_int_equal(gnutls_record_recv(session, ack, sizeof ack), sizeof ack);
	}
	gnutls_deinit(session);
	gnutls_certificate_free_credentials(credentials);
	close(wire.fd);
	weir_text_deinit(&wire.text);
	weir_text_deinit(&message);
	stop();
}

/* ---- acknowledgements ---- */

static const uint8_t no_tag[FORWARD_TAG_HASH_BYTES];

/* Stores a batch under a chunk's id. @return whether its id was known */
static bool store(struct weir_span chunk)
{
	struct weir_text id = {0}, lines = {0};
	struct push_outcome outcome;
	forward_put_id(&id, 0, no_tag, chunk);
	weir_text_puts(&lines, "one\n");
	assert_int_equal(push_spool_append_wait(spool, weir_text_span(&id), &lines, &outcome), WEIR_OK);
	weir_text_deinit(&id);
	weir_text_deinit(&lines);
	return outcome.again;
}

/* Two ends of a connection by TCP. */
static void connect_pair(int pair[2])
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof name;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (const struct sockaddr *)&name, sizeof name), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &length), 0);
	pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(pair[0], (const struct sockaddr *)&name, sizeof name), 0);
	pair[1] = accept(listener, NULL, NULL);
	assert_true(pair[1] >= 0);
	close(listener);
}

/* Acknowledges a chunk to a peer that then closes. @return whether the chunk is a repeat afterwards */
static bool known_after_the_end(bool reads, struct weir_span chunk)
{
	struct forward_acks acks = {.count = 0};
	struct forward_memory memory = {.held = 0};
	char byte = 'a';
	int pair[2];
	connect_pair(pair);
	assert_false(store(chunk));
	struct forward_connection *connection = forward_connection_new(pair[1], NULL, MIB, 0);
	assert_int_equal(send(pair[1], &byte, 1, MSG_NOSIGNAL), 1);
	forward_acks_add(&acks, connection, no_tag, chunk, 1);
	poll(&(struct pollfd){.fd = pair[0], .events = POLLIN}, 1, PATIENCE_S * 1000);
	if (reads)
		assert_int_equal(recv(pair[0], &byte, 1, 0), 1);
	close(pair[0]);
	poll(&(struct pollfd){.fd = pair[1], .events = POLLIN}, 1, PATIENCE_S * 1000);
	assert_int_equal(recv(pair[1], &byte, 1, 0), reads ? 0 : -1); /* as TLS does, which keeps the error to itself */
	forward_acks_leave(&acks, spool, connection);
	assert_int_equal(acks.count, 0);
	forward_connection_free(connection, &memory);
	return store(chunk);
}

static void what_a_reset_left_unread_has_not_arrived(void **state)
{
	(void)state;
	start(NULL, false);
	assert_true(known_after_the_end(false, weir_span_of("0123456789abcdef0123456789abcdef")));
	assert_false(known_after_the_end(true, weir_span_of("fedcba9876543210fedcba9876543210")));
	stop();
}

static void no_connection_uses_up_what_all_have(void **state)
{
	(void)state;
	enum { MANY = 5000, SHARE = 4096 };
	struct forward_acks acks = {.count = 0};
	struct forward_memory memory = {.held = 0};
	struct forward_connection *both[2];
	int fds[2];
	char chunk[33];
	start(NULL, false);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	for (int i = 0; i < 2; i++)
		both[i] = forward_connection_new(fds[i], NULL, MIB, 0);
	for (int i = 0; i < MANY; i++) {
		snprintf(chunk, sizeof chunk, "%032x", (unsigned)i);
		forward_acks_add(&acks, both[0], no_tag, weir_span_of(chunk), 1);
	}
	assert_int_equal(both[0]->acks, SHARE);
	forward_acks_add(&acks, both[1], no_tag, weir_span_of(chunk), 1);
	assert_int_equal(acks.count, SHARE + 1);
	forward_acks_leave(&acks, spool, both[0]);
	assert_int_equal(both[0]->acks, 0);
	assert_int_equal(both[1]->acks, 1);
	assert_int_equal(acks.count, 1);
	forward_acks_leave(&acks, spool, both[1]);
	assert_int_equal(acks.count, 0);
	for (int i = 0; i < 2; i++)
		forward_connection_free(both[i], &memory);
	stop();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_does_not_know_the_key_gets_no_memory),
		TEST(who_does_not_know_the_key_keeps_nobody_out),
		TEST(who_sends_byte_by_byte_has_no_longer_to_say_who_it_is),
		TEST(who_begins_and_goes_silent_keeps_nobody_out_for_long),
		TEST(what_tls_has_decrypted_does_not_wait),
		TEST(what_a_reset_left_unread_has_not_arrived),
		TEST(no_connection_uses_up_what_all_have),
		TEST(who_does_not_read_acknowledgements_holds_no_memory),
		TEST(what_is_lost_at_a_stop_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

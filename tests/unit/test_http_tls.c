/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server by TLS, as clients of GnuTLS meet it: versions, certificates and their renewal, who is kept out. */
#include "common/base/clock.h"
#include "common/http/tls_stream.h"
#include "common/log/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { CONNECTIONS = 16, PATIENCE_MS = 60000, PAGE_BYTES = 5000000, DAY_S = 86400, NAME_BYTES = 128 };

static char folder[] = "/tmp/weir-tls-XXXXXX";
static char crt[NAME_BYTES], key[NAME_BYTES], ca[NAME_BYTES];
static struct weir_http *http;
static FILE *said; /* by the server */

/* ---- certificates ---- */

struct issued {
	gnutls_x509_crt_t certificate;
	gnutls_x509_privkey_t key;
};

/* @param issuer  NULL: it signs itself, as an authority */
static struct issued issue(const char *name, const struct issued *issuer, const char *purpose, int64_t days)
{
	struct issued made;
	uint32_t here = htonl(INADDR_LOOPBACK);
	time_t now = time(NULL);
	static unsigned serial;
	unsigned char number[4] = {1, 2, 3, (unsigned char)++serial};
	gnutls_x509_privkey_init(&made.key);
	assert_int_equal(
		gnutls_x509_privkey_generate(made.key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
		0);
	gnutls_x509_crt_init(&made.certificate);
	gnutls_x509_crt_set_version(made.certificate, 3);
	gnutls_x509_crt_set_serial(made.certificate, number, sizeof number);
	gnutls_x509_crt_set_dn_by_oid(made.certificate, GNUTLS_OID_X520_COMMON_NAME, 0, name, (unsigned)strlen(name));
	gnutls_x509_crt_set_subject_alt_name(made.certificate, GNUTLS_SAN_IPADDRESS, &here, sizeof here, 0);
	gnutls_x509_crt_set_activation_time(made.certificate, now - 2 * DAY_S);
	gnutls_x509_crt_set_expiration_time(made.certificate, now + days * DAY_S);
	gnutls_x509_crt_set_key(made.certificate, made.key);
	gnutls_x509_crt_set_basic_constraints(made.certificate, issuer == NULL, -1);
	if (purpose != NULL)
		gnutls_x509_crt_set_key_purpose_oid(made.certificate, purpose, 0);
	assert_int_equal(gnutls_x509_crt_sign2(made.certificate, issuer != NULL ? issuer->certificate : made.certificate,
	                                       issuer != NULL ? issuer->key : made.key, GNUTLS_DIG_SHA256, 0),
	                 0);
	return made;
}

static void forget(struct issued *issued)
{
	gnutls_x509_crt_deinit(issued->certificate);
	gnutls_x509_privkey_deinit(issued->key);
}

/* In place, as a rename: whoever reads has the one or the other. */
static void put(const char *path, const gnutls_datum_t *datum, mode_t mode)
{
	char new[NAME_BYTES + 8];
	snprintf(new, sizeof new, "%s.new", path);
	FILE *file = fopen(new, "w");
	fwrite(datum->data, 1, datum->size, file);
	fclose(file);
	chmod(new, mode);
	assert_int_equal(rename(new, path), 0);
}

static void put_text(const char *path, const char *text)
{
	put(path, &(gnutls_datum_t){(unsigned char *)(uintptr_t)text, (unsigned)strlen(text)}, 0600);
}

static void put_certificate(const char *path, const struct issued *issued)
{
	gnutls_datum_t datum;
	assert_int_equal(gnutls_x509_crt_export2(issued->certificate, GNUTLS_X509_FMT_PEM, &datum), 0);
	put(path, &datum, 0644);
	gnutls_free(datum.data);
}

static void put_key(const char *path, const struct issued *issued)
{
	gnutls_datum_t datum;
	assert_int_equal(gnutls_x509_privkey_export2(issued->key, GNUTLS_X509_FMT_PEM, &datum), 0);
	put(path, &datum, 0600);
	gnutls_free(datum.data);
}

static void put_pair(const struct issued *issued)
{
	put_certificate(crt, issued);
	put_key(key, issued);
}

/* ---- the server ---- */

static void hello(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)context;
	(void)request;
	weir_text_puts(&reply->body, "hello\n");
}

static void large(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)context;
	(void)request;
	memset(weir_text_reserve(&reply->body, PAGE_BYTES), 'x', PAGE_BYTES);
	reply->body.length = PAGE_BYTES;
}

static void figures(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)context;
	weir_http_metrics(request, &reply->body);
}

static const struct weir_http_path paths[] = {{"/", hello, NULL}, {"/large", large, NULL}, {"/metrics", figures, NULL}};

static struct weir_http_tls files(bool clients)
{
	return (struct weir_http_tls){crt, key, clients ? ca : NULL, "listen."};
}

static void start(bool clients)
{
	struct weir_error error;
	static struct weir_log log;
	said = tmpfile();
	log = (struct weir_log){.fd = fileno(said)};
	const struct weir_http_options options = {.host = "127.0.0.1",
	                                          .paths = paths,
	                                          .path_count = 3,
	                                          .connections = CONNECTIONS,
	                                          .timeout_s = 600,
	                                          .tls = files(clients),
	                                          .log = &log};
	if (weir_http_start(&options, &http, &error) != WEIR_OK)
		fail_msg("%s", error.text);
}

static int setup(void **state)
{
	(void)state;
	memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(crt, sizeof crt, "%s/crt", folder);
	snprintf(key, sizeof key, "%s/key", folder);
	snprintf(ca, sizeof ca, "%s/ca", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	weir_http_stop(http);
	http = NULL;
	if (said != NULL)
		fclose(said);
	said = NULL;
	unlink(crt);
	unlink(key);
	unlink(ca);
	return rmdir(folder);
}

/* ---- a client ---- */

struct client {
	int fd;
	gnutls_session_t session;
	gnutls_certificate_credentials_t credentials;
};

static int connect_plain(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(weir_http_port(http))};
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
	return fd;
}

/* @param own  what it shows; NULL: nothing */
static void prepare_client(struct client *client, int fd, const char *priorities, const struct issued *own)
{
	client->fd = fd;
	gnutls_init(&client->session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL);
	gnutls_certificate_allocate_credentials(&client->credentials);
	if (own != NULL) {
		gnutls_x509_crt_t list[] = {own->certificate};
		assert_int_equal(gnutls_certificate_set_x509_key(client->credentials, list, 1, own->key), 0);
	}
	assert_int_equal(gnutls_priority_set_direct(client->session, priorities, NULL), 0);
	gnutls_credentials_set(client->session, GNUTLS_CRD_CERTIFICATE, client->credentials);
	gnutls_transport_set_int(client->session, client->fd);
}

/* @return what the handshake gave */
static int open_client(struct client *client, const char *priorities, const struct issued *own)
{
	int code;
	prepare_client(client, connect_plain(), priorities, own);
	while ((code = gnutls_handshake(client->session)) < 0 && !gnutls_error_is_fatal(code))
		;
	return code;
}

static void close_client(struct client *client)
{
	gnutls_deinit(client->session);
	gnutls_certificate_free_credentials(client->credentials);
	close(client->fd);
}

/* Asks, and reads to the end. @return the bytes of the answer; -1: there was none */
static ssize_t ask(struct client *client, const char *path, char *answer, size_t room)
{
	char request[128];
	ssize_t length = snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", path), got, total = 0;
	if (gnutls_record_send(client->session, request, (size_t)length) != length)
		return -1;
	while ((got = gnutls_record_recv(client->session, answer + total, room - 1 - (size_t)total)) > 0)
		total += got;
	answer[total] = '\0';
	return got < 0 && got != GNUTLS_E_PREMATURE_TERMINATION ? -1 : total;
}

/* One connection, one question. @param days  set: until the certificate expires; NULL: of no interest */
static bool try_hello(const char *priorities, const struct issued *own, int64_t *days)
{
	struct client client;
	char answer[4096] = "";
	bool good = open_client(&client, priorities, own) == 0;
	unsigned count = 0;
	const gnutls_datum_t *shown = good ? gnutls_certificate_get_peers(client.session, &count) : NULL;
	if (good && days != NULL) {
		gnutls_x509_crt_t certificate;
		assert_true(count > 0);
		gnutls_x509_crt_init(&certificate);
		gnutls_x509_crt_import(certificate, shown, GNUTLS_X509_FMT_DER);
		*days = ((int64_t)gnutls_x509_crt_get_expiration_time(certificate) - time(NULL) + DAY_S / 2) / DAY_S;
		gnutls_x509_crt_deinit(certificate);
	}
	good = good && ask(&client, "/", answer, sizeof answer) > 0 && strstr(answer, "\r\n\r\nhello\n") != NULL;
	close_client(&client);
	return good;
}

static const char any[] = "NORMAL";

/* ---- tests ---- */

static void versions_from_1_2_on_are_served(void **state)
{
	(void)state;
	struct issued own = issue("own", NULL, NULL, 3);
	put_pair(&own);
	start(false);
	int64_t days = 0;
	assert_true(try_hello("NORMAL:-VERS-ALL:+VERS-TLS1.2", NULL, &days));
	assert_int_equal(days, 3);
	assert_true(try_hello("NORMAL:-VERS-ALL:+VERS-TLS1.3", NULL, NULL));
	assert_false(try_hello("NORMAL:-VERS-ALL:+VERS-TLS1.1", NULL, NULL));
	assert_false(try_hello("NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-CBC", NULL, NULL));
	struct client client;
	char *answer = malloc(PAGE_BYTES + 4096);
	assert_int_equal(open_client(&client, any, NULL), 0);
	assert_true(ask(&client, "/large", answer, PAGE_BYTES + 4096) > PAGE_BYTES);
	close_client(&client);
	assert_int_equal(open_client(&client, any, NULL), 0);
	assert_true(ask(&client, "/metrics", answer, PAGE_BYTES) > 0);
	const char *metric = strstr(answer, "\nweir_http_certificate_expires_timestamp_seconds ");
	assert_non_null(metric);
	assert_true(strtod(strchr(metric + 1, ' '), NULL) == (double)gnutls_x509_crt_get_expiration_time(own.certificate));
	close_client(&client);
	free(answer);
	forget(&own);
}

static void who_speaks_no_tls_is_told(void **state)
{
	(void)state;
	struct issued own = issue("own", NULL, NULL, 3);
	put_pair(&own);
	start(false);
	static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	char answer[1024];
	ssize_t total = 0, got;
	int fd = connect_plain();
	assert_int_equal(send(fd, request, sizeof request - 1, MSG_NOSIGNAL), (ssize_t)sizeof request - 1);
	while ((got = recv(fd, answer + total, sizeof answer - 1 - (size_t)total, 0)) > 0)
		total += got;
	answer[total] = '\0';
	close(fd);
	assert_int_equal(strncmp(answer, "HTTP/1.1 400 ", 13), 0);
	const char *length = strstr(answer, "Content-Length: "), *body = strstr(answer, "\r\n\r\n");
	assert_true(length != NULL && body != NULL && strstr(body, "https://") != NULL);
	assert_int_equal(strtol(length + 16, NULL, 10), (long)strlen(body + 4));
	/* Bytes of no kind are cut off, and leave nobody waiting. */
	fd = connect_plain();
	assert_int_equal(send(fd, "\1\2\3\4\5\6\7\10", 8, MSG_NOSIGNAL), 8);
	while (recv(fd, answer, sizeof answer, 0) > 0)
		;
	close(fd);
	assert_true(try_hello(any, NULL, NULL));
	forget(&own);
}

static void a_client_cannot_negotiate_anew(void **state)
{
	(void)state;
	struct issued own = issue("own", NULL, NULL, 3);
	put_pair(&own);
	start(false);
	struct client client;
	assert_int_equal(open_client(&client, "NORMAL:-VERS-ALL:+VERS-TLS1.2", NULL), 0);
	assert_true(gnutls_handshake(client.session) < 0);
	close_client(&client);
	assert_true(try_hello(any, NULL, NULL));
	forget(&own);
}

/* A handshake that stands still, at any of its bytes, is as good as silence: it makes room. */
static void half_a_handshake_keeps_nobody_out(void **state)
{
	(void)state;
	struct issued own = issue("own", NULL, NULL, 3);
	put_pair(&own);
	start(false);
	/* A record that says it is 512 bytes of a ClientHello, and begins. */
	static const char begun[] = {0x16, 3, 1, 2, 0, 1, 0, 1, (char)0xfc, 3, 3};
	int held[8 * CONNECTIONS];
	for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
		held[i] = connect_plain();
		(void)!send(held[i], begun, i % (sizeof begun + 1), MSG_NOSIGNAL);
		if (i % 8 == 0)
			assert_true(try_hello(any, NULL, NULL));
	}
	for (int i = 0; i < 10; i++)
		assert_true(try_hello(any, NULL, NULL));
	for (size_t i = 0; i < sizeof held / sizeof *held; i++)
		close(held[i]);
	forget(&own);
}

/* @return the alert that a client gets; -1: none */
static int alert_for(const char *priorities, const struct issued *own)
{
	struct client client;
	char answer[4096] = "";
	int code = open_client(&client, priorities, own);
	if (code == 0) /* of TLS 1.3, which ends for a client before the server has seen its certificate */
		code = (int)gnutls_record_recv(client.session, answer, sizeof answer);
	int alert = code == GNUTLS_E_FATAL_ALERT_RECEIVED ? (int)gnutls_alert_get(client.session) : -1;
	close_client(&client);
	return alert;
}

/* Until the server has said it so often. */
static void await_words(const char *words, int wanted);

static void who_shows_another_certificate_is_told_and_counted(void **state)
{
	(void)state;
	struct issued own = issue("own", NULL, NULL, 3), authority = issue("authority", NULL, NULL, 3);
	struct issued other = issue("authority", NULL, NULL, 3);
	struct issued server = issue("server", &authority, GNUTLS_KP_TLS_WWW_SERVER, 3);
	struct issued foreign = issue("good", &other, GNUTLS_KP_TLS_WWW_CLIENT, 3);
	struct issued late = issue("late", &authority, GNUTLS_KP_TLS_WWW_CLIENT, -1);
	put_pair(&own);
	put_certificate(ca, &authority);
	start(true);
	const struct {
		const char *priorities;
		const struct issued *own;
		int alert;
	} cases[] = {
		{"NORMAL:-VERS-ALL:+VERS-TLS1.3", NULL, GNUTLS_A_CERTIFICATE_REQUIRED},
		{"NORMAL:-VERS-ALL:+VERS-TLS1.3", &late, GNUTLS_A_CERTIFICATE_EXPIRED},
		{"NORMAL:-VERS-ALL:+VERS-TLS1.3", &foreign, GNUTLS_A_UNKNOWN_CA},
		{"NORMAL:-VERS-ALL:+VERS-TLS1.3", &server, GNUTLS_A_UNSUPPORTED_CERTIFICATE},
		{"NORMAL:-VERS-ALL:+VERS-TLS1.2", NULL, GNUTLS_A_HANDSHAKE_FAILURE},
		{"NORMAL:-VERS-ALL:+VERS-TLS1.2", &late, GNUTLS_A_CERTIFICATE_EXPIRED},
		{"NORMAL:-VERS-ALL:+VERS-TLS1.2", &foreign, GNUTLS_A_UNKNOWN_CA},
		{"NORMAL:-VERS-ALL:+VERS-TLS1.2", &server, GNUTLS_A_UNSUPPORTED_CERTIFICATE},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(alert_for(cases[i].priorities, cases[i].own), cases[i].alert);
		assert_int_equal(weir_http_clients_refused(http), i + 1);
	}
	await_words("a connection of 127.0.0.1 to port ", 1);
	await_words("was refused: it shows no certificate, and", 1);
	const struct issued *all[] = {&own, &authority, &other, &server, &foreign, &late};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		forget((struct issued *)(uintptr_t)all[i]);
}

static void clients_show_a_certificate_where_one_is_asked_for(void **state)
{
	(void)state;
	struct issued own = issue("own", NULL, NULL, 3), authority = issue("authority", NULL, NULL, 3);
	struct issued other = issue("authority", NULL, NULL, 3);
	struct issued good = issue("good", &authority, GNUTLS_KP_TLS_WWW_CLIENT, 3);
	struct issued plain = issue("plain", &authority, NULL, 3),
				  server = issue("server", &authority, GNUTLS_KP_TLS_WWW_SERVER, 3);
	struct issued foreign = issue("good", &other, GNUTLS_KP_TLS_WWW_CLIENT, 3);
	struct issued late = issue("late", &authority, GNUTLS_KP_TLS_WWW_CLIENT, -1);
	put_pair(&own);
	put_certificate(ca, &authority);
	start(true);
	static const char *const versions[] = {"NORMAL:-VERS-ALL:+VERS-TLS1.2", "NORMAL:-VERS-ALL:+VERS-TLS1.3"};
	for (size_t i = 0; i < 2; i++) {
		assert_true(try_hello(versions[i], &good, NULL));
		assert_true(try_hello(versions[i], &plain, NULL));
		assert_false(try_hello(versions[i], NULL, NULL));
		assert_false(try_hello(versions[i], &server, NULL));
		assert_false(try_hello(versions[i], &foreign, NULL));
		assert_false(try_hello(versions[i], &late, NULL));
	}
	struct issued *const all[] = {&own, &authority, &other, &good, &plain, &server, &foreign, &late};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		forget(all[i]);
}

/* ---- renewal ---- */

static atomic_bool done;

struct asker {
	pthread_t thread;
	unsigned asked, lost;
};

static void *ask_on(void *context)
{
	struct asker *asker = context;
	while (!atomic_load(&done)) {
		asker->asked++;
		asker->lost += !try_hello(any, NULL, NULL);
	}
	return NULL;
}

/* Until the server has said it so often. */
static void await_words(const char *words, int wanted)
{
	char text[8192];
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	for (int count = 0; count < wanted; usleep(20000)) {
		ssize_t length = pread(fileno(said), text, sizeof text - 1, 0);
		text[length] = '\0';
		count = 0;
		for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
			count++;
		assert_true(weir_monotonic_ms() < end_ms);
	}
}

static void await_days(int64_t wanted)
{
	int64_t days = 0, end_ms = weir_monotonic_ms() + PATIENCE_MS;
	while (days != wanted && weir_monotonic_ms() < end_ms) {
		assert_true(try_hello(any, NULL, &days));
		usleep(20000);
	}
	assert_int_equal(days, wanted);
}

static void a_renewal_under_load_loses_no_request(void **state)
{
	(void)state;
	struct issued first = issue("first", NULL, NULL, 3), second = issue("second", NULL, NULL, 30);
	struct issued third = issue("third", NULL, NULL, 60);
	put_pair(&first);
	start(false);
	struct client kept; /* began before */
	assert_int_equal(open_client(&kept, any, NULL), 0);
	struct asker askers[3] = {{.asked = 0}};
	atomic_store(&done, false);
	for (size_t i = 0; i < 3; i++)
		pthread_create(&askers[i].thread, NULL, ask_on, &askers[i]);
	put_pair(&second);
	await_days(30);
	/* A key that does not belong, then nothing at all: the previous pair stays. */
	put_certificate(crt, &third);
	await_words("stays in use", 1);
	int64_t days = 0;
	assert_true(try_hello(any, NULL, &days));
	assert_int_equal(days, 30);
	unlink(crt);
	await_words("stays in use", 2);
	assert_true(try_hello(any, NULL, &days));
	assert_int_equal(days, 30);
	put_pair(&third);
	await_days(60);
	atomic_store(&done, true);
	for (size_t i = 0; i < 3; i++) {
		pthread_join(askers[i].thread, NULL);
		assert_true(askers[i].asked > 0);
		assert_int_equal(askers[i].lost, 0);
	}
	char answer[4096];
	assert_true(ask(&kept, "/", answer, sizeof answer) > 0);
	assert_non_null(strstr(answer, "\r\n\r\nhello\n"));
	close_client(&kept);
	forget(&first);
	forget(&second);
	forget(&third);
}

/* ---- what is refused ---- */

static void expect(bool clients, const char *one, const char *other)
{
	struct weir_text doubts = {0};
	struct weir_error error;
	const struct weir_http_tls tls = files(clients);
	if (weir_http_tls_check(&tls, &doubts, &error) == WEIR_OK)
		fail_msg("it is taken, and \"%s\" was expected", one);
	if (strstr(error.text, one) == NULL || strstr(error.text, other) == NULL)
		fail_msg("%s: it lacks \"%s\" or \"%s\"", error.text, one, other);
	weir_text_deinit(&doubts);
	const struct weir_http_options options = {.host = "127.0.0.1", .paths = paths, .path_count = 3, .tls = tls};
	assert_int_equal(weir_http_start(&options, &http, &error), WEIR_INVALID);
}

/* Whether it is taken, with this said of it. @param words  NULL: nothing is */
static void expect_doubt(const char *words)
{
	struct weir_text doubts = {0};
	struct weir_error error;
	const struct weir_http_tls tls = files(false);
	assert_int_equal(weir_http_tls_check(&tls, &doubts, &error), WEIR_OK);
	weir_text_append(&doubts, "", 1);
	if (words == NULL)
		assert_string_equal(doubts.at, "");
	else if (strstr(doubts.at, words) == NULL || strstr(doubts.at, folder) == NULL)
		fail_msg("\"%s\" lacks \"%s\"", doubts.at, words);
	weir_text_deinit(&doubts);
}

static void what_cannot_serve_is_refused_in_words(void **state)
{
	(void)state;
	struct issued one = issue("one", NULL, NULL, 3), other = issue("other", NULL, NULL, 3);
	expect(false, "listen.certificate: cannot open ", crt);
	put_pair(&one);
	expect_doubt(NULL);
	unlink(key);
	expect(false, "listen.key: cannot open ", "must be able to read it");
	put_key(key, &other);
	expect(false, "listen.key: ", "is not the key of the first certificate in ");
	put_text(key, "nothing\n");
	expect(false, "listen.key: ", "is no private key in PEM form");
	put_key(key, &one);
	put_text(crt, "nothing\n");
	expect(false, "listen.certificate: ", "has no certificate in PEM form");
	put_pair(&one);
	put_text(ca, "nothing\n");
	expect(true, "listen.client_ca: ", "has no certificate in PEM form");
	char encrypted[4096];
	size_t bytes = sizeof encrypted - 1;
	assert_int_equal(gnutls_x509_privkey_export_pkcs8(one.key, GNUTLS_X509_FMT_PEM, "pass", GNUTLS_PKCS_PBES2_AES_256,
	                                                  encrypted, &bytes),
	                 0);
	encrypted[bytes] = '\0';
	put_text(key, encrypted);
	expect(false, "listen.key: ", "openssl pkey -in ");
	forget(&one);
	forget(&other);
}

static void what_clients_will_refuse_is_said(void **state)
{
	(void)state;
	struct issued late = issue("late", NULL, NULL, -1), good = issue("good", NULL, NULL, 1);
	put_pair(&late);
	expect_doubt(" expired on ");
	put_pair(&good);
	expect_doubt(NULL);
	chmod(key, 0644);
	expect_doubt("chmod o-rwx ");
	forget(&late);
	forget(&good);
}

/* Who waits for room to send where nothing is to be sent is told at once that there is room, again and again. */
static void a_stream_wants_to_write_while_something_is_unsent(void **state)
{
	(void)state;
	struct issued own = issue("own", NULL, NULL, 3);
	struct weir_http_tls_server *tls;
	struct weir_http_tls served = files(false);
	struct weir_error error;
	struct client client;
	static char bytes[1 << 16];
	int ends[2], code = -1;
	ssize_t got = -1;
	put_pair(&own);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	assert_int_equal(weir_http_tls_open(&served, NULL, &tls, &error), WEIR_OK);
	struct weir_tls_stream *stream = weir_tls_stream_new(tls, ends[0]);
	prepare_client(&client, ends[1], any, NULL);
	for (int steps = 0; steps < 100 && (code != 0 || !weir_tls_stream_greeted(stream)); steps++) {
		code = code != 0 ? gnutls_handshake(client.session) : 0;
		got = weir_tls_stream_read(stream, bytes, sizeof bytes);
		assert_true(got < 0 && errno == EAGAIN);
	}
	assert_int_equal(gnutls_record_send(client.session, "ping", 4), 4);
	assert_int_equal(weir_tls_stream_read(stream, bytes, sizeof bytes), 4);
	assert_int_equal(weir_tls_stream_write(stream, "pong", 4), 4);
	assert_false(weir_tls_stream_wants_write(stream));
	while ((got = weir_tls_stream_write(stream, bytes, sizeof bytes)) > 0)
		;
	assert_int_equal(errno, EAGAIN);
	assert_true(weir_tls_stream_wants_write(stream));
	weir_tls_stream_free(stream);
	weir_http_tls_close(tls);
	close(ends[0]);
	close_client(&client);
	forget(&own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(versions_from_1_2_on_are_served, setup, teardown),
		cmocka_unit_test_setup_teardown(who_speaks_no_tls_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(a_client_cannot_negotiate_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(half_a_handshake_keeps_nobody_out, setup, teardown),
		cmocka_unit_test_setup_teardown(clients_show_a_certificate_where_one_is_asked_for, setup, teardown),
		cmocka_unit_test_setup_teardown(who_shows_another_certificate_is_told_and_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(a_renewal_under_load_loses_no_request, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_serve_is_refused_in_words, setup, teardown),
		cmocka_unit_test_setup_teardown(what_clients_will_refuse_is_said, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stream_wants_to_write_while_something_is_unsent, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

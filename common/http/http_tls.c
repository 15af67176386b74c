/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS of an HTTP server: its certificate and key, read again when their files
 * change. GnuTLS, which libmicrohttpd speaks it by, is met here.
 *
 * A connection keeps the pair that it began with; the next one has the newest. The
 * files are looked at once a second, and taken once they have stayed as they are
 * from one look to the next, so that what is half written is not read. A pair
 * that cannot serve changes nothing and is said.
 *
 * The handshake is libmicrohttpd's: on the server's thread, without waiting. What
 * has not finished it counts as a connection that asked nothing: it makes room,
 * and is cut when its turn is over. Bytes pass through here, so that whoever asks
 * without TLS is told, and no pipe's signal is raised.
 */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/read_file.h"
#include "common/base/shell.h"
#include "common/http/internal.h"
#include "common/log/log.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 1 << 20, DATE_BYTES = 32, DRAIN_BYTES = 16 << 10, TELL_MS = 10000 };

/* Secrecy of what was sent outlives the key; nothing older than TLS 1.2. */
static const char priorities[] =
	"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-DHE-RSA:-CIPHER-ALL:+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:"
	"%SERVER_PRECEDENCE";

/* What a connection serves with. */
struct weir_http_tls_pair {
	gnutls_certificate_credentials_t credentials;
	bool asks_clients; /* for a certificate of theirs */
	int64_t expires_s; /* Unix time */
	unsigned users;    /* connections, and being the newest */
};

struct stamp {
	struct {
		dev_t device;
		ino_t inode;
		off_t bytes;
		struct timespec modified, changed;
	} files[3];
};

struct weir_http_tls_server {
	struct weir_http_tls files;
	const struct weir_log *log; /* NULL: nothing is said */
	pthread_mutex_t looking;    /* of both stamps */
	struct stamp seen, taken;
	pthread_mutex_t mutex; /* of what follows */
	struct weir_http_tls_pair *newest;
	bool quiet;               /* its owner says who was refused */
	uint64_t refused, untold; /* clients, by their certificate; of them, since the last that was said */
	int64_t tell_ms;          /* when the next may be said, monotonic */
};

/* ---- reading the files ---- */

/* "listen.key: words" */
#define REFUSE(files, error, name, words, ...) \
	weir_fail(error, WEIR_INVALID, "%s" name ": " words, (files)->prefix != NULL ? (files)->prefix : "", __VA_ARGS__)

static enum weir_status read_pem(const struct weir_http_tls *files, const char *name, const char *path,
                                 gnutls_datum_t *datum, struct weir_error *error)
{
	char *text;
	size_t length;
	struct weir_error words;
	if (weir_read_file(path, FILE_MAX_BYTES, &text, &length, &words) != WEIR_OK)
		return weir_fail(error, WEIR_INVALID, "%s%s: %s; it must be there, and uid %u must be able to read it",
		                 files->prefix != NULL ? files->prefix : "", name, words.text, (unsigned)geteuid());
	*datum = (gnutls_datum_t){.data = (unsigned char *)text, .size = (unsigned)length};
	return WEIR_OK;
}

static void free_pem(gnutls_datum_t *datum)
{
	if (datum->data != NULL)
		explicit_bzero(datum->data, datum->size);
	free(datum->data);
}

static enum weir_status read_key(const struct weir_http_tls *files, gnutls_x509_privkey_t *key,
                                 struct weir_error *error)
{
	gnutls_datum_t datum = {0};
	enum weir_status status = read_pem(files, "key", files->key, &datum, error);
	if (status != WEIR_OK)
		return status;
	gnutls_x509_privkey_init(key);
	int code = gnutls_x509_privkey_import2(*key, &datum, GNUTLS_X509_FMT_PEM, NULL, 0);
	free_pem(&datum);
	if (code == GNUTLS_E_DECRYPTION_FAILED)
		status = REFUSE(files, error, "key",
		                "%s has a passphrase, which nobody could give at a start: take it off by openssl pkey -in %s "
		                "-out FILE",
		                files->key, files->key);
	else if (code < 0)
		status = REFUSE(files, error, "key", "%s is no private key in PEM form: %s", files->key, gnutls_strerror(code));
	if (status != WEIR_OK)
		gnutls_x509_privkey_deinit(*key);
	return status;
}

/* The certificate and those that issued it. @param list  returned: free_list() */
static enum weir_status read_chain(const struct weir_http_tls *files, gnutls_x509_crt_t **list, unsigned *count,
                                   struct weir_error *error)
{
	gnutls_datum_t datum = {0};
	enum weir_status status = read_pem(files, "certificate", files->certificate, &datum, error);
	if (status != WEIR_OK)
		return status;
	int code = gnutls_x509_crt_list_import2(list, count, &datum, GNUTLS_X509_FMT_PEM, 0);
	free_pem(&datum);
	if (code < 0)
		return REFUSE(files, error, "certificate", "%s has no certificate in PEM form: %s", files->certificate,
		              gnutls_strerror(code));
	return WEIR_OK;
}

static void free_list(gnutls_x509_crt_t *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		gnutls_x509_crt_deinit(list[i]);
	gnutls_free(list);
}

static enum weir_status read_client_ca(const struct weir_http_tls *files, struct weir_http_tls_pair *pair,
                                       struct weir_error *error)
{
	gnutls_datum_t datum = {0};
	if (files->client_ca == NULL)
		return WEIR_OK;
	enum weir_status status = read_pem(files, "client_ca", files->client_ca, &datum, error);
	if (status != WEIR_OK)
		return status;
	int code = gnutls_certificate_set_x509_trust_mem(pair->credentials, &datum, GNUTLS_X509_FMT_PEM);
	free_pem(&datum);
	pair->asks_clients = true;
	if (code <= 0)
		return REFUSE(files, error, "client_ca", "%s has no certificate in PEM form", files->client_ca);
	return WEIR_OK;
}

static void pair_free(struct weir_http_tls_pair *pair)
{
	gnutls_certificate_free_credentials(pair->credentials);
	free(pair);
}

/* @param begins_s, pair  returned */
static enum weir_status pair_read(const struct weir_http_tls *files, int64_t *begins_s,
                                  struct weir_http_tls_pair **pair, struct weir_error *error)
{
	gnutls_x509_crt_t *list;
	gnutls_x509_privkey_t key;
	unsigned count;
	enum weir_status status = read_chain(files, &list, &count, error);
	if (status != WEIR_OK)
		return status;
	if ((status = read_key(files, &key, error)) != WEIR_OK) {
		free_list(list, count);
		return status;
	}
	struct weir_http_tls_pair *made = weir_alloc(1, sizeof *made);
	gnutls_certificate_allocate_credentials(&made->credentials);
	made->users = 1;
	made->expires_s = (int64_t)gnutls_x509_crt_get_expiration_time(list[0]);
	*begins_s = (int64_t)gnutls_x509_crt_get_activation_time(list[0]);
	int code = gnutls_certificate_set_x509_key(made->credentials, list, (int)count, key);
	gnutls_x509_privkey_deinit(key);
	free_list(list, count);
	if (code == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
		status = REFUSE(files, error, "key",
		                "%s is not the key of the first certificate in %s: name two that belong together", files->key,
		                files->certificate);
	else if (code < 0)
		status = REFUSE(files, error, "certificate", "%s: %s", files->certificate, gnutls_strerror(code));
	if (status == WEIR_OK)
		status = read_client_ca(files, made, error);
	if (status == WEIR_OK)
		*pair = made;
	else
		pair_free(made);
	return status;
}

static const char *format_date(int64_t at_s, char *room)
{
	time_t at = (time_t)at_s;
	struct tm parts;
	if (gmtime_r(&at, &parts) == NULL || strftime(room, DATE_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
		snprintf(room, DATE_BYTES, "%lld", (long long)at_s);
	return room;
}

/* What clients will refuse, and who else may be the server. */
static void find_doubts(const struct weir_http_tls *files, const struct weir_http_tls_pair *pair, int64_t begins_s,
                        struct weir_text *words)
{
	char date[DATE_BYTES];
	struct stat key;
	int64_t now_s = weir_wall_ms() / 1000;
	if (pair->expires_s <= now_s)
		weir_text_printf(words, "%s expired on %s, so clients refuse it: renew it. ", files->certificate,
		                 format_date(pair->expires_s, date));
	if (begins_s > now_s)
		weir_text_printf(words, "%s is not valid before %s, so clients refuse it: look at the clock. ",
		                 files->certificate, format_date(begins_s, date));
	if (stat(files->key, &key) == 0 && (key.st_mode & S_IRWXO) != 0)
		weir_text_printf(words, "every user on this machine can read or change %s: run chmod o-rwx %s. ", files->key,
		                 weir_shell_word(files->key).text);
}

enum weir_status weir_http_tls_check(const struct weir_http_tls *files, struct weir_text *doubts,
                                     struct weir_error *error)
{
	struct weir_http_tls_pair *pair;
	int64_t begins_s;
	if (files->certificate == NULL)
		return WEIR_OK;
	enum weir_status status = pair_read(files, &begins_s, &pair, error);
	if (status != WEIR_OK)
		return status;
	find_doubts(files, pair, begins_s, doubts);
	pair_free(pair);
	return WEIR_OK;
}

enum weir_status weir_http_tls_expiry(const struct weir_http_tls *files, int64_t *expires_s, struct weir_error *error)
{
	struct weir_http_tls_pair *pair;
	int64_t begins_s;
	enum weir_status status = pair_read(files, &begins_s, &pair, error);
	if (status != WEIR_OK)
		return status;
	*expires_s = pair->expires_s;
	pair_free(pair);
	return WEIR_OK;
}

/* ---- the newest pair ---- */

static void leave(struct weir_http_tls_pair *pair)
{
	if (--pair->users == 0)
		pair_free(pair);
}

/* Bytes that are equal are the same files, untouched; a file that is not there is all zeros. */
static void look_at(const struct weir_http_tls *files, struct stamp *stamp)
{
	const char *const paths[] = {files->certificate, files->key, files->client_ca};
	memset(stamp, 0, sizeof *stamp);
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct stat found;
		if (paths[i] == NULL || stat(paths[i], &found) != 0)
			continue;
		stamp->files[i].device = found.st_dev;
		stamp->files[i].inode = found.st_ino;
		stamp->files[i].bytes = found.st_size;
		stamp->files[i].modified = found.st_mtim;
		stamp->files[i].changed = found.st_ctim;
	}
}

static bool is_same(const struct stamp *one, const struct stamp *other)
{
	return memcmp(one, other, sizeof *one) == 0;
}

static void say(const struct weir_http_tls_server *tls, enum weir_log_level level, const char *words)
{
	if (tls->log != NULL)
		weir_log(tls->log, level, "http", "%s", words);
}

static enum weir_status take_pair(struct weir_http_tls_server *tls, struct weir_error *error)
{
	struct weir_http_tls_pair *pair;
	int64_t begins_s;
	enum weir_status status = pair_read(&tls->files, &begins_s, &pair, error);
	if (status != WEIR_OK)
		return status;
	struct weir_text doubts = {0};
	find_doubts(&tls->files, pair, begins_s, &doubts);
	pthread_mutex_lock(&tls->mutex);
	struct weir_http_tls_pair *previous = tls->newest;
	tls->newest = pair;
	if (previous != NULL)
		leave(previous);
	pthread_mutex_unlock(&tls->mutex);
	weir_text_append(&doubts, "", 1);
	if (doubts.length > 1)
		say(tls, WEIR_LOG_WARNING, doubts.at);
	weir_text_deinit(&doubts);
	return WEIR_OK;
}

enum weir_status weir_http_tls_open(const struct weir_http_tls *files, const struct weir_log *log,
                                    struct weir_http_tls_server **tls, struct weir_error *error)
{
	struct weir_http_tls_server *made = weir_alloc(1, sizeof *made);
	made->files = *files;
	made->log = log;
	pthread_mutex_init(&made->looking, NULL);
	pthread_mutex_init(&made->mutex, NULL);
	look_at(files, &made->taken);
	made->seen = made->taken;
	enum weir_status status = take_pair(made, error);
	if (status == WEIR_OK)
		*tls = made;
	else
		weir_http_tls_close(made);
	return status;
}

void weir_http_tls_close(struct weir_http_tls_server *tls)
{
	if (tls == NULL)
		return;
	if (tls->newest != NULL)
		leave(tls->newest);
	pthread_mutex_destroy(&tls->mutex);
	pthread_mutex_destroy(&tls->looking);
	free(tls);
}

int64_t weir_http_tls_expires_s(struct weir_http_tls_server *tls)
{
	pthread_mutex_lock(&tls->mutex);
	int64_t expires_s = tls->newest->expires_s;
	pthread_mutex_unlock(&tls->mutex);
	return expires_s;
}

static void renew(struct weir_http_tls_server *tls)
{
	struct weir_error error;
	char date[DATE_BYTES], words[sizeof error.text + 128];
	enum weir_status status = take_pair(tls, &error);
	format_date(weir_http_tls_expires_s(tls), date);
	if (status == WEIR_OK)
		snprintf(words, sizeof words, "the certificate was read again; it expires on %s", date);
	else
		snprintf(words, sizeof words, "%s. The previous certificate stays in use; it expires on %s", error.text, date);
	say(tls, status == WEIR_OK ? WEIR_LOG_INFO : WEIR_LOG_WARNING, words);
}

void weir_http_tls_look(struct weir_http_tls_server *tls)
{
	struct stamp stamp;
	if (pthread_mutex_trylock(&tls->looking) != 0)
		return; /* another worker does, from slow files */
	look_at(&tls->files, &stamp);
	if (!is_same(&stamp, &tls->taken) && is_same(&stamp, &tls->seen)) {
		tls->taken = stamp;
		renew(tls);
	}
	tls->seen = stamp;
	pthread_mutex_unlock(&tls->looking);
}

/* ---- connections ---- */

static void refuse_plain(int fd)
{
	static const char answer[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
								 "Content-Length: 41\r\nConnection: close\r\n\r\n"
								 "this port speaks TLS: ask it by https://\n";
	char rest[1024];
	/* What stays unread would cut the answer off. */
	for (size_t read = 0; read < DRAIN_BYTES && recv(fd, rest, sizeof rest, MSG_DONTWAIT) > 0; read += sizeof rest)
		;
	(void)!send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	shutdown(fd, SHUT_RDWR);
}

static ssize_t pull(gnutls_transport_ptr_t context, void *room, size_t bytes)
{
	struct weir_http_client *client = context;
	ssize_t got = recv(client->fd, room, bytes, 0);
	if (got <= 0 || client->spoke)
		return got;
	client->spoke = true;
	char first = *(const char *)room;
	if (first < 'A' || first > 'Z') /* no method of HTTP */
		return got;
	refuse_plain(client->fd);
	errno = ECONNABORTED;
	return -1;
}

static ssize_t push(gnutls_transport_ptr_t context, const void *bytes, size_t length)
{
	const struct weir_http_client *client = context;
	return send(client->fd, bytes, length, MSG_NOSIGNAL);
}

/* Says whether there are bytes, and waits for none, whatever it is asked: all connections are on this thread. */
static int look_before_pull(gnutls_transport_ptr_t context, unsigned wait_ms)
{
	const struct weir_http_client *client = context;
	struct pollfd one = {.fd = client->fd, .events = POLLIN};
	(void)wait_ms;
	return poll(&one, 1, 0);
}

/* ---- clients' certificates ---- */

/* "of 203.0.113.9 to port 8443" */
static void name_ends(int fd, char *text, size_t bytes)
{
	struct sockaddr_storage name;
	socklen_t length = sizeof name;
	char host[64] = "somebody", port[8] = "";
	if (getpeername(fd, (struct sockaddr *)&name, &length) == 0)
		(void)getnameinfo((const struct sockaddr *)&name, length, host, sizeof host, NULL, 0, NI_NUMERICHOST);
	length = sizeof name;
	if (getsockname(fd, (struct sockaddr *)&name, &length) == 0)
		(void)getnameinfo((const struct sockaddr *)&name, length, NULL, 0, port, sizeof port, NI_NUMERICSERV);
	snprintf(text, bytes, "of %s to port %s", host, port);
}

/* Counts a client that was refused, and says it, of many at once one. */
static void tell_refusal(struct weir_http_tls_server *tls, int fd, const char *why)
{
	char ends[96], words[256], more[80] = "";
	int64_t now_ms = weir_monotonic_ms();
	pthread_mutex_lock(&tls->mutex);
	tls->refused++;
	bool tells = !tls->quiet && now_ms >= tls->tell_ms;
	uint64_t others = tls->untold;
	tls->untold = tells ? 0 : others + 1;
	if (tells)
		tls->tell_ms = now_ms + TELL_MS;
	pthread_mutex_unlock(&tls->mutex);
	if (!tells)
		return;
	name_ends(fd, ends, sizeof ends);
	if (others > 0)
		snprintf(more, sizeof more, " (so were %llu others since the last that is here)", (unsigned long long)others);
	snprintf(words, sizeof words, "a connection %s was refused: %s%s", ends, why, more);
	say(tls, WEIR_LOG_WARNING, words);
}

/* Tells the client, too: who serves the handshake ends it without a word. */
static void refuse_client(gnutls_session_t session, gnutls_alert_description_t alert, const char *why)
{
	struct weir_http_client *client = gnutls_transport_get_ptr(session);
	if (client->refusal != NULL)
		return;
	client->refusal = why;
	tell_refusal(client->tls, client->fd, why);
	(void)gnutls_alert_send(session, GNUTLS_AL_FATAL, alert);
}

/* A client must have been given its certificate for that. */
static int verify_client(gnutls_session_t session)
{
	static const gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
	                                              .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
	unsigned status = 0;
	int code = gnutls_certificate_verify_peers(session, (gnutls_typed_vdata_st *)(uintptr_t)&purpose, 1, &status);
	if (code == 0 && status == 0)
		return 0;
	if (code < 0)
		refuse_client(session, GNUTLS_A_BAD_CERTIFICATE, "its certificate cannot be read");
	else if ((status & (GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNATURE_FAILURE)) != 0)
		refuse_client(session, GNUTLS_A_UNKNOWN_CA, "its certificate was not issued by one in \"client_ca\"");
	else if ((status & GNUTLS_CERT_EXPIRED) != 0)
		refuse_client(session, GNUTLS_A_CERTIFICATE_EXPIRED, "its certificate has expired");
	else if ((status & GNUTLS_CERT_NOT_ACTIVATED) != 0)
		refuse_client(session, GNUTLS_A_BAD_CERTIFICATE, "its certificate is not valid yet: look at the clocks");
	else if ((status & GNUTLS_CERT_PURPOSE_MISMATCH) != 0)
		refuse_client(session, GNUTLS_A_UNSUPPORTED_CERTIFICATE, "its certificate is for no client");
	else
		refuse_client(session, GNUTLS_A_BAD_CERTIFICATE, "its certificate is not trusted");
	return -1;
}

/* Whether a message of the handshake with certificates has none. */
static bool has_no_certificate(gnutls_session_t session, const gnutls_datum_t *message)
{
	size_t at = gnutls_protocol_get_version(session) == GNUTLS_TLS1_3 ? 1 : 0; /* behind an empty context */
	return message->size >= at + 3 && (message->data[at] | message->data[at + 1] | message->data[at + 2]) == 0;
}

/* GnuTLS verifies nothing where there is none, and ends the handshake. */
static int look_for_certificate(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
                                const gnutls_datum_t *message)
{
	(void)when;
	if (incoming != 0 && type == GNUTLS_HANDSHAKE_CERTIFICATE_PKT && has_no_certificate(session, message))
		refuse_client(session,
		              gnutls_protocol_get_version(session) == GNUTLS_TLS1_3 ? GNUTLS_A_CERTIFICATE_REQUIRED
		                                                                    : GNUTLS_A_HANDSHAKE_FAILURE,
		              "it shows no certificate, and \"client_ca\" asks for one");
	return 0;
}

static void ask_for_certificate(gnutls_session_t session)
{
	gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
	gnutls_session_set_verify_function(session, verify_client);
	gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_CERTIFICATE_PKT, GNUTLS_HOOK_PRE,
	                                   look_for_certificate);
}

uint64_t weir_http_tls_refused(struct weir_http_tls_server *tls)
{
	pthread_mutex_lock(&tls->mutex);
	uint64_t refused = tls->refused;
	pthread_mutex_unlock(&tls->mutex);
	return refused;
}

void weir_http_tls_quiet(struct weir_http_tls_server *tls)
{
	tls->quiet = true;
}

void weir_http_tls_join(struct weir_http_tls_server *tls, struct weir_http_client *client, void *session)
{
	pthread_mutex_lock(&tls->mutex);
	client->pair = tls->newest;
	client->pair->users++;
	pthread_mutex_unlock(&tls->mutex);
	client->tls = tls;
	gnutls_credentials_clear(session);
	gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, client->pair->credentials);
	if (client->pair->asks_clients)
		ask_for_certificate(session);
	gnutls_transport_set_ptr(session, client);
	gnutls_transport_set_pull_function(session, pull);
	gnutls_transport_set_push_function(session, push);
	gnutls_transport_set_pull_timeout_function(session, look_before_pull);
}

void weir_http_tls_leave(struct weir_http_tls_server *tls, struct weir_http_client *client)
{
	pthread_mutex_lock(&tls->mutex);
	if (client->pair != NULL)
		leave(client->pair);
	pthread_mutex_unlock(&tls->mutex);
	client->pair = NULL;
}

/* Each session is given its own pair as it begins; one that was not has none. */
static int no_certificate(gnutls_session_t session, const gnutls_datum_t *names, int name_count,
                          const gnutls_pk_algorithm_t *kinds, int kind_count, gnutls_pcert_st **certificates,
                          unsigned *certificate_count, gnutls_privkey_t *key)
{
	(void)session, (void)names, (void)name_count, (void)kinds, (void)kind_count;
	(void)certificates, (void)certificate_count, (void)key;
	return -1;
}

void weir_http_tls_options(struct MHD_OptionItem *options)
{
	union {
		gnutls_certificate_retrieve_function2 *function;
		void *pointer;
	} callback = {.function = no_certificate};
	options[0] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK, 0, callback.pointer};
	options[1] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)priorities};
	options[2] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
}

/* ---- a stream that is no HTTP: a session over a non-blocking socket ---- */

struct weir_tls_stream {
	struct weir_http_tls_server *tls;
	struct weir_http_client client;
	gnutls_session_t session;
	bool greeted;     /* the handshake is done */
	bool wants_write; /* what it was asked last could not send all that it has to */
	int failed;       /* GnuTLS's code; 0: not */
};

struct weir_tls_stream *weir_tls_stream_new(struct weir_http_tls_server *tls, int fd)
{
	struct weir_tls_stream *stream = weir_alloc(1, sizeof *stream);
	stream->tls = tls;
	stream->client = (struct weir_http_client){.fd = fd, .spoke = true}; /* no word of HTTP is looked for */
	if (gnutls_init(&stream->session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) != 0 ||
	    gnutls_priority_set_direct(stream->session, priorities, NULL) != 0)
		abort(); /* only if memory is exhausted */
	weir_http_tls_join(tls, &stream->client, stream->session);
	return stream;
}

void weir_tls_stream_speak(struct weir_tls_stream *stream, const char *protocol)
{
	const gnutls_datum_t name = {.data = (unsigned char *)(uintptr_t)protocol, .size = (unsigned)strlen(protocol)};
	if (gnutls_alpn_set_protocols(stream->session, &name, 1, GNUTLS_ALPN_MANDATORY) != 0)
		abort(); /* only if memory is exhausted */
}

void weir_tls_stream_free(struct weir_tls_stream *stream)
{
	if (stream == NULL)
		return;
	if (stream->greeted && stream->failed == 0)
		(void)gnutls_bye(stream->session, GNUTLS_SHUT_WR);
	gnutls_deinit(stream->session);
	weir_http_tls_leave(stream->tls, &stream->client);
	free(stream);
}

/* What a code of GnuTLS's is to who reads from a socket. */
static ssize_t as_errno(struct weir_tls_stream *stream, ssize_t code)
{
	stream->wants_write = false;
	if (code >= 0)
		return code;
	if (code == GNUTLS_E_PREMATURE_TERMINATION)
		return 0;
	bool goes_on = code == GNUTLS_E_AGAIN || code == GNUTLS_E_INTERRUPTED || gnutls_error_is_fatal((int)code) == 0;
	if (!goes_on)
		stream->failed = (int)code;
	/* GnuTLS tells of the last thing that it did, whether that is done or not. */
	stream->wants_write = goes_on && gnutls_record_get_direction(stream->session) == 1;
	errno = goes_on ? EAGAIN : EPROTO;
	return -1;
}

/* @return 1: done, or as weir_tls_stream_read() */
static ssize_t greet(struct weir_tls_stream *stream)
{
	if (stream->failed != 0) {
		errno = EPROTO;
		return -1;
	}
	if (stream->greeted)
		return 1;
	int code = gnutls_handshake(stream->session);
	stream->greeted = code == 0;
	if (code < 0 && gnutls_error_is_fatal(code) != 0 && stream->client.refusal == NULL)
		(void)gnutls_alert_send_appropriate(stream->session, code);
	return stream->greeted ? 1 : as_errno(stream, code);
}

ssize_t weir_tls_stream_read(struct weir_tls_stream *stream, void *room, size_t bytes)
{
	ssize_t done = greet(stream);
	return done == 1 ? as_errno(stream, gnutls_record_recv(stream->session, room, bytes)) : done;
}

ssize_t weir_tls_stream_write(struct weir_tls_stream *stream, const void *bytes, size_t length)
{
	ssize_t done = greet(stream);
	return done == 1 ? as_errno(stream, gnutls_record_send(stream->session, bytes, length)) : done;
}

bool weir_tls_stream_greeted(const struct weir_tls_stream *stream)
{
	return stream->greeted;
}

bool weir_tls_stream_pending(const struct weir_tls_stream *stream)
{
	return stream->greeted && gnutls_record_check_pending(stream->session) > 0;
}

bool weir_tls_stream_wants_write(const struct weir_tls_stream *stream)
{
	return stream->wants_write;
}

const char *weir_tls_stream_words(const struct weir_tls_stream *stream)
{
	if (stream->client.refusal != NULL)
		return stream->client.refusal;
	return stream->failed != 0 ? gnutls_strerror(stream->failed) : "";
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Either side is read only when what came before is written to the other: memory is two buffers. */
#include "common/redis/redis_tls.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES = 16384, LOOK_MS = 1000 };

struct buffer {
	char bytes[BUFFER_BYTES];
	int start, end;
};

struct weir_redis_tls {
	SSL_CTX *context;
	SSL *ssl;
	int server, clear; /* its own end of the pair; -1: none */
	short wanted;      /* of the server's socket, where TLS has to wait for it */
	struct buffer out, in;
	pthread_t thread;
	bool running;
};

static bool is_empty(const struct buffer *buffer)
{
	return buffer->start == buffer->end;
}

/* ---- carrying ---- */

enum step { MOVED, WAITS, ENDED };

/* What TLS says of a call that did not go on. */
static enum step ssl_step(struct weir_redis_tls *tls, int result)
{
	switch (SSL_get_error(tls->ssl, result)) {
	case SSL_ERROR_WANT_READ: tls->wanted |= POLLIN; return WAITS;
	case SSL_ERROR_WANT_WRITE: tls->wanted |= POLLOUT; return WAITS;
	default: ERR_clear_error(); return ENDED;
	}
}

static enum step send_out(struct weir_redis_tls *tls)
{
	struct buffer *out = &tls->out;
	if (is_empty(out)) {
		ssize_t count = recv(tls->clear, out->bytes, sizeof out->bytes, 0);
		if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
			return ENDED;
		out->start = 0;
		out->end = count > 0 ? (int)count : 0;
		if (count < 0)
			return WAITS;
	}
	int sent = SSL_write(tls->ssl, out->bytes + out->start, out->end - out->start);
	if (sent <= 0)
		return ssl_step(tls, sent);
	out->start += sent;
	return MOVED;
}

static enum step take_in(struct weir_redis_tls *tls)
{
	struct buffer *in = &tls->in;
	if (is_empty(in)) {
		int count = SSL_read(tls->ssl, in->bytes, sizeof in->bytes);
		if (count <= 0)
			return ssl_step(tls, count);
		in->start = 0;
		in->end = count;
	}
	ssize_t sent = send(tls->clear, in->bytes + in->start, (size_t)(in->end - in->start), MSG_NOSIGNAL);
	if (sent < 0)
		return errno == EAGAIN || errno == EINTR ? WAITS : ENDED;
	in->start += (int)sent;
	return MOVED;
}

/* @return false: the clear end is closed, so that nobody waits for what is not sent yet */
static bool await(struct weir_redis_tls *tls)
{
	short clear = (short)((is_empty(&tls->out) ? POLLIN : 0) | (is_empty(&tls->in) ? 0 : POLLOUT));
	struct pollfd sockets[] = {{.fd = tls->clear, .events = clear}, {.fd = tls->server, .events = tls->wanted}};
	poll(sockets, 2, LOOK_MS);
	return (sockets[0].revents & (POLLHUP | POLLERR)) == 0;
}

static void *carry(void *context)
{
	struct weir_redis_tls *tls = context;
	for (;;) {
		tls->wanted = 0;
		enum step out = send_out(tls);
		enum step in = out == ENDED ? ENDED : take_in(tls);
		if (out == ENDED || in == ENDED)
			break;
		if (out == WAITS && in == WAITS && !await(tls))
			break;
	}
	shutdown(tls->clear, SHUT_RDWR); /* whoever waits for an answer hears that none comes */
	return NULL;
}

/* ---- connecting ---- */

static int connect_one(const struct addrinfo *at, int64_t end_ms)
{
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), reason = 0;
	socklen_t bytes = sizeof reason;
	if (fd < 0)
		return -1;
	if (connect(fd, at->ai_addr, at->ai_addrlen) == 0)
		return fd;
	if (errno == EINPROGRESS) {
		struct pollfd socket_out = {.fd = fd, .events = POLLOUT};
		int64_t left_ms = end_ms - weir_monotonic_ms();
		if (left_ms <= 0 || poll(&socket_out, 1, (int)left_ms) <= 0)
			reason = ETIMEDOUT;
		else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &bytes) == 0 && reason == 0)
			return fd;
	} else {
		reason = errno;
	}
	close(fd);
	errno = reason;
	return -1;
}

static enum weir_status connect_to(struct weir_redis_tls *tls, const char *address, uint16_t port, int64_t end_ms,
                                   struct weir_error *error)
{
	char service[8];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *found;
	snprintf(service, sizeof service, "%u", port);
	int why = getaddrinfo(address, service, &hints, &found);
	if (why != 0)
		return weir_fail(error, WEIR_IO, "%s", gai_strerror(why));
	tls->server = connect_one(found, end_ms);
	int reason = errno;
	freeaddrinfo(found);
	return tls->server >= 0 ? WEIR_OK : weir_fail(error, WEIR_IO, "%s", weir_errno_words(reason));
}

static const char *reason_of(const struct weir_redis_tls *tls)
{
	long verified = tls->ssl != NULL ? SSL_get_verify_result(tls->ssl) : X509_V_OK;
	unsigned long code = ERR_peek_error(); /* the first is what is wrong, the last only who called for it */
	const char *words = code != 0 ? ERR_reason_error_string(code) : NULL;
	if (verified != X509_V_OK)
		return X509_verify_cert_error_string(verified);
	return words != NULL ? words : "the server does not speak TLS";
}

/* Nobody could give one: OpenSSL would ask at the terminal. */
static int no_passphrase(char *room, int bytes, int writes, void *context)
{
	(void)room, (void)bytes, (void)writes, (void)context;
	return 0;
}

/* @param what  what OpenSSL did not take */
static enum weir_status refuse(const struct weir_redis_tls *tls, const char *what, struct weir_error *error)
{
	return weir_fail(error, WEIR_IO, "TLS: %s: %s", what, reason_of(tls));
}

static enum weir_status use_files(struct weir_redis_tls *tls, const struct weir_redis_tls_files *files,
                                  struct weir_error *error)
{
	if (files->ca == NULL && SSL_CTX_set_default_verify_paths(tls->context) != 1)
		return refuse(tls, "the system's authorities", error);
	if (files->ca != NULL && SSL_CTX_load_verify_locations(tls->context, files->ca, NULL) != 1)
		return refuse(tls, files->ca, error);
	if (files->certificate == NULL)
		return WEIR_OK;
	SSL_CTX_set_default_passwd_cb(tls->context, no_passphrase);
	if (SSL_CTX_use_certificate_chain_file(tls->context, files->certificate) != 1)
		return refuse(tls, files->certificate, error);
	if (SSL_CTX_use_PrivateKey_file(tls->context, files->key, SSL_FILETYPE_PEM) != 1)
		return refuse(tls, files->key, error);
	return WEIR_OK;
}

/* The certificate has to be of this host. */
static bool expect_host(SSL *ssl, const char *host)
{
	unsigned char address[16];
	X509_VERIFY_PARAM *expected = SSL_get0_param(ssl);
	/* A server's own certificate may stand in the file in place of its authority's. */
	X509_VERIFY_PARAM_set_flags(expected, X509_V_FLAG_PARTIAL_CHAIN);
	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(expected, host) == 1;
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

static enum weir_status prepare(struct weir_redis_tls *tls, const char *host, const struct weir_redis_tls_files *files,
                                struct weir_error *error)
{
	tls->context = SSL_CTX_new(TLS_client_method());
	if (tls->context == NULL || SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) != 1)
		return refuse(tls, "version 1.2", error);
	enum weir_status status = use_files(tls, files, error);
	if (status != WEIR_OK)
		return status;
	SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_mode(tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	tls->ssl = SSL_new(tls->context);
	if (tls->ssl == NULL || SSL_set_fd(tls->ssl, tls->server) != 1 || !expect_host(tls->ssl, host))
		return refuse(tls, host, error);
	return WEIR_OK;
}

static enum weir_status shake_hands(struct weir_redis_tls *tls, int64_t end_ms, struct weir_error *error)
{
	int result;
	while ((result = SSL_connect(tls->ssl)) != 1) {
		int64_t left_ms = end_ms - weir_monotonic_ms();
		int why = SSL_get_error(tls->ssl, result);
		if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
			return weir_fail(error, WEIR_IO, "TLS: %s", reason_of(tls));
		struct pollfd server = {.fd = tls->server, .events = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT};
		if (left_ms <= 0 || poll(&server, 1, (int)left_ms) == 0)
			return weir_fail(error, WEIR_IO, "TLS: no answer in time");
	}
	return WEIR_OK;
}

static enum weir_status begin_to_carry(struct weir_redis_tls *tls, int *fd, struct weir_error *error)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return weir_fail(error, WEIR_IO, "cannot make a pair of sockets: %s", weir_errno_words(errno));
	tls->clear = pair[0];
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	tls->running = pthread_create(&tls->thread, NULL, carry, tls) == 0;
	if (!tls->running) {
		close(pair[1]);
		return weir_fail(error, WEIR_IO, "cannot start a thread");
	}
	*fd = pair[1];
	return WEIR_OK;
}

/* Named alone it says more than OpenSSL does. */
static enum weir_status look_at(const char *path, struct weir_error *error)
{
	if (path == NULL || access(path, R_OK) == 0)
		return WEIR_OK;
	return weir_fail(error, WEIR_IO, "TLS: cannot open %s: %s", path, weir_errno_words(errno));
}

enum weir_status weir_redis_tls_connect(const char *host, const char *address, uint16_t port,
                                        const struct weir_redis_tls_files *files, int timeout_ms,
                                        struct weir_redis_tls **out, int *fd, struct weir_error *error)
{
	struct weir_redis_tls *tls = weir_alloc(1, sizeof *tls);
	int64_t end_ms = weir_monotonic_ms() + timeout_ms;
	tls->server = tls->clear = -1;
	ERR_clear_error();
	enum weir_status status = look_at(files->ca, error);
	if (status == WEIR_OK)
		status = look_at(files->certificate, error);
	if (status == WEIR_OK)
		status = look_at(files->key, error);
	if (status == WEIR_OK)
		status = connect_to(tls, address, port, end_ms, error);
	if (status == WEIR_OK)
		status = prepare(tls, host, files, error);
	if (status == WEIR_OK)
		status = shake_hands(tls, end_ms, error);
	if (status == WEIR_OK)
		status = begin_to_carry(tls, fd, error);
	if (status == WEIR_OK)
		*out = tls;
	else
		weir_redis_tls_free(tls);
	return status;
}

void weir_redis_tls_free(struct weir_redis_tls *tls)
{
	if (tls == NULL)
		return;
	if (tls->running)
		pthread_join(tls->thread, NULL);
	SSL_free(tls->ssl);
	SSL_CTX_free(tls->context);
	if (tls->server >= 0)
		close(tls->server);
	if (tls->clear >= 0)
		close(tls->clear);
	free(tls);
}

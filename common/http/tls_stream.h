/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS of a server that speaks something else than HTTP: a stream of bytes over a connection, with the certificates of
 * struct weir_http_tls, which are read again when their files change.
 *
 * Nothing here waits: descriptors are non-blocking.
 */
#ifndef WEIR_COMMON_TLS_STREAM_H
#define WEIR_COMMON_TLS_STREAM_H

#include "common/http/http.h"

#include <sys/types.h>

/* The newest certificate that can serve. */
struct weir_http_tls_server;

/** @param log  NULL: what becomes of its certificate is not said @return WEIR_OK; WEIR_INVALID: the files cannot serve */
WEIR_MUST_USE enum weir_status weir_http_tls_open(const struct weir_http_tls *files, const struct weir_log *log,
                                                  struct weir_http_tls_server **tls, struct weir_error *error);
/** When all connections have ended. NULL is fine. */
void weir_http_tls_close(struct weir_http_tls_server *tls);
/** Takes up what has changed: once a second. @thread any worker */
void weir_http_tls_look(struct weir_http_tls_server *tls);

/** Clients that were refused for what they showed, or did not show, for a certificate. @thread any */
uint64_t weir_http_tls_refused(struct weir_http_tls_server *tls);
/** Says that the owner says who was refused: it is not logged, too. Before the first connection. */
void weir_http_tls_quiet(struct weir_http_tls_server *tls);

/* One connection. Of one thread. */
struct weir_tls_stream;

/** @param fd  borrowed, non-blocking. @return the caller frees: weir_tls_stream_free() */
struct weir_tls_stream *weir_tls_stream_new(struct weir_http_tls_server *tls, int fd);
/**
 * Has it speak this protocol alone, by ALPN: a client that offers others, and not this one, is refused. Before the first
 * byte is read. @param protocol  "h2"
 */
void weir_tls_stream_speak(struct weir_tls_stream *stream, const char *protocol);
/** Says goodbye, as far as that does not wait. NULL is fine. */
void weir_tls_stream_free(struct weir_tls_stream *stream);

/**
 * As recv() of a non-blocking socket: above 0, bytes; 0, the peer has ended; -1 and errno, EAGAIN among them. Does the
 * handshake first. EPROTO: it failed; weir_tls_stream_words() says why.
 */
ssize_t weir_tls_stream_read(struct weir_tls_stream *stream, void *room, size_t bytes);
/** As send(), likewise. */
ssize_t weir_tls_stream_write(struct weir_tls_stream *stream, const void *bytes, size_t length);
/** Whether the handshake is done. */
bool weir_tls_stream_greeted(const struct weir_tls_stream *stream);
/** Whether bytes were received that no poll() tells of. */
bool weir_tls_stream_pending(const struct weir_tls_stream *stream);
/** Whether it waits to write, although it was asked to read. */
bool weir_tls_stream_wants_write(const struct weir_tls_stream *stream);
/** What failed last. */
const char *weir_tls_stream_words(const struct weir_tls_stream *stream);

#endif

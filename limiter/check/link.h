/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What surfaces have alike below their protocols: sockets that listen, and connections that are plain or by TLS. Nothing
 * here waits; a surface's epoll says when there is something to do. Of one thread.
 */
#ifndef LIMITER_CHECK_LINK_H
#define LIMITER_CHECK_LINK_H

#include "common/base/span.h"
#include "common/bytes/address.h"
#include "common/http/tls_stream.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- sockets that listen ---- */

struct link_listener {
	int fd;
	struct weir_http_tls_server *tls; /* NULL: plain */
	bool paused;                      /* the process is out of descriptors: connections wait in the kernel */
	struct link_listener *next;
};

struct link_listeners {
	int epoll; /* the surface's: a listener's events have what link_listener_of() reads in data.u64 */
	struct link_listener *first;
};

/**
 * Takes connections by TCP; may be called for several addresses.
 *
 * @param host    as for weir_listen_socket(), whose status is given
 * @param shared  sockets of other threads listen there, too
 * @param tls     borrowed while it listens; NULL: plain
 * @param bound   set: the port
 */
WEIR_MUST_USE enum weir_status link_listen(struct link_listeners *listeners, const char *host, uint16_t port,
                                           bool shared, struct weir_http_tls_server *tls, uint16_t *bound,
                                           struct weir_error *error);
/** Closes them all. */
void link_listeners_close(struct link_listeners *listeners);

/** The listener that an event is of; NULL: of something else, whose pointer is even. */
static inline struct link_listener *link_listener_of(uint64_t data)
{
	return (data & 1) != 0 ? (struct link_listener *)(uintptr_t)(data & ~UINT64_C(1)) : NULL;
}

/** Takes one connection: its descriptor, non-blocking. @return -1: there is none now */
int link_accept(struct link_listeners *listeners, struct link_listener *listener);

/** Ends a connection of link_accept() for which there is no room. Its peer is told, unless it speaks TLS. */
void link_refuse(const struct link_listener *listener, int fd, const void *words, size_t length);

/** Whether one waits for descriptors. */
bool link_listeners_wait(const struct link_listeners *listeners);
/** Once a second: goes on with those that waited, takes up certificates that changed. */
void link_listeners_look(struct link_listeners *listeners);

/* ---- connections ---- */

struct link {
	int fd;                      /* -1: closed */
	struct weir_tls_stream *tls; /* NULL: plain */
	bool heard;                  /* what came first is known to be TLS */
	bool without_tls;            /* or not to be, where it must */
	struct weir_span no_tls;
};

/**
 * Takes a descriptor of link_accept().
 *
 * @param tls       the listener's; NULL: plain
 * @param protocol  by ALPN; NULL: any
 * @param no_tls    a constant: what is said, without TLS, to a client that speaks none where it must
 */
struct link link_open(int fd, struct weir_http_tls_server *tls, const char *protocol, struct weir_span no_tls);
/** Says that nothing more is written, TLS's end included. What is read from then on is as it came, and to be dropped. */
void link_end_writing(struct link *link);
/** Ends it, such that the peer reads what was written last. Closed already is fine. */
void link_close(struct link *link);

/* One of its two ends. */
struct link_end {
	bool known, v6;
	uint16_t port;
	char
		host[WEIR_ADDRESS_TEXT_BYTES]; /* as it is told: an address of IPv4 may be one of IPv6 that it is mapped into */
};

/** @param own  where the peer has reached this program; else the peer's */
struct link_end link_end_of(const struct link *link, bool own);
/** The address of whoever is there; empty: it is not known any more. @return text */
const char *link_peer(const struct link *link, char text[WEIR_ADDRESS_TEXT_BYTES]);

/** As recv() and send() of a non-blocking socket. */
ssize_t link_read(struct link *link, void *room, size_t bytes);
ssize_t link_write(struct link *link, const void *bytes, size_t length);

/** Whether bytes were received that no epoll tells of. */
static inline bool link_pending(const struct link *link)
{
	return link->tls != NULL && weir_tls_stream_pending(link->tls);
}

/** Whether it waits to write, although it was asked to read. */
static inline bool link_wants_write(const struct link *link)
{
	return link->tls != NULL && weir_tls_stream_wants_write(link->tls);
}

/** Whether TLS's handshake is still to be done. */
static inline bool link_greets(const struct link *link)
{
	return link->tls != NULL && !weir_tls_stream_greeted(link->tls);
}

#endif

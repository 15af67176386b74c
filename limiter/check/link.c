/* SPDX-License-Identifier: Apache-2.0 */
/* TCP and TLS as surfaces use them: nothing waits, nothing delays small writes, and the last reply arrives. */
#include "limiter/check/link.h"

#include "common/base/alloc.h"
#include "common/http/listen_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	KEEPALIVE_S = 300,
	TLS_HANDSHAKE = 0x16,
	DRAINED_BYTES = 64 << 10, /* read and thrown away at the end: what is left unread would cut the last reply off */
};

/* ---- sockets that listen ---- */

/* The lowest bit tells it from pointers. */
static struct epoll_event event_of(struct link_listener *listener)
{
	return (struct epoll_event){.events = EPOLLIN, .data.u64 = (uintptr_t)listener | 1};
}

enum weir_status link_listen(struct link_listeners *listeners, const char *host, uint16_t port, bool shared,
                             struct weir_http_tls_server *tls, uint16_t *bound, struct weir_error *error)
{
	int fd;
	enum weir_status status = weir_listen_socket(host, port, shared, &fd, bound, error);
	if (status != WEIR_OK)
		return status;
	struct link_listener *listener = weir_alloc(1, sizeof *listener);
	*listener = (struct link_listener){.fd = fd, .tls = tls, .next = listeners->first};
	struct epoll_event event = event_of(listener);
	if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0 || epoll_ctl(listeners->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
		status = weir_fail(error, WEIR_IO, "cannot wait for connections: %s", weir_errno_words(errno));
		close(fd);
		free(listener);
		return status;
	}
	listeners->first = listener;
	return WEIR_OK;
}

void link_listeners_close(struct link_listeners *listeners)
{
	for (struct link_listener *listener = listeners->first, *next; listener != NULL; listener = next) {
		next = listener->next;
		close(listener->fd);
		free(listener);
	}
	listeners->first = NULL;
}

int link_accept(struct link_listeners *listeners, struct link_listener *listener)
{
	int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	bool short_of = fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
	if (short_of) /* connections wait in the kernel until some have ended */
		listener->paused = epoll_ctl(listeners->epoll, EPOLL_CTL_DEL, listener->fd, NULL) == 0;
	return fd;
}

void link_refuse(const struct link_listener *listener, int fd, const void *words, size_t length)
{
	struct link link = {.fd = fd};
	if (listener->tls == NULL)
		(void)!link_write(&link, words, length);
	link_close(&link);
}

bool link_listeners_wait(const struct link_listeners *listeners)
{
	for (const struct link_listener *at = listeners->first; at != NULL; at = at->next)
		if (at->paused)
			return true;
	return false;
}

void link_listeners_look(struct link_listeners *listeners)
{
	for (struct link_listener *at = listeners->first; at != NULL; at = at->next) {
		struct epoll_event event = event_of(at);
		if (at->paused)
			at->paused = epoll_ctl(listeners->epoll, EPOLL_CTL_ADD, at->fd, &event) != 0;
		if (at->tls != NULL)
			weir_http_tls_look(at->tls);
	}
}

/* ---- connections ---- */

struct link link_open(int fd, struct weir_http_tls_server *tls, const char *protocol, struct weir_span no_tls)
{
	int one = 1, idle_s = KEEPALIVE_S;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
	struct link link = {.fd = fd, .tls = tls != NULL ? weir_tls_stream_new(tls, fd) : NULL, .no_tls = no_tls};
	if (link.tls != NULL && protocol != NULL)
		weir_tls_stream_speak(link.tls, protocol);
	return link;
}

void link_end_writing(struct link *link)
{
	weir_tls_stream_free(link->tls);
	link->tls = NULL;
	(void)shutdown(link->fd, SHUT_WR);
}

void link_close(struct link *link)
{
	char rest[4096];
	if (link->fd < 0)
		return;
	link_end_writing(link);
	for (size_t read = 0; read < DRAINED_BYTES && recv(link->fd, rest, sizeof rest, MSG_DONTWAIT) > 0;
	     read += sizeof rest)
		;
	close(link->fd);
	link->fd = -1;
}

struct link_end link_end_of(const struct link *link, bool own)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = {.v6 = {0}};
	socklen_t length = sizeof address;
	struct link_end end = {
		.known = (own ? getsockname : getpeername)(link->fd, &address.any, &length) == 0,
		.v6 = address.any.sa_family == AF_INET6,
	};
	const void *bytes = end.v6 ? (const void *)&address.v6.sin6_addr : (const void *)&address.v4.sin_addr;
	end.port = ntohs(end.v6 ? address.v6.sin6_port : address.v4.sin_port);
	(void)inet_ntop(end.v6 ? AF_INET6 : AF_INET, bytes, end.host, sizeof end.host);
	return end;
}

const char *link_peer(const struct link *link, char text[WEIR_ADDRESS_TEXT_BYTES])
{
	struct link_end end = link_end_of(link, false);
	snprintf(text, WEIR_ADDRESS_TEXT_BYTES, "%s", end.known ? end.host : "");
	return text;
}

/* The first byte tells. A client that speaks no TLS hears of it: as TLS it would read nothing at all. */
static bool speaks_no_tls(struct link *link)
{
	char first;
	if (recv(link->fd, &first, 1, MSG_PEEK) <= 0)
		return false;
	link->heard = true;
	if (first == TLS_HANDSHAKE)
		return false;
	link->without_tls = true;
	(void)!send(link->fd, link->no_tls.at, link->no_tls.length, MSG_NOSIGNAL);
	return true;
}

ssize_t link_read(struct link *link, void *room, size_t bytes)
{
	if (link->tls != NULL && !link->heard && speaks_no_tls(link)) {
		errno = EPROTO;
		return -1;
	}
	return link->tls != NULL ? weir_tls_stream_read(link->tls, room, bytes) : recv(link->fd, room, bytes, 0);
}

ssize_t link_write(struct link *link, const void *bytes, size_t length)
{
	return link->tls != NULL ? weir_tls_stream_write(link->tls, bytes, length)
	                         : send(link->fd, bytes, length, MSG_NOSIGNAL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections, each with the bytes of its incomplete messages.
 *
 * One epoll descriptor holds all of them and the listening socket, so the collector waits for that one only. While
 * nothing is read, the senders wait: nothing is dropped here.
 *
 * Anyone who can reach the port can open connections and send nothing. So each address has a share of them; beyond it,
 * a new connection of that address closes one of its own. If all are taken, one makes room for the next: first one that
 * never sent anything, and of those, or else of all, the one that has been silent longest. One that sent a moment ago
 * stays; then the new one is refused.

 */
#include "collector/source/syslog/internal.h"
#include "collector/source/syslog/syslog_frames.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	EVENTS_AT_ONCE = 64,
	ACCEPTS_AT_ONCE = 64,
	ACCEPT_PAUSE_MS = 1000,
	LOOK_PERIOD_MS = 1000,
	KEEPALIVE_S = 60,
	SILENT_LEAST_MS = 1000
};

struct connection {
	int fd;
	bool ended;   /* the peer sends no more */
	bool holding; /* its frames may have whole messages that are not taken yet */
	int64_t heard_ms;
	bool spoke; /* it has sent something */
	struct weir_address address;
	struct syslog_frames frames;
	size_t place;
};

struct syslog_tcp {
	int epoll, listener;
	bool accepting;
	int64_t accept_from_ms; /* monotonic: when to accept again, if not accepting */
	int64_t look_ms;        /* monotonic: when to check for idle connections */
	int64_t idle_ms;
	size_t line_max, most, share; /* connections: of all, of one address */
	struct connection **connections;
	size_t count;
	size_t unlooked; /* accepted since it was looked which have ended */
	int knocking;    /* taken from the listener and not among the connections yet: -1: none */
	struct sockaddr_storage knocking_name;
};

static void watch(struct syslog_tcp *tcp, int operation, int fd, struct connection *connection, bool wanted)
{
	struct epoll_event event = {.events = wanted ? EPOLLIN : 0, .data.ptr = connection};
	(void)epoll_ctl(tcp->epoll, operation, fd, &event);
}

enum weir_status syslog_tcp_new(int fd, const struct syslog_config *config, struct syslog_tcp **out,
                                struct weir_error *error)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0) {
		close(fd);
		return weir_fail(error, WEIR_IO, "cannot create a file descriptor for connections: %s",
		                 weir_errno_words(errno));
	}
	struct syslog_tcp *tcp = weir_alloc(1, sizeof *tcp);
	*tcp = (struct syslog_tcp){.epoll = epoll,
	                           .listener = fd,
	                           .knocking = -1,
	                           .accepting = true,
	                           .idle_ms = config->idle_ms,
	                           .line_max = (size_t)config->line_max,
	                           .most = (size_t)config->connections};
	tcp->share = config->share > 0 ? (size_t)config->share : (tcp->most + 3) / 4;
	tcp->connections = weir_alloc(tcp->most, sizeof(struct connection *));
	watch(tcp, EPOLL_CTL_ADD, fd, NULL, true);
	*out = tcp;
	return WEIR_OK;
}

static void close_connection(struct syslog_tcp *tcp, struct connection *connection)
{
	struct connection *last = tcp->connections[--tcp->count];
	tcp->connections[connection->place] = last;
	last->place = connection->place;
	close(connection->fd); /* this also removes it from epoll */
	syslog_frames_deinit(&connection->frames);
	free(connection);
}

void syslog_tcp_free(struct syslog_tcp *tcp)
{
	if (tcp == NULL)
		return;
	while (tcp->count > 0)
		close_connection(tcp, tcp->connections[0]);
	if (tcp->knocking >= 0)
		close(tcp->knocking);
	close(tcp->epoll);
	close(tcp->listener);
	free(tcp->connections);
	free(tcp);
}

int syslog_tcp_fd(const struct syslog_tcp *tcp)
{
	return tcp->epoll;
}

static void add_connection(struct syslog_tcp *tcp, int fd, const struct weir_address *address, int64_t monotonic_ms)
{
	int one = 1, after_s = KEEPALIVE_S;
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &after_s, sizeof after_s);
	struct connection *connection = weir_alloc(1, sizeof *connection);
	connection->fd = fd;
	connection->heard_ms = monotonic_ms;
	connection->address = *address;
	connection->place = tcp->count;
	syslog_frames_init(&connection->frames, tcp->line_max);
	tcp->connections[tcp->count++] = connection;
	tcp->unlooked++;
	watch(tcp, EPOLL_CTL_ADD, fd, connection, true);
}

/* Takes the whole messages that a connection holds. */
static void take_frames(struct connection *connection, struct syslog_source *source, int64_t now_ms)
{
	struct syslog_frame frame;
	connection->holding = true;
	while (!syslog_source_full(source)) {
		switch (syslog_frames_next(&connection->frames, connection->ended, &frame)) {
		case SYSLOG_FRAME_OK: syslog_source_take(source, frame.message, frame.skipped, now_ms); break;
		case SYSLOG_FRAME_CUT: /* without its end it might mean something else, so it is only counted */
			source->received++;
			source->malformed++;
			break;
		case SYSLOG_FRAME_NONE: connection->holding = false; return;
		}
	}
}

static void read_connection(struct connection *connection, struct syslog_source *source, int64_t now_ms,
                            int64_t monotonic_ms)
{
	if (connection->holding)
		return; /* it is read again once those messages are taken */
	size_t room;
	char *at = syslog_frames_room(&connection->frames, &room);
	ssize_t got = recv(connection->fd, at, room, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return;
	if (got > 0) {
		syslog_frames_added(&connection->frames, (size_t)got);
		connection->heard_ms = monotonic_ms;
		connection->spoke = true;
	} else {
		connection->ended = true; /* also after a reset: what came before it is still taken */
	}
	take_frames(connection, source, now_ms);
}

/* Reads the connections that their peers have closed to their ends: they are none that are open. */
static void read_ended(struct syslog_tcp *tcp, struct syslog_source *source, int64_t monotonic_ms)
{
	int64_t now_ms = weir_wall_ms();
	for (size_t i = tcp->count; i-- > 0 && !syslog_source_full(source);) {
		struct connection *connection = tcp->connections[i];
		struct pollfd end = {.fd = connection->fd, .events = POLLRDHUP};
		if (!connection->ended && poll(&end, 1, 0) <= 0)
			continue;
		while (!connection->ended && !connection->holding && !syslog_source_full(source))
			read_connection(connection, source, now_ms, monotonic_ms);
		if (connection->ended && !connection->holding)
			close_connection(tcp, connection);
	}
}

/* Whether one makes room sooner than the other. */
static bool goes_before(const struct connection *a, const struct connection *b)
{
	return a->spoke != b->spoke ? !a->spoke : a->heard_ms < b->heard_ms;
}

/* Closes a connection, of one address or of any, for another one; false: none has been silent for long enough. */
static bool make_room(struct syslog_tcp *tcp, struct syslog_source *source, const struct weir_address *address,
                      int64_t monotonic_ms)
{
	struct connection *first = NULL;
	for (size_t i = 0; i < tcp->count; i++) {
		struct connection *connection = tcp->connections[i];
		if (connection->holding || monotonic_ms - connection->heard_ms < SILENT_LEAST_MS ||
		    (address != NULL && memcmp(&connection->address, address, sizeof *address) != 0))
			continue;
		if (first == NULL || goes_before(connection, first))
			first = connection;
	}
	if (first == NULL)
		return false;
	char byte;
	if (recv(first->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) /* silent only because nothing was read for a while */
		return false;
	first->ended = true;
	take_frames(first, source, weir_wall_ms());
	if (first->holding) /* what it had sent goes first */
		return false;
	close_connection(tcp, first);
	return true;
}

static size_t count_of(const struct syslog_tcp *tcp, const struct weir_address *address)
{
	size_t count = 0;
	for (size_t i = 0; i < tcp->count; i++)
		count += memcmp(&tcp->connections[i]->address, address, sizeof *address) == 0;
	return count;
}

/*
 * Looks which have ended, where that may matter: once a turn, and again when a quarter of a share came since, as each look
 * asks all.
 *
 * @return false: they are not all read, and would count as open
 */
static bool look_for_ended(struct syslog_tcp *tcp, struct syslog_source *source, int64_t monotonic_ms)
{
	if (tcp->count < tcp->share || tcp->unlooked < (tcp->share + 3) / 4)
		return true;
	read_ended(tcp, source, monotonic_ms);
	tcp->unlooked = 0;
	return !syslog_source_full(source);
}

/* Takes the connection that knocks, or says why not. It knocks on where what has ended must be read before. */
static void take_connection(struct syslog_tcp *tcp, struct syslog_source *source, int64_t monotonic_ms)
{
	const struct sockaddr_storage *name = &tcp->knocking_name;
	int fd = tcp->knocking;
	struct weir_address address = {0};
	(void)source_senders_address(name, &address);
	char text[WEIR_ADDRESS_TEXT_BYTES];
	(void)weir_address_format(&address, text);
	bool takes = source_senders_take(&source->config.from, name);
	if (takes && !look_for_ended(tcp, source, monotonic_ms))
		return;
	tcp->knocking = -1;
	if (!takes) {
		source->refused++;
		close(fd);
		return;
	}
	bool own = count_of(tcp, &address) >= tcp->share, full = tcp->count >= tcp->most;
	if (!own && !full) {
		add_connection(tcp, fd, &address, monotonic_ms);
		return;
	}
	bool room = make_room(tcp, source, own ? &address : NULL, monotonic_ms);
	source->errors++;
	if (own)
		syslog_source_problem(source, true, "%zu connections of %s are open, its share: %s", tcp->share, text,
		                      room ? "the one silent longest was closed" : "further ones are refused");
	else
		syslog_source_problem(source, true, "%zu connections are open: %s", tcp->most,
		                      room ? "the one silent longest was closed" : "further ones are refused");
	if (room) {
		add_connection(tcp, fd, &address, monotonic_ms);
		return;
	}
	source->refused++;
	close(fd);
}

static void accept_some(struct syslog_tcp *tcp, struct syslog_source *source, int64_t monotonic_ms)
{
	tcp->unlooked = tcp->share;
	if (tcp->knocking >= 0)
		take_connection(tcp, source, monotonic_ms);
	for (int i = 0; i < ACCEPTS_AT_ONCE && !syslog_source_full(source) && tcp->knocking < 0; i++) {
		socklen_t length = sizeof tcp->knocking_name;
		tcp->knocking_name = (struct sockaddr_storage){0};
		tcp->knocking =
			accept4(tcp->listener, (struct sockaddr *)&tcp->knocking_name, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (tcp->knocking >= 0) {
			take_connection(tcp, source, monotonic_ms);
			continue;
		}
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return;
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		source->errors++;
		syslog_source_problem(source, true, "cannot accept a connection: %s", weir_errno_words(errno));
		tcp->accepting = false; /* it stays readable: it must not keep the loop busy */
		tcp->accept_from_ms = monotonic_ms + ACCEPT_PAUSE_MS;
		watch(tcp, EPOLL_CTL_MOD, tcp->listener, NULL, false);
		return;
	}
}

/* Closes connections that have ended and, once a second, those that have been silent for too long. */
static void close_some(struct syslog_tcp *tcp, struct syslog_source *source, bool all_read, int64_t now_ms,
                       int64_t monotonic_ms)
{
	/* Only if all were read: one that was not read for a while, because the bus is full, may only seem silent. */
	bool look = all_read && monotonic_ms >= tcp->look_ms;
	for (size_t i = tcp->count; i-- > 0;) {
		struct connection *connection = tcp->connections[i];
		if (look && !connection->ended && monotonic_ms - connection->heard_ms >= tcp->idle_ms) {
			connection->ended = true;
			take_frames(connection, source, now_ms);
		}
		if (connection->ended && !connection->holding)
			close_connection(tcp, connection);
	}
	if (look)
		tcp->look_ms = monotonic_ms + LOOK_PERIOD_MS;
}

void syslog_tcp_read(struct syslog_tcp *tcp, struct syslog_source *source, int64_t now_ms)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int64_t monotonic_ms = weir_monotonic_ms();
	if (!tcp->accepting && monotonic_ms >= tcp->accept_from_ms) {
		tcp->accepting = true;
		watch(tcp, EPOLL_CTL_MOD, tcp->listener, NULL, true);
	}
	for (size_t i = 0; i < tcp->count && !syslog_source_full(source); i++)
		if (tcp->connections[i]->holding)
			take_frames(tcp->connections[i], source, now_ms);
	int count = syslog_source_full(source) ? 0 : epoll_wait(tcp->epoll, events, EVENTS_AT_ONCE, 0);
	/* New ones last: they may close those whose events are still to be looked at. */
	bool knocked = false;
	for (int i = 0; i < count && !syslog_source_full(source); i++) {
		if (events[i].data.ptr == NULL)
			knocked = true;
		else
			read_connection(events[i].data.ptr, source, now_ms, monotonic_ms);
	}
	if ((knocked || tcp->knocking >= 0) && !syslog_source_full(source))
		accept_some(tcp, source, monotonic_ms);
	bool all_read = !syslog_source_full(source) && count < EVENTS_AT_ONCE;
	close_some(tcp, source, all_read, now_ms, monotonic_ms);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection's bytes.
 *
 * A message is kept until it is whole, so a buffer grows with it, as far as bytes really come. All buffers together
 * have a limit: beyond it only one connection, the favored one, may grow, until its message is whole; the others wait
 * without being read. So memory is bounded by that limit and one message, and some message always becomes whole.
 */
#include "collector/source/push/forward/internal.h"

#include "common/base/alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_BYTES = 16 << 10, READ_LEAST_BYTES = 4 << 10, READS_AT_ONCE = 16, HELD_MOST_BYTES = 64 << 20 };

struct forward_connection *forward_connection_new(int fd, struct weir_http_tls_server *tls, size_t frame_most,
                                                  int64_t now_ms)
{
	struct forward_connection *connection = weir_alloc(1, sizeof *connection);
	connection->fd = fd;
	connection->frame_most = frame_most;
	connection->accepted_ms = connection->heard_ms = connection->unread_ms = now_ms;
	if (tls != NULL)
		connection->tls = weir_tls_stream_new(tls, fd);
	return connection;
}

/* Sets the buffer's size, which holds what is there. */
static void resize(struct forward_connection *connection, struct forward_memory *memory, size_t capacity)
{
	size_t before = connection->capacity > FIRST_BYTES ? connection->capacity - FIRST_BYTES : 0;
	size_t after = capacity > FIRST_BYTES ? capacity - FIRST_BYTES : 0;
	memory->held = memory->held - before + after;
	if (capacity == 0) {
		free(connection->bytes);
		connection->bytes = NULL;
	} else {
		connection->bytes = weir_realloc(connection->bytes, capacity, 1);
	}
	connection->capacity = capacity;
	if (after == 0 && memory->favored == connection)
		memory->favored = NULL;
}

void forward_connection_free(struct forward_connection *connection, struct forward_memory *memory)
{
	resize(connection, memory, 0);
	if (memory->favored == connection)
		memory->favored = NULL;
	weir_tls_stream_free(connection->tls);
	weir_text_deinit(&connection->out);
	close(connection->fd);
	free(connection);
}

/* Makes room to read into. @return false: there is no memory at present */
static bool make_room(struct forward_connection *connection, struct forward_memory *memory)
{
	if (connection->begin > 0) {
		if (connection->end > connection->begin)
			memmove(connection->bytes, connection->bytes + connection->begin, connection->end - connection->begin);
		connection->end -= connection->begin;
		connection->begin = 0;
	}
	if (connection->capacity - connection->end >= READ_LEAST_BYTES)
		return true;
	size_t wanted = connection->capacity == 0 ? FIRST_BYTES : 2 * connection->capacity;
	size_t most = connection->frame_most + FIRST_BYTES;
	wanted = wanted < most ? wanted : most;
	bool fits = wanted <= FIRST_BYTES || memory->held + (wanted - connection->capacity) <= HELD_MOST_BYTES;
	if (!fits && memory->favored != NULL && memory->favored != connection)
		return false;
	if (!fits)
		memory->favored = connection;
	resize(connection, memory, wanted);
	return true;
}

static ssize_t receive(struct forward_connection *connection, void *room, size_t bytes)
{
	return connection->tls != NULL ? weir_tls_stream_read(connection->tls, room, bytes)
	                               : recv(connection->fd, room, bytes, MSG_DONTWAIT);
}

/* Looks whether the message that begins is whole. */
static enum weir_status look(struct forward_connection *connection, int64_t now_ms, struct weir_error *error)
{
	size_t there = connection->end - connection->begin;
	if (there == 0) {
		connection->begun_ms = 0;
		return WEIR_OK;
	}
	enum weir_status status = msgpack_measure(&connection->extent, connection->bytes + connection->begin, there,
	                                          connection->frame_most, error);
	connection->whole = status == WEIR_OK;
	if (connection->whole)
		connection->begun_ms = 0;
	else if (connection->begun_ms == 0)
		connection->begun_ms = now_ms;
	return status == WEIR_AGAIN ? WEIR_OK : status;
}

enum weir_status forward_connection_read(struct forward_connection *connection, struct forward_memory *memory,
                                         int64_t now_ms, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	connection->starved = false;
	for (int i = 0; i < READS_AT_ONCE && !connection->whole && !connection->ended && status == WEIR_OK; i++) {
		if (!make_room(connection, memory)) {
			connection->starved = true;
			connection->begun_ms = connection->heard_ms = now_ms; /* it is not the sender that takes its time */
			return WEIR_OK;
		}
		size_t room = connection->capacity - connection->end;
		ssize_t got = receive(connection, connection->bytes + connection->end, room);
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
			break;
		if (got < 0 && errno == EPROTO && connection->tls != NULL) {
			connection->ended = connection->failed = connection->reset = true;
			return weir_fail(error, WEIR_INVALID, "TLS failed: %s", weir_tls_stream_words(connection->tls));
		}
		if (got <= 0) {
			connection->ended = true; /* also after a reset: what came before it is still taken */
			connection->reset = got < 0;
			break;
		}
		connection->spoke = true;
		connection->end += (size_t)got;
		connection->heard_ms = now_ms;
		status = look(connection, now_ms, error);
	}
	return status;
}

enum weir_status forward_connection_pass(struct forward_connection *connection, struct forward_memory *memory,
                                         int64_t now_ms, struct weir_error *error)
{
	connection->begin += connection->extent.seen;
	connection->extent = (struct msgpack_extent){0};
	connection->whole = false;
	if (connection->capacity > FIRST_BYTES && memory->held > HELD_MOST_BYTES / 2 && /* else the next may need it, too */
	    connection->end - connection->begin <= FIRST_BYTES / 2 &&
	    make_room(connection, memory)) /* which moves what is left to the front */
		resize(connection, memory, FIRST_BYTES);
	if (memory->favored == connection)
		memory->favored = NULL;
	return look(connection, now_ms, error);
}

void forward_connection_rest(struct forward_connection *connection, struct forward_memory *memory)
{
	if (connection->begin == connection->end && connection->capacity > 0) {
		connection->begin = connection->end = 0;
		resize(connection, memory, 0);
	}
}

static bool is_read(const struct forward_connection *connection)
{
	return !connection->whole && !connection->ended && !connection->starved;
}

bool forward_connection_behind(const struct forward_connection *connection)
{
	return connection->tls != NULL && !connection->failed && is_read(connection) &&
	       weir_tls_stream_pending(connection->tls);
}

bool forward_connection_holds(const struct forward_connection *connection)
{
	return connection->capacity > FIRST_BYTES;
}

void forward_connection_flush(struct forward_connection *connection)
{
	size_t sent = 0;
	while (sent < connection->out.length && !connection->failed) {
		const char *at = connection->out.at + sent;
		size_t rest = connection->out.length - sent;
		ssize_t got = connection->tls != NULL ? weir_tls_stream_write(connection->tls, at, rest)
		                                      : send(connection->fd, at, rest, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (got > 0)
			sent += (size_t)got;
		else if (got < 0 && errno == EINTR)
			continue;
		else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		else
			connection->failed = true;
	}
	if (sent > 0 && sent < connection->out.length)
		memmove(connection->out.at, connection->out.at + sent, connection->out.length - sent);
	connection->out.length -= sent;
	connection->sent += sent;
	if (connection->out.length == 0)
		weir_text_deinit(&connection->out);
}

uint32_t forward_connection_wants(const struct forward_connection *connection)
{
	bool reads = is_read(connection);
	bool writes = connection->out.length > 0 ||
	              (connection->tls != NULL && reads && weir_tls_stream_wants_write(connection->tls));
	return (reads ? EPOLLIN : 0) | (writes ? EPOLLOUT : 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listener's thread: who connects, and connections to messages. While a message waits for the spool, no connection is
 * read beyond one message.
 */
#include "collector/source/push/forward/server.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/wake.h"
#include "common/log/log.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	EVENTS_AT_ONCE = 256,
	ACCEPTS_AT_ONCE = 64,
	ACCEPT_PAUSE_MS = 1000,
	TURN_MS = 1000,               /* how often connections and certificates are looked at */
	RETRY_MS = 50,                /* how soon a full spool is asked again */
	PATIENCE_MS = 60000,          /* for more of a message that has begun */
	LOGIN_MS = 10000,             /* from the beginning, to say who it is */
	MESSAGE_PATIENCE_MS = 600000, /* for all of a message */
	HURRIED_MS = 5000,            /* for more of one whose memory others wait for; PATIENCE_MS for all of it */
	SILENT_LEAST_MS = 1000,
	KEEPALIVE_S = 60,
	PROBLEM_SHOWN_MS = 60000,
	GOODBYE_MS = 1000,
	LOOKED_MS = 1,
	PACKED_TIMES = 16,
};

/* ---- what is said ---- */

void forward_say(struct forward_server *server, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	pthread_mutex_lock(&server->mutex);
	vsnprintf(server->status.problem, sizeof server->status.problem, format, arguments);
	server->problem_until_ms = weir_monotonic_ms() + PROBLEM_SHOWN_MS;
	server->status.waits = false;
	pthread_mutex_unlock(&server->mutex);
	va_end(arguments);
}

void forward_add(struct forward_server *server, uint64_t *count, uint64_t more)
{
	pthread_mutex_lock(&server->mutex);
	*count += more;
	pthread_mutex_unlock(&server->mutex);
}

/* Refuses a connection, which its sender may try again. */
void forward_refuse(struct forward_server *server, struct forward_connection *connection, const char *words)
{
	forward_say(server, "a connection of %s was closed: %s; that message was not acknowledged", connection->peer,
	            words);
	forward_add(server, &server->status.refused, 1);
	connection->failed = true;
}

static const char no_key[] =
	"it sends before it shows that it knows the shared key: give the sender the same shared_key";

/* ---- connections ---- */

static void watch(struct forward_server *server, struct forward_connection *connection)
{
	uint32_t wants = connection->failed ? 0 : forward_connection_wants(connection);
	if (wants == connection->watched)
		return;
	/* A connection that is not read is left out altogether: otherwise its end would keep the loop busy. */
	int operation = wants == 0 ? EPOLL_CTL_DEL : connection->watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
	struct epoll_event event = {.events = wants, .data.ptr = connection};
	(void)epoll_ctl(server->epoll, operation, connection->fd, &event);
	connection->watched = wants;
}

static void close_connection(struct forward_server *server, struct forward_connection *connection)
{
	struct forward_connection *last = server->connections[--server->count];
	server->connections[connection->place] = last;
	last->place = connection->place;
	forward_acks_leave(&server->acks, server->spool, connection);
	forward_connection_free(connection, &server->memory);
}

/* Whether nothing is lost by closing it, as far as this side knows. */
static bool is_idle(const struct forward_connection *connection)
{
	return !connection->whole && connection->begin == connection->end && connection->waiting == 0 &&
	       connection->out.length == 0;
}

/* Whether it may be closed for another: who has not said who it is has no claim, whatever it sends. */
static bool makes_room(const struct forward_connection *connection, int64_t now_ms)
{
	char byte;
	return !connection->trusted || (is_idle(connection) && now_ms - connection->heard_ms >= SILENT_LEAST_MS &&
	                                recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0);
}

static bool goes_before(const struct forward_connection *one, const struct forward_connection *other)
{
	if (one->trusted != other->trusted)
		return !one->trusted;
	if (!one->trusted)
		return one->accepted_ms < other->accepted_ms;
	return one->spoke != other->spoke ? !one->spoke : one->heard_ms < other->heard_ms;
}

/* Closes the connection that is least missed. @return what it is, in words; NULL: none may be closed */
static const char *make_room(struct forward_server *server, int64_t now_ms)
{
	struct forward_connection *first = NULL;
	for (size_t i = 0; i < server->count; i++) {
		struct forward_connection *one = server->connections[i];
		if ((first == NULL || goes_before(one, first)) && makes_room(one, now_ms))
			first = one;
	}
	if (first == NULL)
		return NULL;
	const char *words = first->trusted ? "the one silent longest was closed"
	                                   : "one that has not shown that it knows the shared key was closed";
	close_connection(server, first);
	return words;
}

static void take_connection(struct forward_server *server, int fd, const char *peer, int64_t now_ms)
{
	if (server->count >= (size_t)server->config->connections) {
		const char *room = make_room(server, now_ms);
		forward_add(server, &server->status.refused, room == NULL);
		forward_say(server, "%lld connections are open: %s; raise \"connections\"",
		            (long long)server->config->connections, room != NULL ? room : "further ones are refused");
		if (room == NULL) {
			close(fd);
			return;
		}
	}
	int one = 1, after_s = KEEPALIVE_S;
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &after_s, sizeof after_s);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	bool trusted = server->config->shared_key == NULL;
	size_t most = trusted ? server->limits.entry_most : FORWARD_PING_MOST_BYTES;
	struct forward_connection *made = forward_connection_new(fd, server->tls, most, now_ms);
	snprintf(made->peer, sizeof made->peer, "%s", peer);
	made->trusted = trusted;
	made->place = server->count;
	server->connections[server->count++] = made;
	if (!made->trusted) {
		forward_greet(&made->greeting, server->config->user != NULL, &made->out);
		forward_connection_flush(made);
	}
	watch(server, made);
}

static void set_accepting(struct forward_server *server, bool accepting)
{
	struct epoll_event event = {.events = accepting ? EPOLLIN : 0, .data.ptr = &server->listener};
	(void)epoll_ctl(server->epoll, EPOLL_CTL_MOD, server->listener, &event);
	server->accepting = accepting;
}

/* Closes the connection of one outside of "from". Whoever that is hides no trouble of a sender: it is said where none is. */
static void refuse_stranger(struct forward_server *server, int fd, const char *peer, int64_t now_ms)
{
	forward_add(server, &server->status.refused, 1);
	if (now_ms >= server->problem_until_ms)
		forward_say(server, "a connection of %s was closed: its address is in no network of \"from\"", peer);
	close(fd);
}

static void accept_some(struct forward_server *server, int64_t now_ms)
{
	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		struct sockaddr_storage name = {0};
		socklen_t length = sizeof name;
		char peer[FORWARD_NAME_BYTES];
		int fd = accept4(server->listener, (struct sockaddr *)&name, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			forward_name_peer(&name, length, peer);
			if (source_senders_take(&server->config->from, &name))
				take_connection(server, fd, peer, now_ms);
			else
				refuse_stranger(server, fd, peer, now_ms);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return;
		forward_say(server, "cannot accept a connection: %s", weir_errno_words(errno));
		set_accepting(server, false); /* it stays readable: it must not keep the loop busy */
		server->accept_from_ms = now_ms + ACCEPT_PAUSE_MS;
		return;
	}
}

/* @return as forward_work() */
static enum weir_status take_message(struct forward_server *server, struct forward_connection *connection)
{
	struct forward_frame frame;
	struct weir_error error;
	const char *why = NULL;
	if (forward_frame_read(connection->bytes + connection->begin, connection->extent.seen, &frame, &error) != WEIR_OK) {
		forward_refuse(server, connection, error.text);
		return WEIR_OK;
	}
	if (frame.kind == FORWARD_HEARTBEAT)
		return WEIR_OK;
	if (frame.kind == FORWARD_PING && server->config->shared_key != NULL) {
		why = forward_answer_ping(&connection->greeting, server->config, &frame, &connection->out);
		forward_connection_flush(connection);
		connection->trusted = why == NULL;
		if (connection->trusted)
			connection->frame_most = server->limits.entry_most;
	} else if (frame.kind == FORWARD_PING) {
		why = "it shows a shared key, and the source has no \"shared_key\"";
	} else if (!connection->trusted) {
		why = no_key;
	}
	if (why != NULL)
		forward_refuse(server, connection, why);
	return why == NULL && frame.kind >= FORWARD_MESSAGE ? forward_take_entries(server, connection, &frame) : WEIR_OK;
}

/* ---- the loop ---- */

static void read_connection(struct forward_server *server, struct forward_connection *connection, int64_t now_ms)
{
	struct weir_error error;
	enum weir_status status = forward_connection_read(connection, &server->memory, now_ms, &error);
	if (status != WEIR_OK)
		forward_refuse(server, connection, status == WEIR_FULL && !connection->trusted ? no_key : error.text);
}

static void read_behind(struct forward_server *server, int64_t now_ms)
{
	for (size_t i = 0; i < server->count && server->behind; i++)
		if (forward_connection_behind(server->connections[i]))
			read_connection(server, server->connections[i], now_ms);
}

/* Takes a connection's whole messages, until the spool is full. */
static void serve_connection(struct forward_server *server, struct forward_connection *connection, int64_t now_ms)
{
	while (connection->whole && !connection->failed) {
		if (take_message(server, connection) == WEIR_FULL)
			return;
		struct weir_error error;
		if (!connection->failed && forward_connection_pass(connection, &server->memory, now_ms, &error) != WEIR_OK)
			forward_refuse(server, connection, error.text);
	}
}

/* Goes on with the message that waits for the spool. @return false: it still waits */
static bool resume(struct forward_server *server, int64_t now_ms)
{
	struct forward_connection *connection = server->job.connection;
	struct weir_error error;
	if (connection == NULL)
		return server->loose.length < PART_BYTES || forward_give_loose(server) == WEIR_OK;
	if (forward_work(server) == WEIR_FULL)
		return false;
	if (!connection->failed && forward_connection_pass(connection, &server->memory, now_ms, &error) != WEIR_OK)
		forward_refuse(server, connection, error.text);
	return true;
}

static void serve_all(struct forward_server *server, int64_t now_ms)
{
	if (!resume(server, now_ms))
		return;
	for (size_t i = 0; i < server->count && server->job.connection == NULL; i++) {
		struct forward_connection *connection = server->connections[i];
		if (connection->starved && !server->stopping)
			read_connection(server, connection, now_ms);
		if (connection->whole)
			serve_connection(server, connection, now_ms);
	}
	if (server->job.connection == NULL)
		(void)forward_give_loose(server);
}

/* Whether a connection's time is over. */
static bool is_over(const struct forward_server *server, const struct forward_connection *connection, int64_t now_ms)
{
	if (connection->whole || connection->waiting > 0)
		return false; /* it is this side that lets it wait */
	if (!connection->trusted)
		return now_ms - connection->accepted_ms >= LOGIN_MS;
	return now_ms - connection->heard_ms >= (connection->ended ? PATIENCE_MS : server->config->idle_ms);
}

/* Whether a message takes too long to come. The favored one has all its time: so slow senders alone come to an end, too. */
static bool is_stuck(const struct forward_server *server, const struct forward_connection *connection, int64_t now_ms)
{
	bool hurried = server->starving && forward_connection_holds(connection);
	bool hurried_whole = hurried && server->memory.favored != connection;
	return connection->begun_ms > 0 &&
	       (now_ms - connection->heard_ms >= (hurried ? HURRIED_MS : PATIENCE_MS) ||
	        now_ms - connection->begun_ms >= (hurried_whole ? PATIENCE_MS : MESSAGE_PATIENCE_MS));
}

/* Whether it has read nothing for long of what waits for it. */
static bool reads_nothing(struct forward_connection *connection, int64_t now_ms)
{
	if (connection->out.length == 0 || connection->sent != connection->sent_seen) {
		connection->sent_seen = connection->sent;
		connection->unread_ms = now_ms;
	}
	return now_ms - connection->unread_ms >= PATIENCE_MS;
}

/* Closes what has ended, and sets what is watched of the rest. */
static void sweep(struct forward_server *server, int64_t now_ms)
{
	bool turn = now_ms >= server->turn_ms, starving = false, behind = false;
	for (size_t i = server->count; i-- > 0;) {
		struct forward_connection *connection = server->connections[i];
		bool busy = connection->waiting > 0 || server->job.connection == connection;
		bool done = connection->ended && !connection->whole && connection->out.length == 0;
		if (!connection->failed && done && connection->end > connection->begin)
			forward_refuse(server, connection, "it ended within a message");
		if (turn && !connection->failed && !connection->starved && is_stuck(server, connection, now_ms))
			forward_refuse(server, connection, "a message was begun and did not come to its end");
		if (turn && is_idle(connection) && now_ms - connection->heard_ms >= SILENT_LEAST_MS)
			forward_connection_rest(connection, &server->memory);
		if (turn && !connection->failed && reads_nothing(connection, now_ms))
			forward_refuse(server, connection, "it does not read its acknowledgements");
		connection->failed |= turn && is_over(server, connection, now_ms);
		starving |= connection->starved && !connection->failed;
		behind |= forward_connection_behind(connection);
		if (!busy && (connection->failed || done))
			close_connection(server, connection);
		else
			watch(server, connection);
	}
	server->starving = starving;
	server->behind = behind;
	if (!turn)
		return;
	server->turn_ms = now_ms + TURN_MS;
	forward_acks_look(&server->acks, server->spool, now_ms);
	if (server->tls != NULL)
		weir_http_tls_look(server->tls);
}

static void take_events(struct forward_server *server, int timeout_ms)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int count = epoll_wait(server->epoll, events, EVENTS_AT_ONCE, timeout_ms);
	int64_t now_ms = weir_monotonic_ms();
	bool knocked = false;
	for (int i = 0; i < count; i++) {
		void *what = events[i].data.ptr;
		if (what == &server->listener) {
			knocked = true;
		} else if (what == &server->heartbeats) {
			forward_answer_heartbeats(server->heartbeats, server->config);
		} else if (what == &server->wake) {
			weir_wake_clear(server->wake);
		} else {
			struct forward_connection *connection = what;
			if (connection->out.length > 0)
				forward_connection_flush(connection);
			read_connection(server, connection, now_ms);
		}
	}
	read_behind(server, now_ms);
	forward_take_answers(server);
	serve_all(server, now_ms);
	sweep(server, now_ms);
	if (knocked) /* last: it may close connections */
		accept_some(server, now_ms);
	if (!server->accepting && now_ms >= server->accept_from_ms)
		set_accepting(server, true);
}

/* After the last answer: what was acknowledged is sent, as far as the peers take it soon. */
static void say_goodbye(struct forward_server *server)
{
	int64_t until_ms = weir_monotonic_ms() + GOODBYE_MS;
	bool waits = true;
	forward_take_answers(server);
	while (waits && weir_monotonic_ms() < until_ms) {
		waits = false;
		for (size_t i = 0; i < server->count; i++) {
			forward_connection_flush(server->connections[i]);
			waits |= server->connections[i]->out.length > 0 && !server->connections[i]->failed;
		}
		if (waits)
			usleep(RETRY_MS * 1000);
	}
}

/* Messages that came whole and were not taken, of senders that do not send them again. Others may be behind each. */
static uint64_t count_untaken(const struct forward_server *server)
{
	const struct job *job = &server->job; /* of which all lines may have been written */
	uint64_t count = job->connection != NULL && job->note == NULL && job->state == WEIR_OK;
	for (size_t i = 0; i < server->count; i++) {
		const struct forward_connection *connection = server->connections[i];
		struct forward_frame frame;
		struct weir_error ignored;
		if (connection->whole && connection != server->job.connection && connection->trusted && !connection->failed &&
		    forward_frame_read(connection->bytes + connection->begin, connection->extent.seen, &frame, &ignored) ==
		        WEIR_OK)
			count += frame.kind >= FORWARD_MESSAGE && frame.chunk.at == NULL && !frame.other_signal &&
			         forward_takes_tag(server->config, frame.tag);
	}
	return count;
}

/* At a stop while the spool was full, or did not store what it had taken. */
static void tell_lost(const struct forward_server *server)
{
	uint64_t lines = server->status.lost_lines - server->lost_before_stop + server->loose_lines;
	uint64_t messages = count_untaken(server);
	if (server->log != NULL && (lines > 0 || messages > 0))
		weir_log(
			server->log, WEIR_LOG_WARNING, "collector",
			"%s: its spool took no more when it ended: %llu lines, and at least %llu messages beside them, that asked "
			"for no acknowledgement are lost. Let senders ask for acknowledgements: then they send such messages again "
			"(runbook: lines-lost)",
			server->config->name, (unsigned long long)lines, (unsigned long long)messages);
}

static void *serve(void *context)
{
	struct forward_server *server = context;
	while (!server->stopping)
		take_events(server, server->behind ? 0 : server->full ? RETRY_MS : TURN_MS);
	server->lost_before_stop = server->status.lost_lines;
	serve_all(server, weir_monotonic_ms()); /* what is here whole */
	forward_acks_stop(&server->acks, server->spool, weir_monotonic_ms());
	server->looked = true;
	while (!server->stopped) {
		forward_take_answers(server);
		usleep(RETRY_MS * 1000);
	}
	say_goodbye(server);
	tell_lost(server);
	return NULL;
}

/* ---- start and stop ---- */

static void listen_for(struct forward_server *server, int *fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = fd};
	if (*fd >= 0)
		(void)epoll_ctl(server->epoll, EPOLL_CTL_ADD, *fd, &event);
}

static void server_free(struct forward_server *server)
{
	while (server->count > 0)
		close_connection(server, server->connections[0]);
	const int descriptors[] = {server->listener, server->heartbeats, server->epoll, server->wake};
	for (size_t i = 0; i < sizeof descriptors / sizeof *descriptors; i++)
		if (descriptors[i] >= 0)
			close(descriptors[i]);
	weir_http_tls_close(server->tls);
	weir_text_deinit(&server->loose);
	weir_text_deinit(&server->job.text);
	pthread_mutex_destroy(&server->mutex);
	free(server->connections);
	free(server);
}

enum weir_status forward_server_start(const struct forward_config *config, struct push_spool *spool, size_t line_max,
                                      const struct weir_log *log, struct forward_server **out, struct weir_error *error)
{
	struct forward_server *server = weir_alloc(1, sizeof *server);
	size_t most = (size_t)config->frame_most;
	*server = (struct forward_server){
		.config = config,
		.spool = spool,
		.log = log,
		.limits = {.line_max = line_max, .entry_most = most, .packed_most = PACKED_TIMES * (uint64_t)most},
		.epoll = epoll_create1(EPOLL_CLOEXEC),
		.wake = weir_wake_new(),
		.listener = -1,
		.heartbeats = -1,
		.accepting = true,
		.answered_end = &server->answered};
	pthread_mutex_init(&server->mutex, NULL);
	server->connections = weir_alloc((size_t)config->connections, sizeof(struct forward_connection *));
	enum weir_status status = WEIR_OK;
	if (server->epoll < 0 || server->wake < 0)
		status =
			weir_fail(error, WEIR_IO, "cannot create a file descriptor for connections: %s", weir_errno_words(errno));
	if (status == WEIR_OK && config->tls.certificate != NULL)
		status = weir_http_tls_open(&config->tls, log, &server->tls, error);
	if (server->tls != NULL)
		weir_http_tls_quiet(server->tls);
	if (status == WEIR_OK)
		status = forward_listen(config, &server->listener, &server->heartbeats, error);
	listen_for(server, &server->listener);
	listen_for(server, &server->heartbeats);
	listen_for(server, &server->wake);
	if (status == WEIR_OK && config->socket == NULL && server->heartbeats < 0)
		forward_say(server,
		            "heartbeats by UDP are not answered: the port is taken; senders that use them see no server here");
	if (status == WEIR_OK && pthread_create(&server->thread, NULL, serve, server) != 0)
		status = weir_fail(error, WEIR_IO, "cannot create a thread");
	if (status != WEIR_OK) {
		server_free(server);
		return status;
	}
	*out = server;
	return WEIR_OK;
}

void forward_server_stop(struct forward_server *server)
{
	if (server == NULL)
		return;
	server->stopping = true;
	weir_wake_up(server->wake);
	while (!server->looked)
		usleep(LOOKED_MS * 1000);
	push_spool_stop(server->spool); /* every batch is answered then */
	server->stopped = true;
	pthread_join(server->thread, NULL);
	if (server->job.connection != NULL) { /* its parts were all answered; it is not acknowledged */
		free(server->job.note != NULL ? server->job.note->chunk : NULL);
		free(server->job.note);
		forward_lines_deinit(&server->job.lines);
	}
	server_free(server);
}

void forward_server_status(struct forward_server *server, struct forward_status *status)
{
	pthread_mutex_lock(&server->mutex);
	*status = server->status;
	if (weir_monotonic_ms() >= server->problem_until_ms)
		status->problem[0] = '\0';
	pthread_mutex_unlock(&server->mutex);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listener's thread: connections to messages, messages to batches of the spool, the spool's answers to
 * acknowledgements.
 *
 * One message is turned into lines at a time. If the spool takes no more, that message waits, and no connection is read
 * beyond one message. A message with a chunk is a batch of its own, or several in a row where it is long: each part has an
 * id, so that after a crash between two parts only the missing ones are stored. Messages without a chunk share a batch.
 */
#include "collector/source/push/forward/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/wake.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
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
	PATIENCE_MS = 60000,          /* for more of a message that has begun, and for who has to say who it is */
	MESSAGE_PATIENCE_MS = 600000, /* for all of a message */
	HURRIED_MS = 5000,            /* for more of one whose memory others wait for; PATIENCE_MS for all of it */
	SILENT_LEAST_MS = 1000,
	KEEPALIVE_S = 60,
	PROBLEM_SHOWN_MS = 60000,
	GOODBYE_MS = 1000,
	LOOKED_MS = 1,
	PART_BYTES = 2 << 20, /* with one line more it fits a quarter of the smallest spool */
	PART_LINES = 1 << 19,
	PACKED_TIMES = 16,
	OUT_MOST_BYTES = 1 << 20,
};

/* A message that the spool is to answer. */
struct note {
	struct forward_connection *connection; /* NULL: nobody waits for it */
	char *chunk;
	uint32_t chunk_length;
	uint8_t tag[FORWARD_TAG_HASH_BYTES];
	uint32_t parts, all_parts; /* that are not answered; that were given */
	bool given;                /* all of its parts */
	bool failed;
	struct weir_error why;
};

/* One batch of it. */
struct part {
	struct part *next;
	struct forward_server *server;
	struct note *note; /* NULL: of messages without a chunk */
	struct push_outcome outcome;
};

/* The message that is being turned into lines. */
struct job {
	struct forward_connection *connection; /* NULL: there is none */
	struct forward_frame frame;
	struct forward_lines lines;
	struct note *note; /* NULL: it has no chunk */
	struct weir_text text;
	uint32_t number;        /* of the next part */
	enum weir_status state; /* WEIR_END: all lines were written; WEIR_INVALID: as many as can be */
	struct weir_error why;
};

struct forward_server {
	const struct forward_config *config;
	struct push_spool *spool;
	struct weir_http_tls_server *tls;
	struct forward_limits limits;
	pthread_t thread;
	int epoll, listener, heartbeats, wake;
	_Atomic bool stopping; /* takes no more */
	_Atomic bool looked;   /* whose ids have ended is said to the spool */
	_Atomic bool stopped;  /* the spool has answered everything */
	/* of the thread alone */
	struct forward_connection **connections;
	size_t count;
	struct forward_memory memory;
	struct job job;
	struct weir_text loose; /* lines of messages without a chunk */
	uint32_t loose_lines;
	struct forward_acks acks;
	bool full;     /* the spool took no more, when it was asked last */
	bool starving; /* some connection waits for memory */
	bool behind;   /* some connection has bytes of which epoll does not tell */
	bool accepting;
	int64_t accept_from_ms, turn_ms;
	/* of both */
	pthread_mutex_t mutex;
	struct part *answered, **answered_end;
	struct forward_status status;
	int64_t problem_until_ms;
};

/* ---- what is said ---- */

static void say(struct forward_server *server, const char *format, ...) WEIR_PRINTF(2, 3);

static void say(struct forward_server *server, const char *format, ...)
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

static void add(struct forward_server *server, uint64_t *count, uint64_t more)
{
	pthread_mutex_lock(&server->mutex);
	*count += more;
	pthread_mutex_unlock(&server->mutex);
}

/* Refuses a connection, which its sender may try again. */
static void refuse(struct forward_server *server, struct forward_connection *connection, const char *words)
{
	add(server, &server->status.refused, 1);
	say(server, "a connection of %s was closed: %s; that message was not acknowledged", connection->peer, words);
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

static bool goes_before(const struct forward_connection *one, const struct forward_connection *other)
{
	return one->spoke != other->spoke ? !one->spoke : one->heard_ms < other->heard_ms;
}

/* Closes the connection that has been silent longest. @return false: none has been for long enough */
static bool make_room(struct forward_server *server, int64_t now_ms)
{
	struct forward_connection *first = NULL;
	for (size_t i = 0; i < server->count; i++) {
		struct forward_connection *one = server->connections[i];
		char byte;
		if (is_idle(one) && now_ms - one->heard_ms >= SILENT_LEAST_MS && (first == NULL || goes_before(one, first)) &&
		    recv(one->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
			first = one;
	}
	if (first != NULL)
		close_connection(server, first);
	return first != NULL;
}

static void take_connection(struct forward_server *server, int fd, const char *peer, int64_t now_ms)
{
	if (server->count >= (size_t)server->config->connections) {
		bool room = make_room(server, now_ms);
		add(server, &server->status.refused, !room);
		say(server, "%lld connections are open: %s; raise \"connections\"", (long long)server->config->connections,
		    room ? "the one silent longest was closed" : "further ones are refused");
		if (!room) {
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
	add(server, &server->status.refused, 1);
	if (now_ms >= server->problem_until_ms)
		say(server, "a connection of %s was closed: its address is in no network of \"from\"", peer);
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
		say(server, "cannot accept a connection: %s", weir_errno_words(errno));
		set_accepting(server, false); /* it stays readable: it must not keep the loop busy */
		server->accept_from_ms = now_ms + ACCEPT_PAUSE_MS;
		return;
	}
}

/* ---- the spool's answers ---- */

/* @thread the spool's */
static void on_answer(void *context, const struct push_outcome *outcome)
{
	struct part *part = context;
	struct forward_server *server = part->server;
	part->outcome = *outcome;
	pthread_mutex_lock(&server->mutex);
	*server->answered_end = part;
	server->answered_end = &part->next;
	pthread_mutex_unlock(&server->mutex);
	weir_wake_up(server->wake);
}

static void acknowledge(struct forward_connection *connection, struct weir_span chunk)
{
	forward_put_ack(chunk, &connection->out);
	if (connection->out.length > OUT_MOST_BYTES) /* it sends and does not read */
		connection->failed = true;
	forward_connection_flush(connection);
}

/* Ends a message all of whose parts are answered. */
static void settle(struct forward_server *server, struct note *note)
{
	if (!note->given || note->parts > 0)
		return;
	struct forward_connection *connection = note->connection;
	connection->waiting--;
	struct weir_span chunk = {.at = note->chunk, .length = note->chunk_length};
	if (!note->failed) {
		acknowledge(connection, chunk);
		forward_acks_add(&server->acks, connection, note->tag, chunk, note->all_parts);
	} else if (!connection->failed) {
		refuse(server, connection, note->why.text);
	}
	free(note->chunk);
	free(note);
}

static void take_answer(struct forward_server *server, struct part *part)
{
	bool stored = part->outcome.status == WEIR_OK;
	const char *why = part->outcome.clashes
	                      ? "its \"chunk\" came within the last hour with the same tag and other records: "
	                        "let the sender give each message a chunk of its own"
	                      : part->outcome.why.text;
	if (!stored)
		say(server, "a message was not stored: %s", why);
	if (part->note != NULL) {
		part->note->parts--;
		part->note->failed |= !stored;
		if (!stored)
			weir_fail(&part->note->why, part->outcome.status, "%s", why);
		settle(server, part->note);
	} else if (!stored) {
		add(server, &server->status.lost_lines, part->outcome.lines);
	}
	free(part);
}

static void take_answers(struct forward_server *server)
{
	pthread_mutex_lock(&server->mutex);
	struct part *part = server->answered;
	server->answered = NULL;
	server->answered_end = &server->answered;
	pthread_mutex_unlock(&server->mutex);
	while (part != NULL) {
		struct part *next = part->next;
		take_answer(server, part);
		part = next;
	}
}

/* ---- messages to batches ---- */

/* Takes note of whether the spool takes more, and says so for as long as it does not. */
static void set_full(struct forward_server *server, bool full, const struct weir_error *error)
{
	if (full)
		say(server, "senders wait: %s", error->text);
	pthread_mutex_lock(&server->mutex);
	if (server->full && !full)
		server->problem_until_ms = 0;
	server->status.waits = full;
	pthread_mutex_unlock(&server->mutex);
	server->full = full;
}

/*
 * Gives lines to the spool.
 *
 * @param lines  taken, then empty
 * @return WEIR_OK; WEIR_FULL: not now; WEIR_INVALID: never
 */
static enum weir_status give(struct forward_server *server, struct note *note, struct weir_span id,
                             struct weir_text *lines, struct weir_error *error)
{
	struct part *part = weir_alloc(1, sizeof *part);
	part->server = server;
	part->note = note;
	if (note != NULL)
		note->parts++; /* it may be answered before the call returns, but is settled by this thread */
	enum weir_status status = push_spool_append(server->spool, id, lines, on_answer, part, error);
	set_full(server, status != WEIR_OK && status != WEIR_INVALID, error);
	if (status == WEIR_OK)
		return status;
	if (note != NULL)
		note->parts--;
	free(part);
	return server->full ? WEIR_FULL : WEIR_INVALID;
}

/* Gives the lines that nobody waits for. @return WEIR_OK; WEIR_FULL */
static enum weir_status give_loose(struct forward_server *server)
{
	struct weir_error error;
	if (server->loose.length == 0)
		return WEIR_OK;
	enum weir_status status = give(server, NULL, (struct weir_span){.at = NULL}, &server->loose, &error);
	if (status == WEIR_FULL)
		return status;
	if (status == WEIR_INVALID) {
		say(server, "lines were lost: %s", error.text);
		add(server, &server->status.lost_lines, server->loose_lines);
		weir_text_clear(&server->loose);
	}
	server->loose_lines = 0;
	return WEIR_OK;
}

/* Writes the job's next lines. */
static void write_lines(struct forward_server *server, struct job *job)
{
	struct weir_text *text = job->note != NULL ? &job->text : &server->loose;
	size_t entries = (size_t)(job->lines.rest.end - job->lines.rest.at), likely = entries + entries / 4;
	if (text->capacity == 0) /* the spool has taken the one before */
		(void)weir_text_reserve(text, likely < PART_BYTES ? likely : PART_BYTES);
	uint32_t count = job->note != NULL ? 0 : server->loose_lines;
	job->state = forward_lines_next(&job->lines, PART_BYTES, PART_LINES, text, &count, &job->why);
	if (job->note == NULL)
		server->loose_lines = count;
}

/* Gives the job's next part. A part of a message that cannot be read to its end is not worth an answer. */
static enum weir_status give_part(struct forward_server *server, struct job *job)
{
	if (job->note == NULL)
		return server->loose.length >= PART_BYTES || server->loose_lines >= PART_LINES ? give_loose(server) : WEIR_OK;
	if (job->text.length == 0)
		return WEIR_OK;
	struct weir_text id = {0};
	forward_put_id(&id, job->number, job->note->tag, (struct weir_span){job->note->chunk, job->note->chunk_length});
	enum weir_status status = give(server, job->note, weir_text_span(&id), &job->text, &job->why);
	weir_text_deinit(&id);
	if (status == WEIR_OK)
		job->number++;
	if (status == WEIR_INVALID)
		job->state = WEIR_INVALID;
	return status == WEIR_FULL ? status : WEIR_OK;
}

/* Ends the job. What could not be read of its message is said, and not acknowledged. */
static void end_job(struct forward_server *server, struct job *job)
{
	if (job->state == WEIR_INVALID)
		refuse(server, job->connection, job->why.text);
	if (job->note != NULL) {
		job->note->given = true;
		job->note->all_parts = job->number;
		job->note->failed |= job->state == WEIR_INVALID;
		settle(server, job->note);
	}
	forward_lines_deinit(&job->lines);
	weir_text_clear(&job->text);
	job->connection = NULL;
}

/* @return WEIR_OK: the message is done; WEIR_FULL: it waits for the spool */
static enum weir_status work(struct forward_server *server)
{
	struct job *job = &server->job;
	if (job->note != NULL && give_loose(server) == WEIR_FULL) /* what came before it goes first */
		return WEIR_FULL;
	for (;;) {
		if (job->note != NULL ? job->text.length > 0 : server->loose.length >= PART_BYTES)
			if (give_part(server, job) == WEIR_FULL)
				return WEIR_FULL;
		if (job->state != WEIR_OK)
			break;
		write_lines(server, job);
		if (job->state == WEIR_INVALID && job->note != NULL)
			weir_text_clear(&job->text);
		if (give_part(server, job) == WEIR_FULL)
			return WEIR_FULL;
	}
	end_job(server, job);
	return WEIR_OK;
}

static struct note *note_of(struct forward_connection *connection, struct weir_span tag, struct weir_span chunk)
{
	struct note *note = weir_alloc(1, sizeof *note);
	note->connection = connection;
	note->chunk = weir_copy(chunk.at, chunk.length);
	note->chunk_length = chunk.length;
	forward_hash_tag(tag, note->tag);
	connection->waiting++;
	return note;
}

/* A message with entries. @return as work() */
static enum weir_status take_entries(struct forward_server *server, struct forward_connection *connection,
                                     const struct forward_frame *frame)
{
	bool chunk = frame->chunk.at != NULL;
	add(server, &server->status.received, 1);
	add(server, &server->status.nameless, !chunk);
	if (frame->other_signal || !forward_takes_tag(server->config, frame->tag)) {
		add(server, &server->status.skipped, 1);
		if (frame->other_signal)
			say(server, "%s sends metrics or traces, which are not read: let it send logs alone", connection->peer);
		if (chunk)
			acknowledge(connection, frame->chunk);
		return WEIR_OK;
	}
	if (chunk)
		forward_acks_match(&server->acks, server->spool, frame->tag, frame->chunk);
	struct job *job = &server->job;
	job->connection = connection;
	job->frame = *frame;
	job->number = 0;
	job->state = WEIR_OK;
	job->note = chunk ? note_of(connection, frame->tag, frame->chunk) : NULL;
	forward_lines_init(&job->lines, &job->frame, &server->limits);
	return work(server);
}

/* @return as work() */
static enum weir_status take_message(struct forward_server *server, struct forward_connection *connection)
{
	struct forward_frame frame;
	struct weir_error error;
	const char *why = NULL;
	if (forward_frame_read(connection->bytes + connection->begin, connection->extent.seen, &frame, &error) != WEIR_OK) {
		refuse(server, connection, error.text);
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
		refuse(server, connection, why);
	return why == NULL && frame.kind >= FORWARD_MESSAGE ? take_entries(server, connection, &frame) : WEIR_OK;
}

/* ---- the loop ---- */

static void read_connection(struct forward_server *server, struct forward_connection *connection, int64_t now_ms)
{
	struct weir_error error;
	enum weir_status status = forward_connection_read(connection, &server->memory, now_ms, &error);
	if (status != WEIR_OK)
		refuse(server, connection, status == WEIR_FULL && !connection->trusted ? no_key : error.text);
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
	while (connection->whole && !connection->failed && !server->stopping) {
		if (take_message(server, connection) == WEIR_FULL)
			return;
		struct weir_error error;
		if (!connection->failed && forward_connection_pass(connection, &server->memory, now_ms, &error) != WEIR_OK)
			refuse(server, connection, error.text);
	}
}

/* Goes on with the message that waits for the spool. @return false: it still waits */
static bool resume(struct forward_server *server, int64_t now_ms)
{
	struct forward_connection *connection = server->job.connection;
	struct weir_error error;
	if (connection == NULL)
		return server->loose.length < PART_BYTES || give_loose(server) == WEIR_OK;
	if (work(server) == WEIR_FULL)
		return false;
	if (!connection->failed && forward_connection_pass(connection, &server->memory, now_ms, &error) != WEIR_OK)
		refuse(server, connection, error.text);
	return true;
}

static void serve_all(struct forward_server *server, int64_t now_ms)
{
	if (!resume(server, now_ms))
		return;
	for (size_t i = 0; i < server->count && server->job.connection == NULL; i++) {
		struct forward_connection *connection = server->connections[i];
		if (connection->starved)
			read_connection(server, connection, now_ms);
		if (connection->whole)
			serve_connection(server, connection, now_ms);
	}
	if (server->job.connection == NULL)
		(void)give_loose(server);
}

/* Whether a connection's time is over. */
static bool is_over(const struct forward_server *server, const struct forward_connection *connection, int64_t now_ms)
{
	int64_t silent_ms = now_ms - connection->heard_ms;
	if (connection->whole || connection->waiting > 0)
		return false;                                      /* it is this side that lets it wait */
	bool owes = connection->ended || !connection->trusted; /* its end, or to say who it is */
	return silent_ms >= (owes ? PATIENCE_MS : server->config->idle_ms);
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

/* Closes what has ended, and sets what is watched of the rest. */
static void sweep(struct forward_server *server, int64_t now_ms)
{
	bool turn = now_ms >= server->turn_ms, starving = false, behind = false;
	for (size_t i = server->count; i-- > 0;) {
		struct forward_connection *connection = server->connections[i];
		bool busy = connection->waiting > 0 || server->job.connection == connection;
		bool done = connection->ended && !connection->whole && connection->out.length == 0;
		if (!connection->failed && done && connection->end > connection->begin)
			refuse(server, connection, "it ended within a message");
		if (turn && !connection->failed && !connection->starved && is_stuck(server, connection, now_ms))
			refuse(server, connection, "a message was begun and did not come to its end");
		if (turn && is_idle(connection) && now_ms - connection->heard_ms >= SILENT_LEAST_MS)
			forward_connection_rest(connection, &server->memory);
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
			forward_answer_heartbeats(server->heartbeats);
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
	take_answers(server);
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
	take_answers(server);
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

static void *serve(void *context)
{
	struct forward_server *server = context;
	while (!server->stopping)
		take_events(server, server->behind ? 0 : server->full ? RETRY_MS : TURN_MS);
	forward_acks_stop(&server->acks, server->spool, weir_monotonic_ms());
	server->looked = true;
	while (!server->stopped) {
		take_answers(server);
		usleep(RETRY_MS * 1000);
	}
	say_goodbye(server);
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
		say(server, "heartbeats by UDP are not answered: the port is taken; senders that use them see no server here");
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XREAD: entries behind those that were read, as lines.
 *
 * One command asks for all streams of a server and waits there until one has an entry. In a cluster a command has one key,
 * and a server that waits for one hears of no other: there all are asked for in turn.
 */
#include "collector/source/redis/internal.h"

#include "common/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	WAIT_MS = 1000,        /* how long a server waits for an entry */
	WAIT_DONE_MS = 100,    /* the same, where departures are looked for */
	PAUSE_MS = 50,         /* in a cluster, from one round without an entry to the next */
	COUNT_LEAST = 16,      /* entries asked for first, when it is not known how large they are */
	COUNT_MOST = 4000,     /* of all streams together */
	REPLY_BYTES = 1 << 20, /* about how large an answer may be: the server has it in memory as a whole */
};

/* ---- entries ---- */

static void stop(struct redis_source *source, struct redis_stream *stream, struct weir_span id)
{
	char words[256];
	snprintf(
		words, sizeof words,
		"entry %.*s has an id that weir cannot order: ids must be the clock's (before the year 2109, less than 2^21 a "
		"ms). Nothing behind it is read; remove it, and restart the collector",
		(int)(id.length < 48 ? id.length : 48), id.at);
	stream->stopped = true;
	stream->refused = false;
	redis_stream_problem(source, stream, words);
}

static void note_skipped(struct redis_source *source, struct redis_stream *stream)
{
	char id[REDIS_ID_BYTES];
	redis_position_id(stream->place.position, id);
	queue_note_lost(&source->queue, stream->entries, 0,
	                "entry %s has no field \"%s\", but %s: it and others like it are no lines. Is \"field\" right?", id,
	                source->entry.field, source->entry.names);
}

/* @return false: the source ends */
static bool put(struct redis_source *source, struct redis_stream *stream, uint64_t position)
{
	struct redis_entry *entry = &source->entry;
	if (position > stream->extent.last)
		redis_settle(source, stream); /* all up to there is read */
	stream->place.position = position;
	stream->place.added++;
	stream->place.read++;
	if (stream->done != NULL && stream->tallied)
		queue_set_number(stream->entries, QUEUE_NUMBER, stream->place.read);
	queue_set_number(stream->entries, QUEUE_ADDED, stream->counted || stream->at_least ? stream->place.added : 0);
	redis_entry_end(entry);
	if (entry->field != NULL && !entry->found)
		note_skipped(source, stream);
	if (!queue_put(&source->queue, stream->entries, entry->text.at, entry->text.length, position,
	               redis_position_ms(position)))
		return false;
	if (position == stream->extent.last)
		redis_settle(source, stream);
	return true;
}

/* Reads the fields of an entry. */
static enum weir_status take_fields(struct redis_source *source, struct redis_server *server, struct weir_error *error)
{
	struct weir_resp_token list, token;
	uint64_t bytes = 0;
	enum weir_status status = redis_server_next(server, &list, error);
	for (int64_t i = 0; status == WEIR_OK && list.kind == WEIR_RESP_LIST && i < list.number; i++) {
		status = redis_server_next(server, &token, error);
		if (status != WEIR_OK)
			return status;
		bytes += token.whole;
		if (i % 2 == 0)
			redis_entry_name(&source->entry, token.text);
		else
			redis_entry_value(&source->entry, token.text, token.whole);
	}
	if (bytes > source->largest)
		source->largest = bytes;
	return status;
}

static enum weir_status take_entry(struct redis_source *source, struct redis_server *server,
                                   struct redis_stream *stream, struct weir_error *error)
{
	struct weir_resp_token token;
	uint64_t position = 0;
	enum weir_status status = redis_server_next(server, &token, error); /* the entry: an id, and fields */
	if (status == WEIR_OK)
		status = redis_server_next(server, &token, error);
	if (status != WEIR_OK)
		return status;
	bool ordered = redis_id_position(token.text, &position);
	if (!ordered && !stream->stopped)
		stop(source, stream, token.text);
	redis_entry_begin(&source->entry, redis_key(stream), position);
	status = take_fields(source, server, error);
	if (status != WEIR_OK || stream->stopped || position <= stream->place.position)
		return status;
	stream->got++;
	return put(source, stream, position) ? WEIR_OK : WEIR_END;
}

static struct redis_stream *find(struct redis_source *source, size_t node, struct weir_span key)
{
	for (size_t i = 0; i < source->stream_count; i++)
		if (source->streams[i]->asked && source->streams[i]->asked_node == node &&
		    weir_span_equal(redis_key(source->streams[i]), key))
			return source->streams[i];
	return NULL;
}

/* Reads the entries of one stream in an answer. */
static enum weir_status take_stream(struct redis_source *source, size_t node, struct weir_error *error)
{
	struct redis_server *server = source->servers[node];
	struct weir_resp_token token, entries;
	enum weir_status status = redis_server_next(server, &token, error);
	if (status == WEIR_OK)
		status = redis_server_next(server, &token, error);
	if (status != WEIR_OK)
		return status;
	struct redis_stream *stream = find(source, node, token.text);
	status = redis_server_next(server, &entries, error);
	if (stream == NULL)
		return status == WEIR_OK ? redis_server_skip(server, &entries, error) : status;
	for (int64_t i = 0; status == WEIR_OK && entries.kind == WEIR_RESP_LIST && i < entries.number; i++)
		status = take_entry(source, server, stream, error);
	if (source->keeps)
		redis_mark(stream);
	return status;
}

/* ---- commands ---- */

static void ask(struct redis_source *source, struct redis_stream *const *streams, size_t count, int64_t wait_ms)
{
	struct redis_server *server = source->servers[streams[0]->node];
	char id[REDIS_ID_BYTES];
	redis_command(source, streams[0], "XREAD", 3 + (wait_ms > 0 ? 2u : 0) + 2 * count);
	redis_server_text(server, "COUNT");
	redis_server_number(server, source->count);
	if (wait_ms > 0) {
		redis_server_text(server, "BLOCK");
		redis_server_number(server, (uint64_t)wait_ms);
	}
	redis_server_text(server, "STREAMS");
	for (size_t i = 0; i < count; i++)
		redis_server_word(server, redis_key(streams[i]));
	for (size_t i = 0; i < count; i++) {
		redis_position_id(streams[i]->place.position, id);
		redis_server_text(server, id);
		streams[i]->asked = true;
		streams[i]->asked_node = streams[i]->node;
		streams[i]->got = 0;
	}
}

/* @return WEIR_OK; WEIR_INVALID: a stream cannot be read, error says why; WEIR_AGAIN: another is elsewhere */
static enum weir_status hear(struct redis_source *source, struct redis_stream *const *streams, size_t count, bool *any,
                             struct weir_error *error)
{
	struct weir_resp_token token;
	enum weir_status status = redis_answer(source, streams[0], &token, error);
	for (int64_t i = 0; status == WEIR_OK && token.kind == WEIR_RESP_LIST && i < token.number; i++)
		status = take_stream(source, streams[0]->asked_node, error);
	for (size_t i = 0; i < count; i++) {
		struct redis_stream *stream = streams[i];
		stream->asked = false;
		*any |= stream->got > 0;
		stream->dry = status == WEIR_OK && stream->got < source->count;
		if (status == WEIR_OK && stream->refused) {
			stream->refused = false;
			redis_stream_problem(source, stream, NULL);
		}
		if (status == WEIR_OK && stream->dry && !stream->stopped)
			redis_settle(source, stream); /* there is no more up to any end that was told before */
	}
	return status;
}

/* The next answer has as many entries as an answer's size allows. */
static void set_count(struct redis_source *source, size_t streams)
{
	uint64_t most = COUNT_MOST / (streams > 0 ? streams : 1),
			 fits = source->largest > 0 ? REPLY_BYTES / source->largest : most;
	most = most > 0 ? most : 1;
	uint64_t grown = source->count * 4;
	source->count = grown < most ? grown : most;
	if (source->count > fits)
		source->count = fits > 0 ? fits : 1;
	source->largest -= source->largest / 8; /* a large one is forgotten in time */
}

static size_t gather(struct redis_source *source, size_t node, struct redis_stream **streams)
{
	size_t count = 0;
	for (size_t i = 0; i < source->stream_count; i++) {
		struct redis_stream *stream = source->streams[i];
		if (stream->entries != NULL && !stream->stopped && !stream->unreadable && stream->node == node)
			streams[count++] = stream;
	}
	return count;
}

static enum weir_status show(struct redis_source *source, struct redis_stream *stream, enum weir_status status,
                             struct weir_error *error)
{
	if (status == WEIR_INVALID && source->queue.once)
		return status;
	if (status == WEIR_INVALID) {
		stream->refused = true;
		redis_stream_problem(source, stream, error->text);
	}
	return status == WEIR_AGAIN || status == WEIR_INVALID ? WEIR_OK : status;
}

static enum weir_status read_apart(struct redis_source *source, struct redis_stream **streams, size_t count, bool *any,
                                   struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	if (source->servers[streams[0]->node]->link == NULL)
		return WEIR_OK; /* until it is looked for again */
	for (size_t i = 0; i < count; i++)
		ask(source, &streams[i], 1, 0);
	for (size_t i = 0; i < count && status == WEIR_OK; i++)
		status =
			show(source, streams[i], redis_lost(source, streams[i], hear(source, &streams[i], 1, any, error)), error);
	return status;
}

/* All streams of a server by one command. If that is refused, it does not say for which of them: each alone says it. */
static enum weir_status read_together(struct redis_source *source, struct redis_stream **streams, size_t count,
                                      int64_t wait_ms, bool *any, struct weir_error *error)
{
	source->servers[streams[0]->node]->patience_ms = wait_ms + 5000;
	ask(source, streams, count, wait_ms);
	enum weir_status status = hear(source, streams, count, any, error);
	return status == WEIR_INVALID && count > 1 ? read_apart(source, streams, count, any, error)
	                                           : show(source, streams[0], status, error);
}

static void rest(struct redis_source *source, int64_t ms)
{
	queue_flush(&source->queue);
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

enum weir_status redis_read(struct redis_source *source, struct weir_error *error)
{
	struct redis_stream *streams[REDIS_STREAMS_MAX];
	bool any = false, waits = false;
	enum weir_status status = WEIR_OK;
	size_t all = 0;
	if (source->count == 0)
		source->count = COUNT_LEAST;
	for (size_t node = 0; node < source->server_count && status == WEIR_OK; node++) {
		size_t count = gather(source, node, streams);
		all += count;
		if (count == 0)
			continue;
		waits |= !source->cluster && !source->queue.once;
		if (source->cluster)
			status = read_apart(source, streams, count, &any, error);
		else
			status = read_together(source, streams, count,
			                       source->queue.once          ? 0
			                       : source->config.departures ? WAIT_DONE_MS
			                                                   : WAIT_MS,
			                       &any, error);
	}
	set_count(source, all);
	if (status == WEIR_OK && !any && (!waits || all == 0) && !source->queue.once)
		rest(source, PAUSE_MS);
	return status;
}

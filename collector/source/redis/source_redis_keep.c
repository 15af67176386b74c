/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The low-water mark, kept in the stream itself as the place of a consumer group: it is replicated with the entries, other
 * collectors see it, people see it as the group's lag, and tools that trim behind the slowest group respect it.
 *
 * What is acknowledged lags behind what is read. So the counts of places between the two are noted: when a place is
 * acknowledged, it is kept with its counts.
 */
#include "collector/source/redis/internal.h"

#include <string.h>

enum { AT_ONCE = 64 };

void redis_mark(struct redis_stream *stream)
{
	struct redis_mark *newest = stream->mark_count > 0 ? &stream->marks[stream->mark_count - 1] : NULL;
	if (newest != NULL && newest->position == stream->place.position) {
		*newest = stream->place;
		return;
	}
	if (stream->mark_count == REDIS_MARKS_MAX)
		stream->mark_count--; /* the newest is coarser than it could be, and no less true */
	stream->marks[stream->mark_count++] = stream->place;
}

/* Moves `safe` to the newest mark that is acknowledged. */
static void take_safe(struct redis_stream *stream)
{
	uint64_t position = queue_safe(stream->entries);
	size_t taken = 0;
	while (taken < stream->mark_count && stream->marks[taken].position <= position)
		stream->safe = stream->marks[taken++];
	stream->mark_count -= taken;
	memmove(stream->marks, stream->marks + taken, stream->mark_count * sizeof *stream->marks);
}

static void keep_group(struct redis_source *source, struct redis_stream *stream, int group, const char *id, bool counts,
                       uint64_t count)
{
	struct redis_server *server = source->servers[stream->node];
	redis_command(source, stream, stream->kept ? "XGROUP SETID" : "XGROUP CREATE", 3 + (counts ? 2u : 0));
	redis_server_word(server, redis_key(stream));
	redis_server_text(server, source->groups[group]);
	redis_server_text(server, id);
	if (!counts)
		return;
	redis_server_text(server, "ENTRIESREAD");
	redis_server_number(server, count);
}

static void keep_place(struct redis_source *source, struct redis_stream *stream)
{
	char id[REDIS_ID_BYTES];
	redis_position_id(stream->safe.position, id);
	keep_group(source, stream, REDIS_GROUP, id, stream->counted && !source->old, stream->safe.added);
}

static void keep_number(struct redis_source *source, struct redis_stream *stream, int group, uint64_t number)
{
	char id[REDIS_ID_BYTES];
	redis_number_id(stream->safe.position, number, id);
	keep_group(source, stream, group, id, false, 0);
}

static bool has_moved(const struct redis_stream *stream)
{
	return !stream->kept || stream->safe.position != stream->saved || stream->safe.added != stream->saved_added ||
	       (stream->done != NULL && queue_safe(stream->done) != stream->saved_done);
}

/* Queues the commands that keep a stream's place: together or not at all, as one number means nothing without the other. */
static void ask(struct redis_source *source, struct redis_stream *stream)
{
	uint64_t done = stream->done != NULL ? queue_safe(stream->done) : 0;
	stream->saving = stream->safe.position;
	stream->saving_added = stream->safe.added;
	stream->saving_done = done;
	redis_command(source, stream, "MULTI", 0);
	keep_place(source, stream);
	if (stream->done != NULL && stream->tallied) {
		keep_number(source, stream, REDIS_GROUP_READ, stream->safe.read);
		keep_number(source, stream, REDIS_GROUP_DONE, done);
	}
	redis_command(source, stream, "EXEC", 0);
}

static bool begins(const struct weir_resp_token *token, const char *with)
{
	return token->kind == WEIR_RESP_ERROR && token->text.length >= strlen(with) &&
	       memcmp(token->text.at, with, strlen(with)) == 0;
}

/* What a command in the transaction, or the transaction, came to. */
static enum weir_status judge(struct redis_source *source, struct redis_stream *stream,
                              const struct weir_resp_token *token, enum weir_status so_far, struct weir_error *error)
{
	if (token->kind != WEIR_RESP_ERROR || so_far != WEIR_OK)
		return so_far;
	if (begins(token, "EXECABORT"))
		return so_far;
	if (begins(token, "NOGROUP")) {
		stream->kept = false; /* it is made anew at the next turn */
		return WEIR_AGAIN;
	}
	if (begins(token, "BUSYGROUP")) {
		stream->kept = true;
		return WEIR_AGAIN;
	}
	if (begins(token, "ERR syntax") || begins(token, "ERR wrong number") || begins(token, "ERR unknown subcommand")) {
		source->old = true;
		return WEIR_AGAIN;
	}
	return redis_refused(source, stream, token->text, error);
}

/* Reads the answers to ask(). */
static enum weir_status hear(struct redis_source *source, struct redis_stream *stream, struct weir_error *error)
{
	struct redis_server *server = source->servers[stream->asked_node];
	struct weir_resp_token token;
	int commands = stream->done != NULL && stream->tallied ? REDIS_GROUPS : 1;
	int answers = (commands + 2) * (stream->asked_asking ? 2 : 1);
	enum weir_status outcome = WEIR_OK;
	for (int i = 0; i < answers; i++) {
		enum weir_status status = redis_server_next(server, &token, error);
		if (status != WEIR_OK)
			return status;
		outcome = judge(source, stream, &token, outcome, error);
		for (int64_t k = 0; token.kind == WEIR_RESP_LIST && k < token.number; k++) {
			struct weir_resp_token inner;
			if ((status = redis_server_next(server, &inner, error)) != WEIR_OK)
				return status;
			outcome = judge(source, stream, &inner, outcome, error);
		}
	}
	if (outcome == WEIR_OK) {
		stream->kept = true;
		stream->saved = stream->saving;
		stream->saved_added = stream->saving_added;
		stream->saved_done = stream->saving_done;
	}
	return outcome;
}

enum weir_status redis_keep(struct redis_source *source, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t first = 0; first < source->stream_count && status == WEIR_OK; first += AT_ONCE) {
		struct redis_stream *asked[AT_ONCE];
		size_t count = 0;
		for (size_t i = first; i < source->stream_count && i < first + AT_ONCE; i++) {
			struct redis_stream *stream = source->streams[i];
			if (stream->entries == NULL || stream->gone || source->servers[stream->node]->link == NULL)
				continue;
			take_safe(stream);
			/* At a stream that may have been made anew, a server takes no count above its own: the memory has it. */
			if (stream->at_least || !has_moved(stream))
				continue;
			ask(source, stream);
			asked[count++] = stream;
		}
		for (size_t i = 0; i < count && status == WEIR_OK; i++) {
			enum weir_status kept = redis_lost(source, asked[i], hear(source, asked[i], error));
			if (kept == WEIR_IO || kept == WEIR_END)
				status = kept;
			if (kept == WEIR_INVALID)
				queue_note_lost(
					&source->queue, asked[i]->entries, 0,
					"its position cannot be kept in group %s: %s. This machine remembers it; reading goes on",
					source->groups[REDIS_GROUP], error->text);
		}
	}
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server says of streams: where they begin, and what has become of them.
 *
 * Redis counts all entries that were ever added to a stream. Whoever has read up to its end and has counted fewer has
 * missed the others: they were removed before they were read. So a moment's numbers are kept until all up to its end is
 * read, and compared then; what was added since does not matter.
 */
#include "collector/source/redis/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REFUSED_MS = 30000 }; /* how long a stream that cannot be read beside the others is left alone */

_Static_assert(2 * REDIS_STREAMS_MAX <= QUEUE_STREAMS_MAX, "each has a stream of departures beside it");

/* ---- answers ---- */

static bool is(struct weir_span name, const char *word)
{
	return weir_span_equal(name, weir_span_of(word));
}

/* Called with each name of an answer that is a map, and its value's first token. */
typedef void take_member(void *context, struct weir_span name, const struct weir_resp_token *value);

static enum weir_status read_map(struct redis_server *server, const struct weir_resp_token *head, take_member *take,
                                 void *context, struct weir_error *error)
{
	struct weir_resp_token token;
	enum weir_status status = WEIR_OK;
	for (int64_t i = 0; i + 1 < head->number && status == WEIR_OK; i += 2) {
		char name[40] = "";
		status = redis_server_next(server, &token, error);
		if (status == WEIR_OK && token.kind == WEIR_RESP_TEXT && token.text.length < sizeof name)
			memcpy(name, token.text.at, token.text.length);
		if (status == WEIR_OK)
			status = redis_server_next(server, &token, error);
		if (status != WEIR_OK)
			return status;
		take(context, weir_span_of(name), &token);
		status = redis_server_skip(server, &token, error);
	}
	return status;
}

static void take_extent(void *context, struct weir_span name, const struct weir_resp_token *value)
{
	struct redis_extent *extent = context;
	if (is(name, "length"))
		extent->length = (uint64_t)value->number;
	if (is(name, "entries-added")) {
		extent->counts = true;
		extent->added = (uint64_t)value->number;
	}
	if (is(name, "last-generated-id") && !redis_id_position(value->text, &extent->last))
		extent->last = UINT64_MAX;
}

/* A consumer group. */
struct group {
	const char *name;
	bool there;
	uint64_t at, pending;
	uint64_t number; /* in its id */
	bool counted;    /* `read` is known */
	uint64_t read;
};

/* Those that are looked for in an answer to XINFO GROUPS. */
struct groups {
	struct group *at;
	size_t count;
	struct group *now; /* whose members come; NULL: another's */
};

static void take_group(void *context, struct weir_span name, const struct weir_resp_token *value)
{
	struct groups *groups = context;
	if (is(name, "name")) {
		groups->now = NULL;
		for (size_t i = 0; i < groups->count; i++)
			if (is(value->text, groups->at[i].name))
				groups->now = &groups->at[i];
	}
	if (groups->now == NULL)
		return;
	groups->now->there = true;
	if (is(name, "pending"))
		groups->now->pending = (uint64_t)value->number;
	if (is(name, "last-delivered-id")) {
		(void)redis_id_position(value->text, &groups->now->at);
		(void)redis_id_number(value->text, &groups->now->number);
	}
	if (is(name, "entries-read")) {
		groups->now->counted = value->kind == WEIR_RESP_NUMBER;
		groups->now->read = groups->now->counted ? (uint64_t)value->number : 0;
	}
}

/* ---- commands ---- */

void redis_command(struct redis_source *source, struct redis_stream *stream, const char *words, size_t more)
{
	struct redis_server *server = source->servers[stream->node];
	stream->asked_node = stream->node;
	stream->asked_asking = stream->asking;
	if (stream->asking) {
		redis_server_command(server, 1);
		redis_server_text(server, "ASKING");
	}
	const char *second = strchr(words, ' ');
	redis_server_command(server, more + (second != NULL ? 2u : 1u));
	redis_server_word(server, (struct weir_span){.at = words, .length = (uint32_t)strcspn(words, " ")});
	if (second != NULL)
		redis_server_text(server, second + 1);
}

enum weir_status redis_answer(struct redis_source *source, struct redis_stream *stream, struct weir_resp_token *token,
                              struct weir_error *error)
{
	struct redis_server *server = source->servers[stream->asked_node];
	enum weir_status status = stream->asked_asking ? redis_server_next(server, token, error) : WEIR_OK;
	if (status == WEIR_OK)
		status = redis_server_next(server, token, error);
	if (status == WEIR_OK && token->kind == WEIR_RESP_ERROR)
		status = redis_refused(source, stream, token->text, error);
	return status;
}

static void ask_stream(struct redis_source *source, struct redis_stream *stream)
{
	redis_command(source, stream, "XINFO STREAM", 1);
	redis_server_word(source->servers[stream->node], redis_key(stream));
}

static void ask_groups(struct redis_source *source, struct redis_stream *stream)
{
	redis_command(source, stream, "XINFO GROUPS", 1);
	redis_server_word(source->servers[stream->node], redis_key(stream));
}

static enum weir_status read_extent(struct redis_source *source, struct redis_stream *stream,
                                    struct redis_extent *extent, struct weir_error *error)
{
	struct redis_server *server = source->servers[stream->asked_node];
	struct weir_resp_token token;
	enum weir_status status = redis_answer(source, stream, &token, error);
	if (status != WEIR_OK)
		return status;
	extent->known = true;
	return read_map(server, &token, take_extent, extent, error);
}

static enum weir_status read_groups(struct redis_source *source, struct redis_stream *stream, struct group *at,
                                    size_t count, struct weir_error *error)
{
	struct redis_server *server = source->servers[stream->asked_node];
	struct groups groups = {.at = at, .count = count};
	struct weir_resp_token token, one;
	enum weir_status status = redis_answer(source, stream, &token, error);
	for (int64_t i = 0; status == WEIR_OK && i < token.number; i++) {
		status = redis_server_next(server, &one, error);
		if (status == WEIR_OK)
			status = read_map(server, &one, take_group, &groups, error);
	}
	return status;
}

/* ---- where a stream begins ---- */

/* It is not there any more: whatever was read of it has left. */
static void depart_all(struct redis_source *source, struct redis_stream *stream)
{
	const struct redis_extent nothing = {.acknowledges = true};
	if (stream->done != NULL && stream->tallied)
		redis_depart(source, stream, &nothing);
}

/* Hash of the source's name, the database, the key and the generation, each ended by a zero; and of what is read of it. */
static void make_id(const struct redis_source *source, const struct redis_stream *stream, const char *what,
                    uint8_t id[SOURCE_ID_BYTES])
{
	struct weir_text named = {0};
	weir_text_append(&named, "redis", sizeof "redis");
	weir_text_append(&named, source->config.name, strlen(source->config.name) + 1);
	weir_text_printf(&named, "%" PRIu32, source->urls[0].database);
	weir_text_append(&named, "", 1);
	weir_text_append(&named, stream->key, stream->key_length);
	weir_text_append(&named, "", 1);
	weir_text_printf(&named, "%" PRId64, source->config.generation);
	weir_text_append(&named, "", 1);
	weir_text_append(&named, what, strlen(what) + 1);
	weir_hash128(named.at, named.length, id);
	weir_text_deinit(&named);
}

/* "jobs:KEY", or "jobs:KEY done"; bytes that no terminal should obey stand as '?'. Returned, the caller frees. */
static char *make_label(const struct redis_source *source, const struct redis_stream *stream, const char *what)
{
	struct weir_text text = {0};
	weir_text_printf(&text, "%s:", source->config.name);
	for (uint32_t i = 0; i < stream->key_length; i++) {
		unsigned char c = (unsigned char)stream->key[i];
		weir_text_append(&text, c < 0x20 || c == 0x7F ? "?" : (const char *)&c, 1);
	}
	weir_text_puts(&text, what);
	weir_text_append(&text, "", 1);
	return text.at;
}

static enum weir_status find(struct redis_source *source, const struct redis_stream *stream, const char *what,
                             uint64_t last, const struct group *group, struct queue_stream **made,
                             struct weir_error *error)
{
	struct queue_found found = {
		.last = last, .safe = group->there ? group->at : 0, .kept = group->there, .again = stream->gone};
	char *label = make_label(source, stream, what);
	found.label = label;
	make_id(source, stream, what, found.id);
	enum weir_status status = queue_find(&source->queue, &found, made, error);
	free(label);
	return status;
}

/*
 * Sets how many entries were read. A stream that was removed while weir was down took its groups along: this machine
 * remembers the number, as of the last entries that it acknowledged.
 */
static void set_read(struct redis_source *source, struct redis_stream *stream, const struct redis_extent *extent,
                     const struct group *group, const struct group *read)
{
	uint64_t place = stream->place.position, remembered = queue_remembered(stream->entries, QUEUE_NUMBER);
	bool lacks = !group->there && place > 0, kept = group->there && read->there;
	stream->place.read = kept ? read->number : lacks ? remembered : 0;
	if (stream->place.read < stream->departed) /* a kill may have come between the saving of the two */
		stream->place.read = stream->departed;
	stream->tallied = stream->done == NULL || kept || (lacks && remembered > 0) || (!group->there && place == 0) ||
	                  (lacks && place == extent->last && stream->departed == 0);
	if (!stream->tallied && lacks) {
		queue_note_lost(&source->queue, stream->done, 0,
		                "the stream was removed while weir was down, or its groups were: nobody knows how many of its "
		                "entries have left since. Queues hold them until their \"hold\" is over (runbook: lines-lost)");
		queue_note_unknown(&source->queue, stream->done);
	}
	if (stream->done == NULL || !stream->tallied)
		return;
	queue_set_number(stream->entries, QUEUE_NUMBER, stream->place.read);
	if (place > 0 && stream->place.read != remembered) /* another machine's, or of a server that went back */
		(void)queue_pass(&source->queue, stream->entries, place);
}

/*
 * Sets the counts at the place where reading begins, as far as they are known. A stream that was made anew while weir was
 * down took its groups along, and with them how many entries there were: this machine remembers that there were so many
 * at least.
 */
static void set_counts(struct redis_source *source, struct redis_stream *stream, const struct redis_extent *extent,
                       const struct group *group, const struct group *read)
{
	uint64_t place = queue_place(stream->entries), remembered = queue_remembered(stream->entries, QUEUE_ADDED);
	stream->place = (struct redis_mark){.position = place};
	if (place == 0 && extent->counts) {
		stream->counted = true;
		stream->place.added = extent->added - extent->length;
	} else if (group->there && group->counted && group->at == place) {
		stream->counted = true;
		stream->place.added = group->read;
	} else if (place == extent->last && extent->counts) {
		stream->counted = true;
		stream->place.added = extent->added;
	} else if (!group->there && remembered > 0) {
		stream->at_least = true;
		stream->place.added = remembered;
	}
	stream->departed = stream->done != NULL ? queue_place(stream->done) : 0;
	set_read(source, stream, extent, group, read);
	stream->safe = stream->place;
	stream->saved = group->there ? group->at : UINT64_MAX;
	stream->saved_added = stream->safe.added;
	stream->saved_done = stream->departed;
	stream->kept = group->there;
}

static bool has_departures(const struct redis_source *source)
{
	return source->config.departures && !source->queue.once;
}

/* The stream of its entries, and with departures that of them: both, or none is read. */
static enum weir_status find_both(struct redis_source *source, struct redis_stream *stream,
                                  const struct redis_extent *extent, const struct group *groups,
                                  struct weir_error *error)
{
	struct queue_stream *entries, *done = NULL;
	struct group departed = groups[REDIS_GROUP_DONE];
	departed.at = departed.number;
	enum weir_status status =
		find(source, stream, "", stream->absent ? 0 : extent->last, &groups[REDIS_GROUP], &entries, error);
	if (status == WEIR_OK && has_departures(source))
		status = find(source, stream, " done", 0, &departed, &done, error);
	if (status == WEIR_INVALID)
		stream->begin_ms = weir_monotonic_ms() + REFUSED_MS;
	if (status != WEIR_OK)
		return status;
	stream->entries = entries;
	stream->done = done;
	return WEIR_OK;
}

/* It is not there: what was read of it in an earlier run has left. */
static enum weir_status begin_gone(struct redis_source *source, struct redis_stream *stream)
{
	const struct group none[REDIS_GROUPS] = {{0}};
	const struct redis_extent nothing = {.acknowledges = true};
	struct weir_error ignored; /* it was never read */
	stream->sought = true;
	enum weir_status status = find_both(source, stream, &nothing, none, &ignored);
	stream->begin_ms = 0;
	if (status != WEIR_OK)
		return status;
	set_counts(source, stream, &nothing, &none[REDIS_GROUP], &none[REDIS_GROUP_READ]);
	depart_all(source, stream);
	return WEIR_OK;
}

static enum weir_status begin(struct redis_source *source, struct redis_stream *stream, struct weir_error *error)
{
	struct group groups[REDIS_GROUPS] = {{.name = source->groups[REDIS_GROUP]},
	                                     {.name = source->groups[REDIS_GROUP_READ]},
	                                     {.name = source->groups[REDIS_GROUP_DONE]}};
	struct redis_extent extent = {0};
	ask_stream(source, stream);
	enum weir_status status = read_extent(source, stream, &extent, error);
	if (status == WEIR_OK && source->keeps) {
		ask_groups(source, stream);
		status = read_groups(source, stream, groups, REDIS_GROUPS, error);
	}
	if (status == WEIR_INVALID && stream->gone && has_departures(source) && !stream->sought)
		return begin_gone(source, stream) == WEIR_END ? WEIR_END : status;
	if (status != WEIR_OK)
		return status;
	stream->gone = false;
	status = find_both(source, stream, &extent, groups, error);
	if (status != WEIR_OK)
		return status;
	set_counts(source, stream, &extent, &groups[REDIS_GROUP], &groups[REDIS_GROUP_READ]);
	queue_note_end(&source->queue, stream->entries, extent.last);
	stream->end = extent.last;
	return WEIR_OK;
}

/* ---- what has become of it ---- */

/* A stream that ends before what was read is another, or its server has lost entries. */
static void compare_end(struct redis_source *source, struct redis_stream *stream, const struct redis_extent *extent)
{
	char read[REDIS_ID_BYTES], end[REDIS_ID_BYTES];
	bool back = extent->last < stream->place.position;
	if (back && !stream->went_back) {
		redis_position_id(stream->place.position, read);
		redis_position_id(extent->last, end);
		queue_note_lost(
			&source->queue, stream->entries, 0,
			"the server went back: it ends with %s, and was read to %s. What a failover or a restart has lost "
			"cannot be read; reading goes on behind %s",
			end, read, read);
		queue_note_unknown(&source->queue, stream->entries);
	}
	if (back)
		stream->counted = stream->at_least = false; /* it counts from another beginning */
	stream->went_back = back;
}

void redis_settle(struct redis_source *source, struct redis_stream *stream)
{
	struct redis_extent *extent = &stream->extent;
	struct redis_mark *place = &stream->place;
	if (!extent->known)
		return;
	extent->known = false;
	bool compares = stream->counted || stream->at_least;
	stream->at_least = false;
	if (!extent->counts)
		return;
	if (stream->counted && extent->added > place->added)
		queue_note_lost(&source->queue, stream->entries, extent->added - place->added,
		                "%" PRIu64 " entries were removed before they were read", extent->added - place->added);
	if (compares && extent->added < place->added) {
		queue_note_lost(
			&source->queue, stream->entries, 0,
			"the server counts %" PRIu64 " entries, after %" PRIu64
			" before: the stream was made anew, or a failover has lost entries. How many of them were never read is "
			"not known; reading goes on",
			extent->added, place->added);
		queue_note_unknown(&source->queue, stream->entries);
	}
	if (!compares || extent->added != place->added) {
		queue_set_number(stream->entries, QUEUE_ADDED, extent->added);
		if (!queue_pass(&source->queue, stream->entries, place->position))
			return;
	}
	place->added = extent->added;
	stream->counted = true;
	if (stream->done != NULL)
		redis_depart(source, stream, extent);
	if (source->keeps)
		redis_mark(stream); /* a restart does not tell of the same again */
}

/* Says why no departures are given, while that is so. */
static void show_departures(struct redis_source *source, struct redis_stream *stream, const struct redis_extent *extent,
                            bool there)
{
	char words[320] = "";
	const char *workers = source->config.workers;
	if (!extent->counts)
		snprintf(words, sizeof words, "departures need Redis 7 or later, which counts entries");
	else if (workers != NULL && !there)
		snprintf(words, sizeof words, "there is no group \"%.100s\" of which departures could be taken", workers);
	else if (workers != NULL && !extent->acknowledges)
		snprintf(words, sizeof words,
		         "group \"%.40s\" does not say how many entries it has read: nothing was read through it yet, or an "
		         "entry that it had not read was removed. Departures are given once it has read on",
		         workers);
	if (words[0] == '\0' && !stream->waits)
		return;
	char *label = make_label(source, stream, " done");
	queue_stopped(&source->queue, label, true, words[0] != '\0' ? words : NULL);
	free(label);
	stream->waits = words[0] != '\0';
}

static enum weir_status look_again(struct redis_source *source, struct redis_stream *stream, struct weir_error *error)
{
	struct group workers = {.name = source->config.workers};
	struct redis_extent extent = {0};
	enum weir_status status = WEIR_OK;
	if (source->config.workers != NULL)
		status = read_groups(source, stream, &workers, 1, error);
	struct weir_error second;
	enum weir_status status_extent = read_extent(source, stream, &extent, &second);
	if (status == WEIR_OK && status_extent != WEIR_OK)
		*error = second;
	if (status == WEIR_OK)
		status = status_extent;
	if (status == WEIR_INVALID && stream->gone)
		depart_all(source, stream);
	if (status != WEIR_OK)
		return status;
	stream->gone = false;
	bool unread = !workers.counted && workers.at == 0; /* nothing was ever read through it */
	extent.acknowledges = workers.there && (workers.counted || unread) && workers.read >= workers.pending;
	extent.acknowledged = workers.read - workers.pending;
	if (stream->done != NULL)
		show_departures(source, stream, &extent, workers.there);
	compare_end(source, stream, &extent);
	queue_note_end(&source->queue, stream->entries, extent.last);
	stream->end = extent.last;
	queue_note_left(&source->queue, stream->entries,
	                stream->counted && extent.added > stream->place.added ? extent.added - stream->place.added : 0);
	if (!stream->extent.known)
		stream->extent = extent;
	if (stream->place.position >= stream->extent.last)
		redis_settle(source, stream);
	return WEIR_OK;
}

/* @return what ends the round: WEIR_IO, WEIR_END; else WEIR_OK, and the stream's problem is shown */
static enum weir_status show(struct redis_source *source, struct redis_stream *stream, enum weir_status status,
                             const struct weir_error *error)
{
	if (status == WEIR_IO || status == WEIR_END || (status == WEIR_INVALID && source->queue.once))
		return status;
	if (status == WEIR_INVALID)
		stream->refused = false;
	if (stream->refused)
		stream->unreadable = false; /* whether XREAD is still refused shows when it is tried */
	else
		redis_stream_problem(source, stream, status == WEIR_INVALID ? error->text : NULL);
	return WEIR_OK;
}

void redis_stream_problem(struct redis_source *source, struct redis_stream *stream, const char *words)
{
	stream->unreadable = words != NULL;
	if (words == NULL && !stream->told)
		return;
	char *label = make_label(source, stream, "");
	queue_stopped(&source->queue, label, stream->gone, words);
	free(label);
	stream->told = words != NULL;
}

static enum weir_status begin_all(struct redis_source *source, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < source->stream_count && status == WEIR_OK; i++) {
		struct redis_stream *stream = source->streams[i];
		if (stream->entries != NULL || weir_monotonic_ms() < stream->begin_ms)
			continue;
		enum weir_status begun = WEIR_AGAIN;
		for (int tries = 0; begun == WEIR_AGAIN && tries < 5; tries++) { /* it may be elsewhere */
			begun = redis_reach(source, stream, error);
			if (begun == WEIR_OK)
				begun = redis_lost(source, stream, begin(source, stream, error));
		}
		status = show(source, stream, begun, error);
	}
	return status;
}

/* Streams are asked for in groups, so that no queue of answers grows without bound. */
static enum weir_status look_at_some(struct redis_source *source, size_t first, struct weir_error *error)
{
	enum { AT_ONCE = 64 };
	struct redis_stream *asked[AT_ONCE];
	size_t count = 0;
	enum weir_status status = WEIR_OK;
	for (size_t i = first; i < source->stream_count && i < first + AT_ONCE && status == WEIR_OK; i++) {
		struct redis_stream *stream = source->streams[i];
		if (stream->entries == NULL || stream->stopped)
			continue;
		enum weir_status reached = redis_reach(source, stream, error);
		if (reached != WEIR_OK) {
			status = show(source, stream, reached, error);
			continue;
		}
		if (source->config.workers != NULL)
			ask_groups(source, stream);
		ask_stream(source, stream);
		asked[count++] = stream;
	}
	for (size_t i = 0; i < count && status == WEIR_OK; i++)
		status = show(source, asked[i], redis_lost(source, asked[i], look_again(source, asked[i], error)), error);
	return first + AT_ONCE < source->stream_count && status == WEIR_OK ? WEIR_AGAIN : status;
}

enum weir_status redis_look(struct redis_source *source, struct weir_error *error)
{
	enum { AT_ONCE = 64 };
	enum weir_status status = begin_all(source, error);
	if (source->queue.once || status != WEIR_OK)
		return status;
	size_t first = 0;
	while ((status = look_at_some(source, first, error)) == WEIR_AGAIN)
		first += AT_ONCE;
	return status;
}

struct redis_stream *redis_add_stream(struct redis_source *source, struct weir_span key)
{
	if (source->stream_count == REDIS_STREAMS_MAX)
		return NULL;
	struct redis_stream *stream = weir_alloc(1, sizeof *stream);
	stream->key = weir_copy(key.at, key.length);
	stream->key_length = key.length;
	return source->streams[source->stream_count++] = stream;
}

void redis_free_streams(struct redis_source *source)
{
	for (size_t i = 0; i < source->stream_count; i++) {
		free(source->streams[i]->key);
		free(source->streams[i]);
	}
}

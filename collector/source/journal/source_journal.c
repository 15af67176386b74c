/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal as streams, one for each seqnum id and name of its files.
 *
 * Polling is the fastest way to learn of a new entry, as journald itself waits a quarter of a second before it signals
 * that a file has changed. So there is no descriptor, and the caller asks again after a tenth of a second.
 */
#include "collector/source/journal/internal.h"

#include "collector/source/source_metrics.h"
#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hex.h"

#include <stdio.h>
#include <stdlib.h>

enum { SCAN_PERIOD_MS = 200, SAVE_PERIOD_MS = 30000 };

static const int64_t forget_after_ns = INT64_C(7) * 86400 * 1000000000;

static struct journal_source *journal_of(struct source *source)
{
	return (struct journal_source *)(void *)source;
}

/* ---- streams ---- */

static void put_prefix(struct weir_text *text, const struct journal_source *source)
{
	weir_text_puts(text, SOURCE_JOURNAL_PREFIX);
	weir_text_puts(text, source->label);
	weir_text_puts(text, ":");
}

/* "journal:system nginx.service:ID", then ":NAME" unless name is NULL. Returned, the caller frees. */
static char *put_name(const struct journal_source *source, const uint8_t *id, const char *name)
{
	struct weir_text text = {0};
	char digits[2 * JOURNAL_ID_BYTES];
	put_prefix(&text, source);
	(void)weir_hex_put(digits, id, JOURNAL_ID_BYTES);
	weir_text_append(&text, digits, sizeof digits);
	if (name != NULL)
		weir_text_printf(&text, ":%s", name);
	weir_text_append(&text, "", 1);
	return text.at;
}

/* Whether all listed files of an id have this name. */
static bool is_alone(const struct journal_source *source, const uint8_t *id, const char *name)
{
	for (size_t i = 0; i < source->files.count; i++) {
		const struct journal_listed *listed = &source->files.list[i];
		if (memcmp(listed->header.id, id, JOURNAL_ID_BYTES) == 0 && !journal_is_of(listed, id, name))
			return false;
	}
	return true;
}

/*
 * The name of a listed file's stream in the memory. Returned, the caller frees. The system's stream has the id alone.
 * So has a stream of another name that is in the memory without its name, from when each had an id of its own, so that
 * it continues where it was.
 */
static char *stream_name(const struct journal_source *source, const struct journal_listed *listed)
{
	const uint8_t *id = listed->header.id;
	struct weir_span own = journal_name(listed->path);
	char *name = weir_copy(own.at, own.length);
	char *plain = put_name(source, id, NULL), *full = put_name(source, id, name);
	bool is_plain = strcmp(name, "system") == 0 ||
	                (source_memory_find(source->memory, full) == NULL &&
	                 source_memory_find(source->memory, plain) != NULL && is_alone(source, id, name));
	free(name);
	free(is_plain ? full : plain);
	return is_plain ? plain : full;
}

static void add_stream(struct journal_source *source, struct source_memory_stream *record,
                       const struct journal_listed *listed)
{
	struct weir_span name = journal_name(listed->path);
	struct journal_stream *stream = weir_alloc(1, sizeof *stream);
	record->claimed = true;
	stream->record = record;
	memcpy(stream->id, listed->header.id, JOURNAL_ID_BYTES);
	stream->name = weir_copy(name.at, name.length);
	stream->stream.name = record->path;
	source_memory_stream_id(source->memory, record->path, stream->stream.id);
	if (record->low_water > JOURNAL_POSITION_BASE)
		stream->through = stream->handed = stream->acknowledged = record->low_water - JOURNAL_POSITION_BASE;
	stream->status = (struct source_status){
		.name = record->path, .counts_records = true, .position = JOURNAL_POSITION_BASE + stream->handed};
	pthread_mutex_lock(&source->mutex);
	stream->caught_up_ms = weir_monotonic_ms();
	stream->stream.order = (uint32_t)source->stream_count;
	source->streams = weir_realloc(source->streams, source->stream_count + 1, sizeof(struct journal_stream *));
	source->handles = weir_realloc(source->handles, source->stream_count + 1, sizeof(struct source_stream *));
	source->streams[source->stream_count] = stream;
	source->handles[source->stream_count++] = &stream->stream;
	pthread_mutex_unlock(&source->mutex);
}

static bool has_stream(const struct journal_source *source, const struct journal_listed *listed)
{
	for (size_t i = 0; i < source->stream_count; i++)
		if (journal_is_of(listed, source->streams[i]->id, source->streams[i]->name))
			return true;
	return false;
}

/* The newest number among the files with a listed file's id and name. */
static uint64_t newest_of(const struct journal_source *source, const struct journal_listed *listed)
{
	struct weir_span own = journal_name(listed->path);
	char *name = weir_copy(own.at, own.length);
	uint64_t newest = 0;
	for (size_t i = 0; i < source->files.count; i++)
		if (journal_is_of(&source->files.list[i], listed->header.id, name) &&
		    source->files.list[i].header.tail > newest)
			newest = source->files.list[i].header.tail;
	free(name);
	return newest;
}

/* @param unread  why some stream is not read; "": all are */
static void state_whole(struct journal_source *source, const char *unread)
{
	pthread_mutex_lock(&source->mutex);
	if (source->files.problem[0] != '\0')
		snprintf(source->problem, sizeof source->problem, "%s", source->files.problem);
	else if (source->files.count == 0)
		snprintf(source->problem, sizeof source->problem, "no journal found%s%.160s",
		         source->files.directory_count == 1 ? ": " : "",
		         source->files.directory_count == 1 ? source->files.directories[0] : "");
	else
		snprintf(source->problem, sizeof source->problem, "%s", unread);
	pthread_mutex_unlock(&source->mutex);
}

/*
 * Finds, or makes, what is remembered of a listed file's stream. NULL: another source of the same name reads it, or the
 * memory is full.
 *
 * @param skip    begin an unknown stream at its end
 * @param unread  set if the memory is full
 */
static struct source_memory_stream *claim_record(struct journal_source *source, const struct journal_listed *listed,
                                                 bool skip, const char **unread)
{
	char *name = stream_name(source, listed);
	struct source_memory_stream *record = source_memory_find(source->memory, name);
	bool known = record != NULL;
	if (!known)
		record = source_memory_add(source->memory, name);
	free(name);
	if (record == NULL)
		*unread = "some streams are not read: the collector remembers as many streams and logs as it can: let another "
				  "collector read some";
	if (record == NULL || record->claimed)
		return NULL;
	if (!known && skip)
		source_memory_acknowledge(source->memory, record, JOURNAL_POSITION_BASE + newest_of(source, listed));
	record->forgotten_ns = weir_wall_ms() * 1000000; /* of a journal: when it was last seen */
	return record;
}

/* Adds a stream for each id and name that has none yet. @param skip  begin unknown streams at their end */
static void find_streams(struct journal_source *source, bool skip)
{
	const char *unread = "";
	for (size_t i = 0; i < source->files.count; i++) {
		const struct journal_listed *listed = &source->files.list[i];
		if (has_stream(source, listed))
			continue;
		if (source->stream_count == JOURNAL_STREAMS_MAX) {
			unread = "there have been more than 1024 streams since the start, and the others are not read: give some "
					 "folders a source of their own";
			break;
		}
		struct source_memory_stream *record = claim_record(source, listed, skip, &unread);
		if (record != NULL)
			add_stream(source, record, listed);
	}
	state_whole(source, unread);
}

void journal_source_scan(struct journal_source *source, int64_t now_ms)
{
	if (now_ms < source->scan_ms)
		return;
	source->scan_ms = now_ms + SCAN_PERIOD_MS;
	if (!journal_files_scan(&source->files))
		return;
	find_streams(source, false);
}

/* ---- the memory ---- */

/* Whether an earlier run has read this source. Removes records of streams that have been gone for long. */
static bool is_known(struct journal_source *source)
{
	struct weir_text prefix = {0};
	bool known = false;
	put_prefix(&prefix, source);
	for (size_t i = source->memory->stream_count; i-- > 0;) {
		const struct source_memory_stream *record = source->memory->streams[i];
		if (strncmp(record->path, prefix.at, prefix.length) != 0 || record->claimed)
			continue;
		known = true;
		bool there = false;
		for (size_t j = 0; j < source->files.count && !there; j++) {
			char *name = stream_name(source, &source->files.list[j]);
			there = strcmp(name, record->path) == 0;
			free(name);
		}
		if (!there && source->files.count > 0 && weir_wall_ms() * 1000000 - record->forgotten_ns > forget_after_ns)
			source_memory_remove(source->memory, i);
	}
	weir_text_deinit(&prefix);
	return known;
}

static bool is_read_already(const struct journal_source *source)
{
	for (size_t i = 0; i < source->files.count; i++) {
		char *name = stream_name(source, &source->files.list[i]);
		const struct source_memory_stream *record = source_memory_find(source->memory, name);
		free(name);
		if (record != NULL && record->claimed)
			return true;
	}
	return false;
}

/* Saves positions from time to time, so that a start need not search all entries since the last one of a quiet unit. */
static void save_now_and_then(struct journal_source *source, int64_t now_ms)
{
	struct weir_error ignored; /* the collector saves too, and logs errors */
	if (source->once || now_ms < source->save_ms)
		return;
	source->save_ms = now_ms + SAVE_PERIOD_MS;
	(void)!source_memory_save(source->memory, &ignored);
}

/* ---- the interface ---- */

static enum weir_status collect_any(struct journal_source *source, int64_t now_ms, struct source_chunk *chunk,
                                    struct weir_error *error)
{
	size_t ended = 0;
	for (size_t i = 0; i < source->stream_count; i++) {
		struct journal_stream *stream = source->streams[source->turn++ % source->stream_count];
		enum weir_status status = journal_stream_collect(source, stream, now_ms, chunk, error);
		if (status == WEIR_OK || status == WEIR_IO)
			return status;
		ended += status == WEIR_END;
	}
	return source->once && ended == source->stream_count ? WEIR_END : WEIR_AGAIN;
}

static enum weir_status journal_collect(struct source *base, struct source_stream *asked, struct source_chunk *chunk,
                                        struct weir_error *error)
{
	struct journal_source *source = journal_of(base);
	int64_t now_ms = weir_monotonic_ms();
	*chunk = (struct source_chunk){.stream = asked};
	if (asked != NULL)
		return journal_stream_collect(source, (struct journal_stream *)(void *)asked, now_ms, chunk, error);
	if (!source->once)
		journal_source_scan(source, now_ms);
	enum weir_status status = collect_any(source, now_ms, chunk, error);
	if (status == WEIR_AGAIN)
		save_now_and_then(source, now_ms);
	return status;
}

static size_t journal_streams(struct source *base, struct source_stream ***streams)
{
	*streams = journal_of(base)->handles;
	return journal_of(base)->stream_count;
}

static int journal_fd(const struct source *base)
{
	(void)base;
	return -1;
}

static void journal_acknowledge(struct source *base, struct source_stream *handle, uint64_t position)
{
	struct journal_stream *stream = (struct journal_stream *)(void *)handle;
	uint64_t seqnum = position > JOURNAL_POSITION_BASE ? position - JOURNAL_POSITION_BASE : 0;
	if (seqnum > stream->acknowledged)
		stream->acknowledged = seqnum;
	source_memory_acknowledge(journal_of(base)->memory, stream->record, position);
}

static enum weir_status journal_resume(struct source *base, struct source_stream *handle, uint64_t position,
                                       struct weir_error *error)
{
	(void)base;
	struct journal_stream *stream = (struct journal_stream *)(void *)handle;
	if (position != 0 && (position < JOURNAL_POSITION_BASE || position >= JOURNAL_POSITION_BASE + JOURNAL_SEQNUM_MAX))
		return weir_fail(error, WEIR_INVALID, "%s: there is no such position in the journal", stream->stream.name);
	stream->through = stream->handed = stream->acknowledged = position != 0 ? position - JOURNAL_POSITION_BASE : 0;
	return WEIR_OK;
}

static size_t journal_status(struct source *base, struct source_status *statuses, size_t count)
{
	struct journal_source *source = journal_of(base);
	int64_t now_ms = weir_monotonic_ms();
	size_t filled = 0;
	pthread_mutex_lock(&source->mutex);
	for (size_t i = 0; i < source->stream_count; i++, filled++) {
		if (filled >= count)
			continue;
		statuses[filled] = source->streams[i]->status;
		statuses[filled].lines = atomic_load_explicit(&source->streams[i]->stream.lines, memory_order_relaxed);
		statuses[filled].lag_ms = statuses[filled].lag_records > 0 ? now_ms - source->streams[i]->caught_up_ms : 0;
	}
	if (source->problem[0] != '\0') {
		if (filled < count) {
			statuses[filled] = (struct source_status){.name = source->label};
			memcpy(statuses[filled].problem, source->problem, sizeof source->problem);
		}
		filled++;
	}
	pthread_mutex_unlock(&source->mutex);
	return filled;
}

static void free_stream(struct journal_stream *stream)
{
	journal_stream_close(stream);
	stream->record->claimed = false;
	free(stream->at.path);
	free(stream->name);
	weir_text_deinit(&stream->text);
	weir_text_deinit(&stream->long_text);
	free(stream);
}

static void journal_free(struct source *base)
{
	struct journal_source *source = journal_of(base);
	for (size_t i = 0; i < source->stream_count; i++)
		free_stream(source->streams[i]);
	for (size_t i = 0; i < source->filter.count; i++)
		free(source->filter.matches[i]);
	if (source->memory_owned)
		source_memory_free(source->memory);
	journal_files_deinit(&source->files);
	pthread_mutex_destroy(&source->mutex);
	free(source->filter.matches);
	free(source->streams);
	free(source->handles);
	free(source->label);
	free(source);
}

/* Finds where reading begins, and saves it before anything is read: after a crash "the end" must be the same one. */
static enum weir_status begin(struct journal_source *source, const struct weir_json *config, struct weir_error *error)
{
	(void)journal_files_scan(&source->files);
	source->scan_ms = weir_monotonic_ms() + SCAN_PERIOD_MS;
	if (is_read_already(source))
		return weir_json_fail(config, error, "reads the same entries as another source: give each its own \"name\"");
	bool known = is_known(source);
	find_streams(source, !known && source->start == SOURCE_FROM_END && !source->once);
	return source->once ? WEIR_OK : source_memory_save(source->memory, error);
}

static enum weir_status journal_new(const struct weir_json *config, const struct source_context *context,
                                    struct source **made, struct weir_error *error)
{
	static const uint8_t no_id[SOURCE_ID_BYTES];
	struct journal_source *source = weir_alloc(1, sizeof *source);
	source->source.ops = &source_journal_ops;
	pthread_mutex_init(&source->mutex, NULL);
	source->memory_owned = context->memory == NULL;
	source->memory = context->memory;
	if (source->memory_owned)
		source->memory = source_memory_new(context->collector_id != NULL ? context->collector_id : no_id);
	enum weir_status status = journal_configure(source, config, context, error);
	if (status == WEIR_OK)
		status = begin(source, config, error);
	if (status != WEIR_OK) {
		journal_free(&source->source);
		return status;
	}
	*made = &source->source;
	return WEIR_OK;
}

/* "journal of nginx.service in /var/log/journal/remote" */
static void journal_describe(const struct weir_json *config, struct weir_text *place, struct weir_text *manner)
{
	struct weir_json units = weir_json_member(config, "units"), directory = weir_json_member(config, "directory");
	weir_text_puts(place, "journal");
	if (weir_json_exists(&units))
		weir_text_puts(place, " of ");
	source_words_list(place, &units);
	if (weir_json_exists(&directory))
		weir_text_puts(place, " in ");
	source_words_list(place, &directory);
	source_words_manner(manner, config, true);
}

static const struct source_metric *const metrics[] = {
	&source_metric_position,
	&source_metric_incarnation,
	&source_metric_lag_seconds,
	&source_metric_lag_bytes,
	&source_metric_lag_records,
	&source_metric_lines,
	&source_metric_errors,
	&source_metric_lost_bytes,
	&source_metric_lost_records,
	&source_metric_problem,
	&source_metric_replayable,
	&source_metric_guarantee,
	NULL,
};

const struct source_ops source_journal_ops = {
	.type = "journal",
	.members = journal_members,
	.head = "journal",
	.replayable = true,
	.guarantee = SOURCE_EXACTLY_ONCE,
	.metrics = metrics,
	.create = journal_new,
	.describe = journal_describe,
	.collect = journal_collect,
	.streams = journal_streams,
	.fd = journal_fd,
	.acknowledge = journal_acknowledge,
	.resume = journal_resume,
	.status = journal_status,
	.free = journal_free,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spool as a stream.
 *
 * The stream is named by the source and the spool's own id: a spool that was removed and made anew begins at position 0
 * again, and is another stream. The memory has the last line acknowledged, so that reading continues behind it.
 */
#include "collector/source/push/push_source.h"

#include "collector/source/source_memory.h"
#include "collector/source/source_metrics.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hex.h"
#include "common/files/durable_file.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAME_MOST_BYTES = 64, RETRY_MS = 1000 };

static struct push_source *push_of(struct source *source)
{
	return (struct push_source *)(void *)source;
}

bool push_source_name_is_good(const char *name)
{
	size_t length = strlen(name);
	return length > 0 && length <= NAME_MOST_BYTES && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == length;
}

/* Forgets earlier spools of this source, which are gone. */
static void forget_others(struct source_memory *memory, const char *prefix)
{
	for (size_t i = memory->stream_count; i-- > 0;)
		if (!memory->streams[i]->claimed && strncmp(memory->streams[i]->path, prefix, strlen(prefix)) == 0)
			source_memory_remove(memory, i);
}

/* "push:NAME:ID" */
static void put_path(struct weir_text *path, const char *prefix, const uint8_t *id)
{
	char digits[2 * SOURCE_ID_BYTES];
	weir_text_puts(path, prefix);
	(void)weir_hex_put(digits, id, SOURCE_ID_BYTES);
	weir_text_append(path, digits, sizeof digits);
	weir_text_append(path, "", 1);
}

/* What was read last under a name, "push:NAME". @return NULL: nothing is known */
static const struct push_spool_last *find_last(const struct source_memory *memory, const char *name,
                                               struct push_spool_last *last)
{
	size_t length = strlen(name);
	for (size_t i = 0; i < memory->stream_count; i++) {
		const struct source_memory_stream *stream = memory->streams[i];
		const char *digits = stream->path + length + 1;
		if (strncmp(stream->path, name, length) != 0 || stream->path[length] != ':' ||
		    strlen(digits) != (size_t)2 * PUSH_SPOOL_ID_BYTES)
			continue;
		for (size_t j = 0; j < PUSH_SPOOL_ID_BYTES; j++)
			last->id[j] = (uint8_t)weir_hex_byte(digits + 2 * j);
		last->position = stream->low_water;
		return last;
	}
	return NULL;
}

static enum weir_status claim(struct push_source *source, const char *name, struct weir_error *error)
{
	char prefix[sizeof source->name + 2];
	struct weir_text path = {0};
	snprintf(prefix, sizeof prefix, "%s:", source->name);
	put_path(&path, prefix, push_spool_id(source->spool));
	source->record = source_memory_find(source->memory, path.at);
	if (source->record == NULL) {
		forget_others(source->memory, prefix);
		source->record = source_memory_add(source->memory, path.at);
	}
	weir_text_deinit(&path);
	if (source->record == NULL)
		return weir_fail(error, WEIR_FULL, "%s: the memory of sources is full", name);
	source->record->claimed = true;
	source->record->forgotten_ns = weir_wall_ms() * 1000000;
	source_memory_stream_id(source->memory, source->record->path, source->stream.id);
	if (source->record->low_water > 0)
		push_spool_resume(source->spool, source->record->low_water);
	else
		push_spool_resume_settled(source->spool);
	source->status.position = source->record->low_water;
	return WEIR_OK;
}

enum weir_status push_source_init(struct push_source *source, const struct source_ops *ops,
                                  const struct push_source_options *options, const struct source_context *context,
                                  struct weir_error *error)
{
	char state[WEIR_PATH_BYTES], directory[WEIR_PATH_BYTES];
	struct push_spool_last last;
	source->source.ops = ops;
	source->streams[0] = &source->stream;
	source->memory = context->memory;
	source->line_max = options->line_max > 0 ? (size_t)options->line_max : context->line_max_bytes;
	if (source->line_max == 0)
		source->line_max = 64 << 10;
	pthread_mutex_init(&source->mutex, NULL);
	source->status = (struct source_status){.counts_records = true, .no_lag_time = true};
	snprintf(source->name, sizeof source->name, SOURCE_PUSH_PREFIX "%s", options->name);
	source->stream.name = source->name;
	if (context->once)
		return WEIR_OK;
	if (source->memory == NULL || source->memory->path == NULL)
		return weir_fail(error, WEIR_INVALID, "what is pushed needs a state directory for its spool");
	enum weir_status status = weir_directory_of(source->memory->path, state, error);
	if (status == WEIR_OK)
		status = weir_path_format(directory, error, "%s/spool-%s", state, options->name);
	if (status == WEIR_OK)
		status = push_spool_open(&(struct push_spool_options){.directory = directory,
		                                                      .last = find_last(source->memory, source->name, &last),
		                                                      .most_bytes = options->spool_bytes,
		                                                      .name = source->name,
		                                                      .log = context->log},
		                         &source->spool, error);
	if (status == WEIR_LOCKED)
		weir_error_prefix(error, "the spool of \"%s\" is in use, perhaps by another source of that name",
		                  options->name);
	if (status == WEIR_OK)
		status = claim(source, options->name, error);
	return status;
}

/* ---- what is configured no more ---- */

struct remembered {
	const char *name;
	const struct source_memory *memory;
};

static uint64_t low_water_of(void *context, const uint8_t *id)
{
	const struct remembered *remembered = context;
	char prefix[NAME_MOST_BYTES + 16];
	struct weir_text path = {0};
	struct push_spool_last last;
	snprintf(prefix, sizeof prefix, SOURCE_PUSH_PREFIX "%s", remembered->name);
	if (id == NULL) /* the spool takes that of the last one again */
		return find_last(remembered->memory, prefix, &last) != NULL ? last.position : 0;
	weir_text_puts(&path, prefix);
	put_path(&path, ":", id);
	const struct source_memory_stream *record = source_memory_find(remembered->memory, path.at);
	weir_text_deinit(&path);
	return record != NULL ? record->low_water : 0;
}

enum weir_status push_source_count_left(const char *directory, const char *name, const struct source_memory *memory,
                                        struct source_left *left, struct weir_error *error)
{
	struct remembered remembered = {name, memory};
	*left = (struct source_left){.end_ms = left->end_ms};
	return push_spool_count(directory, low_water_of, &remembered, left, error);
}

void push_source_deinit(struct push_source *source)
{
	push_spool_close(source->spool);
	if (source->record != NULL)
		source->record->claimed = false;
	pthread_mutex_destroy(&source->mutex);
}

static void state_problem(struct push_source *source, const char *words)
{
	pthread_mutex_lock(&source->mutex);
	source->status.errors += words[0] != '\0' && strcmp(words, source->status.problem) != 0;
	snprintf(source->status.problem, sizeof source->status.problem, "%.255s", words);
	pthread_mutex_unlock(&source->mutex);
}

enum weir_status push_source_collect(struct source *base, struct source_stream *asked, struct source_chunk *chunk,
                                     struct weir_error *error)
{
	(void)asked;
	(void)error;
	struct push_source *source = push_of(base);
	struct weir_error why;
	*chunk = (struct source_chunk){0};
	if (source->spool == NULL)
		return WEIR_END;
	enum weir_status status = push_spool_read(source->spool, source->line_max, chunk, &why);
	chunk->stream = &source->stream;
	if (status == WEIR_OK || status == WEIR_AGAIN) {
		if (source->status.problem[0] != '\0')
			state_problem(source, "");
		return status;
	}
	state_problem(source, why.text);
	return WEIR_AGAIN;
}

size_t push_source_streams(struct source *base, struct source_stream ***streams)
{
	*streams = push_of(base)->streams;
	return push_of(base)->spool != NULL ? 1 : 0;
}

int push_source_fd(const struct source *base)
{
	const struct push_source *source = (const struct push_source *)(const void *)base;
	return source->spool != NULL ? push_spool_fd(source->spool) : -1;
}

void push_source_acknowledge(struct source *base, struct source_stream *stream, uint64_t position)
{
	struct push_source *source = push_of(base);
	(void)stream;
	source_memory_acknowledge(source->memory, source->record, position);
	push_spool_acknowledge(source->spool, position);
	pthread_mutex_lock(&source->mutex);
	source->status.position = position;
	pthread_mutex_unlock(&source->mutex);
}

enum weir_status push_source_resume(struct source *base, struct source_stream *stream, uint64_t position,
                                    struct weir_error *error)
{
	struct push_source *source = push_of(base);
	if (position < source->record->low_water)
		return weir_fail(error, WEIR_INVALID, "%s: what was acknowledged is gone from the spool", stream->name);
	push_spool_resume(source->spool, position);
	return WEIR_OK;
}

void push_source_look_ahead(struct push_source *source, enum weir_status opened, const struct weir_http_tls *tls,
                            struct weir_error *error)
{
	struct weir_text doubts = {0};
	if (opened == WEIR_OK && tls->certificate != NULL)
		opened = weir_http_tls_check(tls, &doubts, error);
	if (opened != WEIR_OK)
		snprintf(source->unready, sizeof source->unready, "%.255s", error->text);
	else if (doubts.length > 0)
		snprintf(source->unready, sizeof source->unready, "%.*s", (int)doubts.length, doubts.at);
	weir_text_deinit(&doubts);
}

size_t push_source_status(struct source *base, struct source_status *statuses, size_t count)
{
	struct push_source *source = push_of(base);
	struct push_spool_status spool;
	if (source->spool == NULL && source->unready[0] == '\0')
		return 0;
	if (count == 0)
		return 1;
	if (source->spool == NULL) {
		statuses[0] = (struct source_status){.name = source->name, .whole = true};
		memcpy(statuses[0].problem, source->unready, sizeof source->unready);
		return 1;
	}
	push_spool_status(source->spool, &spool);
	pthread_mutex_lock(&source->mutex);
	statuses[0] = source->status;
	pthread_mutex_unlock(&source->mutex);
	statuses[0].name = source->stream.name;
	statuses[0].lines = atomic_load_explicit(&source->stream.lines, memory_order_relaxed);
	statuses[0].lag_records = spool.waiting_batches;
	statuses[0].guarantee = spool.nameless_batches > 0 ? SOURCE_AT_LEAST_ONCE : SOURCE_EXACTLY_ONCE;
	statuses[0].own[PUSH_SPOOL_BYTES] = spool.bytes;
	statuses[0].own[PUSH_KNOWN_BATCHES] = spool.again_batches;
	statuses[0].own[PUSH_PUSHED_BACK] = spool.full_refusals;
	statuses[0].own[PUSH_WAITING_MS] = (uint64_t)spool.waiting_ms;
	if (statuses[0].problem[0] == '\0' && spool.problem[0] != '\0') {
		memcpy(statuses[0].problem, spool.problem, sizeof statuses[0].problem);
		statuses[0].reads_on = true;
	}
	return 1;
}

/* ---- metrics ---- */

static const struct weir_metric spool_row = {
	"weir_source_spool_bytes", WEIR_GAUGE, "bytes", SOURCE_METRIC_LABELS,
	"Bytes on disk of what was pushed and may still be read. Near the source's `spool`, senders are told to wait."};

static bool spool_bytes(const struct source_status *status, double *value)
{
	*value = (double)status->own[PUSH_SPOOL_BYTES];
	return true;
}

const struct source_metric push_metric_spool = {.row = &spool_row, .sample = spool_bytes};

static const struct weir_metric known_row = {
	"weir_source_known_batches_total", WEIR_COUNTER, "batches", SOURCE_METRIC_LABELS,
	"Batches that came again under the same id within an hour: they were acknowledged, and not taken a second time."};

static bool known_batches(const struct source_status *status, double *value)
{
	*value = (double)status->own[PUSH_KNOWN_BATCHES];
	return true;
}

const struct source_metric push_metric_known = {.row = &known_row, .sample = known_batches};

static const struct weir_metric pushed_back_row = {
	"weir_source_pushed_back_total", WEIR_COUNTER, "batches", SOURCE_METRIC_LABELS,
	"Batches whose senders were told to wait and send again, as the spool or its disk was full."};

static bool pushed_back(const struct source_status *status, double *value)
{
	*value = (double)status->own[PUSH_PUSHED_BACK];
	return true;
}

const struct source_metric push_metric_pushed_back = {.row = &pushed_back_row, .sample = pushed_back};

static const struct weir_metric waiting_row = {
	"weir_source_senders_wait_seconds", WEIR_GAUGE, "seconds", SOURCE_METRIC_LABELS,
	"How long senders have been told to wait: since a batch was refused as the spool or its disk was full, for as long as "
	"another of its size would be, however rarely they ask. 0: what is sent is taken."};

static bool waiting(const struct source_status *status, double *value)
{
	*value = (double)status->own[PUSH_WAITING_MS] / 1000.0;
	return true;
}

const struct source_metric push_metric_waiting = {.row = &waiting_row, .sample = waiting, .largest = true};

static const struct weir_metric refused_row = {
	"weir_source_push_refused_total", WEIR_COUNTER, "requests", SOURCE_METRIC_LABELS,
	"Pushed requests that were refused for good: a wrong token or key, an unreadable or too large body or message, "
	"connections without the certificate that `client_ca` asks for, and bodies that hardly come while connections run out. "
	"The answers say which; of forward, certificates and such bodies, the log."};

static bool refused(const struct source_status *status, double *value)
{
	*value = (double)status->own[PUSH_REFUSED];
	return true;
}

const struct source_metric push_metric_refused = {.row = &refused_row, .sample = refused};

const struct source_metric *const push_source_metrics[] = {
	&source_metric_lag_records, &source_metric_lines,     &source_metric_errors, &source_metric_problem,
	&source_metric_replayable,  &source_metric_guarantee, &push_metric_spool,    &push_metric_known,
	&push_metric_pushed_back,   &push_metric_waiting,     &push_metric_refused,  NULL,
};

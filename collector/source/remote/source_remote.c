/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source's side: gives steps their positions, saves them, and hands out their lines.
 *
 * A step is saved before its first line is handed out. What was saved and is not acknowledged is read again at a start,
 * under the same positions, before anything new is.
 */
#include "collector/source/remote/remote_fetch.h"

#include "collector/input/input_lines.h"
#include "collector/source/source_memory.h"
#include "collector/source/source_metrics.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 256 << 10, SAVE_RETRY_MS = 1000, WAIT_MS = 100 };

/* A source that is configured no more keeps its positions for so long. */
static const int64_t forget_after_ns = INT64_C(7) * 86400 * 1000000000;

struct remote_source {
	struct source source;
	const struct remote_ops *ops;
	void *kind;
	source_tell *tell; /* or NULL */
	void *tell_context;
	char place[WEIR_JSON_PATH_BYTES]; /* in the configuration */
	_Atomic bool *kind_stop;
	struct remote_fetch_options options;
	char *directory;
	bool keeps; /* pieces, to read them again after a crash */
	struct source_memory *memory;
	bool memory_owned;
	struct source_memory_stream *record;
	struct source_stream stream, *streams[1];
	struct remote_fetch *fetch;
	bool started, ended;
	/* what is not acknowledged, and where the next piece begins */
	struct remote_piece *pieces;
	size_t count, room, name_bytes;
	uint64_t end;
	uint64_t resumed; /* what is before is not read again */
	/* the step whose lines are handed out */
	struct remote_step *step;
	bool adopted;
	bool waits; /* it cannot be saved just now */
	int64_t save_ms;
	size_t next; /* the piece */
	struct input_lines *lines;
	uint64_t last_id; /* of the object that the newest chunk is of */
	/* guarded by mutex */
	pthread_mutex_t mutex;
	uint64_t position, unhanded;
	int64_t caught_up_ms;
	char problem[256]; /* of saving */
};

static struct remote_source *remote_of(struct source *source)
{
	return (struct remote_source *)(void *)source;
}

/* ---- pieces ---- */

static void drop_acknowledged(struct remote_source *source)
{
	size_t done = 0;
	while (done < source->count &&
	       source->pieces[done].position + remote_piece_length(&source->pieces[done]) <= source->record->low_water) {
		source->name_bytes -= strlen(source->pieces[done].name);
		free(source->pieces[done++].name);
	}
	if (done == 0)
		return;
	source->count -= done;
	memmove(source->pieces, source->pieces + done, source->count * sizeof *source->pieces);
}

static void keep_piece(struct remote_source *source, const struct remote_piece *piece)
{
	if (source->count == source->room) {
		source->room = source->room == 0 ? 64 : 2 * source->room;
		source->pieces = weir_realloc(source->pieces, source->room, sizeof *source->pieces);
	}
	struct remote_piece *kept = &source->pieces[source->count++];
	*kept = *piece;
	kept->name = weir_copy(piece->name, strlen(piece->name));
	kept->before = NULL;
	source->name_bytes += strlen(piece->name);
}

/* Whether the step's pieces would be more than are kept. */
static bool are_too_many(const struct remote_source *source, const struct remote_step *step)
{
	return source->keeps && (source->count + step->count > REMOTE_PIECES_MOST ||
	                         source->name_bytes + step->name_bytes > REMOTE_PIECES_NAMES_BYTES);
}

/* The pieces after a position, to be read again. */
static struct remote_piece *unread_pieces(const struct remote_source *source, size_t *count)
{
	struct remote_piece *unread = weir_alloc(source->count + 1, sizeof *unread);
	*count = 0;
	for (size_t i = 0; i < source->count; i++) {
		struct remote_piece piece = source->pieces[i];
		if (piece.position + remote_piece_length(&piece) <= source->resumed)
			continue;
		if (piece.position < source->resumed) {
			piece.from += source->resumed - piece.position;
			piece.position = source->resumed;
		}
		piece.name = weir_copy(piece.name, strlen(piece.name));
		unread[(*count)++] = piece;
	}
	return unread;
}

static void note(struct remote_source *source, struct weir_span table)
{
	source->record->forgotten_ns = weir_wall_ms() * 1000000; /* when it was last seen */
	struct weir_text text = {0};
	remote_notes_put(&text, table, source->pieces, source->count, source->end);
	source_memory_note(source->memory, source->record, &text);
	uint64_t next = (source->end >> SOURCE_OFFSET_BITS) + 1; /* a stream of this name, made anew, begins after it */
	if (next <= SOURCE_INCARNATION_MAX && source->record->next_incarnation < next)
		source->record->next_incarnation = (uint32_t)next;
}

/* ---- steps ---- */

static void set_problem(struct remote_source *source, const char *words)
{
	pthread_mutex_lock(&source->mutex);
	snprintf(source->problem, sizeof source->problem, "%.*s", (int)sizeof source->problem - 1, words);
	pthread_mutex_unlock(&source->mutex);
}

static void number_pieces(struct remote_source *source, struct remote_step *step)
{
	for (size_t i = 0; i < step->count; i++) {
		uint64_t length = remote_piece_length(&step->pieces[i]);
		uint64_t incarnation = (source->end + length - 1) >> SOURCE_OFFSET_BITS;
		if (length > 0 && source->end >> SOURCE_OFFSET_BITS != incarnation)
			source->end = incarnation << SOURCE_OFFSET_BITS; /* a piece with two of them would be of two logs */
		step->pieces[i].position = source->end;
		source->end += length;
		if (source->keeps)
			keep_piece(source, &step->pieces[i]);
	}
	note(source, weir_text_span(&step->table));
}

/* Gives the step's pieces their positions, and saves them. @return WEIR_AGAIN: that cannot be done just now */
static enum weir_status adopt(struct remote_source *source, struct remote_step *step, struct weir_error *error)
{
	int64_t now_ms = weir_monotonic_ms();
	if (!step->replay && !source->adopted) {
		drop_acknowledged(source);
		if (are_too_many(source, step))
			return WEIR_AGAIN; /* until some are acknowledged */
		number_pieces(source, step);
	}
	source->adopted = true;
	if (now_ms < source->save_ms)
		return WEIR_AGAIN;
	enum weir_status status = step->replay ? WEIR_OK : source_memory_save(source->memory, error);
	if (status != WEIR_OK && source->options.once)
		return status;
	if (status != WEIR_OK) {
		source->save_ms = now_ms + SAVE_RETRY_MS;
		set_problem(source, error->text);
		return WEIR_AGAIN;
	}
	set_problem(source, "");
	return WEIR_OK;
}

static void count_unhanded(struct remote_source *source, const struct remote_step *step)
{
	pthread_mutex_lock(&source->mutex);
	source->unhanded = step != NULL ? step->bytes : 0;
	pthread_mutex_unlock(&source->mutex);
}

static void end_step(struct remote_source *source)
{
	input_lines_free(source->lines);
	source->lines = NULL;
	remote_step_free(source->step);
	source->step = NULL;
	count_unhanded(source, NULL);
}

/* WEIR_OK: there is a step with lines. */
static enum weir_status next_step(struct remote_source *source, struct weir_error *error)
{
	char words[256];
	if (source->step == NULL) {
		source->step = remote_fetch_take(source->fetch);
		source->adopted = false;
		source->next = 0;
		count_unhanded(source, source->step);
	}
	while (source->tell != NULL && remote_fetch_notice(source->fetch, words)) /* those that led to the step, too */
		source->tell(source->tell_context, source->place, words);
	struct remote_step *step = source->step;
	if (step == NULL)
		return WEIR_AGAIN;
	enum weir_status status = adopt(source, step, error);
	if (status != WEIR_OK)
		return status;
	if (step->last) {
		source->ended = true;
		status = step->status != WEIR_OK ? weir_fail(error, step->status, "%s", step->error.text) : WEIR_END;
		end_step(source);
		return status;
	}
	if (step->fd < 0) {
		end_step(source);
		return WEIR_AGAIN;
	}
	if (lseek(step->fd, 0, SEEK_SET) != 0)
		return weir_fail(error, WEIR_IO, "cannot read a temporary file");
	source->lines = input_lines_new(input_new_plain(step->fd), (size_t)source->options.line_max, READ_BYTES);
	step->fd = -1;
	return WEIR_OK;
}

/* ---- lines ---- */

static void hand_out(struct remote_source *source, const struct remote_piece *piece, struct source_chunk *chunk)
{
	struct input_lines_chunk lines;
	input_lines_take(source->lines, &lines);
	*chunk = (struct source_chunk){.stream = &source->stream,
	                               .data = lines.data,
	                               .length = lines.length,
	                               .behind = lines.behind,
	                               .more = lines.more,
	                               .position = piece->position + (lines.offset - piece->at),
	                               .last_open = lines.open,
	                               .too_long = lines.too_long,
	                               .skipped = lines.skipped,
	                               .tail = lines.tail,
	                               .begins = source->last_id != piece->id};
	uint64_t end = chunk->position + chunk->length + chunk->skipped;
	if (piece->before != NULL)
		chunk->before = weir_span_of(piece->before);
	source->last_id = piece->id;
	pthread_mutex_lock(&source->mutex);
	source->position = end;
	source->unhanded -=
		chunk->length + chunk->skipped < source->unhanded ? chunk->length + chunk->skipped : source->unhanded;
	pthread_mutex_unlock(&source->mutex);
}

/* WEIR_OK: the chunk has lines; WEIR_END: the step has no more */
static enum weir_status read_step(struct remote_source *source, struct source_chunk *chunk, struct weir_error *error)
{
	struct remote_step *step = source->step;
	for (; source->next < step->count; source->next++) {
		const struct remote_piece *piece = &step->pieces[source->next];
		uint64_t end = piece->at + remote_piece_length(piece);
		enum weir_status status = WEIR_OK;
		if (input_lines_offset(source->lines) < piece->at)
			status = input_lines_seek(source->lines, piece->at, error);
		while (status == WEIR_OK || status == WEIR_AGAIN) {
			status = input_lines_fill(source->lines, end, true, error);
			if (status != WEIR_OK)
				continue;
			hand_out(source, piece, chunk);
			return WEIR_OK;
		}
		if (status != WEIR_END)
			return status;
	}
	return WEIR_END;
}

/* A run to the end has nothing else to do: it would ask again at once. */
static void wait_for_step(const struct remote_source *source)
{
	struct pollfd event = {.fd = remote_fd(&source->source), .events = POLLIN};
	(void)poll(&event, 1, WAIT_MS);
}

/* Once all sources have claimed what is theirs. */
static void forget_others(struct source_memory *memory)
{
	int64_t now_ns = weir_wall_ms() * 1000000;
	for (size_t i = memory->stream_count; i-- > 0;) {
		const struct source_memory_stream *record = memory->streams[i];
		if (strncmp(record->path, SOURCE_REMOTE_PREFIX, sizeof SOURCE_REMOTE_PREFIX - 1) == 0 && !record->claimed &&
		    now_ns - record->forgotten_ns > forget_after_ns)
			source_memory_remove(memory, i);
	}
}

static enum weir_status start(struct remote_source *source, struct weir_error *error)
{
	forget_others(source->memory);
	source->started = true;
	return remote_fetch_start(source->fetch, error);
}

static enum weir_status collect(struct remote_source *source, struct source_chunk *chunk, struct weir_error *error)
{
	enum weir_status status = source->started ? WEIR_OK : start(source, error);
	while (status == WEIR_OK) {
		if (source->lines == NULL)
			status = next_step(source, error);
		source->waits = status == WEIR_AGAIN && source->step != NULL;
		if (status == WEIR_AGAIN && source->options.once)
			wait_for_step(source);
		if (status != WEIR_OK)
			break;
		status = read_step(source, chunk, error);
		if (status == WEIR_OK)
			return WEIR_OK;
		if (status != WEIR_END)
			break;
		end_step(source);
		status = WEIR_OK;
	}
	return status;
}

enum weir_status remote_collect(struct source *base, struct source_stream *stream, struct source_chunk *chunk,
                                struct weir_error *error)
{
	struct remote_source *source = remote_of(base);
	(void)stream;
	*chunk = (struct source_chunk){.stream = &source->stream};
	if (source->ended)
		return WEIR_END;
	return collect(source, chunk, error);
}

/* ---- the interface ---- */

size_t remote_streams(struct source *base, struct source_stream ***streams)
{
	*streams = remote_of(base)->streams;
	return 1;
}

int remote_fd(const struct source *base)
{
	const struct remote_source *source = (const struct remote_source *)(const void *)base;
	/* While a step waits, that the next one is there is no reason to ask. */
	return source->started && !source->waits ? remote_fetch_fd(source->fetch) : -1;
}

void remote_acknowledge(struct source *base, struct source_stream *stream, uint64_t position)
{
	struct remote_source *source = remote_of(base);
	(void)stream;
	source_memory_acknowledge(source->memory, source->record, position);
}

static void prepare(struct remote_source *source, struct remote_table *table)
{
	size_t count;
	struct remote_piece *replays = unread_pieces(source, &count);
	source->position = source->resumed;
	source->fetch = remote_fetch_new(&source->options, table, replays, count);
}

enum weir_status remote_resume(struct source *base, struct source_stream *stream, uint64_t position,
                               struct weir_error *error)
{
	struct remote_source *source = remote_of(base);
	(void)stream;
	uint64_t least = source->count > 0 ? source->pieces[0].position : source->end;
	if (position == 0)
		position = least;
	if (position < least || position > source->end)
		return weir_fail(error, WEIR_INVALID, "%s: there is no such position", source->stream.name);
	source->resumed = position;
	size_t count;
	struct remote_piece *replays = unread_pieces(source, &count);
	remote_fetch_replay(source->fetch, replays, count);
	source->position = position;
	return WEIR_OK;
}

size_t remote_status(struct source *base, struct source_status *statuses, size_t count)
{
	struct remote_source *source = remote_of(base);
	struct remote_fetch_state state;
	int64_t now_ms = weir_monotonic_ms();
	if (count == 0)
		return 1;
	remote_fetch_state(source->fetch, &state);
	pthread_mutex_lock(&source->mutex);
	struct source_status *status = &statuses[0];
	*status =
		(struct source_status){.name = source->stream.name,
	                           .position = source->position,
	                           .lag_bytes = state.behind_bytes + source->unhanded,
	                           .lines = atomic_load_explicit(&source->stream.lines, memory_order_relaxed),
	                           .errors = state.errors,
	                           .lost_bytes = state.lost_bytes,
	                           .unknown_losses = state.unknown_losses,
	                           .own = {[REMOTE_OWN_WAITING] = state.waiting, [REMOTE_OWN_REPLACED] = state.replaced}};
	if (status->lag_bytes == 0)
		source->caught_up_ms = now_ms;
	status->lag_ms = now_ms - source->caught_up_ms;
	bool saving = source->problem[0] != '\0';
	snprintf(status->problem, sizeof status->problem, "%s", saving ? source->problem : state.problem);
	status->reads_on = !saving && state.reads_on;
	status->well = state.reads;
	pthread_mutex_unlock(&source->mutex);
	return 1;
}

void remote_free(struct source *base)
{
	struct remote_source *source = remote_of(base);
	if (source->kind_stop != NULL)
		atomic_store(source->kind_stop, true);
	end_step(source);
	remote_fetch_free(source->fetch);
	source->ops->free(source->kind);
	remote_pieces_free(source->pieces, source->count);
	if (source->record != NULL) {
		source->record->claimed = false;
		source->record->forgotten_ns = weir_wall_ms() * 1000000;
		source_memory_changed(source->memory);
	}
	if (source->memory_owned)
		source_memory_free(source->memory);
	pthread_mutex_destroy(&source->mutex);
	free(source->directory);
	free(source->stream.name);
	free(source);
}

/* Beside what is saved; else where temporary files are. Returned. */
static char *directory_of(const struct source_memory *memory)
{
	const char *slash = memory->path != NULL ? strrchr(memory->path, '/') : NULL, *usual = getenv("TMPDIR");
	if (slash != NULL)
		return weir_copy(memory->path, slash > memory->path ? (size_t)(slash - memory->path) : 1);
	if (usual == NULL || usual[0] == '\0')
		usual = "/tmp";
	return weir_copy(usual, strlen(usual));
}

/* Whether the format may name its fields in an object's first lines. */
static bool needs_heads(const struct weir_json *config)
{
	struct weir_json format = weir_json_member(config, "format");
	struct weir_json type = json_is_object(format.value) ? weir_json_member(&format, "type") : format;
	const char *name = json_string_value(type.value);
	return name != NULL && (strcmp(name, "delimited") == 0 || strcmp(name, "w3c") == 0);
}

/* Finds what is remembered of the source. */
static enum weir_status recall(struct remote_source *source, const struct weir_json *config, const char *name,
                               struct remote_table *table, struct weir_error *error)
{
	struct weir_text path = {0};
	weir_text_printf(&path, SOURCE_REMOTE_PREFIX "%s:%s", source->source.ops->type, name);
	weir_text_append(&path, "", 1);
	struct source_memory_stream *record = source_memory_find(source->memory, path.at);
	if (record == NULL)
		record = source_memory_add(source->memory, path.at);
	enum weir_status status = WEIR_OK;
	if (record == NULL)
		status = weir_json_fail(config, error, "is one source too many: positions of %d streams are kept",
		                        SOURCE_MEMORY_STREAMS_MAX);
	else if (record->claimed)
		status = weir_json_fail(config, error, "reads the same as another source: give each its own \"name\"");
	source->stream.name = path.at;
	source_memory_stream_id(source->memory, path.at, source->stream.id);
	if (status != WEIR_OK)
		return status;
	source->record = record;
	record->claimed = true;
	record->forgotten_ns = weir_wall_ms() * 1000000;
	source_memory_changed(source->memory);
	source->end = (uint64_t)record->next_incarnation << SOURCE_OFFSET_BITS;
	if (record->notes != NULL)
		status = remote_notes_get(record->notes, record->notes_length, table, &source->pieces, &source->count,
		                          &source->end, error);
	source->room = source->count;
	for (size_t i = 0; i < source->count; i++)
		source->name_bytes += strlen(source->pieces[i].name);
	source->resumed = record->low_water;
	return status;
}

enum weir_status remote_source_new(const struct source_ops *ops_of_kind, const struct remote_ops *ops, void *kind,
                                   const struct remote_settings *settings, const char *label, _Atomic bool *stop,
                                   const struct weir_json *config, const struct source_context *context,
                                   struct source **made, struct weir_error *error)
{
	static const uint8_t no_id[SOURCE_ID_BYTES];
	struct remote_source *source = weir_alloc(1, sizeof *source);
	struct remote_table table = {.settled_ms = INT64_MIN}; /* nothing is */
	source->source.ops = ops_of_kind;
	source->ops = ops;
	source->kind = kind;
	source->tell = context->tell;
	source->tell_context = context->tell_context;
	memcpy(source->place, config->path, sizeof source->place);
	source->kind_stop = stop;
	source->streams[0] = &source->stream;
	source->caught_up_ms = weir_monotonic_ms();
	pthread_mutex_init(&source->mutex, NULL);
	source->memory_owned = context->memory == NULL;
	source->memory = context->memory;
	if (source->memory_owned)
		source->memory = source_memory_new(context->collector_id != NULL ? context->collector_id : no_id);
	source->keeps = !context->forgets;
	source->directory = directory_of(source->memory);
	bool once = context->once || !settings->follow;
	source->options = (struct remote_fetch_options){
		.ops = ops,
		.kind = kind,
		.once = once,
		.from_end = !once && settings->start == SOURCE_FROM_END,
		.poll_ms = settings->poll_ms,
		.late_ms = settings->late_ms,
		.line_max = (uint64_t)settings->line_max,
		.headed = needs_heads(config),
		.directory = source->directory,
	};
	enum weir_status status = recall(source, config, settings->name != NULL ? settings->name : label, &table, error);
	prepare(source, &table);
	if (status != WEIR_OK) {
		remote_free(&source->source);
		return status;
	}
	*made = &source->source;
	return WEIR_OK;
}

static const struct weir_metric replaced_row = {
	"weir_source_replaced_total", WEIR_COUNTER, "objects", SOURCE_METRIC_LABELS,
	"Objects of a bucket that were written again under their key, so that all their lines were read again. Let what "
	"writes them give each its own key."};

static bool replaced(const struct source_status *status, double *value)
{
	*value = (double)status->own[REMOTE_OWN_REPLACED];
	return true;
}

static const struct source_metric replaced_metric = {&replaced_row, replaced, false, false, NULL};

const struct source_metric *const remote_metrics[] = {
	&source_metric_offset,     &source_metric_lag_seconds, &source_metric_lag_bytes,      &source_metric_lines,
	&source_metric_errors,     &source_metric_lost_bytes,  &source_metric_unknown_losses, &source_metric_problem,
	&source_metric_replayable, &replaced_metric,           &source_metric_guarantee,      NULL,
};

/*
 * Standard input: one stream that cannot be read again.
 *
 * The descriptor stays as it is, blocking or not: others may share it, a
 * terminal does. It is polled before each read instead.
 */
#include "collector/source/file/source_stdin.h"

#include "collector/input/input_lines.h"
#include "collector/source/source_memory.h"
#include "common/base/alloc.h"
#include "common/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 64 << 10, READ_BYTES = 256 << 10, BEFORE_BYTES = 64 << 10, WAIT_MS = 100 };

static const uint64_t no_limit = UINT64_MAX / 2; /* of bytes that are read */

struct stdin_source {
	struct source source;
	struct source_stream stream;
	struct source_stream *streams[1];
	bool once;
	struct input_lines *lines; /* NULL once it has ended */
	/* A position's offset has its bound: past half of it goes another incarnation, as if of another file. */
	uint32_t incarnation;
	uint64_t first;          /* the incarnation's first byte */
	uint64_t bound;          /* its bytes, about */
	struct weir_text before; /* the first lines, in which a format's header is */
	pthread_mutex_t mutex;
	struct source_status status; /* guarded by the mutex */
};

static struct stdin_source *stdin_of(struct source *source)
{
	return (struct stdin_source *)(void *)source;
}

static void end(struct stdin_source *source)
{
	input_lines_free(source->lines);
	source->lines = NULL;
}

static void state(struct stdin_source *source, const char *problem, uint64_t position)
{
	pthread_mutex_lock(&source->mutex);
	if (problem != NULL) {
		snprintf(source->status.problem, sizeof source->status.problem, "%.255s", problem);
		source->status.errors++;
	} else {
		source->status.position = position;
	}
	pthread_mutex_unlock(&source->mutex);
}

/* The first lines are kept until they are enough for a header. */
static void keep_before(struct stdin_source *source, const struct input_lines_chunk *lines)
{
	if (source->before.length >= BEFORE_BYTES || lines->too_long || lines->open)
		return;
	weir_text_append(&source->before, lines->data, lines->length);
}

static void hand_out(struct stdin_source *source, struct source_chunk *chunk)
{
	struct input_lines_chunk lines;
	input_lines_take(source->lines, &lines);
	bool begins = lines.offset - source->first > source->bound;
	if (begins) {
		source->incarnation++;
		source->first = lines.offset;
	}
	*chunk = (struct source_chunk){
		.stream = &source->stream,
		.data = lines.data,
		.length = lines.length,
		.position = source_position(source->incarnation, lines.offset - source->first),
		.last_open = lines.open,
		.too_long = lines.too_long,
		.skipped = lines.skipped,
	};
	if (begins)
		chunk->before = (struct weir_span){.at = source->before.at, .length = (uint32_t)source->before.length};
	else
		keep_before(source, &lines);
	state(source, NULL, chunk->position + chunk->length + chunk->skipped);
}

static enum weir_status stdin_collect(struct source *base, struct source_stream *asked, struct source_chunk *chunk,
                                      struct weir_error *error)
{
	(void)asked;
	struct stdin_source *source = stdin_of(base);
	*chunk = (struct source_chunk){.stream = &source->stream};
	if (source->lines == NULL)
		return WEIR_END;
	enum weir_status status = input_lines_fill(source->lines, no_limit, true, error);
	if (status == WEIR_AGAIN && source->once) {
		struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
		if (poll(&ready, 1, WAIT_MS) > 0)
			status = input_lines_fill(source->lines, no_limit, true, error);
	}
	switch (status) {
	case WEIR_OK: hand_out(source, chunk); return WEIR_OK;
	case WEIR_AGAIN: return WEIR_AGAIN;
	case WEIR_END: end(source); return WEIR_END;
	default: break;
	}
	weir_error_prefix(error, "standard input");
	state(source, error->text, 0);
	end(source);
	return WEIR_IO;
}

static size_t stdin_streams(struct source *base, struct source_stream ***streams)
{
	*streams = stdin_of(base)->streams;
	return 1;
}

static int stdin_fd(const struct source *base)
{
	/* at its end it is readable for ever: who waits for it would not wait */
	return ((const struct stdin_source *)(const void *)base)->lines != NULL ? STDIN_FILENO : -1;
}

static void stdin_acknowledge(struct source *base, struct source_stream *stream, uint64_t position)
{
	(void)base, (void)stream, (void)position;
}

static enum weir_status stdin_resume(struct source *base, struct source_stream *stream, uint64_t position,
                                     struct weir_error *error)
{
	(void)base, (void)stream;
	return position == 0 ? WEIR_OK : weir_fail(error, WEIR_INVALID, "standard input cannot be read again");
}

static size_t stdin_status(struct source *base, struct source_status *statuses, size_t count)
{
	struct stdin_source *source = stdin_of(base);
	if (count == 0)
		return 1;
	pthread_mutex_lock(&source->mutex);
	statuses[0] = source->status;
	pthread_mutex_unlock(&source->mutex);
	statuses[0].lines = atomic_load_explicit(&source->stream.lines, memory_order_relaxed);
	return 1;
}

static void stdin_free(struct source *base)
{
	struct stdin_source *source = stdin_of(base);
	end(source);
	weir_text_deinit(&source->before);
	pthread_mutex_destroy(&source->mutex);
	free(source->stream.name);
	free(source);
}

static const struct source_ops stdin_ops = {
	.type = "stdin",
	.collect = stdin_collect,
	.streams = stdin_streams,
	.fd = stdin_fd,
	.acknowledge = stdin_acknowledge,
	.resume = stdin_resume,
	.status = stdin_status,
	.free = stdin_free,
};

static enum weir_status read_config(const struct weir_json *config, int64_t *line_max, struct weir_error *error)
{
	static const char *const names[] = {"type", "name", "path", "format", "follow", "line_max", NULL};
	struct weir_json at = weir_json_member(config, "path"), limit = weir_json_member(config, "line_max");
	struct weir_json follow = weir_json_member(config, "follow");
	const char *path = "-";
	bool ignored; /* it is read to its end, whenever that comes */
	enum weir_status status = weir_json_only(config, names, error);
	if (status == WEIR_OK)
		status = weir_json_string(&at, &path, error);
	if (status == WEIR_OK && strcmp(path, "-") != 0)
		status = weir_json_fail(&at, error, "is \"%s\"; standard input is \"-\"", path);
	if (status == WEIR_OK)
		status = weir_json_bool(&follow, &ignored, error);
	if (status == WEIR_OK)
		status = weir_json_size(&limit, SOURCE_LINE_LEAST_BYTES, SOURCE_LINE_MOST_BYTES, line_max, error);
	return status;
}

void source_stdin_set_bound(struct source *source, uint64_t bytes)
{
	stdin_of(source)->bound = bytes;
}

enum weir_status source_stdin_new(const struct weir_json *config, const struct source_context *context,
                                  struct source **made, struct weir_error *error)
{
	int64_t line_max = context->line_max_bytes > 0 ? context->line_max_bytes : LINE_MAX_BYTES;
	enum weir_status status = read_config(config, &line_max, error);
	if (status != WEIR_OK)
		return status;
	int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return weir_fail(error, WEIR_IO, "standard input cannot be read: %s", strerror(errno));
	struct stdin_source *source = weir_alloc(1, sizeof *source);
	source->source.ops = &stdin_ops;
	source->once = context->once;
	source->incarnation = 1;
	source->bound = SOURCE_OFFSET_END / 2;
	source->lines = input_lines_new(input_new(fd, false), (size_t)line_max, READ_BYTES);
	source->stream.name = weir_copy("-", 1);
	source->streams[0] = &source->stream;
	if (getrandom(source->stream.id, SOURCE_ID_BYTES, 0) != SOURCE_ID_BYTES)
		abort(); /* 16 bytes of /dev/urandom are always there */
	pthread_mutex_init(&source->mutex, NULL);
	source->status = (struct source_status){.name = source->stream.name, .kind = "stdin"};
	*made = &source->source;
	return WEIR_OK;
}

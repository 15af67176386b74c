/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard input: one stream that cannot be read again.
 *
 * The descriptor stays as it is, blocking or not: others may share it, a
 * terminal does. It is polled before each read instead.
 */
#include "collector/source/file/source_stdin.h"

#include "collector/input/input_lines.h"
#include "collector/source/source_metrics.h"
#include "collector/source/source_unreplayable.h"
#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/json/json_shape.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 64 << 10, READ_BYTES = 256 << 10, BEFORE_BYTES = 64 << 10, WAIT_MS = 100 };

static const uint64_t no_limit = UINT64_MAX / 2; /* of bytes that are read */

struct stdin_source {
	struct source_unreplayable base; /* first */
	bool once;
	struct input_lines *lines; /* NULL once it has ended */
	struct weir_text before;   /* the first lines, in which a format's header is */
	source_tell *tell;         /* NULL: nobody listens */
	void *tell_context;
	char place[64]; /* of the source in the configuration */
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

static void report_problem(struct stdin_source *source, const char *problem)
{
	struct source_status *status = &source->base.status;
	pthread_mutex_lock(&source->base.mutex);
	snprintf(status->problem, sizeof status->problem, "%.255s", problem);
	status->errors++;
	pthread_mutex_unlock(&source->base.mutex);
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
	if (source->tell != NULL && input_lines_returns(source->lines))
		source->tell(source->tell_context, source->place,
		             "standard input: its lines end in carriage returns alone and are read as one line: convert it "
		             "first: tr '\\r' '\\n'");
	input_lines_take(source->lines, &lines);
	*chunk = (struct source_chunk){
		.data = lines.data,
		.length = lines.length,
		.behind = lines.behind,
		.more = lines.more,
		.last_open = lines.open,
		.too_long = lines.too_long,
		.skipped = lines.skipped,
		.tail = lines.tail,
		.written_ms = weir_wall_ms(),
	};
	if (source_unreplayable_place(&source->base, chunk))
		chunk->before = (struct weir_span){.at = source->before.at, .length = (uint32_t)source->before.length};
	else
		keep_before(source, &lines);
}

static enum weir_status stdin_collect(struct source *base, struct source_stream *asked, struct source_chunk *chunk,
                                      struct weir_error *error)
{
	(void)asked;
	struct stdin_source *source = stdin_of(base);
	*chunk = (struct source_chunk){.stream = &source->base.stream};
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
	report_problem(source, error->text);
	end(source);
	return WEIR_IO;
}

static int stdin_fd(const struct source *base)
{
	/* at its end it is readable for ever: who waits for it would not wait */
	return ((const struct stdin_source *)(const void *)base)->lines != NULL ? STDIN_FILENO : -1;
}

static void stdin_free(struct source *base)
{
	struct stdin_source *source = stdin_of(base);
	end(source);
	weir_text_deinit(&source->before);
	source_unreplayable_deinit(&source->base);
	free(source);
}

void source_stdin_set_bound(struct source *source, uint64_t bytes)
{
	stdin_of(source)->base.bound = bytes;
}

/* What a configuration says. */
struct stdin_config {
	const char *path;
	const char *name; /* read where zones choose their sources */
	bool follow;      /* makes no difference: it is read to its end, whenever that comes */
	int64_t line_max;
};

#define AT(member) offsetof(struct stdin_config, member)

static json_t *path_shape(void)
{
	static const char *const paths[] = {"-", NULL};
	return weir_shape_words(paths);
}

static const struct weir_json_rule members[] = {
	{.name = "type", .meaning = "the kind of source"},
	{.name = "name",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(name),
     .meaning = "a label, by which zones name it in \"sources\""},
	{.name = "path", .kind = WEIR_JSON_TEXT, .offset = AT(path), .meaning = "always \"-\"", .shape = path_shape},
	SOURCE_FORMAT_RULE,
	{.name = "follow", .kind = WEIR_JSON_FLAG, .offset = AT(follow), .meaning = "has no effect"},
	SOURCE_LINE_MAX_RULE(AT(line_max)),
	{.name = NULL},
};

static enum weir_status stdin_new(const struct weir_json *config, const struct source_context *context,
                                  struct source **made, struct weir_error *error)
{
	struct stdin_config parsed = {.path = "-",
	                              .line_max = context->line_max_bytes > 0 ? context->line_max_bytes : LINE_MAX_BYTES};
	enum weir_status status = weir_json_read(config, members, &parsed, error);
	if (status != WEIR_OK)
		return status;
	if (strcmp(parsed.path, "-") != 0) {
		struct weir_json at = weir_json_member(config, "path");
		return weir_json_fail(&at, error, "is \"%s\"; use \"-\" for standard input", parsed.path);
	}
	int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return weir_fail(error, WEIR_IO, "cannot read standard input: %s", weir_errno_words(errno));
	struct stdin_source *source = weir_alloc(1, sizeof *source);
	source_unreplayable_init(&source->base, &source_stdin_ops, "-", "standard input");
	source->once = context->once;
	source->tell = context->tell;
	source->tell_context = context->tell_context;
	snprintf(source->place, sizeof source->place, "%.63s", config->path[0] != '\0' ? config->path : "the source");
	source->lines = input_lines_new(input_new(fd, false), (size_t)parsed.line_max, READ_BYTES);
	*made = &source->base.source;
	return WEIR_OK;
}

/* There is one standard input: two sources would take lines from each other. */
static enum weir_status stdin_apart(const struct weir_json *config, const struct weir_json *other,
                                    struct weir_error *error)
{
	return weir_json_fail(config, error, "is a second source of standard input, after %s: keep one of them",
	                      other->path);
}

static void stdin_describe(const struct weir_json *config, struct weir_text *place, struct weir_text *manner)
{
	(void)config;
	weir_text_puts(place, "-");
	weir_text_puts(manner, "read to its end");
}

static const struct source_metric *const metrics[] = {
	&source_metric_position,
	&source_metric_incarnation,
	&source_metric_lag_seconds,
	&source_metric_lag_bytes,
	&source_metric_lines,
	&source_metric_errors,
	&source_metric_lost_bytes,
	&source_metric_problem,
	&source_metric_unreplayable,
	&source_metric_guarantee,
	NULL,
};

const struct source_ops source_stdin_ops = {
	.type = "stdin",
	.members = members,
	.guarantee = SOURCE_AT_MOST_ONCE,
	.metrics = metrics,
	.create = stdin_new,
	.apart = stdin_apart,
	.describe = stdin_describe,
	.collect = stdin_collect,
	.streams = source_unreplayable_streams,
	.fd = stdin_fd,
	.acknowledge = source_unreplayable_acknowledge,
	.resume = source_unreplayable_resume,
	.status = source_unreplayable_status,
	.free = stdin_free,
};

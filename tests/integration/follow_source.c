/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows files as a collector does, and writes down every line with its
 * position: follow_source STATE OUT PATTERN...
 *
 * For tests of the source alone: what it hands out is appended to OUT (source,
 * position behind the line, line), acknowledged a little later than written, as
 * a bus does it, and saved every 50 ms. SIGTERM ends it in order, with the
 * streams' status as JSON on standard output; kill -9 does not, and a reader of
 * OUT drops what comes twice by its position, as a limiter does.
 */
#include "collector/source/kinds/source_kinds.h"
#include "collector/source/source.h"
#include "collector/source/source_memory.h"
#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/files/durable_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STREAMS_MAX = 64, SAVE_PERIOD_MS = 50, STATUSES_MAX = 64 };

struct mark {
	struct source_stream *stream;
	uint64_t read, written;
};

struct follower {
	struct source *source;
	struct source_memory *memory;
	struct weir_text out; /* not written yet */
	int fd;
	struct mark marks[STREAMS_MAX];
	size_t mark_count;
	int64_t save_ms;
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static void must(enum weir_status status, const struct weir_error *error)
{
	if (status == WEIR_OK)
		return;
	fprintf(stderr, "follow_source: %s\n", error->text);
	exit(1);
}

static struct mark *mark_of(struct follower *follower, struct source_stream *stream)
{
	for (size_t i = 0; i < follower->mark_count; i++)
		if (follower->marks[i].stream == stream)
			return &follower->marks[i];
	if (follower->mark_count == STREAMS_MAX)
		exit(1);
	struct mark *mark = &follower->marks[follower->mark_count++];
	*mark = (struct mark){.stream = stream};
	return mark;
}

static void take(struct follower *follower, const struct source_chunk *chunk)
{
	const char *at = chunk->data, *end = at + chunk->length;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *next = newline != NULL ? newline + 1 : end;
		uint64_t position = chunk->position + (uint64_t)(next - chunk->data) + (next == end ? chunk->skipped : 0);
		weir_text_puts(&follower->out, chunk->stream->name);
		weir_text_printf(&follower->out, "\t%" PRIu64 "\t", position);
		weir_text_append(&follower->out, at, (size_t)((newline != NULL ? newline : end) - at));
		weir_text_puts(&follower->out, "\n");
		at = next;
	}
	mark_of(follower, chunk->stream)->read = chunk->position + chunk->length + chunk->skipped;
}

/* What was written before is acknowledged, what was read is written. */
static void deliver(struct follower *follower)
{
	size_t written;
	for (size_t i = 0; i < follower->mark_count; i++)
		if (follower->marks[i].written != 0)
			follower->source->ops->acknowledge(follower->source, follower->marks[i].stream, follower->marks[i].written);
	if (weir_write_all(follower->fd, follower->out.at, follower->out.length, &written) != 0)
		exit(1);
	weir_text_clear(&follower->out);
	for (size_t i = 0; i < follower->mark_count; i++)
		follower->marks[i].written = follower->marks[i].read;
}

static void follow(struct follower *follower)
{
	struct source_chunk chunk;
	struct weir_error error;
	enum weir_status status = follower->source->ops->collect(follower->source, NULL, &chunk, &error);
	if (status == WEIR_OK)
		take(follower, &chunk);
	else if (status != WEIR_AGAIN)
		must(status, &error);
	if (status == WEIR_AGAIN || weir_monotonic_ms() >= follower->save_ms)
		deliver(follower);
	if (weir_monotonic_ms() >= follower->save_ms) {
		must(source_memory_save(follower->memory, &error), &error);
		follower->save_ms = weir_monotonic_ms() + SAVE_PERIOD_MS;
	}
	if (status == WEIR_AGAIN) {
		struct pollfd ready = {.fd = follower->source->ops->fd(follower->source), .events = POLLIN};
		poll(&ready, 1, SAVE_PERIOD_MS);
	}
}

static void print_status(struct follower *follower)
{
	struct source_status statuses[STATUSES_MAX];
	struct weir_text text = {0};
	size_t count = follower->source->ops->status(follower->source, statuses, STATUSES_MAX);
	weir_text_puts(&text, "[");
	for (size_t i = 0; i < count; i++) {
		weir_text_puts(&text, i > 0 ? ",{\"name\":" : "{\"name\":");
		weir_text_json(&text, weir_span_of(statuses[i].name));
		weir_text_printf(&text,
		                 ",\"position\":%" PRIu64 ",\"lag\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"errors\":%" PRIu64,
		                 statuses[i].position, statuses[i].lag_bytes, statuses[i].lost_bytes, statuses[i].errors);
		weir_text_puts(&text, ",\"problem\":");
		weir_text_json(&text, weir_span_of(statuses[i].problem));
		weir_text_puts(&text, "}");
	}
	weir_text_puts(&text, "]");
	printf("%.*s\n", (int)text.length, text.at);
	weir_text_deinit(&text);
}

static struct weir_json_document *configure(char **patterns)
{
	struct weir_text text = {0};
	struct weir_error error;
	struct weir_json_document *config = NULL;
	weir_text_puts(&text, "{\"type\":\"file\",\"follow\":true,\"path\":[");
	for (size_t i = 0; patterns[i] != NULL; i++) {
		weir_text_puts(&text, i > 0 ? "," : "");
		weir_text_json(&text, weir_span_of(patterns[i]));
	}
	weir_text_puts(&text, "]}");
	must(weir_json_parse("arguments", text.at, text.length, &config, &error), &error);
	weir_text_deinit(&text);
	return config;
}

int main(int argc, char **argv)
{
	struct follower follower = {.fd = -1};
	struct weir_error error;
	if (argc < 4) {
		fprintf(stderr, "usage: follow_source STATE OUT PATTERN...\n");
		return 2;
	}
	struct sigaction action = {.sa_handler = on_signal};
	sigaction(SIGTERM, &action, NULL);
	follower.fd = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	must(source_memory_open(argv[1], &follower.memory, &error), &error);
	struct weir_json_document *config = configure(argv + 3);
	struct weir_json root = weir_json_root(config);
	struct source_context context = {.memory = follower.memory};
	must(source_new(&root, &context, &follower.source, &error), &error);
	while (!stopped)
		follow(&follower);
	deliver(&follower);
	deliver(&follower);
	must(source_memory_save(follower.memory, &error), &error);
	print_status(&follower);
	follower.source->ops->free(follower.source);
	source_memory_free(follower.memory);
	weir_json_document_free(config);
	weir_text_deinit(&follower.out);
	close(follower.fd);
	return 0;
}

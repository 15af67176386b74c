/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The redis source: a thread that looks, reads and keeps in turns, over one connection to each server.
 */
#include "collector/source/redis/internal.h"

#include "collector/source/source_memory.h"
#include "collector/source/source_metrics.h"
#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	LOOK_MS = 1000,
	LOOK_DONE_MS = 100,
	KEEP_MS = 1000,
	SCAN_LEAST_MS = 1000,
	SCAN_SHARE = 20,
	PATIENCE_MS = 5000,
	END_MS = 1000
};

/* ---- the thread ---- */

static bool all_read(const struct redis_source *source)
{
	for (size_t i = 0; i < source->stream_count; i++) {
		const struct redis_stream *stream = source->streams[i];
		if (stream->entries != NULL && !stream->stopped && !stream->unreadable &&
		    stream->place.position < stream->end && !stream->dry)
			return false;
	}
	return true;
}

/* One turn: what is due, then what there is to read. */
static enum weir_status turn(struct redis_source *source, struct weir_error *error)
{
	int64_t now_ms = weir_monotonic_ms();
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < source->server_count; i++)
		source->servers[i]->patience_ms = PATIENCE_MS;
	if (now_ms >= source->scan_ms) {
		status = redis_scan(source, error);
		int64_t ended_ms = weir_monotonic_ms(), pause_ms = SCAN_SHARE * (ended_ms - now_ms);
		source->scan_ms = ended_ms + (pause_ms > SCAN_LEAST_MS ? pause_ms : SCAN_LEAST_MS);
	}
	if (status == WEIR_OK && now_ms >= source->look_ms) {
		source->look_ms = now_ms + (source->config.departures ? LOOK_DONE_MS : LOOK_MS);
		status = redis_look(source, error);
	}
	if (status == WEIR_OK && source->keeps && now_ms >= source->keep_ms) {
		source->keep_ms = now_ms + KEEP_MS;
		status = redis_keep(source, error);
	}
	return status == WEIR_OK ? redis_read(source, error) : status;
}

static bool is_used(const struct redis_source *source, size_t node)
{
	for (size_t i = 0; i < source->stream_count; i++)
		if (source->streams[i]->node == node && source->streams[i]->entries != NULL)
			return true;
	return false;
}

/* Keeps what was acknowledged last, on new connections: on the others a server may be waiting for an entry. */
static void keep_at_end(struct redis_source *source)
{
	struct weir_error error;
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < source->server_count && status == WEIR_OK; i++) {
		if (is_used(source, i))
			status = redis_connect(source, i, &error);
		source->servers[i]->finishing = true;
		source->servers[i]->patience_ms = END_MS;
	}
	if (status == WEIR_OK)
		(void)!redis_keep(source, &error); /* if it fails, the next start reads again what was read since */
	redis_disconnect(source);
}

static enum weir_status redis_run(struct queue_source *queue, struct weir_error *error)
{
	struct redis_source *source = (struct redis_source *)(void *)queue;
	source->scan_ms = source->look_ms = 0;
	redis_forget_nodes(source);
	enum weir_status status = redis_connect(source, 0, error);
	while (status == WEIR_OK && !queue_ending(queue)) {
		status = turn(source, error);
		if (status == WEIR_OK)
			queue_succeeded(queue);
		if (queue->once && all_read(source))
			break;
	}
	redis_disconnect(source);
	if (queue_ending(queue) && source->keeps)
		keep_at_end(source);
	return status == WEIR_OK ? WEIR_END : status;
}

/* ---- the interface ---- */

static enum weir_status redis_collect(struct source *base, struct source_stream *stream, struct source_chunk *chunk,
                                      struct weir_error *error)
{
	const struct redis_source *source = (const struct redis_source *)(const void *)base;
	if (source->queue.once &&
	    (source->config.stream_count > 1 || source->config.departures || redis_is_pattern(source->config.streams[0]))) {
		*chunk = (struct source_chunk){.stream = stream};
		return weir_fail(error, WEIR_IO,
		                 "%s reads several streams, and --once reads streams side by side: give each a source, with a "
		                 "\"name\"",
		                 source->config.name);
	}
	return queue_collect(base, stream, chunk, error);
}

static void redis_free(struct source *base)
{
	struct redis_source *source = (struct redis_source *)(void *)base;
	queue_stop(&source->queue);
	redis_forget_nodes(source);
	if (source->server_count > 0)
		redis_server_deinit(source->servers[0]);
	free(source->servers[0]);
	redis_free_streams(source);
	queue_deinit(&source->queue);
	for (size_t i = 0; i < source->config.url_count; i++)
		weir_redis_url_deinit(&source->urls[i]);
	for (size_t i = 0; i < REDIS_GROUPS; i++)
		free(source->groups[i]);
	weir_text_deinit(&source->entry.text);
	free(source);
}

/* "weir-collector", "weir-collector-2" of a second generation; ":read" and ":done" behind it. */
static void name_groups(struct redis_source *source)
{
	static const char *const behind[REDIS_GROUPS] = {[REDIS_GROUP_READ] = ":read", [REDIS_GROUP_DONE] = ":done"};
	for (size_t i = 0; i < REDIS_GROUPS; i++) {
		struct weir_text text = {0};
		weir_text_puts(&text, source->config.group);
		if (source->config.generation > 1)
			weir_text_printf(&text, "-%" PRId64, source->config.generation);
		weir_text_puts(&text, behind[i] != NULL ? behind[i] : "");
		weir_text_append(&text, "", 1);
		source->groups[i] = text.at;
	}
}

static enum weir_status redis_new(const struct weir_json *config, const struct source_context *context,
                                  struct source **made, struct weir_error *error)
{
	static const struct queue_reader reader = {redis_run};
	struct redis_config read_config;
	enum weir_status status = redis_configure(&read_config, config, context, error);
	if (status != WEIR_OK)
		return status;
	struct redis_source *source = weir_alloc(1, sizeof *source);
	source->config = read_config;
	for (size_t i = 0; i < read_config.url_count && status == WEIR_OK; i++)
		status = weir_redis_url_parse(read_config.urls[i], &source->urls[i], error);
	name_groups(source);
	for (size_t i = 0; i < read_config.stream_count; i++)
		if (!redis_is_pattern(read_config.streams[i]))
			(void)redis_add_stream(source, weir_span_of(read_config.streams[i]));
	source->queue.once = !read_config.follow;
	source->queue.line_max = (size_t)read_config.line_max;
	source->queue.start = (enum source_at_start)read_config.start;
	source->keeps = read_config.follow && !context->once;
	source->entry = (struct redis_entry){.field = read_config.field, .line_max = (size_t)read_config.line_max};
	enum weir_status opened =
		queue_init(&source->queue, &source_redis_ops, &reader, SOURCE_REDIS_PREFIX, read_config.name, context, error);
	if (status == WEIR_OK)
		status = opened;
	if (status == WEIR_OK)
		status = queue_start(&source->queue, error);
	if (status == WEIR_OK)
		*made = &source->queue.source;
	else
		redis_free(&source->queue.source);
	return status;
}

/* An address without its password. */
static void put_url(struct weir_text *text, const char *address)
{
	const char *account = strrchr(address, '@');
	weir_text_puts(text, account != NULL                 ? account + 1
	                     : strstr(address, "//") != NULL ? strstr(address, "//") + 2
	                                                     : address);
}

/* "streams jobs, mails at 127.0.0.1:6379" */
static void redis_describe(const struct weir_json *config, struct weir_text *place, struct weir_text *manner)
{
	struct weir_json streams = weir_json_member(config, "streams"), url = weir_json_member(config, "url");
	weir_text_puts(place, json_array_size(streams.value) > 1 ? "streams " : "stream ");
	source_words_list(place, &streams);
	weir_text_puts(place, " at ");
	if (json_is_string(url.value))
		put_url(place, json_string_value(url.value));
	for (size_t i = 0; i < json_array_size(url.value); i++) {
		weir_text_puts(place, i > 0 ? ", " : "");
		if (json_is_string(json_array_get(url.value, i)))
			put_url(place, json_string_value(json_array_get(url.value, i)));
	}
	source_words_manner(manner, config, true);
}

static const struct source_metric *const metrics[] = {
	&source_metric_lag_seconds,
	&source_metric_lag_records,
	&source_metric_lines,
	&source_metric_errors,
	&source_metric_lost_records,
	&source_metric_unknown_losses,
	&source_metric_skipped,
	&source_metric_problem,
	&source_metric_replayable,
	&source_metric_guarantee,
	NULL,
};

const struct source_ops source_redis_ops = {
	.type = "redis",
	.members = redis_members,
	.replayable = true,
	.guarantee = SOURCE_EXACTLY_ONCE,
	.metrics = metrics,
	.create = redis_new,
	.apart = redis_apart,
	.fits = redis_fits,
	.describe = redis_describe,
	.collect = redis_collect,
	.streams = queue_streams,
	.fd = queue_fd,
	.acknowledge = queue_acknowledge,
	.resume = queue_resume,
	.status = queue_status,
	.free = redis_free,
};

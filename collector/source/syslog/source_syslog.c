/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages as lines: received from the sockets, their headers completed, handed out many at a time.
 */
#include "collector/source/syslog/internal.h"

#include "collector/source/source_metrics.h"
#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { PROBLEM_SHOWN_MS = 60000 };

static struct syslog_source *syslog_of(struct source *source)
{
	return (struct syslog_source *)(void *)source;
}

void syslog_source_problem(struct syslog_source *source, bool reads_on, const char *format, ...)
{
	source->reads_on = reads_on;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(source->problem, sizeof source->problem, format, arguments);
	va_end(arguments);
	source->problem_until_ms = weir_monotonic_ms() + PROBLEM_SHOWN_MS;
}

/* A too long line is handed out on its own. A second one of the same batch is only counted. */
static void keep_long(struct syslog_source *source, const char *at, size_t length, uint64_t skipped)
{
	source->malformed++;
	if (source->long_skipped > 0)
		return;
	weir_text_clear(&source->long_line);
	weir_text_append(&source->long_line, at, length);
	source->long_skipped = skipped;
}

void syslog_source_take(struct syslog_source *source, struct weir_span message, uint64_t skipped, int64_t now_ms)
{
	size_t before = source->lines.length, most = (size_t)source->config.line_max;
	source->received++;
	if (skipped > 0) {
		keep_long(source, message.at, message.length, skipped);
		return;
	}
	source->malformed += !syslog_line_put(&source->line, message, now_ms, &source->lines);
	size_t length = source->lines.length - before;
	if (length <= most + 1)
		return;
	/* The completed header made it too long. */
	source->lines.length = before;
	keep_long(source, source->lines.at + before, most, length - most);
}

static void hand_out(struct syslog_source *source, struct source_chunk *chunk, const struct weir_text *text,
                     uint64_t skipped)
{
	*chunk =
		(struct source_chunk){.data = text->at, .length = text->length, .too_long = skipped > 0, .skipped = skipped};
	(void)source_unreplayable_place(&source->base, chunk);
}

static void tell(struct syslog_source *source)
{
	bool shown = weir_monotonic_ms() < source->problem_until_ms;
	struct source_status *status = &source->base.status;
	pthread_mutex_lock(&source->base.mutex);
	status->own[SYSLOG_RECEIVED] = source->received;
	status->own[SYSLOG_DROPPED] = source->dropped;
	status->own[SYSLOG_MALFORMED] = source->malformed;
	status->own[SYSLOG_REFUSED] = source->refused;
	status->errors = source->errors;
	status->reads_on = source->reads_on;
	memcpy(status->problem, shown ? source->problem : "", shown ? sizeof status->problem : 1);
	pthread_mutex_unlock(&source->base.mutex);
}

static enum weir_status syslog_collect(struct source *base, struct source_stream *asked, struct source_chunk *chunk,
                                       struct weir_error *error)
{
	(void)asked;
	struct syslog_source *source = syslog_of(base);
	*chunk = (struct source_chunk){.stream = &source->base.stream};
	if (source->once)
		return weir_fail(error, WEIR_IO, "%s has no end, so it cannot be read with --once", source->base.stream.name);
	if (source->handed_lines)
		weir_text_clear(&source->lines);
	if (source->handed_long)
		source->long_skipped = 0;
	source->handed_lines = source->handed_long = false;
	if (source->long_skipped == 0) {
		if (source->udp != NULL)
			syslog_udp_read(source->udp, source, weir_wall_ms());
		else
			syslog_tcp_read(source->tcp, source, weir_wall_ms());
	}
	if (source->lines.length > 0) {
		hand_out(source, chunk, &source->lines, 0);
		source->handed_lines = true;
	} else if (source->long_skipped > 0) {
		hand_out(source, chunk, &source->long_line, source->long_skipped);
		source->handed_long = true;
	}
	tell(source);
	return chunk->length > 0 ? WEIR_OK : WEIR_AGAIN;
}

static int syslog_fd(const struct source *base)
{
	const struct syslog_source *source = (const struct syslog_source *)(const void *)base;
	return source->udp != NULL ? syslog_udp_fd(source->udp) : source->tcp != NULL ? syslog_tcp_fd(source->tcp) : -1;
}

static void syslog_free(struct source *base)
{
	struct syslog_source *source = syslog_of(base);
	syslog_udp_free(source->udp);
	syslog_tcp_free(source->tcp);
	syslog_line_deinit(&source->line);
	weir_text_deinit(&source->lines);
	weir_text_deinit(&source->long_line);
	source_unreplayable_deinit(&source->base);
	free(source);
}

static enum weir_status open_socket(struct syslog_source *source, struct weir_error *error)
{
	int fd;
	enum weir_status status = syslog_socket(&source->config, &fd, error);
	if (status != WEIR_OK)
		return status;
	if (source->config.tcp)
		return syslog_tcp_new(fd, &source->config, &source->tcp, error);
	source->udp = syslog_udp_new(fd, &source->config);
	return WEIR_OK;
}

static enum weir_status syslog_new(const struct weir_json *config, const struct source_context *context,
                                   struct source **made, struct weir_error *error)
{
	struct syslog_config parsed;
	struct time_zone *zone;
	enum weir_status status = syslog_configure(&parsed, config, context, &zone, error);
	if (status != WEIR_OK)
		return status;
	struct syslog_source *source = weir_alloc(1, sizeof *source);
	source_unreplayable_init(&source->base, &source_syslog_ops, parsed.listen, "a syslog message");
	source->config = parsed;
	source->config.listen = source->base.stream.name;
	source->once = context->once;
	syslog_line_init(&source->line, zone);
	if (!source->once)
		status = open_socket(source, error);
	if (status != WEIR_OK) {
		syslog_free(&source->base.source);
		return status;
	}
	*made = &source->base.source;
	return WEIR_OK;
}

static void syslog_doubt(const struct source *base, struct weir_text *words)
{
	const struct syslog_config *config = &((const struct syslog_source *)(const void *)base)->config;
	source_senders_doubt(&config->from, config->host, false, words);
}

static void syslog_describe(const struct weir_json *config, struct weir_text *place, struct weir_text *manner)
{
	struct weir_json listen = weir_json_member(config, "listen");
	source_words_list(place, &listen);
	weir_text_puts(manner, "listened to");
}

static const struct weir_metric received_row = {"weir_source_received_total", WEIR_COUNTER, "messages",
                                                SOURCE_METRIC_LABELS, "Syslog messages received from the network."};

static bool received(const struct source_status *status, double *value)
{
	*value = (double)status->own[SYSLOG_RECEIVED];
	return true;
}

static const struct source_metric received_metric = {&received_row, received, false, false, NULL};

static const struct weir_metric dropped_row = {
	"weir_source_dropped_total", WEIR_COUNTER, "messages", SOURCE_METRIC_LABELS,
	"Syslog messages that the kernel dropped because the receive buffer was full. Raise receive_buffer "
	"and net.core.rmem_max, or send by TCP."};

static bool dropped(const struct source_status *status, double *value)
{
	*value = (double)status->own[SYSLOG_DROPPED];
	return true;
}

static const struct source_metric dropped_metric = {&dropped_row, dropped, false, false, NULL};

static const struct weir_metric malformed_row = {
	"weir_source_malformed_total", WEIR_COUNTER, "messages", SOURCE_METRIC_LABELS,
	"Syslog messages received with an unreadable header, truncated or too long."};

static bool malformed(const struct source_status *status, double *value)
{
	*value = (double)status->own[SYSLOG_MALFORMED];
	return true;
}

static const struct source_metric malformed_metric = {&malformed_row, malformed, false, false, NULL};

static const struct weir_metric refused_row = {
	"weir_source_refused_total", WEIR_COUNTER, "messages", SOURCE_METRIC_LABELS,
	"Syslog datagrams and connections refused because their sender is in no network of the source's `from`, and connections "
	"refused because their address has its share of them, or all are taken. While one of these is refused, "
	"weir_source_problem and the log say which; of those outside of `from` neither does."};

static bool refused(const struct source_status *status, double *value)
{
	*value = (double)status->own[SYSLOG_REFUSED];
	return true;
}

static const struct source_metric refused_metric = {&refused_row, refused, false, false, NULL};

/* No lag among them, as it is not known what waits to be read. */

static const struct source_metric *const metrics[] = {
	&source_metric_position,
	&source_metric_incarnation,
	&source_metric_lines,
	&source_metric_errors,
	&source_metric_lost_bytes,
	&source_metric_problem,
	&source_metric_unreplayable,
	&source_metric_guarantee,
	&received_metric,
	&dropped_metric,
	&malformed_metric,
	&refused_metric,
	NULL,
};

const struct source_ops source_syslog_ops = {
	.type = "syslog",
	.members = syslog_members,
	.guarantee = SOURCE_AT_MOST_ONCE,
	.endless = true,
	.head = "syslog",
	.metrics = metrics,
	.create = syslog_new,
	.describe = syslog_describe,
	.doubt = syslog_doubt,
	.collect = syslog_collect,
	.streams = source_unreplayable_streams,
	.fd = syslog_fd,
	.acknowledge = source_unreplayable_acknowledge,
	.resume = source_unreplayable_resume,
	.status = source_unreplayable_status,
	.free = syslog_free,
};

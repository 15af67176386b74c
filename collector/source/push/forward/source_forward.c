/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source: a spool that is read like a log (push_source.h), and a listener that fills it (forward_server.c).
 *
 * A message with a chunk is acknowledged when it is in the spool, and known by that id when it comes again: exactly
 * once. One without is taken as it comes, and what is on its way at a crash is lost: at most once. So the stream is the
 * former until the first of the latter has come since the start.
 */
#include "collector/source/push/forward/internal.h"

#include "collector/source/source_metrics.h"
#include "collector/source/source_words.h"
#include "common/base/alloc.h"

#include <assert.h>
#include <stdlib.h>

struct forward_source {
	struct push_source base; /* first */
	struct forward_config config;
	struct forward_server *server; /* NULL: with `once` */
};

/* What `own` of a status counts. */
enum { OWN_RECEIVED = PUSH_OWN_COUNTS, OWN_SKIPPED, OWN_UNACKNOWLEDGED, OWN_END };

static_assert((int)OWN_END <= (int)SOURCE_OWN_COUNTS, "a status has room for them");

static struct forward_source *forward_of(struct source *source)
{
	return (struct forward_source *)(void *)source;
}

static void forward_free(struct source *base)
{
	struct forward_source *source = forward_of(base);
	forward_server_stop(source->server);
	push_source_deinit(&source->base);
	forward_config_deinit(&source->config);
	free(source);
}

/* What would keep it from listening, where nothing listens now: a secret or a certificate that is not there. */
static void look_ahead(struct forward_source *source, const struct weir_json *json)
{
	struct forward_config opened;
	struct weir_error error;
	enum weir_status status = forward_configure(json, true, &opened, &error);
	push_source_look_ahead(&source->base, status, &opened.tls, &error);
	forward_config_deinit(&opened);
}

static enum weir_status forward_new(const struct weir_json *json, const struct source_context *context,
                                    struct source **made, struct weir_error *error)
{
	struct forward_source *source = weir_alloc(1, sizeof *source);
	enum weir_status status = forward_configure(json, !context->once, &source->config, error);
	if (status != WEIR_OK) {
		forward_config_deinit(&source->config);
		free(source);
		return status;
	}
	const struct push_source_options options = {
		.name = source->config.name, .spool_bytes = source->config.spool_bytes, .line_max = source->config.line_max};
	status = push_source_init(&source->base, &source_forward_ops, &options, context, error);
	if (status == WEIR_OK && source->base.spool != NULL)
		status = forward_server_start(&source->config, source->base.spool, source->base.line_max, context->log,
		                              &source->server, error);
	else if (status == WEIR_OK)
		look_ahead(source, json);
	if (status != WEIR_OK) {
		forward_free(&source->base.source);
		return status;
	}
	*made = &source->base.source;
	return WEIR_OK;
}

static enum weir_status forward_apart(const struct weir_json *json, const struct weir_json *other,
                                      struct weir_error *error)
{
	struct weir_json name = weir_json_member(json, "name"), listen = weir_json_member(json, "listen");
	if (weir_json_same(json, other, "name"))
		return weir_json_fail(&name, error, "is that of another forward source, whose spool it would share");
	if (weir_json_same(json, other, "listen"))
		return weir_json_fail(&listen, error, "is that of another forward source");
	return WEIR_OK;
}

static void forward_doubt(const struct source *base, struct weir_text *words)
{
	const struct forward_config *config = &((const struct forward_source *)(const void *)base)->config;
	if (config->socket == NULL)
		source_senders_doubt(&config->from, config->host, config->knows_senders, words);
}

static void forward_describe(const struct weir_json *json, struct weir_text *place, struct weir_text *manner)
{
	struct weir_json listen = weir_json_member(json, "listen");
	source_words_list(place, &listen);
	weir_text_puts(manner, "listened to; what asks for an acknowledgement exactly once, other messages at most once");
}

static size_t forward_state(struct source *base, struct source_status *statuses, size_t count)
{
	struct forward_source *source = forward_of(base);
	size_t there = push_source_status(base, statuses, count);
	if (there == 0 || count == 0 || source->server == NULL)
		return there;
	struct forward_status seen;
	forward_server_status(source->server, &seen);
	statuses[0].own[OWN_RECEIVED] = seen.received;
	statuses[0].own[OWN_SKIPPED] = seen.skipped;
	statuses[0].own[PUSH_REFUSED] = seen.refused;
	statuses[0].own[OWN_UNACKNOWLEDGED] = seen.nameless;
	statuses[0].lost_records = seen.lost_lines;
	statuses[0].guarantee = seen.nameless > 0 ? SOURCE_AT_MOST_ONCE : SOURCE_EXACTLY_ONCE;
	if (statuses[0].problem[0] == '\0' && seen.problem[0] != '\0') {
		memcpy(statuses[0].problem, seen.problem, sizeof statuses[0].problem);
		statuses[0].reads_on = !seen.waits;
	}
	return there;
}

/* ---- metrics ---- */

static bool received(const struct source_status *status, double *value)
{
	*value = (double)status->own[OWN_RECEIVED];
	return true;
}

static bool skipped(const struct source_status *status, double *value)
{
	*value = (double)status->own[OWN_SKIPPED];
	return true;
}

static bool unacknowledged(const struct source_status *status, double *value)
{
	*value = (double)status->own[OWN_UNACKNOWLEDGED];
	return true;
}

static const struct weir_metric received_row = {
	"weir_source_forward_received_total", WEIR_COUNTER, "messages", SOURCE_METRIC_LABELS,
	"Messages with entries that came by the Forward protocol, those that came again among them."};
static const struct source_metric received_metric = {&received_row, received, NULL, false, false};

static const struct weir_metric skipped_row = {
	"weir_source_forward_skipped_total", WEIR_COUNTER, "messages", SOURCE_METRIC_LABELS,
	"Messages that no tag of the source's `tags` names, and Fluent Bit's metrics and traces: acknowledged, not read."};
static const struct source_metric skipped_metric = {&skipped_row, skipped, NULL, false, false};

static const struct weir_metric unacknowledged_row = {
	"weir_source_forward_unacknowledged_total", WEIR_COUNTER, "messages", SOURCE_METRIC_LABELS,
	"Messages whose sender asked for no acknowledgement: what is on its way when the collector dies is lost."};
static const struct source_metric unacknowledged_metric = {&unacknowledged_row, unacknowledged, NULL, false, false};

static const struct source_metric *const metrics[] = {
	&source_metric_lag_records, &source_metric_lines,      &source_metric_errors,    &source_metric_lost_records,
	&source_metric_problem,     &source_metric_replayable, &source_metric_guarantee, &push_metric_spool,
	&push_metric_known,         &push_metric_pushed_back,  &push_metric_waiting,     &push_metric_refused,
	&received_metric,           &skipped_metric,           &unacknowledged_metric,   NULL,
};

const struct source_ops source_forward_ops = {
	.type = "forward",
	.members = forward_members,
	.endless = true,
	.replayable = true,
	.count_left = push_source_count_left,
	.check_spool = push_spool_check,
	.guarantee = SOURCE_AT_MOST_ONCE,
	.metrics = metrics,
	.create = forward_new,
	.apart = forward_apart,
	.describe = forward_describe,
	.doubt = forward_doubt,
	.collect = push_source_collect,
	.streams = push_source_streams,
	.fd = push_source_fd,
	.acknowledge = push_source_acknowledge,
	.resume = push_source_resume,
	.status = forward_state,
	.free = forward_free,
};

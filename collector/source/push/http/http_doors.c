/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocols, a row each: where they knock, how their bodies are taken apart, and how they expect to be answered.
 */
#include "collector/source/push/http/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define JSON_TYPE "application/json"

enum { ACKS_MOST_BYTES = 1 << 20 }; /* of an answer that names each acknowledgement that was asked for */

/* ---- answers ---- */

static void put_json(struct weir_text *text, const char *words)
{
	weir_text_json(text, weir_span_of(words));
}

static void accept_lines(const struct http_call *call)
{
	weir_text_printf(&call->reply->body, "{\"lines\": %" PRIu32 "%s}\n", call->line_count,
	                 call->again ? ", \"again\": true" : "");
}

static void accept_nothing(const struct http_call *call)
{
	(void)call;
}

static void accept_object(const struct http_call *call)
{
	weir_text_puts(&call->reply->body, "{}");
}

static void accept_words(const struct http_call *call)
{
	weir_text_puts(&call->reply->body, "OK.\n");
}

/* Firehose wants its own request's id and a time in ms back, also with an error. */
static void answer_firehose(const struct http_call *call, const char *words)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	const char *id = weir_http_field(call->request, "X-Amz-Firehose-Request-Id");
	struct weir_text *body = &call->reply->body;
	weir_text_puts(body, "{\"requestId\": ");
	put_json(body, id != NULL ? id : "");
	weir_text_printf(body, ", \"timestamp\": %lld", (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
	if (words != NULL) {
		weir_text_puts(body, ", \"errorMessage\": ");
		put_json(body, words);
	}
	weir_text_puts(body, "}");
}

static void accept_firehose(const struct http_call *call)
{
	answer_firehose(call, NULL);
}

static void refuse_firehose(const struct http_call *call, unsigned status, const char *words)
{
	(void)status;
	answer_firehose(call, words);
}

/* ---- Splunk's HTTP event collector ---- */

static const char *channel_of(const struct http_call *call)
{
	return weir_http_field(call->request, "X-Splunk-Request-Channel");
}

/* What is answered is on disk, so every acknowledgement that is asked for is true. */
static void accept_hec(const struct http_call *call)
{
	weir_text_printf(&call->reply->body, "{\"text\":\"Success\",\"code\":0%s}",
	                 channel_of(call) != NULL ? ",\"ackId\":0" : "");
}

static void refuse_hec(const struct http_call *call, unsigned status, const char *words)
{
	int code = status == 401 ? 4 : status == 503 ? 9 : 6;
	weir_text_puts(&call->reply->body, "{\"text\":");
	put_json(&call->reply->body, words);
	weir_text_printf(&call->reply->body, ",\"code\":%d}", code);
}

static void greet_hec(const struct http_call *call)
{
	weir_text_puts(&call->reply->body, "{\"text\":\"HEC is healthy\",\"code\":17}");
}

/* {"acks": [0, 1]}: asks which are safe. */
static enum weir_status decode_acks(struct weir_span body, size_t most, struct weir_text *lines,
                                    struct weir_text *answer, struct weir_error *error)
{
	(void)most;
	(void)lines;
	for (uint32_t i = 0; i < body.length; i++) {
		if (answer->length > ACKS_MOST_BYTES)
			return weir_fail(error, WEIR_FULL, "the body asks for too many acknowledgements: ask for fewer at once");
		bool digit = body.at[i] >= '0' && body.at[i] <= '9';
		bool before = i > 0 && body.at[i - 1] >= '0' && body.at[i - 1] <= '9';
		if (digit && !before)
			weir_text_puts(answer, answer->length > 0 ? ",\"" : "\"");
		if (digit)
			weir_text_append(answer, &body.at[i], 1);
		if (digit && (i + 1 == body.length || body.at[i + 1] < '0' || body.at[i + 1] > '9'))
			weir_text_puts(answer, "\":true");
	}
	return WEIR_OK;
}

static void accept_acks(const struct http_call *call)
{
	weir_text_puts(&call->reply->body, "{\"acks\":{");
	weir_text_append(&call->reply->body, call->answer.at, call->answer.length);
	weir_text_puts(&call->reply->body, "}}");
}

/* ---- Elasticsearch ---- */

static void put_product(const struct http_call *call)
{
	weir_http_header(call->reply, "X-Elastic-Product", "Elasticsearch");
}

static void accept_bulk(const struct http_call *call)
{
	static const char failed[] = "\"status\":400,\"error\"";
	const struct weir_text *items = &call->answer;
	bool errors = items->length > 0 && memmem(items->at, items->length, failed, sizeof failed - 1) != NULL;
	put_product(call);
	weir_text_printf(&call->reply->body, "{\"took\":0,\"errors\":%s,\"items\":[", errors ? "true" : "false");
	weir_text_append(&call->reply->body, items->at, items->length);
	weir_text_puts(&call->reply->body, "]}");
}

static void refuse_bulk(const struct http_call *call, unsigned status, const char *words)
{
	put_product(call);
	weir_text_puts(&call->reply->body, "{\"error\":{\"type\":\"exception\",\"reason\":");
	put_json(&call->reply->body, words);
	weir_text_printf(&call->reply->body, "},\"status\":%u}", status);
}

/* What shippers ask first. The version is one whose _bulk this is. */
static void greet_elasticsearch(const struct http_call *call)
{
	put_product(call);
	weir_text_puts(&call->reply->body,
	               "{\"name\":\"weir\",\"cluster_name\":\"weir\",\"cluster_uuid\":\"weir\",\"version\":{\"number\":"
	               "\"8.13.0\",\"build_flavor\":\"default\",\"build_type\":\"deb\",\"lucene_version\":\"9.10.0\","
	               "\"minimum_wire_compatibility_version\":\"7.17.0\",\"minimum_index_compatibility_version\":"
	               "\"7.0.0\"},\"tagline\":\"You Know, for Search\"}");
}

static void greet_license(const struct http_call *call)
{
	put_product(call);
	weir_text_puts(&call->reply->body,
	               "{\"license\":{\"status\":\"active\",\"uid\":\"weir\",\"type\":\"basic\",\"mode\":\"basic\"}}");
}

/* ---- doors ---- */

#define HEC_EVENT .decode = decode_json, .status = 200, .type = JSON_TYPE, .accept = accept_hec, .refuse = refuse_hec
#define HEC_RAW .decode = decode_lines, .status = 200, .type = JSON_TYPE, .accept = accept_hec, .refuse = refuse_hec
#define BULK .decode = decode_bulk, .status = 200, .type = JSON_TYPE, .accept = accept_bulk, .refuse = refuse_bulk

static const struct http_door lines_door = {
	.decode = decode_lines, .status = 200, .type = JSON_TYPE, .accept = accept_lines};
static const struct http_door firehose_door = {
	.decode = decode_firehose, .status = 200, .type = JSON_TYPE, .accept = accept_firehose, .refuse = refuse_firehose};

static const struct http_door doors[] = {
	{.path = "/v1/logs", .decode = decode_otlp, .status = 200, .type = JSON_TYPE, .accept = accept_object},
	{.path = "/services/collector", HEC_EVENT},
	{.path = "/services/collector/event", HEC_EVENT},
	{.path = "/services/collector/event/1.0", HEC_EVENT},
	{.path = "/services/collector/raw", HEC_RAW},
	{.path = "/services/collector/raw/1.0", HEC_RAW},
	{.path = "/services/collector/ack",
     .decode = decode_acks,
     .status = 200,
     .type = JSON_TYPE,
     .accept = accept_acks,
     .refuse = refuse_hec},
	{.path = "/services/collector/health", .type = JSON_TYPE, .greet = greet_hec},
	{.path = "/services/collector/health/1.0", .type = JSON_TYPE, .greet = greet_hec},
	{.path = "*/_bulk", BULK},
	{.path = "/", .type = JSON_TYPE, .greet = greet_elasticsearch},
	{.path = "/_license", .type = JSON_TYPE, .greet = greet_license},
	{.path = "/loki/api/v1/push", .decode = decode_loki, .status = 204, .accept = accept_nothing},
	{.path = "/upload", .decode = decode_journal, .status = 202, .pieces = true, .accept = accept_words},
};

static bool leads_to(const char *path, const char *target)
{
	size_t length = strlen(path), there = strlen(target);
	if (path[0] != '*')
		return strcmp(path, target) == 0;
	return there >= length - 1 && strcmp(target + there - (length - 1), path + 1) == 0;
}

const struct http_door *http_door_of(const struct http_config *config, const char *target, bool firehose)
{
	if (strcmp(target, config->path) == 0)
		return firehose ? &firehose_door : &lines_door;
	for (size_t i = 0; i < sizeof doors / sizeof doors[0]; i++)
		if (leads_to(doors[i].path, target))
			return &doors[i];
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /v1/check: {"zone", "key", "cost", "peek", "durable"} asks one zone, {"fields": {…}, "cost", …} all that a record with
 * these fields is in, {"checks": […]} several of both. Nothing is counted where one of them is wrong.
 */
#include "limiter/check/http/internal.h"

#include "common/base/alloc.h"
#include "common/frame/frame.h"
#include "common/json/json_rules.h"
#include "limiter/check/check_key.h"

#include <stdlib.h>

enum { FIELDS_MAX = 64 };

/* One element, or the text itself. */
struct json_ask {
	const char *zone, *key;
	int64_t cost;
	bool peek, durable;
};

#define AT(member) offsetof(struct json_ask, member)

static const struct weir_json_rule rules[] = {
	{.name = "zone", .kind = WEIR_JSON_TEXT, .offset = AT(zone)},
	{.name = "key", .kind = WEIR_JSON_TEXT, .offset = AT(key)},
	{.name = "fields", .kind = WEIR_JSON_READ_ELSEWHERE},
	{.name = "cost", .kind = WEIR_JSON_NUMBER, .offset = AT(cost), .least = 0, .most = WEIR_COST_MAX},
	{.name = "peek", .kind = WEIR_JSON_FLAG, .offset = AT(peek)},
	{.name = "durable", .kind = WEIR_JSON_FLAG, .offset = AT(durable)},
	{.name = NULL},
};

/* ---- the text ---- */

static enum weir_status add_zone(struct http_connection *connection, const struct weir_policy *policy,
                                 const struct weir_json *at, const struct json_ask *ask, struct weir_error *error)
{
	struct exchange *exchange = &connection->exchange;
	struct weir_span given = weir_span_of(ask->key != NULL ? ask->key : "");
	char room[WEIR_KEY_MAX_BYTES];
	struct weir_span key;
	struct weir_error why;
	struct weir_json zone_at = weir_json_member(at, "zone"), key_at = weir_json_member(at, "key");
	const struct weir_zone *zone = weir_policy_find_zone(policy, weir_span_of(ask->zone), &why);
	if (zone == NULL)
		return weir_json_fail(&zone_at, error, "%s", why.text);
	if (ask->key == NULL && zone->key_count > 0)
		return weir_json_require(&key_at, "give the key that is asked about", error);
	if (check_key(zone, given, CHECK_KEY_GIVEN, room, &key, &why) != WEIR_OK)
		return weir_json_fail(&key_at, error, "%s", why.text);
	if (!exchange_add(exchange, zone, key, ask->cost, ask->peek))
		return weir_json_fail(at, error, "asks too much: a request asks at most %d zones", CHECK_HTTP_ASKS_MAX);
	exchange->asks[exchange->ask_count - 1].exempt =
		check_request_exempts(connection->server->options.request, policy, zone, given);
	return WEIR_OK;
}

static enum weir_status set_fields(struct check_request *request, const struct weir_json *fields,
                                   struct weir_error *error)
{
	const char *name;
	json_t *value;
	if (!json_is_object(fields->value) || json_object_size(fields->value) > FIELDS_MAX)
		return weir_json_fail(fields, error, "must be an object of field: value, with at most %d members", FIELDS_MAX);
	json_object_foreach(fields->value, name, value)
	{
		const char *text = NULL;
		struct weir_json at = weir_json_member(fields, name);
		enum weir_status status = weir_json_string(&at, &text, error);
		if (status != WEIR_OK)
			return status;
		check_request_set(request, weir_span_of(name), weir_span_of(text));
	}
	return WEIR_OK;
}

static enum weir_status add_fields(struct http_connection *connection, const struct weir_policy *policy,
                                   const struct weir_json *fields, const struct json_ask *ask, struct weir_error *error)
{
	struct check_request *request = connection->server->options.request;
	struct check_found found[CHECK_REQUEST_ZONES_MAX];
	uint32_t count;
	enum weir_status status = check_request_begin(request, policy, error);
	if (status != WEIR_OK)
		return status == WEIR_INVALID ? WEIR_IO : status; /* it is the policy that is wrong, not the text */
	status = set_fields(request, fields, error);
	if (status != WEIR_OK)
		return status;
	if (check_request_find(request, found, &count) != WEIR_OK)
		return weir_json_fail(fields, error, "are in more than %d zones", CHECK_REQUEST_ZONES_MAX);
	for (uint32_t i = 0; i < count; i++) {
		struct exchange *exchange = &connection->exchange;
		if (!exchange_add(exchange, found[i].zone, found[i].key, ask->cost, ask->peek))
			return weir_json_fail(fields, error, "ask too much: a request asks at most %d zones", CHECK_HTTP_ASKS_MAX);
		exchange->asks[exchange->ask_count - 1].one_field = found[i].zone->key_count == 1;
	}
	return WEIR_OK;
}

/* @param policy  NULL: there is none that can be used */
static enum weir_status add_check(struct http_connection *connection, const struct weir_policy *policy,
                                  const struct weir_json *at, struct json_check *check, struct weir_error *error)
{
	struct exchange *exchange = &connection->exchange;
	struct json_ask ask = {.cost = 1};
	struct weir_json fields = weir_json_member(at, "fields"), zone = weir_json_member(at, "zone");
	enum weir_status status = weir_json_known(at, rules, error);
	if (status == WEIR_OK)
		status = weir_json_read(at, rules, &ask, error);
	if (status != WEIR_OK)
		return status;
	*check = (struct json_check){.first = exchange->ask_count, .by_fields = weir_json_exists(&fields)};
	if (check->by_fields && (ask.zone != NULL || ask.key != NULL))
		return weir_json_fail(&fields, error, "stand instead of zone and key");
	if (!check->by_fields && ask.zone == NULL)
		return weir_json_require(&zone, "give zone and key, or fields", error);
	if (policy == NULL && !exchange_add_unjudged(exchange))
		return weir_json_fail(at, error, "asks too much: a request asks at most %d zones", CHECK_HTTP_ASKS_MAX);
	if (policy != NULL)
		status = check->by_fields ? add_fields(connection, policy, &fields, &ask, error)
		                          : add_zone(connection, policy, at, &ask, error);
	check->count = exchange->ask_count - check->first;
	for (uint32_t i = check->first; i < exchange->ask_count; i++)
		exchange->asks[i].durable = ask.durable;
	return status;
}

static enum weir_status add_all(struct http_connection *connection, const struct weir_policy *policy,
                                const struct weir_json *root, struct weir_error *error)
{
	static const char *const alone[] = {"checks", NULL};
	struct exchange *exchange = &connection->exchange;
	struct weir_json checks = weir_json_member(root, "checks");
	size_t count = 1;
	enum weir_status status = WEIR_OK;
	exchange->batch = weir_json_exists(&checks);
	if (exchange->batch)
		status = weir_json_only(root, alone, error);
	if (exchange->batch && status == WEIR_OK)
		status = weir_json_list(&checks, 1, CHECK_HTTP_CHECKS_MAX, &count, error);
	if (status != WEIR_OK)
		return status;
	exchange->checks = weir_alloc(count, sizeof *exchange->checks);
	exchange->check_count = (uint32_t)count;
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_json element = exchange->batch ? weir_json_element(&checks, i) : *root;
		status = add_check(connection, policy, &element, &exchange->checks[i], error);
	}
	return status;
}

/*
 * Adds all that a text asks. Where there is no policy that can be used, none of it can be judged: then it is answered at once,
 * unless on_unavailable is an error.
 *
 * @param policy  in force; NULL: there is none. Set to NULL where it cannot be used, and that is no error
 */
static enum weir_status add_text(struct http_connection *connection, const struct weir_policy **policy,
                                 const struct weir_json *root, struct weir_error *error)
{
	enum weir_status status = add_all(connection, *policy, root, error);
	bool usable = status == WEIR_OK || status == WEIR_INVALID;
	if (usable || connection->base.server->options.on_unavailable == WEIR_ON_UNAVAILABLE_ERROR)
		return status;
	exchange_begin_anew(&connection->exchange);
	*policy = NULL;
	return add_all(connection, NULL, root, error);
}

void json_check_begin(struct http_connection *connection, struct weir_span body)
{
	const struct weir_policy *policy = link_server_policy(connection->base.server);
	struct weir_json_document *document = NULL;
	struct weir_error error;
	if (policy == NULL && connection->base.server->options.on_unavailable == WEIR_ON_UNAVAILABLE_ERROR) {
		reply_problem(connection, 503, "There is no policy yet", "run `weir policy apply`");
		return;
	}
	enum weir_status status = weir_json_parse("body", body.at, body.length, &document, &error);
	if (status == WEIR_OK) {
		struct weir_json root = weir_json_root(document);
		status = add_text(connection, &policy, &root, &error);
	}
	weir_json_document_free(document);
	if (status == WEIR_OK && policy != NULL) {
		exchange_send(connection);
		return;
	}
	if (status == WEIR_OK)
		json_check_reply(connection);
	else if (status == WEIR_INVALID)
		reply_refusal(connection, REFUSAL_ASKED, 400, "The text cannot be read as checks", error.text);
	else
		reply_problem(connection, 503, "There is no policy that can be used", error.text);
	exchange_clear(&connection->exchange);
}

/* ---- the reply ---- */

/* What one zone answers, as members of an object that is open. @return whether it passed */
static bool write_answer(struct http_connection *connection, struct weir_json_writer *json, const struct http_ask *ask)
{
	enum weir_on_unavailable on_unavailable = connection->base.server->options.on_unavailable;
	bool judged = ask->answer.outcome == CHECK_PASSED || ask->answer.outcome == CHECK_BLOCKED;
	bool passed = ask->answer.outcome == CHECK_PASSED ||
	              (!judged && (on_unavailable == WEIR_ON_UNAVAILABLE_ALLOW || ask->answer.outcome == CHECK_NO_ZONE));
	weir_json_write_bool(json, "allowed", passed);
	if (ask->shadow)
		weir_json_write_bool(json, "shadow", true);
	if (!judged) {
		weir_json_write_words(json, "unavailable",
		                      ask->answer.outcome == CHECK_NO_ZONE ? "the zone was removed just now"
		                                                           : check_why_word(ask->answer.why));
		return passed || ask->shadow;
	}
	weir_json_write_int(json, "limit", ask->answer.limit);
	weir_json_write_int(json, "window_ms", ask->answer.window_ms);
	weir_json_write_int(json, "remaining", ask->answer.remaining);
	weir_json_write_int(json, "retry_after_ms", ask->answer.retry_after_ms);
	weir_json_write_int(json, "reset_after_ms", ask->answer.reset_after_ms);
	return passed || ask->shadow;
}

/* A key as the same text takes it. */
static void write_key(struct weir_json_writer *json, const struct http_ask *ask, struct weir_span joined)
{
	char room[WEIR_KEY_MAX_BYTES];
	weir_json_write_string(json, "key", ask->one_field ? check_key_value(joined, room) : joined);
}

/* One check, as members of an object that is open. @return whether it passed */
static bool write_check(struct http_connection *connection, struct weir_json_writer *json,
                        const struct json_check *check)
{
	const struct exchange *exchange = &connection->exchange;
	if (!check->by_fields)
		return write_answer(connection, json, &exchange->asks[check->first]);
	bool passed = true;
	const struct http_ask *unjudged = NULL; /* of no zone */
	weir_json_write_array(json, "zones");
	for (uint32_t i = check->first; i < check->first + check->count; i++) {
		const struct http_ask *ask = &exchange->asks[i];
		if (ask->zone[0] == '\0') {
			unjudged = ask;
			continue;
		}
		weir_json_write_object(json, NULL);
		weir_json_write_words(json, "zone", ask->zone);
		write_key(json, ask, (struct weir_span){.at = exchange->keys.at + ask->key, .length = ask->key_length});
		passed &= write_answer(connection, json, ask);
		weir_json_write_end(json);
	}
	weir_json_write_end(json);
	if (unjudged != NULL)
		return write_answer(connection, json, unjudged);
	weir_json_write_bool(json, "allowed", passed);
	return passed;
}

/* Whether one of the asks could not be judged, and the client is to hear of it as an error. */
static bool has_failed(const struct http_connection *connection)
{
	const struct exchange *exchange = &connection->exchange;
	for (uint32_t i = 0; i < exchange->ask_count; i++)
		if (exchange->asks[i].answer.outcome == CHECK_UNAVAILABLE && !exchange->asks[i].shadow &&
		    connection->base.server->options.on_unavailable == WEIR_ON_UNAVAILABLE_ERROR)
			return true;
	return false;
}

void json_check_reply(struct http_connection *connection)
{
	const struct exchange *exchange = &connection->exchange;
	struct weir_text text = {0};
	struct weir_json_writer json = weir_json_writer(&text);
	bool passed = true;
	weir_json_write_object(&json, NULL);
	if (exchange->batch) {
		weir_json_write_array(&json, "checks");
		for (uint32_t i = 0; i < exchange->check_count; i++) {
			weir_json_write_object(&json, NULL);
			passed &= write_check(connection, &json, &exchange->checks[i]);
			weir_json_write_end(&json);
		}
		weir_json_write_end(&json);
		weir_json_write_bool(&json, "allowed", passed);
	} else {
		(void)write_check(connection, &json, &exchange->checks[0]);
	}
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
	reply_json(connection, has_failed(connection) ? 503 : 200, weir_text_span(&text));
	weir_text_deinit(&text);
}

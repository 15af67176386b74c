/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies: status, what is left, and words.
 *
 * RateLimit and RateLimit-Policy are of draft-ietf-httpapi-ratelimit-headers-11: lists of structured fields, one member a
 * zone. How many requests are left (`r`), in how many seconds there will be more (`t`); how many are let pass (`q`) in how
 * many seconds (`w`). A key is never told: it may be a person.
 */
#include "limiter/check/http/internal.h"
#include "limiter/check/told.h"

static const char quota_exceeded[] = "https://iana.org/assignments/http-problem-types#quota-exceeded";

static const char *reason_of(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {{200, "OK"},
	               {400, "Bad Request"},
	               {401, "Unauthorized"},
	               {403, "Forbidden"},
	               {404, "Not Found"},
	               {405, "Method Not Allowed"},
	               {411, "Length Required"},
	               {413, "Content Too Large"},
	               {429, "Too Many Requests"},
	               {431, "Request Header Fields Too Large"},
	               {500, "Internal Server Error"},
	               {503, "Service Unavailable"}};
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Error";
}

static void put_number(struct weir_text *out, const char *before, int64_t number)
{
	weir_text_puts(out, before);
	weir_text_int(out, number);
}

/* The first line and what every reply has. */
static struct weir_text *open_head(struct http_connection *connection, int status)
{
	struct weir_text *out = &connection->out;
	put_number(out, "HTTP/1.1 ", status);
	weir_text_puts(out, " ");
	weir_text_puts(out, reason_of(status));
	weir_text_puts(out, "\r\nDate: ");
	weir_text_puts(out, http_date(connection->server));
	if (!connection->exchange.keeps_alive) {
		connection->phase = HTTP_ENDS;
		weir_text_puts(out, "\r\nConnection: close");
	} else if (connection->exchange.is_1_0) {
		weir_text_puts(out, "\r\nConnection: keep-alive");
	}
	return out;
}

/* The end of the head, and the body. @param type  NULL: there is no body */
static void close_head(struct http_connection *connection, const char *type, struct weir_span body)
{
	struct weir_text *out = &connection->out;
	if (type != NULL) {
		weir_text_puts(out, "\r\nContent-Type: ");
		weir_text_puts(out, type);
	}
	put_number(out, "\r\nContent-Length: ", body.length);
	weir_text_puts(out, "\r\n\r\n");
	if (!connection->exchange.head_only && body.length > 0)
		weir_text_append(out, body.at, body.length);
}

void reply_json(struct http_connection *connection, int status, struct weir_span body)
{
	(void)open_head(connection, status);
	close_head(connection, "application/json", body);
}

void reply_problem(struct http_connection *connection, int status, const char *title, const char *words)
{
	struct weir_text text = {0};
	struct weir_json_writer json = weir_json_writer(&text);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "title", title);
	weir_json_write_int(&json, "status", status);
	weir_json_write_words(&json, "detail", words);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
	struct weir_text *out = open_head(connection, status);
	if (status == 401)
		weir_text_puts(out, "\r\nWWW-Authenticate: Bearer");
	if (status == 503)
		weir_text_puts(out, "\r\nRetry-After: 1");
	close_head(connection, "application/problem+json", weir_text_span(&text));
	weir_text_deinit(&text);
}

void reply_refusal(struct http_connection *connection, enum refusal_reason reason, int status, const char *title,
                   const char *words)
{
	link_connection_refuse(&connection->base, reason, connection->exchange.path, title, words);
	reply_problem(connection, status, title, words);
}

/* ---- a verdict ---- */

/* What all answers come to. @param told  set: the zones that the reply tells of @param count  set: of told */
static struct told_verdict sum_up(struct http_connection *connection, struct told told[TOLD_ZONES_MAX], uint32_t *count)
{
	struct exchange *exchange = &connection->exchange;
	struct told_verdict verdict = {0};
	*count = 0;
	for (uint32_t i = 0; i < exchange->ask_count; i++) {
		struct http_ask *ask = &exchange->asks[i];
		if (ask->shadow)
			continue;
		told_settle(&ask->answer, connection->base.server->options.on_unavailable);
		told_sum(&verdict, &ask->answer);
		*count = told_add(told, *count, &(struct told){.zone = ask->zone, .answer = &ask->answer});
	}
	return verdict;
}

static void put_field(void *context, const char *name, struct weir_span value)
{
	struct weir_text *out = context;
	weir_text_puts(out, "\r\n");
	weir_text_puts(out, name);
	weir_text_puts(out, ": ");
	weir_text_append(out, value.at, value.length);
}

/* The body of a block: which zones it is of. */
static void write_violations(const struct exchange *exchange, int status, struct weir_text *text)
{
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "type", quota_exceeded);
	weir_json_write_words(&json, "title", "Request cannot be satisfied as assigned quota has been exceeded");
	weir_json_write_int(&json, "status", status);
	weir_json_write_array(&json, "violated-policies");
	for (uint32_t i = 0; i < exchange->ask_count; i++)
		if (!exchange->asks[i].shadow && exchange->asks[i].answer.outcome == CHECK_BLOCKED &&
		    exchange->asks[i].zone[0] != '\0')
			weir_json_write_words(&json, NULL, exchange->asks[i].zone);
	weir_json_write_end(&json);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}

void reply_verdict(struct http_connection *connection)
{
	const struct exchange *exchange = &connection->exchange;
	struct told told[TOLD_ZONES_MAX];
	uint32_t count;
	const struct told_verdict verdict = sum_up(connection, told, &count);
	if (!verdict.blocked && verdict.why != NULL) {
		reply_problem(connection, 503, "The check cannot be judged now", verdict.why);
		return;
	}
	struct weir_text *out = open_head(connection, verdict.blocked ? exchange->denies : 200);
	told_fields(connection->server->options.fields, told, count, put_field, out);
	told_retry_after(&verdict, put_field, out);
	struct weir_text body = {0};
	if (verdict.blocked)
		write_violations(exchange, exchange->denies, &body);
	close_head(connection, verdict.blocked ? "application/problem+json" : NULL, weir_text_span(&body));
	weir_text_deinit(&body);
}

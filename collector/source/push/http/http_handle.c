/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request on its way in: who sends it, what its body is packed in, what it holds, and the spool. It is answered when
 * its lines are on disk, or not at all there.
 */
#include "collector/source/push/http/internal.h"

#include "collector/input/input_unpack.h"
#include "common/bytes/secret.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_S = 1, PIECE_BYTES = 256 << 10, ID_MOST_BYTES = PUSH_ID_MOST_BYTES - 32 };

/* ---- who may enter ---- */

static bool is_one_of(const struct http_config *config, struct weir_span given)
{
	bool found = false;
	for (size_t i = 0; i < config->token_count; i++)
		found |= weir_secret_is(weir_span_of(config->tokens[i]), given);
	return found;
}

/* "NAME:PASSWORD" in base64: the password is the token. */
static bool has_basic(const struct http_config *config, const char *text)
{
	struct weir_text pair = {0};
	bool found = false;
	if (decode_base64(weir_span_of(text), &pair) && pair.length > 0) {
		const char *colon = memchr(pair.at, ':', pair.length);
		if (colon != NULL)
			found = is_one_of(config, (struct weir_span){colon + 1, (uint32_t)(pair.at + pair.length - colon - 1)});
	}
	weir_text_deinit(&pair);
	return found;
}

/* Shippers name the same thing differently. */
static bool has_token(const struct http_config *config, const struct weir_http_request *request)
{
	static const char *const schemes[] = {"Bearer ", "Splunk ", "ApiKey ", NULL};
	const char *field = weir_http_field(request, "Authorization");
	const char *key = weir_http_field(request, "X-Amz-Firehose-Access-Key");
	if (key != NULL && is_one_of(config, weir_span_of(key)))
		return true;
	for (int i = 0; field != NULL && schemes[i] != NULL; i++) {
		size_t length = strlen(schemes[i]);
		if (strncasecmp(field, schemes[i], length) == 0)
			return is_one_of(config, weir_span_of(field + length + strspn(field + length, " ")));
	}
	return field != NULL && strncasecmp(field, "Basic ", 6) == 0 &&
	       has_basic(config, field + 6 + strspn(field + 6, " "));
}

static const struct http_door *door_of(const struct http_source *source, const struct weir_http_request *request)
{
	return http_door_of(&source->config, weir_http_target(request),
	                    weir_http_field(request, "X-Amz-Firehose-Request-Id") != NULL);
}

static void refuse(const struct http_call *call, const struct http_door *door, unsigned status, const char *words)
{
	struct weir_http_reply *reply = call->reply;
	reply->status = status;
	if (status < 500)
		atomic_fetch_add_explicit(&call->source->refused, 1, memory_order_relaxed);
	else
		weir_http_header(reply, "Retry-After", "%d", RETRY_S);
	if (door != NULL && door->refuse != NULL) {
		reply->content_type = door->type;
		door->refuse(call, status, words);
	} else {
		weir_text_printf(&reply->body, "%s\n", words);
	}
}

/* A peer of IPv4, which a socket of both kinds has as an address of IPv6, is the same. */
static bool is_sender(const struct http_config *config, const struct weir_http_request *request)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	struct weir_span peer = weir_http_peer(request);
	struct weir_address address;
	if (config->from.count == 0)
		return true;
	if (peer.length != 4 && peer.length != sizeof address.bytes)
		return false;
	memcpy(address.bytes, mapped, sizeof mapped);
	memcpy(address.bytes + sizeof address.bytes - peer.length, peer.at, peer.length);
	return source_senders_have(&config->from, &address);
}

bool http_admit(struct http_source *source, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	const struct http_config *config = &source->config;
	const struct http_call call = {.source = source, .request = request, .reply = reply};
	if (!is_sender(config, request)) {
		refuse(&call, door_of(source, request), 403, "your address is in no network of this source's \"from\"");
		return false;
	}
	if (config->token_count > 0 && !has_token(config, request)) {
		bool some = weir_http_field(request, "Authorization") != NULL ||
		            weir_http_field(request, "X-Amz-Firehose-Access-Key") != NULL;
		weir_http_header(reply, "WWW-Authenticate", "Bearer");
		refuse(&call, door_of(source, request), 401,
		       some ? "the token is wrong: this source's \"token\" is expected"
		            : "a token is missing: expected \"Authorization: Bearer TOKEN\"");
		return false;
	}
	/* A page of any site can make a browser on this machine send a form here; it names its site as it does. */
	if (!http_knows_senders(config) && weir_http_field(request, "Origin") != NULL) {
		refuse(&call, door_of(source, request), 403, "browsers may not push here: set \"token\"");
		return false;
	}
	return true;
}

void http_begin(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	struct http_source *source = context;
	const struct http_door *door = door_of(source, request);
	const struct http_call call = {.source = source, .request = request, .reply = reply};
	if (!http_admit(source, request, reply))
		return;
	if (door == NULL)
		refuse(&call, NULL, 404, "nothing takes logs at this path");
	else if (door->decode == NULL)
		refuse(&call, door, 405, "this path takes no logs");
	else if (door->pieces && weir_http_field(request, "Content-Encoding") == NULL)
		weir_http_take_pieces(request, PIECE_BYTES);
}

/* ---- what the body is ---- */

static bool begins_with(const char *text, const char *word)
{
	return strncasecmp(text, word, strlen(word)) == 0;
}

/* Types that are no text. NULL: the body may be what is expected. */
static const char *foreign_type(const char *type)
{
	static const char *const foreign[] = {
		"application/x-protobuf", "application/protobuf", "application/grpc",     "application/msgpack",
		"application/x-msgpack",  "multipart/",           "application/x-snappy", NULL};
	for (int i = 0; foreign[i] != NULL; i++)
		if (begins_with(type, foreign[i]))
			return foreign[i];
	return NULL;
}

/*
 * Unpacks the body.
 *
 * @param body  set to what is in it; borrowed from the request or from the call
 * @return 0, or the status of a refusal
 */
static unsigned unpack(struct http_call *call, struct weir_span *body, struct weir_error *error)
{
	const char *encoding = weir_http_field(call->request, "Content-Encoding");
	size_t most = (size_t)call->source->config.body_most_bytes;
	*body = weir_http_body(call->request);
	if (encoding == NULL || encoding[0] == '\0' || strcasecmp(encoding, "identity") == 0 || body->length == 0)
		return 0;
	bool gzip = strcasecmp(encoding, "gzip") == 0 || strcasecmp(encoding, "x-gzip") == 0;
	if (!gzip && strcasecmp(encoding, "zstd") != 0) {
		weir_fail(error, WEIR_INVALID, "the Content-Encoding is not one of gzip, zstd and identity");
		return 415;
	}
	enum weir_status status = input_unpack(gzip ? INPUT_GZIP : INPUT_ZSTD, *body, most, &call->plain, error);
	*body = weir_text_span(&call->plain);
	return status == WEIR_OK ? 0 : status == WEIR_FULL ? 413 : 400;
}

/* Takes the body apart. @return 0, or the status of a refusal */
static unsigned decode(struct http_call *call, const struct http_door *door, struct weir_error *error)
{
	const char *type = weir_http_field(call->request, "Content-Type");
	struct weir_span body;
	push_decode *how = door->decode;
	if (type != NULL && foreign_type(type) != NULL) {
		weir_fail(error, WEIR_INVALID, "the Content-Type is %s: expected text or JSON", foreign_type(type));
		return 415;
	}
	unsigned refusal = unpack(call, &body, error);
	if (refusal != 0)
		return refusal;
	if (how == decode_lines && type != NULL && begins_with(type, "application/json"))
		how = decode_json;
	if (!weir_http_body_ended(call->request)) {
		body.length = (uint32_t)decode_journal_whole(body);
		weir_http_taken(call->request, body.length);
	}
	if (how == decode_lines) {
		call->lines = call->plain.at != NULL ? call->plain : weir_http_move_body(call->request);
		call->plain = (struct weir_text){0};
		if (call->lines.length > 0 && call->lines.at[call->lines.length - 1] != '\n')
			weir_text_append(&call->lines, "\n", 1);
		return 0;
	}
	size_t most = push_spool_batch_most(call->source->base.spool);
	if (call->name.at != NULL && (size_t)call->source->config.body_most_bytes > most)
		most = (size_t)call->source->config.body_most_bytes; /* stored in parts */
	enum weir_status status = how(body, most, &call->lines, &call->answer, error);
	return status == WEIR_OK ? 0 : status == WEIR_FULL ? 413 : 400;
}

/* ---- the spool ---- */

/* Sets the batch's id: a word for where it is from, and what the sender calls it. @return false: it is too long */
static bool set_name(struct http_call *call)
{
	static const char *const names[] = {"X-Amz-Firehose-Request-Id", "Idempotency-Key"};
	for (int i = 0; i < 2; i++) {
		const char *value = weir_http_field(call->request, names[i]);
		if (value == NULL || value[0] == '\0')
			continue;
		if (strlen(value) > ID_MOST_BYTES)
			return false;
		int length = snprintf(call->id, sizeof call->id, "%c:%s", i == 0 ? 'f' : 'k', value);
		call->name = (struct weir_span){.at = call->id, .length = (uint32_t)length};
		break;
	}
	return true;
}

/* Puts the lines into the spool. @return 0, or the status of a refusal */
static unsigned store(struct http_call *call, struct weir_error *error)
{
	struct push_outcome outcome;
	if (call->lines.length == 0)
		return 0;
	enum weir_status status = push_spool_append_wait(call->source->base.spool, call->name, &call->lines, &outcome);
	call->line_count = outcome.lines;
	call->again = outcome.again;
	*error = outcome.why;
	if (status == WEIR_OK)
		return 0;
	if (status == WEIR_INVALID)
		return outcome.clashes ? 422 : 413;
	return 503;
}

/* Refuses a body, or what follows the pieces of it that are stored: sent again, these would count twice. */
static void refuse_body(const struct http_call *call, const struct http_door *door, unsigned status, const char *why)
{
	uint64_t before = weir_http_taken_before(call->request);
	char words[WEIR_ERROR_TEXT_BYTES + 128];
	snprintf(words, sizeof words,
	         "%s (behind the body's first %" PRIu64 " bytes, which were taken: send only what follows them again)", why,
	         before);
	refuse(call, door, status, before > 0 ? words : why);
}

static void take(struct http_call *call, const struct http_door *door)
{
	struct weir_error error = {0};
	if (!door->pieces && !set_name(call)) {
		weir_fail(&error, WEIR_INVALID, "the batch's id has more than %d bytes", ID_MOST_BYTES);
		refuse(call, door, 400, error.text);
		return;
	}
	while (sem_wait(&call->source->decoders) != 0 && errno == EINTR)
		; /* a signal came, and no place is taken yet */
	unsigned refusal = decode(call, door, &error);
	weir_text_deinit(&call->plain);
	sem_post(&call->source->decoders);
	if (refusal == 0)
		refusal = store(call, &error);
	if (refusal != 0) {
		refuse_body(call, door, refusal, error.text);
		return;
	}
	if (!weir_http_body_ended(call->request))
		return;
	call->reply->status = door->status;
	if (door->type != NULL)
		call->reply->content_type = door->type;
	door->accept(call);
}

void http_handle(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	struct http_source *source = context;
	struct http_call call = {.source = source, .request = request, .reply = reply};
	const struct http_door *door = door_of(source, request);
	const char *method = weir_http_method(request);
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
		take(&call, door); /* http_begin() has refused all that has no such door */
	} else if (!http_admit(source, request, reply)) {
		;
	} else if (door != NULL && door->greet != NULL) {
		reply->content_type = door->type;
		door->greet(&call);
	} else {
		refuse(&call, door, door != NULL ? 405 : 404,
		       door != NULL ? "logs are taken by POST" : "nothing takes logs at this path");
	}
	weir_text_deinit(&call.plain);
	weir_text_deinit(&call.lines);
	weir_text_deinit(&call.answer);
}

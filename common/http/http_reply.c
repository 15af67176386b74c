/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies: whole ones, handed over with their memory, and those in parts, of
 * which libmicrohttpd asks for more as the client reads. A part that is not
 * made yet suspends the connection: while it is made on a worker, or waits for
 * one, the server's thread serves others.
 */
#include "common/bytes/hash.h"
#include "common/http/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PACKED_LEAST_BYTES = 1024, BLOCK_BYTES = 32 * 1024 };

void weir_http_refuse(struct weir_http_exchange *exchange, unsigned status, const char *words)
{
	struct weir_http_reply *reply = &exchange->reply;
	struct weir_text body = reply->body;
	weir_text_clear(&body);
	*reply = (struct weir_http_reply){.status = status, .content_type = "text/plain; charset=utf-8", .body = body};
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		weir_http_header(reply, MHD_HTTP_HEADER_ALLOW,
		                 exchange->http->body_most_bytes > 0 ? "GET, HEAD, POST, PUT" : "GET, HEAD");
	if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
		weir_http_header(reply, MHD_HTTP_HEADER_RETRY_AFTER, "1");
	if (exchange->http->refuse != NULL)
		exchange->http->refuse(exchange->http->refuse_context, words, reply);
	else
		weir_text_printf(&reply->body, "%s\n", words);
	exchange->answered = true;
}

/* ---- tags and packing ---- */

/* Whether a list such as "deflate, gzip;q=0.8" takes gzip. */
static bool takes_gzip(const char *list)
{
	const char *at = list != NULL ? strcasestr(list, "gzip") : NULL;
	if (at == NULL)
		return false;
	at += 4;
	at += strspn(at, " \t");
	if (*at != ';')
		return true;
	const char *weight = strstr(at, "q=");
	const char *comma = strchr(at, ',');
	return weight == NULL || (comma != NULL && comma < weight) || strtod(weight + 2, NULL) > 0;
}

/* The tag is weak: packed or not, it is the same answer. */
static void tag(struct weir_http_exchange *exchange, const char *known)
{
	struct weir_http_reply *reply = &exchange->reply;
	snprintf(exchange->tag, sizeof exchange->tag, "W/\"%016" PRIx64 "\"",
	         weir_hash64(reply->body.at, reply->body.length));
	if (known == NULL || (strcmp(known, "*") != 0 && strstr(known, exchange->tag + 2) == NULL))
		return;
	reply->status = MHD_HTTP_NOT_MODIFIED;
	weir_text_clear(&reply->body);
}

static void pack(struct weir_http_exchange *exchange, struct weir_span bytes, bool last)
{
	weir_gzip_add(exchange->gzip, bytes, last, &exchange->reply.body);
}

void weir_http_finish(struct weir_http_exchange *exchange)
{
	struct weir_http_reply *reply = &exchange->reply;
	exchange->answered = true;
	if (reply->tagged && reply->status == MHD_HTTP_OK && reply->more == NULL)
		tag(exchange,
		    MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH));
	bool long_enough = reply->more != NULL || reply->body.length >= PACKED_LEAST_BYTES;
	if (!reply->packed || !long_enough ||
	    !takes_gzip(
			MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING)))
		return;
	exchange->gzip = weir_gzip_new();
	struct weir_text plain = reply->body;
	reply->body = (struct weir_text){0};
	pack(exchange, (struct weir_span){plain.at, (uint32_t)plain.length}, reply->more == NULL);
	weir_text_deinit(&plain);
}

/* ---- parts ---- */

void weir_http_next_part(struct weir_http_exchange *exchange, unsigned worker)
{
	struct weir_http_reply *reply = &exchange->reply;
	enum weir_status status = WEIR_OK;
	weir_text_clear(&reply->body);
	exchange->sent = 0;
	while (status == WEIR_OK && reply->body.length == 0) {
		if (exchange->gzip == NULL) {
			status = reply->more(reply->stream, worker, &reply->body);
			continue;
		}
		struct weir_text plain = {0};
		status = reply->more(reply->stream, worker, &plain);
		if (status == WEIR_END || plain.length > 0)
			pack(exchange, (struct weir_span){plain.length > 0 ? plain.at : "", (uint32_t)plain.length},
			     status == WEIR_END);
		weir_text_deinit(&plain);
	}
	exchange->all_made = status == WEIR_END;
	exchange->broken = status != WEIR_OK && status != WEIR_END;
}

static ssize_t read_part(void *context, uint64_t position, char *room, size_t bytes)
{
	struct weir_http_exchange *exchange = context;
	(void)position;
	size_t left = exchange->reply.body.length - exchange->sent;
	if (exchange->broken)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (left == 0 && exchange->all_made)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (left == 0)
		return weir_http_pool_again(exchange) ? 0 : MHD_CONTENT_READER_END_WITH_ERROR;
	size_t part = left < bytes ? left : bytes;
	memcpy(room, exchange->reply.body.at + exchange->sent, part);
	exchange->sent += part;
	return (ssize_t)part;
}

/* ---- sending ---- */

static struct MHD_Response *response_of(struct weir_http_exchange *exchange)
{
	struct weir_text *body = &exchange->reply.body;
	if (exchange->reply.more != NULL)
		return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_part, exchange, NULL);
	/* The body is libmicrohttpd's from here on; an empty one has no memory to hand over. */
	struct MHD_Response *response =
		MHD_create_response_from_buffer(body->length, body->length > 0 ? body->at : "",
	                                    body->length > 0 ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	if (response != NULL && body->length > 0)
		*body = (struct weir_text){0};
	return response;
}

enum MHD_Result weir_http_send(struct weir_http_exchange *exchange)
{
	const struct weir_http_reply *reply = &exchange->reply;
	struct MHD_Response *response = response_of(exchange);
	if (response == NULL)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
	                        exchange->tag[0] != '\0' ? "private, no-cache" : "no-store");
	if (exchange->tag[0] != '\0')
		MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, exchange->tag);
	if (exchange->gzip != NULL)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	if (reply->packed)
		MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept, Accept-Encoding");
	for (unsigned i = 0; i < reply->header_count; i++)
		MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
	enum MHD_Result result = MHD_queue_response(exchange->connection, reply->status, response);
	MHD_destroy_response(response);
	return result;
}

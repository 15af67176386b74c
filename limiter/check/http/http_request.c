/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for the end of the head first, then cuts it into lines. Of a head that is not whole the beginning alone is looked at: who
 * speaks another protocol waits for an answer, and sends no more.
 */
#include "limiter/check/http/http_request.h"

#include "common/bytes/http_target.h"
#include "common/bytes/http_token.h"

#include <string.h>

enum { LENGTH_DIGITS_MAX = 10, TLS_HANDSHAKE = 0x16 /* the first byte of TLS */ };

static const char bad_end[] = "a line must end with CR LF";

static enum weir_status refuse(struct http_refusal *refusal, int status, const char *words)
{
	*refusal = (struct http_refusal){.status = status, .words = words};
	return WEIR_INVALID;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool http_name_is(struct weir_span name, const char *expected)
{
	uint32_t i = 0;
	while (i < name.length && expected[i] != '\0' && lower(name.at[i]) == expected[i])
		i++;
	return i == name.length && expected[i] == '\0';
}

struct weir_span http_request_header(const struct http_request *request, const char *name)
{
	for (uint32_t i = request->header_count; i > 0; i--)
		if (http_name_is(request->headers[i - 1].name, name))
			return request->headers[i - 1].value;
	return (struct weir_span){0};
}

static bool is_visible(struct weir_span word)
{
	for (uint32_t i = 0; i < word.length; i++)
		if ((unsigned char)word.at[i] <= ' ' || word.at[i] == 0x7f)
			return false;
	return word.length > 0;
}

/*
 * RFC 9110, 5.5: CR, LF and NUL are dangerous, other control characters may stand. Some gateways let their clients write
 * them, and a visitor who does is to be counted as others are.
 */
static bool is_value(struct weir_span word)
{
	return word.length == 0 ||
	       (memchr(word.at, '\0', word.length) == NULL && memchr(word.at, '\r', word.length) == NULL &&
	        memchr(word.at, '\n', word.length) == NULL);
}

static struct weir_span span_between(const char *at, const char *end)
{
	return (struct weir_span){.at = at, .length = (uint32_t)(end - at)};
}

/* Of what begins as no request does. */
static enum weir_status refuse_stranger(const char *bytes, struct http_refusal *refusal)
{
	return refuse(refusal, 400,
	              *bytes == TLS_HANDSHAKE ? "this port speaks HTTP without TLS: \"checks.tls\" has it speak TLS"
	                                      : "this port speaks HTTP: the first line must be METHOD TARGET HTTP/1.1");
}

static enum weir_status read_first_line(struct weir_span line, struct http_request *request,
                                        struct http_refusal *refusal)
{
	const char *end = line.at + line.length, *space = memchr(line.at, ' ', line.length);
	const char *behind = space != NULL ? memchr(space + 1, ' ', (size_t)(end - space - 1)) : NULL;
	if (behind == NULL)
		return refuse_stranger(line.at, refusal);
	request->method = span_between(line.at, space);
	request->target = span_between(space + 1, behind);
	struct weir_span version = span_between(behind + 1, end);
	if (!weir_http_is_token(request->method) || !is_visible(request->target))
		return refuse_stranger(line.at, refusal);
	request->keeps_alive = weir_span_equal(version, weir_span_of("HTTP/1.1"));
	request->is_1_0 = weir_span_equal(version, weir_span_of("HTTP/1.0"));
	if (!request->keeps_alive && !request->is_1_0)
		return refuse(refusal, 400, "only HTTP/1.1 and HTTP/1.0 are spoken here: gRPC is asked at listen.grpc");
	if (!weir_http_target_split(&request->target, &request->authority))
		return refuse(refusal, 400, "the target has no host, or an account before it");
	return WEIR_OK;
}

/* The first line, as far as it has come. @param at  behind blank lines */
static enum weir_status read_beginning(const char *at, const char *limit, struct http_request *request,
                                       struct http_refusal *refusal)
{
	size_t length = (size_t)(limit - at);
	const char *end = memchr(at, '\n', length), *space = memchr(at, ' ', length);
	if (length == 0 || (length == 1 && *at == '\r'))
		return WEIR_AGAIN;
	enum weir_status status = WEIR_OK;
	if (end != NULL && (end == at || end[-1] != '\r'))
		return refuse(refusal, 400, bad_end);
	if (end != NULL)
		status = read_first_line(span_between(at, end - 1), request, refusal);
	else if (!weir_http_is_token(span_between(at, space != NULL ? space : limit)))
		status = refuse_stranger(at, refusal);
	return status == WEIR_OK ? WEIR_AGAIN : status;
}

static enum weir_status read_line(struct weir_span line, struct http_request *request, struct http_refusal *refusal)
{
	const char *end = line.at + line.length, *colon = memchr(line.at, ':', line.length);
	if (request->header_count == HTTP_HEADERS_MAX)
		return refuse(refusal, 431, "too many header fields");
	if (colon == NULL || !weir_http_is_token(span_between(line.at, colon)))
		return refuse(refusal, 400, "a header field must be NAME: VALUE on a line of its own");
	const char *at = colon + 1;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	struct weir_span value = span_between(at, end);
	if (!is_value(value))
		return refuse(refusal, 400, "a header field has a NUL, or a line break");
	request->headers[request->header_count++] =
		(struct http_header){.name = span_between(line.at, colon), .value = value};
	return WEIR_OK;
}

static bool read_length(struct weir_span value, uint64_t *length)
{
	*length = 0;
	for (uint32_t i = 0; i < value.length; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return false;
		*length = *length * 10 + (uint64_t)(value.at[i] - '0');
	}
	return value.length > 0 && value.length <= LENGTH_DIGITS_MAX;
}

static bool has_word(struct weir_span list, const char *word)
{
	for (uint32_t i = 0; i < list.length;) {
		uint32_t begin = i;
		while (i < list.length && list.at[i] != ',' && list.at[i] != ' ')
			i++;
		if (http_name_is(span_between(list.at + begin, list.at + i), word))
			return true;
		i += i == begin || i < list.length;
	}
	return false;
}

/* What the header says of the body and of the connection. */
static enum weir_status read_framing(struct http_request *request, uint64_t *body, struct http_refusal *refusal)
{
	bool known = false, named = false, closes = false, expects = false;
	*body = 0;
	for (uint32_t i = 0; i < request->header_count; i++) {
		const struct http_header *header = &request->headers[i];
		uint64_t length;
		if (http_name_is(header->name, "transfer-encoding"))
			return refuse(refusal, 411, "a body must come with Content-Length, not in chunks");
		if (http_name_is(header->name, "host")) {
			if (named) /* whichever was taken, somebody behind the gateway would take the other one */
				return refuse(refusal, 400, "a request has one Host");
			named = true;
		}
		if (http_name_is(header->name, "connection")) {
			closes |= has_word(header->value, "close");
			request->keeps_alive |= has_word(header->value, "keep-alive");
		}
		expects |= http_name_is(header->name, "expect") && http_name_is(header->value, "100-continue");
		if (!http_name_is(header->name, "content-length"))
			continue;
		if (!read_length(header->value, &length) || (known && length != *body))
			return refuse(refusal, 400, "Content-Length must be one number");
		known = true;
		*body = length;
	}
	request->waits = expects && !request->is_1_0; /* whoever speaks 1.0 does not know how */
	request->keeps_alive &= !closes;
	return *body <= HTTP_BODY_MAX_BYTES ? WEIR_OK : refuse(refusal, 413, "the body is too large");
}

/* @param end  behind the head, its blank line included */
static enum weir_status read_head(const char *at, const char *end, struct http_request *request,
                                  struct http_refusal *refusal)
{
	enum weir_status status = WEIR_OK;
	bool first = true;
	for (const char *stop; status == WEIR_OK && at < end - 2; at = stop + 2, first = false) {
		stop = memchr(at, '\r', (size_t)(end - at));
		if (stop == NULL || stop[1] != '\n' || memchr(at, '\n', (size_t)(stop - at)) != NULL)
			return refuse(refusal, 400, bad_end);
		struct weir_span line = span_between(at, stop);
		status = first ? read_first_line(line, request, refusal) : read_line(line, request, refusal);
	}
	return status;
}

enum weir_status http_request_read(const char *bytes, size_t length, struct http_request *request,
                                   struct http_refusal *refusal)
{
	const char *at = bytes, *limit = bytes + length;
	request->waits = false;
	while (limit - at >= 2 && at[0] == '\r' && at[1] == '\n' && at - bytes < 4)
		at += 2; /* blank lines before a request do not count */
	const char *blank = memmem(at, (size_t)(limit - at), "\r\n\r\n", 4);
	if (blank == NULL)
		return length >= HTTP_HEAD_MAX_BYTES ? refuse(refusal, 431, "the head is too large")
		                                     : read_beginning(at, limit, request, refusal);
	const char *end = blank + 4;
	if (end - bytes > HTTP_HEAD_MAX_BYTES)
		return refuse(refusal, 431, "the head is too large");
	request->header_count = 0;
	uint64_t body;
	enum weir_status status = read_head(at, end, request, refusal);
	if (status == WEIR_OK)
		status = read_framing(request, &body, refusal);
	if (status != WEIR_OK)
		return status;
	if ((uint64_t)(limit - end) < body)
		return WEIR_AGAIN;
	request->body = (struct weir_span){.at = end, .length = (uint32_t)body};
	request->bytes = (size_t)(end - bytes) + (size_t)body;
	return WEIR_OK;
}

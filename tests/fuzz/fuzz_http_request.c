/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a request of HTTP: what is read lies within them, one request behind another, and does not depend on how
 * much of the next has come.
 */
#include "limiter/check/http/http_request.h"

#include "tests/fuzz/require.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_within(struct weir_span span, const char *bytes, size_t length)
{
	require(span.length == 0 || (span.at >= bytes && span.at + span.length <= bytes + length));
}

/* Of a request that is whole: nothing less is, and it has no other form. */
static void require_whole(const char *bytes, const struct http_request *request)
{
	struct http_request less;
	struct http_refusal refusal;
	char *copy = malloc(request->bytes);
	require(copy != NULL);
	memcpy(copy, bytes, request->bytes);
	require(http_request_read(copy, request->bytes, &less, &refusal) == WEIR_OK && less.bytes == request->bytes);
	require(http_request_read(copy, request->bytes - 1, &less, &refusal) == WEIR_AGAIN);
	free(copy);
	require_within(request->method, bytes, request->bytes);
	if (!weir_span_equal(request->target, weir_span_of("/"))) /* which stands for one of absolute form without a path */
		require_within(request->target, bytes, request->bytes);
	require_within(request->body, bytes, request->bytes);
	require(request->header_count <= HTTP_HEADERS_MAX && request->body.length <= HTTP_BODY_MAX_BYTES);
	for (uint32_t i = 0; i < request->header_count; i++) {
		require_within(request->headers[i].name, bytes, request->bytes);
		require_within(request->headers[i].value, bytes, request->bytes);
		require(request->headers[i].name.length > 0);
		require(memchr(request->headers[i].value.at, '\n', request->headers[i].value.length) == NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_request request;
	struct http_refusal refusal = {0};
	const char *at = (const char *)data;
	for (size_t left = size; left > 0;) {
		enum weir_status status = http_request_read(at, left, &request, &refusal);
		if (status == WEIR_INVALID)
			require(refusal.status >= 400 && refusal.status < 600 && refusal.words != NULL);
		if (status != WEIR_OK)
			break;
		require(request.bytes > 0 && request.bytes <= left);
		require_whole(at, &request);
		at += request.bytes;
		left -= request.bytes;
	}
	return 0;
}

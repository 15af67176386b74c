/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether two readers could take a request for different ones. A proxy that reads another length than this server takes a
 * part of the body for the next request, which nobody has looked at (RFC 9112, section 11.2). libmicrohttpd takes the
 * first of two lengths, a length beside chunks, names with blanks and any control character, so each is refused here.
 * What stands behind a NUL cannot be seen: it gives texts that end there.
 */
#include "common/bytes/http_token.h"
#include "common/http/internal.h"

static const char bad_line[] = "a header field must be NAME: VALUE on a line of its own";

struct framing {
	const char *fault; /* NULL: none so far */
	struct weir_span length;
	bool in_chunks;
};

static bool is_value(struct weir_span word)
{
	for (uint32_t i = 0; i < word.length; i++)
		if (((unsigned char)word.at[i] < ' ' && word.at[i] != '\t') || word.at[i] == 0x7f)
			return false;
	return true;
}

static bool is_number(struct weir_span word)
{
	for (uint32_t i = 0; i < word.length; i++)
		if (word.at[i] < '0' || word.at[i] > '9')
			return false;
	return word.length > 0;
}

static bool begins_with(struct weir_span word, const char *expected)
{
	size_t length = strlen(expected);
	return word.length >= length && strncasecmp(word.at, expected, length) == 0;
}

static bool is_word(struct weir_span word, const char *expected)
{
	return word.length == strlen(expected) && begins_with(word, expected);
}

static const char *look_at_length(struct framing *framing, struct weir_span value)
{
	bool known = framing->length.at != NULL;
	if (!is_number(value) || (known && !weir_span_equal(value, framing->length)))
		return "Content-Length must be one number";
	framing->length = value;
	return NULL;
}

static const char *look_at_coding(struct framing *framing, struct weir_span value)
{
	if (framing->in_chunks || !is_word(value, "chunked"))
		return "Transfer-Encoding must be chunked, and said once";
	framing->in_chunks = true;
	return NULL;
}

static enum MHD_Result look(void *context, enum MHD_ValueKind kind, const char *name, size_t name_length,
                            const char *value, size_t value_length)
{
	struct framing *framing = context;
	struct weir_span word = {name, (uint32_t)name_length}, said = {value != NULL ? value : "", (uint32_t)value_length};
	(void)kind;
	bool length = is_word(word, MHD_HTTP_HEADER_CONTENT_LENGTH),
		 coding = is_word(word, MHD_HTTP_HEADER_TRANSFER_ENCODING);
	/* Of a folded line 0.9.75 hangs the second half on the name. */
	bool folded = (!length && begins_with(word, MHD_HTTP_HEADER_CONTENT_LENGTH)) ||
	              (!coding && begins_with(word, MHD_HTTP_HEADER_TRANSFER_ENCODING));
	if (folded || !weir_http_is_token(word))
		framing->fault = bad_line;
	else if (!is_value(said))
		framing->fault = "a header field has a control character";
	else if (length)
		framing->fault = look_at_length(framing, said);
	else if (coding)
		framing->fault = look_at_coding(framing, said);
	return framing->fault == NULL ? MHD_YES : MHD_NO;
}

const char *weir_http_framing_fault(struct MHD_Connection *connection, const char *version)
{
	struct framing framing = {0};
	MHD_get_connection_values_n(connection, MHD_HEADER_KIND, look, &framing);
	if (framing.fault == NULL && framing.in_chunks && framing.length.at != NULL)
		return "a body has a Content-Length or comes in chunks, not both";
	if (framing.fault == NULL && framing.in_chunks && strcmp(version, MHD_HTTP_VERSION_1_0) == 0)
		return "HTTP/1.0 knows no chunks";
	return framing.fault;
}

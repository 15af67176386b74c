/* SPDX-License-Identifier: Apache-2.0 */
/* The query is written in the order of its names: libcurl signs it as it stands. */
#include "collector/source/remote/s3/s3_address.h"

static void put_escaped(struct weir_text *text, struct weir_span value, const char *kept)
{
	static const char figures[] = "0123456789ABCDEF";
	char *to = weir_text_reserve(text, (size_t)value.length * 3);
	for (uint32_t i = 0; i < value.length; i++) {
		unsigned char byte = (unsigned char)value.at[i];
		bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
		             (byte != '\0' && strchr(kept, byte) != NULL);
		if (!plain) {
			*to++ = '%';
			*to++ = figures[byte >> 4];
		}
		*to++ = plain ? (char)byte : figures[byte & 15];
	}
	text->length = (size_t)(to - text->at);
}

void s3_escape(struct weir_text *text, struct weir_span value)
{
	put_escaped(text, value, "-._~");
}

void s3_escape_key(struct weir_text *text, struct weir_span key)
{
	put_escaped(text, key, "-._~/");
}

void s3_put_bucket(struct weir_text *text, const char *url, const char *bucket, bool path_style)
{
	size_t length = strlen(url);
	while (length > 0 && url[length - 1] == '/')
		length--;
	const char *host = strstr(url, "://");
	size_t scheme = host != NULL ? (size_t)(host - url) + 3 : 0;
	if (path_style)
		weir_text_printf(text, "%.*s/%s", (int)length, url, bucket);
	else
		weir_text_printf(text, "%.*s%s.%.*s", (int)scheme, url, bucket, (int)(length - scheme), url + scheme);
}

void s3_put_listing(struct weir_text *text, const char *prefix, const char *after, const char *next)
{
	weir_text_puts(text, "?");
	if (next != NULL) {
		weir_text_puts(text, "continuation-token=");
		s3_escape(text, weir_span_of(next));
		weir_text_puts(text, "&");
	}
	weir_text_puts(text, "encoding-type=url&list-type=2");
	if (prefix[0] != '\0') {
		weir_text_puts(text, "&prefix=");
		s3_escape(text, weir_span_of(prefix));
	}
	if (next == NULL && after[0] != '\0') {
		weir_text_puts(text, "&start-after=");
		s3_escape(text, weir_span_of(after));
	}
}

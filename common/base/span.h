/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that belong to someone else: a pointer and a length, not terminated. */
#ifndef WEIR_COMMON_SPAN_H
#define WEIR_COMMON_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct weir_span {
	const char *at; /* NULL: absent (an empty value is not absent) */
	uint32_t length;
};

static inline struct weir_span weir_span_of(const char *text)
{
	return (struct weir_span){.at = text, .length = (uint32_t)strlen(text)};
}

static inline bool weir_span_equal(struct weir_span a, struct weir_span b)
{
	return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

static inline bool weir_span_begins(struct weir_span span, const char *text)
{
	size_t length = strlen(text);
	return span.length >= length && memcmp(span.at, text, length) == 0;
}

#endif

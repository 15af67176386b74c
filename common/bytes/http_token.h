/* SPDX-License-Identifier: Apache-2.0 */
/* Names of HTTP: RFC 9110, section 5.6.2, of which methods and the names of header fields are. */
#ifndef WEIR_COMMON_HTTP_TOKEN_H
#define WEIR_COMMON_HTTP_TOKEN_H

#include "common/base/span.h"

#include <stdbool.h>
#include <string.h>

/** Whether a word is a token: letters, digits and some signs, one of them at least. */
static inline bool weir_http_is_token(struct weir_span word)
{
	for (uint32_t i = 0; i < word.length; i++) {
		char c = word.at[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), digit = c >= '0' && c <= '9';
		if (!letter && !digit && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
			return false;
	}
	return word.length > 0;
}

#endif

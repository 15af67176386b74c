/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of words: in place, as what is cleaned is often all there is room for (an error, a log line). */
#include "common/base/words.h"

#include <string.h>

void weir_words_clean(char *words)
{
	char *out = words;
	size_t left = strlen(words);
	while (left > 0) {
		size_t control = weir_control_bytes(words, left);
		size_t taken = control > 0 ? control : 1;
		*out++ = control > 0 ? ' ' : *words;
		words += taken;
		left -= taken;
	}
	*out = '\0';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool weir_words_alike(const char *one, const char *other)
{
	while (*one != '\0' && *other != '\0') {
		if (is_digit(*one) && is_digit(*other)) {
			one += strspn(one, "0123456789");
			other += strspn(other, "0123456789");
		} else if (*one++ != *other++) {
			return false;
		}
	}
	return *one == *other;
}

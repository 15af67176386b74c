/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as RESP writes them: in heads of tokens, and as words of commands. */
#ifndef WEIR_COMMON_RESP_NUMBER_H
#define WEIR_COMMON_RESP_NUMBER_H

#include "common/base/span.h"

enum { WEIR_RESP_NUMBER_MAX_BYTES = 24 };

/** Reads a decimal number, which is all of the text. @return false: it is none, or too large to count with */
static inline bool weir_resp_number(struct weir_span text, int64_t *number)
{
	bool negative = text.length > 0 && text.at[0] == '-';
	uint32_t i = negative;
	int64_t value = 0;
	if (text.length > WEIR_RESP_NUMBER_MAX_BYTES || i == text.length)
		return false;
	for (; i < text.length; i++) {
		if (text.at[i] < '0' || text.at[i] > '9' || value > INT64_MAX / 16)
			return false;
		value = value * 10 + (text.at[i] - '0');
	}
	*number = negative ? -value : value;
	return true;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as RESP writes them: in heads of tokens, and as words of commands. */
#ifndef WEIR_COMMON_RESP_NUMBER_H
#define WEIR_COMMON_RESP_NUMBER_H

#include "common/base/span.h"

enum { WEIR_RESP_NUMBER_MAX_BYTES = 24 };

/**
 * Reads a decimal number of 64 bits, which is all of the text, as Redis does: with `-` before it or nothing, and in no other way than
 * it would be written. So `+1`, ` 1`, `01` and `-0` are none.
 *
 * @return false: it is none, or has more
 */
static inline bool weir_resp_number(struct weir_span text, int64_t *number)
{
	bool negative = text.length > 0 && text.at[0] == '-';
	uint64_t value = 0, most = (uint64_t)INT64_MAX + negative;
	uint32_t i = negative;
	if (text.length > WEIR_RESP_NUMBER_MAX_BYTES || i == text.length || (text.at[i] == '0' && text.length > 1))
		return false;
	for (; i < text.length; i++) {
		uint64_t digit = (uint64_t)(uint8_t)text.at[i] - '0';
		if (digit > 9 || value > (most - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*number = (int64_t)(negative ? -value : value);
	return true;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Words of checks that people read. */
#include "limiter/check/check.h"

const char *check_why_word(enum check_why why)
{
	static const char *const words[CHECK_WHY_COUNT] = {
		[CHECK_WHY_NONE] = "",
		[CHECK_WHY_LOADING] = "loading",
		[CHECK_WHY_MOVING] = "moving",
		[CHECK_WHY_FULL] = "full",
		[CHECK_WHY_UNACKNOWLEDGED] = "unacknowledged",
		[CHECK_WHY_NOT_OWNER] = "not the owner",
		[CHECK_WHY_LATE] = "late",
	};
	return words[why];
}

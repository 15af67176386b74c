/* SPDX-License-Identifier: Apache-2.0 */
/* Counted by chunk: a line costs nothing here. */
#include "collector/follow/format_watch.h"

enum {
	WINDOW_LINES = 1000,
	WINDOW_MS = 60000,
	LINES_LEAST = 10, /* of a window that is over by its age: fewer say nothing */
};

bool format_watch_add(struct format_watch *watch, uint64_t lines, uint64_t malformed, int64_t now_ms)
{
	if (watch->lines == 0)
		watch->began_ms = now_ms;
	watch->lines += lines;
	watch->malformed += malformed;
	bool old = now_ms - watch->began_ms >= WINDOW_MS && watch->lines >= LINES_LEAST;
	if (watch->lines < WINDOW_LINES && !old)
		return false;
	if (watch->malformed * 2 > watch->lines)
		watch->changed = true;
	else if (watch->malformed * 4 < watch->lines)
		watch->changed = false;
	watch->last_lines = watch->lines;
	watch->last_malformed = watch->malformed;
	watch->lines = watch->malformed = 0;
	return true;
}

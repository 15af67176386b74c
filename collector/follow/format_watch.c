/* SPDX-License-Identifier: Apache-2.0 */
/* Counted by chunk: a line costs nothing here. */
#include "collector/follow/format_watch.h"

enum {
	WINDOW_LINES = 1000,
	WINDOW_MS = 60000,
	LINES_LEAST = 10, /* of a window that is over by its age: fewer say nothing */
	AGE_MAX_MS = 600000,
};

static void end_window(struct format_watch *watch)
{
	if (watch->malformed * 2 > watch->lines)
		watch->changed = true;
	else if (watch->malformed * 4 < watch->lines)
		watch->changed = false;
	watch->last_lines = watch->lines;
	watch->last_malformed = watch->malformed;
	watch->lines = watch->malformed = 0;
}

static bool is_over(const struct format_watch *watch, int64_t now_ms)
{
	bool wrong_from_the_start = !watch->fitted && !watch->changed && watch->malformed >= LINES_LEAST;
	return wrong_from_the_start || watch->lines >= WINDOW_LINES ||
	       (watch->lines >= LINES_LEAST && now_ms - watch->began_ms >= WINDOW_MS);
}

bool format_watch_add(struct format_watch *watch, uint64_t lines, uint64_t records, uint64_t malformed, int64_t now_ms)
{
	bool ended = is_over(watch, now_ms); /* a silence has ended it: these lines are of the next one */
	if (ended)
		end_window(watch);
	else if (now_ms - watch->began_ms >= AGE_MAX_MS)
		watch->lines = watch->malformed = 0;
	if (watch->lines == 0)
		watch->began_ms = now_ms;
	watch->lines += lines;
	watch->malformed += malformed;
	watch->fitted |= records > 0;
	if (!is_over(watch, now_ms))
		return ended;
	end_window(watch);
	return true;
}

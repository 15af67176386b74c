/* SPDX-License-Identifier: Apache-2.0 */
/* A chunk of lines is one observation, so that a busy log costs no more than a quiet one. */
#include "collector/follow/clock_watch.h"

#include "collector/input/lines.h"
#include "common/base/alloc.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	WINDOW_MS = 20000,
	WINDOW_CHUNKS = 2,
	WINDOWS_LEAST = 3,
	AGREE_MS = 30000, /* a backlog that is read at twice the clock's speed moves further in three windows */
	MINUTE_MS = 60000,
	HOUR_MS = 60 * MINUTE_MS,
	QUARTER_MS = 15 * MINUTE_MS,
	ZONE_MOST_MS = 14 * HOUR_MS,
	TAIL_BYTES = 1 << 16,
	HEAD_BYTES = 1 << 14, /* in which a header line is */
	WRITE_MS = 10000,     /* between a line's time and its writing, at most */
};

static int64_t magnitude(int64_t ms)
{
	return ms < 0 ? -ms : ms;
}

static void end_window(struct clock_watch *watch)
{
	int64_t least_ms = watch->least_ms;
	if (watch->windows == 0 || magnitude(least_ms - watch->row_ms) > AGREE_MS) {
		watch->windows = 0;
		watch->row_ms = least_ms;
	}
	watch->windows += watch->windows < WINDOWS_LEAST;
	if (magnitude(least_ms) < CLOCK_LEAST_MS)
		watch->behind_ms = 0;
	else if (watch->windows == WINDOWS_LEAST)
		watch->behind_ms = watch->row_ms;
	watch->seen = 0;
}

bool clock_watch_add(struct clock_watch *watch, int64_t behind_ms, int64_t now_ms)
{
	if (watch->seen == 0) {
		watch->began_ms = now_ms;
		watch->least_ms = behind_ms;
	}
	watch->seen += watch->seen < WINDOW_CHUNKS;
	if (behind_ms < watch->least_ms)
		watch->least_ms = behind_ms;
	if (watch->seen < WINDOW_CHUNKS || now_ms - watch->began_ms < WINDOW_MS)
		return false;
	end_window(watch);
	return true;
}

/* ---- words ---- */

void clock_watch_words(struct weir_text *text, int64_t behind_ms)
{
	int64_t minutes = (magnitude(behind_ms) + MINUTE_MS / 2) / MINUTE_MS;
	if (minutes >= 48 * 60)
		weir_text_printf(text, "%lld days", (long long)(minutes / (24 * 60)));
	else if (minutes < 60)
		weir_text_printf(text, "%lld min", (long long)minutes);
	else if (minutes % 60 == 0)
		weir_text_printf(text, "%lld h", (long long)(minutes / 60));
	else
		weir_text_printf(text, "%lld h %lld min", (long long)(minutes / 60), (long long)(minutes % 60));
	weir_text_puts(text, behind_ms < 0 ? " ahead of" : " behind");
}

/* The whole quarters of an hour that a difference is, or nearly is. */
static int64_t quarters(int64_t behind_ms)
{
	int64_t most = magnitude(behind_ms) + QUARTER_MS / 2;
	return (behind_ms < 0 ? -1 : 1) * (most / QUARTER_MS) * QUARTER_MS;
}

static bool is_of_zones(int64_t behind_ms, int64_t most_off_ms)
{
	return magnitude(behind_ms) >= CLOCK_LEAST_MS - most_off_ms && magnitude(behind_ms) <= 2 * ZONE_MOST_MS &&
	       magnitude(behind_ms - quarters(behind_ms)) <= most_off_ms;
}

void clock_watch_advice(struct weir_text *text, const struct format *format, int64_t behind_ms)
{
	int32_t now_s = 0;
	bool local = format_time_is_local(format, &now_s);
	int64_t offset_ms = now_s * INT64_C(1000) - quarters(behind_ms), minutes = magnitude(offset_ms) / MINUTE_MS;
	if (local && is_of_zones(behind_ms, MINUTE_MS) && magnitude(offset_ms) <= ZONE_MOST_MS)
		weir_text_printf(
			text,
			"Its times have no zone: say which in the source's \"format\", \"time_zone\": \"%c%02lld:%02lld\", or "
			"better by name, such as \"America/New_York\"",
			offset_ms < 0 ? '-' : '+', (long long)(minutes / 60), (long long)(minutes % 60));
	else
		weir_text_printf(text, "Correct the clock where the log is written, or here%s",
		                 local ? ", or say the log's \"time_zone\" in the source's \"format\"" : "");
}

/* ---- a file at rest ---- */

/* @return the newest time of the lines, or -1 */
static int64_t newest_time(struct format *format, const char *bytes, size_t length)
{
	int64_t newest_ms = -1;
	struct weir_record record;
	const char *end = bytes + length, *newline;
	for (const char *line = bytes; (newline = memchr(line, '\n', (size_t)(end - line))) != NULL; line = newline + 1) {
		uint32_t trimmed = lines_trim(line, 0, (uint32_t)(newline - line));
		if (format_parse(format, line, trimmed, &record) == FORMAT_OK && record.time_ms > newest_ms)
			newest_ms = record.time_ms;
	}
	return newest_ms;
}

static int64_t newest_of_file(struct format *format, int fd, size_t size)
{
	char *bytes = weir_alloc(TAIL_BYTES, 1);
	size_t length = size < TAIL_BYTES ? size : TAIL_BYTES, whole = 0;
	ssize_t got = size > length ? pread(fd, bytes, HEAD_BYTES, 0) : 0;
	if (got > 0)
		(void)newest_time(format, bytes, (size_t)got);
	got = pread(fd, bytes, length, (off_t)(size - length));
	if (got > 0 && size > length) { /* it begins within a line */
		const char *newline = memchr(bytes, '\n', (size_t)got);
		whole = newline != NULL ? (size_t)(newline + 1 - bytes) : (size_t)got;
	}
	int64_t newest_ms = got > 0 ? newest_time(format, bytes + whole, (size_t)got - whole) : -1;
	free(bytes);
	return newest_ms;
}

bool clock_watch_file(struct format *format, const char *path, int64_t *behind_ms)
{
	struct stat about;
	int32_t offset_s;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	int64_t newest_ms = -1;
	if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
		int64_t written_ms = (int64_t)about.st_mtim.tv_sec * 1000 + about.st_mtim.tv_nsec / 1000000;
		format_set_reference(format, written_ms);
		newest_ms = newest_of_file(format, fd, (size_t)about.st_size);
		*behind_ms = written_ms - newest_ms;
	}
	close(fd);
	return newest_ms >= 0 && format_time_is_local(format, &offset_s) && is_of_zones(*behind_ms, WRITE_MS);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines, and lasting faults logged once.
 *
 * A line is built whole and leaves in one write(), so that lines of several
 * threads and processes on one descriptor do not mix. What the words carry may
 * come from anyone's log file: control characters never reach the terminal.
 */
#include "common/log/log.h"

#include "common/base/text.h"
#include "common/base/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORDS_MAX_BYTES = 2048 }; /* longer words are cut: a line fits into a pipe's atomic 4 KiB */

static const char *const level_names[] = {
	[WEIR_LOG_DEBUG] = "DEBUG",
	[WEIR_LOG_INFO] = "INFO",
	[WEIR_LOG_WARNING] = "WARNING",
	[WEIR_LOG_ERROR] = "ERROR",
};

static const char *const level_names_json[] = {
	[WEIR_LOG_DEBUG] = "debug",
	[WEIR_LOG_INFO] = "info",
	[WEIR_LOG_WARNING] = "warning",
	[WEIR_LOG_ERROR] = "error",
};

static void append_time(struct weir_text *line)
{
	struct timespec clock;
	struct tm parts;
	clock_gettime(CLOCK_REALTIME, &clock);
	gmtime_r(&clock.tv_sec, &parts);
	weir_text_printf(line, "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ", parts.tm_year + 1900, parts.tm_mon + 1,
	                 parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, clock.tv_nsec / 1000000);
}

static void write_line(const struct weir_log *log, enum weir_log_level level, const char *part, const char *words)
{
	struct weir_text line = {0};
	if (log->unfinished != NULL && *log->unfinished)
		weir_text_puts(&line, "\r\033[K");
	if (log->json) { /* by hand: the log stands below the writer of JSON, and knows nothing of it */
		weir_text_puts(&line, "{\"time\":\"");
		append_time(&line);
		weir_text_printf(&line, "\",\"level\":\"%s\",\"part\":", level_names_json[level]);
		weir_text_json(&line, weir_span_of(part));
		weir_text_puts(&line, ",\"message\":");
		weir_text_json(&line, weir_span_of(words));
		weir_text_puts(&line, "}\n");
	} else {
		append_time(&line);
		weir_text_printf(&line, " %s %s: %s\n", level_names[level], part, words);
	}
	/* Where the log itself cannot be written there is no one left to tell. */
	while (write(log->fd, line.at, line.length) < 0 && errno == EINTR)
		;
	weir_text_deinit(&line);
}

/* One line of printable characters: a break or any other control character becomes a space. */
static void format_words(char *words, size_t bytes, const char *format, va_list args)
{
	if (vsnprintf(words, bytes, format, args) < 0)
		words[0] = '\0';
	weir_words_clean(words);
}

void weir_log(const struct weir_log *log, enum weir_log_level level, const char *part, const char *format, ...)
{
	if (level < log->level)
		return;
	char words[WORDS_MAX_BYTES];
	va_list args;
	va_start(args, format);
	format_words(words, sizeof words, format, args);
	va_end(args);
	write_line(log, level, part, words);
}

void weir_fault_raise(struct weir_fault *fault, const struct weir_log *log, const char *part, const char *format, ...)
{
	char words[sizeof fault->text];
	va_list args;
	va_start(args, format);
	format_words(words, sizeof words, format, args);
	va_end(args);

	fault->times = fault->on ? fault->times + 1 : 1;
	if (fault->on && strcmp(fault->text, words) == 0)
		return;
	fault->on = true;
	memcpy(fault->text, words, sizeof words);
	if (log->level <= WEIR_LOG_WARNING)
		write_line(log, WEIR_LOG_WARNING, part, words);
}

void weir_fault_clear(struct weir_fault *fault, const struct weir_log *log, const char *part)
{
	if (!fault->on)
		return;
	fault->on = false;
	weir_log(log, WEIR_LOG_INFO, part, "recovered after %llu failed %s: %s", (unsigned long long)fault->times,
	         fault->times == 1 ? "try" : "tries", fault->text);
}

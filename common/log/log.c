/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines, and lasting faults logged once.
 *
 * A line is built whole and leaves in one write(), so that lines of several
 * threads and processes on one descriptor do not mix. What the words carry may
 * come from anyone's log file: control characters never reach the terminal.
 */
#include "common/log/log.h"

#include "common/base/clock.h"
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

/* ---- troubles that last ---- */

enum {
	REPEAT_MS = 10 * 60 * 1000,
	CALM_MS = 60 * 1000, /* one line in this time is no flood */
	LASTING_MS = 5 * 1000,
	LINES_MAX = 6, /* of one trouble, that may follow each other more closely */
};

int64_t weir_log_clock_ms(const struct weir_log *log)
{
	return log->clock_ms != NULL ? log->clock_ms() : weir_clock_ms(CLOCK_BOOTTIME); /* suspended, it lasts too */
}

const char *weir_age(int64_t age_ms, char text[WEIR_AGE_BYTES])
{
	long long s = age_ms / 1000;
	if (s < 60)
		snprintf(text, WEIR_AGE_BYTES, "%lld s", s);
	else if (s < 3600)
		snprintf(text, WEIR_AGE_BYTES, s < 600 && s % 60 != 0 ? "%lld min %lld s" : "%lld min", s / 60, s % 60);
	else if (s < 86400)
		snprintf(text, WEIR_AGE_BYTES, s / 60 % 60 != 0 ? "%lld h %lld min" : "%lld h", s / 3600, s / 60 % 60);
	else
		snprintf(text, WEIR_AGE_BYTES, s / 3600 % 24 != 0 ? "%lld d %lld h" : "%lld d", s / 86400, s / 3600 % 24);
	return text;
}

/* Counts one more line. @return false: there were enough of them lately */
static bool may_tell(uint32_t *lines, int64_t told_ms, int64_t now_ms)
{
	int64_t earned = (now_ms - told_ms) / CALM_MS;
	*lines = *lines > earned ? *lines - (uint32_t)earned : 0;
	if (*lines >= LINES_MAX)
		return false;
	++*lines;
	return true;
}

void weir_notice_log(struct weir_notice *notice, const struct weir_log *log, enum weir_log_level level,
                     const char *part, const char *format, ...)
{
	int64_t now_ms = weir_log_clock_ms(log);
	if (!may_tell(&notice->lines, notice->told_ms, now_ms)) {
		notice->left_out++;
		return;
	}
	char words[WORDS_MAX_BYTES];
	va_list args;
	va_start(args, format);
	format_words(words, sizeof words, format, args);
	va_end(args);
	if (notice->left_out > 0)
		weir_log(log, level, part, "%s (and %llu more like it since the last such line)", words,
		         (unsigned long long)notice->left_out);
	else
		weir_log(log, level, part, "%s", words);
	notice->told_ms = now_ms;
	notice->left_out = 0;
}

static void tell(struct weir_fault *fault, const struct weir_log *log, const char *part, int64_t now_ms)
{
	char age[WEIR_AGE_BYTES];
	int64_t age_ms = now_ms - fault->since_ms;
	fault->told = fault->begun_told = true;
	fault->told_ms = now_ms;
	if (age_ms < CALM_MS)
		weir_log(log, fault->level, part, "%s", fault->text);
	else
		weir_log(log, fault->level, part, "for %s: %s", weir_age(age_ms, age), fault->text);
}

void weir_fault_remind(struct weir_fault *fault, const struct weir_log *log, const char *part)
{
	int64_t now_ms = weir_log_clock_ms(log);
	if (!fault->on)
		return;
	if (now_ms - fault->told_ms >= (fault->told ? REPEAT_MS : CALM_MS))
		tell(fault, log, part, now_ms);
}

bool weir_lasting_failed(struct weir_lasting *lasting, const struct weir_log *log, bool others)
{
	int64_t now_ms = weir_log_clock_ms(log);
	if (lasting->since_ms == 0 || others)
		lasting->since_ms = now_ms;
	return now_ms - lasting->since_ms >= LASTING_MS;
}

static void raise_words(struct weir_fault *fault, const struct weir_log *log, const char *part, const char *words)
{
	int64_t now_ms = weir_log_clock_ms(log);
	bool begins = !fault->on, news = begins || !weir_words_alike(fault->text, words);
	if (begins) {
		fault->since_ms = now_ms;
		fault->begun_told = false;
	}
	fault->times = begins ? 1 : fault->times + 1;
	fault->on = true;
	snprintf(fault->text, sizeof fault->text, "%s", words);
	if (!news) {
		weir_fault_remind(fault, log, part);
		return;
	}
	fault->told = false;
	if (may_tell(&fault->lines, fault->told_ms, now_ms))
		tell(fault, log, part, now_ms);
}

static void raise_at(struct weir_fault *fault, const struct weir_log *log, enum weir_log_level level, const char *part,
                     const char *format, va_list args)
{
	char words[sizeof fault->text];
	format_words(words, sizeof words, format, args);
	fault->level = level;
	raise_words(fault, log, part, words);
}

void weir_fault_raise_at(struct weir_fault *fault, const struct weir_log *log, enum weir_log_level level,
                         const char *part, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	raise_at(fault, log, level, part, format, args);
	va_end(args);
}

void weir_fault_raise(struct weir_fault *fault, const struct weir_log *log, const char *part, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	raise_at(fault, log, WEIR_LOG_WARNING, part, format, args);
	va_end(args);
}

/* A trouble of which nothing was told ends without a line too: what the log said last of it was that it is over. */
static void end_fault(struct weir_fault *fault, const struct weir_log *log, const char *part, const char *words)
{
	char age[WEIR_AGE_BYTES];
	int64_t now_ms = weir_log_clock_ms(log);
	fault->on = false;
	if (!fault->begun_told)
		return;
	weir_log(log, WEIR_LOG_INFO, part, "recovered after %s (%llu attempt%s): %s",
	         weir_age(now_ms - fault->since_ms, age), (unsigned long long)fault->times, fault->times == 1 ? "" : "s",
	         words);
}

void weir_fault_over(struct weir_fault *fault, const struct weir_log *log, const char *part, const char *format, ...)
{
	if (!fault->on)
		return;
	char words[sizeof fault->text];
	va_list args;
	va_start(args, format);
	format_words(words, sizeof words, format, args);
	va_end(args);
	end_fault(fault, log, part, words);
}

void weir_fault_clear(struct weir_fault *fault, const struct weir_log *log, const char *part)
{
	if (!fault->on)
		return;
	char words[sizeof fault->text + 16];
	const char *end = strstr(fault->text, ". "); /* what happened; the rest is what it meant and asked for */
	int length = end != NULL ? (int)(end - fault->text) : (int)strlen(fault->text);
	snprintf(words, sizeof words, "this is over: %.*s", length, fault->text);
	end_fault(fault, log, part, words);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completes headers. The usual cases cost little more than a copy: complete headers, or many in the same second.
 */
#include "collector/source/syslog/syslog_line.h"

#include "collector/record/syslog_header.h"
#include "collector/record/time_civil.h"

#include <stdio.h>
#include <time.h>

void syslog_line_init(struct syslog_line *line, struct time_zone *zone)
{
	*line = (struct syslog_line){.second = -1};
	time_reader_init(&line->time, zone);
}

void syslog_line_deinit(struct syslog_line *line)
{
	time_reader_deinit(&line->time);
	weir_text_deinit(&line->flat);
}

static void set_year(struct syslog_line *line, int64_t now_ms)
{
	if (now_ms >= line->year_from_ms && now_ms < line->year_to_ms)
		return;
	time_t seconds = (time_t)(now_ms / 1000);
	struct tm now;
	gmtime_r(&seconds, &now);
	line->year = now.tm_year + 1900;
	line->year_from_ms = civil_days(line->year, 1, 1) * DAY_MS;
	line->year_to_ms = civil_days(line->year + 1, 1, 1) * DAY_MS;
}

/*
 * Finds the time nearest to now by trying this year, the last and the next one, until one is within half a year. A 29th
 * of February may exist in only one of them.
 */
static bool guess_year(struct syslog_line *line, struct weir_span text, int64_t now_ms, int64_t *time_ms)
{
	const int64_t half_year_ms = 182 * DAY_MS;
	static const int32_t years[] = {0, -1, 1};
	int64_t nearest_ms = INT64_MAX;
	set_year(line, now_ms);
	for (int i = 0; i < 3 && nearest_ms > half_year_ms; i++) {
		int64_t candidate_ms, distance_ms;
		line->time.first_year = line->year + years[i];
		line->time.first_month = 1;
		if (time_read(&line->time, text, &candidate_ms) != FORMAT_OK)
			continue;
		distance_ms = candidate_ms > now_ms ? candidate_ms - now_ms : now_ms - candidate_ms;
		if (distance_ms >= nearest_ms)
			continue;
		nearest_ms = distance_ms;
		*time_ms = candidate_ms;
	}
	return nearest_ms < INT64_MAX;
}

/* "2003-10-11T22:14:15.003Z" */
static void put_time(struct syslog_line *line, int64_t time_ms, struct weir_text *text)
{
	int64_t second = time_ms / 1000;
	if (second != line->second) {
		time_t seconds = (time_t)second;
		struct tm parts;
		gmtime_r(&seconds, &parts);
		strftime(line->second_text, sizeof line->second_text, "%Y-%m-%dT%H:%M:%S", &parts);
		line->second = second;
	}
	weir_text_puts(text, line->second_text);
	weir_text_printf(text, ".%03dZ", (int)(time_ms % 1000));
}

static void put_word(struct weir_text *text, struct weir_span word)
{
	weir_text_append(text, " ", 1);
	if (word.length > 0)
		weir_text_append(text, word.at, word.length);
	else
		weir_text_append(text, "-", 1);
}

/* The message with spaces in place of newlines, as any newline would end the line. */
static struct weir_span flatten(struct syslog_line *line, struct weir_span message)
{
	if (memchr(message.at, '\n', message.length) == NULL)
		return message;
	weir_text_clear(&line->flat);
	weir_text_append(&line->flat, message.at, message.length);
	char *end = line->flat.at + line->flat.length, *newline = line->flat.at;
	while ((newline = memchr(newline, '\n', (size_t)(end - newline))) != NULL)
		*newline = ' ';
	return (struct weir_span){.at = line->flat.at, .length = message.length};
}

static bool is_trailer(char c)
{
	return c == '\n' || c == '\r' || c == '\0';
}

/* Reads the header's time, or takes the clock's where it is none. @return false: it has one that cannot be read */
static bool read_time(struct syslog_line *line, const struct syslog_header *header, int64_t now_ms, int64_t *time_ms)
{
	*time_ms = now_ms;
	if (header->time.length == 0 || header->unset)
		return true;
	bool yearless = header->time.at[0] < '0' || header->time.at[0] > '9';
	if (yearless)
		return guess_year(line, header->time, now_ms, time_ms);
	return time_read(&line->time, header->time, time_ms) == FORMAT_OK;
}

bool syslog_line_put(struct syslog_line *line, struct weir_span message, int64_t now_ms, struct weir_text *text)
{
	enum { PRIORITY_DEFAULT = 13 }; /* user.notice, which RFC 3164 sets for messages without a priority */
	struct syslog_header header;
	int64_t time_ms;
	while (message.length > 0 && is_trailer(message.at[message.length - 1]))
		message.length--;
	if (message.length == 0)
		return false;
	message = flatten(line, message);
	bool good = syslog_header_parse(message, &header) && read_time(line, &header, now_ms, &time_ms);
	if (!good || (header.modern && header.time.length > 0)) {
		weir_text_append(text, message.at, message.length);
		weir_text_append(text, "\n", 1);
		return good;
	}
	weir_text_printf(text, "<%d>1 ", header.priority >= 0 ? header.priority : PRIORITY_DEFAULT);
	put_time(line, time_ms, text);
	put_word(text, header.host);
	put_word(text, header.app);
	put_word(text, header.procid);
	put_word(text, header.msgid);
	put_word(text, header.data);
	weir_text_append(text, " ", 1);
	weir_text_append(text, header.message.at, header.message.length);
	weir_text_append(text, "\n", 1);
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits combined lines by the letter of the grammar.
 *
 * Most lines never come here: format_combined.c takes the common shape in one go. This is for all others, and what the
 * tests hold that shortcut against, so it is written to be read.
 */
#include "collector/format/combined_line.h"

#include "collector/record/find.h"

static struct weir_span between(const char *begin, const char *end)
{
	return (struct weir_span){.at = begin, .length = (uint32_t)(end - begin)};
}

/* 1+ bytes without a space, then a space, which is passed over. */
static bool take_word(const char **at, const char *end, struct weir_span *word)
{
	const char *space = memchr(*at, ' ', (size_t)(end - *at));
	if (space == NULL || space == *at)
		return false;
	*word = between(*at, space);
	*at = space + 1;
	return true;
}

/* user SP "[" time "] " up to and with the quote behind it. */
static bool take_user_and_time(const char **at, const char *end, struct combined_line *line)
{
	const char *close = memmem(*at, (size_t)(end - *at), "] \"", 3);
	if (close == NULL)
		return false;
	for (const char *open = close - 2; open >= *at; open--) {
		if (open[0] == ' ' && open[1] == '[') {
			line->parts[COMBINED_USER] = between(*at, open);
			line->parts[COMBINED_TIME] = between(open + 2, close);
			*at = close + 3;
			return true;
		}
	}
	return false;
}

static bool is_method_byte(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* METHOD target[ protocol], or neither part. */
static void split_request(const char *begin, const char *end, struct combined_line *line)
{
	line->parts[COMBINED_METHOD] = line->parts[COMBINED_PATH] = (struct weir_span){0};
	const char *at = begin;
	while (at < end && is_method_byte(*at))
		at++;
	if (at == begin || at == end || *at != ' ')
		return;
	const char *target = at + 1, *space = memchr(target, ' ', (size_t)(end - target));
	const char *target_end = space != NULL ? space : end;
	if (target_end == target)
		return;
	if (space != NULL && (space + 1 == end || memchr(space + 1, ' ', (size_t)(end - space - 1)) != NULL))
		return;
	const char *query = memchr(target, '?', (size_t)(target_end - target));
	line->parts[COMBINED_METHOD] = between(begin, at);
	line->parts[COMBINED_PATH] = between(target, query != NULL ? query : target_end);
}

const char *combined_line_request(const char *at, const char *end, struct combined_line *line)
{
	const char *quote = find_closing_quote(at, end);
	if (quote == NULL)
		return NULL;
	split_request(at, quote, line);
	return quote + 1;
}

/* SP DDD SP ("-" | 1+ digits) (SP | end) */
static bool take_status_and_bytes(const char **at, const char *end, struct combined_line *line)
{
	const char *p = *at;
	if (end - p < 6 || p[0] != ' ' || p[4] != ' ')
		return false;
	for (int i = 1; i <= 3; i++) {
		if (p[i] < '0' || p[i] > '9')
			return false;
	}
	const char *bytes = p + 5;
	line->parts[COMBINED_STATUS] = between(p + 1, p + 4);
	p = bytes;
	if (*p == '-') {
		p++;
	} else {
		while (p < end && *p >= '0' && *p <= '9')
			p++;
	}
	if (p == bytes || (p < end && *p != ' '))
		return false;
	line->parts[COMBINED_BYTES] = between(bytes, p);
	*at = p;
	return true;
}

void combined_line_tail(const char *at, const char *end, struct combined_line *line)
{
	for (enum combined_part part = COMBINED_REFERER; part <= COMBINED_XFF; part++)
		line->parts[part] = (struct weir_span){0};
	for (enum combined_part part = COMBINED_REFERER; part <= COMBINED_XFF; part++) {
		if (end - at < 3 || at[0] != ' ' || at[1] != '"')
			return;
		const char *quote = find_closing_quote(at + 2, end);
		if (quote == NULL)
			return;
		line->parts[part] = between(at + 2, quote);
		at = quote + 1;
	}
}

bool combined_line_split(struct weir_span text, struct combined_line *line)
{
	const char *at = text.at, *end = text.at + text.length;
	line->parts[COMBINED_NONE] = (struct weir_span){0};
	if (!take_word(&at, end, &line->parts[COMBINED_IP]) || !take_word(&at, end, &line->parts[COMBINED_IDENT]) ||
	    !take_user_and_time(&at, end, line))
		return false;
	at = combined_line_request(at, end, line);
	if (at == NULL || !take_status_and_bytes(&at, end, line))
		return false;
	combined_line_tail(at, end, line);
	return true;
}

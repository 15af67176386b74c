/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `apache_error`: the error log of Apache's httpd 2.2 and 2.4.
 *
 *     [Fri May 17 10:05:03.133721 2024] [auth_basic:error] [pid 77:tid 88] [client 192.0.2.7:4000] AH01618: user x …
 *     [Fri May 17 10:05:03.133721 2024] [core:error] [pid 77] (13)Permission denied: [client 192.0.2.7:4000] AH00035: …
 *     [Fri May 17 10:05:03 2024] [error] [client 192.0.2.7] File does not exist: /srv/x
 *
 * What strangers write (paths, users, referrers) stands behind the client; before it httpd writes brackets, a place in
 * its source and the system's words for an error. So the client is read from the front, or there is none.
 */
#include "collector/format/format_ready.h"

enum part { TIME, MODULE, LEVEL, PID, IP, CODE, MESSAGE };

static const char *const parts[] = {"time", "module", "level", "pid", "ip", "code", "message", NULL};

static bool take_bracket(struct weir_span *rest, struct weir_span *inside)
{
	struct weir_span text = *rest;
	if (!text_take(&text, "[") || !text_until(&text, ']', inside))
		return false;
	while (text_take(&text, " "))
		;
	*rest = text;
	return true;
}

/* "mod_ssl.c(1234): ", a place in httpd's source; else nothing is taken. */
static void skip_place(struct weir_span *rest)
{
	struct weir_span text = *rest, name, number;
	if (!text_until(&text, '(', &name) || name.length == 0 || memchr(name.at, ' ', name.length) != NULL ||
	    memchr(name.at, '/', name.length) != NULL || memchr(name.at, '[', name.length) != NULL)
		return;
	if (text_digits(&text, &number) > 0 && text_take(&text, "): "))
		*rest = text;
}

/* "(13)Permission denied: ", on Windows "(OS 64)…: ", the system's words for an error, of which none has ": "; else nothing. */
static void skip_error(struct weir_span *rest)
{
	struct weir_span text = *rest, number;
	if (!text_take(&text, "("))
		return;
	(void)text_take(&text, "OS ");
	if (text_digits(&text, &number) == 0 || !text_take(&text, ")"))
		return;
	const char *colon = text_find(text, ": ");
	if (colon != NULL)
		*rest = text_from(text, colon + 2);
}

static bool begins_with_client(struct weir_span text)
{
	return text_begins(text, "[client ") || text_begins(text, "[remote ");
}

/* What httpd writes before a client, each at its place; without a client behind it nothing is taken. */
static void skip_places(struct weir_span *rest)
{
	struct weir_span text = *rest;
	skip_place(&text);
	skip_error(&text);
	if (begins_with_client(text))
		*rest = text;
}

static bool take_client(struct weir_span *rest, bool has_port, struct weir_span *ip)
{
	struct weir_span text = *rest, inside, port;
	bool bracketed = text_begins(text, "[client [") || text_begins(text, "[remote [");
	if (!take_bracket(&text, &inside) || (!text_take(&inside, "client ") && !text_take(&inside, "remote ")))
		return false;
	if (bracketed) { /* "[client [2001:db8::7]:4000] " */
		text_skip(&inside, 1);
		*ip = inside;
		if (text_until(&text, ']', &port))
			(void)text_take(&text, " ");
		*rest = text;
		return true;
	}
	bool point = inside.length > 0 && memchr(inside.at, '.', inside.length) != NULL;
	*ip = has_port || point ? text_without_port(inside) : inside;
	*rest = text;
	return true;
}

/* What follows the time. */
static enum ready_outcome read_rest(struct weir_span rest, struct ready_line *ready)
{
	struct weir_span level, inside, before;
	if (!take_bracket(&rest, &level))
		return READY_NO_MATCH;
	bool modern = text_until(&level, ':', &ready->parts[MODULE]);
	ready->parts[LEVEL] = level;
	while (text_begins(rest, "[pid ") || text_begins(rest, "[tid ")) {
		if (!take_bracket(&rest, &inside))
			return READY_NO_MATCH;
		if (!text_take(&inside, "pid "))
			continue;
		if (!text_until(&inside, ':', &ready->parts[PID]))
			ready->parts[PID] = inside;
	}
	skip_places(&rest);
	(void)take_client(&rest, modern, &ready->parts[IP]);
	ready->parts[MESSAGE] = rest;
	if (text_begins(rest, "AH") && text_until(&rest, ':', &before) && before.length <= 8)
		ready->parts[CODE] = before;
	return READY_OK;
}

static enum ready_outcome read_line(struct weir_span line, struct ready_line *ready)
{
	struct weir_span rest = line;
	return take_bracket(&rest, &ready->parts[TIME]) ? read_rest(rest, ready) : READY_NO_MATCH;
}

/* Behind a head httpd writes no time, but for versions that do. */
static enum ready_outcome read_message(struct weir_span text, struct ready_line *ready)
{
	struct weir_span rest = text, time;
	if (!take_bracket(&rest, &time) || memchr(time.at, ' ', time.length) == NULL)
		return read_rest(text, ready);
	ready->parts[TIME] = time;
	return read_rest(rest, ready);
}

static const struct ready_reader reader = {.parts = parts, .read = read_line, .read_message = read_message};

const struct format_kind format_apache_error = {
	.name = "apache_error",
	.meaning = "the error log of Apache's httpd",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.options = format_ready_options,
	.reader = &reader,
	.create = format_ready_create,
	.create_inside = format_ready_create_inside,
};

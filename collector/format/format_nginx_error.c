/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `nginx_error`: nginx's error log.
 *
 *     2024/05/01 12:00:00 [error] 123#123: *45 MESSAGE, client: 192.0.2.7, server: x, request: "GET / HTTP/1.1", host: "x"
 *
 * nginx escapes nothing here: the message may quote a decoded path, and request, host and referrer stand as they were
 * sent. So ", client: " may stand in all of them. A place counts as the client's only where what follows it is as nginx
 * writes it. Two such places with two addresses are ambiguous, but behind a message in which no stranger has a word:
 * there the first is nginx's. A line that was cut may have lost the real one, so it is believed in that case alone.
 */
#include "collector/format/format_ready.h"

enum part { TIME, LEVEL, PID, MESSAGE, IP, SERVER, METHOD, PATH, HOST };

static const char *const parts[] = {"time", "level", "pid", "message", "ip", "server", "method", "path", "host", NULL};

enum {
	TIME_BYTES = 19,
	CUT_BYTES = 2040, /* nginx cuts at 2,048; a newline, and what syslog takes off, may be missing */
};

static const char client_mark[] = ", client: ";

/* Messages in which all words are nginx's, or its configuration's, unless they quote something. */
static bool is_trusted(struct weir_span message)
{
	static const char *const beginnings[] = {"access forbidden by rule",
	                                         "no live upstreams while",
	                                         "upstream timed out (",
	                                         "upstream prematurely closed",
	                                         "connect() failed (",
	                                         "recv() failed (",
	                                         "send() failed (",
	                                         "writev() failed (",
	                                         "client intended to send too large",
	                                         "client sent ",
	                                         "client prematurely closed",
	                                         "SSL_do_handshake() failed (",
	                                         "SSL_read() failed (",
	                                         "peer closed connection in SSL handshake",
	                                         NULL};
	static const char *const zoned[] = {"limiting requests, ", "delaying request, ", "limiting connections by zone \"",
	                                    NULL};
	for (size_t i = 0; zoned[i] != NULL; i++)
		if (text_begins(message, zoned[i]))
			return true;
	if (memchr(message.at, '"', message.length) != NULL)
		return false;
	for (size_t i = 0; beginnings[i] != NULL; i++)
		if (text_begins(message, beginnings[i]))
			return true;
	return false;
}

/* Takes the address behind the mark, and the server; false: nginx would not go on so. */
static bool take_client(struct weir_span *rest, bool cut, struct weir_span *ip, struct weir_span *server)
{
	static const char *const labels[] = {", request: \"",
	                                     ", subrequest: \"",
	                                     ", upstream: \"",
	                                     ", host: \"",
	                                     ", login: \"",
	                                     ", bytes from/to client:",
	                                     ", referrer: \"",
	                                     ", bytes from/to upstream:",
	                                     NULL};
	const char *end = rest->at;
	*server = (struct weir_span){0};
	while (end < text_end(*rest) && *end != ',' && *end != ' ' && *end != '"')
		end++;
	*ip = text_between(rest->at, end);
	*rest = text_from(*rest, end);
	if (!text_is_address(*ip) && !text_begins(*ip, "unix:"))
		return false;
	if (rest->length == 0)
		return true;
	if (!text_take(rest, ", server: "))
		return false;
	for (end = rest->at; end < text_end(*rest) && *end != ' ' && *end != '"'; end++)
		;
	bool last = end == text_end(*rest);
	end -= !last && end > rest->at && end[-1] == ',';
	*server = text_between(rest->at, end);
	*rest = text_from(*rest, end);
	if (last)
		return true;
	for (size_t i = 0; labels[i] != NULL; i++)
		if (text_begins(*rest, labels[i]))
			return cut || text_end(*rest)[-1] == '"' || text_is_digit(text_end(*rest)[-1]);
	return false;
}

/* A request as it was sent: a method and a target where it looks like that. */
static void read_request(struct weir_span rest, struct ready_line *ready)
{
	const char *host = text_find(rest, "\", host: \"");
	if (text_begins(rest, ", host: \""))
		host = rest.at - 1;
	if (host != NULL) {
		struct weir_span value = text_from(rest, host + strlen("\", host: \""));
		(void)text_until(&value, '"', &ready->parts[HOST]);
	}
	if (!text_take(&rest, ", request: \""))
		return;
	text_request(rest, &ready->parts[METHOD], &ready->parts[PATH]);
}

/* Goes through all places that may be the client's. */
static enum ready_outcome find_client(struct weir_span text, bool cut, struct ready_line *ready)
{
	bool marked = false, trusted = false;
	struct weir_span chosen = {0};
	ready->parts[MESSAGE] = text;
	for (struct weir_span rest = text;;) {
		const char *mark = text_find(rest, client_mark);
		if (mark == NULL)
			break;
		struct weir_span message = text_between(text.at, mark), ip, server;
		if (!marked)
			trusted = is_trusted(message);
		marked = true;
		rest = text_from(rest, mark + strlen(client_mark));
		struct weir_span behind = rest;
		if (!take_client(&behind, cut, &ip, &server))
			continue;
		if (chosen.at != NULL) {
			if (!weir_span_equal(chosen, ip))
				return READY_AMBIGUOUS;
			continue;
		}
		chosen = ready->parts[IP] = ip;
		ready->parts[SERVER] = server;
		ready->parts[MESSAGE] = message;
		read_request(behind, ready);
		if (trusted)
			return READY_OK;
	}
	return marked && (chosen.at == NULL || cut) ? READY_AMBIGUOUS : READY_OK;
}

static enum ready_outcome read_line(struct weir_span line, struct ready_line *ready)
{
	struct weir_span rest = line, number;
	if (line.length < TIME_BYTES || line.at[4] != '/' || line.at[7] != '/' || line.at[10] != ' ')
		return READY_NO_MATCH;
	ready->parts[TIME] = text_between(line.at, line.at + TIME_BYTES);
	text_skip(&rest, TIME_BYTES);
	if (!text_take(&rest, " [") || !text_until(&rest, ']', &ready->parts[LEVEL]) || !text_take(&rest, " ") ||
	    text_digits(&rest, &ready->parts[PID]) == 0 || !text_take(&rest, "#") || text_digits(&rest, &number) == 0 ||
	    !text_take(&rest, ": "))
		return READY_NO_MATCH;
	struct weir_span message = rest;
	if (text_take(&rest, "*") && text_digits(&rest, &number) > 0 && text_take(&rest, " "))
		message = rest;
	return find_client(message, line.length >= CUT_BYTES, ready);
}

static const struct ready_reader reader = {.parts = parts, .read = read_line};

const struct format_kind format_nginx_error = {
	.name = "nginx_error",
	.meaning = "nginx's error log",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.options = format_ready_options,
	.reader = &reader,
	.create = format_ready_create,
};

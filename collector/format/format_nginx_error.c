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
 *
 * What was sent may hold line feeds, so a line may be one part of a record, and forged. nginx writes each record at once,
 * with RECORD_BYTES at most. So a line that may be only the beginning of one opens it: none of those behind it is
 * believed, as far as a record goes. What may be a beginning:
 *
 * - a line of a connection in which the client is missing: only a few of nginx's own have none;
 * - one whose message quotes what was sent, since a client may stand in that: unless what stands behind it, as far as a
 *   record goes, shows that it is whole. The end of a record that has several lines has no head, or a request with the
 *   line feed in it as it was sent, encoded, or it was cut at RECORD_BYTES;
 * - one with a login of the mail proxy, which stands behind the client.
 *
 * A user of "auth_basic" has no colon in his name, but a client's mark has one, so his lines are certain.
 */
#include "collector/format/format_ready.h"

enum part { TIME, LEVEL, PID, MESSAGE, IP, SERVER, METHOD, PATH, HOST };

static const char *const parts[] = {"time", "level", "pid", "message", "ip", "server", "method", "path", "host", NULL};

enum {
	TIME_BYTES = 19,
	RECORD_BYTES = 2048, /* NGX_MAX_ERROR_STR, with the newline */
	CUT_BYTES = 2040,    /* nginx cuts at 2,048; a newline, and what syslog takes off, may be missing */
};

static const char client_mark[] = ", client: ", login_mark[] = ", login: \"";

static bool begins_with_any(struct weir_span text, const char *const *beginnings)
{
	while (*beginnings != NULL && !text_begins(text, *beginnings))
		beginnings++;
	return *beginnings != NULL;
}

/* "user "NAME" was not found in "FILE"", "user "NAME": password mismatch": the first colon, or the lack of one, is nginx's. */
static bool is_of_user(struct weir_span message)
{
	const char *colon = message.length > 0 ? memchr(message.at, ':', message.length) : NULL;
	struct weir_span name = colon != NULL ? text_between(message.at, colon) : message;
	struct weir_span behind = colon != NULL ? text_from(message, colon) : (struct weir_span){0};
	if (!text_begins(message, "user \""))
		return false;
	return text_find(name, "\" was not found in \"") != NULL ||
	       (text_ends(name, "\"") &&
	        (text_is(behind, ": password mismatch") || text_begins(behind, ": was not found in \"")));
}

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
	                                         "no user/password was provided for basic authentication",
	                                         "auth request unexpected status",
	                                         "rewrite or internal redirection cycle",
	                                         "client timed out (",
	                                         "client closed ",
	                                         "client logged in",
	                                         NULL};
	static const char *const zoned[] = {"limiting requests, ", "delaying request, ", "limiting connections by zone \"",
	                                    NULL};
	static const char fpm[] = "FastCGI sent in stderr: \"Primary script unknown\" while reading";
	if (begins_with_any(message, zoned) || text_begins(message, fpm) || is_of_user(message))
		return true;
	return memchr(message.at, '"', message.length) == NULL && begins_with_any(message, beginnings);
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
	if (!text_take(&rest, ", request: \"") || rest.at == NULL)
		return;
	text_request(rest, &ready->parts[METHOD], &ready->parts[PATH]);
}

/* Goes through all places that may be the client's. */
static enum ready_outcome find_client(struct weir_span text, bool cut, bool *certain, struct ready_line *ready)
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
			*certain = trusted = is_trusted(message);
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

/* What is known of a line beside its parts. */
struct seen {
	struct weir_span text; /* behind the head */
	bool numbered;         /* it is of a connection */
	bool certain;          /* no stranger has a word before the first client */
};

static enum ready_outcome read_alone(struct weir_span line, struct seen *seen, struct ready_line *ready)
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
	*seen = (struct seen){.text = rest};
	if (text_take(&rest, "*") && text_digits(&rest, &number) > 0 && text_take(&rest, " ")) {
		seen->text = rest;
		seen->numbered = true;
	}
	return find_client(seen->text, line.length >= CUT_BYTES, &seen->certain, ready);
}

/* Whether a line without a client may go on in the next: one of no connection does within a quotation. */
static bool may_go_on(const struct seen *seen, const struct ready_line *ready)
{
	static const char *const whole[] = {"client ", "udp client ", "open socket #", NULL};
	bool quoted = false, odd = false;
	for (uint32_t i = 0; i < seen->text.length; i++)
		if (seen->text.at[i] == '"') {
			quoted = true;
			odd = !odd;
		}
	if (!seen->numbered)
		return odd;
	return quoted || (!text_is(ready->parts[LEVEL], "debug") && !begins_with_any(seen->text, whole));
}

/* A line behind another that neither is a record's end nor has another sign of a record in several lines. */
static bool is_harmless(struct weir_span line)
{
	struct ready_line ready = {.times = 1};
	struct seen seen;
	if (text_find(line, "%0a") != NULL || text_find(line, "%0A") != NULL || read_alone(line, &seen, &ready) != READY_OK)
		return false;
	return ready.parts[IP].at != NULL || !may_go_on(&seen, &ready);
}

/* Whether what stands behind a line shows that it is a whole record; each line is looked at once. */
static bool is_whole(struct weir_span line, struct ready_stream *stream)
{
	const char *at = text_end(line), *end = stream->end;
	if (end == NULL)
		return true;
	bool all = end - line.at >= RECORD_BYTES;
	const char *limit = all ? line.at + RECORD_BYTES : end, *newline = memchr(at, '\n', (size_t)(end - at));
	at = newline != NULL ? newline + 1 : end;
	if (all && at != limit && limit[-1] == '\n' && stream->seen_in_lines)
		return false; /* it may have been cut there, such that nothing of it shows */
	at = stream->looked_to > at ? stream->looked_to : at;
	while (at < limit) {
		newline = memchr(at, '\n', (size_t)(end - at));
		if (!is_harmless(text_line(text_between(at, newline != NULL ? newline : end)))) {
			stream->seen_in_lines = true;
			return false;
		}
		at = newline != NULL ? newline + 1 : end;
		stream->looked_to = at;
	}
	return all || !stream->more;
}

/* What an application writes, or what was sent in other places than the target: nothing behind the line tells of it. */
static bool is_of_others(struct weir_span message)
{
	static const char *const beginnings[] = {"client sent ", "FastCGI sent in stderr: ", "[lua]", "lua ", "js: ", NULL};
	return begins_with_any(message, beginnings);
}

/* The mail proxy has no request before it. */
static bool has_login(struct weir_span text)
{
	const char *login = text_find(text, login_mark), *request = text_find(text, ", request: \"");
	return login != NULL && (request == NULL || login < request);
}

static enum ready_outcome read_line(struct weir_span line, struct ready_line *ready)
{
	struct seen seen = {0};
	enum ready_outcome outcome = read_alone(line, &seen, ready);
	if (outcome == READY_NO_MATCH || ready->lines == FORMAT_LINES_WHOLE || memchr(line.at, '\n', line.length) != NULL)
		return outcome;
	if (outcome == READY_OK && ready->parts[IP].at == NULL) {
		ready->opens = may_go_on(&seen, ready);
		ready->stream->seen_in_lines |= ready->opens;
	} else if (outcome == READY_OK && seen.certain) {
		ready->opens = has_login(seen.text);
		return READY_OK;
	} else {
		bool whole = ready->lines == FORMAT_LINES_IN_ORDER && !is_of_others(seen.text) && is_whole(line, ready->stream);
		ready->opens = !whole || has_login(seen.text);
		return whole ? outcome : READY_AMBIGUOUS;
	}
	return ready->opens ? READY_AMBIGUOUS : READY_OK;
}

static const struct ready_reader reader = {.parts = parts, .read = read_line, .record_bytes = RECORD_BYTES};

const struct format_kind format_nginx_error = {
	.name = "nginx_error",
	.meaning = "nginx's error log",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.options = format_ready_options,
	.reader = &reader,
	.create = format_ready_create,
};

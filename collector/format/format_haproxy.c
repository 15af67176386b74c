/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `haproxy`: HAProxy's logs, behind the head that syslog writes, or without one.
 *
 *     192.0.2.7:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0
 *     {1wt.eu} {} "GET /index.html HTTP/1.1"                       option httplog; httpslog goes on behind the request
 *     192.0.2.7:33317 [06/Feb/2009:12:12:51.443] fnt bck/srv1 0/0/5007 212 -- 0/0/0/0/3 0/0           option tcplog
 *     192.0.2.7:33317 [06/Feb/2009:12:12:56.123] fnt/1: SSL handshake failure              and other errors like it
 *     Connect from 192.0.2.7:33317 to 192.0.2.1:80 (fnt/HTTP)             a frontend without one of these options
 *
 * What strangers write (cookies, captured headers, the request, the name that TLS asks for) stands behind the time, the
 * client before it. Captured cookies are not encoded and may look like all that follows them; captured headers and the
 * request have no quote and no brace of their own. HAProxy cuts lines at 1,024 bytes: whatever is missing behind the time
 * is absent, and where it was cut in captured headers or the request, the record says so, as a stranger chose their length.
 */
#include "collector/format/format_ready.h"
#include "collector/record/syslog_header.h"

enum part { TIME, IP, FRONTEND, BACKEND, SERVER, STATUS, BYTES, STATE, METHOD, PATH, EVENT };

static const char *const parts[] = {"time",  "ip",    "frontend", "backend", "server", "status",
                                    "bytes", "state", "method",   "path",    "event",  NULL};

/* "192.0.2.7:33317 ", "unix:1 " of the machine itself, or "-:0 " where HAProxy does not know it; the latter are absent. */
static bool take_address(struct weir_span *rest, struct weir_span *address)
{
	struct weir_span client = text_word(rest);
	*address = text_without_port(client);
	if (text_begins(client, "unix:") || text_begins(client, "-:")) {
		*address = (struct weir_span){0};
		return true;
	}
	return address->length < client.length && text_is_address(*address);
}

/* "192.0.2.7:33317 [06/Feb/2009:12:14:14.655] " */
static bool take_client(struct weir_span *rest, struct ready_line *ready)
{
	struct weir_span text = *rest, address, time;
	if (!take_address(&text, &address) || !text_take(&text, "[") || !text_until(&text, ']', &time))
		return false;
	if (text.length > 0 && !text_take(&text, " "))
		return false;
	ready->parts[TIME] = time;
	ready->parts[IP] = address;
	*rest = text;
	return true;
}

/* "Connect from 192.0.2.7:33317 to 192.0.2.1:80 (fnt/HTTP)": nothing in it is a stranger's. */
static bool take_connect(struct weir_span text, struct ready_line *ready)
{
	struct weir_span address;
	if (!text_take(&text, "Connect from ") || !take_address(&text, &address) || !text_take(&text, "to "))
		return false;
	(void)text_word(&text);
	if (text_take(&text, "("))
		(void)text_until(&text, '/', &ready->parts[FRONTEND]);
	ready->parts[IP] = address;
	ready->parts[EVENT] = weir_span_of("Connect");
	return true;
}

static uint32_t count_slashes(struct weir_span word)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < word.length; i++)
		count += word.at[i] == '/';
	return count;
}

static struct weir_span take_plus(struct weir_span number)
{
	(void)text_take(&number, "+"); /* of a log that is written before the end */
	return number;
}

/* Whether a word is `count` numbers with slashes between them. */
static bool are_numbers(struct weir_span word, uint32_t count)
{
	struct weir_span number;
	for (; count > 1; count--)
		if (!text_until(&word, '/', &number) || !text_is_number(take_plus(number)))
			return false;
	return text_is_number(take_plus(word));
}

/* Takes "---- 1/1/1/1/0 0/0 ": the state in which it ended, the connections, the queues; false: it is not there. */
static bool take_state(struct weir_span *rest, struct weir_span *state)
{
	enum { STATE_BYTES = 4 };
	struct weir_span text = *rest;
	for (uint32_t i = 0; i < STATE_BYTES; i++) {
		char c = i < text.length ? text.at[i] : ' ';
		if (c != '-' && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z'))
			return false;
	}
	struct weir_span word = text_between(text.at, text.at + STATE_BYTES);
	text_skip(&text, STATE_BYTES);
	if (!text_take(&text, " ") || !are_numbers(text_word(&text), 5) || !are_numbers(text_word(&text), 2))
		return false;
	*rest = text;
	*state = word;
	return true;
}

/*
 * Where the request's quote is, seen from what must stand before it.
 *
 * @param braced  the same from behind the first '}' that follows, or NULL
 */
static const char *quote_from(struct weir_span text, const char *at, const char *braced)
{
	const char *end = text_end(text);
	if (at < end && *at == '{')
		return braced;
	return end - at > 1 && at[0] == '"' && at[1] != ' ' ? at : NULL; /* else it is one that closes */
}

/*
 * Finds the request's quote: behind the last state with nothing but captured headers between, as a cookie may look like
 * a state and a request. It goes from the right, so that it looks at each place once.
 */
static const char *find_request(struct weir_span text, struct weir_span *state)
{
	const char *braced = NULL;
	for (const char *at = text_end(text); at-- > text.at;) {
		if (*at == '}')
			braced = at + 1 < text_end(text) && at[1] == ' ' ? quote_from(text, at + 2, braced) : NULL;
		struct weir_span rest = text_from(text, at + 1), found;
		if (*at != ' ' || !take_state(&rest, &found))
			continue;
		const char *quote = quote_from(text, rest.at, braced);
		if (quote == NULL)
			continue;
		*state = found;
		return quote;
	}
	return NULL;
}

/* What follows the timers: status and the like, then what strangers write, then the request. */
static void take_http(struct weir_span rest, struct ready_line *ready)
{
	ready->parts[STATUS] = text_word(&rest);
	ready->parts[BYTES] = take_plus(text_word(&rest));
	struct weir_span behind = rest, before, state, cookie = text_word(&behind);
	(void)text_word(&behind); /* the response's cookie */
	struct weir_span cut = behind;
	bool plain = take_state(&behind, &state), none = text_is(cookie, "-");
	if (plain || none)
		ready->parts[STATE] = plain ? state : text_word(&cut);
	/* A captured cookie has its name before it, so a lone '-' is none. */
	const char *quote = plain && none ? NULL : find_request(rest, &ready->parts[STATE]);
	if (quote != NULL) {
		behind = text_from(rest, quote + 1);
	} else if (!plain || !text_until(&behind, '"', &before)) {
		ready->ends_early = plain && text_begins(behind, "{");
		return;
	}
	ready->ends_early = behind.length == 0 || memchr(behind.at, '"', behind.length) == NULL;
	(void)text_request(behind, &ready->parts[METHOD], &ready->parts[PATH]);
	/* A client may write "-" there, which HAProxy passes on: it is no field, as in the logs of others, and as by a check. */
	static const enum part words[] = {METHOD, PATH};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (text_is(ready->parts[words[i]], "-"))
			ready->parts[words[i]] = (struct weir_span){0};
}

static void take_rest(struct weir_span rest, struct ready_line *ready)
{
	struct weir_span frontend = text_word(&rest);
	uint32_t slashes = count_slashes(frontend);
	if (slashes > 0 && text_cut(&frontend, ":")) {
		(void)text_until(&frontend, '/', &ready->parts[FRONTEND]);
		ready->parts[EVENT] = rest;
		return;
	}
	ready->parts[FRONTEND] = frontend;
	struct weir_span server = text_word(&rest);
	if (!text_until(&server, '/', &ready->parts[BACKEND]))
		return;
	ready->parts[SERVER] = server;
	struct weir_span timers = text_word(&rest);
	if (count_slashes(timers) == 4) {
		take_http(rest, ready);
		return;
	}
	if (count_slashes(timers) != 2)
		return; /* a format of one's own goes on otherwise */
	ready->parts[BYTES] = take_plus(text_word(&rest));
	ready->parts[STATE] = text_word(&rest);
}

static enum ready_outcome read_message(struct weir_span text, struct ready_line *ready)
{
	text = ready_message(text, ready);
	while (text_take(&text, " "))
		;
	if (!take_client(&text, ready))
		return take_connect(text, ready) ? READY_OK : READY_NO_MATCH;
	take_rest(text, ready);
	return READY_OK;
}

/* A head may lack all but a tag ("haproxy[77]: "), or all but a time, as HAProxy writes it to a container's output. */
static enum ready_outcome read_line(struct weir_span line, struct ready_line *ready)
{
	struct weir_span rest = line;
	struct syslog_header header;
	if (read_message(line, ready) == READY_OK)
		return READY_OK;
	if (!syslog_header_parse(line, &header)) {
		struct weir_span tag = text_word(&rest);
		return text_ends(tag, ":") ? read_message(rest, ready) : READY_NO_MATCH;
	}
	ready->parts[TIME] = header.time;
	if (read_message(header.message, ready) == READY_OK)
		return READY_OK;
	bool bare = header.time.at != NULL && !header.modern;
	return bare ? read_message(text_from(line, text_end(header.time) + 1), ready) : READY_NO_MATCH;
}

static const struct ready_reader reader = {.parts = parts, .read = read_line};

const struct format_kind format_haproxy = {
	.name = "haproxy",
	.meaning = "HAProxy's HTTP, HTTPS and TCP logs, and its connection errors",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.escapes = FORMAT_ESCAPES_HASHES,
	.options = format_ready_options,
	.reader = &reader,
	.create = format_ready_create,
};

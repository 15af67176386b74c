/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `haproxy`: HAProxy's logs, behind the head that syslog writes, or without one.
 *
 *     192.0.2.7:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0
 *     {1wt.eu} {} "GET /index.html HTTP/1.1"                       option httplog; httpslog goes on behind the request
 *     192.0.2.7:33317 [06/Feb/2009:12:12:51.443] fnt bck/srv1 0/0/5007 212 -- 0/0/0/0/3 0/0           option tcplog
 *     192.0.2.7:33317 [06/Feb/2009:12:12:56.123] fnt/1: SSL handshake failure              and other errors like it
 *
 * What strangers write (cookies, captured headers, the request, the name that TLS asks for) stands behind the time, the
 * client before it. HAProxy cuts lines at 1,024 bytes: whatever is missing behind the time is absent.
 */
#include "collector/format/format_ready.h"
#include "collector/record/syslog_header.h"

enum part { TIME, IP, FRONTEND, BACKEND, SERVER, STATUS, BYTES, STATE, METHOD, PATH, EVENT };

static const char *const parts[] = {"time",  "ip",    "frontend", "backend", "server", "status",
                                    "bytes", "state", "method",   "path",    "event",  NULL};

/* "192.0.2.7:33317 [06/Feb/2009:12:14:14.655] " */
static bool take_client(struct weir_span *rest, struct ready_line *ready)
{
	struct weir_span text = *rest, client = text_word(&text), address = text_without_port(client);
	bool local = text_begins(client, "unix:");
	if (!local && (address.length == client.length || !text_is_address(address)))
		return false;
	if (!text_take(&text, "[") || !text_until(&text, ']', &ready->parts[TIME]))
		return false;
	if (text.length > 0 && !text_take(&text, " "))
		return false;
	ready->parts[IP] = local ? (struct weir_span){0} : address;
	*rest = text;
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

/* What follows the timers: status and the like, then what strangers write, then the request. */
static void take_http(struct weir_span rest, struct ready_line *ready)
{
	ready->parts[STATUS] = text_word(&rest);
	ready->parts[BYTES] = take_plus(text_word(&rest));
	(void)text_word(&rest); /* the request's and the response's captured cookie */
	(void)text_word(&rest);
	ready->parts[STATE] = text_word(&rest);
	struct weir_span before;
	if (text_until(&rest, '"', &before))
		(void)text_request(rest, &ready->parts[METHOD], &ready->parts[PATH]);
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
	ready->parts[BYTES] = take_plus(text_word(&rest));
	ready->parts[STATE] = text_word(&rest);
}

static enum ready_outcome read_line(struct weir_span line, struct ready_line *ready)
{
	struct weir_span rest = line;
	struct syslog_header header;
	if (!take_client(&rest, ready)) {
		if (!syslog_header_parse(line, &header))
			return READY_NO_MATCH;
		rest = header.message;
		while (text_take(&rest, " "))
			;
		if (!take_client(&rest, ready))
			return READY_NO_MATCH;
	}
	take_rest(rest, ready);
	return READY_OK;
}

static const struct ready_reader reader = {.parts = parts, .read = read_line};

const struct format_kind format_haproxy = {
	.name = "haproxy",
	.meaning = "HAProxy's HTTP, HTTPS and TCP logs, and its connection errors",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.options = format_ready_options,
	.reader = &reader,
	.create = format_ready_create,
};

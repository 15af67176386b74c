/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `squid`: Squid's native access log, whose columns are padded with blanks.
 *
 *     1715940303.133    310 192.0.2.7 TCP_MISS/200 4542 GET http://example.com/a - HIER_DIRECT/198.51.100.1 text/html
 *
 * Squid encodes blanks in what strangers write, all of which stands behind the client.
 */
#include "collector/format/format_ready.h"

enum part { TIME, DURATION, IP, ACTION, STATUS, BYTES, METHOD, URL, HOST, PATH, USER, HIERARCHY, PEER, TYPE };

static const char *const parts[] = {"time", "duration", "ip",   "action",    "status", "bytes", "method", "url",
                                    "host", "path",     "user", "hierarchy", "peer",   "type",  NULL};

static struct weir_span take_column(struct weir_span *rest)
{
	while (text_take(rest, " "))
		;
	return text_or_absent(text_word(rest));
}

static enum ready_outcome read_line(struct weir_span line, struct ready_line *ready)
{
	static const enum part first[] = {TIME, DURATION, IP}, then[] = {BYTES, METHOD, URL, USER};
	struct weir_span rest = line;
	for (size_t i = 0; i < sizeof first / sizeof *first; i++)
		ready->parts[first[i]] = take_column(&rest);
	struct weir_span status = take_column(&rest);
	if (ready->parts[TIME].at == NULL || !text_until(&status, '/', &ready->parts[ACTION]))
		return READY_NO_MATCH;
	ready->parts[STATUS] = status;
	for (size_t i = 0; i < sizeof then / sizeof *then; i++)
		ready->parts[then[i]] = take_column(&rest);
	struct weir_span hierarchy = take_column(&rest);
	if (hierarchy.length > 0 && text_until(&hierarchy, '/', &ready->parts[HIERARCHY]))
		ready->parts[PEER] = text_or_absent(hierarchy);
	ready->parts[TYPE] = take_column(&rest);
	ready->parts[HOST] = text_host(ready->parts[URL]);
	ready->parts[PATH] = ready->parts[URL];
	return READY_OK;
}

static const struct ready_reader reader = {.parts = parts, .dash_is_absent = true, .read = read_line};

const struct format_kind format_squid = {
	.name = "squid",
	.meaning = "Squid's native access log",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.options = format_ready_options,
	.reader = &reader,
	.create = format_ready_create,
};

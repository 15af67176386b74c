/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `alb`: the access logs of AWS's load balancers for HTTP, with or without the type in front (Classic).
 *
 *     https 2024-05-17T10:05:03.186641Z app/my-lb/50dc6c495c0c9188 192.0.2.7:2817 10.0.0.1:80 0.086 0.048 0.037 200 200
 *     0 57 "GET https://www.example.com:443/a?b HTTP/1.1" "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 …
 *
 *     tls 2.0 2024-05-17T10:05:03 net/my-lb/c6e77e28c25b2234 g3d4b5e8bb8464cd 192.0.2.7:2817 10.0.0.1:443 5 2 98 246 …
 *
 * What strangers write is quoted, or the name that TLS asks for, and stands behind the client.
 */
#include "collector/format/format_ready.h"

enum part { TIME, TYPE, ELB, IP, BACKEND, STATUS, BACKEND_STATUS, RECEIVED, BYTES, METHOD, HOST, PATH, AGENT };

static const char *const parts[] = {"time",     "type",  "elb",    "ip",   "backend", "status", "backend_status",
                                    "received", "bytes", "method", "host", "path",    "agent",  NULL};

static bool is_time(struct weir_span word)
{
	return word.length > 10 && text_is_digit(word.at[0]) && word.at[4] == '-' && word.at[10] == 'T';
}

static enum ready_outcome read_line(struct weir_span line, struct ready_line *ready)
{
	static const enum part numbers[] = {STATUS, BACKEND_STATUS, RECEIVED, BYTES};
	struct weir_span rest = line, word = text_word(&rest), inside;
	if (!is_time(word)) {
		ready->parts[TYPE] = word;
		word = text_word(&rest);
	}
	bool tls = text_is(ready->parts[TYPE], "tls"); /* a Network Load Balancer's: its format's version follows */
	if (tls)
		word = text_word(&rest);
	if (!is_time(word))
		return READY_NO_MATCH;
	ready->parts[TIME] = word;
	ready->parts[ELB] = text_word(&rest);
	if (tls)
		(void)text_word(&rest); /* its listener */
	word = text_word(&rest);
	ready->parts[IP] = text_without_port(word);
	if (!text_is_address(ready->parts[IP]))
		return READY_NO_MATCH;
	ready->parts[BACKEND] = text_or_absent(text_word(&rest));
	for (int times = 0; times < (tls ? 2 : 3); times++)
		(void)text_word(&rest);
	for (size_t i = tls ? 2 : 0; i < sizeof numbers / sizeof *numbers; i++)
		ready->parts[numbers[i]] = text_or_absent(text_word(&rest));
	if (!text_take(&rest, "\""))
		return READY_OK;
	rest = text_request(rest, &ready->parts[METHOD], &ready->parts[PATH]);
	ready->parts[METHOD] = text_or_absent(ready->parts[METHOD]);
	ready->parts[HOST] = text_host(ready->parts[PATH]);
	if (text_take(&rest, " \"") && text_until(&rest, '"', &inside))
		ready->parts[AGENT] = text_or_absent(inside);
	return READY_OK;
}

static const struct ready_reader reader = {.parts = parts, .dash_is_absent = true, .read = read_line};

const struct format_kind format_alb = {
	.name = "alb",
	.meaning = "access logs of AWS's Application, Classic and Network Load Balancers",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.options = format_ready_options,
	.reader = &reader,
	.create = format_ready_create,
};

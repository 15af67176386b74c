/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `ingress_nginx`: the access log of Kubernetes' ingress-nginx, which goes on where `combined` ends.
 *
 *     192.0.2.7 - - [17/May/2024:10:05:03 +0000] "GET /a HTTP/1.1" 200 12 "-" "curl/8" 88 0.002 [default-web-80] []
 *     10.0.0.9:80 12 0.002 200 6d3bd3c5f3c0a6b5c0f3a6d3bd3c5f3c
 *
 * Older versions write the address once more, in brackets, before the user. nginx escapes quotes as \x22, so the first
 * one opens the request; the time is what stands in brackets just before it.
 */
#include "collector/format/format_ready.h"

enum part { TIME, IP, USER, METHOD, PATH, STATUS, BYTES, REFERER, AGENT, LENGTH, DURATION, UPSTREAM, REQUEST_ID };

static const char *const parts[] = {"time",    "ip",    "user",           "method",   "path",     "status",     "bytes",
                                    "referer", "agent", "request_length", "duration", "upstream", "request_id", NULL};

/* Behind the request: "200 12 "-" "curl/8" 88 0.002 [default-web-80] …". */
static void take_rest(struct weir_span rest, struct ready_line *ready)
{
	struct weir_span inside;
	if (!text_take(&rest, " "))
		return;
	ready->parts[STATUS] = text_or_absent(text_word(&rest));
	ready->parts[BYTES] = text_or_absent(text_word(&rest));
	if (!text_take(&rest, "\"") || !text_until(&rest, '"', &inside))
		return;
	ready->parts[REFERER] = text_or_absent(inside);
	if (!text_take(&rest, " \"") || !text_until(&rest, '"', &inside))
		return;
	ready->parts[AGENT] = text_or_absent(inside);
	if (!text_take(&rest, " "))
		return;
	ready->parts[LENGTH] = text_or_absent(text_word(&rest));
	ready->parts[DURATION] = text_or_absent(text_word(&rest));
	if (text_take(&rest, "[") && text_until(&rest, ']', &inside))
		ready->parts[UPSTREAM] = text_or_absent(inside);
	const char *last = text_find_last(rest, " ");
	if (last != NULL)
		ready->parts[REQUEST_ID] = text_or_absent(text_from(rest, last + 1));
}

static enum ready_outcome read_line(struct weir_span line, struct ready_line *ready)
{
	struct weir_span rest = line, head, again;
	ready->parts[IP] = text_word(&rest);
	if (!text_is_address(ready->parts[IP]) || !text_take(&rest, "- ") || !text_until(&rest, '"', &head) ||
	    !text_cut(&head, "] "))
		return READY_NO_MATCH;
	const char *open = text_find_last(head, "[");
	if (open == NULL)
		return READY_NO_MATCH;
	ready->parts[TIME] = text_from(head, open + 1);
	head.length = (uint32_t)(open - head.at);
	if (text_take(&head, "[") && text_until(&head, ']', &again))
		(void)text_take(&head, " - ");
	(void)text_cut(&head, " ");
	ready->parts[USER] = text_or_absent(head);
	take_rest(text_request(rest, &ready->parts[METHOD], &ready->parts[PATH]), ready);
	return READY_OK;
}

static const struct ready_reader reader = {.parts = parts, .dash_is_absent = true, .escapes = true, .read = read_line};

const struct format_kind format_ingress_nginx = {
	.name = "ingress_nginx",
	.meaning = "the access log of Kubernetes' ingress-nginx",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.options = format_ready_options,
	.reader = &reader,
	.create = format_ready_create,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* What the formats of synthetic logs share: included by generate_lines*.c
 * alone. */
#ifndef DEPLOY_WEIR_GENERATE_INTERNAL_H
#define DEPLOY_WEIR_GENERATE_INTERNAL_H

#include "deploy/weir/generate/lines.h"
#include "deploy/weir/generate/put.h"

/* How a format writes the second of a time. */
enum stamp_form {
	STAMP_COMMON, /* 02/Jan/2006:15:04:05 */
	STAMP_ISO,    /* 2006-01-02T15:04:05 */
	STAMP_SLASH,  /* 2006/01/02 15:04:05 */
};

struct line_format {
	const char *name;
	enum stamp_form stamp;
	const char *header;
	char *(*put)(struct generate_lines *lines, const struct generate_event *event, char *at);
};

extern const struct line_format line_format_combined, line_format_common, line_format_json, line_format_logfmt,
	line_format_delimited, line_format_nginx_error, line_format_haproxy, line_format_sshd;

/** The event's second, in the format's form. Remembers where, for a line whose
 * time is to be spoilt. */
char *line_put_stamp(struct generate_lines *lines, const struct generate_event *event, char *at);

/** The user's address: each user has another. */
char *line_put_address(const struct generate_lines *lines, uint32_t user, char *at);

/** "anna4711": each user has another. */
char *line_put_name(const struct generate_lines *lines, uint32_t user, char *at);

/** 64 bits that are the same for all of a user's requests. */
uint64_t line_visitor(const struct generate_lines *lines, uint32_t user);

/** What the user's program calls itself; may be empty. */
struct weir_span line_agent(const struct generate_lines *lines, const struct generate_event *event);

/** The page that led here; writes nothing if there is none. */
char *line_put_referer(const struct generate_lines *lines, const struct generate_event *event, char *at);

/** GET /path?query HTTP/1.1 */
char *line_put_request(const struct generate_lines *lines, const struct generate_event *event, char *at);

static inline uint32_t line_milliseconds(const struct generate_event *event)
{
	return (uint32_t)(event->time_ms % 1000);
}

static inline struct weir_span line_path(const struct generate_event *event)
{
	return (struct weir_span){.at = event->page->target, .length = event->page->path_length};
}

/** The target's part behind the '?', empty where it has none. */
static inline struct weir_span line_query(const struct generate_event *event)
{
	const struct generate_page *page = event->page;
	uint32_t from = page->path_length < page->length ? page->path_length + 1u : page->length;
	return (struct weir_span){.at = page->target + from, .length = page->length - from};
}

/** How long the answer took. */
static inline uint32_t line_duration_ms(const struct generate_event *event)
{
	uint32_t bits = (uint32_t)(event->noise >> 13);
	return event->page->asset ? bits % 4 : bits % 16 == 0 ? 200 + bits % 1800 : 8 + bits % 90;
}

#endif

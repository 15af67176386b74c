/* SPDX-License-Identifier: Apache-2.0 */
/* HAProxy's grammar is lines of words; a line that begins with the name of a section begins one. */
#include "deploy/weir/setup/haproxy_conf.h"

#include <stdio.h>
#include <string.h>

/* The next word of a line; false: none is left. */
static bool word(const char **at, const char *end, struct weir_span *out)
{
	while (*at < end && (**at == ' ' || **at == '\t'))
		++*at;
	if (*at == end || **at == '#')
		return false;
	out->at = *at;
	while (*at < end && **at != ' ' && **at != '\t' && **at != '#')
		*at += **at == '\\' && *at + 1 < end ? 2 : 1;
	out->length = (uint32_t)(*at - out->at);
	return true;
}

static bool is(struct weir_span span, const char *text)
{
	return weir_span_equal(span, weir_span_of(text));
}

/* Whether the defaults of a name are of mode http; without a name, whether the latest are. */
static bool defaults_http(const struct haproxy_conf *conf, struct weir_span name)
{
	for (size_t i = conf->count; i-- > 0;) {
		const struct haproxy_section *section = &conf->sections[i];
		if (section->kind == 'd' && (name.length == 0 || weir_span_equal(section->name, name)))
			return section->http;
	}
	return false;
}

/* "KIND [NAME] [from DEFAULTS]"; of defaults only those that are named are taken over. */
static struct haproxy_section read_head(const struct haproxy_conf *conf, char kind, const char *at, const char *end)
{
	struct haproxy_section section = {.kind = kind};
	struct weir_span span, from = {0};
	while (word(&at, end, &span)) {
		if (is(span, "from"))
			(void)word(&at, end, &from);
		else if (section.name.length == 0)
			section.name = span;
	}
	section.http = (kind != 'd' || from.length > 0) && defaults_http(conf, from);
	return section;
}

static bool begin_section(struct haproxy_conf *conf, struct weir_span first, const char *at, const char *end,
                          size_t end_at)
{
	static const char *const names[] = {"global",      "defaults",    "frontend", "listen",    "backend", "peers",
	                                    "resolvers",   "userlist",    "mailers",  "program",   "cache",   "ring",
	                                    "http-errors", "log-forward", "fcgi-app", "crt-store", "traces"};
	static const char kinds[] = "gdffb";
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (!is(first, names[i]))
			continue;
		if (conf->count < HAPROXY_CONF_SECTIONS_MAX) {
			struct haproxy_section section = read_head(conf, i < sizeof kinds - 1 ? kinds[i] : 'o', at, end);
			section.end = end_at;
			section.depth = conf->depth;
			conf->sections[conf->count++] = section;
		}
		return true;
	}
	return false;
}

/*
 * "stats socket PATH … level admin"; one of an address is not for a socket's name. HAProxy makes it as root: without
 * a group it is not for weir's units.
 */
static void read_socket(struct haproxy_conf *conf, const char *at, const char *end)
{
	struct weir_span path, span;
	bool admin = false, level = false, group = conf->group == NULL, grouped = false;
	if (!word(&at, end, &span) || !is(span, "socket") || !word(&at, end, &path))
		return;
	while (word(&at, end, &span)) {
		admin |= level && is(span, "admin");
		level = is(span, "level");
		group |= grouped && is(span, conf->group);
		grouped = is(span, "group");
	}
	if (admin && group && path.length > 0 && path.at[0] == '/' && path.length < sizeof conf->socket)
		snprintf(conf->socket, sizeof conf->socket, "%.*s", (int)path.length, path.at);
}

/* Behind this line, or behind the .if block that it is in: there it would be a condition of what is put in. */
static void put_behind(struct haproxy_section *section, unsigned depth, size_t end_at)
{
	section->open = depth > section->depth;
	if (!section->open)
		section->end = end_at;
}

static void read_condition(struct haproxy_conf *conf, struct haproxy_section *section, bool begins_one, size_t end_at)
{
	if (begins_one)
		conf->depth++;
	else if (conf->depth > 0)
		conf->depth--;
	if (!begins_one && section != NULL && section->open)
		put_behind(section, conf->depth, end_at);
}

/* Rules of tcp-request come before all of http-request, wherever they stand; HAProxy minds where they stand behind. */
static void read_rule(struct haproxy_section *section, unsigned depth, bool http, const char *at, const char *end,
                      size_t end_at)
{
	struct weir_span action, value;
	bool found = word(&at, end, &action);
	if (found && !http)
		found = word(&at, end, &action); /* behind "connection", "session" or "content" */
	if (!found)
		return;
	if (is(action, "set-src")) {
		put_behind(section, depth, end_at);
		section->sets_src |= http;
		section->looks_up_early |= http && section->looks_up;
	} else if (http && weir_span_begins(action, "set-var(txn.weir_") && word(&at, end, &value)) {
		section->looks_up |=
			weir_span_begins(value, "src,") || weir_span_begins(value, "'src,") || weir_span_begins(value, "\"src,");
	}
}

static void read_line(struct haproxy_conf *conf, const char *line, const char *end, size_t end_at)
{
	struct weir_span first, second;
	const char *at = line;
	if (!word(&at, end, &first) || begin_section(conf, first, at, end, end_at))
		return;
	struct haproxy_section *section = conf->count > 0 ? &conf->sections[conf->count - 1] : NULL;
	if (is(first, ".if") || is(first, ".endif"))
		read_condition(conf, section, is(first, ".if"), end_at);
	if (section == NULL)
		return;
	if (section->kind == 'g' && is(first, "stats"))
		read_socket(conf, at, end);
	if (is(first, "http-request") || is(first, "tcp-request"))
		read_rule(section, conf->depth, is(first, "http-request"), at, end, end_at);
	if (is(first, "mode") && word(&at, end, &second))
		section->http = is(second, "http");
}

void haproxy_conf_read(struct haproxy_conf *conf, const struct setup_file *file)
{
	const struct weir_text *text = &file->after;
	for (size_t at = 0; at < text->length;) {
		const char *end = memchr(text->at + at, '\n', text->length - at);
		size_t length = end != NULL ? (size_t)(end - text->at) - at : text->length - at;
		read_line(conf, text->at + at, text->at + at + length, at + length);
		at += length + 1;
	}
}

const struct haproxy_section *haproxy_conf_find_late(const struct haproxy_conf *conf)
{
	bool looks_up = false;
	for (size_t i = 0; i < conf->count; i++)
		looks_up |= conf->sections[i].looks_up;
	for (size_t i = 0; looks_up && i < conf->count; i++)
		if (conf->sections[i].looks_up_early || (conf->sections[i].kind == 'b' && conf->sections[i].sets_src))
			return &conf->sections[i];
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HAProxy: a map, three lines in each frontend that looks into requests, and a socket by which the map is kept. A line
 * that was put there ends with a mark, by which it is found again.
 */
#include "deploy/weir/setup/setup_plan.h"

#include <grp.h>
#include <string.h>

#define MARK "# weir setup"
#define SOCKET_PATH "/run/haproxy/weir.sock"
#define OWN_SOCKET "\n    stats socket " SOCKET_PATH " "
#define LOOK_UP "\n    http-request set-var(txn.weir_left) src,map_ip_int(%s,0),sub(txn.weir_now) " MARK

enum { PLACES_MAX = 1024 };

/* A section, from its first line's end. */
struct section {
	char kind;             /* 'g'lobal, 'd'efaults, 'f'rontend (or listen), 'o'ther */
	bool http;             /* of mode http */
	size_t end;            /* of its first line, where lines are put */
	struct weir_span name; /* empty: it has none */
};

struct reading {
	struct section sections[PLACES_MAX];
	size_t count;
	const char *group;            /* that weir runs as, by its units; NULL: there is none here */
	char socket[WEIR_PATH_BYTES]; /* of level admin, which weir may open; "": none */
};

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
static bool defaults_http(const struct reading *reading, struct weir_span name)
{
	for (size_t i = reading->count; i-- > 0;) {
		const struct section *section = &reading->sections[i];
		if (section->kind == 'd' && (name.length == 0 || weir_span_equal(section->name, name)))
			return section->http;
	}
	return false;
}

/* "KIND [NAME] [from DEFAULTS]"; of defaults only those that are named are taken over. */
static struct section read_head(const struct reading *reading, char kind, const char *at, const char *end)
{
	struct section section = {.kind = kind};
	struct weir_span span, from = {0};
	while (word(&at, end, &span)) {
		if (is(span, "from"))
			(void)word(&at, end, &from);
		else if (section.name.length == 0)
			section.name = span;
	}
	section.http = (kind != 'd' || from.length > 0) && defaults_http(reading, from);
	return section;
}

static bool begin_section(struct reading *reading, struct weir_span first, const char *at, const char *end,
                          size_t end_at)
{
	static const char *const names[] = {"global",      "defaults",    "frontend", "listen",    "backend", "peers",
	                                    "resolvers",   "userlist",    "mailers",  "program",   "cache",   "ring",
	                                    "http-errors", "log-forward", "fcgi-app", "crt-store", "traces"};
	static const char kinds[] = "gdff";
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (!is(first, names[i]))
			continue;
		if (reading->count < PLACES_MAX) {
			struct section section = read_head(reading, i < sizeof kinds - 1 ? kinds[i] : 'o', at, end);
			section.end = end_at;
			reading->sections[reading->count++] = section;
		}
		return true;
	}
	return false;
}

/*
 * "stats socket PATH … level admin"; one of an address is not for a socket's name. HAProxy makes it as root: without
 * a group it is not for weir's units.
 */
static void read_socket(struct reading *reading, const char *at, const char *end)
{
	struct weir_span path, span;
	bool admin = false, level = false, group = reading->group == NULL, grouped = false;
	if (!word(&at, end, &span) || !is(span, "socket") || !word(&at, end, &path))
		return;
	while (word(&at, end, &span)) {
		admin |= level && is(span, "admin");
		level = is(span, "level");
		group |= grouped && is(span, reading->group);
		grouped = is(span, "group");
	}
	if (admin && group && path.length > 0 && path.at[0] == '/' && path.length < sizeof reading->socket)
		snprintf(reading->socket, sizeof reading->socket, "%.*s", (int)path.length, path.at);
}

static void read_line(struct reading *reading, const char *line, const char *end, size_t end_at)
{
	struct weir_span first, second;
	const char *at = line;
	if (!word(&at, end, &first) || begin_section(reading, first, at, end, end_at) || reading->count == 0)
		return;
	struct section *section = &reading->sections[reading->count - 1];
	if (section->kind == 'g' && is(first, "stats"))
		read_socket(reading, at, end);
	if (is(first, "mode") && word(&at, end, &second))
		section->http = is(second, "http");
}

static void read_text(struct reading *reading, const struct weir_text *text)
{
	for (size_t at = 0; at < text->length;) {
		const char *end = memchr(text->at + at, '\n', text->length - at);
		size_t length = end != NULL ? (size_t)(end - text->at) - at : text->length - at;
		read_line(reading, text->at + at, text->at + at + length, at + length);
		at += length + 1;
	}
}

static size_t insert(struct setup_plan *plan, struct setup_file *file, const struct reading *reading)
{
	char lines[3 * WEIR_PATH_BYTES];
	size_t frontends = 0;
	for (size_t i = reading->count; i-- > 0;) {
		const struct section *section = &reading->sections[i];
		if (section->kind == 'g' && reading->socket[0] == '\0') {
			snprintf(lines, sizeof lines, OWN_SOCKET "%smode 660 level admin " MARK,
			         reading->group != NULL ? "group weir " : "");
			setup_file_insert(file, section->end, lines);
		}
		if (section->kind != 'f' || !section->http)
			continue;
		frontends++;
		snprintf(lines, sizeof lines,
		         "\n    http-request set-var(txn.weir_now) date " MARK LOOK_UP
		         "\n    http-request return status 429 content-type text/plain string \"too many requests\\n\" hdr "
		         "Retry-After \"%%[var(txn.weir_left)]\" if { var(txn.weir_left) -m int gt 0 } " MARK,
		         plan->map);
		setup_file_insert(file, section->end, lines);
	}
	return frontends;
}

static enum weir_status change(struct setup_plan *plan, struct setup_file *file, struct weir_error *error)
{
	struct reading reading = {.group = !plan->remove && getgrnam("weir") != NULL ? "weir" : NULL};
	read_text(&reading, &file->after);
	if (reading.socket[0] != '\0' && (!plan->remove || strstr(file->before, OWN_SOCKET) == NULL))
		memcpy(plan->own, reading.socket, sizeof reading.socket);
	else
		snprintf(plan->own, sizeof plan->own, "%s", SOCKET_PATH);
	if (plan->remove)
		return WEIR_OK;
	bool global = false;
	for (size_t i = 0; i < reading.count; i++)
		global |= reading.sections[i].kind == 'g';
	if (!global && reading.socket[0] == '\0')
		return weir_fail(error, WEIR_INVALID, "%s has no section global, where a stats socket is named", plan->file);
	if (insert(plan, file, &reading) == 0)
		return weir_fail(error, WEIR_INVALID, "%s has no frontend of mode http", plan->file);
	return WEIR_OK;
}

enum weir_status setup_haproxy(struct setup_plan *plan, struct weir_error *error)
{
	struct setup_file *file, *map;
	char directory[WEIR_PATH_BYTES];
	enum weir_status status = WEIR_OK;
	if (plan->file[0] == '\0')
		snprintf(plan->file, sizeof plan->file, "/etc/haproxy/haproxy.cfg");
	if ((status = weir_directory_of(plan->file, directory, error)) != WEIR_OK ||
	    (status = weir_path_format(plan->map, error, "%s/weir.map", directory)) != WEIR_OK ||
	    (status = setup_files_read(&plan->files, plan->file, &file, error)) != WEIR_OK)
		return status;
	if (file->before == NULL && plan->remove)
		return weir_path_format(plan->to, error, "haproxy:%s", SOCKET_PATH);
	if (file->before == NULL)
		return weir_fail(error, WEIR_IO, "there is no %s: name HAProxy's configuration with --file", plan->file);
	char line[WEIR_PATH_BYTES + sizeof LOOK_UP];
	snprintf(line, sizeof line, LOOK_UP, plan->map);
	bool named = strstr(file->before, line) != NULL;
	setup_file_strip(file, SETUP_LINE_ENDS, MARK);
	if ((status = change(plan, file, error)) != WEIR_OK ||
	    (status = weir_path_format(plan->to, error, "haproxy:%s", plan->own)) != WEIR_OK ||
	    (status = setup_files_read(&plan->files, plan->map, &map, error)) != WEIR_OK)
		return status;
	if (!plan->remove || named)
		map->gone = plan->remove;
	plan->checks[plan->check_count++] = (struct setup_command){{"haproxy", "-c", "-f", plan->file, NULL}};
	plan->reloads[plan->reload_count++] = (struct setup_command){{"systemctl", "reload", "haproxy", NULL}};
	return WEIR_OK;
}

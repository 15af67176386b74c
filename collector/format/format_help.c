/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would help to read a line, in words: looked for only in the first lines that give nothing, so it may take its time.
 *
 * What a log calls a time or a client is guessed from names that programs use, where they stand as a name in the line or
 * in the file's header. It is a proposal for people: nothing is read by it.
 */
#include "collector/format/format.h"
#include "collector/format/line_text.h"
#include "collector/record/syslog_header.h"
#include "collector/record/time_text.h"
#include "common/base/text.h"

#include <stdio.h>
#include <string.h>

static const char *const time_names[] = {
	"time",         "timestamp", "@timestamp",  "ts",         "datetime", "date",       "time_local",
	"time_iso8601", "msec",      "eventTime",   "event_time", "asctime",  "created_at", "start_time",
	"Timestamp",    "Time",      "requestTime", "t",          NULL,
};

static const char *const client_names[] = {
	"ip",       "remote_addr", "client_ip", "clientip", "clientIp",       "client", "src_ip", "source_ip",
	"srcip",    "remote_ip",   "remoteIp",  "ClientIP", "remote_address", "c-ip",   "peer",   "remote_host",
	"remoteip", "ip_address",  "host",      NULL,
};

enum { VALUE_MOST_BYTES = 128 /* of a value that is looked at: no address is longer */ };

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("_-.@/", c) != NULL;
}

/* The value behind a name in a line: behind `":` as in JSON, or `=` as in logfmt; absent: it is no name there. */
static struct weir_span value_behind(const char *at, const char *end, bool quoted)
{
	char mark = quoted ? ':' : '=';
	at += quoted && at < end;
	while (quoted && at < end && (*at == ' ' || *at == '\t'))
		at++;
	if (at == end || *at != mark)
		return (struct weir_span){0};
	for (at++; at < end && (*at == ' ' || *at == '\t' || *at == '"');)
		at++;
	const char *from = at;
	while (at < end && at - from < VALUE_MOST_BYTES && strchr(" \t\",}", *at) == NULL)
		at++;
	return (struct weir_span){.at = from, .length = (uint32_t)(at - from)};
}

/* Whether a text has a name: a header, in which names stand between other bytes, or a line, in which they have values. */
static bool has_name(struct weir_span text, const char *name, bool header, bool address)
{
	size_t length = strlen(name);
	const char *end = text.at + text.length;
	struct weir_address ignored;
	for (const char *at = text.at; (at = memmem(at, (size_t)(end - at), name, length)) != NULL; at++) {
		const char *behind = at + length;
		bool quoted = at > text.at && at[-1] == '"' && behind < end && *behind == '"';
		bool alone = (at == text.at || !is_name_byte(at[-1])) && (behind == end || !is_name_byte(*behind));
		struct weir_span value = alone && !header ? value_behind(behind, end, quoted) : (struct weir_span){0};
		if (alone && (header || (value.length > 0 && (!address || weir_address_read(value, &ignored)))))
			return true;
	}
	return false;
}

/*
 * The first of the names that the line or the file's header has, but for one; NULL: none.
 *
 * @param address  its value in the line must be one
 */
static const char *find_name(const struct format *format, struct weir_span line, const char *const *names,
                             const char *but, bool address)
{
	struct weir_span header = format_header(format);
	for (; *names != NULL; names++)
		if (strcmp(*names, but) != 0 &&
		    (has_name(line, *names, false, address) || (header.at != NULL && has_name(header, *names, true, address))))
			return *names;
	return NULL;
}

/* ---- members of objects ---- */

enum { DEPTH_MAX = 8, NAME_BYTES = 64 };

/* Whether a letter may stand in a pointer that is shown, and put into a configuration as it stands. */
static bool is_plain(char letter)
{
	return letter >= ' ' && letter <= '~' && letter != '"' && letter != '\\';
}

/*
 * Adds a member's name to a pointer, its own '~' and '/' escaped. Whoever writes lines may have chosen it.
 *
 * @return false: it is too long, or not for a terminal
 */
static bool put_step(char pointer[NAME_BYTES], size_t length, const char *name)
{
	if (length + 3 > NAME_BYTES)
		return false;
	pointer[length++] = '/';
	for (; is_plain(*name) && length + 3 < NAME_BYTES; name++) {
		bool escaped = *name == '~' || *name == '/';
		if (escaped)
			pointer[length++] = '~';
		pointer[length++] = *name == '/' ? '1' : *name == '~' ? '0' : *name;
	}
	pointer[length] = '\0';
	return *name == '\0';
}

static bool is_value(const json_t *value, bool address)
{
	struct weir_address ignored;
	const char *text = json_string_value(value);
	return address ? text != NULL && weir_address_read(weir_span_of(text), &ignored)
	               : value != NULL && !json_is_null(value) && !json_is_object(value) && !json_is_array(value);
}

/* Where a member of that name is within an object: the pointer, from `length` on. */
static bool find_member(const json_t *object, const char *name, bool address, unsigned depth, char pointer[NAME_BYTES],
                        size_t length)
{
	const char *key;
	json_t *value;
	if (is_value(json_object_get(object, name), address))
		return put_step(pointer, length, name);
	json_object_foreach((json_t *)object, key,
	                    value) if (depth < DEPTH_MAX && json_is_object(value) && put_step(pointer, length, key) &&
	                               find_member(value, name, address, depth + 1, pointer, strlen(pointer))) return true;
	return false;
}

/* Where the options' own name leads if each dot of it leads into an object. */
static bool follow_dots(const json_t *object, const char *dotted, bool address, char pointer[NAME_BYTES])
{
	char name[NAME_BYTES], *rest = name, *step;
	pointer[0] = '\0';
	if (strchr(dotted, '.') == NULL || strlen(dotted) >= sizeof name)
		return false;
	memcpy(name, dotted, strlen(dotted) + 1);
	while ((step = strsep(&rest, ".")) != NULL) {
		object = json_object_get(object, step);
		if (object == NULL || !put_step(pointer, strlen(pointer), step))
			return false;
	}
	return is_value(object, address);
}

/*
 * What a configuration calls what was found: the name, or the pointer to it where it lies within another object.
 *
 * @param but   the options' own name
 * @param name  what find_name() has found; NULL: nothing
 * @return false: there is nothing to say
 */
static bool place_of(const struct format *body, struct weir_span line, const char *but, const char *name, bool address,
                     char place[NAME_BYTES])
{
	const char *from = body->reads_objects ? memchr(line.at, '{', line.length) : NULL;
	size_t length = from != NULL ? (size_t)(line.at + line.length - from) : 0;
	json_t *object = from != NULL ? json_loadb(from, length, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, NULL) : NULL;
	bool dots = follow_dots(object, but, address, place);
	bool deep = !dots && name != NULL && object != NULL && json_object_get(object, name) == NULL;
	bool within = deep && find_member(object, name, address, 0, place, 0);
	if (!dots && !within) /* a name that lies deep is no member's, and its pointer not for a terminal */
		snprintf(place, NAME_BYTES, "%s", name != NULL && !deep ? name : "");
	json_decref(object);
	return place[0] != '\0';
}

/* ---- where an option belongs ---- */

/*
 * The object that an option belongs into.
 *
 * @param of      the format that takes it: this one, or that of its message
 * @param option  with its value; "": none
 */
static void put_place(struct weir_text *text, const struct format *format, const struct format *of, const char *option)
{
	bool within = of != format && format->type != NULL;
	weir_text_printf(text, "\"%s\": {\"type\": \"%s\"%s%s%s}%s", within ? "message" : "format", of->type,
	                 of->has_options ? ", ..." : "", option[0] != '\0' ? ", " : "", option,
	                 within ? ", within \"format\"" : "");
}

static void give(struct weir_text *text, char words[FORMAT_HELP_BYTES])
{
	snprintf(words, FORMAT_HELP_BYTES, "%.*s", (int)text->length, text->length > 0 ? text->at : "");
	weir_text_deinit(text);
}

static void say_place(const struct format *format, const struct format *of, const char *but, const char *place,
                      const char *option, char words[FORMAT_HELP_BYTES])
{
	struct weir_text text = {0};
	weir_text_printf(&text, "its lines have no \"%.60s\" but \"%s\": say ", but, place);
	put_place(&text, format, of, option);
	give(&text, words);
}

static void say_time(const struct format *format, const struct format *of, char words[FORMAT_HELP_BYTES])
{
	struct weir_text text = {0};
	const char *help = time_help_words(of->time);
	weir_text_puts(&text, help);
	/* A head that the configuration does not name has no options there. */
	if (of->type != NULL && (strstr(help, ": say \"") != NULL || strstr(help, ": describe it by \"") != NULL)) {
		weir_text_puts(&text, ", in ");
		put_place(&text, format, of, "");
	}
	give(&text, words);
}

/* An object that stands behind a syslog header, with or without the cookie of CEE. */
static bool is_behind_header(struct weir_span line)
{
	struct syslog_header header;
	if (!syslog_header_parse(line, &header) || header.message.length == 0)
		return false;
	struct weir_span message = header.message;
	return message.at[0] == '{' || (message.length > 5 && memcmp(message.at, "@cee:", 5) == 0);
}

/* Clients separated by commas, as of X-Forwarded-For. */
static bool begins_with_clients(struct weir_span line)
{
	struct weir_address ignored;
	const char *comma = memchr(line.at, ',', line.length);
	return comma != NULL && comma + 1 < line.at + line.length && comma[1] == ' ' &&
	       weir_address_read((struct weir_span){.at = line.at, .length = (uint32_t)(comma - line.at)}, &ignored);
}

static void help_name_of_time(const struct format *format, struct weir_span line, char words[FORMAT_HELP_BYTES])
{
	const char *name = format->time->name;
	const char *found = find_name(format, line, time_names, name, false);
	char place[NAME_BYTES], option[NAME_BYTES + 16];
	if (!place_of(format, line, name, found, false, place))
		return;
	snprintf(option, sizeof option, "\"time\": \"%s\"", place);
	say_place(format, format, name, place, option, words);
}

void format_help(const struct format *format, enum format_reason reason, struct weir_span line,
                 char words[FORMAT_HELP_BYTES])
{
	static const char last[] = "last message repeated "; /* of BSD's syslogd */
	words[0] = '\0';
	/* If there are two times, the line's own is read last. */
	bool inner = format->inner != NULL && format->inner->time->failed;
	if (reason == FORMAT_BAD_TIME || reason == FORMAT_TIME_RANGE)
		say_time(format, inner ? format->inner : format, words);
	else if (reason == FORMAT_LEFT_OUT)
		snprintf(
			words, FORMAT_HELP_BYTES,
			"its writer left the message out, as null: `journalctl -o json` does so where it has more than 4096 bytes, "
			"unless it is told --all");
	else if (reason == FORMAT_NO_TIME && format->time->takes_form && format->time->name != NULL)
		help_name_of_time(format, line, words);
	else if (reason == format->malformed && format->reads_objects && is_behind_header(line))
		snprintf(
			words, FORMAT_HELP_BYTES,
			"a syslog header stands before its objects: say \"format\": {\"type\": \"syslog\", \"message\": \"json\"}");
	else if (reason == format->malformed && begins_with_clients(line))
		snprintf(
			words, FORMAT_HELP_BYTES,
			"it begins with a list of clients, in which anybody may have written: log the connection's address there, and "
			"the list in quotes behind the agent, for \"client_ip\"");
	else if (reason == format->malformed && memmem(line.at, line.length, last, sizeof last - 1) != NULL)
		snprintf(
			words, FORMAT_HELP_BYTES,
			"such lines stand for others, which are not counted: start the system's syslogd with -c, so that it writes each");
}

void format_help_client(const struct format *format, struct weir_span line, char words[FORMAT_HELP_BYTES])
{
	const struct format *body = format->inner != NULL ? format->inner : format;
	char place[NAME_BYTES], option[NAME_BYTES + 32];
	words[0] = '\0';
	if (body->ip_name == NULL)
		return;
	const char *found = find_name(body, line, client_names, body->ip_name, true);
	if (!place_of(body, line, body->ip_name, found, true, place))
		return;
	snprintf(option, sizeof option, "\"fields\": {\"ip\": \"%s\"}", place);
	say_place(format, body, body->ip_name, place, option, words);
}

void format_help_cut(const struct format *format, char words[FORMAT_HELP_BYTES])
{
	words[0] = '\0';
	while (format->inner != NULL)
		format = format->inner;
	if (format->type != NULL && strcmp(format->type, "haproxy") == 0)
		snprintf(
			words, FORMAT_HELP_BYTES,
			"HAProxy cuts its lines, at 1,024 bytes unless it is told otherwise: who sends long headers that it captures, or a "
			"long URL, hides his method and path from zones that match on them. Say \"log ADDRESS len 65535 ...\" there");
}

/* Takes what stands in quotes off the end, which may be escaped as within a string of JSON, and the blank before it. */
static bool cut_quoted(struct weir_span *text)
{
	if (!text_cut(text, "\""))
		return false;
	(void)text_cut(text, "\\");
	while (text->length > 0 && text->at[text->length - 1] != '"')
		text->length--;
	if (!text_cut(text, "\""))
		return false;
	(void)text_cut(text, "\\");
	return text_cut(text, " ");
}

static bool cut_number(struct weir_span *text)
{
	uint32_t length = text->length;
	while (text->length > 0 && text_is_digit(text->at[text->length - 1]))
		text->length--;
	return text->length < length && text_cut(text, " ");
}

/* "… 17 "router@file" "http://127.0.0.1:7001" 0ms", also within an outer line. */
static bool is_of_traefik(struct weir_span line)
{
	const char *end = text_find_last(line, "ms\\n\"");
	struct weir_span text = end != NULL ? text_between(line.at, end + 2) : line;
	return text_cut(&text, "ms") && cut_number(&text) && cut_quoted(&text) && cut_quoted(&text) && cut_number(&text) &&
	       text_ends(text, "\"");
}

void format_help_forged(struct weir_span line, char words[FORMAT_HELP_BYTES])
{
	words[0] = '\0';
	if (is_of_traefik(line))
		snprintf(
			words, FORMAT_HELP_BYTES,
			"its lines are in Traefik's common format, which writes line feeds of a user's name: one request forges lines of "
			"any client. Set Traefik's access log to \"json\", and this format to \"traefik\", before it blocks");
}

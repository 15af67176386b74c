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
	while (at < end && strchr(" \t\",}", *at) == NULL)
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

void format_help(const struct format *format, enum format_reason reason, struct weir_span line,
                 char words[FORMAT_HELP_BYTES])
{
	const struct time_reader *time = format->time;
	static const char last[] = "last message repeated "; /* of BSD's syslogd */
	const char *found = NULL;
	words[0] = '\0';
	/* If there are two times, the line's own is read last. */
	if (format->inner != NULL && format->inner->time->failed)
		time = format->inner->time;
	if (reason == FORMAT_BAD_TIME || reason == FORMAT_TIME_RANGE)
		snprintf(words, FORMAT_HELP_BYTES, "%s", time_help_words(time));
	else if (reason == FORMAT_LEFT_OUT)
		snprintf(
			words, FORMAT_HELP_BYTES,
			"its writer left the message out, as null: `journalctl -o json` does so where it has more than 4096 bytes, "
			"unless it is told --all");
	else if (reason == FORMAT_NO_TIME && format->time->takes_form && format->time->name != NULL)
		found = find_name(format, line, time_names, format->time->name, false);
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
	if (found != NULL)
		snprintf(words, FORMAT_HELP_BYTES, "its lines have no \"%.60s\" but \"%s\": say \"time\": \"%s\"",
		         format->time->name, found, found);
}

void format_help_client(const struct format *format, struct weir_span line, char words[FORMAT_HELP_BYTES])
{
	const struct format *body = format->inner != NULL ? format->inner : format;
	const char *found = body->ip_name != NULL ? find_name(body, line, client_names, body->ip_name, true) : NULL;
	words[0] = '\0';
	if (found != NULL)
		snprintf(words, FORMAT_HELP_BYTES, "its lines have no \"%.60s\" but \"%s\": say \"fields\": {\"ip\": \"%s\"}",
		         body->ip_name, found, found);
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

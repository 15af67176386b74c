/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `dovecot`: Dovecot's messages about logins, behind a head of syslog's in any of its forms.
 *
 *     May 17 10:05:03 mx dovecot: imap-login: Disconnected (auth failed, 3 attempts in 7 secs): user=<x>, method=PLAIN,
 *     rip=192.0.2.7, lip=192.0.2.1, TLS, session=<abc>
 *     May 17 10:05:03 mx dovecot: auth: passwd-file(x,192.0.2.7,<abc>): Password mismatch
 *
 * Strangers choose the user. A login's line has the address behind it, and nothing else of theirs behind that: its last
 * place is the address. So it is in auth's lines, unless these also have the password that was tried: then two places with
 * different addresses are ambiguous.
 */
#include "collector/format/format_ready.h"
#include "collector/record/syslog_header.h"

enum part { TIME, HOST, PID, SERVICE, MESSAGE, EVENT, USER, METHOD, IP };

enum { ADDRESS_BYTES = 64 };

static const char *const parts[] = {"time", "host", "pid", "service", "message", "event", "user", "method", "ip", NULL};

/* What comes before the first comma. */
static struct weir_span before_comma(struct weir_span text)
{
	struct weir_span value;
	return text_until(&text, ',', &value) ? value : text;
}

static void set_event(struct weir_span words, struct ready_line *ready)
{
	struct weir_span reason = text_find(words, "(") != NULL ? text_from(words, text_find(words, "(")) : words;
	bool failed = text_begins(reason, "(auth failed") || text_find(reason, "auth failed") != NULL;
	const char *event = text_begins(words, "Login: ") || text_begins(words, "Logged in") ? "login"
	                    : failed                                                         ? "auth_failed"
	                                                                                     : "disconnected";
	ready->parts[EVENT] = weir_span_of(event);
}

/* "Disconnected (…): user=<x>, method=PLAIN, rip=192.0.2.7, lip=…" */
static enum ready_outcome read_login(struct weir_span text, struct ready_line *ready)
{
	const char *rip = text_find_last(text, " rip="), *user = text_find(text, "user=<");
	if (rip == NULL || (user != NULL && user > rip))
		return READY_OK;
	struct weir_span ip = before_comma(text_from(text, rip + 5)), before = text_between(text.at, rip);
	if (!text_is_address(ip))
		return READY_OK;
	ready->parts[IP] = ip;
	set_event(user != NULL ? text_between(text.at, user) : before, ready);
	const char *method = text_find_last(before, ", method=");
	if (method != NULL && (user == NULL || method > user)) {
		ready->parts[METHOD] = before_comma(text_from(before, method + 9));
		before.length = (uint32_t)(method - before.at);
	}
	if (user != NULL) {
		struct weir_span name = text_from(before, user + strlen("user=<"));
		(void)text_cut(&name, ",");
		if (text_cut(&name, ">"))
			ready->parts[USER] = name;
	}
	return READY_OK;
}

/* "192.0.2.7,<abc>): " or "192.0.2.7): ", as it stands behind a comma. */
static bool take_place(struct weir_span text, struct weir_span *ip)
{
	uint32_t length = 0;
	while (length < text.length && length <= ADDRESS_BYTES && text.at[length] != ',' && text.at[length] != ')')
		length++;
	*ip = text_between(text.at, text.at + length);
	text_skip(&text, length);
	if (text.length == 0 || !text_is_address(*ip))
		return false;
	return text_begins(text, "): ") || text_begins(text, ",<");
}

/*
 * "login(?,192.0.2.7,<abc>): Username character disallowed by auth_username_chars: 0x2c (username: x,y)": what stands
 * behind the first place is the stranger's. @param behind  from that place on
 */
static bool refuses_name(struct weir_span inside, struct weir_span behind)
{
	const char *words = text_find(behind, "): Username character disallowed by auth_username_chars");
	const char *end = text_find(behind, "): ");
	return text_begins(inside, "?,") && words != NULL && words == end && behind.at[behind.length - 1] == ')';
}

/* "passwd-file(x,192.0.2.7,<abc>): Password mismatch": the last such place, but for words that a stranger said. */
static enum ready_outcome read_auth(struct weir_span text, struct ready_line *ready)
{
	struct weir_span driver, inside, rest = text, ip, chosen = {0};
	bool differ = false;
	if (!text_until(&rest, '(', &driver) || memchr(driver.at, ' ', driver.length) != NULL)
		return READY_OK;
	inside = rest;
	for (const char *comma; (comma = text_find(rest, ",")) != NULL;) {
		rest = text_from(rest, comma + 1);
		if (!take_place(rest, &ip))
			continue;
		bool first = chosen.at == NULL;
		differ |= !first && !weir_span_equal(chosen, ip);
		chosen = ip;
		ready->parts[USER] = text_between(inside.at, comma);
		if (first && refuses_name(inside, rest)) {
			differ = false;
			break;
		}
	}
	if (differ && (text_find(text, "given password") != NULL || text_find(text, " (username: ") != NULL ||
	               text_find(text, " (trying to log in as user: ") != NULL))
		return READY_AMBIGUOUS;
	ready->parts[IP] = chosen;
	if (chosen.at != NULL)
		ready->parts[EVENT] = weir_span_of("auth");
	return READY_OK;
}

static enum ready_outcome read_message(struct weir_span text, struct ready_line *ready)
{
	struct weir_span service, id;
	(void)text_take(&text, "dovecot: "); /* once more than the head */
	ready->parts[MESSAGE] = text;
	if (!text_until(&text, ':', &service) || !text_take(&text, " "))
		return READY_OK;
	struct weir_span name = service;
	(void)(text_until(&service, '(', &name) || text_until(&service, '<', &name));
	if (memchr(name.at, ' ', name.length) != NULL)
		return READY_OK;
	ready->parts[SERVICE] = name;
	(void)((text_begins(text, "Info: ") && text_until(&text, ' ', &id)) ||
	       (text_begins(text, "Error: ") && text_until(&text, ' ', &id)));
	if (text_ends(name, "-login"))
		return read_login(text, ready);
	if (text_begins(name, "auth")) {
		const char *worker = text_begins(text, "conn unix:") ? text_find(text, ">: ") : NULL;
		return read_auth(worker != NULL ? text_from(text, worker + 3) : text, ready);
	}
	return READY_OK;
}

/* Dovecot's own log file: a time, and no host or name. What follows the time; absent: it is no such line. */
static struct weir_span own_message(struct weir_span line, const struct syslog_header *header, struct ready_line *ready)
{
	enum { TIME_BYTES = 19 };
	if (line.length > TIME_BYTES && line.at[4] == '-' && line.at[10] == ' ' && line.at[TIME_BYTES] == ' ') {
		ready->parts[TIME] = text_between(line.at, line.at + TIME_BYTES);
		text_skip(&line, TIME_BYTES + 1);
		return line;
	}
	if (header->app.at == NULL || header->host.at != NULL)
		return (struct weir_span){0};
	ready->parts[TIME] = header->time;
	return text_from(line, header->app.at);
}

static enum ready_outcome read_line(struct weir_span line, struct ready_line *ready)
{
	struct syslog_header header;
	if (!syslog_header_parse(line, &header))
		header = (struct syslog_header){.priority = -1};
	if (!text_is(header.app, "dovecot")) {
		struct weir_span message = own_message(line, &header, ready), service = message, before;
		if (message.at == NULL || !text_until(&service, ':', &before) ||
		    (!text_begins(before, "auth") && !text_ends(before, "-login")))
			return READY_NO_MATCH;
		return read_message(message, ready);
	}
	ready->parts[TIME] = header.time;
	ready->parts[HOST] = header.host;
	ready->parts[PID] = header.procid;
	return read_message(header.message, ready);
}

static const struct ready_reader reader = {.parts = parts, .read = read_line, .read_message = read_message};

const struct format_kind format_dovecot = {
	.name = "dovecot",
	.meaning = "Dovecot's messages about logins",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.options = format_ready_options,
	.reader = &reader,
	.create = format_ready_create,
	.create_inside = format_ready_create_inside,
};

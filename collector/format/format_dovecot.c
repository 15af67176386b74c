/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `dovecot`: Dovecot's messages about logins, behind a head of syslog's in any of its forms.
 *
 *     May 17 10:05:03 mx dovecot: imap-login: Disconnected (auth failed, 3 attempts in 7 secs): user=<x>, method=PLAIN,
 *     rip=192.0.2.7, lip=192.0.2.1, TLS, session=<abc>
 * Such a line stands for all attempts of its connection: for 3 events here.
 *
 *     May 17 10:05:03 mx dovecot: auth: passwd-file(x,192.0.2.7,<abc>): Password mismatch
 *     May 17 10:05:03 mx dovecot: auth(x,192.0.2.7,sasl:login)<abc>: sql: Password mismatch
 *     May 17 10:05:03 mx auth: pam_unix(dovecot:auth): authentication failure; … ruser=x rhost=192.0.2.7
 *
 * Strangers choose the user. A login's line has the address behind it, and nothing else of theirs behind that: its last
 * place is the address. So it is in auth's lines, unless these also have the password that was tried: then two places with
 * different addresses are ambiguous.
 */
#include "collector/format/format_ready.h"
#include "collector/format/pam_line.h"
#include "collector/record/syslog_header.h"

enum part { TIME, HOST, PID, SERVICE, MESSAGE, EVENT, USER, METHOD, IP };

enum { ADDRESS_BYTES = 64, SESSION_BYTES = 256 };

static const char *const parts[] = {"time", "host", "pid", "service", "message", "event", "user", "method", "ip", NULL};
static const char *const events[] = {"login", "auth_failed", "disconnected", "auth", NULL};

/* Dovecot's own log has it behind the service; that of 1.x before it. */
static void skip_level(struct weir_span *text)
{
	static const char *const levels[] = {"Info: ", "Error: ", "Warning: ", "Warn: ", NULL};
	for (size_t i = 0; levels[i] != NULL && !text_take(text, levels[i]); i++)
		;
}

/* What comes before the first comma. */
static struct weir_span before_comma(struct weir_span text)
{
	struct weir_span value;
	return text_until(&text, ',', &value) ? value : text;
}

/*
 * Of a connection that ended "(auth failed, 3 attempts in 7 secs)", or "(auth failed, 1 attempts)": how many; else 1. Other
 * messages have a stranger's words before the user: what a client says of itself, or the name that a proxy was given.
 */
static uint32_t attempts(struct weir_span words)
{
	static const char *const ends[] = {"Disconnected",
	                                   "Login aborted",
	                                   "Aborted login",
	                                   "Remote closed connection",
	                                   "Client has quit the connection",
	                                   NULL};
	const char *failed = text_find(words, "(auth failed, ");
	uint32_t times = 1;
	size_t i = 0;
	while (ends[i] != NULL && !text_begins(words, ends[i]))
		i++;
	if (ends[i] == NULL || failed == NULL)
		return 1;
	struct weir_span rest = text_from(words, failed + strlen("(auth failed, "));
	return repeated_times(&rest, &times) && text_take(&rest, " attempt") ? times : 1;
}

static void set_event(struct weir_span words, struct ready_line *ready)
{
	struct weir_span reason = text_find(words, "(") != NULL ? text_from(words, text_find(words, "(")) : words;
	bool failed = text_begins(reason, "(auth failed") || text_find(reason, "auth failed") != NULL;
	const char *event = text_begins(words, "Login: ") || text_begins(words, "Logged in") ? "login"
	                    : failed                                                         ? "auth_failed"
	                                                                                     : "disconnected";
	ready->parts[EVENT] = weir_span_of(event);
	if (failed)
		ready->times = weir_record_times(ready->times, attempts(words));
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

/* Takes "<abc>". */
static bool take_session(struct weir_span *text)
{
	struct weir_span inside =
		text_between(text->at, text->at + (text->length < SESSION_BYTES ? text->length : SESSION_BYTES));
	struct weir_span id;
	if (!text_take(&inside, "<") || !text_until(&inside, '>', &id))
		return false;
	text_skip(text, id.length + 2);
	return true;
}

/* Takes "sasl:login", "master", "<abc>", or nothing where nothing stands. */
static bool take_detail(struct weir_span *text)
{
	uint32_t length = 0;
	if (text_take(text, "master") || take_session(text))
		return true;
	if (text->at != NULL && text_take(text, "sasl:"))
		while (length < text->length && length < ADDRESS_BYTES && text->at[length] != ',' && text->at[length] != ')' &&
		       text->at[length] != ' ')
			length++;
	text_skip(text, length);
	return true;
}

/*
 * "192.0.2.7,<abc>): ", "192.0.2.7): ", "192.0.2.7,): " or "192.0.2.7,sasl:login)<abc>: ", as it stands behind a comma.
 * @param behind  what follows
 */
static bool take_place(struct weir_span text, struct weir_span *ip, struct weir_span *behind)
{
	uint32_t length = 0;
	while (length < text.length && length <= ADDRESS_BYTES && text.at[length] != ',' && text.at[length] != ')')
		length++;
	*ip = text_between(text.at, text.at + length);
	text_skip(&text, length);
	if (text.length == 0 || !text_is_address(*ip))
		return false;
	for (int details = 0; details < 3 && text_take(&text, ","); details++)
		(void)take_detail(&text);
	if (!text_take(&text, ")"))
		return false;
	(void)take_session(&text);
	*behind = text;
	return text_take(behind, ": ");
}

/*
 * "login(?,192.0.2.7,<abc>): Username character disallowed by auth_username_chars: 0x2c (username: x,y)": what stands
 * behind the first place is the stranger's. @param behind  that place
 */
static bool refuses_name(struct weir_span inside, struct weir_span behind)
{
	return text_begins(inside, "?,") && text_begins(behind, "Username character disallowed by auth_username_chars") &&
	       text_ends(behind, ")");
}

/* "x,192.0.2.7,<abc>): Password mismatch": the last such place, but for words that a stranger said. */
static enum ready_outcome read_inside(struct weir_span inside, struct ready_line *ready)
{
	struct weir_span rest = inside, ip, behind, chosen = {0};
	bool differ = false, debug = true;
	for (const char *comma; (comma = text_find(rest, ",")) != NULL;) {
		rest = text_from(rest, comma + 1);
		if (!take_place(rest, &ip, &behind))
			continue;
		bool first = chosen.at == NULL;
		differ |= !first && !weir_span_equal(chosen, ip);
		chosen = ip;
		debug &= text_begins(behind, "Debug: ");
		ready->parts[USER] = text_between(inside.at, comma);
		if (first && refuses_name(inside, behind))
			break;
	}
	if (differ && (text_find(inside, "given password") != NULL || text_find(inside, " (username: ") != NULL ||
	               text_find(inside, " (trying to log in as user: ") != NULL))
		return READY_AMBIGUOUS;
	if (chosen.at == NULL || debug)
		return READY_OK;
	ready->parts[IP] = chosen;
	ready->parts[EVENT] = weir_span_of("auth");
	return READY_OK;
}

/* Behind "pam_unix(dovecot:auth): ". The name that was tried is ruser, and may be user once more. */
static enum ready_outcome read_pam(struct weir_span text, struct ready_line *ready)
{
	struct weir_span host, behind;
	const char *ruser = text_find(text, " ruser="), *rhost = text_find_last(text, " rhost=");
	if (pam_host(text, true, &host, &behind) == READY_AMBIGUOUS)
		return READY_AMBIGUOUS;
	if (!text_is_address(host))
		return READY_OK;
	ready->parts[IP] = host;
	ready->parts[EVENT] = weir_span_of("auth");
	if (ruser != NULL && rhost >= ruser + 7)
		ready->parts[USER] = text_between(ruser + 7, rhost);
	return READY_OK;
}

/* "passwd-file(x,192.0.2.7,<abc>): Password mismatch" */
static enum ready_outcome read_driver(struct weir_span text, struct ready_line *ready)
{
	struct weir_span driver, rest = text;
	if (!text_until(&rest, '(', &driver) || memchr(driver.at, ' ', driver.length) != NULL)
		return READY_OK;
	if (text_begins(driver, "pam_") && text_take(&rest, "dovecot:auth): authentication failure;"))
		return read_pam(rest, ready);
	return read_inside(rest, ready);
}

/*
 * Behind the name "auth" or "auth-worker": ": DRIVER(…", "(12): DRIVER(…", or Dovecot 2.4's "(x,192.0.2.7,sasl:login)<abc>:
 * DRIVER: …", whose name may begin as the second does.
 */
static enum ready_outcome read_auth(struct weir_span text, struct ready_line *ready)
{
	struct weir_span whole = text, id;
	bool numbered = text_take(&whole, "(");
	if (numbered) {
		text = whole;
		uint32_t digits = text_digits(&text, &id);
		if ((digits == 0 && !text_take(&text, "default")) || !text_take(&text, ")"))
			return read_inside(whole, ready);
	}
	(void)take_session(&text);
	if (!text_take(&text, ": "))
		return numbered ? read_inside(whole, ready) : READY_OK;
	skip_level(&text);
	const char *worker = text_begins(text, "conn unix:") ? text_find(text, ">: ") : NULL;
	enum ready_outcome outcome = read_driver(worker != NULL ? text_from(text, worker + 3) : text, ready);
	return numbered && outcome == READY_OK && ready->parts[IP].at == NULL ? read_inside(whole, ready) : outcome;
}

/* The word at the front, which a colon, '(' or '<' follows; absent: there is none. */
static struct weir_span name_of(struct weir_span text)
{
	uint32_t length = 0;
	while (length < text.length && text.at[length] != ':' && text.at[length] != '(' && text.at[length] != '<' &&
	       text.at[length] != ' ')
		length++;
	bool named = length < text.length && text.at[length] != ' ';
	return named ? text_between(text.at, text.at + length) : (struct weir_span){0};
}

static bool is_auth(struct weir_span name)
{
	return text_is(name, "auth") || text_is(name, "auth-worker") || text_is(name, "dovecot-auth");
}

static enum ready_outcome read_message(struct weir_span text, struct ready_line *ready)
{
	struct weir_span service;
	text = ready_message(text, ready);
	(void)text_take(&text, "dovecot: "); /* once more than the head */
	ready->parts[MESSAGE] = text;
	struct weir_span name = name_of(text), behind = text;
	if (name.at == NULL)
		return READY_OK;
	if (text_begins(name, "pam_"))
		return read_driver(text, ready);
	text_skip(&behind, name.length);
	if (is_auth(name)) {
		ready->parts[SERVICE] = name;
		return read_auth(behind, ready);
	}
	if (!text_until(&text, ':', &service) || !text_take(&text, " "))
		return READY_OK;
	ready->parts[SERVICE] = name;
	skip_level(&text);
	return text_ends(name, "-login") ? read_login(text, ready) : READY_OK;
}

/*
 * Dovecot's own log file: a time, and no host or name. What follows the time; absent: it is no such line. It is told
 * before a head's name is, because that may stand in a stranger's.
 */
static struct weir_span own_message(struct weir_span line, const struct syslog_header *header)
{
	if (header->time.at == NULL || header->modern)
		return (struct weir_span){0};
	struct weir_span text = text_from(line, text_end(header->time) + 1);
	skip_level(&text);
	struct weir_span name = name_of(text);
	bool own = is_auth(name) || text_ends(name, "-login");
	return own ? text : (struct weir_span){0};
}

static enum ready_outcome read_line(struct weir_span line, struct ready_line *ready)
{
	struct syslog_header header;
	if (!syslog_header_parse(line, &header))
		return READY_NO_MATCH;
	ready->parts[TIME] = header.time;
	struct weir_span own = own_message(line, &header);
	if (own.at != NULL)
		return read_message(own, ready);
	ready->parts[HOST] = header.host;
	ready->parts[PID] = header.procid;
	if (text_is(header.app, "dovecot"))
		return read_message(header.message, ready);
	if (!is_auth(header.app))
		return READY_NO_MATCH;
	struct weir_span text = ready->parts[MESSAGE] = ready_message(header.message, ready);
	ready->parts[SERVICE] = header.app;
	skip_level(&text);
	return read_driver(text, ready);
}

static const struct ready_reader reader = {
	.parts = parts, .events = events, .read = read_line, .read_message = read_message};

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

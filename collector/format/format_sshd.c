/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `sshd`: OpenSSH's messages, behind a head of syslog's in any of its forms.
 *
 *     2024-05-01T12:00:00.123456+02:00 host sshd[123]: Failed password for invalid user x from 192.0.2.7 port 22 ssh2
 *
 * Strangers choose the user's name, the method's, the text of a certificate and, for host-based logins, the user and
 * host on their side. sshd writes all of them as they are, but for control characters. So each message is read from
 * the side on which no stranger writes; where one writes on both, what may be the address is compared.
 */
#include "collector/format/format_ready.h"
#include "collector/format/pam_line.h"
#include "collector/record/syslog_header.h"

enum part { TIME, HOST, PID, MESSAGE, EVENT, METHOD, USER, IP };

static const char *const parts[] = {"time", "host", "pid", "message", "event", "method", "user", "ip", NULL};
static const char *const events[] = {"Failed",     "Invalid", "Maximum",  "Denied", "Preauth",
                                     "Disconnect", "PAM",     "Accepted", NULL};

enum {
	CUT_BYTES = 1000, /* sshd cuts messages at 1,023 bytes: from here on the end may be a stranger's */
};

static bool is_host(struct weir_span text)
{
	for (uint32_t i = 0; i < text.length; i++) {
		char c = text.at[i];
		if (!text_is_digit(c) && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '.' && c != ':' &&
		    c != '-' && c != '_' && c != '%')
			return false;
	}
	return text.length > 0;
}

static void cut_blanks(struct weir_span *text)
{
	while (text_cut(text, " "))
		;
}

/* Cuts " KEY NUMBER" off the end. */
static void cut_numbered(struct weir_span *text, const char *key)
{
	struct weir_span cut = *text;
	while (cut.length > 0 && text_is_digit(cut.at[cut.length - 1]))
		cut.length--;
	if (cut.length < text->length && text_cut(&cut, key))
		*text = cut;
}

/* Cuts what may follow an address: " port 22", " ssh2", " [preauth]". */
static void cut_suffix(struct weir_span *text)
{
	cut_blanks(text);
	if (text_cut(text, " [preauth]"))
		cut_blanks(text);
	cut_numbered(text, " ssh");
	cut_numbered(text, " port ");
}

/* The last word: an address or a host's name. What stands before it and its blank is left. */
static bool cut_host(struct weir_span *text, struct weir_span *host)
{
	const char *blank = text_find_last(*text, " ");
	if (blank == NULL)
		return false;
	*host = text_from(*text, blank + 1);
	*text = text_between(text->at, blank);
	return is_host(*host);
}

static void take_user(struct weir_span user, struct ready_line *ready)
{
	(void)(text_take(&user, "invalid user ") || text_take(&user, "illegal user ") ||
	       text_take(&user, "authenticating user "));
	ready->parts[USER] = user;
}

/* What sshd, or libwrap for it, writes in an address's place where it does not know it. */
static bool is_unknown(struct weir_span host)
{
	return text_is(host, "UNKNOWN") || text_is(host, "unknown");
}

/* An unknown address is none: else all such clients would be one. */
static enum ready_outcome found(struct ready_line *ready, const char *event, struct weir_span ip)
{
	ready->parts[EVENT] = weir_span_of(event);
	ready->parts[IP] = is_unknown(ip) ? (struct weir_span){0} : ip;
	return READY_OK;
}

/* USER from ADDRESS[ port N][ ssh2][ via NAME][ [preauth]], read from its end. */
static enum ready_outcome read_from_end(struct weir_span text, struct ready_line *ready, const char *event)
{
	struct weir_span host, rest = text;
	cut_suffix(&rest);
	const char *via = text_find_last(rest, " via ");
	if (via != NULL && is_host(text_from(rest, via + 5)))
		rest.length = (uint32_t)(via - rest.at);
	if (!cut_host(&rest, &host))
		return READY_OK;
	if (text_is(rest, "from"))
		rest.length = 0;
	else if (!text_cut(&rest, " from"))
		return READY_OK;
	take_user(rest, ready);
	return found(ready, event, host);
}

/* ---- logins: METHOD for USER from ADDRESS[ port N[ ssh2[: KEY]]] ---- */

/* Takes "ADDRESS port N ssh2" where it is followed by a key; gives what follows the colon. */
static bool take_place(struct weir_span rest, struct weir_span *ip, struct weir_span *key)
{
	struct weir_span number;
	*ip = text_word(&rest);
	if (!is_host(*ip) || !text_take(&rest, "port ") || text_digits(&rest, &number) == 0 || !text_take(&rest, " ssh") ||
	    text_digits(&rest, &number) == 0 || !text_take(&rest, ": "))
		return false;
	*key = rest;
	return true;
}

/* Whether a login's line ends in what describes a key: "RSA SHA256:x", a certificate, or the client's user and host. */
static bool ends_in_key(struct weir_span text)
{
	if (text_ends(text, "\"") && text_find(text, ", client user \"") != NULL)
		return true;
	const char *print = text_find_last(text, " ");
	if (print == NULL || memchr(print, ':', (size_t)(text_end(text) - print)) == NULL)
		return false;
	struct weir_span before = text_between(text.at, print);
	const char *type = text_find_last(before, " ");
	if (type == NULL)
		return false;
	for (const char *at = type + 1; at < text_end(before); at++)
		if (!text_is_digit(*at) && !(*at >= 'A' && *at <= 'Z') && *at != '-')
			return false;
	before.length = (uint32_t)(type - before.at);
	return text_ends(before, ":") || text_ends(before, " CA");
}

/*
 * The address stands before a key, which may have a stranger's words in it, and behind the user, which may, too. The
 * name of a user that exists has none.
 */
static enum ready_outcome read_before_key(struct weir_span text, struct ready_line *ready, const char *event)
{
	struct weir_span rest = text, ip = {0}, place, key;
	bool known = !text_begins(text, "invalid user ") && !text_begins(text, "illegal user ");
	for (const char *mark; (mark = text_find(rest, " from ")) != NULL;) {
		rest = text_from(rest, mark + 6);
		if (!take_place(rest, &place, &key))
			continue;
		/* What follows is a type and a fingerprint alone, up to the line's end: nobody but sshd wrote that. */
		bool sure = text_find(key, " ") == text_find_last(key, " ") && !text_ends(key, "\"");
		if (ip.at != NULL && !sure && !weir_span_equal(ip, place))
			return READY_AMBIGUOUS;
		if (ip.at == NULL || sure)
			take_user(text_between(text.at, mark), ready);
		ip = place;
		if (known || sure)
			break;
	}
	return ip.at != NULL ? found(ready, event, ip) : READY_OK;
}

static enum ready_outcome read_login(struct weir_span text, struct ready_line *ready, const char *event)
{
	struct weir_span method = text_word(&text), place, key;
	bool may_have_key = text_begins(method, "publickey") || text_begins(method, "hostbased") ||
	                    text_begins(method, "rhosts") || text_begins(method, "rsa");
	bool cut = text_end(text) - method.at >= CUT_BYTES;
	ready->parts[METHOD] = method;
	(void)text_take(&text, "for ");
	if (may_have_key && ends_in_key(text))
		return read_before_key(text, ready, event);
	if (cut)
		return READY_AMBIGUOUS;
	/* One without a port behind one with a key: which of them is from what sshd wrote so? */
	struct weir_span end = text, rest = text;
	cut_suffix(&end);
	if (end.length == text.length)
		for (const char *mark; (mark = text_find(rest, " from ")) != NULL;) {
			rest = text_from(rest, mark + 6);
			if (take_place(rest, &place, &key))
				return READY_AMBIGUOUS;
		}
	return read_from_end(text, ready, event);
}

/* ---- the other messages ---- */

/* ADDRESS at the front, or nothing. */
static enum ready_outcome read_front(struct weir_span text, struct ready_line *ready, const char *event)
{
	struct weir_span ip = text_word(&text);
	while (text_cut(&ip, ":") || text_cut(&ip, ","))
		;
	return text_is_address(ip) ? found(ready, event, ip) : READY_OK;
}

/* Takes "ADDRESS port N", which a colon or the end follows. */
static bool take_peer(struct weir_span rest, struct weir_span *ip)
{
	struct weir_span number;
	*ip = text_word(&rest);
	return (text_is_address(*ip) || is_unknown(*ip)) && text_take(&rest, "port ") && text_digits(&rest, &number) > 0 &&
	       (rest.length == 0 || rest.at[0] == ':');
}

/* Takes all up to behind the next blank that such a place follows. @return the blank; NULL: none follows */
static const char *next_peer(struct weir_span *rest, struct weir_span *ip)
{
	for (const char *blank; (blank = text_find(*rest, " ")) != NULL;) {
		*rest = text_from(*rest, blank + 1);
		if (take_peer(*rest, ip))
			return blank;
	}
	return NULL;
}

/*
 * "[authenticating user NAME |invalid user NAME ]ADDRESS port N[: REASON]", as sshd names a connection. A name that exists
 * is none of a stranger's; before another, or a reason in which no stranger writes, the last such place is the address.
 * @param offered  the reason ends in words of the client's
 */
static enum ready_outcome read_peer(struct weir_span text, struct ready_line *ready, bool offered)
{
	struct weir_span ip = {0}, place, user = {0}, rest = text;
	bool known = text_take(&rest, "authenticating user ");
	if (!known && !text_take(&rest, "invalid user "))
		return read_front(text, ready, "Preauth"); /* "user NAME ": behind the login */
	struct weir_span name = rest;
	for (const char *blank; (blank = next_peer(&rest, &place)) != NULL;) {
		if (offered && ip.at != NULL && !weir_span_equal(ip, place))
			return READY_AMBIGUOUS;
		ip = place;
		user = text_between(name.at, blank);
		if (offered && known)
			break;
	}
	if (ip.at == NULL)
		return READY_OK;
	ready->parts[USER] = user;
	return found(ready, "Preauth", ip);
}

/* "PEER timed out"; "ADDRESS port N on ADDRESS port N" is any connection's beginning. */
static enum ready_outcome read_timed_out(struct weir_span text, struct ready_line *ready)
{
	cut_blanks(&text);
	if (text_cut(&text, " [preauth]"))
		cut_blanks(&text);
	return text_cut(&text, " timed out") ? read_peer(text, ready, false) : READY_OK;
}

/* "User NAME from ADDRESS not allowed because …": the reasons are sshd's. */
static enum ready_outcome read_denied(struct weir_span text, struct ready_line *ready)
{
	const char *why = text_find_last(text, " not allowed because ");
	if (why == NULL)
		return READY_OK;
	return read_from_end(text_between(text.at, why), ready, "Denied");
}

/* PAM's: its own words, then "ruser=NAME rhost=ADDRESS[  user=NAME]". */
static enum ready_outcome read_pam(struct weir_span text, struct ready_line *ready)
{
	struct weir_span host, behind;
	if (pam_host(text, false, &host, &behind) == READY_AMBIGUOUS)
		return READY_AMBIGUOUS;
	if (text_take(&behind, "user=")) {
		cut_suffix(&behind);
		ready->parts[USER] = behind;
	}
	return is_host(host) ? found(ready, "PAM", host) : READY_OK;
}

/* "[PAM ]2 more authentication failures; logname=": what it does not say one by one. */
static bool take_more(struct weir_span text, struct ready_line *ready)
{
	uint32_t more;
	(void)text_take(&text, "PAM ");
	if (!repeated_times(&text, &more) || !text_take(&text, " more authentication failure"))
		return false;
	(void)text_take(&text, "s");
	if (!text_take(&text, "; logname="))
		return false;
	ready->times = weir_record_times(ready->times, more);
	return true;
}

/*
 * "Received disconnect from ADDRESS[ port N]:[ ]CODE: TEXT": 3 is a failed login, 14 says that none was left to try.
 * Others before a login are named apart, because sshd says of most of them once more that they were disconnected.
 */
static enum ready_outcome read_received(struct weir_span text, struct ready_line *ready)
{
	struct weir_span ip = text_word(&text), number, code;
	bool ended = text_cut(&ip, ":");
	if (!ended && (!text_take(&text, "port ") || text_digits(&text, &number) == 0 || !text_take(&text, ":")))
		return READY_OK;
	(void)text_take(&text, " ");
	if (text_digits(&text, &code) == 0 || !is_host(ip))
		return READY_OK;
	if (text_is(code, "3"))
		return found(ready, "Failed", ip);
	if (text_is(code, "14"))
		return found(ready, "Preauth", ip);
	return text_ends(text, "[preauth]") ? found(ready, "Disconnect", ip) : READY_OK;
}

/* "[by ][invalid user NAME ]ADDRESS[ port N] [preauth]": what ends behind the login is no failure. */
static enum ready_outcome read_closed(struct weir_span text, struct ready_line *ready)
{
	struct weir_span ip;
	cut_blanks(&text);
	if (!text_ends(text, " [preauth]"))
		return READY_OK;
	cut_suffix(&text);
	(void)(text_take(&text, "by ") || text_take(&text, "from "));
	if (text_is_address(text))
		return found(ready, "Preauth", text);
	if (!cut_host(&text, &ip) || !text_is_address(ip))
		return READY_OK;
	take_user(text, ready);
	return found(ready, "Preauth", ip);
}

/* Whether "ADDRESS port N" stands behind a blank, with another address. */
static bool has_other_peer(struct weir_span rest, struct weir_span ip)
{
	struct weir_span place;
	while (next_peer(&rest, &place) != NULL)
		if (!weir_span_equal(ip, place))
			return true;
	return false;
}

/* "invalid user NAME ADDRESS port N: Change of username or service not allowed: (NAME,service) -> …" */
static enum ready_outcome read_change(struct weir_span text, struct ready_line *ready)
{
	static const char mark[] = ": Change of username or service not allowed: (";
	struct weir_span ip = {0};
	if (!text_take(&text, "invalid user ") && !text_take(&text, "authenticating user "))
		return READY_OK;
	for (struct weir_span rest = text;;) {
		const char *at = text_find(rest, mark);
		if (at == NULL)
			return ip.at != NULL ? found(ready, "Preauth", ip) : READY_OK;
		rest = text_from(rest, at + 1);
		struct weir_span user = text_between(text.at, at), place;
		cut_numbered(&user, " port ");
		struct weir_span again = text_from(text, at + strlen(mark));
		/* A stranger's look-alike within the name repeats its own beginning; the name itself stands here again. */
		if (!cut_host(&user, &place) || again.length <= user.length || again.at[user.length] != ',' ||
		    memcmp(again.at, user.at, user.length) != 0)
			continue;
		/* Another place behind both: all before it may be a name, of a line with another reason. */
		if ((ip.at != NULL && !weir_span_equal(ip, place)) ||
		    has_other_peer(text_from(again, again.at + user.length), place))
			return READY_AMBIGUOUS;
		ip = place;
		ready->parts[USER] = user;
	}
}

/*
 * "PEER: REASON": a client can put its words into some of sshd's reasons. That there were too many failures was said
 * before, of the last of them.
 */
static enum ready_outcome read_disconnecting(struct weir_span text, struct ready_line *ready)
{
	enum ready_outcome changed = read_change(text, ready);
	if (changed != READY_OK || ready->parts[EVENT].at != NULL)
		return changed;
	cut_blanks(&text);
	if (!text_cut(&text, " [preauth]") || text_ends(text, ": Too many authentication failures"))
		return READY_OK;
	return read_peer(text, ready, true);
}

/* "drop connection #10 from [ADDRESS]:N on [ADDRESS]:22 past MaxStartups", or "penalty: …" */
static enum ready_outcome read_dropped(struct weir_span text, struct ready_line *ready)
{
	struct weir_span number, ip;
	if (text_digits(&text, &number) == 0 || !text_take(&text, " from [") || !text_until(&text, ']', &ip))
		return READY_OK;
	return text_is_address(ip) ? found(ready, "Preauth", ip) : READY_OK;
}

static enum ready_outcome read_refused(struct weir_span text, struct ready_line *ready)
{
	const char *open = text_find_last(text, " (");
	cut_blanks(&text);
	if (open == NULL || !text_cut(&text, ")"))
		return READY_OK;
	struct weir_span ip = text_from(text, open + 2);
	return is_host(ip) ? found(ready, "Denied", ip) : READY_OK;
}

static enum ready_outcome read_fronts(struct weir_span text, struct ready_line *ready)
{
	static const char *const fronts[] = {
		"Did not receive identification string from ", "Timeout before authentication for connection from ",
		"Timeout before authentication for ", "banner exchange: Connection from ", NULL};
	static const char *const closures[] = {"Connection closed ", "Connection reset ", "Disconnected ", NULL};
	for (size_t i = 0; fronts[i] != NULL; i++)
		if (text_take(&text, fronts[i]))
			return read_front(text, ready, "Preauth");
	for (size_t i = 0; closures[i] != NULL; i++)
		if (text_take(&text, closures[i]))
			return read_closed(text, ready);
	(void)text_take(&text, "sshpkt_vfatal: ");
	if (text_take(&text, "ssh_dispatch_run_fatal: Connection from "))
		return read_peer(text, ready, false);
	if (text_take(&text, "Unable to negotiate with "))
		return read_peer(text, ready, true);
	if (text_take(&text, "Connection from "))
		return read_timed_out(text, ready);
	if (text_take(&text, "Bad protocol version identification '"))
		return read_from_end(text, ready, "Preauth");
	if (text_take(&text, "Received disconnect from "))
		return read_received(text, ready);
	if (text_take(&text, "Disconnecting "))
		return read_disconnecting(text, ready);
	return text_take(&text, "drop connection #") ? read_dropped(text, ready) : READY_OK;
}

static enum ready_outcome read_words(struct weir_span text, struct ready_line *ready)
{
	static const char *const failures[] = {
		"uthentication failure for ", "uthentication error for ",
		"uthentication failed for ",  "ser not known to the underlying authentication module for ",
		"nknown user for ",           NULL};
	if (text_take(&text, "Failed "))
		return read_login(text, ready, "Failed");
	if (text_take(&text, "Accepted "))
		return read_login(text, ready, "Accepted");
	if (text_take(&text, "Invalid user ") || text_take(&text, "invalid user ") || text_take(&text, "Illegal user ") ||
	    text_take(&text, "illegal user "))
		return read_from_end(text, ready, "Invalid");
	if (text_take(&text, "maximum authentication attempts exceeded for "))
		return read_from_end(text, ready, "Maximum");
	if (text_take(&text, "ROOT LOGIN REFUSED FROM "))
		return read_front(text, ready, "Denied");
	if (text_take(&text, "refused connect from "))
		return read_refused(text, ready);
	if (text_begins(text, "User ") && text_find(text, " not allowed because ") != NULL) {
		text_skip(&text, 5);
		return read_denied(text, ready);
	}
	for (size_t i = 0; failures[i] != NULL && text.length > 0; i++) {
		struct weir_span rest = text_from(text, text.at + 1);
		if (text_take(&rest, failures[i])) {
			ready->parts[METHOD] = weir_span_of("pam");
			return read_from_end(rest, ready, "Failed");
		}
	}
	(void)text_take(&text, "(pam_unix) ");
	if (text_begins(text, "authentication failure; logname=") ||
	    (text_begins(text, "pam_") && text_find(text, "(sshd:auth): authentication failure;") != NULL))
		return read_pam(text, ready);
	if (take_more(text, ready))
		return read_pam(text, ready);
	return read_fronts(text, ready);
}

static enum ready_outcome read_message(struct weir_span text, struct ready_line *ready)
{
	struct weir_span id;
	text = ready->parts[MESSAGE] = ready_message(text, ready);
	if (text_take(&text, "[ID ")) /* Solaris */
		(void)(text_until(&text, ']', &id) && text_take(&text, " "));
	(void)(text_take(&text, "error: ") || text_take(&text, "fatal: "));
	(void)text_take(&text, "PAM: ");
	return read_words(text, ready);
}

/* "sshd", also of newer versions' parts, "sshd(pam_unix)", or either in brackets. */
static bool is_sshd(struct weir_span app)
{
	if (text_ends(app, ")")) {
		const char *open = text_find(app, "(");
		app = open != NULL ? text_between(app.at, open) : app;
	}
	return text_is(app, "sshd") || text_is(app, "sshd-session") || text_is(app, "sshd-auth");
}

static enum ready_outcome read_line(struct weir_span line, struct ready_line *ready)
{
	struct syslog_header header;
	if (!syslog_header_parse(line, &header))
		return READY_NO_MATCH;
	struct weir_span message = header.message;
	bool bare = header.app.at == NULL && text_is(header.host, "[sshd]");
	if (!bare && !is_sshd(header.app) && (header.app.at != NULL || !text_take(&message, "[sshd] ")))
		return READY_NO_MATCH;
	ready->parts[TIME] = header.time;
	ready->parts[HOST] = bare ? (struct weir_span){0} : header.host;
	ready->parts[PID] = header.procid;
	return read_message(message, ready);
}

static const struct ready_reader reader = {
	.parts = parts, .events = events, .read = read_line, .read_message = read_message};

const struct format_kind format_sshd = {
	.name = "sshd",
	.meaning = "OpenSSH's messages in auth.log, and as `journalctl -o short-iso` prints them",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.options = format_ready_options,
	.reader = &reader,
	.create = format_ready_create,
	.create_inside = format_ready_create_inside,
};

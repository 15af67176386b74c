/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `postfix`: Postfix's messages about its clients, behind a head of syslog's in any of its forms.
 *
 *     May 17 10:05:03 mx postfix/smtpd[123]: NOQUEUE: reject: RCPT from unknown[192.0.2.7]: 554 5.7.1 …; helo=<x>
 *     May 17 10:05:03 mx postfix/smtpd[123]: warning: unknown[192.0.2.7]: SASL LOGIN authentication failed: …
 *
 * A client is NAME[ADDRESS] at a place that the message's beginning fixes. Its name comes from the DNS and has neither
 * blanks nor brackets; what else strangers write (HELO, senders, users) stands behind.
 */
#include "collector/format/format_ready.h"
#include "collector/record/syslog_header.h"

enum part { TIME, HOST, PID, SERVICE, MESSAGE, EVENT, QUEUE, CLIENT, IP, USER };

static const char *const parts[] = {"time",  "host",   "pid", "service", "message", "event",
                                    "queue", "client", "ip",  "user",    NULL};

/* "unknown[192.0.2.7]", with a port where Postfix is told to write it; what follows is left. */
static bool take_client(struct weir_span *rest, struct ready_line *ready)
{
	struct weir_span text = *rest, name, ip;
	if (!text_until(&text, '[', &name) || !text_until(&text, ']', &ip) ||
	    (name.length > 0 && memchr(name.at, ' ', name.length) != NULL) || !text_is_address(ip))
		return false;
	ready->parts[CLIENT] = format_value(name.at, name.length); /* postscreen has none */
	ready->parts[IP] = ip;
	*rest = text;
	return true;
}

static void found(struct ready_line *ready, struct weir_span rest, const char *event)
{
	if (take_client(&rest, ready))
		ready->parts[EVENT] = weir_span_of(event);
}

/* An address alone, where it is one, perhaps with a colon behind it. */
static void found_address(struct weir_span ip, struct ready_line *ready, const char *event)
{
	(void)text_cut(&ip, ":");
	if (!text_is_address(ip))
		return;
	ready->parts[IP] = ip;
	ready->parts[EVENT] = weir_span_of(event);
}

/*
 * "unknown[192.0.2.7]: SASL LOGIN authentication failed: …, sasl_username=x", "hostname x does not resolve to address …",
 * "192.0.2.7: hostname x verification failed: …"
 */
static void read_warning(struct weir_span rest, struct ready_line *ready)
{
	struct weir_span text = rest;
	const char *address = text_find(rest, " does not resolve to address "),
			   *limit = text_find(rest, " limit exceeded: ");
	if (text_begins(rest, "hostname ") && address != NULL) {
		text = text_from(rest, address + strlen(" does not resolve to address "));
		found_address(text_word(&text), ready, "warning");
		return;
	}
	struct weir_span first = text_word(&text);
	if (text_begins(text, "hostname ") || text_begins(text, "address not listed for hostname ")) {
		found_address(first, ready, "warning");
		return;
	}
	text = rest;
	if (limit != NULL && limit - rest.at < 40) {
		text = text_from(rest, limit + strlen(" limit exceeded: "));
		(void)text_word(&text);
		if (text_take(&text, "from "))
			found(ready, text, "rate_limit");
		return;
	}
	(void)(text_take(&text, "non-SMTP command from ") || text_take(&text, "Illegal address syntax from "));
	if (!take_client(&text, ready))
		return;
	const char *failed = text_find(text, " authentication failed");
	bool login = text_begins(text, ": SASL ") && failed != NULL && failed - text.at < 64;
	ready->parts[EVENT] = weir_span_of(login ? "auth_failed" : "warning");
	const char *user = login ? text_find(text, ", sasl_username=") : NULL;
	if (user != NULL)
		ready->parts[USER] = text_from(text, user + 16);
}

/* Whether there are only letters from `first` to `last`, '-' and '_'. */
static bool is_of(struct weir_span word, char first, char last)
{
	for (uint32_t i = 0; i < word.length; i++)
		if ((word.at[i] < first || word.at[i] > last) && word.at[i] != '-' && word.at[i] != '_')
			return false;
	return word.length > 0;
}

/*
 * "reject: RCPT from unknown[192.0.2.7]: …", also reject_warning, hold and the like. "message-id=<…>" and what header and
 * body checks quote ("reject: body …") are the sender's words.
 */
static void read_action(struct weir_span rest, struct ready_line *ready)
{
	struct weir_span action, stage;
	if (text_take(&rest, "client=")) {
		found(ready, rest, "client");
		const char *user = text_find(rest, ", sasl_username=");
		if (user != NULL) {
			struct weir_span name = text_from(rest, user + 16);
			const char *end = text_find(name, ", ");
			ready->parts[USER] = end != NULL ? text_between(name.at, end) : name;
		}
		return;
	}
	if (!text_until(&rest, ':', &action) || !text_take(&rest, " ") || !is_of(action, 'a', 'z'))
		return;
	stage = text_word(&rest);
	(void)text_take(&rest, "command "); /* "CONNECT from", "END-OF-MESSAGE from", "RCPT from" */
	if (!is_of(stage, 'A', 'Z') || !text_take(&rest, "from ") || !take_client(&rest, ready))
		return;
	ready->parts[EVENT] = action;
}

/* What begins so and then names the client, for postscreen behind a few words of its own; false: nothing of that. */
static bool read_form(struct weir_span text, struct ready_line *ready)
{
	static const struct {
		const char *begin, *lead, *event;
	} forms[] = {{"connect from ", NULL, "connect"},
	             {"disconnect from ", NULL, "disconnect"},
	             {"SSL_accept error from ", NULL, "tls_error"},
	             {"CONNECT from ", NULL, "connect"},
	             {"DISCONNECT ", NULL, "disconnect"},
	             {"PASS NEW ", NULL, "pass"},
	             {"PASS OLD ", NULL, "pass"},
	             {"ALLOWLISTED ", NULL, "allowlisted"},
	             {"WHITELISTED ", NULL, "allowlisted"},
	             {"DENYLISTED ", NULL, "denylisted"},
	             {"BLACKLISTED ", NULL, "denylisted"},
	             {"ALLOWLIST VETO ", NULL, "veto"},
	             {"WHITELIST VETO ", NULL, "veto"},
	             {"DNSBL ", "for ", "dnsbl"},
	             {"PREGREET ", "from ", "pregreet"},
	             {"HANGUP ", "from ", "hangup"},
	             {"COMMAND ", "from ", "command_limit"},
	             {"NON-SMTP COMMAND ", "from ", "no_smtp"},
	             {"BARE NEWLINE ", "from ", "no_smtp"}};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		if (!text_take(&text, forms[i].begin))
			continue;
		const char *lead = forms[i].lead != NULL ? text_find(text, forms[i].lead) : NULL;
		if (lead != NULL && lead - text.at < 40)
			text = text_from(text, lead + strlen(forms[i].lead));
		found(ready, text, forms[i].event);
		return true;
	}
	return false;
}

/* What smtpd says of a connection, with or without a queue's name before it; false: nothing of that. */
static bool read_connection(struct weir_span text, struct ready_line *ready)
{
	static const struct {
		const char *begin, *event;
	} stages[] = {{"lost connection after ", "lost"},
	              {"timeout after ", "timeout"},
	              {"too many errors after ", "errors"},
	              {"improper command pipelining after ", "pipelining"},
	              {"bare <LF> received after ", "no_smtp"}};
	struct weir_span inside;
	if (read_form(text, ready))
		return true;
	for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
		if (text_take(&text, stages[i].begin)) {
			(void)text_word(&text);
			if (text_begins(text, "(") && text_until(&text, ')', &inside))
				(void)text_take(&text, " ");
			if (text_take(&text, "from "))
				found(ready, text, stages[i].event);
			return true;
		}
	return false;
}

static void read_words(struct weir_span text, struct ready_line *ready)
{
	struct weir_span queue;
	if (read_connection(text, ready))
		return;
	if (text_take(&text, "addr ")) { /* dnsblog's: "addr 192.0.2.7 listed by domain zen.example as 127.0.0.2" */
		struct weir_span ip = text_word(&text);
		if (text_begins(text, "listed by domain "))
			found_address(ip, ready, "listed");
		return;
	}
	if (text_take(&text, "warning: ")) {
		read_warning(text, ready);
		return;
	}
	if (text_until(&text, ':', &queue) && memchr(queue.at, ' ', queue.length) == NULL && text_take(&text, " ")) {
		ready->parts[QUEUE] = queue;
		if (!read_connection(text, ready))
			read_action(text, ready);
	}
}

static enum ready_outcome read_message(struct weir_span text, struct ready_line *ready)
{
	text = ready->parts[MESSAGE] = ready_message(text, ready);
	read_words(text, ready);
	return READY_OK;
}

static enum ready_outcome read_line(struct weir_span line, struct ready_line *ready)
{
	struct syslog_header header;
	if (!syslog_header_parse(line, &header) || header.app.at == NULL)
		return READY_NO_MATCH;
	const char *slash = text_find(header.app, "/");
	if (slash == NULL || !text_begins(header.app, "postfix"))
		return READY_NO_MATCH;
	ready->parts[TIME] = header.time;
	ready->parts[HOST] = header.host;
	ready->parts[PID] = header.procid;
	ready->parts[SERVICE] = text_from(header.app, slash + 1);
	return read_message(header.message, ready);
}

static const struct ready_reader reader = {.parts = parts, .read = read_line, .read_message = read_message};

const struct format_kind format_postfix = {
	.name = "postfix",
	.meaning = "Postfix's messages about its clients",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.options = format_ready_options,
	.reader = &reader,
	.create = format_ready_create,
	.create_inside = format_ready_create_inside,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Fail2ban's tags and Python's expressions as PCRE2. */
#include "deploy/weir/import/fail2ban_regex.h"

#include "collector/format/format.h"

#include <ctype.h>
#include <string.h>

#define ADDRESS4 "(?:::f{4,6}:)?(?<ip>(?:\\d{1,3}\\.){3}\\d{1,3})"
#define ADDRESS6 "(?<ip>(?:[0-9a-fA-F]{1,4}::?|:){1,7}(?:[0-9a-fA-F]{1,4}|(?<=:):))"
#define ADDRESS "\\[?(?:" ADDRESS4 "|" ADDRESS6 ")\\]?"
/* A name is matched as fail2ban does, so that no other part of the line is taken for the address, and gives none. */
#define NAME "[\\w\\-.^_]*\\w"

struct tag {
	const char *name, *expression;
};

static const struct tag tags[] = {
	{"<HOST>", "(?:" ADDRESS "|" NAME ")"},
	{"<ADDR>", ADDRESS},
	{"<IP4>", ADDRESS4},
	{"<IP6>", ADDRESS6},
	{"<CIDR>", "\\d+"},
	{"<SUBNET>", ADDRESS "(?:/\\d+)?"},
	{"<DNS>", NAME},
	{"<F-CONTENT>", "\2"},
	{"</F-CONTENT>", "\3"},
	{NULL, NULL},
};

struct translation {
	const char *at;
	const char *nofail;
	struct regex *regex;
	bool timed, in_class;
	const char *refused;
};

static bool take(struct translation *now, const char *word)
{
	size_t length = strlen(word);
	if (strncmp(now->at, word, length) != 0)
		return false;
	now->at += length;
	return true;
}

static void put(struct translation *now, const char *text)
{
	weir_text_puts(&now->regex->text, text);
}

/* <F-USER> and its like: a group. What is a failure's identity in place of the address has no counterpart. */
static bool take_group_tag(struct translation *now)
{
	if (strncmp(now->at, "</F-", 4) == 0 || strncmp(now->at, "<F-", 3) == 0) {
		const char *end = strchr(now->at, '>');
		if (end == NULL || end[-1] == '/')
			return false;
		bool closes = now->at[1] == '/';
		const char *name = now->at + (closes ? 4 : 3);
		size_t length = (size_t)(end - name);
		now->at = end + 1;
		if (closes) {
			put(now, ")");
		} else if (now->nofail != NULL && ((length == 6 && strncmp(name, "NOFAIL", 6) == 0) ||
		                                   (length == 9 && strncmp(name, "MLFGAINED", 9) == 0))) {
			weir_text_printf(&now->regex->text, "(?<%s>", now->nofail);
			now->regex->has_nofail = true;
		} else if (length == 4 && strncmp(name, "USER", 4) == 0) {
			put(now, "(?<user>");
		} else if (length >= 2 && strncmp(name, "ID", 2) == 0 && length == 2) {
			now->refused = "counts by <F-ID>, something else than an address";
		} else {
			put(now, "(?:");
		}
		return true;
	}
	return false;
}

static bool take_tag(struct translation *now)
{
	if (now->at[0] != '<')
		return false;
	for (const struct tag *tag = tags; tag->name != NULL; tag++)
		if (take(now, tag->name)) {
			put(now, tag->expression);
			now->regex->has_address |= strstr(tag->expression, "<ip>") != NULL;
			return true;
		}
	if (strncmp(now->at, "<SKIPLINES>", 11) == 0)
		now->refused = "spans several lines (<SKIPLINES>)";
	return take_group_tag(now);
}

static bool take_escape(struct translation *now)
{
	if (now->at[0] != '\\' || now->at[1] == '\0')
		return false;
	if (!now->in_class && now->at[1] >= '1' && now->at[1] <= '9')
		now->refused = "refers to a group by its number";
	if (!now->in_class && now->at[1] == 'A')
		now->refused = "has \\A";
	if (now->at[1] == 'Z') {
		put(now, "\\z");
	} else {
		weir_text_append(&now->regex->text, now->at, 2);
	}
	now->at += 2;
	return true;
}

/*
 * What the time leaves when it is cut out: [] and two blanks. (?P<name>, with the names that mean something to weir or to
 * fail2ban; and {,n}, which PCRE2 takes for a text.
 */
static bool take_other(struct translation *now)
{
	if (take(now, "(?P<host>") || take(now, "(?P<ip4>") || take(now, "(?P<ip6>")) {
		put(now, "(?<ip>");
		now->regex->has_address = true;
		return true;
	}
	if (now->timed && take(now, "\\[\\]")) {
		put(now, "\\[(?:\\k<time>)?\\]");
		now->regex->has_time_place |= strncmp(now->at, ")?", 2) != 0;
		return true;
	}
	if (now->timed && take(now, "  ")) {
		put(now, " (?:\\k<time>)? ");
		return true;
	}
	if (strncmp(now->at, "{,", 2) == 0 && isdigit((unsigned char)now->at[2])) {
		put(now, "{0");
		now->at++;
		return true;
	}
	if (take(now, "(?P<time>")) {
		put(now, "(?<time_>");
		return true;
	}
	if (strncmp(now->at, "(?(", 3) == 0 && isdigit((unsigned char)now->at[3]))
		now->refused = "asks for a group by its number";
	return false;
}

static void take_byte(struct translation *now)
{
	char byte = *now->at;
	if (now->in_class) {
		now->in_class = byte != ']';
	} else if (byte == '[') {
		/* A ] right behind the beginning is one of the class. PCRE2 takes [: for a class by name, Python does not. */
		size_t length = 1;
		length += now->at[length] == '^';
		length += now->at[length] == ']';
		weir_text_append(&now->regex->text, now->at, length);
		now->at += length;
		now->in_class = true;
		return;
	} else if (byte == '^' && now->refused == NULL) {
		now->refused = "has ^ within the expression";
	}
	weir_text_append(&now->regex->text, now->at++, 1);
}

/* Flags of the whole expression, and its anchor, in either order. Text is bytes here, so Python's u and a say nothing. */
static void take_beginning(struct translation *now)
{
	for (;;) {
		if (take(now, "^"))
			now->regex->anchored = true;
		else if (take(now, "(?i)") || take(now, "(?iu)"))
			put(now, "(?i)");
		else if (!take(now, "(?u)") && !take(now, "(?a)") && !take(now, "(?s)"))
			return;
	}
}

const char *regex_translate(const char *python, const char *nofail, bool timed, struct regex *regex)
{
	struct translation now = {.at = python, .nofail = nofail, .timed = timed, .regex = regex};
	take_beginning(&now);
	while (*now.at != '\0' && now.refused == NULL) {
		bool taken = !now.in_class && (take_tag(&now) || take_other(&now));
		if (!taken && !take_escape(&now))
			take_byte(&now);
	}
	return now.refused;
}

void regex_deinit(struct regex *regex)
{
	weir_text_deinit(&regex->text);
}

const char *regex_refused(struct weir_span expression, struct weir_error *error)
{
	struct weir_text text = {0};
	weir_text_puts(&text, "{\"type\": \"pattern\", \"pattern\": ");
	struct weir_text whole = {0};
	weir_text_puts(&whole, "(?J)(?<time>)");
	weir_text_append(&whole, expression.at, expression.length);
	weir_text_json(&text, weir_text_span(&whole));
	weir_text_puts(&text, "}");
	struct weir_json_document *document = NULL;
	enum weir_status status = weir_json_parse("expression", text.at, text.length, &document, error);
	if (status == WEIR_OK) {
		struct weir_json root = weir_json_root(document);
		struct weir_field_table fields = {0};
		struct format *format = NULL;
		status = format_new(&root, &fields, &format, error);
		if (status == WEIR_OK)
			format_free(format);
		weir_json_document_free(document);
	}
	weir_text_deinit(&whole);
	weir_text_deinit(&text);
	if (status == WEIR_OK)
		return NULL;
	const char *words = strstr(error->text, "is not "); /* behind the place in a configuration that nobody has seen */
	return words != NULL ? words : error->text;
}

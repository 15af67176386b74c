/* SPDX-License-Identifier: Apache-2.0 */
/* A filter of fail2ban as one expression. */
#include "deploy/weir/import/fail2ban_filter.h"

#include "common/base/alloc.h"
#include "deploy/weir/import/fail2ban_regex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GIVEN_MAX = 64, PASSES_MAX = 64, TEXT_MAX_BYTES = 64 << 10, EXPRESSION_MAX_BYTES = 15000, LIST_MAX = 512 };

struct reader {
	const struct filter_request *request;
	struct filter *filter;
	struct ini ini;
	struct ini_option given[GIVEN_MAX];
	size_t given_count;
	char nofail[16];
	bool joins_lines; /* by <F-MLFID> */
	bool has_nofail, has_address;
	/* of the prefregex */
	struct regex prefix;
	const char *inner, *after; /* its content, and what is behind that; NULL: there is no prefregex */
	char *end;                 /* what stands for $ within the content; NULL: $ itself */
};

static void loss(struct reader *reader, const char *words, const char *of)
{
	plan_loss(reader->request->plan, reader->request->item, "%s: %.120s", words, of);
}

/* ---- the name, and what is given with it: sshd[mode=aggressive, x="y"] ---- */

static void give(struct reader *reader, const char *name, size_t name_length, const char *value, size_t length)
{
	if (reader->given_count == GIVEN_MAX)
		return;
	struct plan *plan = reader->request->plan;
	reader->given[reader->given_count++] =
		(struct ini_option){.name = plan_keep(plan, name, name_length), .value = plan_keep(plan, value, length)};
}

static void read_given(struct reader *reader, const char *at)
{
	while (*at != '\0') {
		at += strspn(at, " ,\n\t[]");
		size_t name = strcspn(at, "=,]");
		if (at[name] != '=')
			return;
		const char *value = at + name + 1;
		size_t length = *value == '"' || *value == '\'' ? 1 : strcspn(value, ",]");
		if (length == 1 && (*value == '"' || *value == '\'')) {
			const char *end = strchr(value + 1, *value);
			length = end != NULL ? (size_t)(end - value) - 1 : strlen(value + 1);
			give(reader, at, name, value + 1, length);
			at = value + 1 + length + (end != NULL);
		} else {
			give(reader, at, name, value, length);
			at = value + length;
		}
	}
}

/* ---- its files ---- */

static enum weir_status read_file(struct reader *reader, const char *form, bool needed, bool *found,
                                  struct weir_error *error)
{
	char *path =
		plan_print(reader->request->plan, "%s/filter.d/%s%s", reader->request->folder, reader->filter->name, form);
	*found = access(path, F_OK) == 0;
	return ini_read(&reader->ini, path, needed, error);
}

static enum weir_status read_files(struct reader *reader, struct weir_error *error)
{
	bool conf, local;
	enum weir_status status = read_file(reader, ".conf", false, &conf, error);
	if (status == WEIR_OK)
		status = read_file(reader, ".local", false, &local, error);
	if (status != WEIR_OK)
		return status;
	reader->filter->changed |= local;
	if (!conf && !local)
		loss(reader, "there is no filter of this name in filter.d", reader->filter->name);
	return WEIR_OK;
}

/* ---- values: %(name)s, then <name> ---- */

/* What a tag stands for; *value NULL: nothing, so it stays. */
static enum weir_status tag_value(struct reader *reader, char *name, const char **value, struct weir_error *error)
{
	char *slash = strchr(name, '/');
	*value = NULL;
	if (slash != NULL) {
		*slash = '\0';
		enum weir_status status = ini_value(&reader->ini, name, slash + 1, value, error);
		*slash = '/';
		return status;
	}
	enum weir_status status = ini_value(&reader->ini, "Definition", name, value, error);
	return status == WEIR_OK && *value == NULL ? ini_value(&reader->ini, "Init", name, value, error) : status;
}

static size_t tag_length(const char *at)
{
	size_t length = 1 + strspn(at + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./");
	return length > 1 && at[length] == '>' ? length + 1 : 0;
}

/* One pass over a text: tags that have no other in them become their values. */
static enum weir_status pass(struct reader *reader, const char *text, struct weir_text *out, bool *changed,
                             struct weir_error *error)
{
	for (const char *at = text; *at != '\0';) {
		size_t length = *at == '<' ? tag_length(at) : 0;
		bool group = at - text >= 2 && (strncmp(at - 2, "(?", 2) == 0 || strncmp(at - 2, "?P", 2) == 0);
		const char *value = NULL;
		if (length > 0 && !group && strncmp(at, "<F-", 3) != 0 && strncmp(at, "</", 2) != 0) {
			char *name = weir_copy(at + 1, length - 2);
			enum weir_status status = tag_value(reader, name, &value, error);
			free(name);
			if (status != WEIR_OK)
				return status;
		}
		if (value != NULL) {
			weir_text_puts(out, value);
			at += length;
			*changed = true;
		} else {
			weir_text_append(out, at++, 1);
		}
		if (out->length > TEXT_MAX_BYTES)
			return weir_fail(error, WEIR_INVALID, "an expression becomes longer than %d bytes", TEXT_MAX_BYTES);
	}
	return WEIR_OK;
}

static enum weir_status replace_tags(struct reader *reader, const char **text, struct weir_error *error)
{
	for (int i = 0; i < PASSES_MAX; i++) {
		struct weir_text out = {0};
		bool changed = false;
		enum weir_status status = pass(reader, *text, &out, &changed, error);
		*text = plan_keep(reader->request->plan, out.at != NULL ? out.at : "", out.length);
		weir_text_deinit(&out);
		if (status != WEIR_OK || !changed)
			return status;
	}
	return weir_fail(error, WEIR_INVALID, "a <name> refers to itself");
}

/* An option of the filter, or what the jail says in its place; "" where neither does. A value that is wrong is noted. */
static const char *filter_value(struct reader *reader, const char *name, const char *of_jail)
{
	const char *value = of_jail;
	struct weir_error error;
	enum weir_status status = WEIR_OK;
	if (of_jail == NULL) {
		char *copy = weir_copy(name, strlen(name));
		status = tag_value(reader, copy, &value, &error);
		free(copy);
	}
	if (status == WEIR_OK && value != NULL)
		status = replace_tags(reader, &value, &error);
	if (status != WEIR_OK) {
		plan_loss(reader->request->plan, reader->request->item, "%s of the filter cannot be read: %s", name,
		          error.text);
		return "";
	}
	return value != NULL ? value : "";
}

/* ---- expressions ---- */

/* At a line's beginning: what the time and what is cut out with it leave behind. */
static void put_beginning(const struct reader *reader, const struct regex *regex, struct weir_text *out)
{
	const struct date *date = &reader->filter->date;
	if (!regex->anchored) {
		weir_text_puts(out, ".*?");
	} else if (!reader->request->journal && date->cuts_around) {
		const char *before = date->before[0] == '^' ? date->before + 1 : date->before;
		bool bare = before[0] == '\0' && date->after[0] == '\0';
		before = bare ? "\\[?" : before;
		const char *after = bare ? "\\]?" : date->after;
		if (regex->has_time_place) /* it may be there, or here */
			weir_text_printf(out, "(?:%s\\k<time>%s)?", before, after);
		else
			weir_text_printf(out, "(?(?=%s\\k<time>)%s\\k<time>%s)", before, before, after);
	}
}

/* Where there is a prefregex, $ is the end of its content. */
static void put_body(const struct reader *reader, const char *text, size_t length, struct weir_text *out)
{
	bool in_class = false;
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\\' && i + 1 < length) {
			weir_text_append(out, text + i++, 2);
			continue;
		}
		in_class = in_class ? text[i] != ']' : text[i] == '[';
		if (text[i] == '$' && !in_class && reader->end != NULL)
			weir_text_printf(out, "(?=%s)", reader->end);
		else
			weir_text_append(out, text + i, 1);
	}
}

static bool translate(struct reader *reader, const char *what, const char *python, struct regex *regex)
{
	const char *refused =
		regex_translate(python, reader->joins_lines ? reader->nofail : NULL, !reader->request->journal, regex);
	struct weir_error error;
	if (refused == NULL && what[0] != 'p')
		refused = regex_refused(weir_text_span(&regex->text), &error);
	if (refused != NULL) {
		plan_loss(reader->request->plan, reader->request->item, "%s is left out: it %s: %.100s", what, refused, python);
		return false;
	}
	return true;
}

/* Appends one of a list of expressions as a branch. @return whether it is there */
static bool put_branch(struct reader *reader, const char *what, const char *python, bool first, struct weir_text *out)
{
	struct regex regex = {0};
	bool good = translate(reader, what, python, &regex);
	if (good) {
		weir_text_puts(out, first ? "" : "|");
		if (reader->inner == NULL)
			put_beginning(reader, &regex, out);
		else if (!regex.anchored)
			weir_text_puts(out, ".*?");
		weir_text_puts(out, "(?:"); /* its | and its flags, as (?i), end with it */
		put_body(reader, regex.text.at != NULL ? regex.text.at : "", regex.text.length, out);
		weir_text_puts(out, ")");
		reader->has_nofail |= regex.has_nofail;
		reader->has_address |= regex.has_address;
	}
	regex_deinit(&regex);
	return good;
}

/* @return how many of the list's lines are there */
static unsigned put_list(struct reader *reader, const char *what, const char *list, bool failures,
                         struct weir_text *out)
{
	char *copy = plan_keep(reader->request->plan, list, strlen(list)), *rest = NULL;
	unsigned count = 0, lines = 0;
	for (char *line = strtok_r(copy, "\n", &rest); line != NULL && lines < LIST_MAX;
	     line = strtok_r(NULL, "\n", &rest)) {
		bool address = reader->has_address, nofail = reader->has_nofail;
		lines++;
		reader->has_address = reader->has_nofail = false;
		bool there = put_branch(reader, what, line, count == 0, out);
		if (there && failures && !reader->has_address && !reader->has_nofail && !reader->prefix.has_address)
			plan_loss(reader->request->plan, reader->request->item,
			          "lines of this kind name no client, and weir does not remember that of an earlier line: %.100s",
			          line);
		reader->has_address |= address;
		reader->has_nofail |= nofail;
		count += there;
	}
	return count;
}

static bool read_prefix(struct reader *reader, const char *python)
{
	if (!translate(reader, "prefregex", python, &reader->prefix))
		return false;
	struct weir_text *text = &reader->prefix.text;
	weir_text_append(text, "", 1);
	char *begin = strchr(text->at, REGEX_CONTENT_BEGIN), *end = strchr(text->at, REGEX_CONTENT_END);
	reader->has_address |= reader->prefix.has_address;
	reader->has_nofail |= reader->prefix.has_nofail;
	if (begin == NULL || end == NULL || end < begin) {
		loss(reader, "prefregex is left out, and with it all", "it has no <F-CONTENT>");
		return false;
	}
	*begin = *end = '\0';
	reader->inner = begin + 1;
	reader->after = end + 1;
	if (strcmp(reader->after, "$") != 0)
		reader->end = plan_print(reader->request->plan, "%s", reader->after);
	return true;
}

/* All that is between a line's beginning and the expression's end. */
static bool put_all(struct reader *reader, const char *fails, const char *ignores, struct weir_text *out)
{
	if (reader->inner != NULL) {
		weir_text_puts(out, "(?>");
		put_beginning(reader, &reader->prefix, out);
		weir_text_printf(out, "%s(?=%s%s))", reader->prefix.text.at, reader->inner, reader->after);
	}
	struct weir_text ignored = {0};
	if (put_list(reader, "ignoreregex", ignores, false, &ignored) > 0) {
		weir_text_puts(out, "(?!");
		weir_text_append(out, ignored.at, ignored.length);
		weir_text_puts(out, ")");
	}
	weir_text_deinit(&ignored);
	bool address = reader->inner != NULL && reader->prefix.has_address;
	reader->has_address = address;
	weir_text_puts(out, "(?>");
	unsigned count = put_list(reader, "failregex", fails, true, out);
	weir_text_puts(out, ")");
	if (reader->has_nofail)
		weir_text_printf(out, "(?(<%s>)(?!))", reader->nofail);
	if (count == 0)
		plan_loss(reader->request->plan, reader->request->item, "no expression of its filter can be taken");
	else if (!reader->has_address)
		plan_loss(reader->request->plan, reader->request->item, "none of its expressions gives an address");
	return count > 0 && reader->has_address;
}

static void read_date(struct reader *reader)
{
	const struct filter_request *request = reader->request;
	const char *pattern = filter_value(reader, "datepattern", request->datepattern);
	reader->filter->date = date_usual(request->plan);
	if (request->journal || pattern[0] == '\0')
		return;
	const char *refused = date_read(request->plan, pattern, &reader->filter->date);
	if (refused != NULL) {
		plan_loss(request->plan, request->item, "datepattern is read as any usual form of a time: %s: %.100s", refused,
		          pattern);
		reader->filter->date = date_usual(request->plan);
	}
}

static void make_expression(struct reader *reader)
{
	const struct filter_request *request = reader->request;
	read_date(reader);
	const char *prefix = filter_value(reader, "prefregex", request->prefregex);
	const char *fails = filter_value(reader, "failregex", NULL), *ignores = filter_value(reader, "ignoreregex", NULL);
	if (request->failregex != NULL)
		fails = plan_print(request->plan, "%s\n%s", fails, request->failregex);
	if (request->ignoreregex != NULL)
		ignores = plan_print(request->plan, "%s\n%s", ignores, request->ignoreregex);
	reader->joins_lines = strstr(prefix, "<F-MLFID>") != NULL || strstr(fails, "<F-MLFID>") != NULL;
	if (reader->joins_lines)
		plan_loss(request->plan, request->item,
		          "fail2ban puts the lines of one connection together by <F-MLFID>; here each line stands for itself");
	const char *more = filter_value(reader, "maxlines", NULL);
	if (more[0] != '\0' && strcmp(more, "1") != 0)
		plan_loss(request->plan, request->item, "maxlines = %.20s: weir judges each line by itself", more);
	struct weir_text out = {0};
	if ((prefix[0] == '\0' || read_prefix(reader, prefix)) && put_all(reader, fails, ignores, &out)) {
		struct weir_error error;
		const char *refused = out.length <= EXPRESSION_MAX_BYTES ? regex_refused(weir_text_span(&out), &error) : NULL;
		if (out.length > EXPRESSION_MAX_BYTES)
			plan_loss(request->plan, request->item, "its expression would be longer than the %d bytes that weir takes",
			          EXPRESSION_MAX_BYTES);
		else if (refused != NULL)
			loss(reader, "its expressions give none of weir's", refused);
		else
			reader->filter->expression = plan_keep(request->plan, out.at, out.length);
	}
	weir_text_deinit(&out);
}

enum weir_status filter_read(const struct filter_request *request, struct filter *filter, struct weir_error *error)
{
	struct reader reader = {.request = request, .filter = filter, .ini = {.plan = request->plan}};
	size_t name = strcspn(request->spec, "[ \n");
	filter->name = plan_keep(request->plan, request->spec, name);
	filter->changed = request->failregex != NULL || request->ignoreregex != NULL || request->prefregex != NULL;
	snprintf(reader.nofail, sizeof reader.nofail, "nofail%u", request->number);
	read_given(&reader, request->spec + name);
	for (size_t i = 0; i < reader.given_count; i++)
		filter->changed |= strcmp(reader.given[i].name, "mode") != 0 && strcmp(reader.given[i].name, "logtype") != 0;
	if (request->journal)
		give(&reader, "logtype", 7, "journal", 7);
	reader.ini.given = reader.given;
	reader.ini.given_count = reader.given_count;
	filter->notes_from = request->item->note_count;
	enum weir_status status = name > 0 ? read_files(&reader, error) : WEIR_OK;
	if (status == WEIR_OK) {
		filter->fingerprint = ini_fingerprint(&reader.ini);
		filter->mode = plan_print(request->plan, "%s", filter_value(&reader, "mode", NULL));
		filter->journalmatch =
			plan_print(request->plan, "%s", filter_value(&reader, "journalmatch", request->journalmatch));
		make_expression(&reader);
	}
	filter->notes_to = request->item->note_count;
	regex_deinit(&reader.prefix);
	ini_deinit(&reader.ini);
	return status;
}

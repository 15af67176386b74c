/* SPDX-License-Identifier: Apache-2.0 */
/* What Sigma's detections ask of an event. */
#include "deploy/weir/import/sigma.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

void sigma_refuse(struct sigma_match *match, const char *words, const char *of)
{
	plan_loss(match->plan, match->item, "%s: %.160s", words, of);
	match->lost = true;
}

static const struct {
	const char *theirs, *ours;
} web_fields[] = {
	{"c-ip", "ip"},          {"clientip", "ip"},         {"src_ip", "ip"},         {"cs-method", "method"},
	{"sc-status", "status"}, {"cs-uri-stem", "path"},    {"c-uri", "target"},      {"cs-uri", "target"},
	{"cs-host", "host"},     {"cs-user-agent", "agent"}, {"c-useragent", "agent"}, {"cs-referer", "referer"},
	{"cs-username", "user"}, {"sc-bytes", "bytes"},
};

const char *sigma_field(const struct sigma_match *match, const char *name)
{
	for (size_t i = 0; match->web && i < sizeof web_fields / sizeof *web_fields; i++)
		if (strcmp(web_fields[i].theirs, name) == 0)
			return web_fields[i].ours;
	return name;
}

/* ---- values ---- */

struct modifiers {
	bool contains, begins, ends, all, cidr, cased, exists;
};

static bool read_modifiers(struct sigma_match *match, char *names, struct modifiers *modifiers)
{
	char *rest = NULL;
	for (char *name = strtok_r(names, "|", &rest); name != NULL; name = strtok_r(NULL, "|", &rest)) {
		if (strcmp(name, "contains") == 0)
			modifiers->contains = true;
		else if (strcmp(name, "startswith") == 0)
			modifiers->begins = true;
		else if (strcmp(name, "endswith") == 0)
			modifiers->ends = true;
		else if (strcmp(name, "all") == 0)
			modifiers->all = true;
		else if (strcmp(name, "cidr") == 0)
			modifiers->cidr = true;
		else if (strcmp(name, "cased") == 0)
			modifiers->cased = true;
		else if (strcmp(name, "exists") == 0)
			modifiers->exists = true;
		else {
			sigma_refuse(match, "weir's match has no such modifier", name);
			return false;
		}
	}
	return true;
}

/* A value with Sigma's wildcards; NULL: weir's match cannot say it. */
static const char *plain_value(struct sigma_match *match, const char *value)
{
	struct weir_text text = {0};
	const char *refused = NULL;
	for (const char *at = value; *at != '\0' && refused == NULL; at++) {
		if (*at == '?')
			refused = "weir's match has no ? for one character";
		else if (*at == '\\' && at[1] == '*')
			refused = "weir's match has no * that stands for itself";
		else if (*at == '\\' && (at[1] == '\\' || at[1] == '?'))
			at++;
		weir_text_append(&text, at, 1);
	}
	char *kept = plan_keep(match->plan, text.at != NULL ? text.at : "", text.length);
	weir_text_deinit(&text);
	if (refused != NULL)
		sigma_refuse(match, refused, value);
	return refused == NULL ? kept : NULL;
}

/* YAML's null, in each of its spellings. */
static bool is_null(const struct doc_node *value)
{
	static const char *const words[] = {"null", "Null", "NULL", "~", ""};
	for (size_t i = 0; value->kind == DOC_TEXT && !value->quoted && i < sizeof words / sizeof *words; i++)
		if (strcmp(value->text, words[i]) == 0)
			return true;
	return false;
}

static void add_value(struct sigma_match *match, const char *field, const struct doc_node *value,
                      const struct modifiers *modifiers, bool not, bool first)
{
	if (value->kind != DOC_TEXT) {
		sigma_refuse(match, "a value is no text", field);
		return;
	}
	bool none = is_null(value);
	if (modifiers->exists)
		none = strcmp(value->text, "true") != 0;
	const char *text = none || modifiers->exists ? "*" : plain_value(match, value->text);
	if (text == NULL)
		return;
	for (const char *at = text; *at != '\0' && !modifiers->cased && !modifiers->cidr; at++)
		if (isalpha((unsigned char)*at)) {
			plan_loss(match->plan, match->item,
			          "Sigma takes letters in either case, weir's match as they are written (|cased says the same)");
			break;
		}
	enum match_how how = MATCH_WILD;
	if (modifiers->contains || modifiers->begins || modifiers->ends)
		text = plan_print(match->plan, "%s%s%s", modifiers->contains || modifiers->ends ? "*" : "", text,
		                  modifiers->contains || modifiers->begins ? "*" : "");
	const char *why = match_add(&match->set, sigma_field(match, field), not != none, first, how, text);
	if (why != NULL)
		sigma_refuse(match, why, field);
}

/* One member of a selection: FIELD|MODIFIER: one value, or a list of which one must be. */
static void take_member(struct sigma_match *match, const struct doc_node *member, bool not )
{
	char *key = plan_keep(match->plan, member->key, strlen(member->key)), *bar = strchr(key, '|');
	struct modifiers modifiers = {0};
	if (bar != NULL) {
		*bar = '\0';
		if (!read_modifiers(match, bar + 1, &modifiers))
			return;
	}
	if (member->kind != DOC_LIST) {
		add_value(match, key, member, &modifiers, not, true);
		return;
	}
	if (modifiers.all && member->first != NULL && member->first->next != NULL) {
		sigma_refuse(match, "weir's match cannot ask that a value has several parts (|all)", key);
		return;
	}
	bool first = true;
	for (const struct doc_node *value = member->first; value != NULL && !match->lost; value = value->next) {
		if (is_null(value))
			sigma_refuse(match, "weir's match cannot ask that a field is absent or has a value", key);
		else
			add_value(match, key, value, &modifiers, not, first);
		first = false;
	}
}

/* ---- selections and conditions ---- */

static void take_selection(struct sigma_match *match, const struct doc_node *selection, bool not )
{
	if (selection->kind == DOC_LIST && selection->first != NULL && selection->first->next == NULL)
		selection = selection->first;
	if (selection->kind != DOC_MAP) {
		bool words = selection->kind == DOC_TEXT || selection->first == NULL || selection->first->kind == DOC_TEXT;
		sigma_refuse(match,
		             words ? "it searches whole events for words; weir's match compares fields"
		                   : "weir's match has no \"or\" of several fields",
		             selection->key != NULL ? selection->key : "a selection");
		return;
	}
	if (not &&selection->first != NULL && selection->first->next != NULL) {
		sigma_refuse(match, "weir's match has no \"not\" of several fields at once", selection->key);
		return;
	}
	for (const struct doc_node *member = selection->first; member != NULL && !match->lost; member = member->next)
		take_member(match, member, not );
}

/* "all of PATTERN" and "all of them" are one after another, and so is "1 of PATTERN" if it is one. */
static void take_group(struct sigma_match *match, const struct doc_node *detection, bool all, const char *pattern,
                       bool not )
{
	unsigned count = 0;
	for (const struct doc_node *member = detection->first; member != NULL; member = member->next) {
		if (strcmp(member->key, "condition") == 0 || strcmp(member->key, "timeframe") == 0)
			continue;
		/* Those that begin with _ are of no "them". */
		bool named = strcmp(pattern, "them") == 0 ? member->key[0] != '_' : fnmatch(pattern, member->key, 0) == 0;
		if (!named)
			continue;
		if (++count > 1 && (!all || not )) {
			sigma_refuse(match, "weir's match has no \"or\" of several selections", pattern);
			return;
		}
		take_selection(match, member, not );
	}
	if (count == 0)
		sigma_refuse(match, "no selection has this name", pattern);
}

void sigma_take_condition(struct sigma_match *match, const struct doc_node *detection, const char *condition)
{
	char *copy = plan_keep(match->plan, condition, strlen(condition)), *rest = NULL;
	bool not = false;
	for (char *word = strtok_r(copy, " \n\t", &rest); word != NULL && !match->lost;
	     word = strtok_r(NULL, " \n\t", &rest)) {
		const struct doc_node *selection = doc_member(detection, word);
		bool all = strcmp(word, "all") == 0;
		if (strcmp(word, "and") == 0)
			continue;
		if (strcmp(word, "not") == 0) {
			not = !not ;
			continue;
		}
		if (all || strcmp(word, "1") == 0) {
			const char *of = strtok_r(NULL, " \n\t", &rest);
			const char *pattern = of != NULL && strcmp(of, "of") == 0 ? strtok_r(NULL, " \n\t", &rest) : NULL;
			take_group(match, detection, all, pattern != NULL ? pattern : "nothing", not );
		} else if (selection != NULL) {
			take_selection(match, selection, not );
		} else {
			sigma_refuse(match, "weir's match is of selections that all hold, or do not", condition);
		}
		not = false;
	}
}

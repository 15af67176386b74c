/* SPDX-License-Identifier: Apache-2.0 */
/* Reading expressions of CrowdSec's filters. */
#include "deploy/weir/import/crowdsec_expr.h"

#include "common/base/alloc.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct parser {
	struct expr *expr;
	const char *at;
	unsigned depth;
	const char *wrong;
};

static void skip(struct parser *now)
{
	for (;;) {
		now->at += strspn(now->at, " \t\r\n");
		if (strncmp(now->at, "//", 2) != 0 && now->at[0] != '#')
			return;
		now->at += strcspn(now->at, "\n");
	}
}

static bool is_word(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_';
}

/* A sign, or a word that is not the beginning of a longer one. */
static bool take(struct parser *now, const char *token)
{
	skip(now);
	size_t length = strlen(token);
	if (strncmp(now->at, token, length) != 0 || (is_word(token[0]) && is_word(now->at[length])))
		return false;
	now->at += length;
	return true;
}

static struct expr_node *add(struct parser *now, enum expr_kind kind)
{
	if (now->expr->count == EXPR_NODES_MAX) {
		now->wrong = "it is longer than an import takes";
		now->expr->count--;
	} else if (plan_is_full(now->expr->plan)) {
		now->wrong = "there is more than an import takes";
	}
	struct expr_node *node = &now->expr->nodes[now->expr->count++];
	*node = (struct expr_node){.kind = kind};
	return node;
}

/* 'text', "text", `text`, with \ before a byte that stands for itself. */
static const char *take_string(struct parser *now)
{
	skip(now);
	char quote = *now->at;
	if (quote != '\'' && quote != '"' && quote != '`')
		return NULL;
	struct weir_text text = {0};
	const char *at = now->at + 1;
	for (; *at != '\0' && *at != quote; at++) {
		if (*at == '\\' && quote != '`' && at[1] != '\0')
			at++;
		weir_text_append(&text, at, 1);
	}
	const char *kept = plan_keep(now->expr->plan, text.at != NULL ? text.at : "", text.length);
	weir_text_deinit(&text);
	if (*at == '\0') {
		now->wrong = "a text has no end";
		return NULL;
	}
	now->at = at + 1;
	return kept;
}

/* A constant: a text, also in brackets, a number, or Upper("text"). */
static const char *take_constant(struct parser *now)
{
	const char *before = now->at;
	if (take(now, "(")) {
		const char *inner = take_string(now);
		if (inner != NULL && take(now, ")"))
			return inner;
		now->at = before;
		return NULL;
	}
	bool upper = take(now, "Upper"), lower = !upper && take(now, "Lower");
	if (upper || lower) {
		const char *inner = take(now, "(") ? take_string(now) : NULL;
		if (inner != NULL && take(now, ")")) {
			char *folded = plan_keep(now->expr->plan, inner, strlen(inner));
			for (char *at = folded; *at != '\0'; at++)
				*at = (char)(upper ? toupper((unsigned char)*at) : tolower((unsigned char)*at));
			return folded;
		}
		now->at = before;
		return NULL;
	}
	const char *text = take_string(now);
	if (text != NULL)
		return text;
	skip(now);
	size_t length = strspn(now->at, "0123456789.");
	if (length == 0 || is_word(now->at[length]))
		return NULL;
	text = plan_keep(now->expr->plan, now->at, length);
	now->at += length;
	return text;
}

static void keep_values(struct parser *now, struct expr_node *node, const char *const *values, size_t count)
{
	/* The list is kept with the plan's texts, as bytes. */
	node->values = (const char **)(void *)plan_keep(now->expr->plan, (const char *)values, count * sizeof *values);
	node->value_count = count;
}

static bool take_value(struct parser *now, struct expr_node *node)
{
	const char *value = take_constant(now);
	if (value != NULL)
		keep_values(now, node, &value, 1);
	return value != NULL;
}

static bool take_list(struct parser *now, struct expr_node *node)
{
	const char *values[EXPR_VALUES_MAX];
	size_t count = 0;
	if (!take(now, "["))
		return false;
	while (!take(now, "]")) {
		const char *value = take_constant(now);
		if (value == NULL || count == EXPR_VALUES_MAX)
			return false;
		values[count++] = value;
		(void)take(now, ",");
	}
	if (count > 0)
		keep_values(now, node, values, count);
	return count > 0;
}

/* evt.Meta.x, alone or as the whole of Lower() or Upper(). */
static const char *take_field(struct parser *now, bool *folded)
{
	bool wrapped = take(now, "Upper") || take(now, "Lower");
	if (wrapped && !take(now, "("))
		return NULL;
	skip(now);
	if (strncmp(now->at, "evt.", 4) != 0)
		return NULL;
	size_t length = 4;
	while (is_word(now->at[length]) || now->at[length] == '.')
		length++;
	const char *field = plan_keep(now->expr->plan, now->at, length);
	now->at += length;
	*folded = wrapped;
	return !wrapped || take(now, ")") ? field : NULL;
}

static bool take_comparison(struct parser *now, struct expr_node *node)
{
	node->field = take_field(now, &node->folded);
	if (node->field == NULL)
		return false;
	if (take(now, "==") || take(now, "!=")) {
		node->not = now->at[-2] == '!';
		return take_value(now, node);
	}
	if (take(now, "startsWith"))
		node->how = MATCH_BEGINS;
	else if (take(now, "endsWith"))
		node->how = MATCH_ENDS;
	else if (take(now, "contains"))
		node->how = MATCH_CONTAINS;
	else {
		node->not = take(now, "not");
		return take(now, "in") && take_list(now, node);
	}
	return take_value(now, node);
}

/* What cannot be read as a comparison: up to where its and, its or, or its bracket ends. */
static void take_other(struct parser *now, struct expr_node *node, const char *begin)
{
	unsigned open = 0;
	const char *at = begin;
	for (; *at != '\0'; at++) {
		if (*at == '\'' || *at == '"' || *at == '`') {
			const char *end = at + 1;
			while (*end != '\0' && *end != *at)
				end += *end == '\\' && end[1] != '\0' ? 2 : 1;
			if (*end == '\0')
				break;
			at = end;
		} else if (*at == '(' || *at == '[' || *at == '{') {
			open++;
		} else if (*at == ')' || *at == ']' || *at == '}') {
			if (open-- == 0)
				break;
		} else if (open == 0 && (strncmp(at, "&&", 2) == 0 || strncmp(at, "||", 2) == 0 ||
		                         (at > begin && !is_word(at[-1]) &&
		                          ((strncmp(at, "and", 3) == 0 && !is_word(at[3])) ||
		                           (strncmp(at, "or", 2) == 0 && !is_word(at[2])))))) {
			break;
		}
	}
	while (*at == '"' || *at == '\'' || *at == '`')
		at += strlen(at); /* a text without an end: there is nothing behind it */
	*node = (struct expr_node){.kind = EXPR_OTHER, .words = plan_keep(now->expr->plan, begin, (size_t)(at - begin))};
	now->at = at;
}

static struct expr_node *parse_or(struct parser *now);

/* Whether an expression may go on so behind a bracket's end. */
static bool ends(struct parser *now)
{
	skip(now);
	const char *at = now->at;
	return *at == '\0' || *at == ')' || strncmp(at, "&&", 2) == 0 || strncmp(at, "||", 2) == 0 ||
	       (strncmp(at, "and", 3) == 0 && !is_word(at[3])) || (strncmp(at, "or", 2) == 0 && !is_word(at[2]));
}

static struct expr_node *parse_one(struct parser *now)
{
	skip(now);
	const char *begin = now->at;
	struct expr_node *node = add(now, EXPR_COMPARE);
	if (now->depth == EXPR_DEPTH_MAX)
		now->wrong = "it is nested deeper than an import takes";
	if (now->wrong != NULL)
		return node;
	now->depth++;
	if ((now->at[0] == '!' && now->at[1] != '=') || (strncmp(now->at, "not", 3) == 0 && !is_word(now->at[3]))) {
		now->at += now->at[0] == '!' ? 1 : 3;
		*node = (struct expr_node){.kind = EXPR_NOT};
		node->left = parse_one(now);
	} else if (take(now, "(")) {
		struct expr_node *inner = parse_or(now);
		if (take(now, ")") && ends(now))
			*node = *inner;
		else
			take_other(now, node, begin);
	} else if (!take_comparison(now, node) || !ends(now)) {
		take_other(now, node, begin);
	}
	now->depth--;
	return node;
}

static struct expr_node *parse_and(struct parser *now)
{
	struct expr_node *left = parse_one(now);
	while (now->wrong == NULL && (take(now, "&&") || take(now, "and"))) {
		struct expr_node *node = add(now, EXPR_AND);
		node->left = left;
		node->right = parse_one(now);
		left = node;
	}
	return left;
}

static struct expr_node *parse_or(struct parser *now)
{
	struct expr_node *left = parse_and(now);
	while (now->wrong == NULL && (take(now, "||") || take(now, "or"))) {
		struct expr_node *node = add(now, EXPR_OR);
		node->left = left;
		node->right = parse_and(now);
		left = node;
	}
	return left;
}

const char *expr_parse(struct plan *plan, const char *text, struct expr *expr, struct expr_node **root)
{
	expr->plan = plan;
	expr->count = 0;
	struct parser now = {.expr = expr, .at = text};
	*root = parse_or(&now);
	skip(&now);
	if (now.wrong == NULL && *now.at != '\0')
		now.wrong = "something follows its end";
	return now.wrong;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters of CrowdSec's scenarios, in the language "expr": as a tree of and, or, not and comparisons. What is no
 * comparison of a field with constants is OTHER, and keeps its words.
 */
#ifndef DEPLOY_WEIR_IMPORT_CROWDSEC_EXPR_H
#define DEPLOY_WEIR_IMPORT_CROWDSEC_EXPR_H

#include "deploy/weir/import/match_set.h"
#include "deploy/weir/import/plan.h"

enum { EXPR_NODES_MAX = 8192, EXPR_VALUES_MAX = 256, EXPR_DEPTH_MAX = 64 };

enum expr_kind { EXPR_AND, EXPR_OR, EXPR_NOT, EXPR_COMPARE, EXPR_OTHER };

struct expr_node {
	enum expr_kind kind;
	struct expr_node *left, *right; /* of EXPR_NOT: left alone */
	/* of a comparison */
	const char *field; /* "evt.Meta.log_type" */
	bool not, folded;  /* not: != and not in; folded: letters count as the same in both cases */
	enum match_how how;
	const char **values;
	size_t value_count;
	const char *words; /* of EXPR_OTHER */
};

struct expr {
	struct plan *plan;
	struct expr_node nodes[EXPR_NODES_MAX];
	size_t count;
};

/**
 * @param expr  filled; its nodes point to each other
 * @param root  returned
 * @return NULL: done; else what is wrong with it, in words
 */
const char *expr_parse(struct plan *plan, const char *text, struct expr *expr, struct expr_node **root);

#endif

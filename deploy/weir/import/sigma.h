/* SPDX-License-Identifier: Apache-2.0 */
/* A Sigma rule's detection as what a zone asks of its records. */
#ifndef DEPLOY_WEIR_IMPORT_SIGMA_H
#define DEPLOY_WEIR_IMPORT_SIGMA_H

#include "deploy/weir/import/match_set.h"
#include "deploy/weir/import/yaml_tree.h"

/* The rule that is read, and what becomes of it. */
struct sigma_match {
	struct plan *plan;
	struct plan_item *item;
	bool web;  /* of web servers' access logs: fields have the names of W3C's format, and become weir's */
	bool lost; /* something that it asks for cannot be said: there is no zone */
	struct match_set set;
};

/** Says why there is no zone. */
void sigma_refuse(struct sigma_match *match, const char *words, const char *of);
/** A field's name in weir's records. */
const char *sigma_field(const struct sigma_match *match, const char *name);
/** Takes the selections that a condition names: "selection and not filter", "all of them". */
void sigma_take_condition(struct sigma_match *match, const struct doc_node *detection, const char *condition);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A YAML document as a tree, with the line of each value. libyaml reads it; aliases are refused, as a few lines of them
 * can stand for any number of values.
 */
#ifndef DEPLOY_WEIR_IMPORT_YAML_TREE_H
#define DEPLOY_WEIR_IMPORT_YAML_TREE_H

#include "deploy/weir/import/plan.h"

enum { YAML_DEPTH_MAX = 64, YAML_NODES_MAX = 100000 };

enum doc_kind { DOC_TEXT, DOC_LIST, DOC_MAP };

struct doc_node {
	enum doc_kind kind;
	unsigned line;
	const char *key;  /* in a map; else NULL */
	const char *text; /* DOC_TEXT: as it is written, without quotes */
	bool quoted;
	struct doc_node *first, *next; /* its children, in their order; its next sibling */
};

/* All documents of a file: each is a child of `root`. */
struct doc_file {
	struct doc_node root;
};

/** @return WEIR_INVALID: "FILE:LINE: words" */
WEIR_MUST_USE enum weir_status doc_read(struct plan *plan, const char *path, struct doc_file *file,
                                        struct weir_error *error);
WEIR_MUST_USE enum weir_status doc_parse(struct plan *plan, const char *name, const char *text, size_t length,
                                         struct doc_file *file, struct weir_error *error);
void doc_free(struct doc_file *file);

/** A member of a map; NULL: there is none. */
const struct doc_node *doc_member(const struct doc_node *map, const char *key);
/** Its text; NULL: there is no such member, or it is no text. */
const char *doc_text(const struct doc_node *map, const char *key);

/**
 * Calls for each file of a directory and those in it whose name ends with .yaml or .yml, in the order of their names; or
 * for the file itself.
 */
typedef enum weir_status doc_take(void *context, const char *path, struct weir_error *error);
WEIR_MUST_USE enum weir_status doc_each_file(struct plan *plan, const char *path, doc_take *take, void *context,
                                             struct weir_error *error);

#endif

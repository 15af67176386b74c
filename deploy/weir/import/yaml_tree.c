/* SPDX-License-Identifier: Apache-2.0 */
/* YAML by libyaml's events. */
#include "deploy/weir/import/yaml_tree.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

enum { FOLDERS_DEEP = 16, NAMES_MAX = 2 * PLAN_FILES_MAX };

/* What is being read: the containers that are open, and where each one's next child goes. */
struct reading {
	struct plan *plan;
	const char *name;
	struct doc_file *file;
	unsigned count, depth;
	struct doc_node *open[YAML_DEPTH_MAX + 1];
	struct doc_node **next[YAML_DEPTH_MAX + 1];
	const char *key[YAML_DEPTH_MAX + 1]; /* of a map: read, while its value is not */
};

static enum weir_status refuse(const struct reading *reading, size_t line, struct weir_error *error, const char *words)
{
	return weir_fail(error, WEIR_INVALID, "%s:%zu: %s", reading->name, line + 1, words);
}

static struct doc_node *add(struct reading *reading, enum doc_kind kind, size_t line)
{
	struct doc_node *node = weir_alloc(1, sizeof *node);
	node->kind = kind;
	node->line = (unsigned)line + 1;
	node->key = reading->key[reading->depth];
	reading->key[reading->depth] = NULL;
	assert(reading->next[reading->depth] != NULL); /* begin() has set it for each depth */
	*reading->next[reading->depth] = node;
	reading->next[reading->depth] = &node->next;
	return node;
}

static bool expects_key(const struct reading *reading)
{
	const struct doc_node *open = reading->open[reading->depth];
	return open != NULL && open->kind == DOC_MAP && reading->key[reading->depth] == NULL;
}

static enum weir_status begin(struct reading *reading, enum doc_kind kind, size_t line, struct weir_error *error)
{
	if (expects_key(reading))
		return refuse(reading, line, error, "a member's name must be a text");
	if (reading->depth == YAML_DEPTH_MAX)
		return refuse(reading, line, error, "values are nested more than 64 deep");
	struct doc_node *node = add(reading, kind, line);
	reading->depth++;
	reading->open[reading->depth] = node;
	reading->next[reading->depth] = &node->first;
	reading->key[reading->depth] = NULL;
	return WEIR_OK;
}

static enum weir_status take_text(struct reading *reading, const yaml_event_t *event, struct weir_error *error)
{
	const char *value = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length, line = event->start_mark.line;
	if (memchr(value, '\0', length) != NULL)
		return refuse(reading, line, error, "a text has a zero byte");
	char *text = plan_keep(reading->plan, value, length);
	if (expects_key(reading)) {
		reading->key[reading->depth] = text;
		return WEIR_OK;
	}
	struct doc_node *node = add(reading, DOC_TEXT, line);
	node->text = text;
	node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	return WEIR_OK;
}

static enum weir_status take(struct reading *reading, const yaml_event_t *event, struct weir_error *error)
{
	size_t line = event->start_mark.line;
	if (++reading->count > YAML_NODES_MAX || plan_is_full(reading->plan))
		return refuse(reading, line, error, "there is more than an import takes");
	switch (event->type) {
	case YAML_MAPPING_START_EVENT: return begin(reading, DOC_MAP, line, error);
	case YAML_SEQUENCE_START_EVENT: return begin(reading, DOC_LIST, line, error);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT: reading->depth--; return WEIR_OK;
	case YAML_SCALAR_EVENT: return take_text(reading, event, error);
	case YAML_ALIAS_EVENT:
		return refuse(reading, line, error, "an alias (*name) is not taken: write its value here again");
	default: return WEIR_OK;
	}
}

enum weir_status doc_parse(struct plan *plan, const char *name, const char *text, size_t length, struct doc_file *file,
                           struct weir_error *error)
{
	*file = (struct doc_file){.root.kind = DOC_LIST};
	struct reading reading = {.plan = plan, .name = name, .file = file};
	reading.open[0] = &file->root;
	reading.next[0] = &file->root.first;
	yaml_parser_t parser;
	if (yaml_parser_initialize(&parser) == 0)
		return weir_fail(error, WEIR_IO, "%s: no memory for its reader", name);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	enum weir_status status = WEIR_OK;
	for (bool more = true; more && status == WEIR_OK;) {
		yaml_event_t event;
		if (yaml_parser_parse(&parser, &event) == 0) {
			status = refuse(&reading, parser.problem_mark.line, error,
			                parser.problem != NULL ? parser.problem : "is no YAML");
			break;
		}
		more = event.type != YAML_STREAM_END_EVENT;
		status = take(&reading, &event, error);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	if (status != WEIR_OK)
		doc_free(file);
	return status;
}

enum weir_status doc_read(struct plan *plan, const char *path, struct doc_file *file, struct weir_error *error)
{
	char *text = NULL;
	size_t length = 0;
	enum weir_status status = plan_read_file(plan, path, &text, &length, error);
	if (status == WEIR_OK)
		status = doc_parse(plan, path, text, length, file, error);
	free(text);
	return status;
}

static void free_nodes(struct doc_node *node)
{
	while (node != NULL) {
		struct doc_node *next = node->next;
		free_nodes(node->first); /* as deep as the document is at most */
		free(node);
		node = next;
	}
}

void doc_free(struct doc_file *file)
{
	free_nodes(file->root.first);
	file->root.first = NULL;
}

const struct doc_node *doc_member(const struct doc_node *map, const char *key)
{
	if (map == NULL || map->kind != DOC_MAP)
		return NULL;
	for (const struct doc_node *child = map->first; child != NULL; child = child->next)
		if (strcmp(child->key, key) == 0)
			return child;
	return NULL;
}

const char *doc_text(const struct doc_node *map, const char *key)
{
	const struct doc_node *member = doc_member(map, key);
	return member != NULL && member->kind == DOC_TEXT ? member->text : NULL;
}

/* ---- files ---- */

struct walk {
	struct plan *plan;
	doc_take *take;
	void *context;
	unsigned names; /* of files and folders */
};

static bool is_yaml(const char *name)
{
	const char *dot = strrchr(name, '.');
	return name[0] != '.' && dot != NULL && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

static enum weir_status walk(struct walk *now, const char *path, unsigned deep, struct weir_error *error);

static enum weir_status walk_folder(struct walk *now, const char *path, unsigned deep, struct weir_error *error)
{
	struct dirent **names = NULL;
	int count = scandir(path, &names, NULL, alphasort);
	enum weir_status status = WEIR_OK;
	if (count < 0)
		return weir_fail(error, WEIR_IO, "%s: cannot be read: %s", path, weir_errno_words(errno));
	for (int i = 0; i < count; i++) {
		if (status == WEIR_OK && names[i]->d_name[0] != '.') {
			char *inner = plan_print(now->plan, "%s/%s", path, names[i]->d_name);
			struct stat is;
			bool folder = stat(inner, &is) == 0 && S_ISDIR(is.st_mode);
			if (folder || is_yaml(names[i]->d_name))
				status = walk(now, inner, deep + 1, error);
		}
		free(names[i]);
	}
	free(names);
	return status;
}

static enum weir_status walk(struct walk *now, const char *path, unsigned deep, struct weir_error *error)
{
	struct stat is;
	if (stat(path, &is) != 0)
		return weir_fail(error, WEIR_IO, "%s: cannot be read: %s", path, weir_errno_words(errno));
	if (deep > FOLDERS_DEEP || ++now->names > NAMES_MAX)
		return weir_fail(error, WEIR_INVALID, "%s: there are more files, or deeper ones, than an import takes", path);
	return S_ISDIR(is.st_mode) ? walk_folder(now, path, deep, error) : now->take(now->context, path, error);
}

enum weir_status doc_each_file(struct plan *plan, const char *path, doc_take *take_file, void *context,
                               struct weir_error *error)
{
	struct walk now = {.plan = plan, .take = take_file, .context = context};
	return walk(&now, path, 0, error);
}

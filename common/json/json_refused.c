/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading on behind a mistake. A reader stops at the first; to show them all, what
 * was refused is left out of the tree and the document is read again. Paths and
 * lines stay those of the text.
 *
 * What is left out may make others wrong: an object without the member that was
 * refused, a list that names an object that is gone. Such a refusal is no mistake of
 * the person's, so it is passed over, and what it names goes too.
 */
#include "common/base/alloc.h"
#include "common/json/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t left_out_up_to(const struct json_refusals *refusals, const json_t *array, size_t place)
{
	size_t count = 0;
	for (size_t i = 0; i < refusals->count; i++)
		count += refusals->left_out[i].array == array && refusals->left_out[i].index <= place;
	return count;
}

size_t json_index_in_text(const struct weir_json_document *document, const json_t *array, size_t index)
{
	size_t place = index, moved;
	if (document == NULL) /* the cursor of nothing */
		return index;
	while ((moved = index + left_out_up_to(document->refusals, array, place)) != place)
		place = moved;
	return place;
}

void json_refusals_free(struct json_refusals *refusals)
{
	for (size_t i = 0; i < refusals->count; i++)
		free(refusals->left_out[i].name);
	free(refusals->left_out);
	free(refusals);
}

static struct json_left_out *add_left_out(struct json_refusals *refusals, const char *path, const char *name)
{
	refusals->left_out = weir_realloc(refusals->left_out, refusals->count + 1, sizeof *refusals->left_out);
	struct json_left_out *added = &refusals->left_out[refusals->count++];
	*added = (struct json_left_out){.name = name != NULL ? weir_copy(name, strlen(name)) : NULL};
	snprintf(added->path, sizeof added->path, "%s", path);
	return added;
}

static const char *name_of(const json_t *value)
{
	return json_string_value(json_object_get(value, "name"));
}

/* Leaves out the value of the path `rest`, seen from `value`; false: there is none. A name may hold dots itself. */
static bool leave_out(struct json_refusals *refusals, const char *path, json_t *value, const char *rest)
{
	const char *key;
	json_t *inner;
	void *next;
	json_object_foreach_safe(value, next, key, inner)
	{
		const char *name = *rest == '.' ? rest + 1 : rest, *behind = name + strlen(key);
		if (strncmp(name, key, strlen(key)) != 0 || (*behind != '\0' && *behind != '.' && *behind != '['))
			continue;
		if (*behind != '\0' && leave_out(refusals, path, inner, behind))
			return true;
		if (*behind == '\0') {
			add_left_out(refusals, path, name_of(inner));
			json_object_del(value, key);
			return true;
		}
	}
	if (!json_is_array(value) || *rest != '[')
		return false;
	char *behind;
	size_t place = strtoul(rest + 1, &behind, 10), index = place - left_out_up_to(refusals, value, place);
	inner = json_array_get(value, index);
	if (*behind != ']' || inner == NULL)
		return false;
	if (behind[1] != '\0')
		return leave_out(refusals, path, inner, behind + 1);
	struct json_left_out *added = add_left_out(refusals, path, name_of(inner));
	added->array = value;
	added->index = place;
	json_array_remove(value, index);
	return true;
}

/* Whether a path is another, or around it. */
static bool holds(const char *outer, const char *path)
{
	size_t length = strlen(outer);
	return strncmp(outer, path, length) == 0 && strchr(".[", path[length]) != NULL; /* also at the terminator */
}

/* Whether a refusal comes of what was left out before. */
static bool follows(const struct json_refusals *refusals, const char *words)
{
	char quoted[WEIR_JSON_PATH_BYTES];
	for (size_t i = 0; i < refusals->count; i++) {
		const struct json_left_out *gone = &refusals->left_out[i];
		snprintf(quoted, sizeof quoted, "\"%.*s\"", WEIR_JSON_PATH_BYTES - 3, gone->name != NULL ? gone->name : "");
		if (holds(refusals->path, gone->path) || (gone->name != NULL && strstr(words, quoted) != NULL))
			return true;
	}
	return false;
}

bool weir_json_read_on(struct weir_json_document *document, const struct weir_error *error, bool *new_mistake)
{
	struct json_refusals *refusals = document->refusals;
	char path[WEIR_JSON_PATH_BYTES];
	memcpy(path, refusals->path, sizeof path);
	*new_mistake = path[0] == '\0' || !follows(refusals, error->text);
	refusals->path[0] = '\0';
	while (path[0] != '\0' && !leave_out(refusals, path, document->root, path)) {
		/* A member that is missing: what it is missing from. */
		char *dot = strrchr(path, '.'), *bracket = strrchr(path, '[');
		char *last = dot > bracket ? dot : bracket;
		*(last != NULL ? last : path) = '\0';
	}
	return path[0] != '\0';
}

bool weir_json_stand_in(struct weir_json_document *document, const char *member, json_t *value, const char *name)
{
	bool gone = json_object_get(document->root, member) == NULL;
	bool set = gone && json_object_set(document->root, member, value) == 0; /* not where the root is no object */
	if (set)
		add_left_out(document->refusals, member, name);
	json_decref(value);
	return set;
}

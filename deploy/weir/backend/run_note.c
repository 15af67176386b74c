/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of the configuration's own JSON, less what a command does not need. */
#include "deploy/weir/backend/run_note.h"

#include "common/base/alloc.h"
#include "common/files/file_place.h"
#include "common/json/json.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char note_name[] = "run";

/* Sources of files and journals, which have no secrets and can be read again, as they are; of others what they are called. */
static json_t *copy_sources(const struct weir_config *config)
{
	json_t *sources = json_array();
	for (size_t i = 0; i < config->source_count; i++) {
		json_t *source = json_array_get(config->sources.value, i);
		const char *type = json_string_value(json_object_get(source, "type"));
		if (type != NULL && (strcmp(type, "file") == 0 || strcmp(type, "journal") == 0)) {
			json_array_append(sources, source);
			continue;
		}
		json_t *bare = json_object();
		json_object_set(bare, "type", json_object_get(source, "type"));
		json_object_set(bare, "name", json_object_get(source, "name"));
		json_array_append_new(sources, bare);
	}
	return sources;
}

/* Zones without "exempt": whoever is exempt is in the policy, and a command would read the lists for nothing. */
static json_t *copy_zones(const json_t *zones)
{
	json_t *copy = json_deep_copy(zones);
	for (size_t i = 0; i < json_array_size(copy); i++)
		json_object_del(json_array_get(copy, i), "exempt");
	return copy;
}

static json_t *copy_config(const struct weir_config *config)
{
	json_t *root = weir_json_root(config->document).value, *copy = json_object(), *bus = json_object();
	json_object_set_new(copy, "zones", copy_zones(json_object_get(root, "zones")));
	json_object_set_new(copy, "sources", copy_sources(config));
	json_object_set(copy, "collector", json_object_get(root, "collector"));
	json_object_set_new(bus, "partitions", json_integer(config->bus.partitions));
	json_object_set_new(copy, "bus", bus);
	json_t *lateness = json_object_get(json_object_get(root, "limiter"), "lateness");
	if (lateness != NULL) {
		json_t *limiter = json_object();
		json_object_set(limiter, "lateness", lateness);
		json_object_set_new(copy, "limiter", limiter);
	}
	return copy;
}

/* Outputs are noted as whole paths. */
static void set_path(json_t *note, const char *name, const char *directory, const char *path)
{
	char whole[WEIR_PATH_BYTES];
	struct weir_error error;
	if (path != NULL && weir_file_descriptor_of(path) < 0 &&
	    weir_path_format(whole, &error, "%s%s%s", path[0] == '/' ? "" : directory, path[0] == '/' ? "" : "/", path) ==
	        WEIR_OK)
		json_object_set_new(note, name, json_string(whole));
}

enum weir_status run_note_put(struct weir_store *store, const struct weir_config *config, const char *decisions,
                              const char *shadow, struct weir_error *error)
{
	char directory[WEIR_PATH_BYTES];
	if (getcwd(directory, sizeof directory) == NULL)
		return weir_fail(error, WEIR_IO, "cannot tell the working directory: %s", weir_errno_words(errno));
	json_t *note = json_object();
	json_object_set_new(note, "directory", json_string(directory));
	set_path(note, "decisions", directory, decisions);
	set_path(note, "shadow", directory, shadow);
	json_object_set_new(note, "config", copy_config(config));
	char *text = json_dumps(note, JSON_COMPACT);
	json_decref(note);
	if (text == NULL)
		return WEIR_OK; /* a path that is not UTF-8: the command that reads it asks for what it lacks */
	enum weir_status status = store->ops->note_put(store, note_name, weir_span_of(text), error);
	free(text);
	return status;
}

static char *take_text(const json_t *note, const char *name)
{
	const char *text = json_string_value(json_object_get(note, name));
	return text != NULL ? weir_copy(text, strlen(text)) : NULL;
}

enum weir_status run_note_get(struct weir_store *store, struct run_note *note, struct weir_error *error)
{
	char *text;
	size_t length;
	*note = (struct run_note){0};
	enum weir_status status = store->ops->note_get(store, note_name, &text, &length, error);
	if (status != WEIR_OK)
		return status;
	if (text == NULL)
		return WEIR_END;
	json_t *json = json_loadb(text, length, 0, NULL);
	char *config = json_dumps(json_object_get(json, "config"), JSON_COMPACT);
	note->directory = take_text(json, "directory");
	note->decisions = take_text(json, "decisions");
	note->shadow = take_text(json, "shadow");
	if (config == NULL)
		status = weir_fail(error, WEIR_INVALID, "the state's record of its sources is damaged");
	else
		status = weir_config_parse(WEIR_JSON_COMMAND_LINE, config, strlen(config), &note->config, error);
	free(config);
	json_decref(json);
	free(text);
	if (status != WEIR_OK)
		run_note_deinit(note);
	return status;
}

void run_note_deinit(struct run_note *note)
{
	free(note->directory);
	free(note->decisions);
	free(note->shadow);
	weir_config_free(note->config);
	*note = (struct run_note){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A note is a JSON object: {"version": 3, "since": 1732147200000, "words": "2 of 7 days …"}. */
#include "common/cluster/shadow_note.h"

#include "common/json/json.h"
#include "common/json/json_writer.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAME_BYTES = 40 };

static void name_note(uint32_t zone, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "shadow-until:%u", zone);
}

enum weir_status weir_shadow_note_get(struct weir_store *store, uint32_t zone, struct weir_shadow_note *note,
                                      struct weir_error *error)
{
	char name[NAME_BYTES], *text;
	size_t length;
	*note = (struct weir_shadow_note){0};
	name_note(zone, name);
	enum weir_status status = store->ops->note_get(store, name, &text, &length, error);
	if (status != WEIR_OK || text == NULL)
		return status;
	json_t *object = json_loadb(text, length, 0, NULL);
	const char *words = json_string_value(json_object_get(object, "words"));
	note->version = (uint64_t)json_integer_value(json_object_get(object, "version"));
	note->since_ms = json_integer_value(json_object_get(object, "since"));
	snprintf(note->words, sizeof note->words, "%s", words != NULL ? words : "");
	json_decref(object);
	free(text);
	return WEIR_OK;
}

enum weir_status weir_shadow_note_put(struct weir_store *store, uint32_t zone, const struct weir_shadow_note *note,
                                      struct weir_error *error)
{
	char name[NAME_BYTES];
	struct weir_text text = {0};
	struct weir_json_writer json = weir_json_writer(&text);
	weir_json_write_object(&json, NULL);
	weir_json_write_uint(&json, "version", note->version);
	weir_json_write_int(&json, "since", note->since_ms);
	weir_json_write_words(&json, "words", note->words);
	weir_json_write_end(&json);
	name_note(zone, name);
	enum weir_status status = store->ops->note_put(store, name, weir_text_span(&text), error);
	weir_text_deinit(&text);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A note is a JSON object: {"at": 1732173600123, "by": "ann"}. */
#include "common/cluster/policy_note.h"

#include "common/json/json.h"
#include "common/json/json_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 40 };

static void name_note(uint64_t version, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "policy-author:%llu", (unsigned long long)version);
}

enum weir_status weir_policy_note_get(struct weir_store *store, uint64_t version, struct weir_policy_note *note,
                                      struct weir_error *error)
{
	char name[NAME_BYTES], *text;
	size_t length;
	*note = (struct weir_policy_note){0};
	name_note(version, name);
	enum weir_status status = store->ops->note_get(store, name, &text, &length, error);
	if (status != WEIR_OK || text == NULL)
		return status;
	json_t *object = json_loadb(text, length, 0, NULL);
	const char *by = json_string_value(json_object_get(object, "by"));
	note->at_ms = json_integer_value(json_object_get(object, "at"));
	snprintf(note->by, sizeof note->by, "%s", by != NULL ? by : "");
	json_decref(object);
	free(text);
	return WEIR_OK;
}

enum weir_status weir_policy_note_put(struct weir_store *store, uint64_t version, const struct weir_policy_note *note,
                                      struct weir_error *error)
{
	char name[NAME_BYTES];
	struct weir_policy_note before;
	enum weir_status status = weir_policy_note_get(store, version, &before, error);
	if (status != WEIR_OK || before.at_ms != 0)
		return status;
	struct weir_text text = {0};
	struct weir_json_writer json = weir_json_writer(&text);
	weir_json_write_object(&json, NULL);
	weir_json_write_int(&json, "at", note->at_ms);
	weir_json_write_words(&json, "by", note->by); /* what is no UTF-8 in it is written as U+FFFD */
	weir_json_write_end(&json);
	name_note(version, name);
	status = store->ops->note_put(store, name, weir_text_span(&text), error);
	weir_text_deinit(&text);
	return status;
}

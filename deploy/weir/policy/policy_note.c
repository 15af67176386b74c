/* SPDX-License-Identifier: Apache-2.0 */
/* A note is a JSON object: {"at": 1732173600123, "by": "ann"}. */
#include "deploy/weir/policy/policy_note.h"

#include "common/json/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 40 };

static void name_note(uint64_t version, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "policy-author:%llu", (unsigned long long)version);
}

enum weir_status policy_note_get(struct weir_store *store, uint64_t version, struct policy_note *note,
                                 struct weir_error *error)
{
	char name[NAME_BYTES], *text;
	size_t length;
	*note = (struct policy_note){0};
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

enum weir_status policy_note_put(struct weir_store *store, uint64_t version, const struct policy_note *note,
                                 struct weir_error *error)
{
	char name[NAME_BYTES];
	struct policy_note before;
	enum weir_status status = policy_note_get(store, version, &before, error);
	if (status != WEIR_OK || before.at_ms != 0)
		return status;
	json_t *object = json_pack("{s:I, s:s%}", "at", (json_int_t)note->at_ms, "by", note->by, strlen(note->by));
	char *text = json_dumps(object, JSON_COMPACT);
	name_note(version, name);
	status = store->ops->note_put(store, name, weir_span_of(text != NULL ? text : "{}"), error);
	free(text);
	json_decref(object);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A note is a JSON object of the tables' names: {"count_hourly": 1732147200000, …}. */
#include "common/cluster/kept_note.h"

#include "common/json/json.h"
#include "common/json/json_writer.h"

#include <stdlib.h>

static const char note_name[] = "archive.kept-from";

enum weir_status weir_kept_note_get(struct weir_store *store, struct weir_kept_note *note, struct weir_error *error)
{
	char *text;
	size_t length;
	*note = (struct weir_kept_note){0};
	enum weir_status status = store->ops->note_get(store, note_name, &text, &length, error);
	if (status != WEIR_OK || text == NULL)
		return status;
	json_t *object = json_loadb(text, length, 0, NULL);
	for (int table = 0; table < WEIR_ARCHIVE_TABLES; table++)
		note->from_ms[table] = json_integer_value(json_object_get(object, weir_archive_names[table].table));
	json_decref(object);
	free(text);
	return WEIR_OK;
}

enum weir_status weir_kept_note_add(struct weir_store *store, const int64_t keep_ms[WEIR_ARCHIVE_TABLES],
                                    int64_t now_ms, struct weir_error *error)
{
	struct weir_kept_note note;
	struct weir_text text = {0};
	struct weir_json_writer json = weir_json_writer(&text);
	enum weir_status status = weir_kept_note_get(store, &note, error);
	if (status != WEIR_OK)
		return status;
	weir_json_write_object(&json, NULL);
	for (int table = 0; table < WEIR_ARCHIVE_TABLES; table++) {
		int64_t from_ms = keep_ms[table] > 0 ? now_ms - keep_ms[table] : 0;
		int64_t noted_ms = from_ms > note.from_ms[table] ? from_ms : note.from_ms[table];
		/* What a clock that was far ahead has noted does not stay: rows of now are kept. */
		weir_json_write_int(&json, weir_archive_names[table].table, noted_ms < now_ms ? noted_ms : now_ms);
	}
	weir_json_write_end(&json);
	status = store->ops->note_put(store, note_name, weir_text_span(&text), error);
	weir_text_deinit(&text);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The table of objects, and the notes that are saved of it and of the pieces. */
#include "collector/source/remote/remote_plan.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"
#include "common/bytes/hex.h"
#include "common/json/json.h"
#include "common/json/json_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN = 1, PACKED = 2, SKIPS = 4, DONE = 8, CLOSED = 16 };

/* ---- the table ---- */

static void known_free(struct remote_known *known)
{
	free(known->name);
	free(known->problem);
	free(known->head);
	free(known);
}

void remote_table_deinit(struct remote_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		known_free(table->objects[i]);
	for (size_t i = 0; i < table->floor_count; i++) {
		free(table->floors[i].folder);
		free(table->floors[i].name);
	}
	free(table->objects);
	free(table->slots);
	*table = (struct remote_table){0};
}

/* Where an id is, or would be. */
static size_t slot_of(const struct remote_table *table, uint64_t id)
{
	size_t slot = (size_t)weir_hash64(&id, sizeof id) & (table->slot_count - 1);
	while (table->slots[slot] != 0 && table->objects[table->slots[slot] - 1]->id != id)
		slot = (slot + 1) & (table->slot_count - 1);
	return slot;
}

struct remote_known *remote_table_find(const struct remote_table *table, uint64_t id)
{
	if (table->slot_count == 0)
		return NULL;
	uint32_t place = table->slots[slot_of(table, id)];
	return place != 0 ? table->objects[place - 1] : NULL;
}

static void index_all(struct remote_table *table)
{
	free(table->slots);
	table->slots = weir_alloc(table->slot_count, sizeof *table->slots);
	for (size_t i = 0; i < table->count; i++)
		table->slots[slot_of(table, table->objects[i]->id)] = (uint32_t)i + 1;
}

bool remote_table_is_full(const struct remote_table *table, const char *name)
{
	return table->count == REMOTE_OBJECTS_MOST || table->name_bytes + strlen(name) > REMOTE_TABLE_NAMES_BYTES;
}

void remote_table_name(struct remote_table *table, struct remote_known *known, const char *name)
{
	char *copy = name != NULL ? weir_copy(name, strlen(name)) : NULL;
	table->name_bytes -= known->name != NULL ? strlen(known->name) : 0;
	table->name_bytes += name != NULL ? strlen(name) : 0;
	free(known->name);
	known->name = copy;
}

struct remote_known *remote_table_add(struct remote_table *table, uint64_t id)
{
	if (table->count == REMOTE_OBJECTS_MOST)
		return NULL;
	if (2 * (table->count + 1) > table->slot_count) {
		table->slot_count = table->slot_count == 0 ? 64 : 2 * table->slot_count;
		table->objects = weir_realloc(table->objects, table->slot_count, sizeof(struct remote_known *));
		index_all(table);
	}
	struct remote_known *known = weir_alloc(1, sizeof *known);
	known->id = id;
	size_t slot = slot_of(table, id);
	table->objects[table->count++] = known;
	table->slots[slot] = (uint32_t)table->count;
	return known;
}

void remote_table_sweep(struct remote_table *table, bool (*drops)(void *context, const struct remote_known *known),
                        void *context)
{
	size_t kept = 0;
	for (size_t i = 0; i < table->count; i++) {
		if (!drops(context, table->objects[i])) {
			table->objects[kept++] = table->objects[i];
			continue;
		}
		remote_table_name(table, table->objects[i], NULL);
		known_free(table->objects[i]);
	}
	if (kept == table->count)
		return;
	table->count = kept;
	index_all(table);
}

const char *remote_table_floor(struct remote_table *table, const char *folder, const char *name)
{
	struct remote_floor_of *floor = NULL;
	for (size_t i = 0; i < table->floor_count; i++)
		if (strcmp(table->floors[i].folder, folder) == 0)
			floor = &table->floors[i];
	if (name == NULL || (floor == NULL && table->floor_count == REMOTE_FOLDERS_MOST))
		return floor != NULL ? floor->name : NULL;
	if (floor == NULL) {
		floor = &table->floors[table->floor_count++];
		floor->folder = weir_copy(folder, strlen(folder));
		floor->name = NULL;
	}
	char *copy = weir_copy(name, strlen(name));
	free(floor->name);
	return floor->name = copy;
}

/* ---- writing ---- */

/* Any bytes: JSON holds text alone. */
static void put_name(struct weir_json_writer *json, const char *name)
{
	if (name != NULL)
		weir_json_write_hex(json, NULL, name, strlen(name));
	else
		weir_json_write_null(json, NULL);
}

/* Numbers of 64 bits, which JSON's readers cut. */
static void put_wide(struct weir_json_writer *json, const char *name, uint64_t number)
{
	char digits[20];
	snprintf(digits, sizeof digits, "%" PRIx64, number);
	weir_json_write_words(json, name, digits);
}

static void put_known(struct weir_json_writer *json, const struct remote_known *known)
{
	int flags =
		(known->open ? OPEN : 0) | (known->packed ? PACKED : 0) | (known->skips ? SKIPS : 0) | (known->done ? DONE : 0);
	weir_json_write_array(json, NULL);
	put_wide(json, NULL, known->id);
	weir_json_write_uint(json, NULL, known->offset);
	weir_json_write_uint(json, NULL, known->size);
	weir_json_write_uint(json, NULL, known->listed_size);
	weir_json_write_int(json, NULL, known->modified_ms);
	weir_json_write_int(json, NULL, flags);
	weir_json_write_int(json, NULL, known->check_bytes);
	put_wide(json, NULL, known->check);
	put_name(json, known->done ? NULL : known->name);
	weir_json_write_words(json, NULL, known->done ? "" : known->tag);
	weir_json_write_end(json);
}

void remote_table_put(const struct remote_table *table, struct weir_text *text)
{
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_bool(&json, "begun", table->begun);
	weir_json_write_int(&json, "settled", table->settled_ms);
	put_wide(&json, "settled_id", table->settled_id);
	weir_json_write_array(&json, "floors");
	for (size_t i = 0; i < table->floor_count; i++) {
		weir_json_write_array(&json, NULL);
		put_name(&json, table->floors[i].folder);
		put_name(&json, table->floors[i].name);
		weir_json_write_end(&json);
	}
	weir_json_write_end(&json);
	weir_json_write_array(&json, "objects");
	for (size_t i = 0; i < table->count; i++)
		put_known(&json, table->objects[i]);
	weir_json_write_end(&json);
	weir_json_write_end(&json);
}

void remote_notes_put(struct weir_text *text, struct weir_span table, const struct remote_piece *pieces, size_t count,
                      uint64_t end)
{
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_uint(&json, "end", end);
	weir_json_write_array(&json, "pieces");
	for (size_t i = 0; i < count; i++) {
		const struct remote_piece *piece = &pieces[i];
		weir_json_write_array(&json, NULL);
		weir_json_write_uint(&json, NULL, piece->position);
		put_wide(&json, NULL, piece->id);
		weir_json_write_uint(&json, NULL, piece->from);
		weir_json_write_uint(&json, NULL, piece->to);
		weir_json_write_uint(&json, NULL, piece->size);
		weir_json_write_int(&json, NULL, (piece->packed ? PACKED : 0) | (piece->closed ? CLOSED : 0));
		put_name(&json, piece->name);
		weir_json_write_words(&json, NULL, piece->tag);
		weir_json_write_end(&json);
	}
	weir_json_write_end(&json);
	weir_text_append(weir_json_write_value(&json, "table"), table.at, table.length);
	weir_json_write_end(&json);
}

/* ---- reading ---- */

/* Reads an array's elements in order; the first fault stays. */
struct elements {
	struct weir_json array;
	size_t next;
	enum weir_status status;
	struct weir_error *error;
};

static int64_t get_int(struct elements *in)
{
	struct weir_json at = weir_json_element(&in->array, in->next++);
	int64_t number = 0;
	if (in->status == WEIR_OK && !weir_json_exists(&at))
		in->status = weir_json_fail(&at, in->error, "is missing");
	if (in->status == WEIR_OK)
		in->status = weir_json_int(&at, INT64_MIN, INT64_MAX, &number, in->error);
	return number;
}

static uint64_t get_count(struct elements *in)
{
	int64_t number = get_int(in);
	if (in->status == WEIR_OK && number < 0)
		in->status = weir_json_fail(&in->array, in->error, "has a negative number where none can be");
	return number > 0 ? (uint64_t)number : 0;
}

static const char *get_words(struct elements *in)
{
	struct weir_json at = weir_json_element(&in->array, in->next++);
	const char *words = "";
	if (in->status == WEIR_OK && !json_is_null(at.value))
		in->status = weir_json_string(&at, &words, in->error);
	return words;
}

static uint64_t get_wide(struct elements *in)
{
	const char *words = get_words(in);
	if (in->status == WEIR_OK && (strlen(words) > 16 || words[strspn(words, "0123456789abcdef")] != '\0'))
		in->status = weir_json_fail(&in->array, in->error, "has no number of up to 16 hexadecimal digits");
	return in->status == WEIR_OK ? strtoull(words, NULL, 16) : 0;
}

/* Returned; NULL: none. */
static char *get_name(struct elements *in)
{
	const char *words = get_words(in);
	size_t digits = strlen(words);
	if (in->status != WEIR_OK || digits == 0)
		return NULL;
	if (digits % 2 != 0 || digits / 2 > REMOTE_NAME_MOST || strspn(words, "0123456789abcdef") != digits) {
		in->status = weir_json_fail(&in->array, in->error, "has no name in hexadecimal digits");
		return NULL;
	}
	char *name = weir_alloc(digits / 2 + 1, 1);
	for (size_t i = 0; i < digits / 2; i++)
		name[i] = (char)weir_hex_byte(words + 2 * i);
	return name;
}

static void get_tag(struct elements *in, char tag[REMOTE_TAG_BYTES])
{
	const char *words = get_words(in);
	if (in->status == WEIR_OK && strlen(words) >= REMOTE_TAG_BYTES)
		in->status = weir_json_fail(&in->array, in->error, "has a tag that is too long");
	if (in->status == WEIR_OK)
		memcpy(tag, words, strlen(words) + 1);
}

static enum weir_status get_known(const struct weir_json *at, struct remote_table *table, struct weir_error *error)
{
	struct elements in = {.array = *at, .error = error};
	uint64_t id = get_wide(&in);
	if (in.status == WEIR_OK && (id == 0 || remote_table_find(table, id) != NULL))
		return weir_json_fail(at, error, "has no id of its own");
	struct remote_known *known = in.status == WEIR_OK ? remote_table_add(table, id) : NULL;
	if (known == NULL)
		return in.status != WEIR_OK ? in.status : weir_json_fail(at, error, "is one too many");
	known->offset = get_count(&in);
	known->size = get_count(&in);
	known->listed_size = get_count(&in);
	known->modified_ms = get_int(&in);
	uint64_t flags = get_count(&in), check_bytes = get_count(&in);
	known->check = get_wide(&in);
	char *name = get_name(&in);
	remote_table_name(table, known, name);
	free(name);
	get_tag(&in, known->tag);
	known->open = (flags & OPEN) != 0;
	known->packed = (flags & PACKED) != 0;
	known->skips = (flags & SKIPS) != 0;
	known->done = (flags & DONE) != 0;
	if (in.status == WEIR_OK && (check_bytes > REMOTE_CHECK_BYTES || check_bytes > known->offset))
		return weir_json_fail(at, error, "is checked by more bytes than there can be");
	if (in.status == WEIR_OK && !known->done && known->name == NULL)
		return weir_json_fail(at, error, "has no name");
	known->check_bytes = (uint8_t)check_bytes;
	return in.status;
}

static enum weir_status get_piece(const struct weir_json *at, uint64_t least, struct remote_piece *piece,
                                  struct weir_error *error)
{
	struct elements in = {.array = *at, .error = error};
	piece->position = get_count(&in);
	piece->id = get_wide(&in);
	piece->from = get_count(&in);
	piece->to = get_count(&in);
	piece->size = get_count(&in);
	uint64_t flags = get_count(&in);
	piece->packed = (flags & PACKED) != 0;
	piece->closed = (flags & CLOSED) != 0;
	piece->name = get_name(&in);
	get_tag(&in, piece->tag);
	if (in.status != WEIR_OK)
		return in.status;
	if (piece->position < least || piece->to < piece->from || piece->name == NULL)
		return weir_json_fail(at, error, "is no piece that could follow the one before it");
	return WEIR_OK;
}

static enum weir_status get_list(const struct weir_json *at, size_t most, size_t *count, struct weir_error *error)
{
	*count = json_array_size(at->value);
	if (!json_is_array(at->value) || *count > most)
		return weir_json_fail(at, error, "is not a list of at most %zu elements", most);
	return WEIR_OK;
}

static enum weir_status get_floor(const struct weir_json *at, struct remote_table *table, struct weir_error *error)
{
	struct elements in = {.array = *at, .error = error};
	char *folder = get_name(&in), *name = get_name(&in);
	if (in.status == WEIR_OK && name != NULL)
		(void)remote_table_floor(table, folder != NULL ? folder : "", name);
	free(folder);
	free(name);
	return in.status;
}

static enum weir_status get_table(const struct weir_json *at, struct remote_table *table, struct weir_error *error)
{
	struct weir_json begun = weir_json_member(at, "begun"), settled = weir_json_member(at, "settled");
	struct weir_json floors = weir_json_member(at, "floors"), objects = weir_json_member(at, "objects");
	struct weir_json id = weir_json_member(at, "settled_id");
	size_t count = 0;
	const char *digits = "";
	enum weir_status status = weir_json_bool(&begun, &table->begun, error);
	if (status == WEIR_OK)
		status = weir_json_int(&settled, INT64_MIN, INT64_MAX, &table->settled_ms, error);
	if (status == WEIR_OK)
		status = weir_json_string(&id, &digits, error);
	table->settled_id = strtoull(digits, NULL, 16);
	if (status == WEIR_OK)
		status = get_list(&floors, REMOTE_FOLDERS_MOST, &count, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json floor = weir_json_element(&floors, i);
		status = get_floor(&floor, table, error);
	}
	if (status == WEIR_OK)
		status = get_list(&objects, REMOTE_OBJECTS_MOST, &count, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json known = weir_json_element(&objects, i);
		status = get_known(&known, table, error);
	}
	return status;
}

enum weir_status remote_notes_get(const char *notes, uint32_t length, struct remote_table *table,
                                  struct remote_piece **pieces, size_t *count, uint64_t *end, struct weir_error *error)
{
	struct weir_json_document *document;
	enum weir_status status = weir_json_parse_saved("the notes of remote files", notes, length, &document, error);
	if (status != WEIR_OK)
		return status;
	struct weir_json root = weir_json_root(document), list = weir_json_member(&root, "pieces");
	struct weir_json at = weir_json_member(&root, "table"), end_at = weir_json_member(&root, "end");
	int64_t last = 0;
	size_t most = 0;
	*pieces = NULL;
	*count = 0;
	status = weir_json_int(&end_at, 0, INT64_MAX, &last, error);
	if (status == WEIR_OK)
		status = get_list(&list, REMOTE_PIECES_MOST, &most, error);
	if (status == WEIR_OK)
		*pieces = weir_alloc(most + 1, sizeof **pieces);
	uint64_t least = 0;
	for (size_t i = 0; status == WEIR_OK && i < most; i++) {
		struct weir_json piece = weir_json_element(&list, i);
		status = get_piece(&piece, least, &(*pieces)[(*count)++], error);
		least = (*pieces)[i].position + remote_piece_length(&(*pieces)[i]);
	}
	if (status == WEIR_OK && least > (uint64_t)last)
		status = weir_json_fail(&end_at, error, "is before the end of the last piece");
	if (status == WEIR_OK)
		status = get_table(&at, table, error);
	*end = (uint64_t)last;
	weir_json_document_free(document);
	return status;
}

void remote_pieces_free(struct remote_piece *pieces, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(pieces[i].name);
		free(pieces[i].before);
	}
	free(pieces);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory as JSON text: written directly, and read through struct weir_json.
 *
 * Hashes are hexadecimal strings. Device and inode, which use all 64 bits, are
 * written as signed numbers. A path that is not UTF-8, which JSON cannot hold, is
 * written as "path_hex".
 */
#include "collector/source/source_memory.h"

#include "common/base/alloc.h"
#include "common/base/text.h"
#include "common/bytes/hash.h"
#include "common/bytes/hex.h"
#include "common/json/json.h"
#include "common/json/json_writer.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_VERSION = 1, NUMBER_MAX = 1 << 30 };

/* ---- writing ---- */

/* @param hex  the member's name where the path is not UTF-8 */
static void put_path(struct weir_json_writer *json, const char *plain, const char *hex, const char *path)
{
	json_t *word = json_string(path); /* NULL if it is not UTF-8 */
	if (word != NULL)
		weir_json_write_words(json, plain, path);
	else
		weir_json_write_hex(json, hex, path, strlen(path));
	json_decref(word);
}

/* Writes a hash as a string, as many JSON readers cannot hold an unsigned number of 64 bits. */
static void put_hash(struct weir_json_writer *json, uint64_t hash)
{
	char digits[20];
	snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash);
	weir_json_write_words(json, NULL, digits);
}

static void put_fingerprint(struct weir_json_writer *json, const struct fingerprint *print)
{
	weir_json_write_array(json, "head");
	weir_json_write_uint(json, NULL, print->head_bytes);
	put_hash(json, print->head_hash);
	weir_json_write_end(json);
	weir_json_write_array(json, "marks");
	for (uint32_t i = 0; i < print->mark_count; i++) {
		weir_json_write_array(json, NULL);
		weir_json_write_uint(json, NULL, print->marks[i].offset);
		weir_json_write_uint(json, NULL, print->marks[i].bytes);
		put_hash(json, print->marks[i].hash);
		weir_json_write_end(json);
	}
	weir_json_write_end(json);
}

static void put_file(struct weir_json_writer *json, const struct source_memory_file *file)
{
	weir_json_write_object(json, NULL);
	weir_json_write_uint(json, "number", file->number);
	weir_json_write_int(json, "state", (int)file->state);
	weir_json_write_int(json, "device", (int64_t)file->device);
	weir_json_write_int(json, "inode", (int64_t)file->inode);
	weir_json_write_uint(json, "taken", file->taken);
	weir_json_write_uint(json, "size", file->size);
	weir_json_write_int(json, "modified", file->modified_ns);
	weir_json_write_int(json, "seen", file->seen_s);
	if (file->beside)
		weir_json_write_bool(json, "beside", true);
	if (file->home != NULL)
		put_path(json, "home", "home_hex", file->home);
	put_fingerprint(json, &file->fingerprint);
	weir_json_write_end(json);
}

static void put_part(struct weir_json_writer *json, const struct source_memory_part *part)
{
	weir_json_write_object(json, NULL);
	weir_json_write_uint(json, "incarnation", part->incarnation);
	weir_json_write_uint(json, "file", part->file);
	weir_json_write_uint(json, "from", part->from);
	if (part->to != SOURCE_PART_OPEN)
		weir_json_write_uint(json, "to", part->to);
	weir_json_write_end(json);
}

/* Everything that is written of a stream, as a hash. */
static uint64_t content_of(const struct source_memory_stream *stream)
{
	const uint64_t own[] = {stream->low_water,  (uint64_t)stream->forgotten_ns,
	                        stream->next_file,  stream->next_incarnation,
	                        stream->file_count, stream->part_count};
	uint64_t content = weir_hash64(own, sizeof own);
	for (size_t i = 0; i < stream->file_count; i++) {
		const struct source_memory_file *file = stream->files[i];
		const uint64_t all[] = {content,
		                        file->number,
		                        (uint64_t)file->state,
		                        file->device,
		                        file->inode,
		                        file->taken,
		                        file->size,
		                        (uint64_t)file->modified_ns,
		                        (uint64_t)file->seen_s,
		                        file->beside,
		                        file->home != NULL ? weir_hash64(file->home, strlen(file->home)) : 0,
		                        weir_hash64(&file->fingerprint, sizeof file->fingerprint)};
		content = weir_hash64(all, sizeof all);
	}
	for (size_t i = 0; i < stream->part_count; i++) {
		const struct source_memory_part *part = &stream->parts[i];
		const uint64_t all[] = {content, part->incarnation, part->file, part->from, part->to};
		content = weir_hash64(all, sizeof all);
	}
	return stream->notes != NULL ? content ^ weir_hash64(stream->notes, stream->notes_length) : content;
}

static void put_stream(struct weir_json_writer *json, const struct source_memory_stream *stream)
{
	weir_json_write_object(json, NULL);
	put_path(json, "path", "path_hex", stream->path);
	weir_json_write_uint(json, "low_water", stream->low_water);
	weir_json_write_int(json, "forgotten", stream->forgotten_ns);
	weir_json_write_uint(json, "next_file", stream->next_file);
	weir_json_write_uint(json, "next_incarnation", stream->next_incarnation);
	weir_json_write_array(json, "files");
	for (size_t i = 0; i < stream->file_count; i++)
		put_file(json, stream->files[i]);
	weir_json_write_end(json);
	weir_json_write_array(json, "parts");
	for (size_t i = 0; i < stream->part_count; i++)
		put_part(json, &stream->parts[i]);
	weir_json_write_end(json);
	if (stream->notes != NULL)
		weir_text_append(weir_json_write_value(json, "notes"), stream->notes, stream->notes_length);
	weir_json_write_end(json);
}

/* Of very many streams few have changed since they were written last. */
static void refresh_text(struct source_memory_stream *stream)
{
	uint64_t content = content_of(stream);
	if (stream->text != NULL && stream->written == content)
		return;
	struct weir_text text = {0};
	struct weir_json_writer json = weir_json_writer(&text);
	put_stream(&json, stream);
	free(stream->text);
	stream->text_length = text.length;
	stream->text = weir_copy(text.at, text.length);
	stream->written = content;
	weir_text_deinit(&text);
}

char *source_memory_export(const struct source_memory *memory, size_t *length)
{
	struct weir_text text = {0};
	struct weir_json_writer json = weir_json_writer(&text);
	weir_json_write_object(&json, NULL);
	weir_json_write_int(&json, "version", MEMORY_VERSION);
	weir_json_write_hex(&json, "collector", memory->collector_id, SOURCE_ID_BYTES);
	weir_json_write_uint(&json, "first_incarnation", memory->first_incarnation);
	weir_json_write_array(&json, "streams");
	for (size_t i = 0; i < memory->stream_count; i++) {
		struct source_memory_stream *stream = memory->streams[i];
		refresh_text(stream);
		weir_text_append(&text, i > 0 ? "," : "", i > 0);
		weir_text_append(&text, stream->text, stream->text_length);
	}
	weir_json_write_end(&json);
	weir_json_write_end(&json);
	*length = text.length;
	weir_text_append(&text, "", 1);
	return text.at;
}

/* ---- reading ---- */

/* Reads a number that must be present. */
static enum weir_status get_number(const struct weir_json *object, const char *name, int64_t least, int64_t most,
                                   int64_t *out, struct weir_error *error)
{
	struct weir_json at = weir_json_member(object, name);
	if (!weir_json_exists(&at))
		return weir_json_fail(&at, error, "is missing");
	return weir_json_int(&at, least, most, out, error);
}

/* Reads an even number of hexadecimal digits. @param length  set to the number of bytes, at most `most` */
static enum weir_status get_hex(const struct weir_json *at, uint8_t *bytes, size_t most, size_t *length,
                                struct weir_error *error)
{
	const char *text = "";
	enum weir_status status = weir_json_string(at, &text, error);
	if (status != WEIR_OK)
		return status;
	size_t digits = strlen(text);
	if (digits % 2 != 0 || digits / 2 > most || strspn(text, "0123456789abcdef") != digits)
		return weir_json_fail(at, error, "is not a hexadecimal word of up to %zu bytes", most);
	for (size_t i = 0; i < digits / 2; i++)
		bytes[i] = (uint8_t)weir_hex_byte(text + 2 * i);
	*length = digits / 2;
	return WEIR_OK;
}

static enum weir_status get_hash(const struct weir_json *at, uint64_t *hash, struct weir_error *error)
{
	uint8_t bytes[8];
	size_t length = 0;
	enum weir_status status = get_hex(at, bytes, sizeof bytes, &length, error);
	if (status != WEIR_OK)
		return status;
	if (length != sizeof bytes)
		return weir_json_fail(at, error, "is not a hash of 16 hexadecimal digits");
	*hash = 0;
	for (size_t i = 0; i < sizeof bytes; i++)
		*hash = *hash << 8 | bytes[i];
	return WEIR_OK;
}

/* Reads the length of a list. @return WEIR_INVALID: it is missing, not a list, or longer than `most` */
static enum weir_status get_list(const struct weir_json *at, size_t most, size_t *count, struct weir_error *error)
{
	if (!json_is_array(at->value))
		return weir_json_fail(at, error, "is not a list");
	*count = json_array_size(at->value);
	if (*count > most)
		return weir_json_fail(at, error, "has %zu elements, more than %zu", *count, most);
	return WEIR_OK;
}

/* Reads an integer that is an element of a list. */
static enum weir_status get_element(const struct weir_json *list, size_t index, int64_t least, int64_t most,
                                    int64_t *out, struct weir_error *error)
{
	struct weir_json at = weir_json_element(list, index);
	if (!weir_json_exists(&at))
		return weir_json_fail(&at, error, "is missing");
	return weir_json_int(&at, least, most, out, error);
}

static enum weir_status get_marks(const struct weir_json *list, struct fingerprint *print, struct weir_error *error)
{
	size_t count = 0;
	enum weir_status status = get_list(list, FINGERPRINT_MARKS_MAX, &count, error);
	int64_t last = -1;
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json at = weir_json_element(list, i);
		struct weir_json hash = weir_json_element(&at, 2);
		struct fingerprint_mark *mark = &print->marks[i];
		int64_t offset = 0, bytes = 0;
		status = get_element(&at, 0, last + 1, (int64_t)SOURCE_OFFSET_END, &offset, error);
		if (status == WEIR_OK)
			status = get_element(&at, 1, 1, FINGERPRINT_MARK_BYTES, &bytes, error);
		if (status == WEIR_OK)
			status = get_hash(&hash, &mark->hash, error);
		mark->offset = (uint64_t)offset;
		mark->bytes = (uint32_t)bytes;
		last = offset;
		print->mark_count++;
	}
	return status;
}

static enum weir_status get_fingerprint(const struct weir_json *object, struct fingerprint *print,
                                        struct weir_error *error)
{
	struct weir_json head = weir_json_member(object, "head");
	struct weir_json marks = weir_json_member(object, "marks");
	struct weir_json hash = weir_json_element(&head, 1);
	int64_t bytes = 0;
	enum weir_status status = get_element(&head, 0, 0, FINGERPRINT_HEAD_BYTES, &bytes, error);
	if (status == WEIR_OK)
		status = get_hash(&hash, &print->head_hash, error);
	print->head_bytes = (uint32_t)bytes;
	return status == WEIR_OK ? get_marks(&marks, print, error) : status;
}

/* The path, returned; none holds a 0. NULL: there is none. */
static enum weir_status get_path(const struct weir_json *object, const char *name, const char *hex_name, char **path,
                                 struct weir_error *error)
{
	struct weir_json plain = weir_json_member(object, name), hex = weir_json_member(object, hex_name);
	const char *text = "";
	char bytes[PATH_MAX + 1];
	size_t length = 0;
	enum weir_status status = weir_json_string(&plain, &text, error);
	if (status == WEIR_OK)
		status = get_hex(&hex, (uint8_t *)bytes, PATH_MAX, &length, error);
	if (status != WEIR_OK)
		return status;
	bytes[length] = '\0';
	if (length > 0 || text[0] != '\0')
		*path = length > 0 ? weir_copy(bytes, strlen(bytes)) : weir_copy(text, strlen(text));
	return WEIR_OK;
}

static enum weir_status get_file(const struct weir_json *object, struct source_memory *memory,
                                 struct source_memory_stream *stream, struct weir_error *error)
{
	static const struct {
		const char *name;
		int64_t least, most;
	} numbers[] = {
		{"number", 1, NUMBER_MAX},
		{"state", SOURCE_FILE_READING, SOURCE_FILE_SETTLED},
		{"device", INT64_MIN, INT64_MAX},
		{"inode", INT64_MIN, INT64_MAX},
		{"taken", 0, (int64_t)SOURCE_OFFSET_END},
		{"size", 0, INT64_MAX},
		{"modified", INT64_MIN, INT64_MAX},
		{"seen", INT64_MIN / 2, INT64_MAX / 2},
	};
	enum { NUMBERS = sizeof numbers / sizeof *numbers };
	int64_t values[NUMBERS] = {0};
	struct source_memory_file *file = source_memory_file_add(memory, stream);
	for (size_t i = 0; i < NUMBERS; i++) {
		enum weir_status status =
			get_number(object, numbers[i].name, numbers[i].least, numbers[i].most, &values[i], error);
		if (status != WEIR_OK)
			return status;
	}
	file->number = 0; /* so that the search for its number does not find it */
	if (source_memory_file(stream, (uint32_t)values[0]) != NULL)
		return weir_json_fail(object, error, "has the number of another file");
	file->number = (uint32_t)values[0];
	file->state = (enum source_file_state)values[1];
	source_memory_file_place(memory, file, (uint64_t)values[2], (uint64_t)values[3]);
	file->taken = (uint64_t)values[4];
	file->size = (uint64_t)values[5];
	file->modified_ns = values[6];
	file->seen_s = values[7];
	struct weir_json beside = weir_json_member(object, "beside");
	file->beside = json_is_true(beside.value);
	enum weir_status status = get_path(object, "home", "home_hex", &file->home, error);
	return status == WEIR_OK ? get_fingerprint(object, &file->fingerprint, error) : status;
}

static enum weir_status get_part(const struct weir_json *object, struct source_memory *memory,
                                 struct source_memory_stream *stream, struct weir_error *error)
{
	const struct source_memory_part *last = source_memory_last_part(stream);
	int64_t least = last != NULL ? last->incarnation + 1 : 1;
	int64_t incarnation = 0, file = 0, from = 0;
	enum weir_status status = get_number(object, "incarnation", least, SOURCE_INCARNATION_MAX, &incarnation, error);
	if (status == WEIR_OK)
		status = get_number(object, "file", 1, NUMBER_MAX, &file, error);
	if (status == WEIR_OK)
		status = get_number(object, "from", 0, (int64_t)SOURCE_OFFSET_END, &from, error);
	if (status != WEIR_OK)
		return status;
	if (last != NULL && incarnation != least)
		return weir_json_fail(object, error, "does not follow the incarnation before it");
	if (last != NULL && last->to == SOURCE_PART_OPEN)
		return weir_json_fail(object, error, "follows a part that has no end");
	if (source_memory_file(stream, (uint32_t)file) == NULL)
		return weir_json_fail(object, error, "is of a file that is not listed");
	struct weir_json end = weir_json_member(object, "to");
	int64_t to = -1;
	status = weir_json_int(&end, from, (int64_t)SOURCE_OFFSET_END, &to, error);
	if (status != WEIR_OK)
		return status;
	stream->next_incarnation = (uint32_t)incarnation;
	struct source_memory_part *part = source_memory_part_add(memory, stream, (uint32_t)file, (uint64_t)from);
	part->to = to < 0 ? SOURCE_PART_OPEN : (uint64_t)to;
	return WEIR_OK;
}

static enum weir_status get_lists(const struct weir_json *object, struct source_memory *memory,
                                  struct source_memory_stream *stream, struct weir_error *error)
{
	struct weir_json files = weir_json_member(object, "files"), parts = weir_json_member(object, "parts");
	size_t file_count = 0, part_count = 0;
	enum weir_status status = get_list(&files, SOURCE_MEMORY_FILES_READ, &file_count, error);
	for (size_t i = 0; status == WEIR_OK && i < file_count; i++) {
		struct weir_json at = weir_json_element(&files, i);
		status = get_file(&at, memory, stream, error);
	}
	if (status == WEIR_OK)
		status = get_list(&parts, SOURCE_MEMORY_PARTS_MAX, &part_count, error);
	for (size_t i = 0; status == WEIR_OK && i < part_count; i++) {
		struct weir_json at = weir_json_element(&parts, i);
		status = get_part(&at, memory, stream, error);
	}
	return status;
}

static enum weir_status get_notes(const struct weir_json *object, struct source_memory_stream *stream,
                                  struct weir_error *error)
{
	struct weir_json at = weir_json_member(object, "notes");
	if (!weir_json_exists(&at))
		return WEIR_OK;
	if (!json_is_object(at.value))
		return weir_json_fail(&at, error, "is not an object");
	stream->notes = json_dumps(at.value, JSON_COMPACT);
	if (stream->notes == NULL)
		return weir_json_fail(&at, error, "cannot be kept");
	stream->notes_length = (uint32_t)strlen(stream->notes);
	return WEIR_OK;
}

static enum weir_status get_stream(const struct weir_json *object, struct source_memory *memory,
                                   struct weir_error *error)
{
	char *path = NULL;
	enum weir_status status = get_path(object, "path", "path_hex", &path, error);
	if (status == WEIR_OK && path == NULL)
		status = weir_json_fail(object, error, "has no path");
	if (status != WEIR_OK)
		return status;
	bool twice = source_memory_find(memory, path) != NULL;
	struct source_memory_stream *stream = twice ? NULL : source_memory_add(memory, path);
	free(path);
	if (stream == NULL)
		return weir_json_fail(object, error, "has the path of another stream");
	int64_t low_water = 0, forgotten = 0, next_file = 0, next_incarnation = 0;
	status = get_number(object, "low_water", 0, INT64_MAX, &low_water, error);
	if (status == WEIR_OK)
		status = get_number(object, "forgotten", INT64_MIN, INT64_MAX, &forgotten, error);
	if (status == WEIR_OK)
		status = get_lists(object, memory, stream, error);
	if (status == WEIR_OK)
		status = get_notes(object, stream, error);
	for (size_t i = 0; i < stream->file_count; i++)
		if (stream->files[i]->number >= stream->next_file)
			stream->next_file = stream->files[i]->number + 1;
	if (status == WEIR_OK)
		status = get_number(object, "next_file", stream->next_file, NUMBER_MAX, &next_file, error);
	if (status == WEIR_OK)
		status = get_number(object, "next_incarnation", stream->next_incarnation, SOURCE_INCARNATION_MAX + 1,
		                    &next_incarnation, error);
	if (status != WEIR_OK)
		return status;
	if (stream->part_count > 0 && next_incarnation != stream->next_incarnation)
		return weir_json_fail(object, error, "has a next incarnation that does not follow from its parts");
	stream->low_water = (uint64_t)low_water;
	stream->forgotten_ns = forgotten;
	stream->next_file = (uint32_t)next_file;
	stream->next_incarnation = (uint32_t)next_incarnation;
	return WEIR_OK;
}

static enum weir_status get_memory(const struct weir_json *root, struct source_memory *memory, struct weir_error *error)
{
	int64_t version = 0;
	struct weir_json collector = weir_json_member(root, "collector"), streams = weir_json_member(root, "streams");
	size_t length = 0, count = 0;
	enum weir_status status = get_number(root, "version", 1, INT64_MAX, &version, error);
	if (status != WEIR_OK)
		return status;
	if (version > MEMORY_VERSION)
		return weir_fail(error, WEIR_NEWER, "the saved positions have version %lld, but this program reads up to %d",
		                 (long long)version, MEMORY_VERSION);
	status = get_hex(&collector, memory->collector_id, SOURCE_ID_BYTES, &length, error);
	if (status == WEIR_OK && length != SOURCE_ID_BYTES)
		return weir_json_fail(&collector, error, "is not an id of %d hexadecimal digits", 2 * SOURCE_ID_BYTES);
	if (status == WEIR_OK)
		status = get_list(&streams, SOURCE_MEMORY_STREAMS_MAX, &count, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json at = weir_json_element(&streams, i);
		status = get_stream(&at, memory, error);
	}
	int64_t first = 1;
	if (status == WEIR_OK)
		status = get_number(root, "first_incarnation", 1, SOURCE_INCARNATION_MAX + 1, &first, error);
	memory->first_incarnation = (uint32_t)first;
	return status;
}

enum weir_status source_memory_import(const char *name, const char *text, size_t length, struct source_memory **memory,
                                      struct weir_error *error)
{
	static const uint8_t no_id[SOURCE_ID_BYTES];
	struct weir_json_document *document;
	enum weir_status status = weir_json_parse_saved(name, text, length, &document, error);
	if (status != WEIR_OK)
		return status;
	struct source_memory *read = source_memory_new(no_id);
	struct weir_json root = weir_json_root(document);
	status = get_memory(&root, read, error);
	weir_json_document_free(document);
	if (status != WEIR_OK) {
		source_memory_free(read);
		return status;
	}
	read->saved = read->changes;
	*memory = read;
	return WEIR_OK;
}

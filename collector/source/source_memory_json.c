/*
 * The memory as text, written straight and read through cursors.
 *
 * Hashes are hexadecimal words; device and inode, which use all 64 bits, are
 * numbers in two's complement. A path that is not UTF-8, which JSON cannot
 * hold, is written as "path_hex".
 */
#include "collector/source/source_memory.h"

#include "common/base/alloc.h"
#include "common/base/text.h"
#include "common/json/json.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_VERSION = 1, NUMBER_MAX = 1 << 30 };

/* ---- writing ---- */

static void put_hex(struct weir_text *text, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		weir_text_printf(text, "%02x", bytes[i]);
}

static void put_path(struct weir_text *text, const char *path)
{
	json_t *word = json_string(path); /* NULL where it is not UTF-8 */
	if (word != NULL) {
		weir_text_puts(text, "\"path\":");
		weir_text_json(text, weir_span_of(path));
		json_decref(word);
	} else {
		weir_text_puts(text, "\"path_hex\":\"");
		put_hex(text, (const uint8_t *)path, strlen(path));
		weir_text_puts(text, "\"");
	}
}

static void put_file(struct weir_text *text, const struct source_memory_file *file)
{
	const struct fingerprint *print = &file->fingerprint;
	weir_text_printf(text, "{\"number\":%u,\"state\":%d,\"device\":%lld,\"inode\":%lld", file->number, (int)file->state,
	                 (long long)file->device, (long long)file->inode);
	weir_text_printf(text, ",\"taken\":%llu,\"size\":%llu,\"modified\":%lld,\"seen\":%lld",
	                 (unsigned long long)file->taken, (unsigned long long)file->size, (long long)file->modified_ns,
	                 (long long)file->seen_s);
	weir_text_printf(text, ",\"head\":[%u,\"%016llx\"],\"marks\":[", print->head_bytes,
	                 (unsigned long long)print->head_hash);
	for (uint32_t i = 0; i < print->mark_count; i++)
		weir_text_printf(text, "%s[%llu,%u,\"%016llx\"]", i > 0 ? "," : "", (unsigned long long)print->marks[i].offset,
		                 print->marks[i].bytes, (unsigned long long)print->marks[i].hash);
	weir_text_puts(text, "]}");
}

static void put_stream(struct weir_text *text, const struct source_memory_stream *stream)
{
	weir_text_puts(text, "{");
	put_path(text, stream->path);
	weir_text_printf(text, ",\"low_water\":%llu,\"forgotten\":%lld,\"next_file\":%u,\"next_incarnation\":%u",
	                 (unsigned long long)stream->low_water, (long long)stream->forgotten_ns, stream->next_file,
	                 stream->next_incarnation);
	weir_text_puts(text, ",\"files\":[");
	for (size_t i = 0; i < stream->file_count; i++) {
		weir_text_puts(text, i > 0 ? "," : "");
		put_file(text, stream->files[i]);
	}
	weir_text_puts(text, "],\"parts\":[");
	for (size_t i = 0; i < stream->part_count; i++) {
		const struct source_memory_part *part = &stream->parts[i];
		weir_text_printf(text, "%s{\"incarnation\":%u,\"file\":%u,\"from\":%llu", i > 0 ? "," : "", part->incarnation,
		                 part->file, (unsigned long long)part->from);
		if (part->to != SOURCE_PART_OPEN)
			weir_text_printf(text, ",\"to\":%llu", (unsigned long long)part->to);
		weir_text_puts(text, "}");
	}
	weir_text_puts(text, "]}");
}

char *source_memory_export(const struct source_memory *memory, size_t *length)
{
	struct weir_text text = {0};
	weir_text_printf(&text, "{\"version\":%d,\"collector\":\"", MEMORY_VERSION);
	put_hex(&text, memory->collector_id, SOURCE_ID_BYTES);
	weir_text_printf(&text, "\",\"first_incarnation\":%u,\"streams\":[", memory->first_incarnation);
	for (size_t i = 0; i < memory->stream_count; i++) {
		weir_text_puts(&text, i > 0 ? "," : "");
		put_stream(&text, memory->streams[i]);
	}
	weir_text_puts(&text, "]}");
	*length = text.length;
	weir_text_append(&text, "", 1);
	return text.at;
}

/* ---- reading ---- */

/* A number that must be there. */
static enum weir_status get_number(const struct weir_json *object, const char *name, int64_t least, int64_t most,
                                   int64_t *out, struct weir_error *error)
{
	struct weir_json at = weir_json_member(object, name);
	if (!weir_json_exists(&at))
		return weir_json_fail(&at, error, "is missing");
	return weir_json_int(&at, least, most, out, error);
}

/* An even number of hexadecimal digits: at most `most` bytes, *length says how many. */
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
	for (size_t i = 0; i < digits / 2; i++) {
		unsigned byte;
		sscanf(text + 2 * i, "%2x", &byte);
		bytes[i] = (uint8_t)byte;
	}
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

/* How many elements a list has; WEIR_INVALID where it is missing, no list, or longer than `most`. */
static enum weir_status get_list(const struct weir_json *at, size_t most, size_t *count, struct weir_error *error)
{
	if (!json_is_array(at->value))
		return weir_json_fail(at, error, "is not a list");
	*count = json_array_size(at->value);
	if (*count > most)
		return weir_json_fail(at, error, "has %zu elements, more than %zu", *count, most);
	return WEIR_OK;
}

/* A whole number in a list, at its place. */
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
	file->number = 0; /* not found by the search for its own number */
	if (source_memory_file(stream, (uint32_t)values[0]) != NULL)
		return weir_json_fail(object, error, "has the number of another file");
	file->number = (uint32_t)values[0];
	file->state = (enum source_file_state)values[1];
	file->device = (uint64_t)values[2];
	file->inode = (uint64_t)values[3];
	file->taken = (uint64_t)values[4];
	file->size = (uint64_t)values[5];
	file->modified_ns = values[6];
	file->seen_s = values[7];
	return get_fingerprint(object, &file->fingerprint, error);
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

/* The path, returned; none holds a 0. */
static enum weir_status get_path(const struct weir_json *object, char **path, struct weir_error *error)
{
	struct weir_json plain = weir_json_member(object, "path"), hex = weir_json_member(object, "path_hex");
	const char *text = "";
	char bytes[PATH_MAX + 1];
	size_t length = 0;
	enum weir_status status = weir_json_string(&plain, &text, error);
	if (status == WEIR_OK)
		status = get_hex(&hex, (uint8_t *)bytes, PATH_MAX, &length, error);
	if (status != WEIR_OK)
		return status;
	bytes[length] = '\0';
	*path = length > 0 ? weir_copy(bytes, strlen(bytes)) : weir_copy(text, strlen(text));
	if ((*path)[0] != '\0')
		return WEIR_OK;
	free(*path);
	return weir_json_fail(object, error, "has no path");
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

static enum weir_status get_stream(const struct weir_json *object, struct source_memory *memory,
                                   struct weir_error *error)
{
	char *path = NULL;
	enum weir_status status = get_path(object, &path, error);
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
		return weir_json_fail(object, error, "has another next incarnation than its parts");
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
		return weir_fail(error, WEIR_NEWER, "the memory of files has version %lld, this program reads up to %d",
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
	enum weir_status status = weir_json_parse(name, text, length, &document, error);
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

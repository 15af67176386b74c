/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents, cursors and refusals.
 *
 * jansson parses; the text is kept beside the tree, so that a refusal can name
 * the line of a value (json_line.c). Every getter refuses in the same form, by
 * weir_json_fail, and says what would be accepted.
 */
#include "common/json/json.h"

#include "common/base/alloc.h"
#include "common/base/read_file.h"
#include "common/base/suggest.h"
#include "common/json/internal.h"
#include "common/json/json_line.h"
#include "common/json/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_FILE_MAX_BYTES = 16 << 20, SHOWN_BYTES = 64 };

#define REAL_WHOLE_MAX 0x1p53 /* up to here a double has every whole number */

/* ---- documents ---- */

/* jansson quotes the text around a mistake, line breaks and all. */
static void one_line(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < ' ')
			*text = ' ';
}

/* What else people write there, in words. jansson's position is behind what it could not take. */
static const char *hint(const char *text, size_t length, size_t position)
{
	for (size_t at = position > 0 ? position - 1 : 0; at < length && at <= position; at++)
		switch (text[at]) {
		case '#': return "; a comment begins with // or stands between /* and */";
		case '/': return "; a comment that begins with /* ends with */";
		case '\'': return "; a string stands between double quotes";
		default: break;
		}
	return "";
}

static enum weir_status parse(const char *name, const char *text, size_t length, size_t most, size_t flags,
                              struct weir_json_document **document, struct weir_error *error)
{
	if (length > most)
		return weir_fail(error, WEIR_INVALID, "%s is larger than %zu bytes", name, most);
	if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark, as some editors leave */
		text += 3;
		length -= 3;
	}
	json_error_t mistake;
	json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES | flags, &mistake);
	if (root == NULL) {
		one_line(mistake.text);
		if (strstr(mistake.text, "JSON_ALLOW_NUL") != NULL)
			snprintf(mistake.text, sizeof mistake.text, "a text must not have a zero byte (\\u0000)");
		return weir_fail(error, WEIR_INVALID, "%s:%d:%d: not valid JSON: %s%s", name, mistake.line, mistake.column,
		                 mistake.text, hint(text, length, (size_t)mistake.position));
	}
	struct weir_json_document *made = weir_alloc(1, sizeof *made);
	made->name = weir_copy(name, strlen(name));
	made->text = weir_copy(text, length);
	made->length = length;
	made->root = root;
	made->refusals = weir_alloc(1, sizeof *made->refusals);
	*document = made;
	return WEIR_OK;
}

enum weir_status weir_json_parse(const char *name, const char *text, size_t length,
                                 struct weir_json_document **document, struct weir_error *error)
{
	return parse(name, text, length, JSON_FILE_MAX_BYTES, 0, document, error);
}

enum weir_status weir_json_parse_saved(const char *name, const char *text, size_t length,
                                       struct weir_json_document **document, struct weir_error *error)
{
	return parse(name, text, length, SIZE_MAX, 0, document, error);
}

enum weir_status weir_json_parse_record(const char *name, const char *text, size_t length,
                                        struct weir_json_document **document, struct weir_error *error)
{
	return parse(name, text, length, JSON_FILE_MAX_BYTES, JSON_ALLOW_NUL, document, error);
}

enum weir_status weir_json_parse_file(const char *name, const char *text, size_t length,
                                      struct weir_json_document **document, struct weir_error *error)
{
	char *relaxed = weir_copy(text, length);
	json_relax(relaxed, length);
	enum weir_status status = parse(name, relaxed, length, JSON_FILE_MAX_BYTES, 0, document, error);
	free(relaxed);
	return status;
}

enum weir_status weir_json_load(const char *path, struct weir_json_document **document, struct weir_error *error)
{
	char *text;
	size_t length;
	enum weir_status status = weir_read_file(path, JSON_FILE_MAX_BYTES, &text, &length, error);
	if (status != WEIR_OK)
		return status;
	status = weir_json_parse_file(path, text, length, document, error);
	free(text);
	return status;
}

void weir_json_document_free(struct weir_json_document *document)
{
	if (document == NULL)
		return;
	json_decref(document->root);
	json_refusals_free(document->refusals);
	free(document->text);
	free(document->name);
	free(document);
}

struct weir_json weir_json_root(const struct weir_json_document *document)
{
	return (struct weir_json){.document = document, .value = document->root, .path = ""};
}

/* ---- cursors ---- */

/* Appends to a path; what does not fit is cut. */
static void extend_path(char path[WEIR_JSON_PATH_BYTES], const char *piece)
{
	size_t used = strlen(path), length = strlen(piece);
	if (length > WEIR_JSON_PATH_BYTES - 1 - used)
		length = WEIR_JSON_PATH_BYTES - 1 - used;
	memcpy(path + used, piece, length);
	path[used + length] = '\0';
}

struct weir_json weir_json_member(const struct weir_json *object, const char *name)
{
	struct weir_json member = *object;
	member.value = json_object_get(object->value, name); /* NULL for anything but an object */
	if (member.path[0] != '\0')
		extend_path(member.path, ".");
	extend_path(member.path, name);
	return member;
}

struct weir_json weir_json_element(const struct weir_json *array, size_t index)
{
	struct weir_json element = *array;
	element.value = json_array_get(array->value, index);
	char piece[24];
	snprintf(piece, sizeof piece, "[%zu]", json_index_in_text(array->document, array->value, index));
	extend_path(element.path, piece);
	return element;
}

bool weir_json_same(const struct weir_json *one, const struct weir_json *other, const char *name)
{
	const json_t *a = weir_json_member(one, name).value, *b = weir_json_member(other, name).value;
	return a == NULL || b == NULL ? a == b : json_equal(a, b);
}

/* ---- refusals ---- */

/* Words about a value, at the line of `line_path`. An option of the command line has no lines. */
static enum weir_status refuse(const struct weir_json *at, const char *line_path, struct weir_error *error,
                               const char *words)
{
	const struct weir_json_document *document = at->document;
	memcpy(document->refusals->path, line_path, strlen(line_path) + 1);
	char line[16] = "";
	if (strncmp(document->name, "--", 2) != 0 && strcmp(document->name, WEIR_JSON_COMMAND_LINE) != 0) {
		struct weir_span text = {.at = document->text, .length = (uint32_t)document->length};
		snprintf(line, sizeof line, "%u:", weir_json_line(text, line_path));
	}
	return weir_fail(error, WEIR_INVALID, "%s:%s %s%s%s", document->name, line, at->path,
	                 at->path[0] != '\0' ? ": " : "", words);
}

enum weir_status(weir_json_fail)(const struct weir_json *at, struct weir_error *error, const char *format, ...)
{
	char words[WEIR_ERROR_TEXT_BYTES];
	va_list args;
	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	return refuse(at, at->path, error, words);
}

/* A value as a refusal shows it: scalars as they stand, a long string cut. */
static const char *shown(const json_t *value, char buffer[SHOWN_BYTES])
{
	switch (json_typeof(value)) {
	case JSON_OBJECT: return "an object";
	case JSON_ARRAY: return "an array";
	case JSON_TRUE: return "true";
	case JSON_FALSE: return "false";
	case JSON_NULL: return "null";
	case JSON_STRING: {
		const char *text = json_string_value(value);
		bool cut = json_string_length(value) > 40;
		snprintf(buffer, SHOWN_BYTES, "\"%.40s%s\"", text, cut ? "..." : "");
		one_line(buffer);
		return buffer;
	}
	case JSON_INTEGER: snprintf(buffer, SHOWN_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(value)); return buffer;
	case JSON_REAL: snprintf(buffer, SHOWN_BYTES, "%.15g", json_real_value(value)); return buffer;
	}
	return "";
}

enum weir_status weir_json_only(const struct weir_json *object, const char *const *names, struct weir_error *error)
{
	char buffer[SHOWN_BYTES];
	if (!json_is_object(object->value))
		return weir_json_fail(object, error, "must be an object, not %s", shown(object->value, buffer));
	const char *key;
	json_t *value;
	json_object_foreach(object->value, key, value)
	{
		size_t i = 0;
		while (names[i] != NULL && strcmp(names[i], key) != 0)
			i++;
		if (names[i] != NULL)
			continue;
		char known[WEIR_ERROR_TEXT_BYTES / 2], words[WEIR_ERROR_TEXT_BYTES], cut[SHOWN_BYTES];
		weir_list_names(names, "", known, sizeof known);
		snprintf(cut, sizeof cut, "%s", key);
		one_line(cut);
		const char *near = weir_nearest_name(key, names);
		if (near != NULL)
			snprintf(words, sizeof words, "unknown key \"%s\"; did you mean \"%s\"? (known: %s)", cut, near, known);
		else
			snprintf(words, sizeof words, "unknown key \"%s\" (known: %s)", cut, known);
		struct weir_json member = weir_json_member(object, key);
		return refuse(object, member.path, error, words);
	}
	return WEIR_OK;
}

enum weir_status weir_json_require(const struct weir_json *at, const char *words, struct weir_error *error)
{
	return at->value != NULL ? WEIR_OK : weir_json_fail(at, error, "is missing; %s", words);
}

/* ---- getters ---- */

/* JSON has one kind of number: 1.0 is 1, as are 1e3 and 1000. @return false: it is no whole number */
static bool whole_number(const json_t *value, json_int_t *number)
{
	double real = json_real_value(value);
	*number = json_integer_value(value);
	if (!json_is_real(value))
		return json_is_integer(value);
	if (!(real >= -REAL_WHOLE_MAX && real <= REAL_WHOLE_MAX))
		return false;
	*number = (json_int_t)real;
	return (double)*number == real;
}

enum weir_status weir_json_int(const struct weir_json *at, int64_t least, int64_t most, int64_t *out,
                               struct weir_error *error)
{
	if (at->value == NULL)
		return WEIR_OK;
	char buffer[SHOWN_BYTES];
	json_int_t value;
	if (!whole_number(at->value, &value) || value < least || value > most)
		return weir_json_fail(at, error, "must be a whole number from %lld to %lld, not %s", (long long)least,
		                      (long long)most, shown(at->value, buffer));
	*out = value;
	return WEIR_OK;
}

enum weir_status weir_json_bool(const struct weir_json *at, bool *out, struct weir_error *error)
{
	if (at->value == NULL)
		return WEIR_OK;
	char buffer[SHOWN_BYTES];
	if (!json_is_boolean(at->value))
		return weir_json_fail(at, error, "must be true or false, not %s", shown(at->value, buffer));
	*out = json_is_true(at->value);
	return WEIR_OK;
}

enum weir_status weir_json_string(const struct weir_json *at, const char **out, struct weir_error *error)
{
	if (at->value == NULL)
		return WEIR_OK;
	char buffer[SHOWN_BYTES];
	if (!json_is_string(at->value))
		return weir_json_fail(at, error, "must be a string, not %s", shown(at->value, buffer));
	if (strlen(json_string_value(at->value)) < json_string_length(at->value))
		return weir_json_fail(at, error, "must not have a zero byte");
	*out = json_string_value(at->value);
	return WEIR_OK;
}

enum weir_status weir_json_duration(const struct weir_json *at, int64_t least_ms, int64_t most_ms, int64_t *out_ms,
                                    struct weir_error *error)
{
	if (at->value == NULL)
		return WEIR_OK;
	char buffer[SHOWN_BYTES], low[24], high[24];
	int64_t value;
	if (!json_is_string(at->value) || !weir_parse_duration(json_string_value(at->value), &value) || value < least_ms ||
	    value > most_ms)
		return weir_json_fail(
			at, error,
			"must be a time from \"%s\" to \"%s\", a whole number of ms, s, m, h or d such as \"10s\", "
			"not %s",
			weir_format_duration(least_ms, low, sizeof low), weir_format_duration(most_ms, high, sizeof high),
			shown(at->value, buffer));
	*out_ms = value;
	return WEIR_OK;
}

enum weir_status weir_json_size(const struct weir_json *at, int64_t least, int64_t most, int64_t *out_bytes,
                                struct weir_error *error)
{
	if (at->value == NULL)
		return WEIR_OK;
	char buffer[SHOWN_BYTES], low[24], high[24];
	int64_t value = json_integer_value(at->value);
	bool number = json_is_integer(at->value) ||
	              (json_is_string(at->value) && weir_parse_size(json_string_value(at->value), &value));
	if (!number || value < least || value > most)
		return weir_json_fail(at, error,
		                      "must be a size from \"%s\" to \"%s\", a number of bytes or of KiB, MiB, GiB or TiB such "
		                      "as \"64MiB\", not %s",
		                      weir_format_size(least, low, sizeof low), weir_format_size(most, high, sizeof high),
		                      shown(at->value, buffer));
	*out_bytes = value;
	return WEIR_OK;
}

enum weir_status weir_json_list(const struct weir_json *at, size_t least, size_t most, size_t *out,
                                struct weir_error *error)
{
	if (at->value == NULL)
		return WEIR_OK;
	char buffer[SHOWN_BYTES];
	if (!json_is_array(at->value))
		return weir_json_fail(at, error, "must be a list, [...], not %s", shown(at->value, buffer));
	size_t count = json_array_size(at->value);
	if (count < least || count > most)
		return weir_json_fail(at, error, "must be a list of %zu to %zu elements, not of %zu", least, most, count);
	*out = count;
	return WEIR_OK;
}

enum weir_status weir_json_one_or_more(const struct weir_json *at, size_t most, size_t *out, struct weir_error *error)
{
	*out = 1;
	return json_is_array(at->value) ? weir_json_list(at, 1, most, out, error) : WEIR_OK;
}

struct weir_json weir_json_one_of(const struct weir_json *at, size_t i)
{
	return json_is_array(at->value) ? weir_json_element(at, i) : *at;
}

enum weir_status weir_json_word(const struct weir_json *at, const char *const *words, int *out,
                                struct weir_error *error)
{
	if (at->value == NULL)
		return WEIR_OK;
	const char *word = json_string_value(at->value);
	for (int i = 0; word != NULL && words[i] != NULL; i++)
		if (strcmp(words[i], word) == 0) {
			*out = i;
			return WEIR_OK;
		}
	char buffer[SHOWN_BYTES], known[WEIR_ERROR_TEXT_BYTES / 2];
	weir_list_names(words, "\"", known, sizeof known);
	const char *near = word != NULL ? weir_nearest_name(word, words) : NULL;
	return weir_json_fail(at, error, "must be one of %s, not %s%s%s%s", known, shown(at->value, buffer),
	                      near != NULL ? "; did you mean \"" : "", near != NULL ? near : "", near != NULL ? "\"?" : "");
}

/* @param path, variable  returned, borrowed; neither: it is a string */
static enum weir_status read_secret(const struct weir_json *at, struct weir_json *file, struct weir_json *env,
                                    const char **path, const char **variable, struct weir_error *error)
{
	static const char *const names[] = {"file", "env", NULL};
	*file = weir_json_member(at, "file");
	*env = weir_json_member(at, "env");
	if (json_is_string(at->value))
		return WEIR_OK;
	if (!json_is_object(at->value) || weir_json_exists(file) == weir_json_exists(env))
		return weir_json_fail(at, error, "must be a string, {\"file\": PATH} or {\"env\": NAME}");
	enum weir_status status = weir_json_only(at, names, error);
	if (status == WEIR_OK)
		status = weir_json_string(file, path, error);
	return status == WEIR_OK ? weir_json_string(env, variable, error) : status;
}

enum weir_status weir_json_check_secret(const struct weir_json *at, struct weir_error *error)
{
	struct weir_json file, env;
	const char *path = NULL, *variable = NULL;
	return at->value == NULL ? WEIR_OK : read_secret(at, &file, &env, &path, &variable, error);
}

enum weir_status weir_json_secret(const struct weir_json *at, char **out, struct weir_error *error)
{
	struct weir_json file, env;
	const char *path = NULL, *variable = NULL;
	if (at->value == NULL)
		return WEIR_OK;
	enum weir_status status = read_secret(at, &file, &env, &path, &variable, error);
	if (status != WEIR_OK)
		return status;
	if (json_is_string(at->value)) {
		*out = weir_copy(json_string_value(at->value), json_string_length(at->value));
		return WEIR_OK;
	}
	if (variable != NULL) {
		const char *value = getenv(variable);
		if (value == NULL)
			return weir_json_fail(&env, error, "environment variable %s is not set", variable);
		*out = weir_copy(value, strlen(value));
		return WEIR_OK;
	}
	struct weir_error failure;
	if (weir_read_first_line(path, out, &failure) != WEIR_OK)
		return weir_json_fail(&file, error, "%s", failure.text);
	return WEIR_OK;
}

enum weir_status weir_json_password(const struct weir_json *at, char **out, struct weir_error *error)
{
	enum weir_status status = weir_json_secret(at, out, error);
	if (status == WEIR_OK && *out != NULL && **out == '\0') {
		free(*out);
		*out = NULL;
		return weir_json_fail(at, error, "is empty, so anyone would know it: give one of some length");
	}
	return status;
}

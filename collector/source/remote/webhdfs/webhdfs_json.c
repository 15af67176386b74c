/* SPDX-License-Identifier: Apache-2.0 */
/* The answers' members, each looked for where it has to be. */
#include "collector/source/remote/webhdfs/webhdfs_json.h"

#include "common/base/words.h"
#include "common/json/json.h"

#include <stdio.h>
#include <string.h>

static enum weir_status refuse(struct weir_span body, struct weir_error *error)
{
	char name[WEBHDFS_WORDS_BYTES], words[WEBHDFS_WORDS_BYTES];
	webhdfs_json_exception(body, name, words);
	return weir_fail(error, WEIR_IO, "it does not answer as WebHDFS does: %s", words);
}

/* The answer's one member of that name; the caller frees the document. NULL: refused. */
static json_t *parse(struct weir_span body, const char *member, struct weir_json_document **document,
                     struct weir_error *error)
{
	struct weir_error ignored;
	if (body.length == 0 || weir_json_parse("answer", body.at, body.length, document, &ignored) != WEIR_OK) {
		(void)refuse(body, error);
		*document = NULL;
		return NULL;
	}
	struct weir_json root = weir_json_root(*document);
	json_t *value = json_object_get(root.value, member);
	if (value == NULL)
		(void)refuse(body, error);
	return value;
}

/* @return false: it is none that can be read */
static bool get_status(const json_t *value, struct webhdfs_status *status)
{
	const char *name = json_string_value(json_object_get(value, "pathSuffix"));
	const char *type = json_string_value(json_object_get(value, "type"));
	json_int_t id = json_integer_value(json_object_get(value, "fileId"));
	json_int_t length = json_integer_value(json_object_get(value, "length"));
	json_int_t modified = json_integer_value(json_object_get(value, "modificationTime"));
	if (name == NULL || type == NULL || id <= 0 || length < 0 || strchr(name, '/') != NULL || strcmp(name, ".") == 0 ||
	    strcmp(name, "..") == 0 || strlen(name) >= WEBHDFS_NAME_MOST)
		return false;
	*status = (struct webhdfs_status){.name = name,
	                                  .id = (uint64_t)id,
	                                  .length = (uint64_t)length,
	                                  .modified_ms = modified,
	                                  .folder = strcmp(type, "DIRECTORY") == 0};
	return status->folder || strcmp(type, "FILE") == 0;
}

enum weir_status webhdfs_json_status(struct weir_span body, webhdfs_take *take, void *context, struct weir_error *error)
{
	struct weir_json_document *document;
	struct webhdfs_status status;
	json_t *value = parse(body, "FileStatus", &document, error);
	enum weir_status result = value != NULL ? WEIR_OK : WEIR_IO;
	if (value != NULL && !get_status(value, &status))
		result = refuse(body, error);
	if (result == WEIR_OK)
		take(context, &status);
	weir_json_document_free(document);
	return result;
}

enum weir_status webhdfs_json_listing(struct weir_span body, webhdfs_take *take, void *context, uint64_t *remaining,
                                      char *last, struct weir_error *error)
{
	struct weir_json_document *document;
	json_t *value =
		parse(body,
	          body.length > 2 && memmem(body.at, body.length, "DirectoryListing", 16) != NULL ? "DirectoryListing"
	                                                                                          : "FileStatuses",
	          &document, error);
	json_int_t rest = 0;
	bool told = value == NULL;
	if (!told && json_object_get(value, "partialListing") != NULL) {
		rest = json_integer_value(json_object_get(value, "remainingEntries"));
		value = json_object_get(json_object_get(value, "partialListing"), "FileStatuses");
	}
	json_t *list = json_object_get(value, "FileStatus"), *entry;
	size_t place;
	*remaining = rest > 0 ? (uint64_t)rest : 0;
	last[0] = '\0';
	if (!told && !json_is_array(list))
		(void)refuse(body, error);
	json_array_foreach(list, place, entry)
	{
		struct webhdfs_status status;
		if (!get_status(entry, &status))
			continue;
		snprintf(last, WEBHDFS_NAME_MOST, "%s", status.name);
		take(context, &status);
	}
	enum weir_status result = json_is_array(list) ? WEIR_OK : WEIR_IO;
	weir_json_document_free(document);
	return result;
}

enum weir_status webhdfs_json_open(struct weir_span body, bool *open, struct weir_error *error)
{
	struct weir_json_document *document;
	json_t *value = parse(body, "LocatedBlocks", &document, error);
	json_t *under = json_object_get(value, "isUnderConstruction");
	enum weir_status result = json_is_boolean(under) ? WEIR_OK : WEIR_IO;
	if (value != NULL && result != WEIR_OK)
		(void)refuse(body, error);
	*open = json_is_true(under);
	weir_json_document_free(document);
	return result;
}

void webhdfs_json_exception(struct weir_span body, char name[WEBHDFS_WORDS_BYTES], char words[WEBHDFS_WORDS_BYTES])
{
	struct weir_json_document *document = NULL;
	struct weir_error ignored;
	json_t *value = NULL;
	if (body.length > 0 && weir_json_parse("answer", body.at, body.length, &document, &ignored) == WEIR_OK) {
		struct weir_json root = weir_json_root(document);
		value = json_object_get(root.value, "RemoteException");
	}
	const char *exception = json_string_value(json_object_get(value, "exception"));
	const char *message = json_string_value(json_object_get(value, "message"));
	snprintf(name, WEBHDFS_WORDS_BYTES, "%s", exception != NULL ? exception : "");
	size_t blank = 0;
	while (blank < body.length && strchr(" \t\r\n", body.at[blank]) != NULL && body.at[blank] != '\0')
		blank++;
	size_t line = message != NULL ? strcspn(message, "\n") : 0;
	if (line > 0)
		snprintf(words, WEBHDFS_WORDS_BYTES, "%.*s", (int)line, message);
	else if (exception != NULL)
		snprintf(words, WEBHDFS_WORDS_BYTES, "it says no more");
	else if (body.length == 0)
		snprintf(words, WEBHDFS_WORDS_BYTES, "the answer is empty");
	else if (blank < body.length && body.at[blank] == '<')
		snprintf(words, WEBHDFS_WORDS_BYTES, "a web page came in place of JSON");
	else
		snprintf(words, WEBHDFS_WORDS_BYTES, "its JSON is cut, or is another's: %.60s",
		         document != NULL ? "the members are not those of WebHDFS" : "it cannot be parsed");
	weir_words_clean(words);
	weir_json_document_free(document);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elasticsearch's _bulk: a line that says what to do, and behind it the document. Documents are stored, not indexed: what
 * would change or delete one is answered as an error of that item, the others are taken.
 */
#include "collector/source/push/decode/decode_tree.h"

#include <string.h>

/* The next line, without its end; at NULL: there is none. */
static struct weir_span next_line(struct weir_span *rest)
{
	if (rest->length == 0)
		return (struct weir_span){.at = NULL};
	const char *end = memchr(rest->at, '\n', rest->length);
	uint32_t length = end != NULL ? (uint32_t)(end - rest->at) : rest->length;
	struct weir_span line = {.at = rest->at, .length = length};
	uint32_t taken = length + (end != NULL);
	rest->at += taken;
	rest->length -= taken;
	if (line.length > 0 && line.at[line.length - 1] == '\r')
		line.length--;
	return line;
}

static void put_item(struct weir_text *answer, const char *action, const json_t *about, bool taken)
{
	const json_t *index = json_object_get(about, "_index");
	weir_text_printf(answer, "%s{\"%s\":{\"_index\":", answer->length > 0 ? "," : "", action);
	if (json_is_string(index))
		weir_text_json(answer, (struct weir_span){json_string_value(index), (uint32_t)json_string_length(index)});
	else
		weir_text_puts(answer, "\"weir\"");
	weir_text_puts(answer, taken ? ",\"status\":201,\"result\":\"created\",\"_shards\":{\"total\":1,\"successful\":1,"
	                               "\"failed\":0}}}"
	                             : ",\"status\":400,\"error\":{\"type\":\"illegal_argument_exception\",\"reason\":"
	                               "\"weir takes documents by create and index alone\"}}}");
}

/* Takes an action and its document. */
static enum weir_status take_action(struct weir_span action, struct weir_span *rest, struct weir_text *lines,
                                    struct weir_text *answer, struct weir_error *error)
{
	static const char *const names[] = {"create", "index", "update", "delete", NULL};
	json_t *tree;
	int which = 0;
	enum weir_status status = decode_tree(action, "an action", &tree, error);
	if (status != WEIR_OK)
		return status;
	while (names[which] != NULL && json_object_get(tree, names[which]) == NULL)
		which++;
	bool documents = which < 2;
	if (names[which] == NULL) {
		status = weir_fail(error, WEIR_INVALID, "a line says what to do, but not create, index, update or delete");
	} else {
		struct weir_span document = which < 3 ? next_line(rest) : (struct weir_span){.at = NULL};
		if (documents && document.length > 0) {
			weir_text_append(lines, document.at, document.length);
			weir_text_append(lines, "\n", 1);
		}
		if (documents && document.length == 0)
			status = weir_fail(error, WEIR_INVALID, "the last action has no document");
		put_item(answer, names[which], json_object_get(tree, names[which]), documents);
	}
	json_decref(tree);
	return status;
}

enum weir_status decode_bulk(struct weir_span body, size_t most, struct weir_text *lines, struct weir_text *answer,
                             struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (struct weir_span line; status == WEIR_OK && (line = next_line(&body)).at != NULL;)
		if (line.length > 0) {
			status = take_action(line, &body, lines, answer, error);
			if (status == WEIR_OK && answer->length > DECODE_ANSWER_MOST_BYTES)
				status =
					weir_fail(error, WEIR_FULL, "the body has too many documents for one answer: send fewer at once");
			if (status == WEIR_OK)
				status = decode_fits(lines, most, error);
		}
	return status;
}

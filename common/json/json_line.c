/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a path in a JSON text that is known to be valid, so it only has to tell
 * strings from structure and never reports an error: on anything unexpected it
 * stops at the end of the text. It runs when a configuration is refused, once.
 */
#include "common/json/json_line.h"

#include "common/json/json.h"

#include <stdlib.h>

struct text_scan {
	const char *at, *end;
};

static void skip_blanks(struct text_scan *scan)
{
	while (scan->at < scan->end && memchr(" \t\r\n,:", *scan->at, 6) != NULL)
		scan->at++;
}

/* From the opening quote to behind the closing one. */
static void skip_string(struct text_scan *scan)
{
	for (scan->at++; scan->at < scan->end && *scan->at != '"'; scan->at++)
		if (*scan->at == '\\' && scan->at + 1 < scan->end)
			scan->at++;
	if (scan->at < scan->end)
		scan->at++;
}

static void skip_value(struct text_scan *scan)
{
	size_t depth = 0;
	do {
		skip_blanks(scan);
		if (scan->at >= scan->end)
			return;
		char c = *scan->at;
		if (c == '"') {
			skip_string(scan);
			continue;
		}
		if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && depth > 0)
			depth--;
		scan->at++;
		if (memchr("{}[]", c, 4) == NULL) /* a number or a word: to its end */
			while (scan->at < scan->end && memchr(" \t\r\n,:{}[]\"", *scan->at, 11) == NULL)
				scan->at++;
	} while (depth > 0);
}

/* How much of `rest` a member's name takes: 0 if it is another name. `name` is the text between the quotes. */
static size_t name_matches(const char *rest, const char *name, size_t length)
{
	size_t dot = *rest == '.' ? 1 : 0;
	rest += dot;
	json_t *decoded = NULL;
	if (memchr(name, '\\', length) != NULL) {
		decoded = json_loadb(name - 1, length + 2, JSON_DECODE_ANY, NULL);
		if (decoded == NULL)
			return 0;
		name = json_string_value(decoded);
		length = json_string_length(decoded);
	}
	bool same = strncmp(rest, name, length) == 0 && strlen(rest) >= length &&
	            (rest[length] == '\0' || rest[length] == '.' || rest[length] == '[');
	json_decref(decoded);
	return same ? dot + length : 0;
}

/*
 * Where the value of path `rest` begins, seen from the value at scan->at. A name
 * with a dot can read as two, so a member that leads nowhere is passed over:
 * *whole says whether all of the path was found.
 */
static const char *locate(struct text_scan *scan, const char *rest, bool *whole)
{
	const char *best = scan->at;
	*whole = *rest == '\0';
	if (*whole || scan->at >= scan->end || (*scan->at != '{' && *scan->at != '['))
		return best;
	bool object = *scan->at++ == '{';
	char *behind = NULL;
	unsigned long wanted = object || *rest != '[' ? 0 : strtoul(rest + 1, &behind, 10);
	for (unsigned long index = 0;; index++) {
		skip_blanks(scan);
		if (scan->at >= scan->end || *scan->at == '}' || *scan->at == ']')
			return best;
		size_t taken = 0;
		const char *key = scan->at;
		if (object) {
			skip_string(scan);
			taken = name_matches(rest, key + 1, (size_t)(scan->at - key) - 2);
			skip_blanks(scan);
		} else if (behind != NULL && *behind == ']' && index == wanted) {
			taken = (size_t)(behind + 1 - rest);
		}
		if (taken > 0) {
			struct text_scan inner = *scan;
			const char *found = locate(&inner, rest + taken, whole);
			best = found == scan->at && object && !*whole ? key : found;
			if (*whole)
				return best;
		}
		skip_value(scan);
	}
}

unsigned weir_json_line(struct weir_span text, const char *path)
{
	struct text_scan scan = {.at = text.at, .end = text.at + text.length};
	skip_blanks(&scan);
	bool whole;
	const char *found = locate(&scan, path, &whole);
	unsigned line = 1;
	for (const char *at = text.at; at < found; at++)
		line += *at == '\n';
	return line;
}

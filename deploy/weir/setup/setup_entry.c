/* SPDX-License-Identifier: Apache-2.0 */
/* The text was parsed before by a real parser: here only places are looked for, and nothing is believed to be there. */
#include "deploy/weir/setup/setup_entry.h"

#include <stdlib.h>

enum { DEPTH_MAX = 512 };

struct scan {
	const char *at;
	size_t length, place;
};

/* A member or an element: where its value lies, and where it begins with its name. */
struct part {
	size_t start, value, end;
	struct weir_span name; /* of a member, as it is written */
};

/* The list, and what stands around it. */
struct found {
	struct part first, last, list; /* members of the root; list.end 0: there is no "gateways" */
	size_t list_before_end;        /* the end of the member before it; 0: it is the first */
	size_t list_after_start;       /* the start of the member behind it; 0: it is the last */
	size_t members;
};

static void skip_space(struct scan *scan)
{
	while (scan->place < scan->length) {
		const char *at = scan->at + scan->place;
		size_t left = scan->length - scan->place;
		const char *end = NULL;
		if (strchr(" \t\r\n", *at) != NULL && *at != '\0') {
			scan->place++;
			continue;
		}
		if (left > 1 && at[0] == '/' && at[1] == '/')
			end = memchr(at, '\n', left);
		else if (left > 1 && at[0] == '/' && at[1] == '*')
			end = memmem(at + 2, left - 2, "*/", 2);
		else
			return;
		scan->place = end != NULL ? (size_t)(end - scan->at) + (at[1] == '*' ? 2 : 1) : scan->length;
	}
}

static char here(const struct scan *scan)
{
	return scan->place < scan->length ? scan->at[scan->place] : '\0';
}

static bool skip_string(struct scan *scan)
{
	for (scan->place++; scan->place < scan->length; scan->place++) {
		if (here(scan) == '\\')
			scan->place++;
		else if (here(scan) == '"') {
			scan->place++;
			return true;
		}
	}
	return false;
}

/* A value: a string, a word, or all between its own braces. */
static bool skip_value(struct scan *scan)
{
	size_t depth = 0;
	do {
		skip_space(scan);
		char byte = here(scan);
		if (byte == '\0' || depth > DEPTH_MAX)
			return false;
		if (byte == '"') {
			if (!skip_string(scan))
				return false;
		} else if (byte == '{' || byte == '[') {
			depth++;
			scan->place++;
		} else if (byte == '}' || byte == ']') {
			if (depth == 0)
				return false;
			depth--;
			scan->place++;
		} else if (depth > 0 && (byte == ',' || byte == ':')) {
			scan->place++;
		} else {
			size_t start = scan->place;
			while (here(scan) != '\0' && strchr(",:{}[]\"/ \t\r\n", here(scan)) == NULL)
				scan->place++;
			if (scan->place == start)
				return false;
		}
	} while (depth > 0);
	return true;
}

/* The next member or element. @return false: the end's brace, or what cannot be; scan stays before it */
static bool next_part(struct scan *scan, bool named, struct part *part)
{
	skip_space(scan);
	part->start = scan->place;
	if (named) {
		if (here(scan) != '"' || !skip_string(scan))
			return false;
		part->name = (struct weir_span){scan->at + part->start + 1, (uint32_t)(scan->place - part->start - 2)};
		skip_space(scan);
		if (here(scan) != ':')
			return false;
		scan->place++;
		skip_space(scan);
	}
	part->value = scan->place;
	if (here(scan) == ']' || here(scan) == '}' || !skip_value(scan))
		return false;
	part->end = scan->place;
	skip_space(scan);
	scan->place += here(scan) == ',';
	return true;
}

static bool find_list(const struct weir_text *text, struct found *found)
{
	struct scan scan = {.at = text->at, .length = text->length};
	struct part part;
	*found = (struct found){0};
	skip_space(&scan);
	if (here(&scan) != '{')
		return false;
	scan.place++;
	while (next_part(&scan, true, &part)) {
		if (found->list.end != 0 && found->list_after_start == 0)
			found->list_after_start = part.start;
		if (weir_span_equal(part.name, weir_span_of("gateways"))) {
			found->list = part;
			found->list_before_end = found->last.end;
		}
		if (found->members++ == 0)
			found->first = part;
		found->last = part;
	}
	return here(&scan) == '}' && found->members > 0;
}

static void splice(struct weir_text *text, size_t start, size_t end, const struct weir_text *in)
{
	struct weir_text made = {0};
	weir_text_append(&made, text->at, start);
	if (in != NULL)
		weir_text_append(&made, in->at, in->length);
	weir_text_append(&made, text->at + end, text->length - end);
	weir_text_deinit(text);
	*text = made;
}

/* What stands before a part on its line, with the break, if that is blanks: so others are put below it. */
static void put_break(struct weir_text *out, const struct weir_text *text, size_t start)
{
	size_t line = start;
	while (line > 0 && (text->at[line - 1] == ' ' || text->at[line - 1] == '\t'))
		line--;
	if (line > 0 && text->at[line - 1] == '\n')
		weir_text_append(out, text->at + line - 1, start - line + 1);
	else
		weir_text_puts(out, " ");
}

/* The element at a place of the list, the last one for a place behind it, with its neighbours; their end is 0: none. */
static bool find_element(const struct weir_text *text, const struct part *list, size_t place, struct part *before,
                         struct part *part, struct part *after)
{
	struct scan scan = {.at = text->at, .length = text->length, .place = list->value + 1};
	struct part each = {0};
	size_t count = 0;
	*before = *part = *after = (struct part){0};
	if (text->at[list->value] != '[')
		return false;
	while (next_part(&scan, false, &each)) {
		if (count <= place) {
			*before = *part;
			*part = each;
		} else if (count == place + 1) {
			*after = each;
		}
		count++;
	}
	return here(&scan) == ']';
}

bool setup_entry_put(struct weir_text *text, const char *entry)
{
	struct found found;
	struct part before, last, after;
	struct weir_text in = {0};
	size_t at;
	if (!find_list(text, &found) ||
	    (found.list.end != 0 && !find_element(text, &found.list, SIZE_MAX, &before, &last, &after)))
		return false;
	if (found.list.end == 0) {
		at = found.last.end;
		weir_text_puts(&in, ",");
		put_break(&in, text, found.first.start);
		weir_text_printf(&in, "\"gateways\": [%s]", entry);
	} else if (last.end == 0) {
		at = found.list.value + 1;
		weir_text_puts(&in, entry);
	} else {
		at = last.end;
		weir_text_puts(&in, ",");
		put_break(&in, text, last.start);
		weir_text_puts(&in, entry);
	}
	splice(text, at, at, &in);
	weir_text_deinit(&in);
	return true;
}

bool setup_entry_take(struct weir_text *text, size_t place)
{
	struct found found;
	struct part before, part, after;
	if (!find_list(text, &found) || found.list.end == 0 ||
	    !find_element(text, &found.list, place, &before, &part, &after) || part.end == 0)
		return false;
	if (before.end == 0 && after.end == 0) {
		if (found.list_before_end != 0)
			splice(text, found.list_before_end, found.list.end, NULL);
		else if (found.list_after_start != 0)
			splice(text, found.list.start, found.list_after_start, NULL);
		else
			splice(text, part.start, part.end, NULL);
	} else if (before.end != 0) {
		splice(text, before.end, part.end, NULL);
	} else {
		splice(text, part.start, after.start, NULL);
	}
	return true;
}

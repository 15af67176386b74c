/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines whose parts come one by one, few at a time: they are looked through from first to last.
 *
 * A line of which a part is missing stays in the list, without its text, until its end comes: where parts are not
 * numbered, that end would pass for a line. It is counted there, once; or where a part without text comes before.
 */
#include "collector/cut/line_parts.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

void line_parts_init(struct line_parts *parts)
{
	*parts = (struct line_parts){.newest = -1};
}

void line_parts_deinit(struct line_parts *parts)
{
	for (uint32_t i = 0; i < parts->count; i++)
		weir_text_deinit(&parts->lines[i].text);
	free(parts->lines);
	weir_text_deinit(&parts->whole);
}

static struct open_line *find(struct line_parts *parts, struct line_key key)
{
	for (uint32_t i = 0; i < parts->count; i++)
		if (parts->lines[i].key.low == key.low && parts->lines[i].key.high == key.high)
			return &parts->lines[i];
	return NULL;
}

/* Takes a line off the list; its text becomes `whole`. */
static void finish(struct line_parts *parts, struct open_line *line)
{
	weir_text_deinit(&parts->whole);
	parts->whole = line->text;
	parts->gathered -= line->text.length;
	*line = parts->lines[--parts->count];
}

static void refuse(struct line_parts *parts, struct open_line *line)
{
	parts->gathered -= line->text.length;
	weir_text_deinit(&line->text);
	line->text = (struct weir_text){0};
	line->state = LINE_PARTS_REFUSED;
}

/* The line that began first, of those with text if these are asked for. */
static struct open_line *oldest(struct line_parts *parts, bool with_text)
{
	struct open_line *found = NULL;
	for (uint32_t i = 0; i < parts->count; i++) {
		struct open_line *line = &parts->lines[i];
		if ((line->text.length > 0 || !with_text) && (found == NULL || line->from < found->from))
			found = line;
	}
	return found;
}

/* The same, but rather one whose parts are numbered: what comes of it is known as a part without it. */
static struct open_line *least_needed(struct line_parts *parts)
{
	struct open_line *found = NULL;
	for (uint32_t i = 0; i < parts->count; i++) {
		struct open_line *line = &parts->lines[i];
		if (line->next > 0 && (found == NULL || line->from < found->from))
			found = line;
	}
	return found != NULL ? found : oldest(parts, false);
}

/* Opens a line. @param lost  set where another was given up for it, which is counted with this part */
static struct open_line *begin(struct line_parts *parts, const struct line_part *part, bool *lost)
{
	*lost = parts->count == LINE_PARTS_LINES_MAX;
	if (*lost) {
		struct open_line *given_up = least_needed(parts);
		*lost = given_up->state != LINE_PARTS_TOLD;
		refuse(parts, given_up);
		*given_up = parts->lines[--parts->count];
	}
	if (parts->count == parts->capacity) {
		parts->capacity = parts->capacity == 0 ? 4 : 2 * parts->capacity;
		parts->lines = weir_realloc(parts->lines, parts->capacity, sizeof *parts->lines);
	}
	struct open_line *line = &parts->lines[parts->count++];
	*line = (struct open_line){.key = part->key,
	                           .next = part->number,
	                           .state = part->continues ? LINE_PARTS_REFUSED : LINE_PARTS_GATHERED,
	                           .from = parts->bytes};
	return line;
}

/* Of a line that is too long the first bytes are kept, and the last ones behind them. */
static void drop_middle(struct weir_text *text)
{
	if (text->length <= LINE_PARTS_LINE_MAX_BYTES + 2 * LINE_PARTS_TAIL_BYTES)
		return;
	memcpy(text->at + LINE_PARTS_LINE_MAX_BYTES, text->at + text->length - LINE_PARTS_TAIL_BYTES,
	       LINE_PARTS_TAIL_BYTES);
	text->length = LINE_PARTS_LINE_MAX_BYTES + LINE_PARTS_TAIL_BYTES;
}

/* Adds a part, or gives the line up. */
static void add(struct line_parts *parts, struct open_line *line, const struct line_part *part, struct weir_span text)
{
	if (line->state != LINE_PARTS_GATHERED)
		return;
	if (part->lost || part->number != line->next) {
		refuse(parts, line);
		return;
	}
	line->next += part->number > 0;
	parts->gathered -= line->text.length;
	if (text.length > 0)
		weir_text_append(&line->text, text.at, text.length);
	drop_middle(&line->text);
	parts->gathered += line->text.length;
	while (parts->gathered > LINE_PARTS_BYTES_MAX)
		refuse(parts, oldest(parts, true));
}

/* A line of which it cannot be told whose it is: a part would be anybody's, and so would what ends it. */
static enum format_reason take_unnamed(struct line_parts *parts, const struct line_part *part)
{
	if (part->more || part->continues) {
		parts->unnamed_bytes = parts->bytes;
		return FORMAT_AMBIGUOUS;
	}
	bool near = parts->unnamed_bytes > 0 && parts->bytes - parts->unnamed_bytes < LINE_PARTS_UNNAMED_BYTES;
	if (!near)
		parts->unnamed_bytes = 0;
	return near ? FORMAT_AMBIGUOUS : FORMAT_OK;
}

enum format_reason line_parts_join(struct line_parts *parts, const struct line_part *part, struct weir_span *text)
{
	bool lost = false;
	struct open_line *line = part->named ? find(parts, part->key) : NULL;
	if (part->looks_back)
		return line != NULL || part->more || part->continues ? FORMAT_SKIP : FORMAT_OK;
	if (!part->named)
		return take_unnamed(parts, part);
	if (line == NULL && !part->more)
		return !part->continues ? FORMAT_OK : part->lost ? FORMAT_LEFT_OUT : FORMAT_LINE_TOO_LONG;
	if (line == NULL)
		line = begin(parts, part, &lost);
	add(parts, line, part, *text);
	/* With one line one loss is counted: where another was given up, this one is at its end. */
	bool tells = part->lost && !lost && line->state != LINE_PARTS_TOLD;
	if (part->more) {
		parts->newest = (int)(line - parts->lines);
		if (tells)
			line->state = LINE_PARTS_TOLD;
		return lost ? FORMAT_LINE_TOO_LONG : tells ? FORMAT_LEFT_OUT : FORMAT_SKIP;
	}
	enum line_parts_state state = line->state;
	finish(parts, line);
	if (state != LINE_PARTS_GATHERED)
		return tells ? FORMAT_LEFT_OUT : state == LINE_PARTS_TOLD ? FORMAT_SKIP : FORMAT_LINE_TOO_LONG;
	*text = weir_text_span(&parts->whole);
	if (text->length > LINE_PARTS_LINE_MAX_BYTES) {
		uint32_t bytes = text->length - LINE_PARTS_LINE_MAX_BYTES;
		uint32_t kept = bytes < LINE_PARTS_TAIL_BYTES ? bytes : LINE_PARTS_TAIL_BYTES;
		parts->tail = (struct weir_span){.at = text->at + text->length - kept, .length = kept};
		text->length = LINE_PARTS_LINE_MAX_BYTES;
	}
	return FORMAT_OK;
}

struct weir_span line_parts_unfinished(struct line_parts *parts)
{
	bool told = true; /* what was counted already is none */
	while (told && parts->count > 0) {
		struct open_line *line = oldest(parts, false);
		told = line->state == LINE_PARTS_TOLD;
		finish(parts, line);
	}
	if (told)
		return (struct weir_span){0};
	parts->newest = -1;
	struct weir_span text = weir_text_span(&parts->whole);
	return text.at != NULL ? text : (struct weir_span){.at = "", .length = 0};
}

bool line_parts_note(struct line_parts *parts, uint64_t before)
{
	if (parts->newest < 0)
		return false;
	struct open_line *line = &parts->lines[parts->newest];
	if (!line->noted)
		line->before = before;
	line->noted = true;
	return true;
}

uint64_t line_parts_held(const struct line_parts *parts)
{
	uint64_t before = UINT64_MAX;
	for (uint32_t i = 0; i < parts->count; i++) {
		const struct open_line *line = &parts->lines[i];
		bool waited_for = line->noted && parts->bytes - line->from < LINE_PARTS_HELD_MOST_BYTES;
		if (waited_for && line->before < before)
			before = line->before;
	}
	return before;
}

void line_parts_take_over(struct line_parts *parts, struct line_parts *from)
{
	line_parts_deinit(parts);
	*parts = *from;
	parts->newest = -1;
	parts->tail = (struct weir_span){0};
	parts->whole = (struct weir_text){0}; /* the last line's, which points there */
	struct weir_text whole = from->whole;
	line_parts_init(from);
	from->whole = whole;
}

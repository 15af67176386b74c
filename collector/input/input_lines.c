/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffer between reads and lines.
 *
 *     buffer   |  handed out  |  whole lines, ready  |  a line's beginning  |  room
 *              0            begin                  ready                   end
 *
 * A line above line_max is not kept: its first line_max bytes stay at the front
 * of the buffer, its last ones behind them, and what lies between is only
 * counted, until its newline comes. Looking for such lines costs one backward
 * search for each line_max bytes, not one for each line.
 *
 * The last lines of a read that gave all that there was room for are held until
 * the next one: what stands behind a line can be looked at with it.
 */
#include "collector/input/input_lines.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_BUFFER_BYTES = 16 << 10, PAGE_BYTES = 4096, FILL_MOST_BYTES = 4 << 20 };

static const char order_mark[] = {'\xef', '\xbb', '\xbf'};

struct input_lines {
	struct input *input;
	struct input_lines_spare *spare; /* NULL: buffers are its own alone */
	size_t line_max, read_bytes;
	char *buffer;
	size_t capacity;
	size_t begin, ready, end;
	size_t whole;    /* where the last whole line ends, while some are ready: `ready`, or behind it */
	size_t searched; /* no newline lies in begin..searched (while nothing is ready) */
	uint64_t offset; /* of buffer[begin] */
	uint64_t zeros;  /* passed over since lines were taken last */
	bool open;       /* what is ready ends without a newline */
	bool full;       /* the last read gave all that there was room for */
	bool held;       /* whole lines at `begin` wait for the next read */
	/* a line above line_max: begin = 0, its first bytes are buffer[0 .. line_max] */
	bool skipping; /* its newline has not come */
	bool too_long; /* it is ready; `end` of it in the buffer is `ready` */
	uint64_t skipped;
	struct weir_span tail; /* of one that is ready */
};

struct input_lines *input_lines_new(struct input *input, size_t line_max, size_t read_bytes)
{
	struct input_lines *lines = weir_alloc(1, sizeof *lines);
	lines->input = input;
	lines->line_max = line_max;
	lines->read_bytes = read_bytes > PAGE_BYTES ? read_bytes : PAGE_BYTES;
	lines->offset = input_offset(input);
	return lines;
}

/* ---- the buffer ---- */

static void give_buffer_back(struct input_lines *lines)
{
	struct input_lines_spare *spare = lines->spare;
	if (spare != NULL && lines->capacity == SMALL_BUFFER_BYTES &&
	    spare->count < sizeof spare->buffers / sizeof *spare->buffers)
		spare->buffers[spare->count++] = lines->buffer;
	else
		free(lines->buffer);
	lines->buffer = NULL;
	lines->capacity = 0;
}

static void enlarge_buffer(struct input_lines *lines, size_t needed)
{
	struct input_lines_spare *spare = lines->spare;
	if (lines->buffer == NULL && needed <= SMALL_BUFFER_BYTES && spare != NULL && spare->count > 0) {
		lines->buffer = spare->buffers[--spare->count];
		lines->capacity = SMALL_BUFFER_BYTES;
		return;
	}
	lines->capacity = needed < SMALL_BUFFER_BYTES ? SMALL_BUFFER_BYTES : needed;
	lines->buffer = weir_realloc(lines->buffer, lines->capacity, 1);
}

void input_lines_share(struct input_lines *lines, struct input_lines_spare *spare)
{
	lines->spare = spare;
}

void input_lines_spare_deinit(struct input_lines_spare *spare)
{
	while (spare->count > 0)
		free(spare->buffers[--spare->count]);
}

void input_lines_free(struct input_lines *lines)
{
	if (lines == NULL)
		return;
	input_free(lines->input);
	give_buffer_back(lines);
	free(lines);
}

struct input *input_lines_input(struct input_lines *lines)
{
	return lines->input;
}

uint64_t input_lines_offset(const struct input_lines *lines)
{
	return lines->offset;
}

uint64_t input_lines_read_offset(const struct input_lines *lines)
{
	if (lines->too_long)
		return lines->offset + lines->line_max + lines->skipped + (lines->end - lines->ready);
	return lines->offset + (lines->end - lines->begin) + lines->skipped;
}

uint64_t input_lines_zeros(const struct input_lines *lines)
{
	return lines->zeros;
}

bool input_lines_returns(const struct input_lines *lines)
{
	size_t length = lines->end - lines->begin;
	if (lines->offset > sizeof order_mark || length < 2)
		return false;
	const char *line = lines->buffer + lines->begin;
	return memchr(line, '\n', length) == NULL && memchr(line, '\r', length - 1) != NULL;
}

static void empty(struct input_lines *lines)
{
	lines->begin = lines->ready = lines->end = lines->searched = 0;
	lines->open = lines->skipping = lines->too_long = lines->full = lines->held = false;
	lines->skipped = lines->zeros = 0;
	lines->tail = (struct weir_span){0};
}

enum weir_status input_lines_seek(struct input_lines *lines, uint64_t offset, struct weir_error *error)
{
	empty(lines);
	enum weir_status status = input_seek(lines->input, offset, error);
	lines->offset = input_offset(lines->input);
	return status;
}

void input_lines_park(struct input_lines *lines)
{
	input_park(lines->input);
}

void input_lines_rest(struct input_lines *lines)
{
	if (lines->end > lines->begin || lines->buffer == NULL)
		return;
	uint64_t zeros = lines->zeros;
	empty(lines);
	lines->zeros = zeros;
	give_buffer_back(lines);
}

/* ---- what is in the buffer ---- */

/* The newline of a long line may be there: then it is ready. */
static void search_skipped(struct input_lines *lines)
{
	char *rest = lines->buffer + lines->line_max;
	const char *newline = memchr(lines->buffer + lines->searched, '\n', lines->end - lines->searched);
	if (newline == NULL) {
		size_t bytes = lines->end - lines->line_max;
		size_t kept = bytes < INPUT_LINES_TAIL_BYTES ? bytes : INPUT_LINES_TAIL_BYTES;
		memmove(rest, rest + bytes - kept, kept);
		lines->skipped += bytes - kept;
		lines->end = lines->searched = lines->line_max + kept;
		return;
	}
	size_t bytes = (size_t)(newline - rest), kept = bytes < INPUT_LINES_TAIL_BYTES ? bytes : INPUT_LINES_TAIL_BYTES;
	lines->tail = (struct weir_span){.at = newline - kept, .length = (uint32_t)kept};
	lines->skipped += bytes + 1;
	lines->ready = (size_t)(newline - lines->buffer) + 1;
	lines->skipping = false;
	lines->too_long = true;
}

/* The line at `begin` is too long: from here on its rest is only counted. */
static void begin_skipping(struct input_lines *lines)
{
	memmove(lines->buffer, lines->buffer + lines->begin, lines->end - lines->begin);
	lines->end -= lines->begin;
	lines->begin = lines->ready = 0;
	lines->searched = lines->line_max;
	lines->skipping = true;
	lines->skipped = 0;
	search_skipped(lines);
}

/* Takes whole lines up to `ready`, or fewer: up to the first that is too long. */
static void stop_before_long(struct input_lines *lines)
{
	size_t at = lines->begin;
	while (lines->ready - at > lines->line_max + 1) {
		const char *newline = memrchr(lines->buffer + at, '\n', lines->line_max + 1);
		if (newline == NULL)
			break;
		at = (size_t)(newline - lines->buffer) + 1;
	}
	if (lines->ready - at <= lines->line_max + 1)
		return;
	lines->ready = at;
	if (at == lines->begin)
		begin_skipping(lines);
}

/* Looks for whole lines in what is buffered. */
static void search(struct input_lines *lines)
{
	if (lines->skipping) {
		search_skipped(lines);
		return;
	}
	const char *newline = NULL;
	if (lines->end > lines->searched)
		newline = memrchr(lines->buffer + lines->searched, '\n', lines->end - lines->searched);
	lines->searched = lines->end;
	if (newline != NULL) {
		lines->ready = (size_t)(newline - lines->buffer) + 1;
		stop_before_long(lines);
	} else if (lines->end - lines->begin > lines->line_max) {
		begin_skipping(lines);
	}
}

static bool is_ready(const struct input_lines *lines)
{
	return lines->ready > lines->begin;
}

/* What is there of a line is handed out without its newline. */
static bool end_open(struct input_lines *lines)
{
	if (lines->skipping) {
		lines->skipping = false;
		lines->too_long = true;
		lines->skipped += lines->end - lines->line_max;
		lines->ready = lines->end;
	} else {
		lines->ready = lines->end;
	}
	lines->open = is_ready(lines);
	return lines->open;
}

/* ---- what is no line's ---- */

/* A byte order mark is passed over. */
static void skip_order_mark(struct input_lines *lines)
{
	if (lines->offset > 0 || lines->begin > 0 || lines->end < sizeof order_mark ||
	    memcmp(lines->buffer, order_mark, sizeof order_mark) != 0)
		return;
	lines->begin = lines->ready = sizeof order_mark;
	lines->offset = sizeof order_mark;
	lines->searched = lines->searched < lines->begin ? lines->begin : lines->searched;
}

/* Zeros where a line should begin are passed over; in a hole without reading them. */
static void skip_zeros(struct input_lines *lines, uint64_t limit)
{
	size_t at = lines->begin;
	while (at < lines->end && lines->buffer[at] == '\0' && lines->offset < limit) {
		at++;
		lines->offset++;
		lines->zeros++;
	}
	if (at == lines->begin)
		return;
	lines->begin = lines->ready = at;
	lines->searched = lines->searched < at ? at : lines->searched;
	if (at < lines->end)
		return;
	lines->begin = lines->ready = lines->end = lines->searched = 0;
	uint64_t hole = input_skip_hole(lines->input, limit);
	lines->offset += hole;
	lines->zeros += hole;
}

/*
 * Zeros that were read at the end, before a line or behind the beginning of one, were room for lines if something is
 * written there by now.
 */
static enum weir_status return_to_zeros(struct input_lines *lines, struct weir_error *error)
{
	uint64_t from = lines->offset - lines->zeros, zeros = from;
	if (is_ready(lines))
		return WEIR_OK;
	if (lines->end > lines->begin) {
		size_t end = lines->end;
		while (end > lines->begin && lines->buffer[end - 1] == '\0')
			end--;
		if (end == lines->end)
			return WEIR_OK;
		if (lines->skipping && end == lines->line_max && lines->skipped > 0)
			return WEIR_OK; /* where they begin is not known any more: before what is kept of the line's end */
		from = lines->offset;
		zeros = from + (end - lines->begin) + (lines->skipping && end > lines->line_max ? lines->skipped : 0);
	} else if (lines->zeros == 0) {
		return WEIR_OK;
	}
	return input_is_written(lines->input, zeros) ? input_lines_seek(lines, from, error) : WEIR_OK;
}

/* Before whole lines are looked for: only at the beginning of one. @return whether there is something to search */
static bool begin_line(struct input_lines *lines, uint64_t limit)
{
	if (!lines->skipping) {
		skip_order_mark(lines);
		skip_zeros(lines, limit);
	} else if (lines->end == lines->searched) {
		uint64_t hole = input_skip_hole(lines->input, limit);
		if (hole > 0) { /* what is kept of the end is not the end */
			lines->skipped += hole + (lines->end - lines->line_max);
			lines->end = lines->searched = lines->line_max;
		}
	}
	return lines->end > lines->searched;
}

/* ---- reading ---- */

/* Moves what is left to the front and makes room; gives how much to read. */
static size_t make_room(struct input_lines *lines)
{
	if (lines->begin > 0) {
		memmove(lines->buffer, lines->buffer + lines->begin, lines->end - lines->begin);
		lines->end -= lines->begin;
		lines->searched -= lines->begin;
		lines->ready = lines->begin = 0;
	}
	size_t wanted = lines->read_bytes;
	uint64_t ahead = input_compressed(lines->input) ? UINT64_MAX : input_ahead(lines->input);
	/* The few new lines of a quiet log need no large buffer. A page more takes what comes meanwhile. */
	if (ahead < wanted - PAGE_BYTES)
		wanted = (size_t)ahead + PAGE_BYTES;
	size_t needed = lines->end + wanted;
	if (needed > lines->capacity)
		enlarge_buffer(lines, needed);
	return wanted;
}

/* A limit may lie within what is buffered: only where a file's lines are cut between two incarnations. */
static void hide_beyond(struct input_lines *lines, uint64_t limit)
{
	uint64_t visible = limit - lines->offset;
	if (lines->too_long || lines->ready - lines->begin <= visible)
		return;
	lines->whole = lines->ready = lines->begin + (size_t)visible;
	lines->open = lines->buffer[lines->ready - 1] != '\n';
}

/* Whole lines with little behind them wait until more was read; not before a line that is too long, as no whole one follows. */
static void hold_last(struct input_lines *lines)
{
	size_t most = lines->ready > INPUT_LINES_BEHIND_BYTES ? lines->ready - INPUT_LINES_BEHIND_BYTES : 0;
	bool before_long = lines->end - lines->ready > lines->line_max;
	lines->whole = lines->ready;
	if (!lines->full || lines->too_long || lines->ready == lines->begin || before_long)
		return;
	const char *newline = most > lines->begin ? memrchr(lines->buffer + lines->begin, '\n', most - lines->begin) : NULL;
	lines->ready = newline != NULL ? (size_t)(newline - lines->buffer) + 1 : lines->begin;
	if (newline == NULL)
		lines->searched = lines->begin;
	lines->held = true;
}

/* Of what is unpacked, a read of less than was asked for says nothing of the end: the room is filled. */
static enum weir_status read_room(struct input *input, char *bytes, size_t most, size_t *got, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	*got = 0;
	do {
		size_t some = 0;
		status = input_read(input, bytes + *got, most - *got, &some, error);
		*got += status == WEIR_OK ? some : 0;
	} while (status == WEIR_OK && *got < most && input_compressed(input));
	return *got > 0 ? WEIR_OK : status; /* what is wrong behind it shows at the next call */
}

/* Reads once. WEIR_OK: there are more bytes to search. */
static enum weir_status read_more(struct input_lines *lines, uint64_t limit, size_t *read, struct weir_error *error)
{
	uint64_t left = limit - input_lines_read_offset(lines);
	size_t most = make_room(lines), got;
	enum weir_status status =
		read_room(lines->input, lines->buffer + lines->end, left < most ? (size_t)left : most, &got, error);
	lines->held = false;
	lines->full = status == WEIR_OK && got == (left < most ? (size_t)left : most);
	if (status == WEIR_OK) {
		lines->end += got;
		*read += got;
	}
	return status;
}

/* What was held is searched with what is read behind it; or alone, where no more is to be had now. */
static enum weir_status release_held(struct input_lines *lines, uint64_t limit, size_t *read, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	if (!lines->held || is_ready(lines))
		return WEIR_OK;
	lines->held = lines->full = false;
	if (limit > input_lines_read_offset(lines))
		status = read_more(lines, limit, read, error);
	return status == WEIR_IO ? WEIR_IO : WEIR_OK; /* what else is wrong shows again behind these lines */
}

enum weir_status input_lines_fill(struct input_lines *lines, uint64_t limit, bool final, struct weir_error *error)
{
	enum weir_status back = return_to_zeros(lines, error);
	if (back != WEIR_OK)
		return back;
	for (size_t read = 0;;) {
		if (lines->offset >= limit)
			return WEIR_END;
		if (release_held(lines, limit, &read, error) != WEIR_OK)
			return WEIR_IO;
		if (!is_ready(lines) && begin_line(lines, limit)) {
			search(lines);
			hold_last(lines);
		}
		if (is_ready(lines)) {
			hide_beyond(lines, limit);
			return WEIR_OK;
		}
		if (lines->held)
			continue;
		if (limit <= input_lines_read_offset(lines)) { /* it cuts a line */
			if (end_open(lines))
				continue;
			return WEIR_END;
		}
		if (read >= FILL_MOST_BYTES)
			return WEIR_AGAIN;
		enum weir_status status = read_more(lines, limit, &read, error);
		if ((status == WEIR_END || status == WEIR_INVALID) && final && end_open(lines))
			return WEIR_OK;
		if (status != WEIR_OK)
			return status;
	}
}

void input_lines_take(struct input_lines *lines, struct input_lines_chunk *chunk)
{
	*chunk = (struct input_lines_chunk){
		.data = lines->buffer + lines->begin,
		.length = lines->too_long ? lines->line_max : lines->ready - lines->begin,
		.offset = lines->offset,
		.open = lines->open,
		.behind = lines->too_long || lines->open ? 0 : lines->whole - lines->ready,
		.more = lines->full,
		.too_long = lines->too_long,
		.skipped = lines->skipped,
		.tail = lines->tail,
		.zeros = lines->zeros,
	};
	lines->offset += chunk->length + chunk->skipped;
	lines->begin = lines->searched = lines->ready;
	lines->skipped = lines->zeros = 0;
	lines->tail = (struct weir_span){0};
	lines->too_long = lines->open = false;
}

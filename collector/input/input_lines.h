/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole lines out of an input, many at a time and without a copy: a read of
 * 256 KiB is handed out up to its last newline; only the cut line after that
 * moves to the front before the next read.
 *
 * @thread one at a time
 */
#ifndef COLLECTOR_INPUT_LINES_H
#define COLLECTOR_INPUT_LINES_H

#include "collector/input/input.h"
#include "common/base/span.h"

#define INPUT_LINES_NO_LIMIT UINT64_MAX

/* As long as more is to be read, so many bytes of it are there behind what is handed out. */
enum { INPUT_LINES_BEHIND_BYTES = 2048 };

/* The most bytes that are kept of the end of a line that is too long. */
enum { INPUT_LINES_TAIL_BYTES = 64 << 10 };

struct input_lines;

/* Lines that are ready; borrowed until the next call of fill, seek or free. */
struct input_lines_chunk {
	const char *data;
	size_t length;
	uint64_t offset; /* of data[0] */
	bool open;       /* the last line has no newline */
	bool too_long;   /* data is the first line_max bytes of one line, `skipped` bytes of it follow, newline included */
	uint64_t skipped;
	struct weir_span tail; /* the last of those bytes, without the newline; absent where none ends it */
	size_t behind;         /* bytes behind data that can be looked at: of whole lines that are handed out next */
	bool more;      /* these are not all that there is: INPUT_LINES_BEHIND_BYTES at least, unless a line is longer */
	uint64_t zeros; /* bytes of 0 that lay before data[0] and are no line's: offset is behind them */
};

/**
 * @param input       taken
 * @param line_max    longest line, newline not counted; a longer one costs no more memory than this and its tail
 * @param read_bytes  how much to read at a time
 */
struct input_lines *input_lines_new(struct input *input, size_t line_max, size_t read_bytes);
void input_lines_free(struct input_lines *lines);

/*
 * Small buffers that many inputs take turns in: each would leave a hole in the heap behind it. Zero-initialised: none.
 */
struct input_lines_spare {
	char *buffers[8];
	size_t count;
};

/** Takes small buffers from there, and gives them back when it rests or is freed. @param spare  outlives it */
void input_lines_share(struct input_lines *lines, struct input_lines_spare *spare);
void input_lines_spare_deinit(struct input_lines_spare *spare);
struct input *input_lines_input(struct input_lines *lines);

/**
 * Sees to it that lines are ready: reads, unless some are.
 *
 * @param limit  no byte from this offset on is given; a line cut there is ready as an open one
 * @param final  the same at the input's end, or where it is damaged: no more will come. Else a line without newline
 *               waits for it
 * A byte order mark at the beginning and zeros before a line (what a truncation under a writer, or a power loss, leaves)
 * are passed over. Zeros at the end may be room that was made for lines: what is written there is given all the same.
 *
 * @return WEIR_OK: input_lines_take() has something; WEIR_END: not just now; WEIR_AGAIN: much was read of one line, and
 *         its end has not come: ask again when others had their turn; else as input_read()
 */
WEIR_MUST_USE enum weir_status input_lines_fill(struct input_lines *lines, uint64_t limit, bool final,
                                                struct weir_error *error);

/** Hands out what fill() made ready. */
void input_lines_take(struct input_lines *lines, struct input_lines_chunk *chunk);

/** Offset of the first byte not yet handed out. */
uint64_t input_lines_offset(const struct input_lines *lines);

/** Offset after the last byte read: what lies between the two is a line's beginning, or ready. */
uint64_t input_lines_read_offset(const struct input_lines *lines);

/** How many bytes of 0 lie before the next line, if there is one yet: that are passed over, and not handed out with any. */
uint64_t input_lines_zeros(const struct input_lines *lines);

/** Whether all that was read so far is one line with carriage returns in it: they end lines in files of old Macs. */
bool input_lines_returns(const struct input_lines *lines);

/** Drops what is buffered and goes to an offset: statuses as input_seek(). */
WEIR_MUST_USE enum weir_status input_lines_seek(struct input_lines *lines, uint64_t offset, struct weir_error *error);

/** input_park(): what is buffered stays. */
void input_lines_park(struct input_lines *lines);

/** Gives back the memory of an input that has nothing to say: all of the buffer if it is empty. */
void input_lines_rest(struct input_lines *lines);

#endif

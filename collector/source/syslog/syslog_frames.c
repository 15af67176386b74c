/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message begins with "<" and ends at a newline; or a number and a space come before the "<", and it has that many
 * octets. Anything else is taken as a line, and its reader reports what is wrong with it. A number without "<" is not
 * taken as a length: otherwise anyone who gets a number logged at the beginning of a line could hide the messages after
 * it.
 *
 * The buffer begins small and grows with what a connection sends, up to a line and a read. A connection that has sent
 * nothing has no buffer.
 */
#include "collector/source/syslog/syslog_frames.h"

#include "common/base/alloc.h"

#include <stdlib.h>

enum { FIRST_BYTES = 4096, READ_LEAST_BYTES = 2048, COUNT_DIGITS_MAX = 9 };

void syslog_frames_init(struct syslog_frames *frames, size_t line_max)
{
	*frames = (struct syslog_frames){.line_max = line_max};
}

void syslog_frames_deinit(struct syslog_frames *frames)
{
	free(frames->bytes);
	frames->bytes = NULL;
}

bool syslog_frames_empty(const struct syslog_frames *frames)
{
	return frames->begin == frames->end && !frames->skipping;
}

char *syslog_frames_room(struct syslog_frames *frames, size_t *bytes)
{
	if (frames->begin > 0) {
		memmove(frames->bytes, frames->bytes + frames->begin, frames->end - frames->begin);
		frames->end -= frames->begin;
		frames->begin = 0;
	}
	if (frames->capacity - frames->end < READ_LEAST_BYTES) {
		size_t most = frames->line_max + FIRST_BYTES; /* a line's bytes, its count, and a read */
		size_t wanted = frames->capacity == 0 ? FIRST_BYTES : 2 * frames->capacity;
		frames->capacity = wanted < most ? wanted : most;
		frames->bytes = weir_realloc(frames->bytes, frames->capacity, 1);
	}
	*bytes = frames->capacity - frames->end;
	return frames->bytes + frames->end;
}

void syslog_frames_added(struct syslog_frames *frames, size_t bytes)
{
	frames->end += bytes;
}

/*
 * Where a message ends that is not counted; NULL: not here. The byte that ends the connection's first message ends all.
 */
static const char *find_end(struct syslog_frames *frames, const char *at, size_t length)
{
	if (frames->told)
		return memchr(at, frames->delimiter, length);
	const char *newline = memchr(at, '\n', length);
	const char *zero = memchr(at, '\0', newline != NULL ? (size_t)(newline - at) : length);
	const char *end = zero != NULL ? zero : newline;
	if (end != NULL) {
		frames->told = true;
		frames->delimiter = *end;
	}
	return end;
}

/* Skips the rest of a too long message, counting its bytes, until it ends. */

static enum syslog_frame_status skip(struct syslog_frames *frames, bool ended, struct syslog_frame *frame)
{
	size_t there = frames->end - frames->line_max;
	const char *rest = frames->bytes + frames->line_max;
	size_t taken;
	bool whole;
	if (frames->counted) {
		taken = there < frames->left ? there : (size_t)frames->left;
		frames->left -= taken;
		whole = frames->left == 0;
	} else {
		const char *end = find_end(frames, rest, there);
		whole = end != NULL;
		taken = whole ? (size_t)(end - rest) + 1 : there;
	}
	frames->skipped += taken;
	if (!whole && !ended) {
		frames->end = frames->line_max;
		return SYSLOG_FRAME_NONE;
	}
	frames->skipping = false;
	frames->begin = frames->line_max + taken;
	*frame = (struct syslog_frame){.message = {.at = frames->bytes, .length = (uint32_t)frames->line_max},
	                               .skipped = frames->skipped};
	return whole || !frames->counted ? SYSLOG_FRAME_OK : SYSLOG_FRAME_CUT;
}

/* Begins to skip the message at `begin`, which is too long. Moves what is there of it to the front. */
static void begin_skipping(struct syslog_frames *frames, bool counted, uint64_t length)
{
	memmove(frames->bytes, frames->bytes + frames->begin, frames->end - frames->begin);
	frames->end -= frames->begin;
	frames->begin = frames->searched = 0;
	frames->skipping = true;
	frames->counted = counted;
	frames->left = counted ? length - frames->line_max : 0;
	frames->skipped = 0;
}

/* Reads "123 <": the number of octets from the "<" on. @param open  set if more bytes are needed to decide */
static bool read_count(const char *at, const char *end, uint64_t *count, size_t *digits, bool *open)
{
	*count = 0;
	*open = false;
	const char *begin = at;
	if (at == end || *at < '1' || *at > '9')
		return false;
	for (; at < end && *at >= '0' && *at <= '9'; at++) {
		if (at - begin == COUNT_DIGITS_MAX)
			return false;
		*count = *count * 10 + (uint64_t)(*at - '0');
	}
	*digits = (size_t)(at - begin);
	if (at < end && *at != ' ')
		return false;
	*open = end - at < 2;
	return at < end && (*open || at[1] == '<');
}

static enum syslog_frame_status next_line(struct syslog_frames *frames, bool ended, struct syslog_frame *frame)
{
	const char *begin = frames->bytes + frames->begin;
	size_t there = frames->end - frames->begin;
	const char *end = find_end(frames, begin + frames->searched, there - frames->searched);
	size_t length = end != NULL ? (size_t)(end - begin) : there;
	frames->searched = length;
	if (length > frames->line_max) {
		begin_skipping(frames, false, 0);
		return skip(frames, ended, frame);
	}
	if (end == NULL && !ended)
		return SYSLOG_FRAME_NONE;
	*frame = (struct syslog_frame){.message = {.at = begin, .length = (uint32_t)length}};
	frames->begin += length + (end != NULL);
	frames->searched = 0;
	return SYSLOG_FRAME_OK;
}

static enum syslog_frame_status next_counted(struct syslog_frames *frames, bool ended, uint64_t count, size_t digits,
                                             struct syslog_frame *frame)
{
	size_t head = digits + 1, there = frames->end - frames->begin - head;
	if (count <= there && count <= frames->line_max) {
		*frame =
			(struct syslog_frame){.message = {.at = frames->bytes + frames->begin + head, .length = (uint32_t)count}};
		frames->begin += head + count;
		return SYSLOG_FRAME_OK;
	}
	if (count > frames->line_max && there >= frames->line_max) {
		frames->begin += head;
		begin_skipping(frames, true, count);
		return skip(frames, ended, frame);
	}
	if (!ended)
		return SYSLOG_FRAME_NONE;
	*frame = (struct syslog_frame){.message = {.at = frames->bytes + frames->begin + head, .length = (uint32_t)there}};
	frames->begin = frames->end;
	return SYSLOG_FRAME_CUT;
}

enum syslog_frame_status syslog_frames_next(struct syslog_frames *frames, bool ended, struct syslog_frame *frame)
{
	if (frames->skipping)
		return skip(frames, ended, frame);
	/* Some senders add a newline or a zero to messages whose length they give. */
	while (frames->begin < frames->end && frames->searched == 0 &&
	       (frames->bytes[frames->begin] == '\n' || frames->bytes[frames->begin] == '\r' ||
	        frames->bytes[frames->begin] == '\0'))
		frames->begin++;
	if (frames->begin == frames->end)
		return SYSLOG_FRAME_NONE;
	uint64_t count;
	size_t digits = 0;
	bool open;
	bool counted = read_count(frames->bytes + frames->begin, frames->bytes + frames->end, &count, &digits, &open);
	if (open && !ended)
		return SYSLOG_FRAME_NONE;
	return counted ? next_counted(frames, ended, count, digits, frame) : next_line(frames, ended, frame);
}

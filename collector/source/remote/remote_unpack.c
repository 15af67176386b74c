/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packed object: downloaded whole into a temporary file, and unpacked from there range by range.
 *
 * Compressed bytes can be read from the beginning alone, so an object that is still written to waits until it is whole.
 */
#include "collector/source/remote/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PACKED_MOST_BYTES (UINT64_C(8) << 30)

void remote_unpack_close(struct remote_fetch *fetch)
{
	input_free(fetch->unpacking.input);
	weir_text_deinit(&fetch->unpacking.tail);
	fetch->unpacking = (struct remote_unpacking){0};
}

static enum weir_status download(struct remote_fetch *fetch, const struct remote_object *object, int fd,
                                 struct weir_error *error)
{
	uint64_t got = 0;
	for (uint64_t from = 0;; from += got) {
		int64_t began_ms = weir_monotonic_ms();
		uint64_t asked = fetch->range_bytes;
		enum weir_status status = remote_read_bytes(fetch, object, from, from + asked, fd, &got, error);
		remote_range_came(fetch, asked, got, weir_monotonic_ms() - began_ms);
		if (status == WEIR_IO && got > 0 && !remote_stopped(fetch))
			continue;
		if (status == WEIR_INVALID && from > 0) /* the end */
			return WEIR_OK;
		if (status != WEIR_OK)
			return status;
		if (got == 0 || (got < asked && from + got >= object->size))
			return WEIR_OK;
		if (remote_stopped(fetch))
			return weir_fail(error, WEIR_IO, "stopped");
	}
}

/* Opens an object at an offset. */
static enum weir_status open_at(struct remote_fetch *fetch, const struct remote_object *object, uint64_t offset,
                                struct weir_error *error)
{
	struct remote_unpacking *unpacking = &fetch->unpacking;
	if (unpacking->id == object->id && unpacking->offset == offset)
		return WEIR_OK;
	remote_unpack_close(fetch);
	int fd = remote_temporary(fetch, error);
	if (fd < 0)
		return WEIR_IO;
	enum weir_status status = download(fetch, object, fd, error);
	if (status != WEIR_OK || lseek(fd, 0, SEEK_SET) != 0) {
		close(fd);
		return status != WEIR_OK ? status : weir_fail(error, WEIR_IO, "cannot read a temporary file");
	}
	unpacking->input = input_new(fd, false);
	unpacking->id = object->id;
	unpacking->offset = offset;
	return input_seek(unpacking->input, offset, error);
}

/*
 * Unpacks up to `most` bytes into the step's file, behind what is left of the range before.
 *
 * @param got  with what was left
 * @return as input_read()
 */
static enum weir_status unpack(struct remote_fetch *fetch, int fd, uint64_t most, uint64_t *got,
                               struct weir_error *error)
{
	struct remote_unpacking *unpacking = &fetch->unpacking;
	uint64_t at = fetch->step->bytes;
	*got = unpacking->tail.length;
	if (*got > 0 && pwrite(fd, unpacking->tail.at, (size_t)*got, (off_t)at) != (ssize_t)*got)
		return weir_fail(error, WEIR_IO, "cannot write a temporary file");
	while (*got < most) {
		size_t count, room = most - *got < REMOTE_BUFFER_BYTES ? (size_t)(most - *got) : REMOTE_BUFFER_BYTES;
		enum weir_status status = input_read(unpacking->input, fetch->buffer, room, &count, error);
		if (status != WEIR_OK)
			return status;
		if (pwrite(fd, fetch->buffer, count, (off_t)(at + *got)) != (ssize_t)count)
			return weir_fail(error, WEIR_IO, "cannot write a temporary file");
		*got += count;
	}
	return WEIR_OK;
}

static bool keep_tail(struct remote_fetch *fetch, int fd, uint64_t at, uint64_t length)
{
	struct weir_text *tail = &fetch->unpacking.tail;
	weir_text_clear(tail);
	char *to = weir_text_reserve(tail, (size_t)length + 1);
	tail->length = (size_t)length;
	return pread(fd, to, (size_t)length, (off_t)at) == (ssize_t)length;
}

static enum remote_turn end(struct remote_fetch *fetch, struct remote_known *known, enum weir_status status,
                            const struct weir_error *error)
{
	if (status == WEIR_INVALID)
		remote_lost(fetch, known->name, UINT64_MAX, "%s", error->text);
	remote_unpack_close(fetch);
	remote_set_done(fetch, known);
	return REMOTE_TURN_NOTHING;
}

/* Makes a piece of the range's first bytes. */
static enum weir_status add(struct remote_fetch *fetch, struct remote_known *known, const struct remote_range *range,
                            uint64_t kept, bool closed, struct weir_error *error)
{
	struct remote_piece piece = {.id = known->id,
	                             .from = known->offset,
	                             .to = known->offset + kept,
	                             .size = known->size,
	                             .packed = true,
	                             .closed = closed,
	                             .at = range->at};
	if (kept == 0) {
		remote_step_drop(fetch);
		return WEIR_OK;
	}
	struct remote_object object = remote_object_of(known);
	if (piece.from > 0 && remote_head(fetch, &object, true, &known->head, &piece.before, error) != WEIR_OK) {
		remote_step_drop(fetch);
		return WEIR_IO;
	}
	piece.name = weir_copy(known->name, strlen(known->name));
	memcpy(piece.tag, known->tag, sizeof piece.tag);
	enum weir_status status = remote_step_add(fetch, &piece, error);
	if (status != WEIR_OK) {
		free(piece.name);
		free(piece.before);
	}
	return status;
}

static enum remote_turn give(struct remote_fetch *fetch, struct remote_known *known, int fd, enum weir_status status,
                             uint64_t got, const struct weir_error *reading)
{
	struct weir_error error;
	struct remote_range range = {.fd = fd, .at = fetch->step->bytes, .length = got};
	if (known->skips)
		(void)remote_range_skip(fetch, known, &range);
	uint64_t lines = remote_range_last(fetch, &range), tail = range.length - lines;
	bool over = status != WEIR_OK, closed = tail > 0 && lines == 0 && (over || tail > fetch->options.line_max);
	uint64_t kept = closed ? range.length : lines;
	bool good = keep_tail(fetch, fd, range.at + kept, range.length - kept) ||
	            weir_fail(&error, WEIR_IO, "cannot read a temporary file") == WEIR_OK;
	if (!good || add(fetch, known, &range, kept, closed, &error) != WEIR_OK) {
		remote_unpack_close(fetch);
		return remote_failed(fetch, known, &error);
	}
	known->skips = known->skips || (closed && !over);
	known->offset += kept;
	remote_set_well(known);
	fetch->unpacking.offset = known->offset;
	return over && kept == range.length ? end(fetch, known, status, reading) : REMOTE_TURN_MORE;
}

enum remote_turn remote_unpack_turn(struct remote_fetch *fetch, struct remote_known *known)
{
	struct weir_error error;
	uint64_t got;
	if (known->open && !fetch->options.once)
		return REMOTE_TURN_NOTHING;
	if (known->size > PACKED_MOST_BYTES) {
		remote_lost(fetch, known->name, known->size - known->offset,
		            "is packed, and has more than 8 GiB: it is not read");
		remote_set_done(fetch, known);
		return REMOTE_TURN_NOTHING;
	}
	struct remote_object object = remote_object_of(known);
	enum weir_status status = open_at(fetch, &object, known->offset, &error);
	if (status == WEIR_IO) {
		remote_unpack_close(fetch);
		return remote_failed(fetch, known, &error);
	}
	if (status == WEIR_END || status == WEIR_ANEW) {
		remote_lost(fetch, known->name, known->size, "is gone, or ends before byte %" PRIu64, known->offset);
		return end(fetch, known, WEIR_END, &error);
	}
	int fd = remote_step_fd(fetch, &error);
	if (fd < 0)
		return remote_failed(fetch, known, &error);
	if (status == WEIR_OK)
		status = unpack(fetch, fd, REMOTE_RANGE_BYTES, &got, &error);
	else
		got = 0;
	if (status == WEIR_IO) {
		remote_unpack_close(fetch);
		remote_step_drop(fetch);
		return remote_failed(fetch, known, &error);
	}
	return give(fetch, known, fd, status, got, &error);
}

enum weir_status remote_unpack_again(struct remote_fetch *fetch, struct remote_piece *piece, struct weir_error *error)
{
	struct remote_object object = {.name = piece->name, .id = piece->id, .size = piece->size};
	uint64_t got = 0, most = piece->to - piece->from;
	memcpy(object.tag, piece->tag, sizeof object.tag);
	weir_text_clear(&fetch->unpacking.tail);
	enum weir_status status = open_at(fetch, &object, piece->from, error);
	int fd = status == WEIR_OK ? remote_step_fd(fetch, error) : -1;
	if (status == WEIR_OK && fd < 0)
		status = WEIR_IO;
	if (status == WEIR_OK)
		status = unpack(fetch, fd, most, &got, error);
	if (status == WEIR_IO) {
		remote_unpack_close(fetch);
		return WEIR_IO;
	}
	if (got == most && piece->from > 0) {
		char *kept = NULL;
		status = remote_head(fetch, &object, true, &kept, &piece->before, error);
		free(kept);
		if (status != WEIR_OK) {
			remote_unpack_close(fetch);
			remote_step_drop(fetch);
			return WEIR_IO;
		}
	}
	if (got == most) {
		piece->at = fetch->step->bytes;
		fetch->unpacking.offset = piece->to;
		return remote_step_add(fetch, piece, error);
	}
	remote_lost(fetch, piece->name, most, "cannot be read again from byte %" PRIu64 " to %" PRIu64, piece->from,
	            piece->to);
	remote_unpack_close(fetch);
	piece->gone = true;
	return WEIR_OK;
}

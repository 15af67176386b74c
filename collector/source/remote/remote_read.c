/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A range of an object, cut behind its last line, as a piece of the step that is being made.
 *
 * How long an open object is, nobody knows before it is read: so a piece is made of what has come. Its bytes do not
 * change any more, and read again they are the same.
 */
#include "collector/source/remote/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAGIC_BYTES = 512, COMPLETE_MS = 60000, SHORT_TRIES = 5 };

struct remote_object remote_object_of(const struct remote_known *known)
{
	struct remote_object object = {.name = known->name,
	                               .id = known->id,
	                               .size = known->size,
	                               .modified_ms = known->modified_ms,
	                               .open = known->open};
	memcpy(object.tag, known->tag, sizeof object.tag);
	return object;
}

void remote_set_check(struct remote_known *known, const char *bytes, size_t length)
{
	size_t kept = length < REMOTE_CHECK_BYTES ? length : REMOTE_CHECK_BYTES;
	known->check = weir_hash64(bytes + length - kept, kept);
	known->check_bytes = (uint8_t)kept;
}

/* ---- looking through what came ---- */

/* Whether the object's first bytes are those of a packed one, or of one that holds no lines. */
static bool is_packed(struct remote_fetch *fetch, const struct remote_range *range, bool *perhaps)
{
	ssize_t got =
		pread(range->fd, fetch->buffer, range->length < MAGIC_BYTES ? range->length : MAGIC_BYTES, (off_t)range->at);
	*perhaps = false;
	return got > 0 && input_tell(fetch->buffer, (size_t)got, perhaps) != INPUT_PLAIN;
}

/* ---- what is not as it was ---- */

static enum remote_turn gone(struct remote_fetch *fetch, struct remote_known *known)
{
	bool knows = !known->open;
	remote_lost(fetch, known->name,
	            knows && known->size > known->offset ? known->size - known->offset
	            : knows                              ? 0
	                                                 : UINT64_MAX,
	            "is gone at byte %" PRIu64, known->offset);
	remote_set_done(fetch, known);
	known->open = false;
	return REMOTE_TURN_NOTHING;
}

/* Other bytes lie before the offset than were read there: another object has its id. */
static enum remote_turn replaced(struct remote_fetch *fetch, struct remote_known *known)
{
	remote_lost(fetch, known->name, UINT64_MAX,
	            "holds other bytes before byte %" PRIu64 " than were read there: it was replaced, and is read from its "
	            "beginning",
	            known->offset);
	known->offset = 0;
	known->check_bytes = 0;
	known->skips = known->packed = false;
	known->checked = true;
	return REMOTE_TURN_MORE;
}

/* It ends before what was read of it, or before what was listed. The next listing tells why. */
static enum remote_turn is_short(struct remote_fetch *fetch, struct remote_known *known)
{
	struct weir_error error;
	if (!known->open && known->failures >= SHORT_TRIES && known->size > known->offset) {
		remote_lost(fetch, known->name, known->size - known->offset, "ends at byte %" PRIu64 ", before its length",
		            known->offset);
		remote_set_done(fetch, known);
		return REMOTE_TURN_NOTHING;
	}
	weir_fail(&error, WEIR_IO, "ends before byte %" PRIu64, known->offset + 1);
	fetch->whole_ms = fetch->list_ms < fetch->whole_ms ? fetch->list_ms : fetch->whole_ms;
	return remote_failed(fetch, known, &error);
}

static enum remote_turn on_failure(struct remote_fetch *fetch, struct remote_known *known, enum weir_status status,
                                   const struct weir_error *error)
{
	switch (status) {
	case WEIR_END:
	case WEIR_ANEW: return gone(fetch, known);
	case WEIR_INVALID: return is_short(fetch, known);
	default: return remote_failed(fetch, known, error);
	}
}

/* ---- one range ---- */

/* Whether what has no newline yet is the object's last line all the same. */
static bool is_final(const struct remote_fetch *fetch, const struct remote_known *known,
                     const struct remote_range *range)
{
	if (range->full)
		return false;
	if (fetch->options.once)
		return true;
	if (known->open || known->offset + range->length < known->size)
		return false;
	return fetch->options.ops->fixed || weir_wall_ms() - known->modified_ms > COMPLETE_MS;
}

static enum remote_turn take(struct remote_fetch *fetch, struct remote_known *known, const struct remote_range *range)
{
	uint64_t lines = remote_range_last(fetch, range);
	bool closed = lines == 0 && (range->length > fetch->options.line_max || is_final(fetch, known, range));
	struct remote_piece piece = {.id = known->id, .from = known->offset, .at = range->at, .closed = closed};
	struct remote_object object = remote_object_of(known);
	struct weir_error error;
	if (lines == 0 && !closed) {
		remote_step_drop(fetch);
		return REMOTE_TURN_NOTHING; /* its end has not come */
	}
	piece.to = piece.from + (closed ? range->length : lines);
	piece.size = known->size;
	if (piece.from > 0 && remote_head(fetch, &object, false, &known->head, &piece.before, &error) != WEIR_OK) {
		remote_step_drop(fetch);
		return remote_failed(fetch, known, &error);
	}
	piece.name = weir_copy(known->name, strlen(known->name));
	memcpy(piece.tag, known->tag, sizeof piece.tag);
	if (remote_step_add(fetch, &piece, &error) != WEIR_OK) {
		free(piece.name);
		free(piece.before);
		return remote_failed(fetch, known, &error);
	}
	uint64_t kept = piece.to - piece.from;
	size_t last = kept < REMOTE_CHECK_BYTES ? (size_t)kept : REMOTE_CHECK_BYTES;
	if (pread(range->fd, fetch->buffer, last, (off_t)(range->at + kept - last)) == (ssize_t)last)
		remote_set_check(known, fetch->buffer, last);
	known->skips = closed && !is_final(fetch, known, range);
	known->offset = piece.to;
	remote_set_well(known);
	if (known->size < known->offset)
		known->size = known->offset;
	return REMOTE_TURN_MORE;
}

/* The object has no more bytes now. */
static enum remote_turn at_end(struct remote_fetch *fetch, struct remote_known *known)
{
	bool listed = known->listing == fetch->listing;
	if (!known->open && known->offset < known->size)
		return is_short(fetch, known);
	if (!known->open || !listed || fetch->options.once)
		remote_set_done(fetch, known);
	else
		remote_set_well(known);
	return REMOTE_TURN_NOTHING;
}

uint64_t remote_check_bytes(const struct remote_fetch *fetch, const struct remote_known *known)
{
	return known->checked || fetch->options.ops->fixed ? 0 : known->check_bytes;
}

/* Into the step's file: from the server, or what came from there already. */
static enum weir_status read_into(struct remote_fetch *fetch, const struct remote_known *known, uint64_t from, int fd,
                                  uint64_t *got, uint64_t *asked, struct weir_error *error)
{
	struct remote_object object = remote_object_of(known);
	struct remote_ahead *ahead = remote_ahead_of(fetch, known);
	bool growing = known->open && !fetch->options.once;
	*asked = known->offset + (growing ? REMOTE_RANGE_BYTES : remote_range_next(fetch)) - from;
	if (ahead == NULL) {
		int64_t began_ms = weir_monotonic_ms();
		enum weir_status status = remote_read_bytes(fetch, &object, from, from + *asked, fd, got, error);
		if (!growing)
			remote_range_came(fetch, *asked, *got, weir_monotonic_ms() - began_ms);
		return status;
	}
	*asked = REMOTE_AHEAD_BYTES;
	*error = ahead->error;
	for (*got = 0; *got < ahead->got;) {
		ssize_t count = pread(ahead->fd, fetch->buffer, REMOTE_BUFFER_BYTES, (off_t)*got);
		if (count <= 0 || write(fd, fetch->buffer, (size_t)count) != count)
			return weir_fail(error, WEIR_IO, "cannot keep what was read");
		*got += (uint64_t)count;
	}
	return ahead->status;
}

/* Reads from the offset on. What is kept of the bytes before it is compared when the object is first read in a run. */
static enum weir_status read_range(struct remote_fetch *fetch, struct remote_known *known, struct remote_range *range,
                                   bool *replaced, struct weir_error *error)
{
	uint64_t check = remote_check_bytes(fetch, known), got = 0, asked = 0;
	range->fd = remote_step_fd(fetch, error);
	if (range->fd < 0)
		return WEIR_IO;
	range->at = fetch->step->bytes;
	enum weir_status status = read_into(fetch, known, known->offset - check, range->fd, &got, &asked, error);
	*replaced = false;
	if (status == WEIR_IO && got > check) /* as far as it came, it is good */
		status = WEIR_OK;
	if (status == WEIR_OK && got < check)
		return WEIR_INVALID;
	if (status != WEIR_OK)
		return status;
	if (check > 0)
		*replaced = pread(range->fd, fetch->buffer, check, (off_t)range->at) != (ssize_t)check ||
		            weir_hash64(fetch->buffer, check) != known->check;
	known->checked = true;
	range->at += check;
	range->length = got - check;
	range->full = got == asked;
	return WEIR_OK;
}

enum remote_turn remote_turn_of(struct remote_fetch *fetch, struct remote_known *known)
{
	struct remote_range range;
	struct weir_error error;
	bool other, perhaps = false;
	if (known->packed)
		return remote_unpack_turn(fetch, known);
	enum weir_status status = read_range(fetch, known, &range, &other, &error);
	if (status != WEIR_OK || other) {
		remote_step_drop(fetch);
		return status != WEIR_OK ? on_failure(fetch, known, status, &error) : replaced(fetch, known);
	}
	if (range.length == 0)
		return at_end(fetch, known);
	if (known->open || known->failures < SHORT_TRIES)
		remote_set_well(known);
	bool packed = known->offset == 0 && is_packed(fetch, &range, &perhaps);
	if (known->offset == 0 && perhaps && known->open && !fetch->options.once) {
		remote_step_drop(fetch); /* its next bytes tell what it is packed in */
		return REMOTE_TURN_NOTHING;
	}
	if (packed) {
		known->packed = true;
		remote_step_drop(fetch);
		return remote_unpack_turn(fetch, known);
	}
	if (known->skips && (!remote_range_skip(fetch, known, &range) || range.length == 0)) {
		remote_step_drop(fetch);
		return REMOTE_TURN_MORE;
	}
	enum remote_turn turn = take(fetch, known, &range);
	if (turn == REMOTE_TURN_MORE && !known->open && !known->skips && known->offset == known->size) {
		remote_set_done(fetch, known); /* without asking what is behind the end */
		return REMOTE_TURN_NOTHING;
	}
	return turn == REMOTE_TURN_MORE && !range.full && known->open && !fetch->options.once ? REMOTE_TURN_NOTHING : turn;
}

/* ---- reading again ---- */

/* Behind what came, where an answer breaks off: else a server that breaks off each long one would never give the piece. */
static enum weir_status read_on(struct remote_fetch *fetch, const struct remote_object *object,
                                const struct remote_piece *piece, int fd, uint64_t *got, struct weir_error *error)
{
	enum weir_status status;
	uint64_t came;
	do {
		came = 0;
		status = remote_read_bytes(fetch, object, piece->from + *got, piece->to, fd, &came, error);
		*got += came;
	} while (status == WEIR_IO && came > 0 && piece->from + *got < piece->to && !remote_stopped(fetch));
	return status;
}

enum weir_status remote_read_again(struct remote_fetch *fetch, struct remote_piece *piece, struct weir_error *error)
{
	if (piece->packed)
		return remote_unpack_again(fetch, piece, error);
	struct remote_object object = {.name = piece->name, .id = piece->id, .size = piece->size, .open = true};
	uint64_t got = 0;
	memcpy(object.tag, piece->tag, sizeof object.tag);
	int fd = remote_step_fd(fetch, error);
	if (fd < 0)
		return WEIR_IO;
	piece->at = fetch->step->bytes;
	enum weir_status status = read_on(fetch, &object, piece, fd, &got, error);
	bool whole = got == piece->to - piece->from;
	if (!whole && status == WEIR_IO)
		return WEIR_IO;
	if (whole && piece->from > 0) {
		char *kept = NULL;
		status = remote_head(fetch, &object, false, &kept, &piece->before, error);
		free(kept);
		if (status != WEIR_OK) {
			remote_step_drop(fetch);
			return WEIR_IO;
		}
	}
	if (whole)
		return remote_step_add(fetch, piece, error);
	remote_lost(fetch, piece->name, piece->to - piece->from - got,
	            "cannot be read again from byte %" PRIu64 " to %" PRIu64 ": %s", piece->from + got, piece->to,
	            status == WEIR_END || status == WEIR_ANEW ? "it is gone" : "it ends before");
	remote_step_drop(fetch);
	piece->gone = true;
	return WEIR_OK;
}

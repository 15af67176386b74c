/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MessagePack: where a value ends, what it is, and what it is as JSON.
 *
 * Nothing here allocates by what the bytes announce: a length or a count is only believed as far as bytes are there.
 * Memory is a stack of MSGPACK_DEPTH_MAX levels, and the text that the caller limits. Time is linear in the bytes.
 *
 * @thread any; no state but the caller's
 */
#ifndef COLLECTOR_MSGPACK_JSON_H
#define COLLECTOR_MSGPACK_JSON_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/base/text.h"

#include <string.h>

/* Below JSON_SCAN_DEPTH_MAX (collector/record/json_scan.h), so that what is written can be read. */
enum { MSGPACK_DEPTH_MAX = 60 };

enum msgpack_kind {
	MSGPACK_NIL,
	MSGPACK_BOOL,     /* number: 0 or 1 */
	MSGPACK_UNSIGNED, /* number */
	MSGPACK_NEGATIVE, /* number, as two's complement */
	MSGPACK_FLOAT,    /* real */
	MSGPACK_STRING,   /* bytes, as are the next two */
	MSGPACK_BINARY,
	MSGPACK_EXTENSION, /* extension: its type */
	MSGPACK_ARRAY,     /* count elements follow */
	MSGPACK_MAP,       /* count pairs follow */
};

/* One item: a whole value, or the head of an array or a map. */
struct msgpack_item {
	enum msgpack_kind kind;
	bool single; /* real was written with 32 bits */
	int8_t extension;
	uint32_t count;
	uint64_t number;
	double real;
	struct weir_span bytes; /* borrowed from what is read */
};

/* What is still to be read. */
struct msgpack {
	const unsigned char *at, *end;
};

static inline struct msgpack msgpack_of(const void *bytes, size_t length)
{
	return (struct msgpack){.at = bytes, .end = (const unsigned char *)bytes + length};
}

/** Reads one item. @return WEIR_OK; WEIR_AGAIN: it is cut off, nothing was read; WEIR_INVALID: no such type */
WEIR_MUST_USE enum weir_status msgpack_next(struct msgpack *from, struct msgpack_item *item);

/**
 * Passes over one value, with all that is in it.
 *
 * @return WEIR_OK; WEIR_AGAIN: it is cut off; WEIR_INVALID: it is deeper than MSGPACK_DEPTH_MAX or has no such type
 */
WEIR_MUST_USE enum weir_status msgpack_skip(struct msgpack *from);

/* How far the end of a value has been looked for. Zero-initialised: not at all. */
struct msgpack_extent {
	size_t seen;        /* bytes of it that are known to belong to it; some of them may be still to come */
	uint64_t announced; /* values that are still to come, all levels together */
	uint32_t depth;     /* of what is open */
	uint64_t left[MSGPACK_DEPTH_MAX]; /* values that each of them still needs */
	bool begun;
};

/**
 * Looks for the end of the value that begins at `bytes`, going on where the last call with these bytes stopped.
 *
 * @param length  of what is there by now
 * @param most    bytes that a value may have
 * @return WEIR_OK: extent->seen is its length; WEIR_AGAIN: more bytes are needed; WEIR_FULL: it has more than `most`, or
 *         announces what cannot fit; WEIR_INVALID: it is too deep or no MessagePack. The error has words for both
 */
WEIR_MUST_USE enum weir_status msgpack_measure(struct msgpack_extent *extent, const void *bytes, size_t length,
                                               size_t most, struct weir_error *error);

/**
 * Appends one value as JSON.
 *
 * A string's bytes stand as they are, valid UTF-8 or not, as those of a log file do; what JSON cannot have in a string
 * is escaped, so the text is one line. Binaries are strings, extensions strings of hexadecimal digits, an EventTime
 * (type 0) and a timestamp (type -1) seconds with nine decimals. NaN and infinite numbers are null. A map's key that is
 * no string is its JSON text; one that is an array or a map is "[]" or "{}". Equal keys all stand there: of such members
 * readers take the last.
 *
 * @param most  the text is cut off behind so many bytes of it, and the value read to its end nevertheless
 * @return WEIR_OK; WEIR_AGAIN, WEIR_INVALID: as msgpack_skip(); the text has what came before
 */
WEIR_MUST_USE enum weir_status msgpack_json(struct msgpack *from, size_t most, struct weir_text *text);

/** The same for an item that is no array and no map. */
void msgpack_json_item(const struct msgpack_item *item, size_t most, struct weir_text *text);

/**
 * The key of a map's pair and a colon, for who writes the members of a map one by one. Passes over what is in the key.
 *
 * @param item  that was read last
 * @return as msgpack_skip()
 */
WEIR_MUST_USE enum weir_status msgpack_json_key(struct msgpack *from, const struct msgpack_item *item, size_t most,
                                                struct weir_text *text);

/** Appends bytes, as far as the text has less than `most`. */
static inline void msgpack_json_put(struct weir_text *text, size_t most, const void *bytes, size_t length)
{
	size_t room = text->length < most ? most - text->length : 0;
	length = length < room ? length : room;
	if (length == 0 || text->capacity - text->length < length) {
		weir_text_append(text, bytes, length);
		return;
	}
	memcpy(text->at + text->length, bytes, length);
	text->length += length;
}

/** Seconds with nine decimals. */
void msgpack_json_time(int64_t seconds, uint32_t nanoseconds, size_t most, struct weir_text *text);

/** The inside of a JSON string: bytes as they are, escaped where they must be. */
void msgpack_json_bytes(struct weir_span bytes, size_t most, struct weir_text *text);

/**
 * The seconds and nanoseconds of an item that says a time: a number, an EventTime or a timestamp.
 *
 * @return false: it says none
 */
bool msgpack_time(const struct msgpack_item *item, int64_t *seconds, uint32_t *nanoseconds);

#endif

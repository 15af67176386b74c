/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MessagePack as JSON.
 *
 * All readers stand on one function, read_head(), which tells what a byte announces and how many bytes that takes. None
 * of them calls itself: what is open is a small stack. Only one of them writes.
 */
#include "collector/source/push/forward/msgpack_json.h"

#include "common/bytes/hex.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What the first bytes of an item announce. */
struct head {
	enum msgpack_kind kind;
	uint32_t bytes; /* of the head itself, with a number's value */
	uint32_t body;  /* of a string and the like, behind it */
	uint32_t count;
	uint64_t number;
	bool single;
	int8_t extension;
};

/* Where lengths and numbers are: the format bytes from 0xc0 to 0xdf. */
static const struct {
	uint8_t kind;
	uint8_t size;  /* bytes of the number, length or count behind the format byte */
	uint8_t fixed; /* an extension of so many bytes */
} forms[32] = {
	[0x00] = {MSGPACK_NIL, 0, 0},       [0x02] = {MSGPACK_BOOL, 0, 0},      [0x03] = {MSGPACK_BOOL, 0, 0},
	[0x04] = {MSGPACK_BINARY, 1, 0},    [0x05] = {MSGPACK_BINARY, 2, 0},    [0x06] = {MSGPACK_BINARY, 4, 0},
	[0x07] = {MSGPACK_EXTENSION, 1, 0}, [0x08] = {MSGPACK_EXTENSION, 2, 0}, [0x09] = {MSGPACK_EXTENSION, 4, 0},
	[0x0a] = {MSGPACK_FLOAT, 4, 0},     [0x0b] = {MSGPACK_FLOAT, 8, 0},     [0x0c] = {MSGPACK_UNSIGNED, 1, 0},
	[0x0d] = {MSGPACK_UNSIGNED, 2, 0},  [0x0e] = {MSGPACK_UNSIGNED, 4, 0},  [0x0f] = {MSGPACK_UNSIGNED, 8, 0},
	[0x10] = {MSGPACK_NEGATIVE, 1, 0},  [0x11] = {MSGPACK_NEGATIVE, 2, 0},  [0x12] = {MSGPACK_NEGATIVE, 4, 0},
	[0x13] = {MSGPACK_NEGATIVE, 8, 0},  [0x14] = {MSGPACK_EXTENSION, 0, 1}, [0x15] = {MSGPACK_EXTENSION, 0, 2},
	[0x16] = {MSGPACK_EXTENSION, 0, 4}, [0x17] = {MSGPACK_EXTENSION, 0, 8}, [0x18] = {MSGPACK_EXTENSION, 0, 16},
	[0x19] = {MSGPACK_STRING, 1, 0},    [0x1a] = {MSGPACK_STRING, 2, 0},    [0x1b] = {MSGPACK_STRING, 4, 0},
	[0x1c] = {MSGPACK_ARRAY, 2, 0},     [0x1d] = {MSGPACK_ARRAY, 4, 0},     [0x1e] = {MSGPACK_MAP, 2, 0},
	[0x1f] = {MSGPACK_MAP, 4, 0},
};

enum { FORMS_FROM = 0xc0, NEVER_USED = 0xc1, NEGATIVE_FROM = 0xe0, TRUE_BYTE = 0xc3 };

static uint32_t read_four(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint64_t read_number(const unsigned char *at, unsigned size)
{
	switch (size) {
	case 1: return at[0];
	case 2: return (uint64_t)at[0] << 8 | at[1];
	case 4: return read_four(at);
	default: return (uint64_t)read_four(at) << 32 | read_four(at + 4);
	}
}

/* Fills a number of 1 to 8 bytes with its sign. */
static uint64_t extend(uint64_t number, unsigned size)
{
	assert(size >= 1 && size <= 8);
	uint64_t sign = UINT64_C(1) << (8 * size - 1);
	return (number ^ sign) - sign;
}

/* The formats that say all in one byte. */
static void read_short_head(unsigned char byte, struct head *head)
{
	head->bytes = 1;
	if (byte < 0x80 || byte >= NEGATIVE_FROM) {
		head->kind = byte < 0x80 ? MSGPACK_UNSIGNED : MSGPACK_NEGATIVE;
		head->number = byte < 0x80 ? byte : extend(byte, 1);
	} else if (byte < 0xa0) {
		head->kind = byte < 0x90 ? MSGPACK_MAP : MSGPACK_ARRAY;
		head->count = byte & 0x0f;
	} else {
		head->kind = MSGPACK_STRING;
		head->body = byte & 0x1f;
	}
}

static enum weir_status read_head(const unsigned char *at, size_t there, struct head *head)
{
	*head = (struct head){.kind = MSGPACK_NIL};
	if (there == 0)
		return WEIR_AGAIN;
	if (*at < FORMS_FROM || *at >= NEGATIVE_FROM) {
		read_short_head(*at, head);
		return WEIR_OK;
	}
	if (*at == NEVER_USED)
		return WEIR_INVALID;
	unsigned form = *at - FORMS_FROM, size = forms[form].size;
	head->kind = forms[form].kind;
	bool extension = head->kind == MSGPACK_EXTENSION;
	head->bytes = 1 + size + extension;
	if (there < head->bytes)
		return WEIR_AGAIN;
	uint64_t number = size > 0 ? read_number(at + 1, size) : *at == TRUE_BYTE;
	switch (head->kind) {
	case MSGPACK_ARRAY:
	case MSGPACK_MAP: head->count = (uint32_t)number; break;
	case MSGPACK_EXTENSION: head->extension = (int8_t)at[head->bytes - 1]; /* fall through */
	case MSGPACK_STRING:
	case MSGPACK_BINARY: head->body = forms[form].fixed > 0 ? forms[form].fixed : (uint32_t)number; break;
	case MSGPACK_NEGATIVE:
		head->number = extend(number, size);
		if (head->number >> 63 == 0)
			head->kind = MSGPACK_UNSIGNED;
		break;
	default: head->number = number; break;
	}
	head->single = size == 4;
	return WEIR_OK;
}

static double real_of(const struct head *head)
{
	union {
		uint64_t wide;
		double real;
	} eight = {.wide = head->number};
	union {
		uint32_t narrow;
		float real;
	} four = {.narrow = (uint32_t)head->number};
	return head->single ? (double)four.real : eight.real;
}

enum weir_status msgpack_next(struct msgpack *from, struct msgpack_item *item)
{
	struct head head;
	size_t there = (size_t)(from->end - from->at);
	enum weir_status status = read_head(from->at, there, &head);
	if (status == WEIR_OK && there - head.bytes < head.body)
		status = WEIR_AGAIN;
	if (status != WEIR_OK)
		return status;
	*item = (struct msgpack_item){.kind = head.kind,
	                              .single = head.single,
	                              .extension = head.extension,
	                              .count = head.count,
	                              .number = head.number,
	                              .bytes = {.at = (const char *)from->at + head.bytes, .length = head.body}};
	if (head.kind == MSGPACK_FLOAT)
		item->real = real_of(&head);
	from->at += (size_t)head.bytes + head.body;
	return WEIR_OK;
}

/* ---- where a value ends ---- */

/* Takes note of an item that has been passed. @return WEIR_END: it was the value's last */
static enum weir_status step(struct msgpack_extent *extent, const struct head *head)
{
	uint64_t inside = head->kind == MSGPACK_ARRAY ? head->count
	                  : head->kind == MSGPACK_MAP ? 2 * (uint64_t)head->count
	                                              : 0;
	extent->announced += inside;
	extent->announced -= extent->depth > 0; /* this one has come */
	if (inside > 0) {
		if (extent->depth == MSGPACK_DEPTH_MAX)
			return WEIR_INVALID;
		extent->left[extent->depth++] = inside;
		return WEIR_OK;
	}
	while (extent->depth > 0 && --extent->left[extent->depth - 1] == 0)
		extent->depth--;
	return extent->depth == 0 ? WEIR_END : WEIR_OK;
}

enum weir_status msgpack_measure(struct msgpack_extent *extent, const void *bytes, size_t length, size_t most,
                                 struct weir_error *error)
{
	const unsigned char *at = bytes;
	while (!extent->begun || extent->depth > 0) {
		struct head head;
		enum weir_status status =
			extent->seen > length ? WEIR_AGAIN : read_head(at + extent->seen, length - extent->seen, &head);
		if (status == WEIR_INVALID)
			return weir_fail(error, status, "byte 0x%02x begins nothing in MessagePack", at[extent->seen]);
		if (status != WEIR_OK)
			return status;
		extent->begun = true;
		extent->seen += (size_t)head.bytes + head.body;
		status = step(extent, &head);
		if (status == WEIR_INVALID)
			return weir_fail(error, status, "it is more than %d levels deep", MSGPACK_DEPTH_MAX);
		if (extent->seen > most || extent->announced > most - extent->seen) /* a byte each, at least */
			return weir_fail(error, WEIR_FULL, "it announces more than %zu bytes", most);
	}
	return extent->seen <= length ? WEIR_OK : WEIR_AGAIN;
}

enum weir_status msgpack_skip(struct msgpack *from)
{
	struct msgpack_extent extent; /* not its stack: nothing is read of it that was not written */
	extent.seen = 0;
	extent.announced = 0;
	extent.depth = 0;
	extent.begun = false;
	size_t there = (size_t)(from->end - from->at);
	enum weir_status status = msgpack_measure(&extent, from->at, there, there, NULL);
	if (status == WEIR_OK)
		from->at += extent.seen;
	return status == WEIR_FULL ? WEIR_AGAIN : status;
}

/* ---- JSON ---- */

static size_t room_of(const struct weir_text *text, size_t most)
{
	return text->length < most ? most - text->length : 0;
}

static void put_byte(struct weir_text *text, size_t most, char byte)
{
	if (room_of(text, most) == 0)
		return;
	*weir_text_reserve(text, 1) = byte;
	text->length++;
}

/* Whether JSON cannot have one of eight bytes in a string as it is. */
static bool any_escaped(const char *at)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
	uint64_t eight;
	memcpy(&eight, at, sizeof eight);
	uint64_t quotes = eight ^ ones * '"', backslashes = eight ^ ones * '\\';
	/* A byte less than n, of those below 0x80, has its highest bit in x - n. */
	uint64_t below = (eight - ones * 0x20) | (quotes - ones) | (backslashes - ones);
	return (below & ~eight & highs) != 0;
}

/* The first byte that JSON cannot have in a string as it is, or the end. */
static const char *plain_end(const char *at, const char *end)
{
	while (end - at >= 8 && !any_escaped(at))
		at += 8;
	for (; at < end; at++) {
		unsigned char byte = (unsigned char)*at;
		if (byte < 0x20 || byte == '"' || byte == '\\')
			break;
	}
	return at;
}

static void put_escaped(struct weir_text *text, size_t most, unsigned char byte)
{
	static const char digits[] = "0123456789abcdef";
	const char escape[] = {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
	const char plain[] = {'\\', byte == '\n' ? 'n' : byte == '\t' ? 't' : (char)byte};
	bool is_short = byte >= 0x20 || byte == '\n' || byte == '\t';
	msgpack_json_put(text, most, is_short ? plain : escape, is_short ? sizeof plain : sizeof escape);
}

void msgpack_json_bytes(struct weir_span bytes, size_t most, struct weir_text *text)
{
	const char *at = bytes.at, *end = bytes.at + bytes.length;
	while (at < end && room_of(text, most) > 0) {
		const char *run = at;
		at = plain_end(at, end);
		msgpack_json_put(text, most, run, (size_t)(at - run));
		if (at < end)
			put_escaped(text, most, (unsigned char)*at++);
	}
}

/* A string with its quotes. */
static void put_string(struct weir_text *text, size_t most, struct weir_span bytes)
{
	size_t length = bytes.length;
	if (room_of(text, most) < length + 2 || plain_end(bytes.at, bytes.at + length) != bytes.at + length) {
		put_byte(text, most, '"');
		msgpack_json_bytes(bytes, most, text);
		put_byte(text, most, '"');
		return;
	}
	char *out = weir_text_reserve(text, length + 2);
	out[0] = '"';
	memcpy(out + 1, bytes.at, length);
	out[length + 1] = '"';
	text->length += length + 2;
}

/* Digits in front of `end`. @return where they begin */
static char *write_digits(char *end, uint64_t number)
{
	do {
		*--end = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	return end;
}

static void put_number(struct weir_text *text, size_t most, bool negative, uint64_t number)
{
	char digits[21], *end = digits + sizeof digits, *at = write_digits(end, negative ? 0 - number : number);
	if (negative)
		*--at = '-';
	msgpack_json_put(text, most, at, (size_t)(end - at));
}

void msgpack_json_time(int64_t seconds, uint32_t nanoseconds, size_t most, struct weir_text *text)
{
	char fraction[10];
	put_number(text, most, seconds < 0, (uint64_t)seconds);
	fraction[0] = '.';
	for (int i = 9; i > 0; i--, nanoseconds /= 10)
		fraction[i] = (char)('0' + nanoseconds % 10);
	msgpack_json_put(text, most, fraction, sizeof fraction);
}

static void put_digits(struct weir_span bytes, size_t most, struct weir_text *text)
{
	char pair[2];
	for (uint32_t i = 0; i < bytes.length && room_of(text, most) > 0; i++) {
		(void)weir_hex_put(pair, bytes.at + i, 1);
		msgpack_json_put(text, most, pair, sizeof pair);
	}
}

/* The shortest text that reads back as the same number. */
static void put_real(double real, bool single, size_t most, struct weir_text *text)
{
	char digits[40];
	int length = 0;
	if (!isfinite(real)) {
		msgpack_json_put(text, most, "null", 4);
		return;
	}
	for (int precision = single ? 6 : 15; precision <= 17; precision++) {
		length = snprintf(digits, sizeof digits, "%.*g", precision, real);
		double back = strtod(digits, NULL);
		if (single ? (float)back == (float)real : !(back < real || back > real))
			break;
	}
	msgpack_json_put(text, most, digits, (size_t)length);
}

bool msgpack_time(const struct msgpack_item *item, int64_t *seconds, uint32_t *nanoseconds)
{
	const unsigned char *bytes = (const unsigned char *)item->bytes.at;
	uint32_t length = item->bytes.length;
	*nanoseconds = 0;
	if (item->kind == MSGPACK_UNSIGNED || item->kind == MSGPACK_NEGATIVE) {
		*seconds = (int64_t)item->number;
		return item->kind == MSGPACK_NEGATIVE || item->number <= INT64_MAX;
	}
	if (item->kind == MSGPACK_FLOAT && fabs(item->real) < 1e15) {
		double whole = floor(item->real);
		*seconds = (int64_t)whole;
		*nanoseconds = (uint32_t)((item->real - whole) * 1e9);
		return true;
	}
	if (item->kind != MSGPACK_EXTENSION)
		return false;
	if (item->extension == 0 && length == 8) {
		*seconds = (int64_t)read_number(bytes, 4);
		*nanoseconds = (uint32_t)read_number(bytes + 4, 4);
	} else if (item->extension == -1 && length == 4) {
		*seconds = (int64_t)read_number(bytes, 4);
	} else if (item->extension == -1 && length == 8) {
		uint64_t both = read_number(bytes, 8);
		*nanoseconds = (uint32_t)(both >> 34);
		*seconds = (int64_t)(both & ((UINT64_C(1) << 34) - 1));
	} else if (item->extension == -1 && length == 12) {
		*nanoseconds = (uint32_t)read_number(bytes, 4);
		*seconds = (int64_t)read_number(bytes + 4, 8);
	} else {
		return false;
	}
	return *nanoseconds < 1000000000;
}

static void put_extension(const struct msgpack_item *item, size_t most, struct weir_text *text)
{
	int64_t seconds;
	uint32_t nanoseconds;
	if (msgpack_time(item, &seconds, &nanoseconds)) {
		msgpack_json_time(seconds, nanoseconds, most, text);
		return;
	}
	put_byte(text, most, '"');
	put_digits(item->bytes, most, text);
	put_byte(text, most, '"');
}

void msgpack_json_item(const struct msgpack_item *item, size_t most, struct weir_text *text)
{
	switch (item->kind) {
	case MSGPACK_NIL: msgpack_json_put(text, most, "null", 4); break;
	case MSGPACK_BOOL: msgpack_json_put(text, most, item->number ? "true" : "false", item->number ? 4 : 5); break;
	case MSGPACK_UNSIGNED: put_number(text, most, false, item->number); break;
	case MSGPACK_NEGATIVE: put_number(text, most, true, item->number); break;
	case MSGPACK_FLOAT: put_real(item->real, item->single, most, text); break;
	case MSGPACK_STRING:
	case MSGPACK_BINARY: put_string(text, most, item->bytes); break;
	case MSGPACK_EXTENSION: put_extension(item, most, text); break;
	case MSGPACK_ARRAY: msgpack_json_put(text, most, "[]", 2); break; /* what is in them is not the item's */
	case MSGPACK_MAP: msgpack_json_put(text, most, "{}", 2); break;
	}
}

/* An open array or map. */
struct level {
	uint64_t left; /* items; of a map keys and values */
	bool map;
	bool first;
};

enum weir_status msgpack_json_key(struct msgpack *from, const struct msgpack_item *item, size_t most,
                                  struct weir_text *text)
{
	bool quoted = item->kind == MSGPACK_STRING || item->kind == MSGPACK_BINARY ||
	              (item->kind == MSGPACK_EXTENSION && !msgpack_time(item, &(int64_t){0}, &(uint32_t){0}));
	if (!quoted)
		put_byte(text, most, '"');
	msgpack_json_item(item, most, text);
	msgpack_json_put(text, most, quoted ? ":" : "\":", quoted ? 1 : 2);
	uint64_t inside = item->kind == MSGPACK_ARRAY ? item->count
	                  : item->kind == MSGPACK_MAP ? 2 * (uint64_t)item->count
	                                              : 0;
	enum weir_status status = WEIR_OK;
	while (inside-- > 0 && status == WEIR_OK)
		status = msgpack_skip(from);
	return status;
}

/* Opens what an item is the head of, if anything is in it. */
static bool open_level(const struct msgpack_item *item, struct level *levels, uint32_t *depth, size_t most,
                       struct weir_text *text)
{
	bool map = item->kind == MSGPACK_MAP;
	if ((!map && item->kind != MSGPACK_ARRAY) || item->count == 0)
		return false;
	levels[(*depth)++] = (struct level){.left = (uint64_t)item->count << map, .map = map, .first = true};
	put_byte(text, most, map ? '{' : '[');
	return true;
}

enum weir_status msgpack_json(struct msgpack *from, size_t most, struct weir_text *text)
{
	struct level levels[MSGPACK_DEPTH_MAX];
	struct msgpack_item item;
	uint32_t depth = 0;
	do {
		enum weir_status status = msgpack_next(from, &item);
		if (status != WEIR_OK)
			return status;
		struct level *level = depth > 0 ? &levels[depth - 1] : NULL;
		bool is_key = level != NULL && level->map && level->left % 2 == 0;
		if (level != NULL) {
			if (!level->first && (is_key || !level->map))
				put_byte(text, most, ',');
			level->first = false;
			level->left--;
		}
		if (is_key) {
			if ((status = msgpack_json_key(from, &item, most, text)) != WEIR_OK)
				return status;
			continue;
		}
		if ((item.kind == MSGPACK_ARRAY || item.kind == MSGPACK_MAP) && item.count > 0 && depth == MSGPACK_DEPTH_MAX)
			return WEIR_INVALID;
		if (!open_level(&item, levels, &depth, most, text))
			msgpack_json_item(&item, most, text);
		while (depth > 0 && levels[depth - 1].left == 0)
			put_byte(text, most, levels[--depth].map ? '}' : ']');
	} while (depth > 0);
	return WEIR_OK;
}

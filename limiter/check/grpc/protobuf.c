/* SPDX-License-Identifier: Apache-2.0 */
/* A message inside of another has its length in front: one byte is kept for it, and more are made room for when it ends. */
#include "limiter/check/grpc/protobuf.h"

#include "common/bytes/varint.h"

enum { KIND_BITS = 3, NUMBER_MAX = (1 << 29) - 1, BITS_OF_A_BYTE = 8 };

static bool fail(struct protobuf_reader *reader)
{
	reader->bad = true;
	reader->at = reader->end;
	return false;
}

static bool read_varint(struct protobuf_reader *reader, uint64_t *value)
{
	const uint8_t *next = weir_varint_get(reader->at, reader->end, value);
	if (next == NULL)
		return fail(reader);
	reader->at = next;
	return true;
}

static bool read_fixed(struct protobuf_reader *reader, size_t bytes, uint64_t *value)
{
	if ((size_t)(reader->end - reader->at) < bytes)
		return fail(reader);
	*value = 0;
	for (size_t i = 0; i < bytes; i++)
		*value |= (uint64_t)reader->at[i] << (BITS_OF_A_BYTE * i);
	reader->at += bytes;
	return true;
}

static bool read_bytes(struct protobuf_reader *reader, struct weir_span *bytes)
{
	uint64_t length;
	if (!read_varint(reader, &length))
		return false;
	if (length > (uint64_t)(reader->end - reader->at))
		return fail(reader);
	*bytes = (struct weir_span){.at = (const char *)reader->at, .length = (uint32_t)length};
	reader->at += length;
	return true;
}

bool protobuf_next(struct protobuf_reader *reader, struct protobuf_field *field)
{
	uint64_t head;
	if (reader->at == reader->end || !read_varint(reader, &head))
		return false;
	uint64_t number = head >> KIND_BITS;
	if (number == 0 || number > NUMBER_MAX)
		return fail(reader);
	*field = (struct protobuf_field){.number = (uint32_t)number, .kind = (enum protobuf_kind)(head & 7)};
	switch (head & 7) {
	case PROTOBUF_NUMBER: return read_varint(reader, &field->value);
	case PROTOBUF_EIGHT: return read_fixed(reader, 8, &field->value);
	case PROTOBUF_BYTES: return read_bytes(reader, &field->bytes);
	case PROTOBUF_FOUR: return read_fixed(reader, 4, &field->value);
	default: return fail(reader);
	}
}

/* ---- writing ---- */

static void put_varint(struct weir_text *text, uint64_t value)
{
	uint8_t *at = (uint8_t *)weir_text_reserve(text, WEIR_VARINT_MAX_BYTES);
	text->length += (size_t)(weir_varint_put(at, value) - at);
}

static void put_head(struct weir_text *text, uint32_t number, enum protobuf_kind kind)
{
	put_varint(text, (uint64_t)number << KIND_BITS | kind);
}

void protobuf_put_number(struct weir_text *text, uint32_t number, uint64_t value)
{
	put_head(text, number, PROTOBUF_NUMBER);
	put_varint(text, value);
}

void protobuf_put_bytes(struct weir_text *text, uint32_t number, struct weir_span bytes)
{
	put_head(text, number, PROTOBUF_BYTES);
	put_varint(text, bytes.length);
	weir_text_append(text, bytes.at, bytes.length);
}

size_t protobuf_open(struct weir_text *text, uint32_t number)
{
	put_head(text, number, PROTOBUF_BYTES);
	*weir_text_reserve(text, 1) = 0;
	return ++text->length;
}

void protobuf_close(struct weir_text *text, size_t opened)
{
	size_t length = text->length - opened, more = weir_varint_size(length) - 1;
	if (more > 0) {
		(void)weir_text_reserve(text, more);
		memmove(text->at + opened + more, text->at + opened, length);
		text->length += more;
	}
	(void)weir_varint_put((uint8_t *)text->at + opened - 1, length);
}

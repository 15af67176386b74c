/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol buffers' wire format: a message is fields, each a number and a value. Read one after another in place, written
 * one after another. What a message means is its reader's: fields that he does not know he passes over.
 *
 * Groups are refused: no message of version 3 has them.
 */
#ifndef LIMITER_PROTOBUF_H
#define LIMITER_PROTOBUF_H

#include "common/base/text.h"

enum protobuf_kind {
	PROTOBUF_NUMBER = 0, /* integers, flags, enumerations; negative ones as 64 bits */
	PROTOBUF_EIGHT = 1,  /* bytes, always */
	PROTOBUF_BYTES = 2,  /* text, bytes, or a message */
	PROTOBUF_FOUR = 5,
};

struct protobuf_field {
	uint32_t number; /* 1 to 2^29 - 1 */
	enum protobuf_kind kind;
	uint64_t value;         /* of all but BYTES */
	struct weir_span bytes; /* of BYTES: within the message */
};

/* Where a message is read. */
struct protobuf_reader {
	const uint8_t *at, *end;
	bool bad; /* it is no message */
};

static inline struct protobuf_reader protobuf_reader_of(struct weir_span message)
{
	const uint8_t *at = (const uint8_t *)message.at;
	return (struct protobuf_reader){.at = at, .end = at != NULL ? at + message.length : at};
}

/** Reads one field. @return false: there are no more, or it is no message: reader->bad */
bool protobuf_next(struct protobuf_reader *reader, struct protobuf_field *field);

/** A field that holds text or a message. */
static inline bool protobuf_is_bytes(const struct protobuf_field *field, uint32_t number)
{
	return field->number == number && field->kind == PROTOBUF_BYTES;
}

static inline bool protobuf_is_number(const struct protobuf_field *field, uint32_t number)
{
	return field->number == number && field->kind == PROTOBUF_NUMBER;
}

/* Nothing is left out: who wants no field of 0 does not write it. */
void protobuf_put_number(struct weir_text *text, uint32_t number, uint64_t value);
void protobuf_put_bytes(struct weir_text *text, uint32_t number, struct weir_span bytes);

/**
 * Begins a message inside of the message; what is written until protobuf_close() is in it.
 *
 * @return for protobuf_close()
 */
size_t protobuf_open(struct weir_text *text, uint32_t number);
void protobuf_close(struct weir_text *text, size_t opened);

#endif

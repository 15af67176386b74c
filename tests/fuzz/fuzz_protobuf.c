/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a message: its fields lie within it, one after another; and what is written from what was read reads as the
 * same again, with messages inside of it to a depth of eight.
 */
#include "limiter/check/grpc/protobuf.h"

#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DEPTH_MAX = 8, SIZE_MAX_BYTES = 1 << 16 };

static bool is_message(struct weir_span bytes)
{
	struct protobuf_reader reader = protobuf_reader_of(bytes);
	struct protobuf_field field;
	while (protobuf_next(&reader, &field))
		;
	return !reader.bad;
}

/* Writes a message anew: eight and four bytes are left out, as nobody writes them. */
static void write_again(struct weir_span message, int depth, struct weir_text *text)
{
	struct protobuf_reader reader = protobuf_reader_of(message);
	struct protobuf_field field;
	while (protobuf_next(&reader, &field)) {
		if (field.kind == PROTOBUF_NUMBER) {
			protobuf_put_number(text, field.number, field.value);
		} else if (field.kind == PROTOBUF_BYTES && depth < DEPTH_MAX && is_message(field.bytes)) {
			size_t opened = protobuf_open(text, field.number);
			write_again(field.bytes, depth + 1, text);
			protobuf_close(text, opened);
		} else if (field.kind == PROTOBUF_BYTES) {
			protobuf_put_bytes(text, field.number, field.bytes);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > SIZE_MAX_BYTES)
		return 0;
	struct weir_span message = {.at = (const char *)data, .length = (uint32_t)size};
	struct protobuf_reader reader = protobuf_reader_of(message);
	struct protobuf_field field;
	const uint8_t *before = data;
	while (protobuf_next(&reader, &field)) {
		require(reader.at > before && reader.at <= data + size && field.number > 0);
		if (field.kind == PROTOBUF_BYTES)
			require((const uint8_t *)field.bytes.at >= before &&
			        (const uint8_t *)field.bytes.at + field.bytes.length == reader.at);
		before = reader.at;
	}
	require(reader.at == reader.end);
	if (reader.bad)
		return 0;
	struct weir_text once = {0}, twice = {0};
	write_again(message, 0, &once);
	write_again(weir_text_span(&once), 0, &twice);
	require(is_message(weir_text_span(&once)) && weir_span_equal(weir_text_span(&once), weir_text_span(&twice)));
	weir_text_deinit(&once);
	weir_text_deinit(&twice);
	return 0;
}

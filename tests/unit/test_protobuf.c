/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as protoc's own encoders write them, byte for byte, and what is none. */
#include "limiter/check/grpc/protobuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct weir_span span(const char *bytes, size_t length)
{
	return (struct weir_span){.at = bytes, .length = (uint32_t)length};
}

#define BYTES(text) span(text, sizeof(text) - 1)

static void what_is_written_is_what_others_write(void **state)
{
	(void)state;
	struct weir_text text = {0};
	protobuf_put_number(&text, 1, 150);
	protobuf_put_bytes(&text, 2, BYTES("testing"));
	size_t opened = protobuf_open(&text, 3);
	protobuf_put_number(&text, 1, UINT64_MAX); /* -1 */
	protobuf_close(&text, opened);
	protobuf_put_number(&text, 536870911, 0);
	static const char wanted[] = "\x08\x96\x01\x12\x07testing\x1a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
								 "\xf8\xff\xff\xff\x0f\x00";
	assert_true(weir_span_equal(weir_text_span(&text), BYTES(wanted)));
	weir_text_deinit(&text);
}

static void a_long_message_inside_of_another_is_moved(void **state)
{
	(void)state;
	static const size_t lengths[] = {0, 125, 126, 127, 128, 16379, 16380, 16381, 20000};
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		struct weir_text text = {0}, inner = {0};
		memset(weir_text_reserve(&inner, lengths[i] + 1), 'x', lengths[i]);
		inner.length = lengths[i];
		size_t outer = protobuf_open(&text, 1), opened = protobuf_open(&text, 2);
		protobuf_put_bytes(&text, 3, weir_text_span(&inner));
		protobuf_close(&text, opened);
		protobuf_close(&text, outer);
		struct protobuf_reader reader = protobuf_reader_of(weir_text_span(&text));
		struct protobuf_field field;
		for (uint32_t depth = 1; depth <= 3; depth++) {
			assert_true(protobuf_next(&reader, &field) && protobuf_is_bytes(&field, depth));
			assert_ptr_equal(reader.at, reader.end);
			reader = protobuf_reader_of(field.bytes);
		}
		assert_true(weir_span_equal(field.bytes, weir_text_span(&inner)));
		weir_text_deinit(&text);
		weir_text_deinit(&inner);
	}
}

static void fields_of_every_kind_are_read(void **state)
{
	(void)state;
	struct protobuf_reader reader =
		protobuf_reader_of(BYTES("\x08\x05\x11\x01\x02\x03\x04\x05\x06\x07\x08\x1a\x00\x25\xff\x00\x00\x80\x2a\x02hi"));
	struct protobuf_field field;
	assert_true(protobuf_next(&reader, &field) && protobuf_is_number(&field, 1) && field.value == 5);
	assert_true(protobuf_next(&reader, &field) && field.number == 2 && field.value == UINT64_C(0x0807060504030201));
	assert_true(protobuf_next(&reader, &field) && protobuf_is_bytes(&field, 3) && field.bytes.length == 0);
	assert_true(protobuf_next(&reader, &field) && field.number == 4 && field.value == UINT64_C(0x800000ff));
	assert_true(protobuf_next(&reader, &field) && weir_span_equal(field.bytes, BYTES("hi")));
	assert_false(protobuf_next(&reader, &field) || reader.bad);
	reader = protobuf_reader_of((struct weir_span){0});
	assert_false(protobuf_next(&reader, &field) || reader.bad);
}

static void what_is_no_message_is_refused(void **state)
{
	(void)state;
	const struct weir_span wrong[] = {
		BYTES("\x08"),                                         /* a number without a value */
		BYTES("\x80"),                                         /* not even a number */
		BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), /* of 65 bits */
		BYTES("\x12\x05test"),                                 /* shorter than it says */
		BYTES("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* likewise, by far */
		BYTES("\x00\x01"),                                     /* field 0 */
		BYTES("\x0b\x0c"),                                     /* a group */
		BYTES("\x0e\x00"),                                     /* of a kind that is none */
		BYTES("\x25\x01\x02\x03"),
		BYTES("\x11\x01\x02\x03\x04\x05\x06\x07"),
		BYTES("\x80\x80\x80\x80\x10\x00"), /* field 2^29 */
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct protobuf_reader reader = protobuf_reader_of(wrong[i]);
		struct protobuf_field field;
		while (protobuf_next(&reader, &field))
			;
		if (!reader.bad)
			fail_msg("message %zu is taken", i);
		assert_false(protobuf_next(&reader, &field));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_what_others_write),
		cmocka_unit_test(a_long_message_inside_of_another_is_moved),
		cmocka_unit_test(fields_of_every_kind_are_read),
		cmocka_unit_test(what_is_no_message_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* MessagePack as JSON: every form, what is cut off, too deep or a lie. tests/integration/test_forward_lines.py has an oracle. */
#include "collector/source/push/forward/msgpack_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define BYTES(text) (text), sizeof(text) - 1

static void expect(const char *bytes, size_t length, const char *json)
{
	struct weir_text text = {0};
	struct msgpack from = msgpack_of(bytes, length);
	assert_int_equal(msgpack_json(&from, SIZE_MAX, &text), WEIR_OK);
	assert_ptr_equal(from.at, from.end);
	weir_text_append(&text, "", 1);
	assert_string_equal(text.at, json);
	weir_text_deinit(&text);

	struct msgpack_extent extent = {0};
	for (size_t there = 0; there < length; there++) /* it comes byte by byte */
		assert_int_equal(msgpack_measure(&extent, bytes, there, length, NULL), WEIR_AGAIN);
	assert_int_equal(msgpack_measure(&extent, bytes, length, length, NULL), WEIR_OK);
	assert_int_equal(extent.seen, length);
	for (size_t there = 0; there < length; there++) {
		char *copy = malloc(there + 1);
		memcpy(copy, bytes, there);
		struct msgpack cut = msgpack_of(copy, there);
		assert_int_equal(msgpack_skip(&cut), WEIR_AGAIN);
		assert_int_equal(msgpack_json(&cut, SIZE_MAX, &text), WEIR_AGAIN);
		weir_text_deinit(&text);
		text = (struct weir_text){0};
		free(copy);
	}
}

static void every_form_is_json(void **state)
{
	(void)state;
	expect(BYTES("\xc0"), "null");
	expect(BYTES("\xc2"), "false");
	expect(BYTES("\xc3"), "true");
	expect(BYTES("\x00"), "0");
	expect(BYTES("\x7f"), "127");
	expect(BYTES("\xe0"), "-32");
	expect(BYTES("\xff"), "-1");
	expect(BYTES("\xcc\xff"), "255");
	expect(BYTES("\xcd\xff\xff"), "65535");
	expect(BYTES("\xce\xff\xff\xff\xff"), "4294967295");
	expect(BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "18446744073709551615");
	expect(BYTES("\xd0\x80"), "-128");
	expect(BYTES("\xd0\x05"), "5");
	expect(BYTES("\xd1\x80\x00"), "-32768");
	expect(BYTES("\xd2\x80\x00\x00\x00"), "-2147483648");
	expect(BYTES("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"), "-9223372036854775808");
	expect(BYTES("\xca\x3d\xcc\xcc\xcd"), "0.1");
	expect(BYTES("\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a"), "0.1");
	expect(BYTES("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"), "null");
	expect(BYTES("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00"), "null");
	expect(BYTES("\xca\xff\x80\x00\x00"), "null");
	expect(BYTES("\xa3"
	             "abc"),
	       "\"abc\"");
	expect(BYTES("\xd9\x01"
	             "a"),
	       "\"a\"");
	expect(BYTES("\xda\x00\x01"
	             "a"),
	       "\"a\"");
	expect(BYTES("\xdb\x00\x00\x00\x01"
	             "a"),
	       "\"a\"");
	expect(BYTES("\xc4\x02\xff\xfe"), "\"\xff\xfe\"");
	expect(BYTES("\xc5\x00\x01\x00"), "\"\\u0000\"");
	expect(BYTES("\xc6\x00\x00\x00\x01\x1f"), "\"\\u001f\"");
	expect(BYTES("\xa4\"\\\n\t"), "\"\\\"\\\\\\n\\t\"");
	expect(BYTES("\x90"), "[]");
	expect(BYTES("\x92\x01\x91\x02"), "[1,[2]]");
	expect(BYTES("\xdc\x00\x01\xc0"), "[null]");
	expect(BYTES("\xdd\x00\x00\x00\x01\xc0"), "[null]");
	expect(BYTES("\x80"), "{}");
	expect(BYTES("\x82\xa1"
	             "a\x01\xa1"
	             "a\x81\xa1"
	             "b\x90"),
	       "{\"a\":1,\"a\":{\"b\":[]}}");
	expect(BYTES("\xde\x00\x01\xa0\x80"), "{\"\":{}}");
	expect(BYTES("\xdf\x00\x00\x00\x01\xa0\x80"), "{\"\":{}}");
}

/* Eight bytes are looked at together: every byte at every place of a string of any such length, beside others. */
static void each_byte_is_escaped_wherever_it_stands(void **state)
{
	enum { LENGTH = 17 };
	(void)state;
	for (int byte = 0; byte < 256; byte++) {
		for (size_t place = 0; place < LENGTH; place++) {
			char bytes[LENGTH], wanted[LENGTH + 8], escape[8] = {(char)byte};
			memset(bytes, place % 2 == 0 ? 'x' : '\xff', sizeof bytes);
			bytes[place] = (char)byte;
			if (byte == '"' || byte == '\\' || byte == '\n' || byte == '\t')
				snprintf(escape, sizeof escape, "\\%c", byte == '\n' ? 'n' : byte == '\t' ? 't' : byte);
			else if (byte < 0x20)
				snprintf(escape, sizeof escape, "\\u%04x", (unsigned)byte);
			size_t length = strlen(escape);
			memcpy(wanted, bytes, place);
			memcpy(wanted + place, escape, length);
			memcpy(wanted + place + length, bytes + place + 1, LENGTH - place - 1);
			length += LENGTH - 1;
			struct weir_text text = {0};
			msgpack_json_bytes((struct weir_span){.at = bytes, .length = LENGTH}, SIZE_MAX, &text);
			assert_int_equal(text.length, length);
			assert_memory_equal(text.at, wanted, length);
			weir_text_deinit(&text);
		}
	}
}

static void extensions_are_times_or_digits(void **state)
{
	(void)state;
	expect(BYTES("\xd7\x00\x67\x3f\x00\x00\x00\x00\x00\x01"), "1732182016.000000001");
	expect(BYTES("\xc7\x08\x00\x67\x3f\x00\x00\x3b\x9a\xc9\xff"), "1732182016.999999999");
	expect(BYTES("\xd7\x00\x67\x3f\x00\x00\x3b\x9a\xca\x00"), "\"673f00003b9aca00\""); /* no nanosecond */
	expect(BYTES("\xd6\xff\x67\x3f\x00\x00"), "1732182016.000000000");
	expect(BYTES("\xd7\xff\x00\x00\x00\x04\x67\x3f\x00\x00"), "1732182016.000000001");
	expect(BYTES("\xc7\x0c\xff\x00\x00\x00\x01\x00\x00\x00\x00\x67\x3f\x00\x00"), "1732182016.000000001");
	expect(BYTES("\xd4\x05\xab"), "\"ab\"");
	expect(BYTES("\xd5\x05\xab\xcd"), "\"abcd\"");
	expect(BYTES("\xc7\x00\x05"), "\"\"");
	expect(BYTES("\xc8\x00\x01\x05\x0f"), "\"0f\"");
	expect(BYTES("\xc9\x00\x00\x00\x01\x05\x0f"), "\"0f\"");
	expect(BYTES("\xd8\x01"
	             "0123456789abcdef"),
	       "\"30313233343536373839616263646566\"");
}

static void keys_are_always_strings(void **state)
{
	(void)state;
	expect(BYTES("\x81\x01\x02"), "{\"1\":2}");
	expect(BYTES("\x81\xff\x02"), "{\"-1\":2}");
	expect(BYTES("\x81\xc0\x02"), "{\"null\":2}");
	expect(BYTES("\x81\xc3\x02"), "{\"true\":2}");
	expect(BYTES("\x81\xca\x3f\x00\x00\x00\x02"), "{\"0.5\":2}");
	expect(BYTES("\x81\xc4\x01\x80\x02"), "{\"\x80\":2}");
	expect(BYTES("\x81\xd4\x05\xab\x02"), "{\"ab\":2}");
	expect(BYTES("\x81\xd7\x00\x67\x3f\x00\x00\x00\x00\x00\x01\x02"), "{\"1732182016.000000001\":2}");
	expect(BYTES("\x82\x92\x01\x02\x03\x81\x04\x05\x06"), "{\"[]\":3,\"{}\":6}");
}

static enum weir_status measure(const char *bytes, size_t length, size_t most, struct weir_error *error)
{
	struct msgpack_extent extent = {0};
	return msgpack_measure(&extent, bytes, length, most, error);
}

static void announcements_are_believed_as_far_as_they_fit(void **state)
{
	(void)state;
	struct weir_error error;
	assert_int_equal(measure(BYTES("\xdb\xff\xff\xff\xff"), 1000, &error), WEIR_FULL);
	assert_non_null(strstr(error.text, "more than 1000 bytes"));
	assert_int_equal(measure(BYTES("\xdd\xff\xff\xff\xff"), 1 << 30, &error), WEIR_FULL);
	assert_int_equal(measure(BYTES("\xdf\xff\xff\xff\xff"), UINT32_MAX, &error), WEIR_FULL);
	assert_int_equal(measure(BYTES("\xdc\x03\xe0"), 1000, &error), WEIR_AGAIN);   /* 992 values */
	assert_int_equal(measure(BYTES("\xdc\x03\xe6"), 1000, &error), WEIR_FULL);    /* 998 and 3 */
	assert_int_equal(measure(BYTES("\x92\xdc\x03\xe2"), 998, &error), WEIR_FULL); /* 994 and 1 and 4 */
	assert_int_equal(measure(BYTES("\x92\xdc\x03\xe2"), 999, &error), WEIR_AGAIN);
	assert_int_equal(measure(BYTES("\x91\xc1"), 1000, &error), WEIR_INVALID);
	assert_non_null(strstr(error.text, "0xc1"));
}

static void depth_has_a_limit(void **state)
{
	(void)state;
	char bytes[MSGPACK_DEPTH_MAX + 2];
	struct weir_text text = {0};
	struct weir_error error;
	memset(bytes, 0x91, sizeof bytes);
	bytes[MSGPACK_DEPTH_MAX] = 0;
	struct msgpack from = msgpack_of(bytes, MSGPACK_DEPTH_MAX + 1);
	assert_int_equal(msgpack_json(&from, SIZE_MAX, &text), WEIR_OK);
	assert_int_equal(measure(bytes, MSGPACK_DEPTH_MAX + 1, 1000, &error), WEIR_OK);
	bytes[MSGPACK_DEPTH_MAX] = (char)0x91;
	bytes[MSGPACK_DEPTH_MAX + 1] = 0;
	from = msgpack_of(bytes, sizeof bytes);
	assert_int_equal(msgpack_json(&from, SIZE_MAX, &text), WEIR_INVALID);
	from = msgpack_of(bytes, sizeof bytes);
	assert_int_equal(msgpack_skip(&from), WEIR_INVALID);
	assert_int_equal(measure(bytes, sizeof bytes, 1000, &error), WEIR_INVALID);
	assert_non_null(strstr(error.text, "levels deep"));
	weir_text_deinit(&text);
}

static void the_text_is_cut_and_the_value_read(void **state)
{
	(void)state;
	static const char bytes[] = "\x82\xa1"
								"a\xa5"
								"\x01\x01\x01\x01\x01\xa1"
								"b\x93\x01\x02\x03";
	for (size_t most = 0; most < 60; most++) {
		struct weir_text text = {0};
		struct msgpack from = msgpack_of(bytes, sizeof bytes - 1);
		assert_int_equal(msgpack_json(&from, most, &text), WEIR_OK);
		assert_ptr_equal(from.at, from.end);
		static const char whole[] = "{\"a\":\"\\u0001\\u0001\\u0001\\u0001\\u0001\",\"b\":[1,2,3]}";
		size_t length = sizeof whole - 1;
		assert_int_equal(text.length, most < length ? most : length);
		assert_memory_equal(text.length > 0 ? text.at : "", whole, text.length);
		weir_text_deinit(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_is_json),
		cmocka_unit_test(extensions_are_times_or_digits),
		cmocka_unit_test(keys_are_always_strings),
		cmocka_unit_test(announcements_are_believed_as_far_as_they_fit),
		cmocka_unit_test(each_byte_is_escaped_wherever_it_stands),
		cmocka_unit_test(depth_has_a_limit),
		cmocka_unit_test(the_text_is_cut_and_the_value_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

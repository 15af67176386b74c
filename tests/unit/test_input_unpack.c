/* SPDX-License-Identifier: Apache-2.0 */
/* Packed bytes in memory: members and frames, bounds, damage. */
#include "collector/input/input_unpack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/unit/log_files.h"

#include <cmocka.h>

static struct weir_text gzip_of(const char *bytes, size_t length)
{
	struct weir_text packed = {0};
	z_stream stream = {0};
	assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	stream.next_in = (z_const Bytef *)bytes;
	stream.avail_in = (unsigned)length;
	size_t room = deflateBound(&stream, length);
	stream.next_out = (Bytef *)weir_text_reserve(&packed, room);
	stream.avail_out = (unsigned)room;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	packed.length = room - stream.avail_out;
	deflateEnd(&stream);
	return packed;
}

static struct weir_text zstd_of(const char *bytes, size_t length)
{
	struct weir_text packed = {0};
	size_t room = ZSTD_compressBound(length);
	packed.length = ZSTD_compress(weir_text_reserve(&packed, room), room, bytes, length, 3);
	assert_false(ZSTD_isError(packed.length));
	return packed;
}

static enum weir_status unpack(enum input_kind kind, const struct weir_text *packed, size_t most,
                               struct weir_text *plain)
{
	struct weir_error error;
	weir_text_clear(plain);
	return input_unpack(kind, weir_text_span(packed), most, plain, &error);
}

static void check(enum input_kind kind, struct weir_text (*pack)(const char *, size_t))
{
	struct weir_text plain = {0}, packed = pack("one\n", 4), more = pack("two\n", 4);
	weir_text_append(&packed, more.at, more.length);
	assert_int_equal(unpack(kind, &packed, 8, &plain), WEIR_OK);
	assert_int_equal(plain.length, 8);
	assert_memory_equal(plain.at, "one\ntwo\n", 8);
	assert_int_equal(unpack(kind, &packed, 7, &plain), WEIR_FULL);
	for (size_t cut = 1; cut < more.length; cut++) {
		packed.length--;
		assert_int_equal(unpack(kind, &packed, 100, &plain), WEIR_INVALID);
	}
	packed.length--;
	assert_int_equal(unpack(kind, &packed, 100, &plain), WEIR_OK);
	weir_text_puts(&packed, "rubbish");
	assert_int_equal(unpack(kind, &packed, 100, &plain), WEIR_INVALID);
	weir_text_deinit(&packed);
	weir_text_deinit(&more);

	/* A hundred MiB of zeros, of which no more than the bound and a block is ever unpacked. */
	char *zeros = weir_alloc(100, 1 << 20);
	packed = pack(zeros, 100 << 20);
	free(zeros);
	assert_int_equal(unpack(kind, &packed, 1 << 20, &plain), WEIR_FULL);
	assert_true(plain.capacity < 8 << 20);
	weir_text_deinit(&packed);
	weir_text_deinit(&plain);
}

static void gzip_members(void **state)
{
	(void)state;
	check(INPUT_GZIP, gzip_of);
}

static void zstd_frames(void **state)
{
	(void)state;
	check(INPUT_ZSTD, zstd_of);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(gzip_members), cmocka_unit_test(zstd_frames)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Slots against the polynomial's definition and Redis Cluster's known values; hashes against their library's. */
#include "common/bytes/hash.h"
#include "common/bytes/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* CRC16/XMODEM bit by bit. */
static uint16_t crc16_by_definition(const char *bytes, size_t length)
{
	unsigned crc = 0;
	for (size_t i = 0; i < length; i++) {
		crc ^= (unsigned)(unsigned char)bytes[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1) & 0xffff;
	}
	return (uint16_t)crc;
}

static void crc_equals_its_definition_at_every_length(void **state)
{
	(void)state;
	srandom(1);
	for (int round = 0; round < 20000; round++) {
		size_t length = (size_t)round % 200;
		char *bytes = malloc(length + 1); /* of the exact size, so that a sanitizer sees a read past it */
		char *exact = malloc(length > 0 ? length : 1);
		for (size_t i = 0; i < length; i++)
			exact[i] = bytes[i] = (char)random();
		assert_int_equal(weir_crc16(exact, length), crc16_by_definition(bytes, length));
		free(exact);
		free(bytes);
	}
	assert_int_equal(weir_crc16("123456789", 9), 0x31c3);
}

static uint32_t slot_of(const char *key)
{
	return weir_slot(weir_span_of(key));
}

static void slots_are_those_of_redis_cluster(void **state)
{
	(void)state;
	assert_int_equal(slot_of("foo"), 12182);
	assert_int_equal(slot_of("bar"), 5061);
	assert_int_equal(slot_of(""), 0);
	assert_int_equal(slot_of("123456789"), 0x31c3 % WEIR_SLOTS);
}

static void a_hash_tag_decides_the_slot(void **state)
{
	(void)state;
	assert_int_equal(slot_of("{user1000}.following"), slot_of("user1000"));
	assert_int_equal(slot_of("x{user1000}y{other}"), slot_of("user1000"));
	assert_int_equal(slot_of("foo{{bar}}zap"), slot_of("{bar"));
	assert_int_equal(slot_of("a{b}"), slot_of("b"));
	/* An empty tag, or one that is not closed, is no tag. */
	assert_int_equal(slot_of("foo{}{bar}"), crc16_by_definition("foo{}{bar}", 10) % WEIR_SLOTS);
	assert_int_equal(slot_of("foo{bar"), crc16_by_definition("foo{bar", 7) % WEIR_SLOTS);
	assert_int_equal(slot_of("}foo{bar"), crc16_by_definition("}foo{bar", 8) % WEIR_SLOTS);
	assert_int_equal(slot_of("{"), crc16_by_definition("{", 1) % WEIR_SLOTS);
}

static void partitions_divide_the_slots_in_order(void **state)
{
	(void)state;
	assert_int_equal(weir_partition(0, 16), 0);
	assert_int_equal(weir_partition(1023, 16), 0);
	assert_int_equal(weir_partition(1024, 16), 1);
	assert_int_equal(weir_partition(16383, 16), 15);
	assert_int_equal(weir_partition(16383, 1), 0);
	assert_int_equal(weir_partition(16383, 1024), 1023);
}

static void fingerprints_differ_by_zone_key_and_seed(void **state)
{
	(void)state;
	struct weir_fingerprint first = weir_fingerprint(1, 1, weir_span_of("203.0.113.9"));
	struct weir_fingerprint zone = weir_fingerprint(1, 2, weir_span_of("203.0.113.9"));
	struct weir_fingerprint key = weir_fingerprint(1, 1, weir_span_of("203.0.113.8"));
	struct weir_fingerprint seed = weir_fingerprint(2, 1, weir_span_of("203.0.113.9"));
	assert_true(first.low != zone.low && first.low != key.low && first.low != seed.low);
	assert_true(first.high != zone.high && first.high != key.high && first.high != seed.high);
	struct weir_fingerprint empty = weir_fingerprint(1, 1, (struct weir_span){0});
	assert_true(empty.low == weir_fingerprint(1, 1, weir_span_of("")).low);
}

static void a_fingerprint_has_its_digits(void **state)
{
	(void)state;
	char words[WEIR_FINGERPRINT_DIGITS + 1];
	struct weir_fingerprint print = {.low = 0x1f, .high = 0xa};
	assert_string_equal(weir_fingerprint_words(print, words), "00a000000000000001f");
	print = (struct weir_fingerprint){.low = UINT64_MAX, .high = WEIR_FINGERPRINT_HIGH_MASK};
	assert_string_equal(weir_fingerprint_words(print, words), "fffffffffffffffffff");
	struct weir_fingerprint less = {.low = UINT64_MAX, .high = 1}, more = {.low = 0, .high = 2};
	assert_true(weir_fingerprint_compare(&less, &more) < 0 && weir_fingerprint_compare(&more, &less) > 0);
	less = (struct weir_fingerprint){.low = 1, .high = 2};
	assert_true(weir_fingerprint_compare(&less, &more) > 0 && weir_fingerprint_compare(&more, &less) < 0);
	assert_int_equal(weir_fingerprint_compare(&less, &less), 0);
}

static void hashes_are_stable(void **state)
{
	(void)state;
	/* The published values of XXH3 for no input and seed 0. */
	assert_true(weir_hash64("", 0) == UINT64_C(0x2d06800538d394c2));
	assert_true(weir_hash64(NULL, 0) == weir_hash64("", 0));
	static const uint8_t expected[16] = {0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
	                                     0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f};
	uint8_t hash[16];
	weir_hash128("", 0, hash);
	assert_memory_equal(hash, expected, sizeof expected);
}

static void scan_finds_either_byte_anywhere(void **state)
{
	(void)state;
	for (size_t length = 0; length <= 40; length++) {
		char *bytes = malloc(length > 0 ? length : 1);
		memset(bytes, 'x' ^ (int)0x80, length);
		assert_false(weir_scan_has(bytes, length, '|', '\\'));
		for (size_t i = 0; i < length; i++) {
			char kept = bytes[i];
			bytes[i] = i % 2 == 0 ? '|' : '\\';
			assert_true(weir_scan_has(bytes, length, '|', '\\'));
			bytes[i] = '}'; /* a neighbour of '|' */
			assert_false(weir_scan_has(bytes, length, '|', '\\'));
			bytes[i] = kept;
		}
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_equals_its_definition_at_every_length),
		cmocka_unit_test(slots_are_those_of_redis_cluster),
		cmocka_unit_test(a_hash_tag_decides_the_slot),
		cmocka_unit_test(partitions_divide_the_slots_in_order),
		cmocka_unit_test(fingerprints_differ_by_zone_key_and_seed),
		cmocka_unit_test(a_fingerprint_has_its_digits),
		cmocka_unit_test(hashes_are_stable),
		cmocka_unit_test(scan_finds_either_byte_anywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

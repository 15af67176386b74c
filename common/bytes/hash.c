/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot of a key: CRC16/XMODEM by tables.
 *
 * A key is hashed for every event, and most keys are addresses of 7 to 15
 * bytes. The CRC is linear and starts from zero, so the CRC of up to 16 bytes is
 * the exclusive-or of one table entry a byte, each table belonging to a distance
 * from the end: sixteen loads that wait for nothing, instead of a chain of as
 * many steps. Longer keys continue in blocks of 16, the CRC so far folded into the
 * block's first two bytes.
 *
 * The tables are linear too: entry b of a table is the exclusive-or of the
 * entries of b's bits, so eight constants and the preprocessor make one table.
 */
#include "common/bytes/hash.h"

#include "common/bytes/scan.h"

#include <endian.h>
#include <stdio.h>

#define SPAN2(x, a) (uint16_t)(x), (uint16_t)((x) ^ (a))
#define SPAN4(x, a, b) SPAN2(x, a), SPAN2((x) ^ (b), a)
#define SPAN8(x, a, b, c) SPAN4(x, a, b), SPAN4((x) ^ (c), a, b)
#define SPAN16(x, a, b, c, d) SPAN8(x, a, b, c), SPAN8((x) ^ (d), a, b, c)
#define SPAN32(x, a, b, c, d, e) SPAN16(x, a, b, c, d), SPAN16((x) ^ (e), a, b, c, d)
#define SPAN64(x, a, b, c, d, e, f) SPAN32(x, a, b, c, d, e), SPAN32((x) ^ (f), a, b, c, d, e)
#define SPAN128(x, a, b, c, d, e, f, g) SPAN64(x, a, b, c, d, e, f), SPAN64((x) ^ (g), a, b, c, d, e, f)
#define TABLE(a, b, c, d, e, f, g, h)                                    \
	{                                                                    \
		SPAN128(0, a, b, c, d, e, f, g), SPAN128(h, a, b, c, d, e, f, g) \
	}

enum { CRC_BLOCK_BYTES = 16 };

/* crc_tables[k][b]: what byte b adds when k bytes follow it; the arguments are x^(16 + 8k + bit) mod the polynomial. */
static const uint16_t crc_tables[CRC_BLOCK_BYTES][256] = {
	TABLE(0x1021, 0x2042, 0x4084, 0x8108, 0x1231, 0x2462, 0x48c4, 0x9188),
	TABLE(0x3331, 0x6662, 0xccc4, 0x89a9, 0x0373, 0x06e6, 0x0dcc, 0x1b98),
	TABLE(0x3730, 0x6e60, 0xdcc0, 0xa9a1, 0x4363, 0x86c6, 0x1dad, 0x3b5a),
	TABLE(0x76b4, 0xed68, 0xcaf1, 0x85c3, 0x1ba7, 0x374e, 0x6e9c, 0xdd38),
	TABLE(0xaa51, 0x4483, 0x8906, 0x022d, 0x045a, 0x08b4, 0x1168, 0x22d0),
	TABLE(0x45a0, 0x8b40, 0x06a1, 0x0d42, 0x1a84, 0x3508, 0x6a10, 0xd420),
	TABLE(0xb861, 0x60e3, 0xc1c6, 0x93ad, 0x377b, 0x6ef6, 0xddec, 0xabf9),
	TABLE(0x47d3, 0x8fa6, 0x0f6d, 0x1eda, 0x3db4, 0x7b68, 0xf6d0, 0xfd81),
	TABLE(0xeb23, 0xc667, 0x9cef, 0x29ff, 0x53fe, 0xa7fc, 0x5fd9, 0xbfb2),
	TABLE(0x6f45, 0xde8a, 0xad35, 0x4a4b, 0x9496, 0x390d, 0x721a, 0xe434),
	TABLE(0xd849, 0xa0b3, 0x5147, 0xa28e, 0x553d, 0xaa7a, 0x44d5, 0x89aa),
	TABLE(0x0375, 0x06ea, 0x0dd4, 0x1ba8, 0x3750, 0x6ea0, 0xdd40, 0xaaa1),
	TABLE(0x4563, 0x8ac6, 0x05ad, 0x0b5a, 0x16b4, 0x2d68, 0x5ad0, 0xb5a0),
	TABLE(0x7b61, 0xf6c2, 0xfda5, 0xeb6b, 0xc6f7, 0x9dcf, 0x2bbf, 0x577e),
	TABLE(0xaefc, 0x4dd9, 0x9bb2, 0x2745, 0x4e8a, 0x9d14, 0x2a09, 0x5412),
	TABLE(0xa824, 0x4069, 0x80d2, 0x1185, 0x230a, 0x4614, 0x8c28, 0x0871),
};

/* Eight bytes, the first one lowest whatever the machine. */
static inline uint64_t load_word(const unsigned char *bytes)
{
	uint64_t word;
	memcpy(&word, bytes, sizeof word);
	return le64toh(word);
}

/* What a word's bytes add: the highest byte is the last, with `behind` bytes following it. */
static inline unsigned word_crc(uint64_t word, size_t behind)
{
	unsigned crc = 0;
	for (size_t i = 0; i < 8; i++)
		crc ^= crc_tables[behind + 7 - i][(word >> (8 * i)) & 0xff];
	return crc;
}

/*
 * The CRC of up to 16 bytes. From 8 on they are taken as two words, zero bytes in
 * front (they add nothing), so that the length decides no branch.
 */
static inline unsigned head_crc(const unsigned char *bytes, size_t length)
{
	unsigned crc = 0;
	if (length < 8) {
		for (size_t i = 0; i < length; i++)
			crc ^= crc_tables[length - 1 - i][bytes[i]];
		return crc;
	}
	/* Two shifts, as one by all 64 bits is undefined. */
	uint64_t front = load_word(bytes) << 4 * (CRC_BLOCK_BYTES - length) << 4 * (CRC_BLOCK_BYTES - length);
	return word_crc(front, 8) ^ word_crc(load_word(bytes + length - 8), 0);
}

uint16_t weir_crc16(const char *bytes, size_t length)
{
	const unsigned char *at = (const unsigned char *)bytes;
	size_t head = length <= CRC_BLOCK_BYTES ? length : length % CRC_BLOCK_BYTES;
	unsigned crc = head_crc(at, head);
	for (at += head, length -= head; length > 0; at += CRC_BLOCK_BYTES, length -= CRC_BLOCK_BYTES) {
		uint64_t first = load_word(at) ^ (crc >> 8) ^ (crc & 0xff) << 8;
		crc = word_crc(first, 8) ^ word_crc(load_word(at + 8), 0);
	}
	return (uint16_t)crc;
}

uint32_t weir_slot(struct weir_span key)
{
	if (weir_scan_has(key.at, key.length, '{', '{')) {
		const char *end = key.at + key.length;
		const char *open = memchr(key.at, '{', key.length);
		const char *tag = open + 1;
		const char *close = memchr(tag, '}', (size_t)(end - tag));
		if (close != NULL && close > tag)
			return weir_crc16(tag, (size_t)(close - tag)) & (WEIR_SLOTS - 1);
	}
	return weir_crc16(key.at, key.length) & (WEIR_SLOTS - 1);
}

int weir_fingerprint_compare(const void *a, const void *b)
{
	const struct weir_fingerprint *left = a, *right = b;
	if (left->high != right->high)
		return left->high < right->high ? -1 : 1;
	return left->low < right->low ? -1 : left->low > right->low;
}

const char *weir_fingerprint_words(struct weir_fingerprint print, char words[WEIR_FINGERPRINT_DIGITS + 1])
{
	snprintf(words, WEIR_FINGERPRINT_DIGITS + 1, "%0*x%016llx", WEIR_FINGERPRINT_HIGH_BITS / 4, print.high,
	         (unsigned long long)print.low);
	return words;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file is packed in, by its first bytes: compressions that are read, and
 * kinds of files that hold no lines, which are refused by name. The second list
 * is of what lies among logs: a reader that took it for lines would call each
 * of them malformed.
 *
 * Whoever makes requests chooses much of a log's first line, and a log that is
 * not read limits nobody. So what has no control character early on is lines,
 * however it begins: all that is packed has one, and servers escape them.
 */
#include "collector/input/input_codec.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

#define UNPACK "unpack it first, or pipe it in: COMMAND | weir run --once ... -"
#define RECODE "convert it first: iconv -t UTF-8"

struct kind {
	const char *magic;
	size_t length;
	enum input_kind kind;
	const struct input_codec_ops *ops;
	const char *name, *advice; /* of what is refused */
};

#define READ(bytes, which, codec)                          \
	{                                                      \
		bytes, sizeof(bytes) - 1, which, codec, NULL, NULL \
	}
#define REFUSED(bytes, words, what)                                \
	{                                                              \
		bytes, sizeof(bytes) - 1, INPUT_REFUSED, NULL, words, what \
	}

/* The longest first where one begins another. */
static const struct kind kinds[] = {
	READ("\x1f\x8b\x08", INPUT_GZIP, &input_gzip), /* deflate is the only method there is */
	READ("\x28\xb5\x2f\xfd", INPUT_ZSTD, &input_zstd),
	READ("BZh1", INPUT_BZIP2, &input_bzip2),
	READ("BZh2", INPUT_BZIP2, &input_bzip2),
	READ("BZh3", INPUT_BZIP2, &input_bzip2),
	READ("BZh4", INPUT_BZIP2, &input_bzip2),
	READ("BZh5", INPUT_BZIP2, &input_bzip2),
	READ("BZh6", INPUT_BZIP2, &input_bzip2),
	READ("BZh7", INPUT_BZIP2, &input_bzip2),
	READ("BZh8", INPUT_BZIP2, &input_bzip2),
	READ("BZh9", INPUT_BZIP2, &input_bzip2),
	READ("\xfd\x37zXZ\x00", INPUT_XZ, &input_xz),
	REFUSED("\xff\xfe\x00\x00", "UTF-32 text", RECODE),
	REFUSED("\x00\x00\xfe\xff", "UTF-32 text", RECODE),
	REFUSED("\xff\xfe", "UTF-16 text", RECODE),
	REFUSED("\xfe\xff", "UTF-16 text", RECODE),
	REFUSED("PK\x03\x04", "a zip archive", UNPACK),
	REFUSED("PK\x05\x06", "an empty zip archive", UNPACK),
	REFUSED("PK\x07\x08", "a zip archive", UNPACK),
	REFUSED("7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
	REFUSED("Rar!\x1a\x07", "a rar archive", UNPACK),
	REFUSED("\x04\x22\x4d\x18", "lz4 data", UNPACK),
	REFUSED("\x02\x21\x4c\x18", "lz4 data", UNPACK),
	REFUSED("\x1f\x9d", "data of compress (.Z)", UNPACK),
	REFUSED("\x1f\xa0", "data of compress (LZH)", UNPACK),
	REFUSED("\x1f\x1e", "data of pack (.z)", UNPACK),
	REFUSED("LZIP\x01", "lzip data", UNPACK),
	REFUSED("LZIP\x00", "lzip data", UNPACK),
	REFUSED("\x89LZO\x00\x0d\x0a\x1a\x0a", "lzop data", UNPACK),
	REFUSED("LRZI\x00", "lrzip data", UNPACK),
	REFUSED("\xff\x06\x00\x00sNaPpY", "snappy data", UNPACK),
	REFUSED("\x5d\x00\x00\x80\x00", "lzma data", UNPACK),
	REFUSED("\x5d\x00\x00\x00\x01", "lzma data", UNPACK),
	REFUSED("\x5d\x00\x00\x00\x04", "lzma data", UNPACK),
	REFUSED("MSCF\x00\x00\x00\x00", "a cab archive", UNPACK),
	REFUSED("LPKSHHRH", "a journal of systemd", "use a source of type \"journal\""),
	REFUSED("ElfFile\x00", "a Windows event log", "export it as text"),
	REFUSED("SQLite format 3\x00", "an SQLite database", "export it as text"),
	REFUSED("PAR1\x15", "a Parquet file", "export it as text"),
	REFUSED("Obj\x01", "an Avro file", "export it as text"),
	REFUSED("\xd4\xc3\xb2\xa1", "a packet capture", "export it as text"),
	REFUSED("\xa1\xb2\xc3\xd4", "a packet capture", "export it as text"),
	REFUSED("\x0a\x0d\x0d\x0a\x1c\x00\x00\x00", "a packet capture", "export it as text"),
	REFUSED("\x7f"
            "ELF",
            "a program", "give a log"),
};

/* Text that is nothing but that: its whole first line. */
static const struct kind texts[] = {
	REFUSED("age-encryption.org/v1\n", "encrypted data (age)", "decrypt it first"),
	REFUSED("-----BEGIN PGP MESSAGE-----\n", "encrypted data (PGP)", "decrypt it first"),
	REFUSED("-----BEGIN PGP MESSAGE-----\r\n", "encrypted data (PGP)", "decrypt it first"),
};

enum {
	KIND_COUNT = sizeof kinds / sizeof *kinds,
	TEXT_COUNT = sizeof texts / sizeof *texts,
	WIDE_BYTES = 16,
	CONTROL_BYTES = 32, /* among so many there is one: bzip2's comes last, the fifteenth byte at most */
	ZSTD_BLOCK_MAX = 128 << 10,
	TAR_BYTES = 512, /* of a header */
	TAR_MAGIC_AT = 257,
	TAR_SUM_AT = 148,
	TAR_SUM_BYTES = 8,
};

/*
 * Whether the first bytes have what no line has: control characters that are neither blanks nor begin a colour.
 *
 * @param perhaps  set if they are too few to tell
 */
static bool has_control(const unsigned char *bytes, size_t length, bool *perhaps)
{
	static const char allowed[] = {'\t', '\n', '\v', '\f', '\r', '\x1b'};
	size_t end = length < CONTROL_BYTES ? length : CONTROL_BYTES;
	for (size_t i = 0; i < end; i++)
		if (bytes[i] < ' ' && memchr(allowed, bytes[i], sizeof allowed) == NULL)
			return true;
	*perhaps = length < CONTROL_BYTES;
	return false;
}

/*
 * The same of zstd's, whose first 32 bytes may do without one: whether the frame goes on as it must, with a first block
 * that is not too long. In text it would be.
 */
static bool is_zstd(const unsigned char *bytes, size_t length, bool *perhaps)
{
	static const uint8_t dictionary[] = {0, 1, 2, 4}, content[] = {0, 2, 4, 8};
	size_t at = 5;
	if (length >= at) {
		unsigned descriptor = bytes[4], is_single = descriptor >> 5 & 1, sized = descriptor >> 6;
		at += 1 - is_single + dictionary[descriptor & 3] + (sized == 0 ? is_single : content[sized]);
		if (length >= at + 3) {
			uint32_t block = bytes[at] | (uint32_t)bytes[at + 1] << 8 | (uint32_t)bytes[at + 2] << 16;
			return (block >> 1 & 3) != 3 && block >> 3 <= ZSTD_BLOCK_MAX;
		}
	}
	*perhaps = true;
	return false;
}

/* Whether they are a header whose sum is the one that it names in octal digits, itself taken as blanks. */
static bool is_tar(const unsigned char *bytes)
{
	uint32_t sum = 0, named = 0;
	for (uint32_t i = 0; i < TAR_BYTES; i++) {
		bool is_own = i >= TAR_SUM_AT && i < TAR_SUM_AT + TAR_SUM_BYTES;
		sum += is_own ? ' ' : bytes[i];
		if (is_own && bytes[i] >= '0' && bytes[i] <= '7')
			named = 8 * named + (bytes[i] - '0');
	}
	return sum == named && memchr(bytes, 0, TAR_BYTES) != NULL;
}

/* zstd data may also begin with a skippable frame, whose first byte has sixteen forms; lz4's has the same. */
static bool begins_skippable(const unsigned char *bytes, size_t length)
{
	static const unsigned char magic[] = {0x2a, 0x4d, 0x18};
	size_t compared = length > sizeof magic ? sizeof magic : length - 1;
	return length > 0 && (bytes[0] & 0xf0) == 0x50 && memcmp(bytes + 1, magic, compared) == 0;
}

/* UTF-16 without its mark: every other byte of the first is 0, the others are ASCII. */
static bool is_wide(const unsigned char *bytes, size_t length)
{
	if (length < WIDE_BYTES)
		return false;
	for (int zeros = 0; zeros < 2; zeros++) {
		size_t i = 0;
		while (i < WIDE_BYTES && ((int)(i % 2) == zeros ? bytes[i] == 0 : bytes[i] >= '\t' && bytes[i] < 0x7f))
			i++;
		if (i == WIDE_BYTES)
			return true;
	}
	return false;
}

static const struct kind wide = {"", 0, INPUT_REFUSED, NULL, "UTF-16 text", RECODE};
static const struct kind archive = {"", 0, INPUT_REFUSED, NULL, "a tar archive", UNPACK};
static const struct kind skippable = READ("", INPUT_ZSTD, &input_zstd);

/* One of a list that bytes begin as. @param perhaps  set if they are too few to tell */
static const struct kind *find_magic(const struct kind *list, size_t count, const unsigned char *bytes, size_t length,
                                     bool *perhaps)
{
	for (size_t i = 0; i < count; i++) {
		size_t compared = length < list[i].length ? length : list[i].length;
		if (memcmp(bytes, list[i].magic, compared) != 0)
			continue;
		if (length >= list[i].length)
			return &list[i];
		*perhaps = true;
	}
	return NULL;
}

static const struct kind *find(const unsigned char *bytes, size_t length, bool *perhaps)
{
	*perhaps = false;
	const struct kind *found = find_magic(texts, TEXT_COUNT, bytes, length, perhaps);
	if (found != NULL)
		return found;
	found = find_magic(kinds, KIND_COUNT, bytes, length, perhaps);
	if (found != NULL && (found->ops == &input_zstd ? is_zstd : has_control)(bytes, length, perhaps))
		return found;
	if (begins_skippable(bytes, length)) {
		if (length >= 4)
			return &skippable;
		*perhaps = true;
	}
	if (is_wide(bytes, length))
		return &wide;
	if (length >= TAR_BYTES && memcmp(bytes + TAR_MAGIC_AT, "ustar", 5) == 0 && is_tar(bytes))
		return &archive;
	return NULL;
}

enum input_kind input_kind_of(const void *bytes, size_t length, const struct input_codec_ops **ops, const void **what,
                              bool *perhaps)
{
	const struct kind *kind = find(bytes, length, perhaps);
	*ops = NULL;
	*what = NULL;
	if (kind == NULL)
		return INPUT_PLAIN;
	*perhaps = false;
	*ops = kind->ops != NULL ? kind->ops : &input_refused;
	*what = kind;
	return kind->kind;
}

/* ---- what is refused: a codec that decodes nothing ---- */

struct refused {
	const struct kind *kind;
	const char *within; /* the compression that it lies in, or NULL */
};

static void *refused_create(void)
{
	return weir_alloc(1, sizeof(struct refused));
}

void input_refused_set(void *codec, const void *what, const char *within)
{
	*(struct refused *)codec = (struct refused){.kind = what, .within = within};
}

static enum weir_status refused_decode(void *codec, struct input_step *step, struct weir_error *error)
{
	const struct refused *refused = codec;
	const struct kind *kind = refused->kind;
	(void)step;
	if (refused->within == NULL)
		return weir_fail(error, WEIR_INVALID, "it is %s, which weir does not read: %s", kind->name, kind->advice);
	if (kind->ops == NULL)
		return weir_fail(error, WEIR_INVALID, "it is %s within %s data, which weir does not read: %s", kind->name,
		                 refused->within, kind->advice);
	return weir_fail(error, WEIR_INVALID, "it is %s data within %s data, which weir does not read: " UNPACK,
	                 kind->ops->name, refused->within);
}

static bool refused_complete(const void *codec)
{
	(void)codec;
	return true;
}

static void refused_reset(void *codec)
{
	(void)codec;
}

const struct input_codec_ops input_refused = {
	.name = "refused",
	.create = refused_create,
	.decode = refused_decode,
	.complete = refused_complete,
	.reset = refused_reset,
	.destroy = free,
};

enum input_kind input_tell(const void *bytes, size_t length, bool *perhaps)
{
	const struct input_codec_ops *ops;
	const void *what;
	return input_kind_of(bytes, length, &ops, &what, perhaps);
}

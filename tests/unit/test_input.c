/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of plain and packed files alike: told by content, resumed at any offset, damage stated. */
#include "collector/input/input.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/unit/log_files.h"

#include <cmocka.h>

static const char *const line = "%d: the quick brown fox jumps over line %d\n";

static struct input *open_input(const char *name, bool growing)
{
	int fd = open(log_path(name), O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return input_new(fd, growing);
}

/* All that can be read; *status is what ended it. */
static struct log_bytes read_all(struct input *input, size_t step, enum weir_status *status, struct weir_error *error)
{
	size_t capacity = 4 << 20, got;
	struct log_bytes bytes = {.at = weir_alloc(capacity, 1)};
	while ((*status = input_read(input, bytes.at + bytes.length, step, &got, error)) == WEIR_OK) {
		assert_true(got >= 1 && got <= step);
		bytes.length += got;
		assert_true(bytes.length + step <= capacity);
	}
	return bytes;
}

/* Written as packed, it reads as plain. */
static void expect_reads(struct log_bytes plain, struct log_bytes packed, enum input_kind kind)
{
	struct weir_error error;
	enum weir_status status;
	size_t got;
	log_write("access.log.gz", O_TRUNC, packed.at, packed.length); /* the name says nothing */
	struct input *input = open_input("access.log.gz", false);
	struct log_bytes bytes = read_all(input, 1013, &status, &error);
	assert_int_equal(status, WEIR_END);
	assert_int_equal(input_kind(input), kind);
	assert_int_equal(input_compressed(input), kind != INPUT_PLAIN);
	assert_int_equal(bytes.length, plain.length);
	assert_memory_equal(bytes.at, plain.at, plain.length);
	assert_int_equal(input_offset(input), plain.length);
	/* forward, back, to the end, past it */
	size_t places[] = {plain.length / 2, 17, plain.length / 3, plain.length - 1, 0, plain.length};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		char piece[64];
		assert_int_equal(input_seek(input, places[i], &error), WEIR_OK);
		assert_int_equal(input_offset(input), places[i]);
		if (i % 2 == 0)
			input_park(input);
		assert_int_equal(input_read_full(input, piece, sizeof piece, &got, &error), WEIR_OK);
		size_t expected = plain.length - places[i] < sizeof piece ? plain.length - places[i] : sizeof piece;
		assert_int_equal(got, expected);
		assert_memory_equal(piece, plain.at + places[i], expected);
	}
	input_park(input);
	assert_int_equal(input_seek(input, 5, &error), WEIR_OK);
	assert_int_equal(input_offset(input), 5);
	input_park(input);
	assert_int_equal(input_seek(input, plain.length + 1, &error), WEIR_END);
	input_free(input);
	free(bytes.at);
}

static void compression_is_told_by_content(void **state)
{
	(void)state;
	struct log_bytes plain = log_lines(line, 1, 20000), gzip = log_gzip(plain), zstd = log_zstd(plain);
	expect_reads(plain, plain, INPUT_PLAIN);
	expect_reads(plain, gzip, INPUT_GZIP);
	expect_reads(plain, zstd, INPUT_ZSTD);
	free(plain.at);
	free(gzip.at);
	free(zstd.at);
}

static void members_and_frames_follow_one_another(void **state)
{
	(void)state;
	static const char padding[512], skippable[] = "P*M\030\003\0\0\0abc";
	struct log_bytes a = log_lines(line, 1, 3000), b = log_lines(line, 3001, 9000), nothing = {.at = NULL};
	struct log_bytes plain = log_joined(a, NULL, 0, b);
	struct log_bytes gzip_a = log_gzip(a), gzip_b = log_gzip(b), empty = log_gzip(nothing);
	struct log_bytes members = log_joined(gzip_a, empty.at, empty.length, gzip_b);
	struct log_bytes padded = log_joined(members, padding, sizeof padding, nothing);
	expect_reads(plain, padded, INPUT_GZIP);
	struct log_bytes zstd_a = log_zstd(a), zstd_b = log_zstd(b);
	struct log_bytes frames = log_joined(zstd_a, skippable, sizeof skippable - 1, zstd_b);
	expect_reads(plain, frames, INPUT_ZSTD);
	struct log_bytes led = log_joined(nothing, skippable, sizeof skippable - 1, zstd_a);
	expect_reads(a, led, INPUT_ZSTD);
	struct log_bytes all[] = {a, b, plain, gzip_a, gzip_b, empty, members, padded, zstd_a, zstd_b, frames, led};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i].at);
}

/* What could be read of half a file comes, then the words; when the rest is there it goes on. */
static void expect_cut(struct log_bytes plain, struct log_bytes packed, const char *words)
{
	struct weir_error error;
	enum weir_status status;
	log_write("cut.log", O_TRUNC, packed.at, packed.length / 2);
	struct input *input = open_input("cut.log", true);
	struct log_bytes first = read_all(input, 4096, &status, &error);
	char where[128];
	snprintf(where, sizeof where, "%s, at byte %zu: the rest is missing", words, packed.length / 2);
	assert_int_equal(status, WEIR_INVALID);
	assert_true(input_cut(input));
	assert_string_equal(error.text, where);
	assert_true(first.length > 0);
	assert_memory_equal(first.at, plain.at, first.length);
	log_write("cut.log", 0, packed.at, packed.length);
	struct log_bytes rest = read_all(input, 4096, &status, &error);
	assert_int_equal(status, WEIR_END);
	assert_int_equal(first.length + rest.length, plain.length);
	assert_memory_equal(rest.at, plain.at + first.length, rest.length);
	input_free(input);
	free(first.at);
	free(rest.at);
}

static void cut_data_goes_on_when_it_has_grown(void **state)
{
	(void)state;
	struct log_bytes plain = log_lines(line, 1, 20000), gzip = log_gzip(plain), zstd = log_zstd(plain);
	expect_cut(plain, gzip, "ends in the middle of its gzip data");
	expect_cut(plain, zstd, "ends in the middle of its zstd data");
	free(plain.at);
	free(gzip.at);
	free(zstd.at);
}

static void expect_damage(struct log_bytes plain, struct log_bytes packed, const char *words)
{
	struct weir_error error;
	enum weir_status status;
	size_t got;
	char byte[4];
	log_write("damaged.log", O_TRUNC, packed.at, packed.length);
	struct input *input = open_input("damaged.log", false);
	struct log_bytes bytes = read_all(input, 4096, &status, &error);
	assert_int_equal(status, WEIR_INVALID);
	if (strncmp(error.text, words, strlen(words)) != 0)
		fail_msg("%s", error.text);
	assert_false(input_cut(input));
	/* where it is damaged, and how much is not read: together they are the file */
	unsigned long long at, missing;
	const char *where = strstr(error.text, ", at byte ");
	assert_non_null(where);
	assert_int_equal(sscanf(where, ", at byte %llu: %llu bytes of it are not read", &at, &missing), 2);
	assert_int_equal(at + missing, packed.length);
	assert_int_equal(input_read(input, byte, 1, &got, &error), WEIR_INVALID); /* and it stays so */
	assert_int_equal(got, 0);
	assert_int_equal(input_seek(input, 0, &error), WEIR_OK);
	assert_int_equal(input_read_full(input, byte, sizeof byte, &got, &error), WEIR_OK);
	assert_memory_equal(byte, plain.at, sizeof byte);
	input_free(input);
	free(bytes.at);
}

static void damage_is_stated(void **state)
{
	(void)state;
	struct log_bytes plain = log_lines(line, 1, 20000), gzip = log_gzip(plain), zstd = log_zstd(plain);
	struct log_bytes trailing = log_joined(gzip, "garbage", 7, (struct log_bytes){.at = NULL});
	expect_damage(plain, trailing, "the data after the end of the gzip data is not gzip");
	memset(gzip.at + gzip.length / 2, 'X', 64);
	expect_damage(plain, gzip, "the gzip data is damaged: ");
	memset(zstd.at + zstd.length - 64, 'X', 64);
	expect_damage(plain, zstd, "the zstd data is damaged: ");
	free(plain.at);
	free(gzip.at);
	free(zstd.at);
	free(trailing.at);
}

/* What comes before the damage is the same whatever is asked for at a time, and nothing of it is wrong. */
static void expect_same_before_damage(struct log_bytes packed, size_t *least, size_t *most)
{
	static const size_t steps[] = {1 << 20, 37, 700, 4096, 100000, 131072, 131073, 300000};
	struct log_bytes first = {.at = NULL};
	enum weir_status first_status = WEIR_OK;
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		struct weir_error error;
		enum weir_status status;
		log_write("damaged.log", O_TRUNC, packed.at, packed.length);
		struct input *input = open_input("damaged.log", false);
		struct log_bytes bytes = read_all(input, steps[i], &status, &error);
		input_free(input);
		if (i == 0) {
			first = bytes;
			first_status = status;
			continue;
		}
		assert_int_equal(status, first_status);
		assert_int_equal(bytes.length, first.length);
		assert_memory_equal(bytes.at, first.at, first.length);
		free(bytes.at);
	}
	*least = first.length < *least ? first.length : *least;
	*most = first.length > *most ? first.length : *most;
	free(first.at);
}

static void what_comes_before_damage_does_not_depend_on_reads(void **state)
{
	(void)state;
	/* several frames of several blocks, each kind of block, with a checksum and without */
	struct log_bytes small = log_lines("%d\n", 1, 3), large = log_lines(line, 1, 12000),
					 zeros = log_lines(line, 1, 4000);
	uint64_t random = 1;
	memset(zeros.at, 0, zeros.length);
	struct log_bytes noise = {.at = weir_alloc(150000, 1), .length = 150000};
	for (size_t i = 0; i < noise.length; i++)
		noise.at[i] = (char)((random = random * 6364136223846793005U + 1442695040888963407U) >> 33);
	struct log_bytes all = log_joined(large, noise.at, noise.length, zeros);
	struct log_bytes packed_all = log_zstd_checked(all), packed_small = log_zstd(small), packed_large = log_zstd(large);
	struct log_bytes two = log_joined(packed_small, packed_all.at, packed_all.length, packed_large);
	size_t least = SIZE_MAX, most = 0;
	for (size_t i = 0; i < 40; i++) {
		struct log_bytes damaged = log_joined(two, NULL, 0, (struct log_bytes){.at = NULL});
		size_t at = i < 20 ? two.length * i / 20 : (size_t)(random = random * 6364136223846793005U + 99) % two.length;
		damaged.at[at] = (char)(damaged.at[at] ^ (1 << (i % 8)));
		expect_same_before_damage(damaged, &least, &most);
		free(damaged.at);
	}
	assert_true(least < most); /* they were damaged here and there */
	struct log_bytes *made[] = {&small, &large, &zeros, &noise, &all, &packed_all, &packed_small, &packed_large, &two};
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		free(made[i]->at);
}

static void short_beginnings_wait_only_where_more_may_come(void **state)
{
	(void)state;
	struct weir_error error;
	char bytes[16];
	size_t got;
	log_replace("short.log", "");
	struct input *growing = open_input("short.log", true);
	assert_int_equal(input_read(growing, bytes, sizeof bytes, &got, &error), WEIR_END);
	log_append("short.log", "("); /* a zstd frame may begin so */
	assert_int_equal(input_read(growing, bytes, sizeof bytes, &got, &error), WEIR_END);
	assert_int_equal(input_kind(growing), INPUT_UNKNOWN);
	struct input *whole = open_input("short.log", false);
	assert_int_equal(input_read(whole, bytes, sizeof bytes, &got, &error), WEIR_OK);
	assert_int_equal(got, 1);
	assert_int_equal(input_kind(whole), INPUT_PLAIN);
	log_append("short.log", "a)\n");
	assert_int_equal(input_read_full(growing, bytes, sizeof bytes, &got, &error), WEIR_OK);
	assert_int_equal(got, 4);
	assert_memory_equal(bytes, "(a)\n", 4);
	/* a plain file grows on */
	log_append("short.log", "more\n");
	assert_int_equal(input_ahead(growing), 5);
	assert_int_equal(input_read_full(growing, bytes, sizeof bytes, &got, &error), WEIR_OK);
	assert_int_equal(got, 5);
	input_free(growing);
	input_free(whole);
}

static void a_descriptor_is_read_from_where_it_stands(void **state)
{
	(void)state;
	struct weir_error error;
	char bytes[16];
	size_t got;
	log_replace("begun.log", "first\nsecond\n");
	int fd = open(log_path("begun.log"), O_RDONLY);
	assert_int_equal(read(fd, bytes, 6), 6);
	struct input *input = input_new(fd, false);
	assert_int_equal(input_read_full(input, bytes, sizeof bytes, &got, &error), WEIR_OK);
	assert_int_equal(got, 7);
	assert_memory_equal(bytes, "second\n", 7);
	assert_int_equal(input_offset(input), 7);
	assert_int_equal(input_seek(input, 3, &error), WEIR_OK);
	assert_int_equal(input_read_full(input, bytes, sizeof bytes, &got, &error), WEIR_OK);
	assert_memory_equal(bytes, "ond\n", 4);
	input_free(input);
}

static void pipes_are_read_as_they_fill(void **state)
{
	(void)state;
	struct weir_error error;
	char bytes[16];
	size_t got, used = 0;
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	struct input *input = input_new(ends[0], true);
	assert_int_equal(input_read(input, bytes, sizeof bytes, &got, &error), WEIR_AGAIN);
	assert_int_equal(write(ends[1], "ab", 2), 2);
	assert_int_equal(input_read(input, bytes, sizeof bytes, &got, &error), WEIR_OK);
	assert_int_equal(got, 2);
	assert_int_equal(input_read(input, bytes, sizeof bytes, &got, &error), WEIR_AGAIN);
	assert_int_equal(write(ends[1], "c\n", 2), 2);
	close(ends[1]);
	assert_int_equal(input_read(input, bytes, sizeof bytes, &got, &error), WEIR_OK);
	assert_int_equal(input_read(input, bytes, sizeof bytes, &got, &error), WEIR_END);
	input_free(input);

	/* compressed, and one byte at a time */
	struct log_bytes plain = log_lines(line, 1, 3), packed = log_gzip(plain);
	char *text = weir_alloc(plain.length + 1, 1);
	assert_int_equal(pipe(ends), 0);
	input = input_new(ends[0], true);
	for (size_t i = 0; i < packed.length; i++) {
		assert_int_equal(write(ends[1], packed.at + i, 1), 1);
		enum weir_status status;
		while ((status = input_read(input, text + used, plain.length + 1 - used, &got, &error)) == WEIR_OK)
			used += got;
		assert_int_equal(status, WEIR_AGAIN);
	}
	close(ends[1]);
	assert_int_equal(input_read(input, bytes, sizeof bytes, &got, &error), WEIR_END);
	assert_int_equal(used, plain.length);
	assert_memory_equal(text, plain.at, used);
	input_free(input);
	free(text);
	free(plain.at);
	free(packed.at);
}

static void failures_have_words(void **state)
{
	(void)state;
	struct weir_error error;
	char bytes[4];
	size_t got;
	struct input *input = input_new(open("/", O_RDONLY | O_DIRECTORY), true);
	assert_int_equal(input_read(input, bytes, sizeof bytes, &got, &error), WEIR_IO);
	assert_string_equal(error.text, "cannot read it: Is a directory");
	input_free(input);
}

/* bzip2 and xz as the others: several one after another, cut, and damaged. */
static void bzip2_and_xz_are_read(void **state)
{
	(void)state;
	struct log_bytes (*const packers[])(struct log_bytes) = {log_bzip2, log_xz};
	const enum input_kind kinds[] = {INPUT_BZIP2, INPUT_XZ};
	for (int i = 0; i < 2; i++) {
		struct weir_error error;
		enum weir_status status;
		struct log_bytes plain = log_lines(line, 1, 20000), more = log_lines(line, 20001, 20100);
		struct log_bytes packed = packers[i](plain), second = packers[i](more);
		expect_reads(plain, packed, kinds[i]);
		struct log_bytes both = log_joined(packed, "", 0, second), text = log_joined(plain, "", 0, more);
		expect_reads(text, both, kinds[i]);
		/* cut: what is there is read, and it goes on when it has grown */
		log_write("cut", O_TRUNC, both.at, packed.length / 2);
		struct input *input = open_input("cut", true);
		struct log_bytes bytes = read_all(input, 1013, &status, &error);
		assert_int_equal(status, WEIR_INVALID);
		assert_non_null(strstr(error.text, "ends in the middle"));
		assert_memory_equal(bytes.at, plain.at, bytes.length);
		log_write("cut", O_APPEND, both.at + packed.length / 2, both.length - packed.length / 2);
		struct log_bytes rest = read_all(input, 1013, &status, &error);
		assert_int_equal(status, WEIR_END);
		assert_int_equal(bytes.length + rest.length, text.length);
		assert_memory_equal(rest.at, text.at + bytes.length, rest.length);
		input_free(input);
		free(bytes.at);
		free(rest.at);
		/* damaged, and followed by something else */
		both.at[packed.length / 2] ^= 0x55;
		log_write("damaged", O_TRUNC, both.at, both.length);
		input = open_input("damaged", false);
		bytes = read_all(input, 1013, &status, &error);
		assert_int_equal(status, WEIR_INVALID);
		assert_non_null(strstr(error.text, "damaged"));
		input_free(input);
		free(bytes.at);
		both.at[packed.length / 2] ^= 0x55;
		log_write("trailing", O_TRUNC, packed.at, packed.length);
		log_append("trailing", "plain text behind it\n");
		input = open_input("trailing", false);
		bytes = read_all(input, 1013, &status, &error);
		assert_int_equal(status, WEIR_INVALID);
		assert_non_null(strstr(error.text, "after the end of the"));
		assert_int_equal(bytes.length, plain.length);
		input_free(input);
		free(bytes.at);
		free(plain.at);
		free(more.at);
		free(packed.at);
		free(second.at);
		free(both.at);
		free(text.at);
	}
}

/* As tar writes it. */
static void tar_header(char *tar, size_t bytes)
{
	unsigned sum = 8 * ' ';
	memset(tar, 0, bytes);
	memcpy(tar, "a.log", 5);
	memcpy(tar + 257, "ustar  ", 7);
	for (size_t i = 0; i < 512; i++)
		sum += (unsigned char)tar[i];
	snprintf(tar + 148, 8, "%06o", sum);
	tar[155] = ' ';
}

/* Whoever asks for something chooses much of a log's first line: nothing in it may keep the log from being read. */
static void a_line_that_looks_like_something_packed_is_a_line(void **state)
{
	(void)state;
	static const char *const begins[] = {
		"BZh9",
		"BZh91AY&SY",
		"(\xb5/\xfd",
		"(\xb5/\xfd$ ",
		"\xff\xfe",
		"\xfe\xff",
		"\xd4\xc3\xb2\xa1",
		"\xa1\xb2\xc3\xd4",
		"LPKSHHRH",
		"LPKSHHRH\t",
		"-----BEGIN PGP MESSAGE-----",
		"P*M",
		"7z\xbc\xaf'",
		"\x1b[31mRar!",
	};
	static const char rest[] = " 192.0.2.1 - - [10/Oct/2024:13:55:36 +0000] \"GET / HTTP/1.1\" 200 5\n";
	char begun[1024];
	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
		struct log_bytes plain = {.at = begun};
		plain.length = (size_t)snprintf(begun, sizeof begun, "%s%s", begins[i], rest);
		expect_reads(plain, plain, INPUT_PLAIN);
	}
	/* tar's name at its place, and colours, which have a control character */
	for (size_t i = 0; i < 5; i++) {
		struct log_bytes plain = {.at = begun, .length = sizeof begun};
		memcpy(begun, "\x1b[32m", 5);
		for (size_t at = 5; at < sizeof begun; at++)
			begun[at] = at == sizeof begun - 1 ? '\n' : "ustar"[(at + i) % 5];
		expect_reads(plain, plain, INPUT_PLAIN);
	}
}

static void what_holds_no_lines_is_refused_by_name(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t length;
		const char *words;
	} files[] = {
		{"PK\x03\x04rest of it", 14, "zip archive"},
		{"7z\xbc\xaf\x27\x1crest", 10, "7z archive"},
		{"\x04\x22\x4d\x18rest", 8, "lz4"},
		{"\x1f\x9d\x90rest", 7, "compress"},
		{"\xff\xfe"
	     "2\0"
	     "0\0",
	     6, "UTF-16"},
		{"\xfe\xff\0"
	     "2\0"
	     "0",
	     6, "UTF-16"},
		{"2\0"
	     "0\0"
	     "2\0"
	     "4\0"
	     "-\0"
	     "0\0"
	     "5\0"
	     "-\0"
	     "1\0",
	     18, "UTF-16"},
		{"\xff\xfe\0\0"
	     "2\0\0\0",
	     8, "UTF-32"},
		{"LZIP\x01rest", 9, "lzip"},
		{"LPKSHHRH\0\0\0\0rest", 16, "journal"},
		{"-----BEGIN PGP MESSAGE-----\n\n", 29, "encrypted"},
		{"-----BEGIN PGP MESSAGE-----\r\n", 29, "encrypted"},
	};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct weir_error error;
		char bytes[64];
		size_t got;
		log_write("file", O_TRUNC, files[i].bytes, files[i].length);
		struct input *input = open_input("file", false);
		assert_int_equal(input_read(input, bytes, sizeof bytes, &got, &error), WEIR_INVALID);
		assert_non_null(strstr(error.text, files[i].words));
		assert_int_equal(input_read(input, bytes, sizeof bytes, &got, &error), WEIR_INVALID);
		input_free(input);
	}
	/* what merely begins like them is text */
	const char *texts[] = {"PKI started\n", "7zip\n", "BZ\n", "Rar!\n", "PAR1 is parsed\n", "LZIP it\n"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct log_bytes plain = {.at = (char *)(uintptr_t)texts[i], .length = strlen(texts[i])};
		enum weir_status status;
		struct weir_error error;
		log_write("file", O_TRUNC, plain.at, plain.length);
		struct input *input = open_input("file", false);
		struct log_bytes bytes = read_all(input, 64, &status, &error);
		assert_int_equal(status, WEIR_END);
		assert_int_equal(bytes.length, plain.length);
		input_free(input);
		free(bytes.at);
	}
}

/* What is refused as it is is refused within any compression, and what merely begins like it is text there too. */
static void what_is_packed_is_looked_at(void **state)
{
	(void)state;
	struct log_bytes (*const packers[])(struct log_bytes) = {log_gzip, log_zstd, log_bzip2, log_xz};
	static const char *const outer[] = {"gzip", "zstd", "bzip2", "xz"};
	char tar[1024];
	tar_header(tar, sizeof tar);
	struct log_bytes text = {.at = "a line of text\n", .length = 15}, twice = log_gzip(text);
	const struct {
		struct log_bytes bytes;
		const char *words;
	} files[] = {
		{{"2\0000\0002\0004\0-\0000\0005\0-\0001\0", 18}, "it is UTF-16 text within %s data"},
		{{"PK\x03\x04rest of it", 14}, "it is a zip archive within %s data"},
		{{tar, sizeof tar}, "it is a tar archive within %s data"},
		{twice, "it is gzip data within %s data"},
	};
	for (size_t i = 0; i < sizeof packers / sizeof *packers; i++) {
		struct weir_error error;
		char bytes[64], words[128];
		size_t got;
		for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
			struct log_bytes packed = packers[i](files[k].bytes);
			log_write("file", O_TRUNC, packed.at, packed.length);
			struct input *input = open_input("file", k % 2 == 0);
			snprintf(words, sizeof words, files[k].words, outer[i]);
			for (int again = 0; again < 2; again++) {
				assert_int_equal(input_read(input, bytes, sizeof bytes, &got, &error), WEIR_INVALID);
				if (strncmp(error.text, words, strlen(words)) != 0)
					fail_msg("%s, not %s", error.text, words);
			}
			assert_false(input_cut(input));
			input_free(input);
			free(packed.at);
		}
		struct log_bytes plain = {.at = "PKI started\n", .length = 12}, packed = packers[i](plain);
		log_write("file", O_TRUNC, packed.at, packed.length);
		struct input *input = open_input("file", true);
		assert_int_equal(input_read(input, bytes, 5, &got, &error), WEIR_OK);
		input_park(input);
		assert_int_equal(input_read_full(input, bytes + 5, sizeof bytes - 5, &got, &error), WEIR_OK);
		assert_int_equal(got, 7);
		assert_memory_equal(bytes, plain.at, 12);
		assert_int_equal(input_seek(input, 4, &error), WEIR_OK);
		assert_int_equal(input_read_full(input, bytes, sizeof bytes, &got, &error), WEIR_OK);
		assert_int_equal(got, 8);
		input_free(input);
		free(packed.at);
	}
	free(twice.at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compression_is_told_by_content),
		cmocka_unit_test(members_and_frames_follow_one_another),
		cmocka_unit_test(cut_data_goes_on_when_it_has_grown),
		cmocka_unit_test(damage_is_stated),
		cmocka_unit_test(what_comes_before_damage_does_not_depend_on_reads),
		cmocka_unit_test(short_beginnings_wait_only_where_more_may_come),
		cmocka_unit_test(a_descriptor_is_read_from_where_it_stands),
		cmocka_unit_test(pipes_are_read_as_they_fill),
		cmocka_unit_test(failures_have_words),
		cmocka_unit_test(bzip2_and_xz_are_read),
		cmocka_unit_test(a_line_that_looks_like_something_packed_is_a_line),
		cmocka_unit_test(what_holds_no_lines_is_refused_by_name),
		cmocka_unit_test(what_is_packed_is_looked_at),
	};
	return cmocka_run_group_tests(tests, log_directory_make, log_directory_remove);
}

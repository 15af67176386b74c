/* SPDX-License-Identifier: Apache-2.0 */
/* Files known again by their bytes: the same, shorter, other, packed, and names of rotated ones. */
#include "collector/source/file/file_identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/unit/log_files.h"

#include <cmocka.h>

static const char *const line = "line number %d, and its sevenfold %d\n";

/* As a source takes it: the first bytes, then what is handed out. */
static struct fingerprint print_of(struct log_bytes bytes, size_t step)
{
	struct fingerprint print = {0};
	fingerprint_head(&print, bytes.at, bytes.length);
	for (size_t at = 0; at < bytes.length; at += step)
		fingerprint_note(&print, at, bytes.at + at, bytes.length - at < step ? bytes.length - at : step);
	return print;
}

static enum fingerprint_match check(const struct fingerprint *print, struct log_bytes bytes, uint64_t upto)
{
	log_write("file", O_TRUNC, bytes.at, bytes.length);
	struct input *input = input_new(open(log_path("file"), O_RDONLY | O_CLOEXEC), false);
	enum fingerprint_match match = fingerprint_check(print, input, upto, NULL);
	if (match == FINGERPRINT_SAME)
		assert_int_equal(input_offset(input), upto);
	input_free(input);
	return match;
}

static void a_file_is_known_again(void **state)
{
	(void)state;
	size_t steps[] = {1 << 20, 4096, 100, 33};
	for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
		struct log_bytes whole = log_lines(line, 1, 20000), half = whole;
		half.length /= 2;
		struct fingerprint print = print_of(half, steps[s]);
		assert_true(print.mark_count >= 5);
		struct log_bytes gzip = log_gzip(whole), zstd = log_zstd(whole);
		assert_int_equal(check(&print, whole, half.length), FINGERPRINT_SAME);
		assert_int_equal(check(&print, half, half.length), FINGERPRINT_SAME);
		assert_int_equal(check(&print, gzip, half.length), FINGERPRINT_SAME);
		assert_int_equal(check(&print, zstd, half.length), FINGERPRINT_SAME);
		assert_int_equal(check(&print, half, half.length + 1), FINGERPRINT_SHORTER);
		for (size_t length = 300; length < half.length; length = length * 3 + 1) {
			struct log_bytes cut = {.at = whole.at, .length = length};
			struct log_bytes packed = log_gzip(cut);
			assert_int_equal(check(&print, cut, half.length), FINGERPRINT_SHORTER);
			assert_int_equal(check(&print, packed, half.length), FINGERPRINT_SHORTER);
			assert_int_equal(check(&print, cut, length), length < 1024 ? FINGERPRINT_SHORTER : FINGERPRINT_SAME);
			struct fingerprint less = fingerprint_cut(&print, length);
			assert_int_equal(check(&less, cut, length), FINGERPRINT_SAME);
			free(packed.at);
		}
		assert_int_equal(check(&print, (struct log_bytes){.at = whole.at, .length = 0}, 100), FINGERPRINT_OTHER);
		whole.at[5] = '!';
		assert_int_equal(check(&print, whole, half.length), FINGERPRINT_OTHER);
		free(whole.at);
		free(gzip.at);
		free(zstd.at);
	}
}

static void another_that_begins_alike_is_told(void **state)
{
	(void)state;
	struct log_bytes a = log_lines(line, 1, 3000), b = log_lines(line, 1, 3000);
	struct fingerprint print = print_of(a, 4096);
	size_t place = a.length * 3 / 4;
	/* From three quarters on it is another: a mark lies somewhere in the first quarter before the end. */
	memset(b.at + a.length / 8, '!', b.length - a.length / 8);
	assert_int_equal(check(&print, b, place), FINGERPRINT_OTHER);
	free(a.at);
	free(b.at);
}

static void beginnings_are_compared(void **state)
{
	(void)state;
	char head[FINGERPRINT_HEAD_BYTES];
	memset(head, 'a', sizeof head);
	struct fingerprint nothing = {0}, some = {0}, whole = {0};
	fingerprint_head(&some, head, 100);
	fingerprint_head(&whole, head, sizeof head);
	assert_true(fingerprint_begins(&nothing, &nothing, head));
	assert_true(fingerprint_begins(&nothing, &whole, head));
	assert_true(fingerprint_begins(&some, &whole, head));
	assert_true(fingerprint_begins(&whole, &whole, head));
	assert_false(fingerprint_begins(&whole, &some, head));
	assert_false(fingerprint_begins(&some, &nothing, head));
	head[50] = 'b';
	struct fingerprint other = {0};
	fingerprint_head(&other, head, sizeof head);
	assert_false(fingerprint_begins(&some, &other, head));
	/* a head only grows */
	fingerprint_head(&whole, head, 10);
	assert_int_equal(whole.head_bytes, FINGERPRINT_HEAD_BYTES);
}

static void names_of_rotated_files(void **state)
{
	(void)state;
	static const struct {
		const char *base, *name;
		enum file_rotated rotated;
	} cases[] = {
		{"access.log", "access.log.1", FILE_ROTATED},
		{"access.log", "access.log.12.gz", FILE_ROTATED},
		{"access.log", "access.log.gz", FILE_ROTATED},
		{"access.log", "access.log.zst", FILE_ROTATED},
		{"access.log", "access.log-20240131", FILE_ROTATED},
		{"access.log", "access.log-20240131.zst", FILE_ROTATED},
		{"access.log", "access.log.2024-01-31T12:00", FILE_ROTATED},
		{"access.log", "access.log.old", FILE_ROTATED},
		{"access.log", "access-20240131.log", FILE_ROTATED_MAYBE},
		{"access.log", "access.1.log.gz", FILE_ROTATED_MAYBE},
		{"access", "access.1", FILE_ROTATED},
		{"access.log", "access.log", FILE_ROTATED_NOT},
		{"access.log", "access.log.bak", FILE_ROTATED_NOT},
		{"access.log", "access.log.offset", FILE_ROTATED_NOT},
		{"access.log", "access.log1", FILE_ROTATED_NOT},
		{"access.log", "access.log.", FILE_ROTATED_NOT},
		{"access.log", "access.log.-", FILE_ROTATED_NOT},
		{"access.log", "access-error.log", FILE_ROTATED_NOT},
		{"access.log", "error.log.1", FILE_ROTATED_NOT},
		{"access.log", "access", FILE_ROTATED_NOT},
		{".log", "1.log", FILE_ROTATED_NOT},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (file_identity_rotated(cases[i].base, cases[i].name) != cases[i].rotated)
			fail_msg("%s of %s", cases[i].name, cases[i].base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_known_again),
		cmocka_unit_test(another_that_begins_alike_is_told),
		cmocka_unit_test(beginnings_are_compared),
		cmocka_unit_test(names_of_rotated_files),
	};
	return cmocka_run_group_tests(tests, log_directory_make, log_directory_remove);
}

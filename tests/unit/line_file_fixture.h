/* SPDX-License-Identifier: Apache-2.0 */
/* Output files for tests: opened in a scratch directory, filled with lines, compared whole. */
#ifndef TESTS_UNIT_LINE_FILE_FIXTURE_H
#define TESTS_UNIT_LINE_FILE_FIXTURE_H

#include "common/files/durable_file.h"
#include "common/files/line_file.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

static char path_buffer[16][512];

static inline const char *in(void **state, const char *name)
{
	static int next;
	char *path = path_buffer[next++ % 16];
	snprintf(path, sizeof path_buffer[0], "%s/%s", (const char *)*state, name);
	return path;
}

static inline void assert_file(const char *path, const char *expected)
{
	char *bytes;
	size_t length;
	assert_int_equal(WEIR_OK, weir_durable_read(path, 1 << 26, &bytes, &length, NULL));
	if (expected == NULL) {
		assert_null(bytes);
		return;
	}
	assert_non_null(bytes);
	assert_string_equal(expected, bytes);
	free(bytes);
}

/* Where the file that is opened next logs. */
static struct weir_log file_log = {.fd = -1};

static inline void log_to(const char *path)
{
	file_log.fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
	assert_true(file_log.fd >= 0);
}

static inline void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static inline struct weir_line_file *open_file(const char *path, int64_t rotate_bytes, uint32_t keep)
{
	struct weir_line_file_options options = {
		.path = path, .rotate_bytes = rotate_bytes, .keep = keep, .log = &file_log};
	struct weir_line_file *file;
	assert_int_equal(WEIR_OK, weir_line_file_open(&options, &file, NULL));
	return file;
}

static inline void append(struct weir_line_file *file, const char *lines)
{
	assert_int_equal(WEIR_OK, weir_line_file_append(file, weir_span_of(lines)));
}

static inline void flush(struct weir_line_file *file)
{
	struct weir_error error = {.text = ""};
	if (weir_line_file_flush(file, &error) != WEIR_OK)
		fail_msg("%s", error.text);
}

static inline void close_file(struct weir_line_file *file)
{
	assert_int_equal(WEIR_OK, weir_line_file_close(file, NULL));
}

static inline bool same_file(struct weir_line_file_mark a, struct weir_line_file_mark b)
{
	return a.device == b.device && a.inode == b.inode && a.born_ns == b.born_ns;
}

static inline void set_file_limit(rlim_t bytes)
{
	struct rlimit limit;
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &limit));
}

/* Writes numbered lines first..last in appends and flushes of random sizes. */
static inline void write_lines(struct weir_line_file *file, int first, int last, unsigned *seed)
{
	char lines[4096];
	size_t used = 0;
	for (int i = first; i < last; i++) {
		used += (size_t)snprintf(lines + used, sizeof lines - used, "line %d %.*s\n", i, i % 13, "xxxxxxxxxxxxxxx");
		if (rand_r(seed) % 4 == 0 || used > 4000 || i == last - 1) {
			append(file, lines);
			used = 0;
		}
		if (rand_r(seed) % 9 == 0)
			flush(file);
	}
}

static inline void assert_same_files(void **state, const char *a, const char *b, int most)
{
	for (int i = 0; i <= most; i++) {
		char name[32], *bytes;
		size_t length;
		snprintf(name, sizeof name, i > 0 ? "%s.%d" : "%s", b, i);
		assert_int_equal(WEIR_OK, weir_durable_read(in(state, name), 1 << 20, &bytes, &length, NULL));
		snprintf(name, sizeof name, i > 0 ? "%s.%d" : "%s", a, i);
		assert_file(in(state, name), bytes);
		free(bytes);
	}
}

#endif

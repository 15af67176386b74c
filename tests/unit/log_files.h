/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary log files for tests: written, appended to, packed, in a directory that goes with the test program. */
#ifndef TESTS_UNIT_LOG_FILES_H
#define TESTS_UNIT_LOG_FILES_H

#include "common/base/alloc.h"

#include <bzlib.h>
#include <fcntl.h>
#include <limits.h>
#include <lzma.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

struct log_bytes {
	char *at;
	size_t length;
};

static char log_directory[64];

static inline int log_directory_make(void **state)
{
	(void)state;
	snprintf(log_directory, sizeof log_directory, "/tmp/weir-test-XXXXXX");
	return mkdtemp(log_directory) != NULL ? 0 : -1;
}

static inline int log_directory_remove(void **state)
{
	(void)state;
	char command[192];
	snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", log_directory, log_directory);
	return system(command);
}

/* A path in the directory; valid until the fourth call after. */
static inline const char *log_path(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned turn;
	char *path = paths[turn++ % 4];
	snprintf(path, PATH_MAX, "%s/%s", log_directory, name);
	return path;
}

static inline void log_write(const char *name, int flags, const void *bytes, size_t length)
{
	int fd = open(log_path(name), O_WRONLY | O_CREAT | flags, 0600);
	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
		abort();
	close(fd);
}

static inline void log_append(const char *name, const char *text)
{
	log_write(name, O_APPEND, text, strlen(text));
}

static inline void log_replace(const char *name, const char *text)
{
	log_write(name, O_TRUNC, text, strlen(text));
}

static inline void log_rename(const char *from, const char *to)
{
	if (rename(log_path(from), log_path(to)) != 0)
		abort();
}

static inline void log_remove(const char *name)
{
	if (unlink(log_path(name)) != 0)
		abort();
}

/* Numbered lines first..last, formatted by their number. */
static inline struct log_bytes log_lines(const char *format, int first, int last)
{
	struct log_bytes text = {.at = weir_alloc((size_t)(last - first + 1), 256)};
	for (int i = first; i <= last; i++)
		text.length += (size_t)snprintf(text.at + text.length, 256, format, i, i * 7);
	return text;
}

static inline struct log_bytes log_gzip(struct log_bytes plain)
{
	z_stream stream = {0};
	if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	struct log_bytes packed = {.at = weir_alloc(deflateBound(&stream, plain.length), 1)};
	stream.next_in = (Bytef *)plain.at;
	stream.avail_in = (uInt)plain.length;
	stream.next_out = (Bytef *)packed.at;
	stream.avail_out = (uInt)deflateBound(&stream, plain.length);
	if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
		abort();
	packed.length = stream.total_out;
	deflateEnd(&stream);
	return packed;
}

static inline struct log_bytes log_zstd(struct log_bytes plain)
{
	struct log_bytes packed = {.at = weir_alloc(ZSTD_compressBound(plain.length), 1)};
	packed.length = ZSTD_compress(packed.at, ZSTD_compressBound(plain.length), plain.at, plain.length, 3);
	return packed;
}

/* The same, with a checksum at its end. */
static inline struct log_bytes log_zstd_checked(struct log_bytes plain)
{
	struct log_bytes packed = {.at = weir_alloc(ZSTD_compressBound(plain.length), 1)};
	ZSTD_CCtx *context = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	packed.length = ZSTD_compress2(context, packed.at, ZSTD_compressBound(plain.length), plain.at, plain.length);
	ZSTD_freeCCtx(context);
	return packed;
}

static inline struct log_bytes log_bzip2(struct log_bytes plain)
{
	unsigned length = (unsigned)(plain.length + plain.length / 100 + 1024);
	struct log_bytes packed = {.at = weir_alloc(length, 1)};
	if (BZ2_bzBuffToBuffCompress(packed.at, &length, plain.at, (unsigned)plain.length, 9, 0, 0) != BZ_OK)
		abort();
	packed.length = length;
	return packed;
}

static inline struct log_bytes log_xz(struct log_bytes plain)
{
	size_t most = lzma_stream_buffer_bound(plain.length);
	struct log_bytes packed = {.at = weir_alloc(most, 1)};
	if (lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, (const uint8_t *)plain.at, plain.length,
	                            (uint8_t *)packed.at, &packed.length, most) != LZMA_OK)
		abort();
	return packed;
}

static inline struct log_bytes log_joined(struct log_bytes a, const void *between, size_t length, struct log_bytes b)
{
	struct log_bytes all = {.at = weir_alloc(a.length + length + b.length, 1), .length = a.length + length + b.length};
	if (a.length > 0)
		memcpy(all.at, a.at, a.length);
	if (length > 0)
		memcpy(all.at + a.length, between, length);
	if (b.length > 0)
		memcpy(all.at + a.length + length, b.at, b.length);
	return all;
}

static inline struct log_bytes log_read(const char *name)
{
	struct stat about;
	int fd = open(log_path(name), O_RDONLY);
	if (fd < 0 || fstat(fd, &about) != 0)
		abort();
	struct log_bytes bytes = {.at = weir_alloc((size_t)about.st_size + 1, 1), .length = (size_t)about.st_size};
	if (read(fd, bytes.at, bytes.length) != (ssize_t)bytes.length)
		abort();
	close(fd);
	return bytes;
}

/* As gzip and logrotate do it: the packed file beside, then the plain one goes. */
static inline void log_pack_by(const char *name, const char *packed_name, struct log_bytes (*pack)(struct log_bytes))
{
	struct log_bytes plain = log_read(name), packed = pack(plain);
	struct stat about;
	if (stat(log_path(name), &about) != 0)
		abort();
	log_write(packed_name, O_TRUNC, packed.at, packed.length);
	struct timespec times[2] = {about.st_atim, about.st_mtim};
	utimensat(AT_FDCWD, log_path(packed_name), times, 0);
	log_remove(name);
	free(plain.at);
	free(packed.at);
}

static inline void log_pack(const char *name, const char *packed_name)
{
	log_pack_by(name, packed_name, log_gzip);
}

#endif

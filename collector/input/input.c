/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a descriptor, and undoing its compression where there is one.
 *
 * Plain files are read by pread straight into the caller's buffer: one copy,
 * out of the page cache. A map would save it, but a file truncated under a map
 * ends the process, and logs are truncated. Compressed bytes and those of a
 * pipe whose kind is not told yet go through a buffer here.
 */
#include "collector/input/input.h"

#include "collector/input/input_codec.h"
#include "common/base/alloc.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RAW_BYTES = 128 << 10, RAW_FIRST_BYTES = 4 << 10, SKIP_BYTES = 64 << 10, MAGIC_BYTES = 32, INSIDE_BYTES = 512 };

struct input {
	int fd;
	bool regular;
	bool growing;
	enum input_kind kind;
	uint64_t offset;     /* uncompressed: of the next byte given */
	uint64_t raw_base;   /* in the file: where it began to be read */
	uint64_t raw_offset; /* in the file: of the next byte read from it */
	unsigned char *raw;  /* NULL until it is needed: few bytes tell the kind */
	size_t raw_capacity, raw_at, raw_end;
	const struct input_codec_ops *ops; /* NULL for plain */
	void *codec;                       /* NULL while it is parked, too */
	bool cut;                          /* the last read found that the compressed data ends where it cannot */
	bool inside_told;                  /* what the compressed data holds is known */
	unsigned char *inside;             /* its first bytes, by which that is told, until they are given; or NULL */
	size_t inside_at, inside_end;
};

struct input *input_new(int fd, bool growing)
{
	struct input *input = weir_alloc(1, sizeof *input);
	struct stat about;
	input->fd = fd;
	input->growing = growing;
	input->regular = fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
	off_t place = input->regular ? lseek(fd, 0, SEEK_CUR) : 0;
	input->raw_base = input->raw_offset = place > 0 ? (uint64_t)place : 0;
	return input;
}

struct input *input_new_plain(int fd)
{
	struct input *input = input_new(fd, false);
	input->kind = INPUT_PLAIN;
	return input;
}

void input_free(struct input *input)
{
	if (input == NULL)
		return;
	if (input->codec != NULL)
		input->ops->destroy(input->codec);
	free(input->raw);
	free(input->inside);
	close(input->fd);
	free(input);
}

int input_fd(const struct input *input)
{
	return input->fd;
}

enum input_kind input_kind(const struct input *input)
{
	return input->kind;
}

bool input_compressed(const struct input *input)
{
	return input->ops != NULL;
}

bool input_cut(const struct input *input)
{
	return input->cut;
}

uint64_t input_offset(const struct input *input)
{
	return input->offset;
}

uint64_t input_ahead(const struct input *input)
{
	struct stat about;
	if (!input->regular || fstat(input->fd, &about) != 0)
		return UINT64_MAX;
	if ((uint64_t)about.st_size < input->raw_offset)
		return 0;
	return (uint64_t)about.st_size - input->raw_offset + (input->raw_end - input->raw_at);
}

/* Raw bytes from the descriptor. WEIR_OK: *got >= 1. */
static enum weir_status read_raw(struct input *input, void *bytes, size_t most, size_t *got, struct weir_error *error)
{
	if (!input->regular) {
		struct pollfd ready = {.fd = input->fd, .events = POLLIN};
		if (poll(&ready, 1, 0) == 0)
			return WEIR_AGAIN;
	}
	ssize_t count;
	do {
		count = input->regular ? pread(input->fd, bytes, most, (off_t)input->raw_offset) : read(input->fd, bytes, most);
	} while (count < 0 && errno == EINTR);
	if (count < 0) {
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return WEIR_AGAIN;
		return weir_fail(error, WEIR_IO, "cannot read it: %s", weir_errno_words(errno));
	}
	if (count == 0)
		return WEIR_END;
	input->raw_offset += (uint64_t)count;
	*got = (size_t)count;
	return WEIR_OK;
}

/* Adds raw bytes to those in the buffer. */
static enum weir_status fill_raw(struct input *input, struct weir_error *error)
{
	size_t wanted = input->kind == INPUT_UNKNOWN && input->regular ? RAW_FIRST_BYTES : RAW_BYTES;
	if (input->raw_capacity < wanted) {
		input->raw = weir_realloc(input->raw, wanted, 1);
		input->raw_capacity = wanted;
	}
	if (input->raw_at > 0) {
		memmove(input->raw, input->raw + input->raw_at, input->raw_end - input->raw_at);
		input->raw_end -= input->raw_at;
		input->raw_at = 0;
	}
	size_t got = 0;
	enum weir_status status =
		read_raw(input, input->raw + input->raw_end, input->raw_capacity - input->raw_end, &got, error);
	input->raw_end += got;
	return status;
}

/* @param within  the compression that it lies in, or NULL */
static void use_kind(struct input *input, enum input_kind kind, const struct input_codec_ops *ops, const void *what,
                     const char *within)
{
	input->kind = kind;
	input->ops = ops;
	if (ops == NULL)
		return;
	input->codec = ops->create();
	if (kind == INPUT_REFUSED)
		input_refused_set(input->codec, what, within);
}

/* Tells the kind by the first bytes. A short beginning that fits several kinds waits for more while it may come. */
static enum weir_status detect_kind(struct input *input, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	while (input->raw_end < MAGIC_BYTES && status == WEIR_OK)
		status = fill_raw(input, error);
	size_t length = input->raw_end;
	if (status != WEIR_OK && status != WEIR_END && length == 0)
		return status;
	if (length == 0)
		return WEIR_END;
	const struct input_codec_ops *ops;
	const void *what;
	bool perhaps;
	enum input_kind kind = input_kind_of(input->raw, length, &ops, &what, &perhaps);
	if (perhaps && (status == WEIR_AGAIN || (status == WEIR_END && input->growing && input->regular)))
		return status;
	use_kind(input, kind, ops, what, NULL);
	return WEIR_OK;
}

static enum weir_status read_plain(struct input *input, void *bytes, size_t most, size_t *got, struct weir_error *error)
{
	size_t held = input->raw_end - input->raw_at;
	if (held > 0) { /* what told the kind */
		*got = held < most ? held : most;
		memcpy(bytes, input->raw + input->raw_at, *got);
		input->raw_at += *got;
		return WEIR_OK;
	}
	if (input->raw != NULL) {
		free(input->raw);
		input->raw = NULL;
		input->raw_capacity = input->raw_at = input->raw_end = 0;
	}
	return read_raw(input, bytes, most, got, error);
}

static void drop_inside(struct input *input)
{
	free(input->inside);
	input->inside = NULL;
	input->inside_at = input->inside_end = 0;
}

void input_park(struct input *input)
{
	if (input->codec == NULL || !input->regular || input->kind == INPUT_REFUSED)
		return;
	input->ops->destroy(input->codec);
	input->codec = NULL;
	free(input->raw);
	input->raw = NULL;
	input->raw_capacity = input->raw_at = input->raw_end = 0;
	drop_inside(input);
}

/* To where it was when it was parked. */
static enum weir_status unpark(struct input *input, struct weir_error *error)
{
	uint64_t offset = input->offset;
	input->codec = input->ops->create();
	input->raw_offset = input->raw_base;
	input->offset = 0;
	enum weir_status status = fill_raw(input, error);
	if (status == WEIR_OK)
		status = input_seek(input, offset, error);
	if (status == WEIR_OK)
		return WEIR_OK;
	input_park(input); /* it stands where it stood */
	input->offset = offset;
	return status == WEIR_END ? weir_fail(error, WEIR_INVALID, "is shorter than it was") : status;
}

/* Says where in the file the compressed data cannot be read further, and how much of the file that is not read. */
static enum weir_status say_where(struct input *input, struct weir_error *error)
{
	uint64_t ahead = input_ahead(input), at = input->raw_offset - (input->raw_end - input->raw_at);
	if (input->kind == INPUT_REFUSED)
		return WEIR_INVALID;
	weir_error_append(error, ", at byte %llu", (unsigned long long)at);
	if (ahead != UINT64_MAX)
		weir_error_append(error, ": %llu bytes of it are not read", (unsigned long long)ahead);
	return WEIR_INVALID;
}

static enum weir_status decompress(struct input *input, void *bytes, size_t most, size_t *got, struct weir_error *error)
{
	for (;;) {
		struct input_step step = {
			.at = input->raw + input->raw_at, .rest = input->raw_end - input->raw_at, .out = bytes, .room = most};
		size_t rest = step.rest;
		enum weir_status status = input->ops->decode(input->codec, &step, error);
		input->raw_at = input->raw_end - step.rest;
		*got = most - step.room;
		if (*got > 0)
			return WEIR_OK; /* damage behind it shows at the next call */
		if (status != WEIR_OK)
			return status == WEIR_INVALID ? say_where(input, error) : status;
		if (step.rest > 0 && step.rest < rest)
			continue;
		status = fill_raw(input, error);
		if (status == WEIR_END && !input->ops->complete(input->codec)) {
			input->cut = true;
			return weir_fail(error, WEIR_INVALID,
			                 "ends in the middle of its %s data, at byte %llu: the rest is missing", input->ops->name,
			                 (unsigned long long)input->raw_offset);
		}
		if (status != WEIR_OK)
			return status;
	}
}

/* What holds no lines holds none when it is compressed either: it is told by its first bytes, and refused. */
static enum weir_status look_inside(struct input *input, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	if (input->inside == NULL)
		input->inside = weir_alloc(INSIDE_BYTES, 1);
	while (input->inside_end < INSIDE_BYTES && status == WEIR_OK) {
		size_t got = 0;
		status = decompress(input, input->inside + input->inside_end, INSIDE_BYTES - input->inside_end, &got, error);
		input->inside_end += got;
	}
	if (status == WEIR_IO || input->inside_end == 0)
		return status;
	const struct input_codec_ops *ops;
	const void *what;
	bool perhaps;
	if (input_kind_of(input->inside, input->inside_end, &ops, &what, &perhaps) == INPUT_PLAIN) {
		if (perhaps && status != WEIR_OK && (status == WEIR_AGAIN || input->growing))
			return status;
	} else {
		const char *within = input->ops->name;
		input->ops->destroy(input->codec);
		use_kind(input, INPUT_REFUSED, &input_refused, what, within);
		drop_inside(input);
	}
	input->inside_told = true;
	return WEIR_OK;
}

static enum weir_status read_compressed(struct input *input, void *bytes, size_t most, size_t *got,
                                        struct weir_error *error)
{
	input->cut = false;
	if (!input->inside_told && input->kind != INPUT_REFUSED) {
		enum weir_status status = look_inside(input, error);
		if (status != WEIR_OK)
			return status;
	}
	size_t held = input->inside_end - input->inside_at;
	if (held == 0) {
		drop_inside(input);
		return decompress(input, bytes, most, got, error);
	}
	*got = held < most ? held : most;
	memcpy(bytes, input->inside + input->inside_at, *got);
	input->inside_at += *got;
	return WEIR_OK;
}

enum weir_status input_read(struct input *input, void *bytes, size_t most, size_t *got, struct weir_error *error)
{
	*got = 0;
	if (input->kind == INPUT_UNKNOWN) {
		enum weir_status status = detect_kind(input, error);
		if (status != WEIR_OK)
			return status;
	}
	if (input->ops != NULL && input->codec == NULL) {
		enum weir_status status = unpark(input, error);
		if (status != WEIR_OK)
			return status;
	}
	enum weir_status status = input->ops != NULL ? read_compressed(input, bytes, most, got, error)
	                                             : read_plain(input, bytes, most, got, error);
	input->offset += *got;
	return status;
}

enum weir_status input_read_full(struct input *input, void *bytes, size_t most, size_t *got, struct weir_error *error)
{
	*got = 0;
	while (*got < most) {
		size_t count;
		enum weir_status status = input_read(input, (char *)bytes + *got, most - *got, &count, error);
		if (status == WEIR_END)
			break;
		if (status != WEIR_OK)
			return status;
		*got += count;
	}
	return WEIR_OK;
}

static void rewind_compressed(struct input *input)
{
	input->ops->reset(input->codec);
	input->raw_offset = input->raw_base;
	input->offset = 0;
	input->raw_at = input->raw_end = 0;
	drop_inside(input);
}

enum weir_status input_seek(struct input *input, uint64_t offset, struct weir_error *error)
{
	if (input->kind == INPUT_UNKNOWN && offset > 0) {
		enum weir_status status = detect_kind(input, error);
		if (status != WEIR_OK)
			return status;
	}
	if (input->ops == NULL && input->regular && input->kind == INPUT_PLAIN) {
		input->raw_at = input->raw_end = 0;
		input->raw_offset = input->raw_base + offset;
		input->offset = offset;
		struct stat about;
		if (fstat(input->fd, &about) != 0)
			return weir_fail(error, WEIR_IO, "cannot stat it: %s", weir_errno_words(errno));
		return (uint64_t)about.st_size < input->raw_offset ? WEIR_END : WEIR_OK;
	}
	if (input->ops != NULL && input->codec == NULL) {
		enum weir_status status = unpark(input, error);
		if (status != WEIR_OK)
			return status;
	}
	if (offset < input->offset && input->ops != NULL)
		rewind_compressed(input);
	char skipped[SKIP_BYTES];
	while (input->offset < offset) {
		uint64_t rest = offset - input->offset;
		size_t got;
		enum weir_status status =
			input_read(input, skipped, rest < sizeof skipped ? (size_t)rest : sizeof skipped, &got, error);
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

bool input_is_written(const struct input *input, uint64_t offset)
{
	char byte = 0;
	return input->kind == INPUT_PLAIN && input->regular &&
	       pread(input->fd, &byte, 1, (off_t)(input->raw_base + offset)) == 1 && byte != 0;
}

uint64_t input_skip_hole(struct input *input, uint64_t limit)
{
	if (input->kind != INPUT_PLAIN || !input->regular || input->raw_at < input->raw_end || limit <= input->offset)
		return 0;
	struct stat about;
	off_t data = lseek(input->fd, (off_t)input->raw_offset, SEEK_DATA);
	if (data < 0 && errno == ENXIO && fstat(input->fd, &about) == 0)
		data = about.st_size; /* a hole to the end */
	if (data < 0 || (uint64_t)data <= input->raw_offset)
		return 0;
	uint64_t hole = (uint64_t)data - input->raw_offset;
	hole = hole < limit - input->offset ? hole : limit - input->offset;
	input->raw_offset += hole;
	input->offset += hole;
	return hole;
}

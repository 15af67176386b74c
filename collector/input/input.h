/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's bytes, whatever it is packed in: plain, gzip, zstd, bzip2 or xz (also
 * several members or frames one after another), told by its first bytes and not
 * by its name. What holds no lines is refused, compressed too: an archive, UTF-16.
 * Offsets are those of the uncompressed bytes.
 *
 * @thread one at a time
 */
#ifndef COLLECTOR_INPUT_H
#define COLLECTOR_INPUT_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input;

enum input_kind {
	INPUT_UNKNOWN, /* too few bytes are there to tell */
	INPUT_PLAIN,
	INPUT_GZIP,
	INPUT_ZSTD,
	INPUT_BZIP2,
	INPUT_XZ,
	INPUT_REFUSED, /* each read fails and says what it is */
};

/**
 * Reads from a descriptor on, from where it stands: that is offset 0.
 *
 * @param fd       taken
 * @param growing  more may be written: a file of one byte that could begin a compressed one is not yet told
 */
struct input *input_new(int fd, bool growing);
/** The same of what is known to be plain, whatever its first bytes are. */
struct input *input_new_plain(int fd);
void input_free(struct input *input);

int input_fd(const struct input *input);
enum input_kind input_kind(const struct input *input);
bool input_compressed(const struct input *input);
/** Whether the last read was WEIR_INVALID because the compressed data ends where it cannot: it may yet grow. */
bool input_cut(const struct input *input);
/** Of the byte that the next read gives. */
uint64_t input_offset(const struct input *input);

/**
 * Tells what something is packed in by its first bytes.
 *
 * @param length   at least 1
 * @param perhaps  these bytes are too few: more may make it another kind than the one that is given
 */
enum input_kind input_tell(const void *bytes, size_t length, bool *perhaps);

/**
 * The next bytes: as many as are there, but perhaps fewer than asked for.
 *
 * @return WEIR_OK: *got >= 1; WEIR_END: no more (a file that has grown since gives more when asked again); WEIR_AGAIN:
 *         a pipe has none just now; WEIR_INVALID: the compressed data is damaged, or ends where it cannot (then it may
 *         continue when the file has grown); the words say at which byte of the file. WEIR_IO
 */
WEIR_MUST_USE enum weir_status input_read(struct input *input, void *bytes, size_t most, size_t *got,
                                          struct weir_error *error);

/** Reads until `most` bytes are there or no more come: *got may be 0. Statuses as input_read(), but for WEIR_END. */
WEIR_MUST_USE enum weir_status input_read_full(struct input *input, void *bytes, size_t most, size_t *got,
                                               struct weir_error *error);

/**
 * Goes to an offset, in regular files back too. Compressed data is decompressed up to there.
 *
 * @return WEIR_OK; WEIR_END: it has fewer bytes and stands at its end; WEIR_INVALID, WEIR_IO as input_read()
 */
WEIR_MUST_USE enum weir_status input_seek(struct input *input, uint64_t offset, struct weir_error *error);

/**
 * Gives back what decompressing holds, which of xz may be many MiB. The next read or seek decompresses up to here again,
 * so it pays near the beginning of an input that is not read for a while. Does nothing to a pipe.
 */
void input_park(struct input *input);

/**
 * Goes past a hole of a plain regular file, where it stands at one: nothing is read for it.
 *
 * @param limit  not beyond this offset
 * @return how many bytes of 0 lay there; 0: it stands at data, or that cannot be told
 */
uint64_t input_skip_hole(struct input *input, uint64_t limit);

/** Whether a plain regular file has another byte than 0 at an offset. */
bool input_is_written(const struct input *input, uint64_t offset);

/** How many bytes are known to lie ahead: of a compressed file compressed ones. UINT64_MAX where it cannot be told. */
uint64_t input_ahead(const struct input *input);

#endif

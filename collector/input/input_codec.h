/* SPDX-License-Identifier: Apache-2.0 */
/* How a compression is undone: one struct of functions a kind, input.c feeds it. */
#ifndef COLLECTOR_INPUT_CODEC_H
#define COLLECTOR_INPUT_CODEC_H

#include "collector/input/input.h"

#include <stdbool.h>
#include <stddef.h>

/* What one call of decode reads and writes; it moves at and out, and lowers their rests. */
struct input_step {
	const unsigned char *at;
	size_t rest;
	unsigned char *out;
	size_t room;
};

struct input_codec_ops {
	const char *name; /* for errors: "gzip" */
	void *(*create)(void);
	/**
	 * Decompresses what it can.
	 *
	 * @return WEIR_OK, also where nothing moved: it needs input; WEIR_INVALID: damaged
	 */
	enum weir_status (*decode)(void *codec, struct input_step *step, struct weir_error *error);
	/** Whether the data may end here: between members or frames. */
	bool (*complete)(const void *codec);
	void (*reset)(void *codec);
	void (*destroy)(void *codec);
};

extern const struct input_codec_ops input_gzip;
extern const struct input_codec_ops input_zstd;
extern const struct input_codec_ops input_bzip2;
extern const struct input_codec_ops input_xz;

/* Of files that hold no lines: whatever is decoded is an error that names the kind. */
extern const struct input_codec_ops input_refused;
/** @param within  the compression that it lies in, or NULL */
void input_refused_set(void *codec, const void *what, const char *within);

/**
 * Tells what a file is packed in.
 *
 * @param length   at least 1
 * @param ops      NULL for a plain file
 * @param what     of one that is refused: for input_refused_set()
 * @param perhaps  these bytes are too few: more may make it another kind than the one that is given
 */
enum input_kind input_kind_of(const void *bytes, size_t length, const struct input_codec_ops **ops, const void **what,
                              bool *perhaps);

#endif

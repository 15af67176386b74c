/* SPDX-License-Identifier: Apache-2.0 */
/* How a compression is undone: one struct of functions a kind, input.c feeds it. */
#ifndef COLLECTOR_INPUT_CODEC_H
#define COLLECTOR_INPUT_CODEC_H

#include "common/base/status.h"

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

#endif

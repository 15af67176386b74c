/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking in memory: a block at a time, so that nothing is reserved for what a few bytes claim to hold. */
#include "collector/input/input_unpack.h"

#include "collector/input/input_codec.h"

#include <assert.h>

enum { BLOCK_BYTES = 64 << 10 };

static enum weir_status unpack(const struct input_codec_ops *ops, void *codec, struct weir_span packed, size_t most,
                               struct weir_text *plain, struct weir_error *error)
{
	struct input_step step = {.at = (const unsigned char *)packed.at, .rest = packed.length};
	size_t begin = plain->length;
	for (;;) {
		size_t before = step.rest;
		step.out = (unsigned char *)weir_text_reserve(plain, BLOCK_BYTES);
		step.room = BLOCK_BYTES;
		enum weir_status status = ops->decode(codec, &step, error);
		plain->length += BLOCK_BYTES - step.room;
		if (status != WEIR_OK)
			return status;
		if (plain->length - begin > most)
			return weir_fail(error, WEIR_FULL, "it unpacks to more than %zu bytes", most);
		if (step.room == BLOCK_BYTES && step.rest == before)
			break;
	}
	if (step.rest == 0 && ops->complete(codec))
		return WEIR_OK;
	return weir_fail(error, WEIR_INVALID, "the %s data ends too early", ops->name);
}

enum weir_status input_unpack(enum input_kind kind, struct weir_span packed, size_t most, struct weir_text *plain,
                              struct weir_error *error)
{
	assert(kind == INPUT_GZIP || kind == INPUT_ZSTD);
	const struct input_codec_ops *ops = kind == INPUT_GZIP ? &input_gzip : &input_zstd;
	void *codec = ops->create();
	enum weir_status status = unpack(ops, codec, packed, most, plain, error);
	ops->destroy(codec);
	return status;
}

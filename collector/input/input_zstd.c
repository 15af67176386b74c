/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd: frames one after another, skippable ones among them. Windows of up to 128 MiB, as the zstd tool takes.
 *
 * When the library finds damage it does not say what it wrote in the same call, before it. So a call is given the rest
 * of one header or one block's body at most, and nothing while there is output to be fetched: then whatever was
 * decoded has been handed over before the damage is met, for any size of reads.
 */
#include "collector/input/input_codec.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <zstd.h>

/* "The next input": a block's body is asked for together with the header of the block behind it. */
enum { FRAME_BEGIN_BYTES = 5, BLOCK_HEADER_BYTES = 3 };

struct zstd {
	ZSTD_DStream *stream;
	bool between;   /* the last frame has ended and no other has begun */
	bool pending;   /* there may be more output than there was room for */
	size_t wanted;  /* bytes that the library asks for */
	size_t failure; /* what the library said of damaged data; asking it again is undefined */
};

static void *zstd_create(void)
{
	struct zstd *zstd = weir_alloc(1, sizeof *zstd);
	zstd->stream = ZSTD_createDStream();
	if (zstd->stream == NULL)
		abort(); /* out of memory: as weir_alloc() ends it */
	zstd->between = true;
	zstd->wanted = FRAME_BEGIN_BYTES;
	return zstd;
}

/* How much of the input one call may have. */
static size_t next_input(const struct zstd *zstd, size_t there)
{
	size_t most = zstd->wanted > BLOCK_HEADER_BYTES ? zstd->wanted - BLOCK_HEADER_BYTES : zstd->wanted;
	return zstd->pending ? 0 : there < most ? there : most;
}

static enum weir_status zstd_decode(void *codec, struct input_step *step, struct weir_error *error)
{
	struct zstd *zstd = codec;
	while (zstd->failure == 0 && step->room > 0) {
		ZSTD_inBuffer in = {.src = step->at, .size = next_input(zstd, step->rest)};
		ZSTD_outBuffer out = {.dst = step->out, .size = step->room};
		if (in.size == 0 && !zstd->pending)
			return WEIR_OK;
		size_t result = ZSTD_decompressStream(zstd->stream, &out, &in);
		step->at += in.pos;
		step->rest -= in.pos;
		step->out += out.pos;
		step->room -= out.pos;
		if (ZSTD_isError(result)) {
			zstd->failure = result;
			break;
		}
		zstd->pending = result != 0 && out.pos == out.size;
		zstd->between = result == 0;
		zstd->wanted = result == 0 ? FRAME_BEGIN_BYTES : result;
	}
	if (zstd->failure == 0)
		return WEIR_OK;
	return weir_fail(error, WEIR_INVALID, "the zstd data is damaged: %s", ZSTD_getErrorName(zstd->failure));
}

static bool zstd_complete(const void *codec)
{
	return ((const struct zstd *)codec)->between;
}

static void zstd_reset(void *codec)
{
	struct zstd *zstd = codec;
	ZSTD_DCtx_reset(zstd->stream, ZSTD_reset_session_only);
	zstd->between = true;
	zstd->pending = false;
	zstd->wanted = FRAME_BEGIN_BYTES;
	zstd->failure = 0;
}

static void zstd_destroy(void *codec)
{
	struct zstd *zstd = codec;
	ZSTD_freeDStream(zstd->stream);
	free(zstd);
}

const struct input_codec_ops input_zstd = {
	.name = "zstd",
	.create = zstd_create,
	.decode = zstd_decode,
	.complete = zstd_complete,
	.reset = zstd_reset,
	.destroy = zstd_destroy,
};

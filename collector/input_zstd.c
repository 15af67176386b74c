/* zstd: frames one after another, skippable ones among them. Windows of up to 128 MiB, as the zstd tool takes. */
#include "collector/input_codec.h"

#include "common/alloc.h"

#include <stdlib.h>
#include <zstd.h>

struct zstd {
	ZSTD_DStream *stream;
	bool between;   /* the last frame has ended and no other has begun */
	size_t failure; /* what the library said of damaged data; asking it again is undefined */
};

static void *zstd_create(void)
{
	struct zstd *zstd = weir_alloc(1, sizeof *zstd);
	zstd->stream = ZSTD_createDStream();
	if (zstd->stream == NULL)
		abort(); /* out of memory: as weir_alloc() ends it */
	zstd->between = true;
	return zstd;
}

static enum weir_status zstd_decode(void *codec, struct input_step *step, struct weir_error *error)
{
	struct zstd *zstd = codec;
	if (zstd->failure != 0)
		return weir_fail(error, WEIR_INVALID, "the zstd data is damaged: %s", ZSTD_getErrorName(zstd->failure));
	if (zstd->between && step->rest == 0)
		return WEIR_OK;
	ZSTD_inBuffer in = {.src = step->at, .size = step->rest};
	ZSTD_outBuffer out = {.dst = step->out, .size = step->room};
	size_t result = ZSTD_decompressStream(zstd->stream, &out, &in);
	step->at += in.pos;
	step->rest -= in.pos;
	step->out += out.pos;
	step->room -= out.pos;
	if (ZSTD_isError(result)) {
		zstd->failure = result;
		return weir_fail(error, WEIR_INVALID, "the zstd data is damaged: %s", ZSTD_getErrorName(result));
	}
	zstd->between = result == 0;
	return WEIR_OK;
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

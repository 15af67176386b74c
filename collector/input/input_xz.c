/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xz: streams one after another, with padding of zeros between them, as the xz
 * tool takes it. A dictionary may have up to 128 MiB, which is twice what
 * `xz -9` uses.
 */
#include "collector/input/input_codec.h"

#include "common/base/alloc.h"

#include <lzma.h>
#include <stdlib.h>

enum { MEMORY_MOST_BYTES = 160 << 20 };

struct xz {
	lzma_stream stream;
	bool between;     /* the last stream has ended and no other has begun */
	lzma_ret failure; /* what the library said of data that it cannot read; LZMA_OK: nothing */
};

/* A decoder of one stream: which streams follow is for this file to see, so that a cut between two is no damage. */
static void begin(struct xz *xz)
{
	if (lzma_stream_decoder(&xz->stream, MEMORY_MOST_BYTES, 0) != LZMA_OK)
		abort(); /* out of memory: as weir_alloc() ends it */
}

static void *xz_create(void)
{
	static const lzma_stream initial = LZMA_STREAM_INIT;
	struct xz *xz = weir_alloc(1, sizeof *xz);
	xz->stream = initial;
	begin(xz);
	xz->between = true;
	return xz;
}

static enum weir_status refuse(const struct xz *xz, struct weir_error *error)
{
	switch (xz->failure) {
	case LZMA_FORMAT_ERROR: return weir_fail(error, WEIR_INVALID, "the data after the end of the xz data is not xz");
	case LZMA_MEMLIMIT_ERROR:
		return weir_fail(error, WEIR_INVALID,
		                 "the xz data needs more than 160 MiB of memory: pack it with xz -9 or less");
	default: return weir_fail(error, WEIR_INVALID, "the xz data is damaged");
	}
}

static enum weir_status xz_decode(void *codec, struct input_step *step, struct weir_error *error)
{
	struct xz *xz = codec;
	if (xz->failure != LZMA_OK)
		return refuse(xz, error);
	while (xz->between && step->rest > 0 && *step->at == 0) {
		step->at++;
		step->rest--;
	}
	if (xz->between && step->rest == 0)
		return WEIR_OK;
	lzma_stream *stream = &xz->stream;
	stream->next_in = step->at;
	stream->avail_in = step->rest;
	stream->next_out = step->out;
	stream->avail_out = step->room;
	xz->between = false;
	lzma_ret result = lzma_code(stream, LZMA_RUN);
	step->at = stream->next_in;
	step->rest = stream->avail_in;
	step->out = stream->next_out;
	step->room = stream->avail_out;
	if (result == LZMA_STREAM_END) {
		begin(xz);
		xz->between = true;
	} else if (result == LZMA_MEM_ERROR) {
		abort(); /* as weir_alloc() ends it */
	} else if (result != LZMA_OK && result != LZMA_BUF_ERROR) {
		xz->failure = result;
		/* What it wrote before the damage is handed over first. */
		return refuse(xz, error);
	}
	return WEIR_OK;
}

static bool xz_complete(const void *codec)
{
	return ((const struct xz *)codec)->between;
}

static void xz_reset(void *codec)
{
	struct xz *xz = codec;
	begin(xz);
	xz->between = true;
	xz->failure = LZMA_OK;
}

static void xz_destroy(void *codec)
{
	struct xz *xz = codec;
	lzma_end(&xz->stream);
	free(xz);
}

const struct input_codec_ops input_xz = {
	.name = "xz",
	.create = xz_create,
	.decode = xz_decode,
	.complete = xz_complete,
	.reset = xz_reset,
	.destroy = xz_destroy,
};

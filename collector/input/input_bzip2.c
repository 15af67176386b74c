/* SPDX-License-Identifier: Apache-2.0 */
/* bzip2: streams one after another, as `cat a.bz2 b.bz2` and pbzip2 leave them. */
#include "collector/input/input_codec.h"

#include "common/base/alloc.h"

#include <bzlib.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

struct bzip2 {
	bz_stream stream;
	bool between; /* the last stream has ended and no other has begun */
	int failure;  /* what the library said of damaged data; it must not be asked again. BZ_OK: nothing */
};

static void begin(struct bzip2 *bzip2)
{
	bzip2->stream = (bz_stream){.next_in = NULL};
	if (BZ2_bzDecompressInit(&bzip2->stream, 0, 0) != BZ_OK)
		abort(); /* out of memory: as weir_alloc() ends it */
}

static void *bzip2_create(void)
{
	struct bzip2 *bzip2 = weir_alloc(1, sizeof *bzip2);
	begin(bzip2);
	bzip2->between = true;
	return bzip2;
}

static unsigned at_most_uint(size_t bytes)
{
	return bytes < UINT_MAX ? (unsigned)bytes : UINT_MAX;
}

static enum weir_status refuse(struct bzip2 *bzip2, int result, struct weir_error *error)
{
	if (result == BZ_MEM_ERROR)
		abort(); /* as weir_alloc() ends it */
	bool first = result == BZ_DATA_ERROR_MAGIC;
	bzip2->failure = result;
	return weir_fail(error, WEIR_INVALID,
	                 first ? "the data after the end of the bzip2 data is not bzip2" : "the bzip2 data is damaged");
}

static enum weir_status bzip2_decode(void *codec, struct input_step *step, struct weir_error *error)
{
	struct bzip2 *bzip2 = codec;
	if (bzip2->failure != BZ_OK)
		return refuse(bzip2, bzip2->failure, error);
	if (bzip2->between && step->rest == 0)
		return WEIR_OK;
	bz_stream *stream = &bzip2->stream;
	unsigned given = at_most_uint(step->rest), room = at_most_uint(step->room);
	stream->next_in = (char *)(uintptr_t)step->at; /* which is only read */
	stream->avail_in = given;
	stream->next_out = (char *)step->out;
	stream->avail_out = room;
	bzip2->between = false;
	int result = BZ2_bzDecompress(stream);
	step->at += given - stream->avail_in;
	step->rest -= given - stream->avail_in;
	step->out += room - stream->avail_out;
	step->room -= room - stream->avail_out;
	if (result == BZ_STREAM_END) {
		BZ2_bzDecompressEnd(stream);
		begin(bzip2);
		bzip2->between = true;
	} else if (result != BZ_OK) {
		return refuse(bzip2, result, error);
	}
	return WEIR_OK;
}

static bool bzip2_complete(const void *codec)
{
	return ((const struct bzip2 *)codec)->between;
}

static void bzip2_reset(void *codec)
{
	struct bzip2 *bzip2 = codec;
	BZ2_bzDecompressEnd(&bzip2->stream);
	begin(bzip2);
	bzip2->between = true;
	bzip2->failure = BZ_OK;
}

static void bzip2_destroy(void *codec)
{
	struct bzip2 *bzip2 = codec;
	BZ2_bzDecompressEnd(&bzip2->stream);
	free(bzip2);
}

const struct input_codec_ops input_bzip2 = {
	.name = "bzip2",
	.create = bzip2_create,
	.decode = bzip2_decode,
	.complete = bzip2_complete,
	.reset = bzip2_reset,
	.destroy = bzip2_destroy,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip: members one after another, as `cat a.gz b.gz` and appending writers
 * leave them. Zeros after the last member are padding (tapes, block devices).
 */
#include "collector/input/input_codec.h"

#include "common/base/alloc.h"
#include "common/bytes/gzip.h"

#include <limits.h>
#include <stdlib.h>

enum { GZIP_ONLY_WINDOW_BITS = 15 + 16 };

struct gzip {
	z_stream stream;
	bool between; /* the last member has ended and no other has begun */
};

static void *gzip_create(void)
{
	struct gzip *gzip = weir_alloc(1, sizeof *gzip);
	if (inflateInit2(&gzip->stream, GZIP_ONLY_WINDOW_BITS) != Z_OK)
		abort(); /* out of memory: as weir_alloc() ends it */
	gzip->between = true;
	return gzip;
}

static unsigned at_most_uint(size_t bytes)
{
	return bytes < UINT_MAX ? (unsigned)bytes : UINT_MAX;
}

/* Goes on to the next member, past zeros. */
static enum weir_status begin_member(struct gzip *gzip, struct input_step *step, struct weir_error *error)
{
	while (step->rest > 0 && *step->at == 0) {
		step->at++;
		step->rest--;
	}
	if (step->rest == 0)
		return WEIR_OK;
	if (*step->at != 0x1f)
		return weir_fail(error, WEIR_INVALID, "the data after the end of the gzip data is not gzip");
	inflateReset(&gzip->stream);
	gzip->between = false;
	return WEIR_OK;
}

static enum weir_status gzip_decode(void *codec, struct input_step *step, struct weir_error *error)
{
	struct gzip *gzip = codec;
	if (gzip->between) {
		enum weir_status status = begin_member(gzip, step, error);
		if (status != WEIR_OK || gzip->between)
			return status;
	}
	z_stream *stream = &gzip->stream;
	unsigned given = at_most_uint(step->rest), room = at_most_uint(step->room);
	stream->next_in = (z_const Bytef *)step->at;
	stream->avail_in = given;
	stream->next_out = step->out;
	stream->avail_out = room;
	int result = inflate(stream, Z_NO_FLUSH);
	step->at += given - stream->avail_in;
	step->rest -= given - stream->avail_in;
	step->out += room - stream->avail_out;
	step->room -= room - stream->avail_out;
	if (result == Z_STREAM_END)
		gzip->between = true;
	else if (result == Z_MEM_ERROR)
		abort(); /* as weir_alloc() ends it */
	else if (result != Z_OK && result != Z_BUF_ERROR)
		return weir_fail(error, WEIR_INVALID, "the gzip data is damaged: %s",
		                 stream->msg != NULL ? stream->msg : "unknown error");
	return WEIR_OK;
}

static bool gzip_complete(const void *codec)
{
	return ((const struct gzip *)codec)->between;
}

static void gzip_reset(void *codec)
{
	struct gzip *gzip = codec;
	inflateReset(&gzip->stream);
	gzip->between = true;
}

static void gzip_destroy(void *codec)
{
	struct gzip *gzip = codec;
	inflateEnd(&gzip->stream);
	free(gzip);
}

const struct input_codec_ops input_gzip = {
	.name = "gzip",
	.create = gzip_create,
	.decode = gzip_decode,
	.complete = gzip_complete,
	.reset = gzip_reset,
	.destroy = gzip_destroy,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing, at zlib's level for speed: answers of some KB to MB are packed while
 * somebody waits, and shrink to a tenth anyway.
 */
#include "common/bytes/gzip.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <stdlib.h>

enum { GZIP_WINDOW_BITS = 15 + 16, GZIP_MEMORY_LEVEL = 8, ROOM_BYTES = 16 * 1024 };

struct weir_gzip {
	z_stream stream;
};

struct weir_gzip *weir_gzip_new(void)
{
	struct weir_gzip *gzip = weir_alloc(1, sizeof *gzip);
	int result =
		deflateInit2(&gzip->stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL, Z_DEFAULT_STRATEGY);
	if (result != Z_OK)
		abort(); /* no memory: as weir_alloc() */
	return gzip;
}

void weir_gzip_add(struct weir_gzip *gzip, struct weir_span bytes, bool last, struct weir_text *packed)
{
	z_stream *stream = &gzip->stream;
	stream->next_in = (Bytef *)(uintptr_t)bytes.at;
	stream->avail_in = bytes.length;
	int result;
	do {
		stream->next_out = (Bytef *)weir_text_reserve(packed, ROOM_BYTES);
		stream->avail_out = ROOM_BYTES;
		result = deflate(stream, last ? Z_FINISH : Z_SYNC_FLUSH);
		assert(result != Z_STREAM_ERROR);
		packed->length += ROOM_BYTES - stream->avail_out;
	} while (last ? result != Z_STREAM_END : stream->avail_out == 0);
}

void weir_gzip_free(struct weir_gzip *gzip)
{
	if (gzip == NULL)
		return;
	deflateEnd(&gzip->stream);
	free(gzip);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries that leave, as records of a second stream: the n-th departure is at position n.
 *
 * At a moment of which all entries are read, those that left are those that were read but for those that are still there.
 * So an entry that was removed before it was read never departs: nobody was told that it came. After a crash the same
 * departures have the same numbers; only their time differs.
 *
 * With a workers' group, those that left are those that it has acknowledged, but for those that weir never read.
 */
#include "collector/source/redis/internal.h"

#include "common/base/clock.h"

static uint64_t count(const struct redis_stream *stream, const struct redis_extent *extent, bool workers)
{
	const struct redis_mark *place = &stream->place;
	uint64_t unread = place->added - place->read;
	if (workers)
		return extent->acknowledges && extent->acknowledged > unread ? extent->acknowledged - unread : 0;
	return place->read > extent->length ? place->read - extent->length : 0;
}

void redis_depart(struct redis_source *source, struct redis_stream *stream, const struct redis_extent *extent)
{
	uint64_t departed = count(stream, extent, source->config.workers != NULL);
	while (stream->departed < departed) {
		int64_t now_ms = weir_wall_ms();
		redis_entry_departed(&source->entry, redis_key(stream), now_ms);
		if (!queue_put(&source->queue, stream->done, source->entry.text.at, source->entry.text.length,
		               stream->departed + 1, now_ms))
			return;
		stream->departed++;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries that leave, as records of a second stream: the n-th departure is at position n.
 *
 * At a moment of which all entries are read, those that left are those that were read but for those that are still there.
 * So an entry that was removed before it was read never departs: nobody was told that it came. After a crash the same
 * departures have the same numbers; only their time differs.
 *
 * With a workers' group, an entry is still there until that has acknowledged it.
 *
 * So what the server counts matters only at that moment: it may count from another beginning, as after a failover that has
 * lost entries, or in a stream that was made anew. What was read and is no more there has left then, too.
 */
#include "collector/source/redis/internal.h"

#include "common/base/clock.h"

static uint64_t count_there(const struct redis_extent *extent, bool workers)
{
	if (!workers)
		return extent->length;
	return extent->added > extent->acknowledged ? extent->added - extent->acknowledged : 0;
}

void redis_depart(struct redis_source *source, struct redis_stream *stream, const struct redis_extent *extent)
{
	bool workers = source->config.workers != NULL;
	if (workers && !extent->acknowledges)
		return;
	uint64_t there = count_there(extent, workers), read = stream->place.read;
	if (!stream->tallied) { /* what left before departures were asked for is nobody's */
		read = stream->place.read = stream->departed + there;
		queue_set_number(stream->entries, QUEUE_NUMBER, read);
		if (!queue_pass(&source->queue, stream->entries, stream->place.position))
			return;
	}
	stream->tallied = true;
	uint64_t departed = read > there ? read - there : 0;
	while (stream->departed < departed) {
		int64_t now_ms = weir_wall_ms();
		redis_entry_departed(&source->entry, redis_key(stream), now_ms);
		if (!queue_put(&source->queue, stream->done, source->entry.text.at, source->entry.text.length,
		               stream->departed + 1, now_ms))
			return;
		stream->departed++;
	}
}

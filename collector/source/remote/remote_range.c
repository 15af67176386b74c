/* SPDX-License-Identifier: Apache-2.0 */
/* How long a range of an object is, which lies in a step's file, and where lines end in it. */
#include "collector/source/remote/internal.h"

#include <string.h>
#include <unistd.h>

uint64_t remote_range_next(const struct remote_fetch *fetch)
{
	uint64_t taken = fetch->step != NULL ? fetch->step->bytes : 0;
	uint64_t room = taken < REMOTE_STEP_BYTES ? REMOTE_STEP_BYTES - taken : 0;
	uint64_t bytes = fetch->range_bytes < room ? fetch->range_bytes : room;
	return bytes > REMOTE_RANGE_BYTES ? bytes : REMOTE_RANGE_BYTES;
}

void remote_range_came(struct remote_fetch *fetch, uint64_t asked, uint64_t got, int64_t took_ms)
{
	if (took_ms > REMOTE_STEP_MS && fetch->range_bytes > REMOTE_RANGE_BYTES)
		fetch->range_bytes /= 2;
	else if (took_ms < REMOTE_STEP_MS / 2 && got == asked && asked >= fetch->range_bytes &&
	         fetch->range_bytes < REMOTE_STEP_BYTES)
		fetch->range_bytes *= 2;
}

uint64_t remote_range_last(struct remote_fetch *fetch, const struct remote_range *range)
{
	for (uint64_t end = range->length; end > 0;) {
		size_t most = end < REMOTE_BUFFER_BYTES ? (size_t)end : REMOTE_BUFFER_BYTES;
		if (pread(range->fd, fetch->buffer, most, (off_t)(range->at + end - most)) != (ssize_t)most)
			return 0;
		const char *newline = memrchr(fetch->buffer, '\n', most);
		if (newline != NULL)
			return end - most + (uint64_t)(newline - fetch->buffer) + 1;
		end -= most;
	}
	return 0;
}

static uint64_t find_first(struct remote_fetch *fetch, const struct remote_range *range)
{
	for (uint64_t at = 0; at < range->length;) {
		uint64_t left = range->length - at;
		size_t most = left < REMOTE_BUFFER_BYTES ? (size_t)left : REMOTE_BUFFER_BYTES;
		if (pread(range->fd, fetch->buffer, most, (off_t)(range->at + at)) != (ssize_t)most)
			return 0;
		const char *newline = memchr(fetch->buffer, '\n', most);
		if (newline != NULL)
			return at + (uint64_t)(newline - fetch->buffer) + 1;
		at += most;
	}
	return 0;
}

bool remote_range_skip(struct remote_fetch *fetch, struct remote_known *known, struct remote_range *range)
{
	uint64_t first = find_first(fetch, range), passed = first > 0 ? first : range->length;
	known->skips = first == 0;
	known->offset += passed;
	known->check_bytes = 0;
	range->at += passed;
	range->length -= passed;
	return first > 0;
}

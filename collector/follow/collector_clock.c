/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells of sources whose times are not those of the clock, and of local times that a clock which is set back gives
 * twice: no rule that gives each line one time, whenever it is read, can tell the second ones. Each stream is watched by
 * itself, as one file of many may be another machine's; a source stands for the first of its streams that is off, until
 * that one is right again.
 */
#include "collector/follow/internal.h"

#include "common/base/clock.h"

#include <string.h>

enum {
	HISTORY_MS = 3600 * 1000,
	TWICE_MS = 12 * 3600 * 1000, /* for which the doubled hour has been said */
	SILENT_MS = 600 * 1000,      /* after which a stream without new lines stands for its source no more */
};

void collector_clock_ended(struct source_clock *clock)
{
	clock->ends++;
	clock->ended_ms = weir_monotonic_ms();
}

bool collector_clock_live(const struct source_clock *clock, struct record_reader *reader,
                          const struct source_chunk *chunk)
{
	bool goes_on = reader->incarnation == chunk->position >> SOURCE_OFFSET_BITS && !chunk->begins;
	bool live = goes_on && reader->ends_seen != 0 && reader->ends_seen != clock->ends + 1 &&
	            weir_monotonic_ms() - clock->ended_ms <= CLOCK_FRESH_MS;
	reader->ends_seen = clock->ends + 1;
	return live && !reader->by_name; /* what weir decides has the times of its lines */
}

static void tell(struct collector *collector, struct source_clock *clock, const struct record_reader *reader)
{
	char name[SOURCE_NAME_BYTES];
	struct weir_text words = {0};
	int64_t behind_ms = reader->clock.behind_ms;
	bool blocks_nobody = behind_ms > HISTORY_MS;
	clock_watch_words(&words, behind_ms);
	weir_text_puts(&words, blocks_nobody
	                           ? " the clock, so that nobody is blocked by them: what is older than an hour is "
	                             "history. Reading goes on. "
	                           : " the clock, so that they count at a wrong time. Reading goes on. ");
	clock_watch_advice(&words, reader->format, behind_ms);
	weir_fault_raise_at(&clock->fault, collector->options.log, blocks_nobody ? WEIR_LOG_ERROR : WEIR_LOG_WARNING,
	                    "collector",
	                    "source %s, %s: the times of lines that were written just now are %.*s (runbook: clock)",
	                    collector_source_name(collector, reader->source_place, name, sizeof name), reader->stream->name,
	                    (int)words.length, words.at);
	weir_text_deinit(&words);
}

static void tell_twice(struct collector *collector, struct source_clock *clock, const struct record_reader *reader)
{
	char name[SOURCE_NAME_BYTES];
	int64_t monotonic_ms = weir_monotonic_ms();
	if (clock->twice_ms != 0 && monotonic_ms - clock->twice_ms < TWICE_MS)
		return;
	clock->twice_ms = monotonic_ms;
	weir_log(
		collector->options.log, WEIR_LOG_WARNING, "collector",
		"source %s, %s: the clock was set back, so its local times of this hour exist twice, and each is taken for the "
		"earlier one. "
		"Lines of the second time count too early: their blocks may be over before they are made. Reading goes on. "
		"Have the log written with its zone, or in UTC, to be protected in this hour (runbook: clock)",
		collector_source_name(collector, reader->source_place, name, sizeof name), reader->stream->name);
}

void collector_clock_see(struct collector *collector, struct record_reader *reader, int64_t now_ms)
{
	struct source_clock *clock = &collector->clocks[reader->source_place];
	char name[SOURCE_NAME_BYTES];
	if (format_time_is_twice(reader->format))
		tell_twice(collector, clock, reader);
	if (reader->newest_ms < 0 || !clock_watch_add(&reader->clock, now_ms - reader->newest_ms, weir_monotonic_ms()))
		return;
	int64_t monotonic_ms = weir_monotonic_ms();
	bool off = atomic_load(&clock->behind_ms) != 0,
		 own = memcmp(clock->stream, reader->stream->id, SOURCE_ID_BYTES) == 0;
	if (off && !own && monotonic_ms - clock->seen_ms < SILENT_MS)
		return;
	clock->seen_ms = monotonic_ms;
	memcpy(clock->stream, reader->stream->id, SOURCE_ID_BYTES);
	atomic_store(&clock->behind_ms, reader->clock.behind_ms);
	if (reader->clock.behind_ms != 0)
		tell(collector, clock, reader);
	else
		weir_fault_over(&clock->fault, collector->options.log, "collector",
		                "source %s: its times are those of the clock",
		                collector_source_name(collector, reader->source_place, name, sizeof name));
}

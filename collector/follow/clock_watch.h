/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the times of a log are those of the clock: local times that are read as another zone's are off by hours, and
 * so is a machine whose clock is wrong. Lines that are more than an hour behind block nobody, and nothing else shows it.
 *
 * Only lines that were seen to be written say something: the log had been read to its end moments before. Of them the
 * newest of a window tells, as a line may have the time at which a long request began. Windows in a row must agree, as
 * those of a backlog that is read, or of a log that is copied here, do not.
 */
#ifndef COLLECTOR_CLOCK_WATCH_H
#define COLLECTOR_CLOCK_WATCH_H

#include "collector/format/format.h"
#include "common/base/text.h"

enum {
	CLOCK_LEAST_MS = 1800000, /* a smaller difference is none: lines may come late */
	CLOCK_FRESH_MS = 5000,    /* how long before a line is read its log must have been read to the end */
};

/* Of one stream. Zero-initialised; of the thread that reads. */
struct clock_watch {
	int64_t
		behind_ms; /* by how much its times differ steadily from the clock; below 0: they are ahead; 0: they do not */
	int64_t began_ms;       /* monotonic: the present window */
	int64_t least_ms;       /* the smallest difference in it */
	int64_t row_ms;         /* of the first window of those that agree */
	uint32_t seen, windows; /* chunks in the present window; windows that agree */
};

/**
 * Counts lines that were written just now.
 *
 * @param behind_ms  the clock less the newest time among them
 * @param now_ms     monotonic
 * @return whether a window is over: watch->behind_ms is then as of it
 */
bool clock_watch_add(struct clock_watch *watch, int64_t behind_ms, int64_t now_ms);

/** Appends a difference as words: "5 h 30 min behind", "2 h ahead of". */
void clock_watch_words(struct weir_text *text, int64_t behind_ms);

/** Appends what helps: a zone, where the times of the newest line had none and differ by what zones do; else the clocks. */
void clock_watch_advice(struct weir_text *text, const struct format *format, int64_t behind_ms);

/**
 * Looks at a file at rest: whether its newest line has no zone and differs from the file's last change by what zones
 * differ, to within seconds.
 *
 * @param format     new, and spent afterwards
 * @param behind_ms  returned
 */
bool clock_watch_file(struct format *format, const char *path, int64_t *behind_ms);

#endif

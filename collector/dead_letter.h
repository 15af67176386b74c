/*
 * The dead letter: lines that could not be used, with where they stood and why.
 *
 * One JSON line each: {"source":…,"position":…,"reason":…,"text":…}, the text
 * cut at 1 KiB. Bounded in bytes and in rate: past either the lines are only
 * counted. Letters are held back until their reader's next record is taken.
 */
#ifndef COLLECTOR_DEAD_LETTER_H
#define COLLECTOR_DEAD_LETTER_H

#include "common/line_file.h"
#include "common/span.h"
#include "common/text.h"

enum { DEAD_LETTER_TEXT_MAX_BYTES = 1024 };

struct dead_letters;

struct dead_letter_options {
	int64_t max_bytes;       /* of the file: what comes later is only counted */
	int64_t rate_per_second; /* 0: no cap in rate (--once, where no clock is read) */
};

/** @param file  borrowed; NULL: only counted */
struct dead_letters *dead_letters_new(struct weir_line_file *file, const struct dead_letter_options *options);
void dead_letters_free(struct dead_letters *dead);

/** Appends one letter to a caller's text (held back until dead_letters_write). */
void dead_letter_json(struct weir_text *text, const char *source, uint64_t position, const char *reason,
                      struct weir_span line);

/** Writes letters (whole lines), as many as the caps allow; the rest is counted as dropped. */
void dead_letters_write(struct dead_letters *dead, struct weir_span letters, int64_t now_ms);

/** One that is not kept: only counted. */
void dead_letters_drop(struct dead_letters *dead);

/** Goes on counting where an earlier run stood. */
void dead_letters_restore(struct dead_letters *dead, uint64_t written, uint64_t dropped);

uint64_t dead_letters_written(const struct dead_letters *dead);
uint64_t dead_letters_dropped(const struct dead_letters *dead);

#endif

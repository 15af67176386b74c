/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dead letters: lines that could not be used, with their position and the reason.
 *
 * One JSON line each: {"source":…,"position":…,"reason":…,"text":…}, the text
 * cut at 1 KiB. Bounded in bytes and in rate: past either the lines are only
 * counted. Letters are held back until their reader's next record is taken.
 * A sink decides where they go: a file, or the dead-letter topic on the bus.
 */
#ifndef COLLECTOR_DEAD_LETTER_H
#define COLLECTOR_DEAD_LETTER_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/files/line_file.h"

#include <stdbool.h>

enum { DEAD_LETTER_TEXT_MAX_BYTES = 1024 };

struct dead_letters;

struct dead_letter_options {
	int64_t max_bytes;       /* that the sink holds: what comes later is only counted */
	int64_t rate_per_second; /* 0: no cap in rate (--once, where no clock is read) */
};

/* Where dead letters are kept. */
struct dead_letter_sink {
	void *context; /* borrowed */
	/** How many bytes it holds already, for the cap. */
	uint64_t (*held_bytes)(void *context, int64_t now_ms);
	/** Takes one letter, its newline included; false: it cannot be kept. */
	bool (*put)(void *context, struct weir_span dead_letter);
	/**
	 * Makes safe what was put: low-water marks behind it are saved next.
	 *
	 * @param reopen  after that, begin a new file under the old name (SIGHUP)
	 * @return WEIR_OK; WEIR_IO: try again later; WEIR_INVALID: no later try can succeed
	 */
	enum weir_status (*settle)(void *context, bool reopen, struct weir_error *error);
};

/** Lines of a file. @param file  borrowed */
struct dead_letter_sink dead_letter_file(struct weir_line_file *file);

/** @param sink  copied; NULL: dead letters are only counted */
struct dead_letters *dead_letters_new(const struct dead_letter_sink *sink, const struct dead_letter_options *options);
void dead_letters_free(struct dead_letters *dead);

/** Appends one letter to a caller's text (held back until dead_letters_write). */
void dead_letter_json(struct weir_text *text, const char *source, uint64_t position, const char *reason,
                      struct weir_span line);

/** Writes dead letters (whole lines), as many as the caps allow; the rest is counted as dropped. */
void dead_letters_write(struct dead_letters *dead, struct weir_span dead_letters, int64_t now_ms);

/** As the sink's settle. */
WEIR_MUST_USE enum weir_status dead_letters_settle(struct dead_letters *dead, bool reopen, struct weir_error *error);

/** One that is not kept: only counted. */
void dead_letters_drop(struct dead_letters *dead);

/** Goes on counting where an earlier run stood. */
void dead_letters_restore(struct dead_letters *dead, uint64_t written, uint64_t dropped);

uint64_t dead_letters_written(const struct dead_letters *dead);
uint64_t dead_letters_dropped(const struct dead_letters *dead);

#endif

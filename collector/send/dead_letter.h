/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dead letters: lines that could not be used, with their position and the reason.
 *
 * Each is one line of JSON: {"source":…,"position":…,"reason":…,"text":…}, the
 * text cut at 1 KiB: "cut" is true then. They are limited in bytes and in rate; beyond that, lines are
 * only counted. They are held back until their reader's next record is taken. A
 * sink decides where they go: a file, or the dead-letter topic on the bus.
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
	int64_t max_bytes;       /* limit on what the sink holds; what exceeds it is only counted */
	int64_t rate_per_second; /* 0: no limit on the rate (--once, where no clock is read) */
};

/* Where dead letters are stored. */
struct dead_letter_sink {
	void *context; /* borrowed */
	/** How many bytes it holds already, to compare with max_bytes. */
	uint64_t (*held_bytes)(void *context, int64_t now_ms);
	/** Takes one dead letter, including its newline; false: it cannot be stored. */
	bool (*put)(void *context, struct weir_span dead_letter);
	/**
	 * Makes durable what was put, before low-water marks after it are saved.
	 *
	 * @param reopen  then begin a new file under the old name (SIGHUP)
	 * @return WEIR_OK; WEIR_IO: try again later; WEIR_INVALID: no later attempt can succeed
	 */
	enum weir_status (*settle)(void *context, bool reopen, struct weir_error *error);
};

/** A sink that appends lines to a file. @param file  borrowed */
struct dead_letter_sink dead_letter_file(struct weir_line_file *file);

/** @param sink  copied; NULL: dead letters are only counted */
struct dead_letters *dead_letters_new(const struct dead_letter_sink *sink, const struct dead_letter_options *options);
void dead_letters_free(struct dead_letters *dead);

/** Appends one dead letter to the caller's text, which holds it back until dead_letters_write(). */
void dead_letter_json(struct weir_text *text, const char *source, uint64_t position, const char *reason,
                      struct weir_span line);

/** Writes dead letters (whole lines), as many as the limits allow; the others are counted as dropped. */
void dead_letters_write(struct dead_letters *dead, struct weir_span dead_letters, int64_t now_ms);

/** The sink's settle(); WEIR_OK without a sink. */
WEIR_MUST_USE enum weir_status dead_letters_settle(struct dead_letters *dead, bool reopen, struct weir_error *error);

/** Counts one dead letter as dropped. */
void dead_letters_drop(struct dead_letters *dead);

/** Counts dead letters as dropped that were counted as written: their sink could not put them down. */
void dead_letters_lose(struct dead_letters *dead, uint64_t count);

/** Sets the counters to those of an earlier run, to continue from there. */
void dead_letters_restore(struct dead_letters *dead, uint64_t written, uint64_t dropped);

uint64_t dead_letters_written(const struct dead_letters *dead);
uint64_t dead_letters_dropped(const struct dead_letters *dead);

#endif

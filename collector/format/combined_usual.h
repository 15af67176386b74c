/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quick way through combined lines, which is compiled twice: for any machine, and with AVX2. format_combined.c
 * chooses once, when a format is made. Both give what combined_line_split() gives.
 */
#ifndef COLLECTOR_COMBINED_USUAL_H
#define COLLECTOR_COMBINED_USUAL_H

#include "collector/format/combined_line.h"
#include "collector/format/format_options.h"

#if defined(__x86_64__) && !defined(WEIR_FIND_PORTABLE)
#define COMBINED_HAS_AVX2
#endif

enum { COMBINED_TIME_BYTES = TIME_COMMON_BYTES + 3 }; /* a time and the "] \"" behind it */

struct format_combined {
	struct format format;
	struct format_options options;
	bool wants_tail; /* referer, agent or xff */
	bool wants_rare; /* ident or target */
	struct unescape_scratch escape_room;
	uint8_t field_of[COMBINED_PARTS]; /* WEIR_FIELD_NONE: that part is not wanted */
	uint32_t lacking_count;
	uint8_t lacking[WEIR_FIELD_MAX]; /* wanted fields that no such line has */
	/* The last Common Log time as it was written: most lines of a busy log are of the same second. */
	char last_time[COMBINED_TIME_BYTES];
	int64_t last_time_ms; /* -1: there is none */
};

/** Parses lines of any shape: as struct format has it. */
enum format_reason combined_parse_plain(struct format *format, const char *text, uint32_t length,
                                        struct weir_record *record);

/** The same; only on a machine with AVX2 and BMI2, in builds with COMBINED_HAS_AVX2. */
enum format_reason combined_parse_avx2(struct format *format, const char *text, uint32_t length,
                                       struct weir_record *record);

/** Whether this machine has what combined_parse_avx2() needs. */
bool combined_can_avx2(void);

/** Fills the fields from the parts `first` to `last`, which combined_line.c has split off. */
void combined_put_split(const struct format_combined *combined, const struct combined_line *line,
                        enum combined_part first, enum combined_part last, struct weir_record *record);

/** Takes the escapes off what a client wrote, in a line that may have some. @param length  of the line */
void combined_unescape(struct format_combined *combined, uint32_t length, struct weir_record *record);

/** Parses a line by the letter of the grammar, whatever its shape; the cost is not read. */
enum format_reason combined_take_any(struct format_combined *combined, struct weir_span text,
                                     struct weir_record *record);

#endif

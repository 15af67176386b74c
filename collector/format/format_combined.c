/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats `combined` and `common`: the access logs of Apache, nginx and compatible servers.
 *
 * Nearly every line is taken by combined_usual.c, the others here, by the letter of the grammar in combined_line.c.
 */
#include "collector/format/combined_usual.h"
#include "common/base/alloc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool combined_can_avx2(void)
{
#if defined(COMBINED_HAS_AVX2)
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
#else
	return false;
#endif
}

void combined_put_split(const struct format_combined *combined, const struct combined_line *line,
                        enum combined_part first, enum combined_part last, struct weir_record *record)
{
	for (enum combined_part part = first; part <= last; part++)
		record->fields[combined->field_of[part]] = format_value_or_dash(line->parts[part].at, line->parts[part].length);
}

void combined_unescape(struct format_combined *combined, uint32_t length, struct weir_record *record)
{
	static const enum combined_part parts[] = {COMBINED_HOST, COMBINED_IDENT,   COMBINED_USER,  COMBINED_TARGET,
	                                           COMBINED_PATH, COMBINED_REFERER, COMBINED_AGENT, COMBINED_XFF};
	unescape_scratch_clear(&combined->escape_room);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		uint8_t field = combined->field_of[parts[i]];
		if (field == WEIR_FIELD_NONE)
			continue;
		struct weir_span *value = &record->fields[field];
		*value =
			unescape_log(&combined->escape_room, *value, 2 * length); /* a target stands twice: its path does, too */
	}
}

enum format_reason combined_take_any(struct format_combined *combined, struct weir_span text,
                                     struct weir_record *record)
{
	struct combined_line line;
	record->ip = WEIR_RECORD_IP_UNTOLD;
	if (!combined_line_split(text, &line))
		return combined->format.malformed;
	combined_put_split(combined, &line, 0, COMBINED_PARTS - 1, record);
	record->cut |= line.cut;
	struct weir_span time = line.parts[COMBINED_TIME];
	return time_read(&combined->options.time, format_value_or_dash(time.at, time.length), &record->time_ms);
}

static void combined_free(struct format *format)
{
	struct format_combined *combined = (struct format_combined *)format;
	unescape_scratch_deinit(&combined->escape_room);
	format_options_deinit(&combined->options);
	free(combined);
}

static const char *const part_names[] = {"host",   "ip",    "ident",   "user",  "method", "path", "target",
                                         "status", "bytes", "referer", "agent", "xff",    NULL};

/* COMBINED_PARTS: no part is called so. */
static enum combined_part part_of(const char *name)
{
	static const enum combined_part parts[] = {COMBINED_HOST,   COMBINED_IP,      COMBINED_IDENT,  COMBINED_USER,
	                                           COMBINED_METHOD, COMBINED_PATH,    COMBINED_TARGET, COMBINED_STATUS,
	                                           COMBINED_BYTES,  COMBINED_REFERER, COMBINED_AGENT,  COMBINED_XFF,
	                                           COMBINED_PARTS};
	static_assert(sizeof parts / sizeof *parts == sizeof part_names / sizeof *part_names, "each part has its name");
	size_t place = 0;
	while (part_names[place] != NULL && strcmp(part_names[place], name) != 0)
		place++;
	return parts[place];
}

static bool lacks(const struct format *format, uint32_t field)
{
	const struct format_combined *combined = (const struct format_combined *)format;
	return part_of(combined->options.fields.names[field]) == COMBINED_PARTS;
}

static enum weir_status create(const struct weir_json *config, const struct format_kind *kind,
                               const struct weir_field_table *fields, struct format **format, struct weir_error *error)
{
	struct format_combined *combined = weir_alloc(1, sizeof *combined);
	combined->format.parse = combined_parse_plain;
#if defined(COMBINED_HAS_AVX2)
	if (combined_can_avx2())
		combined->format.parse = combined_parse_avx2;
#endif
	combined->last_time_ms = -1;
	combined->format.free = combined_free;
	combined->format.lacks = lacks;
	combined->format.names = part_names;
	combined->format.dash_is_absent = true;
	combined->format.takes_cut = true;
	enum weir_status status = format_options_init(&combined->options, config, fields, kind, &combined->format, error);
	if (status != WEIR_OK) {
		format_free(&combined->format);
		return status;
	}
	memset(combined->field_of, WEIR_FIELD_NONE, sizeof combined->field_of);
	for (uint32_t i = 0; i < combined->options.fields.count; i++) {
		if (!format_wants(&combined->options, i))
			continue;
		enum combined_part part = part_of(combined->options.fields.names[i]);
		if (part == COMBINED_PARTS)
			combined->lacking[combined->lacking_count++] = (uint8_t)i;
		else
			combined->field_of[part] = (uint8_t)i;
		combined->wants_rare |= part == COMBINED_IDENT || part == COMBINED_TARGET;
		combined->wants_tail |= part == COMBINED_REFERER || part == COMBINED_AGENT || part == COMBINED_XFF;
	}
	*format = &combined->format;
	return WEIR_OK;
}

const struct format_kind format_combined = {
	.name = "combined",
	.meaning = "access logs of Apache, nginx and compatible servers",
	.malformed = "not combined",
	.create = create,
};

const struct format_kind format_common = {
	.name = "common",
	.meaning = "the same without `referer` and `agent`",
	.malformed = "not common",
	.create = create,
};

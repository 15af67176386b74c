/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats `combined` and `common`: the access logs of Apache, nginx and compatible servers.
 *
 * Nearly every line has one shape: no ident, a user without spaces, a time of 26 bytes, a request without backslashes.
 * That is taken in one go from left to right, each part found by one search that stops at whatever could end it. Any
 * line of another shape, and any doubt, goes to combined_line_split(), which reads by the letter; both give the same.
 *
 * What costs here is a branch that the processor cannot foresee, so searches that mostly end in their first block are
 * written without a loop.
 */
#include "collector/format/combined_line.h"
#include "collector/format/format_options.h"
#include "common/base/alloc.h"
#include "common/record/find.h"

#include <stdlib.h>
#include <string.h>

struct format_combined {
	struct format format;
	struct format_options options;
	bool wants_tail;                  /* referer, agent or xff */
	uint8_t field_of[COMBINED_PARTS]; /* WEIR_FIELD_NONE: that part is not wanted */
	uint32_t lacking_count;
	uint8_t lacking[WEIR_FIELD_MAX]; /* wanted fields that no such line has */
};

/* Where a line's parts go. */
struct place {
	const uint8_t *field_of;
	struct weir_span *fields;
};

static inline struct weir_span span_of(const char *begin, const char *end)
{
	return (struct weir_span){.at = begin, .length = (uint32_t)(end - begin)};
}

/* A part that is there, and is no "-". */
static inline void put(const struct place *place, enum combined_part part, const char *begin, const char *end)
{
	place->fields[place->field_of[part]] = span_of(begin, end);
}

static inline void put_absent(const struct place *place, enum combined_part part)
{
	place->fields[place->field_of[part]] = (struct weir_span){0};
}

/* The parts from `part` to `last`, which combined_line.c has split off. */
static void put_split(const struct place *place, const struct combined_line *line, enum combined_part part,
                      enum combined_part last)
{
	for (; part <= last; part++)
		place->fields[place->field_of[part]] = format_value_or_dash(line->parts[part].at, line->parts[part].length);
}

/* The first `bytes` bytes are the same; 8 are readable in both. */
static inline bool same_bytes(const char *a, const char *b, unsigned bytes)
{
	return ((weir_find_load_8(a) ^ weir_find_load_8(b)) << (64 - 8 * bytes)) == 0;
}

/*
 * Where a method of 1 to 7 capital letters ends, before a space; else NULL. 8 bytes are readable.
 *
 * No branch depends on which method it is. A byte equal to the one sought is zero after ^, and the subtraction of ones
 * borrows first there; 'A' + 63 and more than 'Z' + 37 reach the high bit.
 */
static inline const char *usual_method(const char *at)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
	uint64_t word = weir_find_load_8(at), spaces = word ^ ones * ' ';
	spaces = (spaces - ones) & ~spaces & high;
	if (spaces == 0 || (spaces & 0x80) != 0)
		return NULL;
	unsigned bits = (unsigned)__builtin_ctzll(spaces) & ~7U;
	uint64_t behind = UINT64_MAX << bits;
	uint64_t letters = (word & ~behind) | (ones * 'A' & behind);
	if ((((letters + ones * 37) | letters) & high) != 0 || ((letters + ones * 63) & high) != high)
		return NULL;
	return at + bits / 8;
}

/*
 * Marks of the bytes, of which there are at most 64, where a target ends, and of those where its path may end. The byte
 * before them is readable.
 */
static inline uint64_t target_marks(const char *at, unsigned bytes, uint64_t *marks)
{
	uint64_t stops = 0;
	*marks = 0;
	for (unsigned i = 0; i < bytes; i += WEIR_FIND_BYTES) {
		weir_find_block block = weir_find_load(at + i);
		stops |= weir_find_bits(weir_find_space_or_quote(block)) << i;
		*marks |= weir_find_bits(weir_find_path_mark(weir_find_load(at + i - 1), block)) << i;
	}
	return stops;
}

/* A request "GET target HTTP/1.1" and its closing quote, behind which is returned; NULL: any other. */
static inline const char *usual_request(const char *at, const char *end, const struct place *place, bool *served)
{
	const char *space = end - at >= 8 ? usual_method(at) : NULL;
	if (space == NULL)
		return NULL;
	const char *method = at;
	/* A target's length cannot be foreseen; in steps of 64 the number of steps mostly can. */
	const char *target = space + 1, *mark = NULL;
	uint64_t stops = 0, marks;
	for (at = target; stops == 0;) {
		const char *from = at;
		if (end - at >= 64) {
			stops = target_marks(at, 64, &marks);
			at += 64;
		} else if (end - at >= WEIR_FIND_BYTES) {
			stops = target_marks(at, WEIR_FIND_BYTES, &marks);
			at += WEIR_FIND_BYTES;
		} else {
			return NULL;
		}
		if (mark == NULL && (marks | stops) != 0)
			mark = from + __builtin_ctzll(marks | stops);
		if (stops != 0)
			at = from + __builtin_ctzll(stops);
	}
	if (at == target || *target == '-' || end - at < 16 || !same_bytes(at, " HTTP/  ", 6) ||
	    !same_bytes(at + 7, ".       ", 1) || at[9] != '"' || at[6] < '0' || at[6] > '9' || at[8] < '0' || at[8] > '9')
		return NULL;
	mark = mark != NULL ? mark : at;
	*served = (*target == '/') & ((*mark == '?') | (*mark == ' '));
	put(place, COMBINED_METHOD, method, space);
	put(place, COMBINED_TARGET, target, at);
	put(place, COMBINED_PATH, target, *served ? mark : at);
	return at + 10;
}

/* What follows an ip: " - user [" and the time, with the eight bytes that begin behind it. */
enum { USUAL_TIME_BYTES = TIME_COMMON_BYTES + 8, USUAL_REST_BYTES = 3 + WEIR_FIND_BYTES + 2 + USUAL_TIME_BYTES };

/* ip, "-" and a user without spaces, up to the time, of which USUAL_TIME_BYTES are there; NULL: not of that shape. */
static inline const char *usual_client(const char *at, const char *end, const struct place *place,
                                       enum weir_record_ip *ip)
{
	const char *begin = at;
	if (end - at < 2 * WEIR_FIND_BYTES)
		return NULL;
	uint64_t spaces = weir_find_equal(weir_find_load(at), ' ');
	if (spaces == 0) {
		at += WEIR_FIND_BYTES;
		spaces = weir_find_equal(weir_find_load(at), ' ');
		if (spaces == 0)
			return NULL;
	}
	at += weir_find_index(spaces);
	if (at == begin || end - at < 6 + USUAL_TIME_BYTES)
		return NULL;
	*ip = weir_find_ipv4(begin, (unsigned)(at - begin), end) ? WEIR_RECORD_IP_PLAIN : WEIR_RECORD_IP_UNTOLD;
	if (*ip == WEIR_RECORD_IP_UNTOLD && (*begin == '-' || !combined_line_client(span_of(begin, at))))
		return NULL;
	put(place, COMBINED_IP, begin, at);
	put_absent(place, COMBINED_IDENT);
	if (same_bytes(at, " - - [  ", 6)) {
		put_absent(place, COMBINED_USER);
		return at + 6;
	}
	if (!same_bytes(at, " -      ", 3) || end - at < USUAL_REST_BYTES)
		return NULL;
	const char *user = at + 3;
	spaces = weir_find_equal(weir_find_load(user), ' ');
	if (spaces == 0 || *user == ' ')
		return NULL;
	at = user + weir_find_index(spaces);
	put(place, COMBINED_USER, user, at);
	return at[1] == '[' ? at + 2 : NULL;
}

/* " 200 1234 ": returns the end of the bytes, or NULL. */
static inline const char *usual_status_and_bytes(const char *at, const char *end, const struct place *place)
{
	if (end - at < 8)
		return NULL;
	/* Less " 000 ", a space is 0 and a digit 0..9: see time_of_day_ms(). */
	uint64_t digits = weir_find_load_8(at) ^ weir_find_load_8(" 000    ");
	const uint64_t room = UINT64_C(0x7f7676767f), high = UINT64_C(0x8080808080);
	if ((((digits + room) | digits) & high) != 0)
		return NULL;
	put(place, COMBINED_STATUS, at + 1, at + 4);
	const char *bytes = at + 5;
	uint64_t others = weir_find_not_digit(weir_find_load_until(bytes, end));
	if (others == 0)
		return NULL;
	at = bytes + weir_find_index(others);
	put(place, COMBINED_BYTES, bytes, at);
	if (at == bytes && *at == '-') {
		put_absent(place, COMBINED_BYTES);
		at++;
	}
	return at > bytes && (at == end || *at == ' ') ? at : NULL;
}

/* Takes a line of the usual shape; false: it may have any other, and what is in the record counts for nothing. */
static inline bool take_usual(struct format_combined *combined, const struct place *place, const char *at,
                              const char *end, struct weir_record *record)
{
	struct combined_line line;
	line.cut = false;
	at = usual_client(at, end, place, &record->ip);
	if (at == NULL || !same_bytes(at + TIME_COMMON_BYTES, "] \"     ", 3))
		return false;
	struct weir_span time = {.at = at, .length = TIME_COMMON_BYTES};
	if (!time_read_common(&combined->options.time, at, &record->time_ms) &&
	    time_read(&combined->options.time, time, &record->time_ms) != FORMAT_OK)
		return false;
	const char *request = at + TIME_COMMON_BYTES + 3;
	at = usual_request(request, end, place, &line.served);
	if (at == NULL) {
		at = combined_line_request(request, end, &line);
		if (at == NULL)
			return false;
		put_split(place, &line, COMBINED_METHOD, COMBINED_PATH);
	}
	at = usual_status_and_bytes(at, end, place);
	if (at == NULL)
		return false;
	if (combined->wants_tail) {
		combined_line_tail(at, end, &line);
		put_split(place, &line, COMBINED_REFERER, COMBINED_XFF);
	}
	put_absent(place, COMBINED_HOST);
	record->cut |= line.cut;
	record->settled = record->ip == WEIR_RECORD_IP_PLAIN && line.served && combined->format.client_ip == NULL;
	return true;
}

/* Takes a line of any shape. */
static enum format_reason take_any(struct format_combined *combined, const struct place *place, struct weir_span text,
                                   struct weir_record *record)
{
	struct combined_line line;
	record->ip = WEIR_RECORD_IP_UNTOLD;
	if (!combined_line_split(text, &line))
		return combined->format.malformed;
	put_split(place, &line, 0, COMBINED_PARTS - 1);
	record->cut |= line.cut;
	struct weir_span time = line.parts[COMBINED_TIME];
	return time_read(&combined->options.time, format_value_or_dash(time.at, time.length), &record->time_ms);
}

static enum format_reason parse(struct format *format, const char *text, uint32_t length, struct weir_record *record)
{
	struct format_combined *combined = (struct format_combined *)format;
	const struct place place = {.field_of = combined->field_of, .fields = record->fields};
	for (uint32_t i = 0; i < combined->lacking_count; i++)
		record->fields[combined->lacking[i]] = (struct weir_span){0};
	if (!take_usual(combined, &place, text, text + length, record)) {
		enum format_reason reason =
			take_any(combined, &place, (struct weir_span){.at = text, .length = length}, record);
		if (reason != FORMAT_OK)
			return reason;
	}
	return format_finish_cost(&combined->options, record);
}

static void combined_free(struct format *format)
{
	struct format_combined *combined = (struct format_combined *)format;
	format_options_deinit(&combined->options);
	free(combined);
}

/* COMBINED_PARTS: no part is called so. */
static enum combined_part part_of(const char *name)
{
	static const char *const names[COMBINED_PARTS] = {
		[COMBINED_IP] = "ip",         [COMBINED_IDENT] = "ident",   [COMBINED_USER] = "user",
		[COMBINED_TIME] = "",         [COMBINED_METHOD] = "method", [COMBINED_TARGET] = "target",
		[COMBINED_STATUS] = "status", [COMBINED_BYTES] = "bytes",   [COMBINED_REFERER] = "referer",
		[COMBINED_AGENT] = "agent",   [COMBINED_XFF] = "xff",       [COMBINED_HOST] = "host",
		[COMBINED_PATH] = "path",
	};
	enum combined_part part = 0;
	while (part < COMBINED_PARTS && strcmp(names[part], name) != 0)
		part++;
	return part;
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
	combined->format.parse = parse;
	combined->format.free = combined_free;
	combined->format.lacks = lacks;
	combined->format.takes_cut = true;
	combined->format.escapes = true;
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

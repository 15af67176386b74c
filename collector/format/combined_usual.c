/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combined lines of the usual shape, in one go.
 *
 * Nearly every line has one shape: no ident, a user without spaces, a time of 26 bytes, a request without backslashes.
 * That is taken from left to right, each part found by one search that stops at whatever could end it. Any line of
 * another shape, and any doubt, goes to combined_take_any(), which reads by the letter; both give the same.
 *
 * What costs here is how many instructions there are, and a branch that the processor cannot foresee. So searches that
 * mostly end in their first block are written without a loop, a time of the same second as the last is not read again,
 * and the ends of the parts are searched where they are needed: marks of a whole line made beforehand cost as much as
 * they save, since a line's last half, which is the agent, is mostly looked at by nobody.
 *
 * combined_usual_avx2.c compiles this file once more.
 */
#include "collector/format/combined_usual.h"
#include "common/record/find.h"

#if !defined(COMBINED_PARSE)
#define COMBINED_PARSE combined_parse_plain
#endif

static inline struct weir_span span_of(const char *begin, const char *end)
{
	return (struct weir_span){.at = begin, .length = (uint32_t)(end - begin)};
}

/* A part that is there, and is no "-", of those that have no field of their own in every record. */
static inline void put_rare(const struct format_combined *combined, enum combined_part part, struct weir_span value,
                            struct weir_record *record)
{
	record->fields[combined->field_of[part]] = value;
}

/* The first `bytes` bytes are the same; 8 are readable in both. */
static inline bool same_bytes(const char *a, const char *b, unsigned bytes)
{
	return ((weir_find_load_8(a) ^ weir_find_load_8(b)) << (64 - 8 * bytes)) == 0;
}

/*
 * Where a method of capital letters ends, before a space; else NULL. A block is readable. No branch depends on which
 * method it is.
 */
static inline const char *usual_method(const char *at)
{
	uint64_t others = weir_find_not_capital(weir_find_load(at));
	const char *behind = others != 0 ? at + weir_find_index(others) : at;
	return behind > at && *behind == ' ' ? behind : NULL;
}

/*
 * Marks of the bytes, of which there are at most 64 and whole wide blocks, where a target ends, and of those where its
 * path may end or is escaped. The byte before them is readable.
 */
static inline uint64_t target_marks(const char *at, unsigned bytes, uint64_t *marks)
{
	uint64_t stops = 0;
	*marks = 0;
	for (unsigned i = 0; i < bytes; i += WEIR_FIND_WIDE_BYTES) {
		stops |= weir_find_wide_space_or_quote(at + i) << i;
		*marks |= weir_find_wide_path_mark(at + i) << i;
	}
	return stops;
}

/* " HTTP/1.1\"", with any digits. 10 bytes are readable. */
static inline bool is_protocol(const char *at)
{
	/* Less "TTP/0.0\"", digits are 0..9 and all else 0: see time_of_day_ms(). */
	uint64_t digits = weir_find_load_8(at + 2) ^ weir_find_load_8("TTP/0.0\"");
	const uint64_t room = UINT64_C(0x7f767f767f7f7f7f), high = UINT64_C(0x8080808080808080);
	return at[0] == ' ' && at[1] == 'H' && (((digits + room) | digits) & high) == 0;
}

static inline bool has_escapes(const char *at, const char *end)
{
	return memchr(at, '\\', (size_t)(end - at)) != NULL;
}

/* What the way through a line has found besides its fields. */
struct usual_line {
	bool served;  /* the path is what was served */
	bool escaped; /* a part may have a backslash */
};

/* A request "GET target HTTP/1.1" and its closing quote, behind which is returned; NULL: any other. */
static inline const char *usual_request(const struct format_combined *combined, const char *at, const char *end,
                                        struct weir_record *record, struct usual_line *line)
{
	const char *space = end - at >= WEIR_FIND_BYTES ? usual_method(at) : NULL;
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
		} else if (end - at >= WEIR_FIND_WIDE_BYTES) {
			stops = target_marks(at, WEIR_FIND_WIDE_BYTES, &marks);
			at += WEIR_FIND_WIDE_BYTES;
		} else {
			return NULL;
		}
		if (mark == NULL && (marks | stops) != 0)
			mark = from + __builtin_ctzll(marks | stops);
		if (stops != 0)
			at = from + __builtin_ctzll(stops);
	}
	if (at == target || *target == '-' || end - at < 10 || !is_protocol(at))
		return NULL;
	mark = mark != NULL ? mark : at;
	line->served = (*target == '/') & ((*mark == '?') | (*mark == ' '));
	record->fields[WEIR_FIELD_METHOD] = span_of(method, space);
	record->fields[WEIR_FIELD_PATH] = span_of(target, line->served ? mark : at);
	if (combined->wants_rare)
		put_rare(combined, COMBINED_TARGET, span_of(target, at), record);
	return at + 10;
}

/* What follows an ip without a user: " - - [" and the time, with "] \"". */
enum { USUAL_REST_BYTES = 6 + COMBINED_TIME_BYTES };

/* The first space of two blocks, behind which USUAL_REST_BYTES are there; NULL: there is none. */
static inline const char *first_space(const char *at, const char *end)
{
	if (end - at < WEIR_FIND_BYTES + USUAL_REST_BYTES)
		return NULL;
	uint64_t spaces = weir_find_equal(weir_find_load(at), ' ');
	if (spaces != 0)
		return at + weir_find_index(spaces);
	at += WEIR_FIND_BYTES;
	spaces = weir_find_equal(weir_find_load(at), ' ');
	return spaces != 0 && end - at >= WEIR_FIND_BYTES + USUAL_REST_BYTES ? at + weir_find_index(spaces) : NULL;
}

/* Whether a word that is no IPv4 address may be a client, as the usual shape has it. */
static __attribute__((noinline)) bool is_other_client(const char *at, const char *end)
{
	return at < end && *at != '-' && combined_line_client(span_of(at, end));
}

/* ip, "-" and a user without spaces, up to the time, which is there with "] \""; NULL: not of that shape. */
static inline const char *usual_client(const struct format_combined *combined, const char *begin, const char *end,
                                       struct weir_record *record, struct usual_line *line)
{
	const char *at = first_space(begin, end);
	if (at == NULL)
		return NULL;
	record->ip = WEIR_RECORD_IP_PLAIN;
	if (!weir_find_ipv4(begin, (unsigned)(at - begin), end)) {
		record->ip = WEIR_RECORD_IP_UNTOLD;
		if (!is_other_client(begin, at))
			return NULL;
	}
	record->fields[WEIR_FIELD_IP] = span_of(begin, at);
	if (combined->wants_rare)
		put_rare(combined, COMBINED_IDENT, (struct weir_span){0}, record);
	if (same_bytes(at, " - - [  ", 6)) {
		record->fields[WEIR_FIELD_USER] = (struct weir_span){0};
		return at + 6;
	}
	const char *user = at + 3;
	at = same_bytes(at, " -      ", 3) ? first_space(user, end) : NULL;
	if (at == NULL || at == user || at[1] != '[')
		return NULL;
	record->fields[WEIR_FIELD_USER] = span_of(user, at);
	line->escaped = has_escapes(user, at);
	return at + 2;
}

/* All COMBINED_TIME_BYTES are the same. */
static inline bool same_time(const char *a, const char *b)
{
	enum { LAST = COMBINED_TIME_BYTES - 8 };
	uint64_t different = weir_find_load_8(a) ^ weir_find_load_8(b);
	different |= weir_find_load_8(a + 8) ^ weir_find_load_8(b + 8);
	different |= weir_find_load_8(a + 16) ^ weir_find_load_8(b + 16);
	return (different | (weir_find_load_8(a + LAST) ^ weir_find_load_8(b + LAST))) == 0;
}

/* A time that is not that of the last line. */
static __attribute__((noinline)) bool take_new_time(struct format_combined *combined, const char *at, int64_t *time_ms)
{
	if (memcmp(at + TIME_COMMON_BYTES, "] \"", 3) != 0)
		return false;
	if (!time_read_common(&combined->options.time, at, time_ms)) {
		struct weir_span time = {.at = at, .length = TIME_COMMON_BYTES};
		return time_read(&combined->options.time, time, time_ms) == FORMAT_OK;
	}
	memcpy(combined->last_time, at, COMBINED_TIME_BYTES);
	combined->last_time_ms = *time_ms;
	return true;
}

/* A time of the usual length and the "] \"" behind it. */
static inline bool usual_time(struct format_combined *combined, const char *at, int64_t *time_ms)
{
	if (!same_time(at, combined->last_time) || combined->last_time_ms < 0)
		return take_new_time(combined, at, time_ms);
	*time_ms = combined->last_time_ms;
	return true;
}

/* " 200 1234 ": returns the end of the bytes, or NULL. */
static inline const char *usual_status_and_bytes(const char *at, const char *end, struct weir_record *record)
{
	if (end - at < 8)
		return NULL;
	/* Less " 000 ", a space is 0 and a digit 0..9: see time_of_day_ms(). */
	uint64_t digits = weir_find_load_8(at) ^ weir_find_load_8(" 000    ");
	const uint64_t room = UINT64_C(0x7f7676767f), high = UINT64_C(0x8080808080);
	if ((((digits + room) | digits) & high) != 0)
		return NULL;
	record->fields[WEIR_FIELD_STATUS] = span_of(at + 1, at + 4);
	const char *bytes = at + 5;
	uint64_t others = weir_find_not_digit(weir_find_load_until(bytes, end));
	if (others == 0)
		return NULL;
	at = bytes + weir_find_index(others);
	record->fields[WEIR_FIELD_BYTES] = span_of(bytes, at);
	if (at == bytes && *at == '-') {
		record->fields[WEIR_FIELD_BYTES] = (struct weir_span){0};
		at++;
	}
	return at > bytes && (at == end || *at == ' ') ? at : NULL;
}

/* A request of any other shape, from after its opening quote; gives the place behind its closing one. */
static __attribute__((noinline)) const char *other_request(const struct format_combined *combined, const char *at,
                                                           const char *end, struct weir_record *record)
{
	struct combined_line line;
	at = combined_line_request(at, end, &line);
	combined_put_split(combined, &line, COMBINED_METHOD, COMBINED_PATH, record);
	record->cut |= line.cut;
	return at;
}

/* The parts behind the bytes. */
static __attribute__((noinline)) void take_tail(const struct format_combined *combined, const char *at, const char *end,
                                                struct weir_record *record)
{
	struct combined_line line;
	line.cut = false;
	combined_line_tail(at, end, &line);
	combined_put_split(combined, &line, COMBINED_REFERER, COMBINED_XFF, record);
	record->cut |= line.cut;
}

/* Takes a line of the usual shape; false: it may have any other, and what is in the record counts for nothing. */
static inline bool take_usual(struct format_combined *combined, const char *at, const char *end,
                              struct weir_record *record, bool *escaped)
{
	struct usual_line line = {0};
	at = usual_client(combined, at, end, record, &line);
	if (at == NULL || !usual_time(combined, at, &record->time_ms))
		return false;
	const char *request = at + COMBINED_TIME_BYTES;
	at = usual_request(combined, request, end, record, &line);
	if (at == NULL)
		at = other_request(combined, request, end, record);
	at = usual_status_and_bytes(at, end, record);
	if (at == NULL)
		return false;
	bool whole_request =
		!line.served || combined->wants_rare; /* else its path has no escapes, and nothing else is wanted */
	if (combined->wants_tail || whole_request)
		line.escaped |= has_escapes(whole_request ? request : at, combined->wants_tail ? end : at);
	if (combined->wants_tail)
		take_tail(combined, at, end, record);
	record->fields[WEIR_FIELD_HOST] = (struct weir_span){0};
	/* A request that is served as it stands has a method of capitals: usual_method(). */
	record->settled = line.served && record->ip == WEIR_RECORD_IP_PLAIN && combined->format.client_ip == NULL;
	*escaped = line.escaped;
	return true;
}

/* The wanted fields that no line has. */
static __attribute__((noinline)) void put_lacking(const struct format_combined *combined, struct weir_record *record)
{
	for (uint32_t i = 0; i < combined->lacking_count; i++)
		record->fields[combined->lacking[i]] = (struct weir_span){0};
}

enum format_reason COMBINED_PARSE(struct format *format, const char *text, uint32_t length, struct weir_record *record)
{
	struct format_combined *combined = (struct format_combined *)format;
	if (combined->lacking_count > 0)
		put_lacking(combined, record);
	bool escaped = false;
	if (!take_usual(combined, text, text + length, record, &escaped)) {
		enum format_reason reason =
			combined_take_any(combined, (struct weir_span){.at = text, .length = length}, record);
		if (reason != FORMAT_OK)
			return reason;
		escaped = has_escapes(text, text + length);
	}
	if (__builtin_expect(escaped, 0))
		combined_unescape(combined, length, record);
	record->cost = 1;
	return combined->options.cost_field < 0 ? FORMAT_OK : format_finish_cost(&combined->options, record);
}

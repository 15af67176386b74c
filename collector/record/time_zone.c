/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time zones: reads a zone's tzdata file (TZif, RFC 8536) into a sorted list of local times from which an offset holds.
 *
 * The list is made once, when the configuration is read, so a line costs a comparison with the span of the one before
 * it, and nothing depends on TZ, localtime() or a lock. The C library's mktime() would need all three, and leaves the
 * choice for a doubled hour to chance. The rule that ends the file is written out for 400 years, after which the
 * calendar repeats.
 */
#include "collector/record/time_zone.h"

#include "collector/record/time_civil.h"
#include "collector/record/time_zone_rule.h"
#include "common/base/alloc.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FILE_MAX_BYTES = 1 << 20,
	NAME_MAX_BYTES = 128,
	HEADER_BYTES = 44,
	TRANSITIONS_MAX = 8192,
	RULE_YEARS = CIVIL_CYCLE_YEARS + 2,
	ZONE_NAMES_MAX = 32, /* of most zones there are two or three */
};

/* From before the Big Bang, with which some files begin, to the year 36000. */
#define TRANSITION_MIN_S (-(INT64_C(1) << 60))
#define TRANSITION_MAX_S (INT64_C(1) << 40)

static const int64_t cycle_s = (int64_t)CIVIL_CYCLE_DAYS * DAY_SECONDS;

struct boundary {
	int64_t from_s; /* local */
	int32_t offset_s;
};

/* What an offset of the zone is called. */
struct zone_name {
	char text[8];
	int32_t offset_s;
};

struct time_zone {
	struct zone_name names[ZONE_NAMES_MAX]; /* the newest last, each once */
	uint32_t name_count;
	bool any_name; /* whoever says an offset says what the names in the log are */
	bool repeats;  /* local times after the last boundary are those of 400 years before */
	uint32_t count;
	struct boundary boundaries[]; /* the first from INT64_MIN, then rising */
};

/* Counts of a TZif block, and where its parts lie. */
struct block {
	uint32_t isut, isstd, leap, time, type, chars;
	size_t bytes;
};

/*
 * Cuts a span at the first of the local times that the next offset has again, so that a caller who keeps spans pays
 * nothing to know of them.
 */
static void cut_at_twice(struct time_zone_span *span, int32_t next_offset_s, int64_t local_s)
{
	int64_t twice_s = span->to_s - (span->offset_s - next_offset_s);
	if (twice_s < span->from_s)
		twice_s = span->from_s;
	span->twice = twice_s < span->to_s && local_s >= twice_s;
	if (span->twice)
		span->from_s = twice_s;
	else if (twice_s < span->to_s)
		span->to_s = twice_s;
}

struct time_zone_span time_zone_find(const struct time_zone *zone, int64_t local_s)
{
	int64_t shift_s = 0;
	int64_t last_s = zone->boundaries[zone->count - 1].from_s;
	if (zone->repeats && local_s >= last_s) {
		shift_s = ((local_s - last_s) / cycle_s + 1) * cycle_s;
		local_s -= shift_s;
	}
	uint32_t low = 0, high = zone->count;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (zone->boundaries[middle].from_s <= local_s)
			low = middle;
		else
			high = middle;
	}
	struct time_zone_span span = {.from_s = INT64_MIN, .to_s = INT64_MAX, .offset_s = zone->boundaries[low].offset_s};
	if (low > 0)
		span.from_s = zone->boundaries[low].from_s + shift_s;
	if (high < zone->count) {
		span.to_s = zone->boundaries[high].from_s + shift_s;
		cut_at_twice(&span, zone->boundaries[high].offset_s, local_s + shift_s);
	}
	return span;
}

static bool is_named(const struct zone_name *name, struct weir_span text)
{
	return weir_span_equal(weir_span_of(name->text), text);
}

bool time_zone_named(const struct time_zone *zone, struct weir_span name, int32_t now_s, int32_t *offset_s)
{
	static const struct zone_name mail[] = {
		{"EST", -5 * 3600}, {"EDT", -4 * 3600}, {"CST", -6 * 3600}, {"CDT", -5 * 3600},
		{"MST", -7 * 3600}, {"MDT", -6 * 3600}, {"PST", -8 * 3600}, {"PDT", -7 * 3600},
	};
	const struct zone_name *found = NULL;
	*offset_s = now_s;
	if (zone->any_name)
		return true;
	for (uint32_t i = 0; i < zone->name_count; i++)
		if (is_named(&zone->names[i], name) && (found == NULL || found->offset_s != now_s))
			found = &zone->names[i];
	for (size_t i = 0; i < sizeof mail / sizeof *mail && found == NULL; i++)
		if (is_named(&mail[i], name))
			found = &mail[i];
	if (found != NULL)
		*offset_s = found->offset_s;
	return found != NULL;
}

static struct time_zone *zone_of_capacity(uint32_t boundaries, int32_t first_offset_s)
{
	struct time_zone *zone = weir_alloc(1, sizeof *zone + boundaries * sizeof zone->boundaries[0]);
	zone->boundaries[0] = (struct boundary){.from_s = INT64_MIN, .offset_s = first_offset_s};
	zone->count = 1;
	return zone;
}

/* The offset from a UTC time on. */
static void zone_add(struct time_zone *zone, int64_t utc_s, int32_t offset_s)
{
	int32_t before_s = zone->boundaries[zone->count - 1].offset_s;
	if (offset_s == before_s)
		return;
	int64_t from_s = utc_s + (before_s > offset_s ? before_s : offset_s);
	while (zone->count > 1 && zone->boundaries[zone->count - 1].from_s >= from_s)
		zone->count--;
	zone->boundaries[zone->count++] = (struct boundary){.from_s = from_s, .offset_s = offset_s};
}

/* Takes an offset's name, which ends at a NUL among the names of the file. One that is there becomes the newest. */
static void zone_add_name(struct time_zone *zone, const char *names, uint32_t bytes, uint32_t at, int32_t offset_s)
{
	struct zone_name name = {.offset_s = offset_s};
	size_t length = at < bytes ? strnlen(names + at, bytes - at) : 0;
	if (length == 0 || length >= sizeof name.text)
		return;
	memcpy(name.text, names + at, length);
	uint32_t place = 0;
	while (place < zone->name_count && memcmp(&zone->names[place], &name, sizeof name) != 0)
		place++;
	if (place == ZONE_NAMES_MAX)
		place = 0; /* the oldest gives way */
	else if (place == zone->name_count)
		zone->name_count++;
	memmove(&zone->names[place], &zone->names[place + 1], (zone->name_count - 1 - place) * sizeof name);
	zone->names[zone->name_count - 1] = name;
}

static void zone_add_rule(struct time_zone *zone, const struct time_zone_rule *rule, int64_t after_utc_s)
{
	if (!rule->has_daylight) {
		if (after_utc_s > INT64_MIN)
			zone_add(zone, after_utc_s, rule->standard_s);
		else
			zone->boundaries[0].offset_s = rule->standard_s;
		return;
	}
	/* A year too early does no harm, as what is not after the last recorded change is left out. */
	int32_t year = 1970 + (int32_t)(after_utc_s > 0 ? after_utc_s / (366 * (int64_t)DAY_SECONDS) : 0);
	for (int32_t last = year + RULE_YEARS; year < last; year++) {
		int64_t start_s = time_zone_change_at(&rule->start, year, rule->standard_s);
		int64_t end_s = time_zone_change_at(&rule->end, year, rule->daylight_s);
		bool north = start_s < end_s;
		int64_t first_s = north ? start_s : end_s, second_s = north ? end_s : start_s;
		if (first_s > after_utc_s)
			zone_add(zone, first_s, north ? rule->daylight_s : rule->standard_s);
		if (second_s > after_utc_s)
			zone_add(zone, second_s, north ? rule->standard_s : rule->daylight_s);
	}
	zone->repeats = true;
}

static uint32_t read_u32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int64_t read_i64(const uint8_t *at)
{
	return (int64_t)((uint64_t)read_u32(at) << 32 | read_u32(at + 4));
}

static bool block_read(const uint8_t *data, size_t length, size_t time_bytes, struct block *block)
{
	if (length < HEADER_BYTES || memcmp(data, "TZif", 4) != 0)
		return false;
	*block = (struct block){.isut = read_u32(data + 20),
	                        .isstd = read_u32(data + 24),
	                        .leap = read_u32(data + 28),
	                        .time = read_u32(data + 32),
	                        .type = read_u32(data + 36),
	                        .chars = read_u32(data + 40)};
	if (block->isut > 256 || block->isstd > 256 || block->leap > TRANSITIONS_MAX || block->time > TRANSITIONS_MAX ||
	    block->type == 0 || block->type > 256 || block->chars > FILE_MAX_BYTES)
		return false;
	block->bytes = HEADER_BYTES + block->time * (time_bytes + 1) + block->type * 6 + block->chars +
	               block->leap * (time_bytes + 4) + block->isstd + block->isut;
	return block->bytes <= length;
}

/* The zone of a file's second, 64-bit block and the rule after it; NULL with a reason where the file is not sound. */
static struct time_zone *zone_from_file(const uint8_t *data, size_t length, const char **why)
{
	struct block first, block;
	*why = "is not a tzdata file of version 2 or newer";
	if (!block_read(data, length, 4, &first) || data[4] < '2')
		return NULL;
	data += first.bytes;
	length -= first.bytes;
	if (!block_read(data, length, 8, &block))
		return NULL;
	*why = "counts leap seconds; use the zone without \"right/\"";
	if (block.leap > 0)
		return NULL;

	*why = "is damaged";
	const uint8_t *times = data + HEADER_BYTES, *types = times + block.time * 8, *infos = types + block.time;
	const char *names = (const char *)infos + block.type * 6;
	for (uint32_t i = 0; i < block.type; i++) {
		if (abs((int32_t)read_u32(infos + i * 6)) > TIME_ZONE_OFFSET_MAX_S)
			return NULL;
	}
	char footer[256];
	const char *rest = (const char *)data + block.bytes;
	size_t rest_bytes = length - block.bytes;
	const char *end = rest_bytes > 0 && rest[0] == '\n' ? memchr(rest + 1, '\n', rest_bytes - 1) : NULL;
	if (end == NULL || (size_t)(end - rest) > sizeof footer)
		return NULL;
	memcpy(footer, rest + 1, (size_t)(end - rest - 1));
	footer[end - rest - 1] = '\0';
	struct time_zone_rule rule = {0};
	if (footer[0] != '\0' && !time_zone_rule_parse(footer, &rule))
		return NULL;

	struct time_zone *zone = zone_of_capacity(1 + block.time + 2 * RULE_YEARS, (int32_t)read_u32(infos));
	zone_add_name(zone, names, block.chars, infos[5], (int32_t)read_u32(infos));
	int64_t last_s = INT64_MIN;
	for (uint32_t i = 0; i < block.time; i++) {
		int64_t at_s = read_i64(times + i * 8);
		if (types[i] >= block.type || at_s <= last_s || at_s < TRANSITION_MIN_S || at_s > TRANSITION_MAX_S) {
			time_zone_free(zone);
			return NULL;
		}
		const uint8_t *info = infos + types[i] * 6;
		zone_add(zone, at_s, (int32_t)read_u32(info));
		zone_add_name(zone, names, block.chars, info[5], (int32_t)read_u32(info));
		last_s = at_s;
	}
	if (footer[0] != '\0')
		zone_add_rule(zone, &rule, last_s);
	return zone;
}

static enum weir_status zone_load(const char *name, struct time_zone **zone, struct weir_error *error)
{
	const char *folder = getenv("TZDIR");
	if (folder == NULL || folder[0] == '\0')
		folder = "/usr/share/zoneinfo";
	char path[4096];
	if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
		return weir_fail(error, WEIR_INVALID, "the time zone's path is too long");
	FILE *file = fopen(path, "rbe");
	if (file == NULL && errno == ENOENT)
		return weir_fail(error, WEIR_INVALID,
		                 "\"%s\" is not a time zone: expected \"UTC\", \"+02:00\" or a name such as \"Europe/Berlin\" "
		                 "that is a file in %s (package tzdata)",
		                 name, folder);
	if (file == NULL)
		return weir_fail(error, WEIR_IO, "cannot open %s: %s", path, weir_errno_words(errno));

	uint8_t *data = weir_alloc(1, FILE_MAX_BYTES);
	size_t length = fread(data, 1, FILE_MAX_BYTES, file);
	const char *why;
	*zone = zone_from_file(data, length, &why);
	free(data);
	fclose(file);
	return *zone != NULL ? WEIR_OK : weir_fail(error, WEIR_INVALID, "%s %s", path, why);
}

/* "+02:00", "-0330", "+02" */
static bool parse_fixed(const char *text, int32_t *offset_s)
{
	int32_t digits[4] = {0};
	int count = 0;
	if (text[0] != '+' && text[0] != '-')
		return false;
	for (const char *p = text + 1; *p != '\0'; p++) {
		if (*p == ':' && p == text + 3 && p[1] != '\0')
			continue;
		if (*p < '0' || *p > '9' || count == 4)
			return false;
		digits[count++] = *p - '0';
	}
	int32_t hours = digits[0] * 10 + digits[1], minutes = digits[2] * 10 + digits[3];
	if ((count != 2 && count != 4) || hours > 23 || minutes > 59)
		return false;
	*offset_s = (hours * 60 + minutes) * 60 * (text[0] == '-' ? -1 : 1);
	return true;
}

/* Letters, digits and a few signs, in parts that do not begin with a dot: no way out of the folder. */
static bool is_zone_name(const char *name)
{
	size_t length = strlen(name);
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/.";
	return length > 0 && length <= NAME_MAX_BYTES && strspn(name, allowed) == length && name[0] != '/' &&
	       name[0] != '.' && strstr(name, "/.") == NULL && strstr(name, "//") == NULL && name[length - 1] != '/';
}

enum weir_status time_zone_new(const char *name, struct time_zone **zone, struct weir_error *error)
{
	int32_t offset_s = 0;
	bool fixed = parse_fixed(name, &offset_s);
	if (strcmp(name, "UTC") == 0 || strcmp(name, "Z") == 0 || fixed) {
		*zone = zone_of_capacity(1, offset_s);
		(*zone)->any_name = fixed;
		return WEIR_OK;
	}
	if (!is_zone_name(name))
		return weir_fail(error, WEIR_INVALID,
		                 "\"%s\" is not a time zone: expected \"UTC\", \"+02:00\" or a name such as \"Europe/Berlin\"",
		                 name);
	return zone_load(name, zone, error);
}

void time_zone_free(struct time_zone *zone)
{
	free(zone);
}

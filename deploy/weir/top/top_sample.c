/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample is a few questions: who is blocked (which also tells the archiver's
 * clock), the zones and their sums of this hour, the day's top keys of one zone
 * and what each of those did in this hour.
 *
 * Rates are differences to the oldest of the last samples that was within the
 * same hour.
 *
 * A span's sums are those of whole hours. Where the archive has deleted the
 * hours of keys (archiver.keep_hourly), the days of keys may still be there:
 * then all sums are those of whole days.
 */
#include "deploy/weir/top/top_sample.h"

#include "common/base/alloc.h"
#include "common/policy/policy.h"
#include "common/store/archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPAN_DAYS_MAX = 366 }; /* of which the API lists top keys */

static struct api_argument argument(const char *name, const char *value)
{
	return (struct api_argument){name, weir_span_of(value)};
}

static int64_t number_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

/* A key that holds bytes outside UTF-8 is shown, but cannot be asked for. */
static bool is_whole(const char *key)
{
	return strstr(key, "\xEF\xBF\xBD") == NULL;
}

/* What sums are of. */
struct span {
	int64_t from_ms, to_ms;
	const char *grain;
};

static const char *write_time(char *text, size_t room, int64_t time_ms)
{
	snprintf(text, room, "%lld", (long long)time_ms);
	return text;
}

/* The counts of a key, as lists have it; NULL: of all together. @param answer  returned */
static enum weir_status read_counts(struct top_source *source, const char *zone, const json_t *key,
                                    const struct span *span, json_t **answer, struct weir_error *error)
{
	char from[24], to[24];
	const struct api_argument arguments[] = {
		argument("zone", zone),
		argument("grain", span->grain),
		argument("from", write_time(from, sizeof from, span->from_ms)),
		argument("to", write_time(to, sizeof to, span->to_ms)),
		{"bucket", {json_string_value(key), key != NULL ? (uint32_t)json_string_length(key) : 0}}};
	return top_source_ask(source, "/api/v1/counts", arguments, key != NULL ? 5 : 4, answer, error);
}

/* ---- zones ---- */

/* A zone's sum in an earlier sample; -1: it was not there. */
static int64_t total_then(const json_t *zones, const char *name)
{
	size_t i;
	json_t *zone;
	json_array_foreach(zones, i, zone)
	{
		if (strcmp(json_string_value(json_object_get(zone, "zone")), name) == 0)
			return number_of(zone, "passed") + number_of(zone, "blocked");
	}
	return -1;
}

static json_t *rate_of(const struct top_rates *rates, const char *name, int64_t total, int64_t at_ms, int64_t hour_ms)
{
	uint64_t first = rates->count > TOP_RATE_SAMPLES ? rates->count - TOP_RATE_SAMPLES : 0;
	for (uint64_t i = first; i < rates->count; i++) {
		uint64_t place = i % TOP_RATE_SAMPLES;
		int64_t then = total_then(rates->samples[place].zones, name), spent_ms = at_ms - rates->samples[place].at_ms;
		if (rates->samples[place].hour_ms == hour_ms && then >= 0 && then <= total && spent_ms > 0)
			return json_real((double)(total - then) * 1000 / (double)spent_ms);
	}
	return json_null();
}

static void remember(struct top_rates *rates, json_t *zones, int64_t at_ms, int64_t hour_ms)
{
	uint64_t place = rates->count++ % TOP_RATE_SAMPLES;
	json_decref(rates->samples[place].zones);
	rates->samples[place].zones = json_incref(zones);
	rates->samples[place].at_ms = at_ms;
	rates->samples[place].hour_ms = hour_ms;
}

void top_rates_deinit(struct top_rates *rates)
{
	for (int i = 0; i < TOP_RATE_SAMPLES; i++)
		json_decref(rates->samples[i].zones);
	*rates = (struct top_rates){.count = 0};
}

/* Since when the archive has counts of the span. */
static json_t *first_of(const json_t *counts)
{
	const json_t *row = json_array_get(counts, 0);
	return row != NULL ? json_integer(number_of(row, "at_ms")) : json_null();
}

/* What zones did in a span: this hour, or one that was asked for. */
struct sums {
	struct span span;
	const struct top_rates *rates; /* NULL: rates are the span's average */
	int64_t at_ms;
	json_t *zones;
};

static json_t *average(const struct sums *sums, int64_t total)
{
	int64_t end_ms = sums->span.to_ms < sums->at_ms ? sums->span.to_ms : sums->at_ms;
	return end_ms > sums->span.from_ms ? json_real((double)total * 1000 / (double)(end_ms - sums->span.from_ms))
	                                   : json_null();
}

/* @param known  as GET /api/v1/zones has it */
static enum weir_status add_zone(struct top_source *source, const char *name, const json_t *known,
                                 const struct sums *sums, struct weir_error *error)
{
	json_t *answer, *mode = json_object_get(known, "mode");
	enum weir_status status = read_counts(source, name, NULL, &sums->span, &answer, error);
	if (status != WEIR_OK)
		return status;
	json_t *zone = json_pack("{s:s}", "zone", name), *counted = json_object_get(answer, "total");
	int64_t total = number_of(counted, "passed") + number_of(counted, "blocked");
	json_object_set_new(zone, "mode", json_is_string(mode) ? json_incref(mode) : json_null());
	json_object_update(zone, counted);
	json_object_set_new(zone, "per_second",
	                    sums->rates != NULL ? rate_of(sums->rates, name, total, sums->at_ms, sums->span.from_ms)
	                                        : average(sums, total));
	if (sums->rates == NULL)
		json_object_set_new(zone, "first_ms", first_of(json_object_get(answer, "counts")));
	json_array_append_new(sums->zones, zone);
	json_decref(answer);
	return WEIR_OK;
}

static enum weir_status refuse_zone(const struct top_source *source, const char *name, const json_t *list,
                                    struct weir_error *error)
{
	size_t i, count = 0;
	json_t *zone;
	const char **names = weir_alloc(json_array_size(list) + 1, sizeof *names);
	json_array_foreach(list, i, zone)
	{
		names[count] = json_string_value(json_object_get(zone, "name"));
		count += names[count] != NULL;
	}
	weir_policy_no_zone(names, weir_span_of(name), error);
	weir_error_prefix(error, "%s", source->name);
	free(names);
	return WEIR_INVALID;
}

/* Finds the zone whose keys are shown: the one that is asked for, which may have been removed, or the first in force. */
static enum weir_status choose_zone(struct top_source *source, struct top_question *question, json_t **list,
                                    struct weir_error *error)
{
	json_t *answer, *zone;
	size_t i;
	bool found = false;
	enum weir_status status = top_source_ask(source, "/api/v1/zones", NULL, 0, &answer, error);
	if (status != WEIR_OK)
		return status;
	json_array_foreach(json_object_get(answer, "zones"), i, zone)
	{
		const char *name = json_string_value(json_object_get(zone, "name"));
		if (name == NULL)
			continue;
		if (question->zone[0] == '\0' && json_is_true(json_object_get(zone, "live")))
			snprintf(question->zone, sizeof question->zone, "%s", name);
		found = found || strcmp(name, question->zone) == 0;
	}
	*list = json_incref(json_object_get(answer, "zones"));
	json_decref(answer);
	if (!found && question->zone[0] != '\0')
		status = refuse_zone(source, question->zone, *list, error);
	else if (!found)
		status = weir_fail(error, WEIR_INVALID, "%s has no zones yet", source->name);
	return status;
}

/* Those in force, and the one that is shown. */
static enum weir_status read_zones(struct top_source *source, const struct top_question *question, const json_t *list,
                                   const struct sums *sums, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	json_t *zone;
	size_t i;
	json_array_foreach(list, i, zone)
	{
		const char *name = json_string_value(json_object_get(zone, "name"));
		if (name == NULL || status != WEIR_OK)
			continue;
		bool wanted = json_is_true(json_object_get(zone, "live")) || strcmp(name, question->zone) == 0;
		if (wanted && total_then(sums->zones, name) < 0)
			status = add_zone(source, name, zone, sums, error);
	}
	return status;
}

/* ---- keys ---- */

/* @param day_ms  of a day; NULL: of the span */
static enum weir_status ask_top(struct top_source *source, const struct top_question *question, unsigned rows,
                                const struct span *span, const int64_t *day_ms, json_t **answer,
                                struct weir_error *error)
{
	char limit[16], from[24], to[24];
	snprintf(limit, sizeof limit, "%u", rows);
	write_time(from, sizeof from, day_ms != NULL ? *day_ms : span->from_ms);
	const struct api_argument arguments[] = {argument("zone", question->zone),
	                                         argument("by", question->by_blocked ? "blocked" : "passed"),
	                                         argument("limit", limit),
	                                         argument(day_ms != NULL ? "day" : "from", from),
	                                         argument("to", write_time(to, sizeof to, span->to_ms)),
	                                         argument("grain", span->grain)};
	return top_source_ask(source, "/api/v1/top", arguments, day_ms != NULL ? 4 : 6, answer, error);
}

static enum weir_status read_top(struct top_source *source, const struct top_question *question,
                                 const struct span *span, json_t **top, struct weir_error *error)
{
	json_t *answer, *row, *hour;
	size_t i;
	enum weir_status status =
		ask_top(source, question, question->top_rows, span, question->spanned ? NULL : &span->from_ms, &answer, error);
	if (status != WEIR_OK)
		return status;
	json_array_foreach(json_object_get(answer, "top"), i, row)
	{
		const json_t *key = json_object_get(row, "key");
		hour = NULL;
		json_object_del(row, "total");
		if (question->spanned)
			continue;
		if (status == WEIR_OK && json_is_string(key) && is_whole(json_string_value(key)))
			status = read_counts(source, question->zone, key, span, &hour, error);
		json_object_set_new(row, "hour", hour != NULL ? json_incref(json_object_get(hour, "total")) : json_null());
		json_decref(hour);
	}
	*top = json_incref(json_object_get(answer, "top"));
	json_decref(answer);
	return status;
}

/* ---- what is now ---- */

static enum weir_status read_now(struct top_source *source, struct top_question *question, struct top_rates *rates,
                                 const json_t *list, json_t *blocks, json_t **sample, struct weir_error *error)
{
	int64_t at_ms = number_of(blocks, "now_ms"), hour_ms = weir_begin_of(at_ms, WEIR_HOUR_MS);
	json_t *top = NULL;
	struct sums sums = {
		.span = {hour_ms, hour_ms + WEIR_HOUR_MS, "hour"}, .rates = rates, .at_ms = at_ms, .zones = json_array()};
	enum weir_status status = read_zones(source, question, list, &sums, error);
	if (status == WEIR_OK)
		status = read_top(source, question, &sums.span, &top, error);
	if (status == WEIR_OK) {
		remember(rates, sums.zones, at_ms, hour_ms);
		*sample = json_pack("{s:I,s:I,s:O,s:s,s:s,s:O,s:O,s:O}", "at_ms", (json_int_t)at_ms, "hour_ms",
		                    (json_int_t)hour_ms, "zones", sums.zones, "zone", question->zone, "by",
		                    question->by_blocked ? "blocked" : "passed", "top", top, "blocks",
		                    json_object_get(blocks, "blocks"), "more_blocks", json_object_get(blocks, "more"));
	}
	json_decref(sums.zones);
	json_decref(top);
	return status;
}

/* ---- a span ---- */

static enum weir_status settle_span(const struct top_question *question, int64_t now_ms, struct span *asked,
                                    struct weir_error *error)
{
	asked->to_ms = question->until_ms != 0 ? question->until_ms : now_ms;
	asked->from_ms = question->last_ms != 0 ? asked->to_ms - question->last_ms : question->since_ms;
	asked->grain = "hour";
	return asked->from_ms < asked->to_ms
	           ? WEIR_OK
	           : weir_fail(error, WEIR_INVALID, "the span ends before it begins: --since must be earlier than %s",
	                       question->until_ms != 0 ? "--until" : "now");
}

/* Whether the zone has counts in the first hour of a part of a day, and none of its keys has: old hours are deleted first. */
static enum weir_status lacks_hours(struct top_source *source, const struct top_question *question, struct span part,
                                    bool *lacks, struct weir_error *error)
{
	json_t *answer;
	struct top_question any = *question;
	enum weir_status status = read_counts(source, question->zone, NULL, &part, &answer, error);
	if (status != WEIR_OK)
		return status;
	const json_t *first = json_array_get(json_object_get(answer, "counts"), 0);
	int64_t passed = number_of(first, "passed"), blocked = number_of(first, "blocked");
	part.from_ms = number_of(first, "at_ms");
	part.to_ms = part.from_ms + WEIR_HOUR_MS;
	any.by_blocked = passed == 0;
	json_decref(answer);
	if (passed + blocked == 0)
		return WEIR_OK;
	status = ask_top(source, &any, 1, &part, NULL, &answer, error);
	if (status == WEIR_OK) {
		*lacks |= json_array_size(json_object_get(answer, "top")) == 0 || number_of(answer, "from_ms") < part.from_ms ||
		          number_of(answer, "to_ms") > part.to_ms; /* widened: they are known to be deleted */
		json_decref(answer);
	}
	return status;
}

/* Widens the span to whole hours, or to whole days where the archive has no hours of keys in the days that it cuts. */
static enum weir_status choose_grain(struct top_source *source, const struct top_question *question, struct span *span,
                                     struct weir_error *error)
{
	bool lacks = false;
	span->from_ms = weir_begin_of(span->from_ms, WEIR_HOUR_MS);
	span->to_ms = weir_begin_of(span->to_ms + WEIR_HOUR_MS - 1, WEIR_HOUR_MS);
	int64_t first_ms = weir_begin_of(span->from_ms + WEIR_DAY_MS - 1, WEIR_DAY_MS);
	int64_t last_ms = weir_begin_of(span->to_ms, WEIR_DAY_MS);
	enum weir_status status = WEIR_OK;
	if (span->from_ms < first_ms)
		status = lacks_hours(source, question,
		                     (struct span){span->from_ms, first_ms < span->to_ms ? first_ms : span->to_ms, "hour"},
		                     &lacks, error);
	if (status == WEIR_OK && !lacks && last_ms >= first_ms && last_ms < span->to_ms)
		status = lacks_hours(source, question, (struct span){last_ms, span->to_ms, "hour"}, &lacks, error);
	if (lacks)
		*span = (struct span){weir_begin_of(span->from_ms, WEIR_DAY_MS),
		                      weir_begin_of(span->to_ms + WEIR_DAY_MS - 1, WEIR_DAY_MS), "day"};
	return status;
}

static enum weir_status read_decisions(struct top_source *source, const struct top_question *question,
                                       const struct span *asked, json_t **decisions, struct weir_error *error)
{
	char limit[16], from[24], to[24];
	snprintf(limit, sizeof limit, "%u", question->block_rows);
	const struct api_argument arguments[] = {argument("action", "block"), argument("limit", limit),
	                                         argument("from", write_time(from, sizeof from, asked->from_ms)),
	                                         argument("to", write_time(to, sizeof to, asked->to_ms))};
	return top_source_ask(source, "/api/v1/decisions", arguments, 4, decisions, error);
}

static enum weir_status read_span(struct top_source *source, struct top_question *question, const json_t *list,
                                  int64_t now_ms, json_t **sample, struct weir_error *error)
{
	struct span asked;
	json_t *top = NULL, *decisions = NULL;
	struct sums sums = {.at_ms = now_ms, .zones = json_array()};
	enum weir_status status = settle_span(question, now_ms, &asked, error);
	sums.span = asked;
	if (status == WEIR_OK)
		status = choose_grain(source, question, &sums.span, error);
	if (status == WEIR_OK && sums.span.to_ms - sums.span.from_ms > SPAN_DAYS_MAX * (int64_t)WEIR_DAY_MS)
		status = weir_fail(error, WEIR_INVALID, "the span is too long: with %s it covers more than %d days; give a %s",
		                   question->last_ms != 0 ? "this --last" : "this --since", SPAN_DAYS_MAX,
		                   question->last_ms != 0 ? "shorter one" : "later one, or an earlier --until");
	if (status == WEIR_OK)
		status = read_zones(source, question, list, &sums, error);
	if (status == WEIR_OK)
		status = read_top(source, question, &sums.span, &top, error);
	if (status == WEIR_OK)
		status = read_decisions(source, question, &asked, &decisions, error);
	if (status == WEIR_OK)
		*sample = json_pack(
			"{s:I,s:I,s:I,s:I,s:I,s:s,s:O,s:s,s:s,s:O,s:O,s:b}", "at_ms", (json_int_t)now_ms, "asked_from_ms",
			(json_int_t)asked.from_ms, "asked_to_ms", (json_int_t)asked.to_ms, "from_ms", (json_int_t)sums.span.from_ms,
			"to_ms", (json_int_t)sums.span.to_ms, "grain", sums.span.grain, "zones", sums.zones, "zone", question->zone,
			"by", question->by_blocked ? "blocked" : "passed", "top", top, "blocks",
			json_object_get(decisions, "decisions"), "more_blocks", json_is_string(json_object_get(decisions, "next")));
	json_decref(sums.zones);
	json_decref(top);
	json_decref(decisions);
	return status;
}

enum weir_status top_sample_read(struct top_source *source, struct top_question *question, struct top_rates *rates,
                                 json_t **sample, struct weir_error *error)
{
	char limit[16];
	json_t *blocks, *list = NULL;
	snprintf(limit, sizeof limit, "%u", question->block_rows);
	const struct api_argument arguments[] = {argument("limit", limit)};
	*sample = NULL;
	enum weir_status status = top_source_ask(source, "/api/v1/blocks", arguments, 1, &blocks, error);
	if (status == WEIR_OK)
		status = choose_zone(source, question, &list, error);
	if (status == WEIR_OK && question->spanned)
		status = read_span(source, question, list, number_of(blocks, "now_ms"), sample, error);
	else if (status == WEIR_OK)
		status = read_now(source, question, rates, list, blocks, sample, error);
	if (status == WEIR_OK && *sample == NULL)
		status = weir_fail(error, WEIR_INVALID, "%s: is it an archiver's API?", source->name);
	json_decref(blocks);
	json_decref(list);
	return status;
}

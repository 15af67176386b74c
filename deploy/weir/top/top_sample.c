/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample is a few questions: who is blocked (which also tells the archiver's
 * clock), the zones and their sums of this hour, the day's top keys of one zone
 * and what each of those did in this hour.
 *
 * Rates are differences to the oldest of the last samples that was within the
 * same hour.
 */
#include "deploy/weir/top/top_sample.h"

#include "common/store/archive.h"

#include <stdio.h>
#include <string.h>

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

/* What a key, as lists have it (NULL: all together), did in this hour: {"passed", "blocked", "late"}. */
static enum weir_status read_hour(struct top_source *source, const char *zone, const json_t *key, int64_t hour_ms,
                                  json_t **sums, struct weir_error *error)
{
	char from[24], to[24];
	json_t *answer;
	snprintf(from, sizeof from, "%lld", (long long)hour_ms);
	snprintf(to, sizeof to, "%lld", (long long)hour_ms + WEIR_HOUR_MS);
	const struct api_argument arguments[] = {
		argument("zone", zone),
		argument("grain", "hour"),
		argument("from", from),
		argument("to", to),
		{"bucket", {json_string_value(key), key != NULL ? (uint32_t)json_string_length(key) : 0}}};
	enum weir_status status = top_source_ask(source, "/api/v1/counts", arguments, key != NULL ? 5 : 4, &answer, error);
	if (status != WEIR_OK)
		return status;
	*sums = json_incref(json_object_get(answer, "total"));
	json_decref(answer);
	return WEIR_OK;
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

static enum weir_status add_zone(struct top_source *source, const struct top_rates *rates, const char *name,
                                 int64_t at_ms, json_t *zones, struct weir_error *error)
{
	int64_t hour_ms = weir_begin_of(at_ms, WEIR_HOUR_MS);
	json_t *sums;
	enum weir_status status = read_hour(source, name, NULL, hour_ms, &sums, error);
	if (status != WEIR_OK)
		return status;
	json_t *zone = json_pack("{s:s}", "zone", name);
	json_object_update(zone, sums);
	json_object_set_new(zone, "per_second",
	                    rate_of(rates, name, number_of(sums, "passed") + number_of(sums, "blocked"), at_ms, hour_ms));
	json_array_append_new(zones, zone);
	json_decref(sums);
	return WEIR_OK;
}

/* Those in force, and the one that is asked for, which may have been removed. */
static enum weir_status read_zones(struct top_source *source, struct top_question *question,
                                   const struct top_rates *rates, int64_t at_ms, json_t *zones,
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
		bool live = json_is_true(json_object_get(zone, "live"));
		if (name == NULL || status != WEIR_OK)
			continue;
		if (question->zone[0] == '\0' && live)
			snprintf(question->zone, sizeof question->zone, "%s", name);
		bool asked = strcmp(name, question->zone) == 0;
		if ((live || asked) && total_then(zones, name) < 0)
			status = add_zone(source, rates, name, at_ms, zones, error);
		found = found || asked;
	}
	json_decref(answer);
	if (status == WEIR_OK && !found && question->zone[0] != '\0')
		return weir_fail(error, WEIR_INVALID, "%s has no zone \"%s\"", source->name, question->zone);
	return status == WEIR_OK && !found ? weir_fail(error, WEIR_INVALID, "%s has no zones yet", source->name) : status;
}

/* ---- keys ---- */

static enum weir_status read_top(struct top_source *source, const struct top_question *question, int64_t hour_ms,
                                 json_t **top, struct weir_error *error)
{
	char limit[16], day[24];
	json_t *answer, *row, *hour;
	size_t i;
	snprintf(limit, sizeof limit, "%u", question->top_rows);
	snprintf(day, sizeof day, "%lld", (long long)hour_ms);
	const struct api_argument arguments[] = {argument("zone", question->zone), argument("day", day),
	                                         argument("by", question->by_blocked ? "blocked" : "passed"),
	                                         argument("limit", limit)};
	enum weir_status status = top_source_ask(source, "/api/v1/top", arguments, 4, &answer, error);
	if (status != WEIR_OK)
		return status;
	json_array_foreach(json_object_get(answer, "top"), i, row)
	{
		const json_t *key = json_object_get(row, "key");
		hour = NULL;
		if (status == WEIR_OK && json_is_string(key) && is_whole(json_string_value(key)))
			status = read_hour(source, question->zone, key, hour_ms, &hour, error);
		json_object_set_new(row, "hour", hour != NULL ? hour : json_null());
		json_object_del(row, "total");
	}
	*top = json_incref(json_object_get(answer, "top"));
	json_decref(answer);
	return status;
}

enum weir_status top_sample_read(struct top_source *source, struct top_question *question, struct top_rates *rates,
                                 json_t **sample, struct weir_error *error)
{
	char limit[16];
	json_t *blocks, *zones = json_array(), *top = NULL;
	snprintf(limit, sizeof limit, "%u", question->block_rows);
	const struct api_argument arguments[] = {argument("limit", limit)};
	enum weir_status status = top_source_ask(source, "/api/v1/blocks", arguments, 1, &blocks, error);
	int64_t at_ms = number_of(blocks, "now_ms"), hour_ms = weir_begin_of(at_ms, WEIR_HOUR_MS);
	if (status == WEIR_OK)
		status = read_zones(source, question, rates, at_ms, zones, error);
	if (status == WEIR_OK)
		status = read_top(source, question, hour_ms, &top, error);
	if (status == WEIR_OK) {
		remember(rates, zones, at_ms, hour_ms);
		*sample =
			json_pack("{s:I,s:I,s:O,s:s,s:s,s:O,s:O,s:O}", "at_ms", (json_int_t)at_ms, "hour_ms", (json_int_t)hour_ms,
		              "zones", zones, "zone", question->zone, "by", question->by_blocked ? "blocked" : "passed", "top",
		              top, "blocks", json_object_get(blocks, "blocks"), "more_blocks", json_object_get(blocks, "more"));
		if (*sample == NULL)
			status = weir_fail(error, WEIR_INVALID, "%s: is it an archiver's API?", source->name);
	}
	json_decref(blocks);
	json_decref(zones);
	json_decref(top);
	return status;
}

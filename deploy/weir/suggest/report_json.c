/* SPDX-License-Identifier: Apache-2.0 */
/* For programs: the numbers of report_words.c, and all steps of each curve. */
#include "common/json/json_writer.h"
#include "deploy/weir/suggest/report.h"

#include <stdlib.h>

static double share(uint64_t part, uint64_t whole)
{
	return whole == 0 ? 0 : (double)part / (double)whole;
}

static void put_trial(struct weir_json_writer *json, const struct suggest_report *report, const char *name,
                      const struct trial_zone *zone)
{
	if (zone == NULL) {
		weir_json_write_null(json, name);
		return;
	}
	weir_json_write_object(json, name);
	if (zone->kind != TRIAL_TOGETHER)
		weir_json_write_int(json, "limit", zone->limit);
	weir_json_write_uint(json, "blocked_keys", zone->keys);
	weir_json_write_uint(json, "blocked_requests", zone->requests);
	weir_json_write_fixed(json, "blocked_share_of_keys", share(zone->keys, report->table->keys), 9);
	weir_json_write_fixed(json, "blocked_share_of_requests", share(zone->requests, report->seen->requests), 9);
	weir_json_write_end(json);
}

/* Each limit at which one key less is blocked than at the one before. */
static void put_curve(struct weir_json_writer *json, const struct peak_table *table, uint32_t window)
{
	weir_json_write_array(json, "curve");
	for (uint64_t i = table->keys; i > 0; i--) {
		int64_t limit = table->sorted[window][i - 1];
		if (limit < 1 || limit > WEIR_RATE_MAX || (i < table->keys && table->sorted[window][i] == limit))
			continue;
		weir_json_write_object(json, NULL);
		weir_json_write_int(json, "limit", limit);
		weir_json_write_uint(json, "blocked_keys", keys_above(table, window, limit));
		weir_json_write_end(json);
	}
	weir_json_write_end(json);
}

static void put_spared(struct weir_json_writer *json, const struct suggest_report *report, uint32_t window)
{
	const struct spared_peak *spared = &report->seen->spared[window];
	if (spared->peak == 0) {
		weir_json_write_null(json, "spared");
		return;
	}
	weir_json_write_object(json, "spared");
	weir_json_write_string(json, "key", weir_text_span(&spared->key));
	weir_json_write_int(json, "most", spared->peak);
	weir_json_write_int(json, "limit_without", report->unspared[window]);
	weir_json_write_end(json);
}

static void put_window(struct weir_json_writer *json, const struct suggest_report *report, uint32_t window)
{
	const struct trial *trial = report->trial;
	weir_json_write_object(json, NULL);
	weir_json_write_int(json, "window", trial->windows_ms[window]);
	weir_json_write_int(json, "limit", trial->limits[window]);
	weir_json_write_int(json, "limit_alone", report->alone[window]);
	weir_json_write_bool(json, "longer_than_log", suggest_is_longer(report, window));
	weir_json_write_uint(json, "late", report->seen->late[window]);
	put_trial(json, report, "one_lower", trial_find(trial, TRIAL_LOWER, window, 0));
	put_spared(json, report, window);
	weir_json_write_array(json, "points");
	for (uint32_t i = 0; i < trial->count; i++)
		if (trial->zones[i].kind == TRIAL_ALONE && trial->zones[i].window == window)
			put_trial(json, report, NULL, &trial->zones[i]);
	weir_json_write_end(json);
	put_curve(json, report->table, window);
	weir_json_write_end(json);
}

static void put_zone(struct weir_json_writer *json, const struct suggest_report *report)
{
	json_t *zone = setting_zone(report->setting, setting_name(report->setting),
	                            trial_limits(report->trial, report->trial->limits));
	json_object_set_new(zone, "mode", json_string("shadow"));
	char *text = json_dumps(zone, JSON_COMPACT);
	weir_text_puts(weir_json_write_value(json, "zone"), text);
	free(text);
	json_decref(zone);
}

void suggest_json(struct weir_text *text, const struct suggest_report *report)
{
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_uint(&json, "lines", report->counts.lines);
	weir_json_write_uint(&json, "malformed", record_counts_malformed(&report->counts));
	weir_json_write_uint(&json, "requests", report->seen->requests);
	weir_json_write_int(&json, "first", report->seen->first_ms);
	weir_json_write_int(&json, "last", report->seen->last_ms);
	weir_json_write_uint(&json, "keys", report->table->keys);
	weir_json_write_uint(&json, "spared_keys", report->seen->spared_keys);
	weir_json_write_uint(&json, "keys_allowed", report->allowed);
	put_trial(&json, report, "together", trial_find(report->trial, TRIAL_TOGETHER, 0, 0));
	weir_json_write_array(&json, "windows");
	for (uint32_t i = 0; i < report->trial->window_count; i++)
		put_window(&json, report, i);
	weir_json_write_end(&json);
	weir_json_write_array(&json, "most_blocked");
	for (uint32_t i = 0; i < report->top_count; i++) {
		weir_json_write_object(&json, NULL);
		weir_json_write_string(&json, "key", report->top[i].key);
		weir_json_write_uint(&json, "blocked_requests", report->top[i].requests);
		weir_json_write_end(&json);
	}
	weir_json_write_end(&json);
	put_zone(&json, report);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}

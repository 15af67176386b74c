/* SPDX-License-Identifier: Apache-2.0 */
/* For programs: all numbers, with the bins of every series in the same places as their times. */
#include "common/json/json_writer.h"
#include "deploy/weir/backtest/report.h"
#include "limiter/lane/decision.h"

static double share(uint64_t part, uint64_t whole)
{
	return whole == 0 ? 0 : (double)part / (double)whole;
}

/* Null: it is not known. */
static void put_keys(struct weir_json_writer *json, const char *name, uint64_t keys, bool known)
{
	if (known)
		weir_json_write_uint(json, name, keys);
	else
		weir_json_write_null(json, name);
}

/* A share of keys of which some were left out would be that of those which are left. */
static void put_share_of_keys(struct weir_json_writer *json, const struct report *report,
                              const struct figures_zone *zone)
{
	if (figures_lack_keys(report->figures))
		weir_json_write_null(json, "blocked_share_of_keys");
	else
		weir_json_write_fixed(json, "blocked_share_of_keys", share(zone->blocked_keys, zone->keys), 9);
}

static void put_zone(struct weir_json_writer *json, const struct report *report, uint32_t place)
{
	const struct figures_zone *zone = figures_zone(report->figures, place);
	const struct weir_zone *known = policies_zone(report->policies, place);
	bool keys_known = figures_know_keys(report->figures, place);
	weir_json_write_object(json, NULL);
	weir_json_write_words(json, "zone", known->name);
	weir_json_write_words(json, "mode", weir_mode_name(known->mode));
	weir_json_write_uint(json, "requests", zone->passed + zone->blocked);
	weir_json_write_uint(json, "passed", zone->passed);
	weir_json_write_uint(json, "blocked", zone->blocked);
	weir_json_write_uint(json, "late", zone->late);
	weir_json_write_uint(json, "decisions", zone->decisions);
	put_keys(json, "keys", zone->keys, keys_known);
	put_keys(json, "blocked_keys", zone->blocked_keys, keys_known);
	weir_json_write_fixed(json, "blocked_share_of_requests", share(zone->blocked, zone->passed + zone->blocked), 9);
	put_share_of_keys(json, report, zone);
	weir_json_write_end(json);
}

static void put_policies(struct weir_json_writer *json, const struct report *report)
{
	const struct backtest_policies *policies = report->policies;
	weir_json_write_array(json, "policies");
	for (uint32_t i = 0; i < policies->count; i++) {
		weir_json_write_object(json, NULL);
		weir_json_write_words(json, "policy", policies->at[i].name);
		weir_json_write_words(json, "file", policies->at[i].path);
		weir_json_write_array(json, "zones");
		for (uint32_t z = 0; z < policies->at[i].config->policy->zone_count; z++)
			put_zone(json, report, policies->at[i].first + z);
		weir_json_write_end(json);
		weir_json_write_end(json);
	}
	weir_json_write_end(json);
}

static void put_difference(struct weir_json_writer *json, const struct report *report, uint32_t number)
{
	const struct backtest_policies *policies = report->policies;
	const struct figures_pair *pair = &policies->pairs[number];
	const struct figures_difference *difference = figures_difference(report->figures, number);
	const char *base = policies->at[policies->owners[pair->base]].name;
	const char *other = policies->at[policies->owners[pair->zone]].name;
	const struct weir_zone *zone = policies_zone(policies, pair->zone);
	weir_json_write_object(json, NULL);
	weir_json_write_words(json, "policy", other);
	weir_json_write_words(json, "zone", zone->name);
	weir_json_write_words(json, "against", base);
	weir_json_write_words(json, "against_zone", policies_zone(policies, pair->base)->name);
	weir_json_write_uint(json, "requests", difference->requests);
	put_keys(json, "keys", difference->keys, figures_know_difference(report->figures, number));
	weir_json_write_array(json, "first");
	for (uint32_t i = 0; i < difference->example_count; i++) {
		const struct figures_example *example = &difference->examples[i];
		weir_json_write_object(json, NULL);
		decision_key_json(weir_json_write_value(json, "key"), zone, weir_text_span(&example->key));
		weir_json_write_int(json, "at", example->at_ms);
		weir_json_write_words(json, "blocked_by", example->base_blocks ? base : other);
		weir_json_write_end(json);
	}
	weir_json_write_end(json);
	weir_json_write_end(json);
}

static void put_series(struct weir_json_writer *json, const struct report *report, uint32_t place)
{
	static const char *const names[] = {"passed", "blocked"};
	const struct time_bins *bins = figures_bins(report->figures);
	weir_json_write_object(json, NULL);
	weir_json_write_words(json, "policy", report->policies->at[report->policies->owners[place]].name);
	weir_json_write_words(json, "zone", policies_zone(report->policies, place)->name);
	for (uint32_t kind = 0; kind < 2; kind++) {
		weir_json_write_array(json, names[kind]);
		for (uint32_t i = 0; i < bins->count; i++)
			weir_json_write_uint(json, NULL, bins->cells[(size_t)i * bins->series + 2 * place + kind]);
		weir_json_write_end(json);
	}
	weir_json_write_end(json);
}

static void put_time(struct weir_json_writer *json, const struct report *report)
{
	const struct time_bins *bins = figures_bins(report->figures);
	weir_json_write_object(json, "over_time");
	weir_json_write_int(json, "bin", time_bins_width_ms(bins));
	weir_json_write_array(json, "at");
	for (uint32_t i = 0; i < bins->count; i++)
		weir_json_write_int(json, NULL, time_bins_begin_ms(bins, i));
	weir_json_write_end(json);
	weir_json_write_array(json, "series");
	for (uint32_t i = 0; i < report->policies->zone_count; i++)
		put_series(json, report, i);
	weir_json_write_end(json);
	weir_json_write_end(json);
}

/* What was read: lines, or the events of a log, which have no lines any more. */
static void put_amounts(struct weir_json_writer *json, const struct report *report)
{
	if (report->from_log) {
		weir_json_write_uint(json, "events", report->counts.records);
		return;
	}
	weir_json_write_uint(json, "lines", report->counts.lines);
	weir_json_write_uint(json, "records", report->counts.records);
	weir_json_write_uint(json, "malformed", record_counts_malformed(&report->counts));
}

void report_json(struct weir_text *text, const struct report *report)
{
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_bool(&json, "finished", report->finished);
	put_amounts(&json, report);
	weir_json_write_bool(&json, "keys_exact", !figures_lack_keys(report->figures));
	put_policies(&json, report);
	weir_json_write_array(&json, "differences");
	for (uint32_t i = 0; i < report->policies->pair_count; i++)
		put_difference(&json, report, i);
	weir_json_write_end(&json);
	put_time(&json, report);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}

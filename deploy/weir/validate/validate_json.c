/* SPDX-License-Identifier: Apache-2.0 */
/* The report for programs: one JSON object on one line. */
#include "common/json/json_writer.h"
#include "deploy/weir/validate/validate_report.h"

#include <stdlib.h>

static void put_zone(struct weir_json_writer *json, const struct validate_zone *zone)
{
	weir_json_write_object(json, NULL);
	weir_json_write_uint(json, "id", zone->zone->id);
	weir_json_write_words(json, "name", zone->zone->name);
	weir_json_write_words(json, "meaning", zone->sentence);
	weir_json_write_uint(json, "bytes_seen_once", zone->footprint.once);
	weir_json_write_uint(json, "bytes_at_limits", zone->footprint.full);
	weir_json_write_uint(json, "sample_matched", zone->matched);
	weir_json_write_end(json);
}

static void put_sample(struct weir_json_writer *json, const struct record_counts *counts)
{
	weir_json_write_object(json, "sample");
	weir_json_write_uint(json, "lines", counts->lines);
	weir_json_write_uint(json, "events", counts->records);
	weir_json_write_object(json, "malformed");
	for (int i = 0; i < FORMAT_REASON_COUNT; i++)
		if (counts->malformed[i] > 0)
			weir_json_write_uint(json, format_reason_text((enum format_reason)i), counts->malformed[i]);
	weir_json_write_end(json);
	weir_json_write_end(json);
}

static void put_file(struct weir_json_writer *json, const struct validate_file *file)
{
	weir_json_write_object(json, NULL);
	weir_json_write_words(json, "path", file->path);
	weir_json_write_uint(json, "bytes", file->bytes);
	weir_json_write_words(json, "problem", file->problem);
	if (file->sampled)
		put_sample(json, &file->counts);
	weir_json_write_end(json);
}

static void put_source(struct weir_json_writer *json, const struct validate_source *source)
{
	weir_json_write_object(json, NULL);
	weir_json_write_words(json, "type", source->type);
	weir_json_write_words(json, "path", source->place);
	weir_json_write_words(json, "format", source->format);
	weir_json_write_bool(json, "follow", source->follow);
	weir_json_write_words(json, "guarantee", source->guarantee);
	weir_json_write_array(json, "files");
	for (size_t i = 0; i < source->file_count; i++)
		put_file(json, &source->files[i]);
	weir_json_write_end(json);
	weir_json_write_end(json);
}

static void put_settings(struct weir_json_writer *json, const struct weir_config *config)
{
	weir_json_write_uint(json, "partitions", (uint64_t)config->bus.partitions);
	weir_json_write_uint(json, "threads", (uint64_t)config->limiter.threads);
	weir_json_write_uint(json, "memory", (uint64_t)config->limiter.memory_bytes);
	weir_json_write_words(json, "decisions", config->decisions.path);
	weir_json_write_words(json, "shadow_decisions", config->decisions.shadow_path);
	weir_json_write_words(json, "dead_letters", config->deadletter.path);
	weir_json_write_words(json, "http", config->listen.http);
	weir_json_write_object(json, "checks");
	weir_json_write_words(json, "resp", config->listen.resp);
	weir_json_write_words(json, "http", config->listen.check_http);
	weir_json_write_words(json, "grpc", config->listen.grpc);
	weir_json_write_end(json);
}

static void put_gateway(struct weir_json_writer *json, const struct gateway_settings *gateway)
{
	char *name = gateway_name(gateway->to);
	weir_json_write_object(json, NULL);
	weir_json_write_words(json, "to", name);
	if (gateway->map != NULL)
		weir_json_write_words(json, "map", gateway->map);
	weir_json_write_array(json, "zones");
	for (size_t i = 0; i < gateway->zone_count; i++)
		weir_json_write_words(json, NULL, gateway->zones[i]);
	weir_json_write_end(json);
	weir_json_write_end(json);
	free(name);
}

void validate_json(struct weir_text *text, const struct validate_report *report)
{
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_bool(&json, "good", true);
	weir_json_write_array(&json, "zones");
	for (uint32_t i = 0; i < report->zone_count; i++)
		put_zone(&json, &report->zones[i]);
	weir_json_write_end(&json);
	weir_json_write_array(&json, "sources");
	for (size_t i = 0; i < report->source_count; i++)
		put_source(&json, &report->sources[i]);
	weir_json_write_end(&json);
	weir_json_write_array(&json, "gateways");
	for (size_t i = 0; i < report->gateways.count; i++)
		put_gateway(&json, &report->gateways.at[i]);
	weir_json_write_end(&json);
	put_settings(&json, report->config);
	if (report->in_force > 0) {
		weir_json_write_uint(&json, "in_force", report->in_force);
		weir_json_write_bool(&json, "changed", report->differs);
		weir_json_write_string(&json, "changes", weir_text_span(&report->changes));
	}
	weir_json_write_array(&json, "warnings");
	for (size_t i = 0; i < report->warning_count; i++) {
		weir_json_write_object(&json, NULL);
		weir_json_write_words(&json, "path", report->warnings[i].path);
		weir_json_write_words(&json, "words", report->warnings[i].words);
		weir_json_write_end(&json);
	}
	weir_json_write_end(&json);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}

/* The report for programs: one JSON object on one line. */
#include "deploy/weir/validate/validate_report.h"

static void put_string(struct weir_text *text, const char *name, const char *value)
{
	weir_text_printf(text, "\"%s\":", name);
	if (value != NULL)
		weir_text_json(text, weir_span_of(value));
	else
		weir_text_puts(text, "null");
}

static void put_uint(struct weir_text *text, const char *name, uint64_t value)
{
	weir_text_printf(text, "\"%s\":", name);
	weir_text_uint(text, value);
}

static void put_zone(struct weir_text *text, const struct validate_zone *zone)
{
	weir_text_puts(text, "{");
	put_uint(text, "id", zone->zone->id);
	weir_text_puts(text, ",");
	put_string(text, "name", zone->zone->name);
	weir_text_puts(text, ",");
	put_string(text, "meaning", zone->sentence);
	weir_text_puts(text, ",");
	put_uint(text, "bytes_seen_once", zone->footprint.once);
	weir_text_puts(text, ",");
	put_uint(text, "bytes_at_limits", zone->footprint.full);
	weir_text_puts(text, ",");
	put_uint(text, "sample_matched", zone->matched);
	weir_text_puts(text, "}");
}

static void put_file(struct weir_text *text, const struct validate_file *file)
{
	const char *before = "";
	weir_text_puts(text, "{");
	put_string(text, "path", file->path);
	weir_text_puts(text, ",");
	put_uint(text, "bytes", file->bytes);
	weir_text_puts(text, ",");
	put_string(text, "problem", file->problem);
	if (file->sampled) {
		weir_text_puts(text, ",\"sample\":{");
		put_uint(text, "lines", file->counts.lines);
		weir_text_puts(text, ",");
		put_uint(text, "events", file->counts.records);
		weir_text_puts(text, ",\"malformed\":{");
		for (int i = 0; i < FORMAT_REASON_COUNT; i++) {
			if (file->counts.malformed[i] == 0)
				continue;
			weir_text_puts(text, before);
			put_uint(text, format_reason_text((enum format_reason)i), file->counts.malformed[i]);
			before = ",";
		}
		weir_text_puts(text, "}}");
	}
	weir_text_puts(text, "}");
}

static void put_source(struct weir_text *text, const struct validate_source *source)
{
	weir_text_puts(text, "{");
	put_string(text, "type", source->type);
	weir_text_puts(text, ",");
	put_string(text, "path", source->place);
	weir_text_puts(text, ",");
	put_string(text, "format", source->format);
	weir_text_printf(text, ",\"follow\":%s,\"files\":[", source->follow ? "true" : "false");
	for (size_t i = 0; i < source->file_count; i++) {
		weir_text_puts(text, i > 0 ? "," : "");
		put_file(text, &source->files[i]);
	}
	weir_text_puts(text, "]}");
}

void validate_json(struct weir_text *text, const struct validate_report *report)
{
	const struct weir_config *config = report->config;
	weir_text_puts(text, "{\"good\":true,\"zones\":[");
	for (uint32_t i = 0; i < report->zone_count; i++) {
		weir_text_puts(text, i > 0 ? "," : "");
		put_zone(text, &report->zones[i]);
	}
	weir_text_puts(text, "],\"sources\":[");
	for (size_t i = 0; i < report->source_count; i++) {
		weir_text_puts(text, i > 0 ? "," : "");
		put_source(text, &report->sources[i]);
	}
	weir_text_puts(text, "],");
	put_uint(text, "partitions", (uint64_t)config->bus.partitions);
	weir_text_puts(text, ",");
	put_uint(text, "threads", (uint64_t)config->limiter.threads);
	weir_text_puts(text, ",");
	put_uint(text, "memory", (uint64_t)config->limiter.memory_bytes);
	weir_text_puts(text, ",");
	put_string(text, "decisions", config->decisions.path);
	weir_text_puts(text, ",");
	put_string(text, "shadow_decisions", config->decisions.shadow_path);
	weir_text_puts(text, ",");
	put_string(text, "dead_letters", config->deadletter.path);
	weir_text_puts(text, ",");
	put_string(text, "http", config->listen.http);
	weir_text_puts(text, ",\"warnings\":[");
	for (size_t i = 0; i < report->warning_count; i++) {
		weir_text_puts(text, i > 0 ? ",{" : "{");
		put_string(text, "path", report->warnings[i].path);
		weir_text_puts(text, ",");
		put_string(text, "words", report->warnings[i].words);
		weir_text_puts(text, "}");
	}
	weir_text_puts(text, "]}\n");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The report for people: what a run with this configuration will do, and what may not be meant. */
#include "common/files/file_place.h"
#include "common/json/units.h"
#include "deploy/weir/terminal/readable.h"
#include "deploy/weir/validate/validate_report.h"

#include <stdlib.h>

enum { FILES_SHOWN = 10 };

static void put_duration(struct weir_text *text, int64_t duration_ms)
{
	char buffer[24];
	weir_text_puts(text, weir_format_duration(duration_ms, buffer, sizeof buffer));
}

static void put_zones(struct weir_text *text, const struct validate_report *report)
{
	weir_text_puts(text, "zones\n");
	if (report->zone_count == 0)
		weir_text_puts(text, "  none here: those that the cluster has in force (weir policy show)\n");
	for (uint32_t i = 0; i < report->zone_count; i++) {
		const struct validate_zone *zone = &report->zones[i];
		weir_text_printf(text, "  %s\n", zone->sentence);
		if (zone->zone->description[0] != '\0')
			weir_text_printf(text, "      \"%s\"\n", zone->zone->description);
		weir_text_puts(text, "      a user seen once takes about ");
		weir_text_uint(text, zone->footprint.once);
		weir_text_puts(text, " bytes, one at every limit ");
		words_count(text, zone->footprint.full);
		if (report->sampled > 0) {
			weir_text_puts(text, "; of the events looked at ");
			words_count(text, zone->matched);
			weir_text_puts(text, " are in it");
		}
		weir_text_puts(text, "\n");
	}
}

static void put_sample(struct weir_text *text, const struct record_counts *counts)
{
	const char *before = "malformed ";
	weir_text_puts(text, "; of the first ");
	words_count(text, counts->lines);
	weir_text_puts(text, " lines ");
	words_count(text, counts->records);
	weir_text_puts(text, " are events");
	for (int i = 0; i < FORMAT_REASON_COUNT; i++) {
		if (counts->malformed[i] == 0)
			continue;
		weir_text_printf(text, ", %s\"%s\" ", before, format_reason_text((enum format_reason)i));
		words_count(text, counts->malformed[i]);
		before = "";
	}
}

static void put_file(struct weir_text *text, const struct validate_file *file)
{
	weir_text_printf(text, "      %s: ", file->path);
	if (file->problem != NULL)
		weir_text_puts(text, file->problem);
	else
		weir_text_size(text, file->bytes);
	if (file->sampled)
		put_sample(text, &file->counts);
	weir_text_puts(text, "\n");
}

static void put_sources(struct weir_text *text, const struct validate_report *report)
{
	weir_text_puts(text, report->source_count > 0 ? "\nsources\n" : "");
	for (size_t i = 0; i < report->source_count; i++) {
		const struct validate_source *source = &report->sources[i];
		bool is_input = strcmp(source->place, "-") == 0;
		weir_text_printf(text, "  %s, %s, %s; %s\n", is_input ? "standard input" : source->place, source->format,
		                 source->manner, source->guarantee);
		for (size_t j = 0; j < source->file_count && j < FILES_SHOWN; j++)
			put_file(text, &source->files[j]);
		if (source->file_count > FILES_SHOWN)
			weir_text_printf(text, "      and %zu more files\n", source->file_count - FILES_SHOWN);
	}
}

static void put_output(struct weir_text *text, const char *name, const char *path, const char *without)
{
	weir_text_printf(text, "  %-17s%s", name,
	                 path == NULL             ? without
	                 : strcmp(path, "-") == 0 ? "standard output"
	                                          : path);
}

static void put_rotation(struct weir_text *text, int64_t rotate_bytes, int64_t keep)
{
	if (rotate_bytes == 0)
		return;
	weir_text_puts(text, ", rotated at ");
	weir_text_size(text, (uint64_t)rotate_bytes);
	weir_text_printf(text, ", %lld kept", (long long)keep);
}

/* Buckets of the zone whose users take most. */
static void put_capacity(struct weir_text *text, const struct validate_report *report)
{
	struct footprint most = {.once = 1, .full = 1};
	for (uint32_t i = 0; i < report->zone_count; i++)
		if (report->zones[i].footprint.full > most.full)
			most = report->zones[i].footprint;
	uint64_t ceiling = (uint64_t)report->config->limiter.memory_bytes;
	if (report->zone_count == 0)
		return;
	weir_text_puts(text, "; room for about ");
	words_count(text, ceiling / most.full / 1000 * 1000);
	weir_text_puts(text, " buckets at every limit, ");
	words_count(text, ceiling / most.once / 1000 * 1000);
	weir_text_puts(text, " seen once; beyond it, the least used ones move to the store");
}

static void put_cluster(struct weir_text *text, const struct weir_config *config)
{
	weir_text_printf(text, "  %-17sKafka at %s, topics %s.events and so on\n", "bus", config->bus.brokers,
	                 config->bus.prefix);
	if (config->store.type != WEIR_STORE_MYSQL)
		return;
	weir_text_printf(text, "  %-17sMySQL or MariaDB, database %s, at ", "store", config->store.database);
	if (config->store.socket != NULL)
		weir_text_printf(text, "%s\n", config->store.socket);
	else
		weir_text_printf(text, "%s:%lld\n", config->store.host, (long long)config->store.port);
}

static void put_files(struct weir_text *text, const struct weir_config *config)
{
	put_output(text, "decisions", config->decisions.path, "standard output");
	if (config->decisions.path != NULL && weir_file_descriptor_of(config->decisions.path) < 0)
		put_rotation(text, config->decisions.rotate_bytes, config->decisions.keep);
	weir_text_puts(text, "\n");
	put_output(text, "shadow decisions", config->decisions.shadow_path, "not written");
	weir_text_puts(text, "\n");
	put_output(text, "malformed lines", config->deadletter.path, "dead-letter.jsonl in the state directory");
	if (config->deadletter.rotate_bytes > 0) {
		put_rotation(text, config->deadletter.rotate_bytes, config->deadletter.keep);
	} else {
		weir_text_puts(text, ", at most ");
		weir_text_size(text, (uint64_t)config->deadletter.max_bytes);
	}
	weir_text_puts(text, "\n");
}

static void put_gateways(struct weir_text *text, const struct gateway_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct gateway_settings *gateway = &list->at[i];
		const char *before = ": blocks of ";
		char *name = gateway_settings_name(gateway);
		weir_text_printf(text, "  %-17s", i == 0 ? "gateways" : "");
		weir_text_puts(text, name);
		free(name);
		for (size_t j = 0; j < gateway->zone_count; j++, before = ", ")
			weir_text_printf(text, "%s%s", before, gateway->zones[j]);
		weir_text_puts(text, gateway->zone_count == 0 ? ": blocks of all zones\n" : "\n");
	}
}

static void put_checks(struct weir_text *text, const struct weir_config *config)
{
	const struct {
		const char *name, *place;
	} surfaces[] = {{"RESP", config->listen.resp}, {"HTTP", config->listen.check_http}, {"gRPC", config->listen.grpc}};
	static const char *const unavailable[] = {[WEIR_ON_UNAVAILABLE_ERROR] = "gets an error",
	                                          [WEIR_ON_UNAVAILABLE_ALLOW] = "passes",
	                                          [WEIR_ON_UNAVAILABLE_DENY] = "is blocked"};
	const char *before = "";
	if (!weir_config_takes_checks(config))
		return;
	weir_text_printf(text, "  %-17s", "checks");
	for (size_t i = 0; i < sizeof surfaces / sizeof surfaces[0]; i++) {
		if (surfaces[i].place == NULL)
			continue;
		weir_text_printf(text, "%s%s by %s", before, surfaces[i].place, surfaces[i].name);
		before = ", ";
	}
	weir_text_printf(text, "%s; one that cannot be judged %s\n", config->checks.tls ? ", with TLS" : "",
	                 unavailable[config->checks.on_unavailable]);
}

static void put_where(struct weir_text *text, const struct validate_report *report)
{
	const struct weir_config *config = report->config;
	weir_text_puts(text, "\nwhere things go\n");
	if (config->bus.type == WEIR_BUS_KAFKA)
		put_cluster(text, config);
	else
		put_files(text, config);
	put_gateways(text, &report->gateways);
	put_checks(text, config);
	put_output(text, "metrics", config->listen.http, "not served");
	weir_text_puts(text, config->listen.http != NULL ? ": /metrics, /healthz, /readyz\n" : "\n");
	weir_text_append(text, report->secrets.at, report->secrets.length);
	weir_text_printf(text, "  %-17s%lld, on %lld thread%s\n", "partitions", (long long)config->bus.partitions,
	                 (long long)config->limiter.threads, config->limiter.threads == 1 ? "" : "s");
	weir_text_printf(text, "  %-17s", "memory");
	weir_text_size(text, (uint64_t)config->limiter.memory_bytes);
	put_capacity(text, report);
	weir_text_printf(text, "\n  %-17severy ", "checkpoints");
	put_duration(text, config->limiter.checkpoint_interval_ms);
	weir_text_puts(text, "; an idle bucket is kept for ");
	put_duration(text, config->limiter.lateness_ms);
	weir_text_puts(text, " beyond its limits\n");
}

void validate_words(struct weir_text *text, const char *name, const struct validate_report *report)
{
	put_zones(text, report);
	put_sources(text, report);
	put_where(text, report);
	if (report->in_force > 0) {
		weir_text_printf(text, "\npolicy %llu is in force; ", (unsigned long long)report->in_force);
		weir_text_puts(text, report->differs ? "this would change it: " : "these are its zones");
		weir_text_append(text, report->changes.at, report->differs ? report->changes.length : 0);
		weir_text_puts(text, "\n");
	}
	if (report->warning_count > 0)
		weir_text_puts(text, "\nwarnings\n");
	for (size_t i = 0; i < report->warning_count; i++)
		weir_text_printf(text, "  %s: %s\n", report->warnings[i].path, report->warnings[i].words);
	if (report->warnings_left_out > 0)
		weir_text_printf(text, "  and %zu more\n", report->warnings_left_out);
	weir_text_printf(text, "\n%s is valid", name);
	size_t warnings = report->warning_count + report->warnings_left_out;
	if (warnings > 0)
		weir_text_printf(text, ", with %zu warning%s", warnings, warnings == 1 ? "" : "s");
	weir_text_puts(text, ".\n");
}

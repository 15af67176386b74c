/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to find a record's zones and keys, for the kinds of zone there
 * are: a budget of 40 ns for one zone by address. And what it costs where zones
 * are many, as the routes of an API are, or all take the record. Medians of several runs; one
 * JSON line a measurement. WEIR_BENCH=smoke runs a small size.
 */
#include "common/base/alloc.h"
#include "common/matcher/matcher.h"
#include "common/matcher/zone_index.h"
#include "tests/bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RUNS = 7, ADDRESSES = 4096 };

#define LIMITS "\"limits\": [{\"algorithm\": \"sliding_window\", \"rate\": 10, \"window\": \"1m\"}]"

static const struct bench_case {
	const char *name;
	int goal_ns; /* 0: none is set */
	const char *zones;
} cases[] = {
	{"match_one_zone_by_ip", 40, "[{\"name\": \"a\", \"key\": [\"ip\"], " LIMITS "}]"},
	{"match_three_fields", 0,
     "[{\"name\": \"a\", \"key\": [\"ip\"], \"match\": {\"method\": \"GET\", \"path\": [\"/login\", "
     "\"/api/*\"], \"status\": [\"2xx\", 404]}, " LIMITS "}]"},
	{"match_exempt_networks", 0,
     "[{\"name\": \"a\", \"key\": [\"ip\"], \"exempt\": [\"10.0.0.0/8\", \"192.168.0.0/16\", \"::1\"], " LIMITS "}]"},
	{"match_grouped_key", 0, "[{\"name\": \"a\", \"key\": [{\"field\": \"ip\", \"prefix4\": 24}], " LIMITS "}]"},
	{"match_three_zones", 0,
     "[{\"name\": \"a\", \"key\": [\"ip\"], " LIMITS "}, {\"name\": \"b\", \"key\": [\"ip\", \"path\"], " LIMITS "}, "
     "{\"name\": \"c\", \"key\": [], " LIMITS "}]"},
};

static struct weir_span *make_addresses(char (*texts)[16])
{
	struct weir_span *addresses = weir_alloc(ADDRESSES, sizeof *addresses);
	uint32_t random = 1;
	for (int i = 0; i < ADDRESSES; i++) {
		random = random * 1664525 + 1013904223;
		snprintf(texts[i], sizeof texts[i], "%u.%u.%u.%u", 1 + (random >> 24) % 223, random >> 16 & 255,
		         random >> 8 & 255, random >> 3 & 255);
		addresses[i] = weir_span_of(texts[i]);
	}
	return addresses;
}

/* One record, filled anew for each line, as in a collector. */
static double match_seconds(struct weir_matcher *matcher, const struct weir_span *addresses, int rounds)
{
	static struct weir_record record;
	struct weir_matched matched;
	uint64_t events = 0;
	double start = thread_seconds();
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < ADDRESSES; i++) {
			record.fields[WEIR_FIELD_IP] = addresses[i];
			record.fields[WEIR_FIELD_PATH] = (struct weir_span){.at = "/api/v1/things", .length = 14};
			record.fields[WEIR_FIELD_METHOD] = (struct weir_span){.at = "GET", .length = 3};
			record.fields[WEIR_FIELD_STATUS] = (struct weir_span){.at = "200", .length = 3};
			weir_matcher_match(matcher, &record, &matched);
			events += matched.event_count;
		}
	double seconds = thread_seconds() - start;
	if (events == 0)
		abort();
	return seconds;
}

/* A policy's zones, ready for records. */
struct scene {
	struct weir_policy *policy;
	struct weir_matcher *matcher;
	struct weir_field_table fields;
};

static void scene_init(struct scene *scene, const char *zones)
{
	struct weir_json_document *document = NULL;
	*scene = (struct scene){0};
	weir_field_table_init(&scene->fields);
	if (weir_json_parse("zones", zones, strlen(zones), &document, NULL) != WEIR_OK)
		abort();
	struct weir_json root = weir_json_root(document);
	if (weir_policy_parse(&root, NULL, &scene->policy, NULL) != WEIR_OK ||
	    weir_matcher_new(scene->policy, NULL, &scene->fields, 16, &scene->matcher, NULL) != WEIR_OK)
		abort();
	weir_json_document_free(document);
}

static void scene_deinit(struct scene *scene)
{
	weir_matcher_free(scene->matcher);
	weir_policy_free(scene->policy);
	weir_field_table_deinit(&scene->fields);
}

static void measure(const struct bench_case *bench, const struct weir_span *addresses, int rounds)
{
	struct scene scene;
	scene_init(&scene, bench->zones);
	double seconds[RUNS];
	for (int i = 0; i < RUNS; i++)
		seconds[i] = match_seconds(scene.matcher, addresses, rounds);
	double rate = (double)rounds * ADDRESSES / median(seconds, RUNS);
	printf("{\"bench\":\"%s\",\"unit\":\"records/s\",\"rate\":%.0f,\"ns\":%.1f", bench->name, rate, 1e9 / rate);
	if (bench->goal_ns > 0)
		printf(",\"goal\":%.0f,\"ratio\":%.2f", 1e9 / bench->goal_ns, rate * bench->goal_ns / 1e9);
	printf("}\n");
	scene_deinit(&scene);
}

/* ---- many zones ---- */

enum { ROUTE_BYTES = 64, ZONE_BYTES = 256 };

static const char *const methods[] = {"GET", "POST", "PUT", "DELETE"};

/* Routes of an API: four methods for each thing, and half of them with something behind it. */
static void route_path(uint32_t route, const char *rest, char path[ROUTE_BYTES])
{
	snprintf(path, ROUTE_BYTES, "/api/v1/team%u/things%u/%s", route / 40, route / 4,
	         route / 4 % 2 == 0 ? "list" : rest);
}

/* @param route_match  each takes one route; false: all take every record */
static char *many_zones(uint32_t count, bool route_match)
{
	struct weir_text text = {0};
	char path[ROUTE_BYTES], match[ZONE_BYTES];
	for (uint32_t i = 0; i < count; i++) {
		route_path(i, "*", path);
		snprintf(match, sizeof match, "\"match\": {\"method\": \"%s\", \"path\": \"%s\"}, ", methods[i % 4], path);
		weir_text_printf(&text, "%s{\"name\": \"z%u\", \"key\": [\"ip\"], %s" LIMITS "}", i == 0 ? "[" : ",", i,
		                 route_match ? match : "");
	}
	weir_text_append(&text, "]", 2);
	return text.at;
}

/* Records of routes chosen evenly. */
static double route_seconds(struct weir_matcher *matcher, const struct weir_span *addresses,
                            const struct weir_record *records, uint32_t routes, int rounds)
{
	static struct weir_record record;
	struct weir_matched matched;
	uint64_t events = 0, random = 88172645463325252u;
	double start = thread_seconds();
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < ADDRESSES; i++) {
			const struct weir_record *route = &records[(uint32_t)((next_random(&random) >> 32) * routes >> 32)];
			record.fields[WEIR_FIELD_IP] = addresses[i];
			record.fields[WEIR_FIELD_PATH] = route->fields[WEIR_FIELD_PATH];
			record.fields[WEIR_FIELD_METHOD] = route->fields[WEIR_FIELD_METHOD];
			weir_matcher_match(matcher, &record, &matched);
			events += matched.event_count;
		}
	double seconds = thread_seconds() - start;
	if (events != (uint64_t)rounds * ADDRESSES)
		abort();
	return seconds / rounds / ADDRESSES;
}

enum { SIZES = 5, ROUTES_MOST = 1000 };

/* As many zones as routes, the sizes in turn, against ten. */
static void measure_many(const char *name, const uint32_t sizes[SIZES], uint32_t base, bool route_match,
                         const struct weir_span *addresses, int rounds)
{
	struct scene scenes[SIZES];
	static struct weir_record records[ROUTES_MOST];
	static char paths[ROUTES_MOST][ROUTE_BYTES];
	double ns[SIZES][RUNS], ratios[SIZES][RUNS];
	for (uint32_t i = 0; i < ROUTES_MOST; i++) {
		route_path(i, "4711", paths[i]);
		records[i].fields[WEIR_FIELD_PATH] = weir_span_of(paths[i]);
		records[i].fields[WEIR_FIELD_METHOD] = weir_span_of(methods[i % 4]);
	}
	for (int i = 0; i < SIZES; i++) {
		char *zones = many_zones(sizes[i], route_match);
		scene_init(&scenes[i], zones);
		free(zones);
	}
	for (int run = 0; run < RUNS; run++) {
		for (int i = 0; i < SIZES; i++)
			ns[i][run] = 1e9 * route_seconds(scenes[i].matcher, addresses, records,
			                                 route_match ? sizes[i] : ROUTES_MOST, rounds);
		for (int i = 0; i < SIZES; i++)
			ratios[i][run] = ns[i][run] / ns[base][run];
	}
	for (int i = 0; i < SIZES; i++) {
		printf("{\"bench\":\"%s\",\"zones\":%u,\"ns\":%.1f,\"ratio\":%.2f}\n", name, sizes[i], median(ns[i], RUNS),
		       median(ratios[i], RUNS));
		scene_deinit(&scenes[i]);
	}
}

/* How long it takes to make the index of more zones than a policy may have, and to find a path that is as bad as can be. */
static void measure_index(uint32_t zones)
{
	struct weir_text text = {0};
	struct weir_json_document *document;
	struct weir_field_table fields;
	struct weir_match *matches = weir_alloc(zones, sizeof *matches);
	struct weir_record_filter *filters = weir_alloc(zones, sizeof *filters);
	struct weir_zone_filter *zone_filters = weir_alloc(zones, sizeof *zone_filters);
	char path[ROUTE_BYTES];
	weir_field_table_init(&fields);
	for (uint32_t i = 0; i < zones; i++) {
		route_path(i, "*", path);
		weir_text_clear(&text);
		weir_text_printf(&text, "{\"method\": \"%s\", \"path\": \"%s\"}", methods[i % 4], path);
		if (weir_json_parse("match", text.at, text.length, &document, NULL) != WEIR_OK)
			abort();
		struct weir_json root = weir_json_root(document);
		if (weir_match_parse(&root, &matches[i], NULL) != WEIR_OK ||
		    weir_record_filter_init(&filters[i], &matches[i], &fields, NULL) != WEIR_OK)
			abort();
		zone_filters[i] = (struct weir_zone_filter){.filter = &filters[i], .zone = i};
		weir_json_document_free(document);
	}
	double start = thread_seconds();
	struct weir_zone_index *index = weir_zone_index_new(zone_filters, zones, zones);
	double made_s = thread_seconds() - start;
	weir_text_clear(&text);
	weir_text_puts(&text, "/api/v1/team1/things10/");
	while (text.length < 200000)
		weir_text_puts(&text, "/%2e%2e/api/v1");
	struct weir_record record = {0};
	record.fields[WEIR_FIELD_PATH] = weir_text_span(&text);
	enum { LOOKUPS = 100000 };
	start = thread_seconds();
	for (int i = 0; i < LOOKUPS; i++)
		weir_zone_index_find(index, &record);
	printf("{\"bench\":\"match_index\",\"zones\":%u,\"made_ms\":%.2f,\"long_path_ns\":%.1f}\n", zones, made_s * 1e3,
	       (thread_seconds() - start) / LOOKUPS * 1e9);
	weir_zone_index_free(index);
	for (uint32_t i = 0; i < zones; i++) {
		weir_record_filter_deinit(&filters[i]);
		weir_match_free(&matches[i]);
	}
	free(matches);
	free(filters);
	free(zone_filters);
	weir_field_table_deinit(&fields);
	weir_text_deinit(&text);
}

/*
 * Lists of more and more addresses: how long they take to read, and whether an address is in one of them. The cost may
 * grow with the processor's caches, and not with the steps.
 */
static void measure_list(uint32_t entries, uint32_t prefix)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];
	struct weir_exempt_list *list = NULL;
	snprintf(path, sizeof path, "%s/weir-bench-list-XXXXXX", folder != NULL ? folder : "/tmp");
	FILE *file = fdopen(mkstemp(path), "w");
	if (file == NULL)
		abort();
	for (uint32_t i = 0; i < entries; i++) {
		uint32_t address = (i * UINT32_C(2654435761)) << (32 - prefix); /* odd: each network once */
		fprintf(file, "%u.%u.%u.%u/%u\n", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255,
		        prefix);
	}
	fclose(file);
	double start = thread_seconds();
	if (weir_exempt_list_open(NULL, path, &list, NULL) != WEIR_OK)
		abort();
	double read_s = thread_seconds() - start;
	unlink(path);
	double seconds[RUNS];
	enum { LOOKUPS = 1 << 20 };
	uint32_t found = 0, random = 1;
	for (int run = 0; run < RUNS; run++) {
		start = thread_seconds();
		for (uint32_t i = 0; i < LOOKUPS; i++) {
			struct weir_address address = {{[10] = 0xff, 0xff}};
			random = random * 1664525 + 1013904223;
			uint32_t number = i % 2 == 0 ? random : (random % entries * UINT32_C(2654435761)) << (32 - prefix);
			for (int k = 0; k < 4; k++)
				address.bytes[12 + k] = (uint8_t)(number >> (24 - 8 * k));
			found += weir_network_set_has(&list->networks, &address);
		}
		seconds[run] = thread_seconds() - start;
	}
	printf(
		"{\"bench\":\"exempt_list\",\"entries\":%u,\"prefix\":%u,\"found\":%.2f,\"ns_lookup\":%.1f,\"ns_read_entry\":%.1f}\n",
		entries, prefix, (double)found / RUNS / LOOKUPS, median(seconds, RUNS) / LOOKUPS * 1e9, read_s / entries * 1e9);
	weir_exempt_list_close(list);
}

int main(void)
{
	int rounds = is_smoke() ? 5 : 300;
	char(*texts)[16] = weir_alloc(ADDRESSES, sizeof *texts);
	struct weir_span *addresses = make_addresses(texts);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		measure(&cases[i], addresses, rounds);
	measure_many("match_routes", (const uint32_t[SIZES]){1, 10, 16, 100, 1000}, 1, true, addresses, rounds / 5);
	measure_many("match_all", (const uint32_t[SIZES]){1, 4, 16, 17, 64}, 0, false, addresses, rounds / 5);
	measure_index(1000);
	measure_index(10000);
	for (uint32_t entries = 1000; entries <= (is_smoke() ? 10000u : 10000000u); entries *= 10)
		measure_list(entries, 32);
	measure_list(is_smoke() ? 10000 : 1000000, 24);
	measure_list(is_smoke() ? 1000 : 60000, 16);
	free(addresses);
	free(texts);
	return 0;
}

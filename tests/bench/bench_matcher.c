/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to find a record's zones and keys, for the kinds of zone there
 * are: a budget of 40 ns for one zone by address. Medians of several runs; one
 * JSON line a measurement. WEIR_BENCH=smoke runs a small size.
 */
#include "collector/match/matcher.h"
#include "common/base/alloc.h"
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
static double match_seconds(struct matcher *matcher, const struct weir_span *addresses, int rounds)
{
	static struct record record;
	struct matched matched;
	uint64_t events = 0;
	double start = thread_seconds();
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < ADDRESSES; i++) {
			record.fields[FIELD_IP] = addresses[i];
			record.fields[FIELD_PATH] = (struct weir_span){.at = "/api/v1/things", .length = 14};
			record.fields[FIELD_METHOD] = (struct weir_span){.at = "GET", .length = 3};
			record.fields[FIELD_STATUS] = (struct weir_span){.at = "200", .length = 3};
			matcher_match(matcher, &record, &matched);
			events += matched.event_count;
		}
	double seconds = thread_seconds() - start;
	if (events == 0)
		abort();
	return seconds;
}

static void measure(const struct bench_case *bench, const struct weir_span *addresses, int rounds)
{
	struct weir_json_document *document = NULL;
	struct weir_policy *policy = NULL;
	struct matcher *matcher = NULL;
	struct field_table fields;
	field_table_init(&fields);
	if (weir_json_parse(bench->name, bench->zones, strlen(bench->zones), &document, NULL) != WEIR_OK)
		abort();
	struct weir_json root = weir_json_root(document);
	if (weir_policy_parse(&root, NULL, &policy, NULL) != WEIR_OK ||
	    matcher_new(policy, NULL, &fields, 16, &matcher, NULL) != WEIR_OK)
		abort();
	double seconds[RUNS];
	for (int i = 0; i < RUNS; i++)
		seconds[i] = match_seconds(matcher, addresses, rounds);
	double rate = (double)rounds * ADDRESSES / median(seconds, RUNS);
	printf("{\"bench\":\"%s\",\"unit\":\"records/s\",\"rate\":%.0f,\"ns\":%.1f", bench->name, rate, 1e9 / rate);
	if (bench->goal_ns > 0)
		printf(",\"goal\":%.0f,\"ratio\":%.2f", 1e9 / bench->goal_ns, rate * bench->goal_ns / 1e9);
	printf("}\n");
	matcher_free(matcher);
	weir_policy_free(policy);
	weir_json_document_free(document);
	field_table_deinit(&fields);
}

/*
 * Lists of more and more addresses: how long they take to read, and whether an address is in one of them. The cost may
 * grow with the processor's caches, and not with the steps.
 */
static void measure_list(uint32_t entries, uint32_t prefix)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];
	struct exempt_list *list = NULL;
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
	if (exempt_list_open(NULL, path, &list, NULL) != WEIR_OK)
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
			found += network_set_has(&list->networks, &address);
		}
		seconds[run] = thread_seconds() - start;
	}
	printf(
		"{\"bench\":\"exempt_list\",\"entries\":%u,\"prefix\":%u,\"found\":%.2f,\"ns_lookup\":%.1f,\"ns_read_entry\":%.1f}\n",
		entries, prefix, (double)found / RUNS / LOOKUPS, median(seconds, RUNS) / LOOKUPS * 1e9, read_s / entries * 1e9);
	exempt_list_close(list);
}

int main(void)
{
	int rounds = is_smoke() ? 5 : 300;
	char(*texts)[16] = weir_alloc(ADDRESSES, sizeof *texts);
	struct weir_span *addresses = make_addresses(texts);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		measure(&cases[i], addresses, rounds);
	for (uint32_t entries = 1000; entries <= (is_smoke() ? 10000u : 10000000u); entries *= 10)
		measure_list(entries, 32);
	measure_list(is_smoke() ? 10000 : 1000000, 24);
	measure_list(is_smoke() ? 1000 : 60000, 16);
	free(addresses);
	free(texts);
	return 0;
}

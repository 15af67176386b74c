/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every real log beside the tree, counted: how many lines are records, why the others are not, how many clients.
 *
 * The logs are no part of the tree: ../shared/data, or WEIR_DATA. Without them the test is skipped. The samples in
 * tests/data are.
 */
#include "tests/unit/format_fixture.h"

#include <glob.h>
#include <search.h>

enum { CLIENTS_MAX = 20000 };

struct counts {
	uint64_t lines, reasons[FORMAT_REASON_COUNT];
	uint64_t malformed; /* not of the format */
	uint64_t ascending; /* records not older than the one before */
	struct hsearch_data clients;
	char **client_names;
	uint64_t client_count;
};

static void count_client(struct counts *counts, struct weir_span ip)
{
	char *key = weir_copy(ip.at, ip.length);
	ENTRY *found;
	assert_true(counts->client_count < CLIENTS_MAX);
	hsearch_r((ENTRY){.key = key}, ENTER, &found, &counts->clients);
	counts->client_names[counts->client_count++] = key;
}

static bool is_counted(struct counts *counts, struct weir_span ip)
{
	char key[512];
	ENTRY *found;
	snprintf(key, sizeof key, "%.*s", (int)ip.length, ip.at);
	return hsearch_r((ENTRY){.key = key}, FIND, &found, &counts->clients) != 0;
}

static void count_file(struct fixture *fixture, const char *path, struct counts *counts)
{
	char command[1100], *line = NULL;
	size_t capacity = 0;
	ssize_t length;
	int64_t newest_ms = 0;
	bool packed = strlen(path) > 3 && strcmp(path + strlen(path) - 3, ".gz") == 0;
	snprintf(command, sizeof command, "%s '%s'", packed ? "gzip -dc" : "cat", path);
	FILE *pipe = popen(command, "r");
	assert_non_null(pipe);
	format_begin(fixture->format, (struct weir_span){0});
	while ((length = getline(&line, &capacity, pipe)) > 0) {
		length -= line[length - 1] == '\n';
		length -= length > 0 && line[length - 1] == '\r';
		enum format_reason reason = fixture_parse_bytes(fixture, line, (size_t)length);
		counts->lines++;
		counts->reasons[reason]++;
		counts->malformed += reason == fixture->format->malformed;
		if (reason != FORMAT_OK)
			continue;
		counts->ascending += fixture->record.time_ms >= newest_ms;
		newest_ms = fixture->record.time_ms;
		struct weir_span ip = fixture_field(fixture, "ip");
		if (ip.at != NULL && !is_counted(counts, ip))
			count_client(counts, ip);
	}
	free(line);
	assert_int_equal(pclose(pipe), 0);
}

/* The counts of all files that a pattern names; skips the test where there are none. */
static struct counts count(const char *config, const char *folder, const char *files)
{
	struct fixture fixture;
	struct counts counts = {0};
	char pattern[1024];
	glob_t found = {0};
	snprintf(pattern, sizeof pattern, "%s/%s", folder, files);
	if (glob(pattern, 0, NULL, &found) != 0) {
		print_message("[  SKIPPED ] %s is not there\n", pattern);
		skip();
	}
	assert_int_not_equal(hcreate_r(2 * CLIENTS_MAX, &counts.clients), 0);
	counts.client_names = weir_alloc(CLIENTS_MAX, sizeof *counts.client_names);
	fixture_init(&fixture, config, "ip");
	for (size_t i = 0; i < found.gl_pathc; i++)
		count_file(&fixture, found.gl_pathv[i], &counts);
	fixture_deinit(&fixture);
	globfree(&found);
	hdestroy_r(&counts.clients);
	for (uint64_t i = 0; i < counts.client_count; i++)
		free(counts.client_names[i]);
	free(counts.client_names);
	return counts;
}

static struct counts count_shared(const char *config, const char *files)
{
	const char *folder = getenv("WEIR_DATA");
	return count(config, folder != NULL ? folder : "../shared/data", files);
}

static void apache(void **state)
{
	(void)state;
	struct counts counts = count_shared("\"combined\"", "apache-semicomplete-2015.log.gz");
	assert_int_equal(counts.lines, 10000);
	assert_int_equal(counts.reasons[FORMAT_OK], 10000);
	assert_int_equal(counts.client_count, 1753);
}

static void nginx(void **state)
{
	(void)state;
	struct counts counts = count_shared("\"combined\"", "nginx-erddap-2024/access.log.*.gz");
	assert_int_equal(counts.lines, 16275);
	assert_int_equal(counts.reasons[FORMAT_OK], 10479);
	assert_int_equal(counts.malformed, 5796);
	assert_int_equal(counts.client_count, 917);
}

static void zeek(void **state)
{
	(void)state;
	static const char config[] = "{\"type\": \"json\", \"time\": \"ts\", \"fields\": {\"ip\": \"id.orig_h\"}}";
	struct counts dns = count_shared(config, "zeek-dns-2018.json.gz");
	assert_int_equal(dns.lines, 53615);
	assert_int_equal(dns.reasons[FORMAT_OK], 53615);
	assert_int_equal(dns.client_count, 77);
	struct counts ssl = count_shared(config, "zeek-ssl-2018.json.gz");
	assert_int_equal(ssl.lines, 49474);
	assert_int_equal(ssl.reasons[FORMAT_OK], 49474);
	assert_int_equal(ssl.client_count, 115);
}

static void nasa(void **state)
{
	(void)state;
	struct counts counts = count_shared("{\"type\": \"delimited\", \"unit\": \"s\", \"fields\": {\"ip\": \"host\"}}",
	                                    "nasa-http-*.tsv.gz");
	assert_int_equal(counts.lines, 30970);
	assert_int_equal(counts.reasons[FORMAT_SKIP], 1);
	assert_int_equal(counts.reasons[FORMAT_OK], 30969);
	assert_int_equal(counts.ascending, 30969);
	assert_int_equal(counts.client_count, 2365);
}

static void samples_of_the_tree(void **state)
{
	(void)state;
	static const struct {
		const char *file, *config;
		uint64_t records, skipped, clients;
	} samples[] = {
		{"combined.log", "\"combined\"", 9, 0, 6},
		{"common.log", "\"common\"", 5, 0, 3},
		{"requests.json", "{\"type\": \"json\", \"time\": \"ts\", \"fields\": {\"ip\": \"/client/ip\"}}", 6, 0, 4},
		{"requests.csv", "{\"type\": \"delimited\", \"separator\": \",\", \"quote\": \"\\\"\"}", 5, 1, 3},
		{"requests.logfmt", "{\"type\": \"logfmt\", \"fields\": {\"ip\": \"fwd\"}}", 5, 0, 3},
		{"nginx_error.log", "{\"type\": \"nginx_error\", \"time_zone\": \"Europe/Berlin\"}", 5, 0, 2},
		{"haproxy.log", "\"haproxy\"", 5, 0, 4},
		{"sshd.log", "{\"type\": \"sshd\", \"year\": 2024, \"unmatched\": \"skip\"}", 7, 2, 3},
		{"apache_error.log", "\"apache_error\"", 4, 0, 2},
		{"ingress_nginx.log", "\"ingress_nginx\"", 2, 0, 2},
		{"alb.log", "\"alb\"", 2, 0, 2},
		{"squid.log", "\"squid\"", 3, 0, 2},
		{"postfix.log", "{\"type\": \"postfix\", \"year\": 2024, \"unmatched\": \"skip\"}", 4, 1, 2},
		{"dovecot.log", "{\"type\": \"dovecot\", \"year\": 2024}", 3, 0, 2},
		{"w3c.log", "\"w3c\"", 3, 6, 2},
		{"zeek.log", "\"zeek\"", 2, 8, 2},
		{"caddy.json", "\"caddy\"", 2, 0, 2},
		{"docker.json", "{\"type\": \"wrapped\", \"in\": \"docker\", \"message\": \"combined\"}", 2, 1, 2},
	};
	for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
		struct counts counts = count(samples[i].config, "tests/data", samples[i].file);
		if (counts.reasons[FORMAT_OK] != samples[i].records || counts.reasons[FORMAT_SKIP] != samples[i].skipped ||
		    counts.client_count != samples[i].clients || counts.lines != samples[i].records + samples[i].skipped)
			fail_msg("%s: %llu of %llu lines are records, %llu skipped, %llu clients", samples[i].file,
			         (unsigned long long)counts.reasons[FORMAT_OK], (unsigned long long)counts.lines,
			         (unsigned long long)counts.reasons[FORMAT_SKIP], (unsigned long long)counts.client_count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(apache),
		cmocka_unit_test(nginx),
		cmocka_unit_test(zeek),
		cmocka_unit_test(nasa),
		cmocka_unit_test(samples_of_the_tree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

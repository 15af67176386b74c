/* SPDX-License-Identifier: Apache-2.0 */
/* A setting is known by its name, wherever it stands: each source, gateway and server has its own place for the same. */
#include "common/daemon/certificate_metrics.h"

#include "common/base/alloc.h"
#include "common/bytes/redis_url.h"
#include "common/tls/certificate.h"

#include <stdlib.h>
#include <string.h>

enum { FILES_MOST = 64, DEPTH_MOST = 16, PATH_BYTES = 4096 };

static const struct {
	const char *name;
	bool authorities;
} settings[] = {
	{"certificate", false}, {"api_certificate", false}, {"ssl.certificate.location", false},
	{"ca", true},           {"client_ca", true},        {"api_client_ca", true},
	{"tls_ca", true},       {"ssl.ca.location", true},
};

enum { EXPIRES, METRIC_COUNT };

static const struct weir_metric metrics[METRIC_COUNT] = {
	[EXPIRES] =
		{"weir_certificate_file_expires_timestamp_seconds", WEIR_GAUGE, "Unix time",
         WEIR_LABELS({"file", "its path, as the configuration or the command line names it"}),
         "When a certificate expires that the configuration or --to names: what this process shows to clients and servers, or "
         "whom it trusts (of several authorities in a file the last). Absent where the file holds none in PEM form."},
};

const struct weir_metric_table weir_certificate_metric_table = {metrics, METRIC_COUNT};

struct looking {
	struct weir_text *page;
	char *seen[FILES_MOST];
	size_t count;
};

static void put_file(struct looking *looking, const char *path, bool authorities)
{
	if (path == NULL || looking->count == FILES_MOST || strlen(path) >= PATH_BYTES)
		return;
	for (size_t i = 0; i < looking->count; i++)
		if (strcmp(looking->seen[i], path) == 0)
			return;
	looking->seen[looking->count++] = weir_copy(path, strlen(path));
	const struct weir_span label = weir_span_of(path);
	int64_t expires_s = weir_certificate_file_ends_s(path, authorities);
	if (expires_s != 0)
		weir_metrics_double(looking->page, &metrics[EXPIRES], &label, (double)expires_s);
}

/* That of a Redis server names them at its end; any other text names none. */
static void look_at_address(struct looking *looking, const char *text)
{
	struct weir_redis_url url;
	struct weir_error ignored;
	if (weir_redis_url_parse(text, &url, &ignored) != WEIR_OK)
		return;
	put_file(looking, url.ca, true);
	put_file(looking, url.certificate, false);
	weir_redis_url_deinit(&url);
}

static void look_at_member(struct looking *looking, const char *name, const json_t *value)
{
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
		if (strcmp(settings[i].name, name) == 0)
			put_file(looking, json_string_value(value), settings[i].authorities);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as a configuration, and bounded */
static void look_at(struct looking *looking, json_t *value, int depth)
{
	const char *name;
	json_t *member;
	size_t i;
	if (depth == DEPTH_MOST)
		return;
	if (json_is_string(value))
		look_at_address(looking, json_string_value(value));
	json_array_foreach(value, i, member) look_at(looking, member, depth + 1);
	json_object_foreach(value, name, member)
	{
		if (json_is_string(member))
			look_at_member(looking, name, member);
		look_at(looking, member, depth + 1);
	}
}

void weir_certificate_metrics(const struct weir_config *config, const char *address, struct weir_text *page)
{
	struct looking looking = {.page = page};
	weir_metrics_family(page, &metrics[EXPIRES]);
	if (config != NULL)
		look_at(&looking, weir_json_root(config->document).value, 0);
	if (address != NULL)
		look_at_address(&looking, address);
	while (looking.count > 0)
		free(looking.seen[--looking.count]);
}

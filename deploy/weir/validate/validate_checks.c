/* SPDX-License-Identifier: Apache-2.0 */
/* What a configuration says of checks and may not mean: what counts twice, or comes to nothing, as nobody asks. */
#include "deploy/weir/validate/validate_report.h"

#include <stdio.h>

#define NOBODY_LISTENS "nobody listens for them: set listen.resp, listen.check_http or listen.grpc"

static void warn(struct validate_report *report, const char *path, const char *said)
{
	struct weir_text words = {0};
	if (said == NULL)
		return;
	weir_text_puts(&words, said);
	validate_warn(report, path, &words);
}

/* In a cluster another file may say where. */
static bool nobody_listens(const struct weir_config *config)
{
	return config->bus.type == WEIR_BUS_LOCAL && !weir_config_takes_checks(config);
}

/* What a zone's feed comes to here; NULL: what is to be expected. */
static const char *feed_doubt(const struct weir_config *config, const struct weir_zone *zone)
{
	if (zone->feed == WEIR_FEED_BOTH && config->source_count > 0 && weir_config_takes_checks(config))
		return "counts log lines and checks: a request that is both checked and logged counts twice; say \"check\" or "
			   "\"log\" where gateways ask for what they log";
	if (zone->feed == WEIR_FEED_CHECK && nobody_listens(config))
		return "counts checks alone, and " NOBODY_LISTENS;
	if (zone->feed == WEIR_FEED_CHECK && zone->source_count > 0)
		return "counts checks alone, but the zone has \"sources\": no request by HTTP or gRPC is in it";
	return NULL;
}

static void check_zones(struct validate_report *report)
{
	for (uint32_t i = 0; i < report->zone_count; i++) {
		const struct weir_zone *zone = report->zones[i].zone;
		char path[64];
		snprintf(path, sizeof path, "zones[%u].feed", i);
		warn(report, path, feed_doubt(report->config, zone));
		snprintf(path, sizeof path, "zones[%u].durable", i);
		if (zone->durable && nobody_listens(report->config))
			warn(report, path, "is about checks, and " NOBODY_LISTENS);
	}
}

/* A zone that comes with a later policy is good, too, so this is no mistake. In a cluster the policy may be elsewhere. */
static void check_user_zones(struct validate_report *report, const struct weir_json *user)
{
	struct weir_json zones = weir_json_member(user, "zones");
	for (size_t i = 0; report->zone_count > 0 && i < json_array_size(zones.value); i++) {
		struct weir_json zone = weir_json_element(&zones, i);
		const char *name = json_string_value(zone.value);
		struct weir_text words = {0};
		struct weir_error unknown;
		if (weir_policy_find_zone(report->policy, weir_span_of(name), &unknown) != NULL)
			continue;
		weir_text_printf(&words, "%s: until a policy has it, the user is refused there", unknown.text);
		validate_warn(report, zone.path, &words);
	}
}

void validate_checks(struct validate_report *report)
{
	const struct weir_config *config = report->config;
	const char *name;
	json_t *user;
	struct weir_text words = {0};
	check_zones(report);
	if (validate_trusts_everybody(&config->checks.client_ip, &words))
		validate_warn(report, "checks.client_ip.trusted", &words);
	if (config->checks.durable && nobody_listens(config))
		warn(report, "checks.durable", "is about checks, and " NOBODY_LISTENS);
	if (weir_json_exists(&config->checks.users) && config->bus.type == WEIR_BUS_LOCAL && config->listen.resp == NULL)
		warn(report, "checks.users", "ask by Redis' protocol alone, and nobody listens for it: set listen.resp");
	json_object_foreach(config->checks.users.value, name, user)
	{
		struct weir_json at = weir_json_member(&config->checks.users, name);
		check_user_zones(report, &at);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a zone says of clients and may not mean: IPv6 addresses that are counted one by one, values that nothing has. */
#include "collector/follow/inputs.h"
#include "collector/follow/policy_doubts.h"
#include "common/bytes/address.h"
#include "deploy/weir/validate/validate_report.h"

#include <stdio.h>

enum { CUSTOMER_PREFIX6 = 64 };

/* A field that weir knows to be none is told by what it holds, where sources are looked at. */
static bool is_address(const struct weir_key_field *field)
{
	static const char *const others[] = {"path", "target", "method", "status", "bytes", "agent", "referer", "host"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strcmp(field->field, others[i]) == 0)
			return false;
	return field->grouped || strcmp(field->field, "ip") == 0;
}

static void check_grouping(struct validate_report *report, uint32_t number)
{
	const struct weir_zone *zone = report->zones[number].zone;
	for (uint32_t i = 0; i < zone->key_count; i++) {
		const struct weir_key_field *field = &zone->key[i];
		bool address = is_address(field);
		if (!address || field->prefix6 <= CUSTOMER_PREFIX6)
			continue;
		struct weir_text words = {0};
		char path[64];
		snprintf(path, sizeof path, "zones[%u].key[%u]", number, i);
		weir_text_printf(&words,
		                 "counts IPv6 addresses by themselves, of which one customer has 2^64: "
		                 "{\"field\": \"%s\", \"prefix6\": 64} counts networks (in a zone of a new name)",
		                 field->field);
		validate_warn(report, path, &words);
	}
}

/* A policy_doubt. */
static void warn_doubt(void *context, uint32_t zone, const char *member, const char *said)
{
	struct validate_report *report = context;
	struct weir_text words = {0};
	char path[WEIR_JSON_PATH_BYTES];
	snprintf(path, sizeof path, "zones[%u]%s%.200s", zone, member != NULL ? "." : "", member != NULL ? member : "");
	report->zones[zone].unmatched |= member == NULL;
	weir_text_puts(&words, said);
	validate_warn(report, path, &words);
}

/* Whether a network is of so many that whoever writes a header may be in it: an eighth of all, or more. */
static bool is_of_everybody(const char *text)
{
	struct weir_network network;
	const char *why;
	enum { IPV4_PREFIX = 96, IPV4_LEAST = 4, IPV6_LEAST = 4 };
	if (!weir_network_parse(weir_span_of(text), &network, &why))
		return false;
	bool ipv4 = network.prefix >= IPV4_PREFIX;
	return ipv4 ? network.prefix < IPV4_PREFIX + IPV4_LEAST : network.prefix < IPV6_LEAST;
}

bool validate_trusts_everybody(const struct weir_json *rule, struct weir_text *words)
{
	struct weir_json trusted = weir_json_member(rule, "trusted");
	for (size_t i = 0; i < json_array_size(trusted.value); i++) {
		const char *text = json_string_value(json_array_get(trusted.value, i));
		if (text == NULL || !is_of_everybody(text))
			continue;
		weir_text_printf(
			words,
			"client_ip trusts everybody (\"%.60s\"): the ip is what a client writes into the header, so he is "
			"not blocked, and others may be. Trust the proxies' own addresses alone",
			text);
		return true;
	}
	return false;
}

void validate_clients(struct validate_report *report)
{
	for (uint32_t i = 0; i < report->zone_count; i++)
		check_grouping(report, i);
	policy_doubts(report->policy, report->config, report->lists, warn_doubt, report);
	struct weir_error error; /* what is wrong with a source is told where sources are looked at */
	enum weir_status status =
		inputs_each_lack(report->config, report->policy, report->lists, warn_doubt, report, &error);
	(void)status;
}

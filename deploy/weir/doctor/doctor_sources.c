/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's own check of its sources; and of sources that are topics, whether their brokers answer. */
#include "collector/follow/source_check.h"
#include "deploy/weir/doctor/internal.h"

#include <string.h>

struct brokers {
	const struct weir_check *check;
	const char *topic;
	size_t asked, away;
};

static void try_broker(void *context, const char *host, unsigned port)
{
	struct brokers *brokers = context;
	const char *reason = doctor_reach(host, port);
	brokers->asked++;
	brokers->away += reason != NULL;
	if (brokers->away == 1 && reason != NULL)
		weir_findings_add(
			brokers->check->findings, WEIR_SEVERITY_TICKET, "sources",
			"broker %s:%u of the source topic %s cannot be reached: %s\nIf no broker of it answers, no line of it is "
			"judged\nstart it, or name the one that answers in the source's \"brokers\" (runbook: "
			"source-unreadable)",
			host, port, brokers->topic, reason);
}

void doctor_check_sources(struct doctor *doctor, const struct weir_check *check)
{
	source_check(check);
	for (size_t i = 0; i < doctor->config->source_count; i++) {
		struct weir_json source = weir_json_element(&doctor->config->sources, i);
		struct weir_json type = weir_json_member(&source, "type"), list = weir_json_member(&source, "brokers");
		struct weir_json topics = weir_json_member(&source, "topics"), topic = weir_json_element(&topics, 0);
		const char *name = json_string_value(topic.value);
		struct brokers brokers = {.check = check, .topic = name != NULL ? name : "?"};
		if (json_is_string(list.value) && strcmp(json_string_value(type.value), "kafka") == 0)
			doctor_each_address(json_string_value(list.value), try_broker, &brokers);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The topics' names and numbers of partitions, which all kinds of bus share. */
#include "common/bus/bus.h"

#include <assert.h>

const char *weir_topic_name(enum weir_topic topic)
{
	static const char *const names[WEIR_TOPIC_COUNT] = {
		[WEIR_TOPIC_EVENTS] = "weir.events",       [WEIR_TOPIC_JUDGED] = "weir.judged",
		[WEIR_TOPIC_DECISIONS] = "weir.decisions", [WEIR_TOPIC_SHADOW] = "weir.decisions.shadow",
		[WEIR_TOPIC_POLICY] = "weir.policy",       [WEIR_TOPIC_DEADLETTER] = "weir.deadletter",
	};
	assert((unsigned)topic < WEIR_TOPIC_COUNT);
	return names[topic];
}

uint32_t weir_topic_partitions(enum weir_topic topic, uint32_t partitions)
{
	return topic == WEIR_TOPIC_POLICY || topic == WEIR_TOPIC_DEADLETTER ? 1 : partitions;
}

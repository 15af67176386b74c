/* SPDX-License-Identifier: Apache-2.0 */
/* The line as in a file, plus the host: with many machines, a path alone says little. */
#include "collector/send/dead_letter_topic.h"

#include "common/base/alloc.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define DAY_MS INT64_C(86400000)

struct dead_letter_topic {
	struct sender *sender;
	struct weir_text message; /* begins with {"host":…, */
	size_t head_bytes;
	int64_t day;
	uint64_t day_bytes; /* sent on that day */
};

struct dead_letter_topic *dead_letter_topic_new(struct sender *sender)
{
	struct dead_letter_topic *topic = weir_alloc(1, sizeof *topic);
	char host[HOST_NAME_MAX + 1] = "";
	topic->sender = sender;
	if (gethostname(host, sizeof host - 1) != 0)
		host[0] = '\0';
	weir_text_puts(&topic->message, "{\"host\":");
	weir_text_json(&topic->message, weir_span_of(host));
	weir_text_puts(&topic->message, ",");
	topic->head_bytes = topic->message.length;
	return topic;
}

void dead_letter_topic_free(struct dead_letter_topic *topic)
{
	if (topic == NULL)
		return;
	weir_text_deinit(&topic->message);
	free(topic);
}

static uint64_t held(void *context, int64_t now_ms)
{
	struct dead_letter_topic *topic = context;
	if (topic->day != now_ms / DAY_MS) {
		topic->day = now_ms / DAY_MS;
		topic->day_bytes = 0;
	}
	return topic->day_bytes;
}

static bool put(void *context, struct weir_span dead_letter)
{
	struct dead_letter_topic *topic = context;
	if (sender_state(topic->sender) != SENDER_WELL)
		return false;
	topic->message.length = topic->head_bytes;
	weir_text_append(&topic->message, dead_letter.at + 1, dead_letter.length - 2); /* without its brace and newline */
	struct weir_span message = {.at = topic->message.at, .length = (uint32_t)topic->message.length};
	sender_send(topic->sender, WEIR_TOPIC_DEADLETTER, 0, message);
	topic->day_bytes += dead_letter.length;
	return true; /* if the producer broke while sending it, the line is read again */
}

/* Nothing to do: what the bus has acknowledged is durable, and low-water marks wait for that. */
static enum weir_status settle(void *context, bool reopen, struct weir_error *error)
{
	(void)context, (void)reopen, (void)error;
	return WEIR_OK;
}

struct dead_letter_sink dead_letter_topic_sink(struct dead_letter_topic *topic)
{
	return (struct dead_letter_sink){.context = topic, .held_bytes = held, .put = put, .settle = settle};
}

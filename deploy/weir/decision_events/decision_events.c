/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions are lines by the same way as those of a topic: as they are published, read again. */
#include "deploy/weir/decision_events/decision_events.h"

#include "collector/follow/inputs.h"
#include "collector/source/decisions/decision_line.h"
#include "collector/source/kinds/source_kinds.h"
#include "common/base/alloc.h"
#include "limiter/lane/decision.h"

#include <stdlib.h>
#include <string.h>

struct event_line {
	uint32_t zone; /* its place in the policy */
	size_t number; /* in the order of arrival */
	struct weir_text text;
};

struct decision_events {
	const struct weir_policy *policy; /* borrowed */
	struct format *format;
	struct event_line *lines; /* a queue from `first` on */
	size_t first, count, room;
	size_t sorted;         /* lines before this are in order: those behind are of the record that is judged */
	struct weir_text line; /* of the newest record */
};

/* The place of the source; the number of sources: there is none. */
static size_t find_source(const struct weir_config *config)
{
	size_t place = 0;
	for (; place < config->source_count; place++) {
		struct weir_json source = weir_json_element(&config->sources, place);
		const struct source_ops *kind = source_kind(&source);
		if (kind != NULL && kind->own_name != NULL && strcmp(kind->own_name, WEIR_SOURCE_DECISIONS) == 0)
			break;
	}
	return place;
}

static bool some_zone_counts(const struct weir_policy *policy)
{
	for (uint32_t i = 0; i < policy->zone_count; i++)
		if (weir_zone_counts_decisions(&policy->zones[i]))
			return true;
	return false;
}

enum weir_status decision_events_new(const struct weir_config *config, const struct weir_policy *policy,
                                     const struct weir_field_table *fields, struct decision_events **events,
                                     struct weir_error *error)
{
	size_t place = find_source(config);
	struct format *format;
	*events = NULL;
	if (place == config->source_count || !some_zone_counts(policy))
		return WEIR_OK;
	enum weir_status status = inputs_format(config, fields, place, &format, error);
	if (status != WEIR_OK)
		return status;
	*events = weir_alloc(1, sizeof **events);
	(*events)->policy = policy;
	(*events)->format = format;
	return WEIR_OK;
}

void decision_events_free(struct decision_events *events)
{
	if (events == NULL)
		return;
	for (size_t i = events->first; i < events->count; i++)
		weir_text_deinit(&events->lines[i].text);
	free(events->lines);
	weir_text_deinit(&events->line);
	format_free(events->format);
	free(events);
}

void decision_events_add(struct decision_events *events, uint32_t partition, const struct shard_decision *decision)
{
	struct weir_text text = {0};
	uint64_t position;
	decision_message_key(&text, decision->zone->zone, decision->key);
	size_t key_length = text.length;
	decision_json(&text, partition, decision);
	struct weir_message message = {
		.key = {.at = text.at, .length = (uint32_t)key_length},
		.payload = {.at = text.at + key_length, .length = (uint32_t)(text.length - key_length)},
	};
	if (events->count == events->room) {
		events->room = events->room == 0 ? 16 : 2 * events->room;
		events->lines = weir_realloc(events->lines, events->room, sizeof *events->lines);
	}
	struct event_line *line = &events->lines[events->count];
	*line = (struct event_line){.zone = decision->zone->order, .number = events->count};
	if (decision_line_put(&line->text, &message, events->policy, &position))
		events->count++;
	else
		weir_text_deinit(&line->text);
	weir_text_deinit(&text);
}

static int compare_lines(const void *left, const void *right)
{
	const struct event_line *a = left, *b = right;
	if (a->zone != b->zone)
		return a->zone < b->zone ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* Of one zone a record that stands for several may have several, which stay in their order. */
static void sort_newest(struct decision_events *events)
{
	if (events->count > events->sorted)
		qsort(events->lines + events->sorted, events->count - events->sorted, sizeof *events->lines, compare_lines);
	events->sorted = events->count;
}

static void take_first(struct decision_events *events)
{
	weir_text_deinit(&events->line);
	events->line = events->lines[events->first++].text;
	if (events->first == events->count)
		events->first = events->count = events->sorted = 0;
}

bool decision_events_next(struct decision_events *events, struct weir_record *record)
{
	sort_newest(events);
	while (events->first < events->count) {
		take_first(events);
		uint32_t length = (uint32_t)events->line.length - 1; /* without its newline */
		if (format_parse(events->format, events->line.at, length, record) != FORMAT_OK)
			continue;
		record->source = WEIR_SOURCE_DECISIONS;
		record->by_name = true;
		return true;
	}
	return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame names each key once and its zone sets once, so a key is hashed once a
 * frame; for each of an event's zones one row is counted.
 */
#include "archiver/ledger/ledger.h"

#include "common/base/alloc.h"
#include "common/bytes/bits.h"

#include <stdlib.h>

enum {
	EXTRA_VERSION = 3,
	/* What each version added: 1 two numbers, 2 two marks, 3 a number and a mark of decisions in shadow mode. */
	EXTRA_BYTES_1 = 1 + 2 * 8,
	EXTRA_BYTES_2 = EXTRA_BYTES_1 + 2 * WEIR_MARK_STORED_BYTES,
	EXTRA_BYTES_3 = EXTRA_BYTES_2 + 8 + WEIR_MARK_STORED_BYTES,
	DECISION_TEXT_BYTES = 256, /* of one decision, about */
};

struct ledger *ledger_new(uint32_t partition)
{
	struct ledger *ledger = weir_alloc(1, sizeof *ledger);
	ledger->partition = partition;
	ledger->fresh = true;
	ledger->counts = counts_new();
	(void)weir_text_reserve(&ledger->names, 1); /* so that an event without bytes has an address, too */
	return ledger;
}

static void empty(struct ledger *ledger)
{
	for (size_t i = 0; i < ledger->decision_count; i++)
		decision_row_deinit(&ledger->decisions[i]);
	ledger->decision_count = ledger->event_count = 0;
	if (ledger->decision_room * sizeof *ledger->decisions > COUNTS_KEPT_BYTES) {
		free(ledger->decisions);
		ledger->decisions = NULL;
		ledger->decision_room = 0;
	}
	if (ledger->event_room * sizeof *ledger->events > COUNTS_KEPT_BYTES) {
		free(ledger->events);
		ledger->events = NULL;
		ledger->event_room = 0;
	}
	weir_text_clear_to(&ledger->names, COUNTS_KEPT_BYTES);
	(void)weir_text_reserve(&ledger->names, 1); /* so that an event without bytes has an address, too */
}

void ledger_free(struct ledger *ledger)
{
	if (ledger == NULL)
		return;
	empty(ledger);
	counts_free(ledger->counts);
	free(ledger->decisions);
	free(ledger->events);
	weir_text_deinit(&ledger->names);
	free(ledger);
}

/*
 * ---- its state: version, decisions' next offset, events' next number, the marks of judged and of decisions; next
 * offset and mark of decisions in shadow mode ----
 */

static uint64_t number_at(struct weir_span extra, int at)
{
	return weir_bytes_get((const uint8_t *)extra.at + at, 8);
}

static bool is_extra(struct weir_span extra)
{
	static const uint32_t lengths[] = {0, EXTRA_BYTES_1, EXTRA_BYTES_2, EXTRA_BYTES_3};
	uint8_t version = extra.length > 0 ? (uint8_t)extra.at[0] : 0;
	return version > 0 && version <= EXTRA_VERSION && extra.length == lengths[version];
}

bool ledger_next_number(struct weir_span extra, uint64_t *number)
{
	if (!is_extra(extra))
		return false;
	*number = number_at(extra, 9);
	return true;
}

enum weir_status ledger_restore(struct ledger *ledger, const struct weir_partition_state *state,
                                struct weir_error *error)
{
	struct ledger_position *at = ledger->positions;
	ledger->epoch = state->epoch;
	ledger->checkpoint = state->checkpoint;
	ledger->clock_ms = state->clock_ms;
	ledger->policy_version = state->policy_version;
	ledger->fresh = state->checkpoint == 0;
	if (ledger->fresh)
		return WEIR_OK;
	if (state->extra.length > 0 && (uint8_t)state->extra.at[0] > EXTRA_VERSION)
		return weir_fail(error, WEIR_NEWER, "partition %u was archived by a newer version of weir", ledger->partition);
	if (!is_extra(state->extra))
		return weir_fail(error, WEIR_INVALID, "partition %u: the archiver's state is damaged", ledger->partition);
	at[WEIR_TOPIC_JUDGED].next = state->next_offset;
	at[WEIR_TOPIC_DECISIONS].next = number_at(state->extra, 1);
	ledger->events_next = number_at(state->extra, 9);
	if (state->extra.length >= EXTRA_BYTES_2) {
		at[WEIR_TOPIC_JUDGED].last = weir_mark_read(state->extra.at + EXTRA_BYTES_1);
		at[WEIR_TOPIC_DECISIONS].last = weir_mark_read(state->extra.at + EXTRA_BYTES_1 + WEIR_MARK_STORED_BYTES);
	}
	/* Before, decisions in shadow mode were not archived: they are from the topic's first on. */
	if (state->extra.length >= EXTRA_BYTES_3) {
		at[WEIR_TOPIC_SHADOW].next = number_at(state->extra, EXTRA_BYTES_2);
		at[WEIR_TOPIC_SHADOW].last = weir_mark_read(state->extra.at + EXTRA_BYTES_2 + 8);
	}
	return WEIR_OK;
}

void ledger_state(const struct ledger *ledger, struct weir_partition_state *state, struct weir_text *extra)
{
	const struct ledger_position *at = ledger->positions;
	weir_text_clear(extra);
	uint8_t head[EXTRA_BYTES_1] = {EXTRA_VERSION}, shadow[8];
	weir_bytes_put(head + 1, 8, at[WEIR_TOPIC_DECISIONS].next);
	weir_bytes_put(head + 9, 8, ledger->events_next);
	weir_bytes_put(shadow, 8, at[WEIR_TOPIC_SHADOW].next);
	weir_text_append(extra, head, sizeof head);
	weir_mark_append(extra, &at[WEIR_TOPIC_JUDGED].last);
	weir_mark_append(extra, &at[WEIR_TOPIC_DECISIONS].last);
	weir_text_append(extra, shadow, sizeof shadow);
	weir_mark_append(extra, &at[WEIR_TOPIC_SHADOW].last);
	*state = (struct weir_partition_state){.partition = ledger->partition,
	                                       .epoch = ledger->epoch,
	                                       .checkpoint = ledger->checkpoint + 1,
	                                       .next_offset = at[WEIR_TOPIC_JUDGED].next,
	                                       .clock_ms = ledger->clock_ms,
	                                       .policy_version = ledger->policy_version,
	                                       .extra = {extra->at, (uint32_t)extra->length}};
}

void ledger_stored(struct ledger *ledger)
{
	empty(ledger);
	counts_clear(ledger->counts);
	ledger->checkpoint++;
	ledger->changed = ledger->fresh = false;
}

/* ---- what comes ---- */

static void keep_event(struct ledger *ledger, const struct weir_frame *frame, const struct weir_frame_event *event,
                       const struct history *history, struct weir_span fields, struct weir_archive_id id, bool blocked)
{
	struct weir_span bucket = frame->keys[event->key];
	if (ledger->event_count == ledger->event_room) {
		ledger->event_room = ledger->event_room > 0 ? ledger->event_room * 2 : 256;
		ledger->events = weir_realloc(ledger->events, ledger->event_room, sizeof *ledger->events);
	}
	ledger->events[ledger->event_count++] = (struct ledger_event){
		.row = {.id = id,
	            .zone = history->zone,
	            .bucket = {NULL, bucket.length},
	            .at_ms = event->time_ms,
	            .blocked = blocked},
		.bucket_at = ledger->names.length,
	};
	weir_text_append(&ledger->names, bucket.at, bucket.length);
	size_t before = ledger->names.length;
	weir_fields_json(&ledger->names, fields, history->fields, history->field_count);
	ledger->events[ledger->event_count - 1].row.fields.length = (uint32_t)(ledger->names.length - before);
}

void ledger_count(struct ledger *ledger, const struct weir_frame *frame, const struct histories *histories,
                  bool by_event)
{
	bool keeps = histories_any(histories, frame->policy_version);
	uint64_t *hashes = weir_alloc(frame->key_count + 1, sizeof *hashes);
	for (uint32_t i = 0; i < frame->key_count; i++)
		hashes[i] = counts_hash(ledger->counts, frame->keys[i]);
	uint32_t pair = 0, run = 0;
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
		int64_t hour_ms = weir_begin_of(event->time_ms, WEIR_HOUR_MS);
		struct weir_span fields = weir_frame_fields(frame, i, &run);
		for (uint32_t z = 0; z < set->count; z++, pair++) {
			unsigned bits = weir_verdict_of(frame->verdicts, pair);
			if ((bits & WEIR_VERDICT_NONE) != 0)
				continue;
			bool blocked = (bits & WEIR_VERDICT_BLOCK) != 0;
			uint32_t zone = set->zones[z].id;
			counts_add(ledger->counts, zone, frame->keys[event->key], hashes[event->key], hour_ms, !blocked, blocked,
			           (bits & WEIR_VERDICT_LATE) != 0);
			const struct history *history = keeps ? histories_find(histories, frame->policy_version, zone) : NULL;
			struct weir_archive_id id = {ledger->partition, frame->judged_offset + (by_event ? i : 0),
			                             by_event ? z : pair};
			if (history != NULL)
				keep_event(ledger, frame, event, history, fields, id, blocked);
			ledger->event_total++;
		}
	}
	free(hashes);
	ledger->changed = true;
}

bool ledger_judged(struct ledger *ledger, uint64_t offset, const struct weir_frame *frame,
                   const struct histories *histories)
{
	ledger_skip(ledger, WEIR_TOPIC_JUDGED, offset);
	if (frame->judged_offset < ledger->events_next)
		return false;
	ledger_count(ledger, frame, histories, false);
	ledger->events_next = frame->judged_offset + 1;
	ledger->policy_version = frame->policy_version;
	if (frame->sending_time_ms > ledger->clock_ms)
		ledger->clock_ms = frame->sending_time_ms;
	return true;
}

void ledger_decision(struct ledger *ledger, enum weir_topic topic, uint64_t offset, struct decision_row *row)
{
	ledger_skip(ledger, topic, offset);
	if (ledger->decision_count == ledger->decision_room) {
		ledger->decision_room = ledger->decision_room > 0 ? ledger->decision_room * 2 : 64;
		ledger->decisions = weir_realloc(ledger->decisions, ledger->decision_room, sizeof *ledger->decisions);
	}
	ledger->decisions[ledger->decision_count++] = *row;
	*row = (struct decision_row){.texts = NULL};
}

void ledger_skip(struct ledger *ledger, enum weir_topic topic, uint64_t offset)
{
	ledger->positions[topic].next = offset + 1;
	ledger->changed = true;
}

void ledger_mark(struct ledger *ledger, const struct weir_message *message)
{
	ledger->positions[message->topic].last = weir_mark_of(message->payload, message->offset, message->appended_ms);
}

size_t ledger_size(const struct ledger *ledger)
{
	return counts_size(ledger->counts) + ledger->decision_count + ledger->event_count;
}

size_t ledger_bytes(const struct ledger *ledger)
{
	return counts_bytes(ledger->counts) + ledger->decision_count * (sizeof *ledger->decisions + DECISION_TEXT_BYTES) +
	       ledger->event_count * sizeof *ledger->events + ledger->names.length;
}

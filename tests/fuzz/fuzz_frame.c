/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a frame: it is refused, or everything in it is in range and
 * written again it is the same frame. The checksum is put right first, or no
 * change would come further than to it.
 */
#include "common/frame/frame.h"
#include "common/frame/frame_format.h"
#include "common/policy/policy.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_ranges(const struct weir_frame *frame)
{
	uint64_t pairs = 0;
	for (uint32_t i = 0; i < frame->key_count; i++)
		assert(frame->keys[i].length <= WEIR_KEY_MAX_BYTES);
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		assert(event->key < frame->key_count && event->zone_set < frame->zone_set_count);
		assert(event->time_ms >= 0 && event->time_ms < WEIR_TIME_END_MS);
		assert(event->cost >= 0 && event->cost <= WEIR_COST_MAX);
		assert(i == 0 || event->position >= event[-1].position);
		const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
		assert(set->count >= 1 && set->count <= WEIR_ZONE_SET_MAX);
		for (uint32_t k = 0; k < set->count; k++)
			assert(set->zones[k].id >= 1 && set->zones[k].id <= WEIR_ZONE_ID_MAX);
		pairs += set->count;
	}
	for (uint32_t i = 0; i < frame->run_count; i++) {
		const struct weir_frame_run *run = &frame->runs[i];
		assert(run->count > 0 && run->first + run->count <= frame->event_count);
		assert(i == 0 || run->first >= run[-1].first + run[-1].count);
		assert(run->fields.length <= WEIR_FIELDS_MAX_BYTES);
	}
	assert(pairs == frame->pair_count && pairs <= WEIR_FRAME_PAIRS_MAX);
}

static void check_same(const struct weir_frame *a, const struct weir_frame *b)
{
	assert(a->event_count == b->event_count && a->pair_count == b->pair_count);
	uint32_t mine = 0, its = 0;
	for (uint32_t i = 0; i < a->event_count; i++) {
		const struct weir_frame_event *x = &a->events[i], *y = &b->events[i];
		assert(x->time_ms == y->time_ms && x->cost == y->cost && x->position == y->position);
		assert(weir_span_equal(a->keys[x->key], b->keys[y->key]));
		struct weir_span one = weir_frame_fields(a, i, &mine), other = weir_frame_fields(b, i, &its);
		assert(one.length == other.length && (one.length == 0 || weir_span_equal(one, other)));
		const struct weir_frame_zone_set *s = &a->zone_sets[x->zone_set], *t = &b->zone_sets[y->zone_set];
		assert(s->count == t->count);
		for (uint32_t k = 0; k < s->count; k++)
			assert(s->zones[k].id == t->zones[k].id && s->zones[k].done == t->zones[k].done);
	}
}

static void write_again(const struct weir_frame *frame)
{
	struct weir_frame_writer *writer = weir_frame_writer_new();
	struct weir_frame_reader *reader = weir_frame_reader_new();
	struct weir_frame again;
	enum weir_status status = WEIR_OK;
	uint32_t run = 0;
	weir_frame_begin(writer, frame->source, frame->policy_version, 0,
	                 frame->event_count > 0 ? frame->events[0].position : 0);
	for (uint32_t i = 0; i < frame->event_count && status == WEIR_OK; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
		struct weir_span key = frame->keys[event->key];
		status = weir_frame_add(writer, key, weir_hash64(key.at, key.length), event->time_ms, event->position,
		                        event->cost, set->zones, set->count);
		struct weir_span fields = weir_frame_fields(frame, i, &run);
		if (status == WEIR_OK && fields.length > 0)
			status = weir_frame_add_fields(writer, fields);
	}
	if (status == WEIR_OK) { /* a frame close to its bound may not fit again, as bounds are kept with a margin */
		bool asked = frame->kind == WEIR_FRAME_CHECKS;
		struct weir_span message =
			asked ? weir_frame_finish_checks(writer, frame->sending_time_ms, frame->epoch, frame->verdicts,
		                                     frame->reservations, frame->reservation_count)
				  : weir_frame_finish(writer, frame->sending_time_ms);
		status = weir_frame_decode(reader, message, &again, NULL);
		assert(status == WEIR_OK);
		check_same(frame, &again);
		assert(again.epoch == frame->epoch && (!asked || again.kind == WEIR_FRAME_CHECKS));
		for (uint32_t pair = 0; asked && pair < frame->pair_count; pair++)
			assert(weir_verdict_of(again.verdicts, pair) == weir_verdict_of(frame->verdicts, pair));
	}
	weir_frame_writer_free(writer);
	weir_frame_reader_free(reader);
}

/* What was read can be judged, whichever kind it was of. */
static void judge(struct weir_span message, const struct weir_frame *frame)
{
	struct weir_frame_reader *reader = weir_frame_reader_new();
	struct weir_frame judged;
	uint8_t *verdicts = calloc(frame->pair_count / 2 + 1, 1);
	char *out = malloc((size_t)message.length + 8 + frame->pair_count / 2 + 1);
	size_t length = weir_frame_judged(message, 7, verdicts, frame->pair_count, out);
	enum weir_status status =
		weir_frame_decode(reader, (struct weir_span){.at = out, .length = (uint32_t)length}, &judged, NULL);
	assert(status == WEIR_OK && judged.kind == WEIR_FRAME_JUDGED && judged.judged_offset == 7);
	check_same(frame, &judged);
	free(verdicts);
	free(out);
	weir_frame_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_frame_reader *reader = weir_frame_reader_new();
	struct weir_frame frame;
	struct weir_error error;
	uint8_t *message = malloc(size > 0 ? size : 1);
	if (size > 0)
		memcpy(message, data, size);
	struct weir_span span = {.at = (const char *)message, .length = (uint32_t)size};
	if (size >= WEIR_FRAME_HEADER_BYTES && message[WEIR_FRAME_AT_VERSION] <= WEIR_FRAME_VERSION)
		weir_frame_seal(message, size, message[WEIR_FRAME_AT_VERSION], message[WEIR_FRAME_AT_KIND]);
	if (weir_frame_decode(reader, span, &frame, &error) == WEIR_OK &&
	    (weir_frame_is_of_events(&frame) || frame.kind == WEIR_FRAME_JUDGED)) {
		check_ranges(&frame);
		write_again(&frame);
		if (weir_frame_is_of_events(&frame))
			judge(span, &frame);
	}
	free(message);
	weir_frame_reader_free(reader);
	return 0;
}

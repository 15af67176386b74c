/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One partition, message by message: offsets, repeated positions, damaged and
 * newer messages, policies at their offsets, clocks that are ahead, and a cut.
 */
#include "common/base/alloc.h"
#include "common/frame/frame.h"
#include "limiter/lane/lane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ZONE_OF_THREE                                                       \
	"{\"zones\":[{\"id\":1,\"name\":\"site\",\"key\":[\"ip\"],\"limits\":[" \
	"{\"algorithm\":\"sliding_window\",\"rate\":3,\"window\":\"1m\"}]}]}"
#define ZONE_OF_ONE                                                         \
	"{\"zones\":[{\"id\":1,\"name\":\"site\",\"key\":[\"ip\"],\"limits\":[" \
	"{\"algorithm\":\"sliding_window\",\"rate\":1,\"window\":\"1m\"}]}]}"

#define START_MS INT64_C(1732173600000)

struct scene {
	struct policy_registry *registry;
	struct lane *lane;
	struct weir_frame_writer *writer;
	struct lane_result result;
	struct weir_error error;
	char *message; /* the last that was offered: a lane borrows it */
};

static const struct shard_options options = {.partition = 3, .seed = 7, .lateness_ms = 600000};

static void add_policy(struct scene *scene, uint64_t version, const char *text)
{
	assert_int_equal(policy_registry_add(scene->registry, version, weir_span_of(text), &scene->error), WEIR_OK);
}

static int set_up(void **state)
{
	struct scene *scene = weir_alloc(1, sizeof *scene);
	scene->registry = policy_registry_new();
	add_policy(scene, 1, ZONE_OF_THREE);
	scene->lane = lane_new(&options, scene->registry, 1);
	scene->writer = weir_frame_writer_new();
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	lane_free(scene->lane);
	policy_registry_free(scene->registry);
	weir_frame_writer_free(scene->writer);
	free(scene->message);
	free(scene);
	return 0;
}

/* Events of one key, a second apart. A position is that of the byte after a line, so the first one is 1. */
static struct weir_span events_at(struct scene *scene, int64_t time_ms, uint64_t first_position, uint32_t count,
                                  int64_t sent_ms)
{
	static const uint8_t source[WEIR_SOURCE_ID_BYTES] = "the only source";
	const struct weir_frame_zone zone = {.id = 1};
	weir_frame_begin(scene->writer, source, 1, time_ms, first_position + 1);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(weir_frame_add(scene->writer, weir_span_of("192.0.2.1"), 99, time_ms + 1000 * (int64_t)i,
		                                first_position + 1 + i, 1, &zone, 1),
		                 WEIR_OK);
	return weir_frame_finish(scene->writer, sent_ms);
}

static struct weir_span events(struct scene *scene, uint64_t first_position, uint32_t count, int64_t sent_ms)
{
	return events_at(scene, START_MS, first_position, count, sent_ms);
}

static struct weir_span control(struct scene *scene, enum weir_frame_kind kind, uint64_t version, const char *text)
{
	size_t length;
	free(scene->message);
	scene->message = weir_frame_control(kind, START_MS, version, weir_span_of(text), &length);
	return (struct weir_span){.at = scene->message, .length = (uint32_t)length};
}

static enum weir_status offer(struct scene *scene, struct weir_span message, uint64_t offset, int64_t appended_ms)
{
	return lane_offer(scene->lane, message, offset, appended_ms, &scene->result, &scene->error);
}

static void take_events(struct scene *scene, uint64_t offset, uint64_t first_position, uint32_t count)
{
	assert_int_equal(offer(scene, events(scene, first_position, count, START_MS), offset, 0), WEIR_OK);
}

static unsigned verdict(const struct scene *scene, uint32_t pair)
{
	return weir_verdict_of(scene->result.judged.verdicts, pair);
}

/* ---- cases ---- */

static void a_frame_is_judged_in_order_and_its_breach_decided_once(void **state)
{
	struct scene *scene = *state;
	take_events(scene, 0, 0, 5);
	assert_int_equal(lane_next_offset(scene->lane), 1);
	assert_int_equal(scene->result.judged.events_taken, 5);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(verdict(scene, i), 0);
	assert_int_equal(verdict(scene, 3), WEIR_VERDICT_BLOCK | WEIR_VERDICT_DECIDED);
	assert_int_equal(verdict(scene, 4), WEIR_VERDICT_BLOCK);
	assert_int_equal(scene->result.judged.decision_count, 1);
	assert_int_equal(scene->result.judged.decisions[0].at_ms, START_MS + 3000);
	assert_int_equal(scene->result.judged.decisions[0].until_ms, START_MS + 60000);
	assert_int_equal(scene->result.judged.decisions[0].count, 3);
}

static void a_message_below_the_next_offset_is_passed_over(void **state)
{
	struct scene *scene = *state;
	take_events(scene, 8, 0, 2);
	take_events(scene, 8, 2, 2);
	assert_null(scene->result.frame);
	assert_int_equal(lane_next_offset(scene->lane), 9);
	take_events(scene, 9, 2, 2);
	assert_int_equal(scene->result.judged.events_taken, 2);
}

static void positions_that_were_taken_are_dropped_whatever_frame_they_come_in(void **state)
{
	struct scene *scene = *state;
	take_events(scene, 0, 0, 2);
	take_events(scene, 1, 1, 2); /* position 1 again, and 2 */
	assert_int_equal(scene->result.judged.events_repeated, 1);
	assert_int_equal(scene->result.judged.events_taken, 1);
	assert_int_equal(verdict(scene, 0), WEIR_VERDICT_NONE);
	assert_int_equal(verdict(scene, 1), 0);
}

static void damaged_bytes_are_counted_and_the_partition_goes_on_behind_them(void **state)
{
	struct scene *scene = *state;
	assert_int_equal(offer(scene, weir_span_of("not a frame"), 0, 0), WEIR_INVALID);
	assert_int_equal(lane_next_offset(scene->lane), 1);
	struct weir_span good = events(scene, 0, 1, START_MS);
	char *bytes = weir_copy(good.at, good.length);
	bytes[good.length - 1] ^= 1;
	assert_int_equal(offer(scene, (struct weir_span){.at = bytes, .length = good.length}, 1, 0), WEIR_INVALID);
	free(bytes);
	assert_int_equal(lane_next_offset(scene->lane), 2);
	take_events(scene, 2, 0, 1);
	assert_int_equal(scene->result.judged.events_taken, 1);
}

static void nothing_is_taken_of_a_newer_message(void **state)
{
	struct scene *scene = *state;
	struct weir_span good = events(scene, 0, 1, START_MS);
	char *bytes = weir_copy(good.at, good.length);
	bytes[2] = WEIR_FRAME_VERSION + 1;
	assert_int_equal(offer(scene, (struct weir_span){.at = bytes, .length = good.length}, 0, 0), WEIR_NEWER);
	free(bytes);
	assert_int_equal(lane_next_offset(scene->lane), 0);
	take_events(scene, 0, 0, 1);
	assert_int_equal(scene->result.judged.events_taken, 1);
}

static void a_policy_holds_from_its_offset_on(void **state)
{
	struct scene *scene = *state;
	add_policy(scene, 2, ZONE_OF_ONE);
	take_events(scene, 0, 0, 2);
	assert_int_equal(scene->result.judged.decision_count, 0);
	assert_int_equal(offer(scene, control(scene, WEIR_FRAME_POLICY, 2, ZONE_OF_ONE), 1, 0), WEIR_OK);
	assert_int_equal(lane_policy_version(scene->lane), 2);
	assert_non_null(scene->result.change);
	take_events(scene, 2, 2, 2); /* a changed limit starts empty */
	assert_int_equal(verdict(scene, 0), 0);
	assert_int_equal(verdict(scene, 1), WEIR_VERDICT_BLOCK | WEIR_VERDICT_DECIDED);
}

static void a_policy_that_is_in_force_changes_nothing_when_it_comes_again(void **state)
{
	struct scene *scene = *state;
	take_events(scene, 0, 0, 3);
	assert_int_equal(offer(scene, control(scene, WEIR_FRAME_POLICY, 1, ZONE_OF_THREE), 1, 0), WEIR_OK);
	assert_int_equal(lane_policy_version(scene->lane), 1);
	assert_null(scene->result.change);
	take_events(scene, 2, 3, 1); /* the three still count */
	assert_int_equal(scene->result.judged.decision_count, 1);
}

/* A store that was restored from an older copy gave the number again: what no partition takes is not to be silent. */
static void other_zones_under_a_number_that_is_in_force_are_refused(void **state)
{
	struct scene *scene = *state;
	assert_int_equal(offer(scene, control(scene, WEIR_FRAME_POLICY, 1, ZONE_OF_ONE), 0, 0), WEIR_INVALID);
	assert_non_null(strstr(scene->error.text, "with other zones"));
	assert_int_equal(lane_policy_version(scene->lane), 1);
	assert_int_equal(lane_next_offset(scene->lane), 1);
	take_events(scene, 1, 0, 1);
}

static void a_policy_that_the_book_lacks_is_waited_for(void **state)
{
	struct scene *scene = *state;
	assert_int_equal(offer(scene, control(scene, WEIR_FRAME_POLICY, 2, ZONE_OF_ONE), 0, 0), WEIR_AGAIN);
	assert_true(lane_awaits_policy(scene->lane));
	uint32_t missing;
	lane_missing(scene->lane, &missing);
	assert_int_equal(missing, 0);
	assert_int_equal(lane_next_offset(scene->lane), 0);
	add_policy(scene, 2, ZONE_OF_ONE);
	assert_int_equal(lane_go_on(scene->lane, &scene->result, &scene->error), WEIR_OK);
	assert_int_equal(lane_policy_version(scene->lane), 2);
	assert_int_equal(lane_next_offset(scene->lane), 1);
}

static void a_sending_time_counts_as_at_most_five_seconds_after_the_log_took_it(void **state)
{
	struct scene *scene = *state;
	struct weir_partition_state cut = {0};
	struct weir_text extra = {0};
	int64_t latest_ms = START_MS + WEIR_FRAME_AHEAD_MOST_MS;
	assert_int_equal(offer(scene, events(scene, 0, 1, latest_ms), 0, START_MS), WEIR_OK);
	assert_int_equal(scene->result.ahead_ms, 0);
	assert_int_equal(offer(scene, events(scene, 1, 1, latest_ms + 1), 1, START_MS), WEIR_OK);
	assert_int_equal(scene->result.ahead_ms, 1);
	assert_int_equal(scene->result.at_ms, latest_ms);
	lane_state(scene->lane, &cut, &extra);
	assert_int_equal(cut.clock_ms, latest_ms);
	/* A log without times of its own believes the sender. */
	assert_int_equal(offer(scene, events(scene, 2, 1, latest_ms + 86400000), 2, 0), WEIR_OK);
	assert_int_equal(scene->result.ahead_ms, 0);
	weir_text_deinit(&extra);
}

/* Events that a collector's clock put into tomorrow would make all others of their keys late until then: none is counted. */
static void events_of_a_clock_that_is_ahead_are_of_their_arrival(void **state)
{
	enum { DAY_MS = 86400000 };
	struct scene *scene = *state;
	assert_int_equal(offer(scene, events_at(scene, START_MS + DAY_MS, 0, 1, START_MS + DAY_MS), 0, START_MS), WEIR_OK);
	assert_int_equal(scene->result.ahead_ms, DAY_MS - WEIR_FRAME_AHEAD_MOST_MS);
	assert_int_equal(scene->result.frame->events[0].time_ms, START_MS + WEIR_FRAME_AHEAD_MOST_MS);
	/* Of a frame that was sent at a time that can be, no event's time is doubted: its collector has bounded it. */
	assert_int_equal(offer(scene, events_at(scene, START_MS + 6000, 1, 1, START_MS), 1, START_MS), WEIR_OK);
	assert_int_equal(scene->result.frame->events[0].time_ms, START_MS + 6000);
	assert_int_equal(offer(scene, events(scene, 2, 2, START_MS + 2000), 2, START_MS + 2000), WEIR_OK);
	assert_int_equal(verdict(scene, 0), 0);
	assert_int_equal(verdict(scene, 1), WEIR_VERDICT_BLOCK | WEIR_VERDICT_DECIDED);
}

static void a_cut_brings_back_offset_policy_clock_and_positions(void **state)
{
	struct scene *scene = *state;
	add_policy(scene, 2, ZONE_OF_ONE);
	take_events(scene, 0, 0, 2);
	assert_int_equal(offer(scene, control(scene, WEIR_FRAME_POLICY, 2, ZONE_OF_ONE), 1, 0), WEIR_OK);
	struct weir_partition_state cut = {.checkpoint = 1};
	struct weir_text extra = {0};
	lane_state(scene->lane, &cut, &extra);
	assert_int_equal(cut.partition, options.partition);
	lane_free(scene->lane);
	scene->lane = lane_new(&options, scene->registry, 1);
	assert_int_equal(lane_restore(scene->lane, &cut, &scene->error), WEIR_OK);
	assert_int_equal(lane_next_offset(scene->lane), 2);
	assert_int_equal(lane_policy_version(scene->lane), 2);
	take_events(scene, 2, 1, 2); /* position 1 was taken before the cut */
	assert_int_equal(scene->result.judged.events_repeated, 1);
	weir_text_deinit(&extra);
}

static void a_cut_that_is_cut_short_is_refused(void **state)
{
	struct scene *scene = *state;
	take_events(scene, 0, 0, 2);
	struct weir_partition_state cut = {.checkpoint = 1};
	struct weir_text extra = {0};
	lane_state(scene->lane, &cut, &extra);
	for (uint32_t length = 0; length < cut.extra.length; length += 1 + cut.extra.length / 40) {
		struct weir_partition_state part = cut;
		part.extra.length = length;
		struct lane *lane = lane_new(&options, scene->registry, 1);
		assert_int_equal(lane_restore(lane, &part, &scene->error), WEIR_INVALID);
		lane_free(lane);
	}
	weir_text_deinit(&extra);
}

/* The columns of a row are copies: what they say otherwise is damage, and none of it is believed. */
static void a_cut_whose_clock_or_policy_was_changed_is_refused(void **state)
{
	static const int64_t clocks_ms[] = {INT64_MIN, -1, 0, START_MS - 1, START_MS + 1, INT64_C(1) << 62, INT64_MAX};
	struct scene *scene = *state;
	add_policy(scene, 2, ZONE_OF_ONE);
	take_events(scene, 0, 0, 2);
	struct weir_partition_state cut = {.checkpoint = 1};
	struct weir_text extra = {0};
	lane_state(scene->lane, &cut, &extra);
	for (size_t i = 0; i < sizeof clocks_ms / sizeof *clocks_ms; i++) {
		struct weir_partition_state other = cut;
		other.clock_ms = clocks_ms[i];
		struct lane *lane = lane_new(&options, scene->registry, 1);
		assert_int_equal(lane_restore(lane, &other, &scene->error), WEIR_INVALID);
		assert_non_null(strstr(scene->error.text, "the saved state of partition 3 is damaged: its clock is "));
		lane_free(lane);
	}
	struct weir_partition_state other = cut;
	other.policy_version = 2;
	struct lane *lane = lane_new(&options, scene->registry, 1);
	assert_int_equal(lane_restore(lane, &other, &scene->error), WEIR_INVALID);
	assert_non_null(strstr(scene->error.text, "its policy is 2 in one place and 1 in the other"));
	lane_free(lane);
	weir_text_deinit(&extra);
}

/* What weir 0.1 stored: the length of the shard's part comes first. */
static void a_cut_without_a_place_is_of_the_topics_first_life(void **state)
{
	enum { PLACE_BYTES = 4 + 8 + 4 * 8 };
	struct scene *scene = *state;
	take_events(scene, 0, 0, 2);
	struct weir_partition_state cut = {.checkpoint = 1};
	struct weir_text extra = {0};
	lane_state(scene->lane, &cut, &extra);
	cut.extra.at += PLACE_BYTES;
	cut.extra.length -= PLACE_BYTES;
	lane_free(scene->lane);
	scene->lane = lane_new(&options, scene->registry, 1);
	assert_int_equal(lane_restore(scene->lane, &cut, &scene->error), WEIR_OK);
	assert_int_equal(lane_place(scene->lane)->base, 0);
	assert_false(weir_mark_is_set(&lane_place(scene->lane)->last));
	take_events(scene, 1, 2, 2);
	assert_int_equal(scene->result.number, 1);
	assert_true(weir_mark_is_set(&lane_place(scene->lane)->last));
	weir_text_deinit(&extra);
}

static void records_of_a_further_life_have_numbers_of_their_own(void **state)
{
	struct scene *scene = *state;
	take_events(scene, 0, 0, 2);
	struct weir_partition_state cut = {.checkpoint = 1};
	struct weir_text before = {0}, extra = {0};
	struct lane_place place;
	lane_state(scene->lane, &cut, &before);
	struct weir_span rest = cut.extra;
	assert_int_equal(lane_place_read(&rest, &place, &scene->error), WEIR_OK);
	assert_int_equal(place.last.offset, 0);
	place.base = lane_place_next_base(place.base + cut.next_offset);
	assert_int_equal(place.base, UINT64_C(10000000000));
	assert_int_equal(lane_place_next_base(UINT64_C(10000000535)), UINT64_C(20000000000));
	lane_place_write(&place, &extra);
	weir_text_append(&extra, rest.at, rest.length);
	cut.extra = (struct weir_span){.at = extra.at, .length = (uint32_t)extra.length};
	cut.next_offset = 0;
	lane_free(scene->lane);
	scene->lane = lane_new(&options, scene->registry, 1);
	assert_int_equal(lane_restore(scene->lane, &cut, &scene->error), WEIR_OK);
	take_events(scene, 0, 2, 5);
	assert_int_equal(scene->result.offset, 0);
	assert_int_equal(scene->result.number, UINT64_C(10000000000));
	assert_int_equal(scene->result.judged.decision_count, 1);
	assert_int_equal(scene->result.judged.decisions[0].id_offset, UINT64_C(10000000000));
	extra.at[4] = 9;
	assert_int_equal(lane_restore(scene->lane, &cut, &scene->error), WEIR_NEWER);
	weir_text_deinit(&before);
	weir_text_deinit(&extra);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_frame_is_judged_in_order_and_its_breach_decided_once),
		CASE(a_message_below_the_next_offset_is_passed_over),
		CASE(positions_that_were_taken_are_dropped_whatever_frame_they_come_in),
		CASE(damaged_bytes_are_counted_and_the_partition_goes_on_behind_them),
		CASE(nothing_is_taken_of_a_newer_message),
		CASE(a_policy_holds_from_its_offset_on),
		CASE(a_policy_that_is_in_force_changes_nothing_when_it_comes_again),
		CASE(other_zones_under_a_number_that_is_in_force_are_refused),
		CASE(a_policy_that_the_book_lacks_is_waited_for),
		CASE(a_sending_time_counts_as_at_most_five_seconds_after_the_log_took_it),
		CASE(events_of_a_clock_that_is_ahead_are_of_their_arrival),
		CASE(a_cut_brings_back_offset_policy_clock_and_positions),
		CASE(a_cut_that_is_cut_short_is_refused),
		CASE(a_cut_whose_clock_or_policy_was_changed_is_refused),
		CASE(a_cut_without_a_place_is_of_the_topics_first_life),
		CASE(records_of_a_further_life_have_numbers_of_their_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's packets: how many are under way, and where. */
#include "limiter/worker/answering.h"

#include "common/base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { CARRIER = 1, CARRIERS = 3 /* places */ };

struct scene {
	struct answering answering;
	struct worker_core *core;
	struct mail *mail;
};

static int set_up(void **state)
{
	struct scene *scene = weir_alloc(1, sizeof *scene);
	scene->core = weir_alloc(1, sizeof *scene->core);
	scene->mail = mail_new(CARRIER + CARRIERS);
	answering_init(&scene->answering, scene->core, scene->mail);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	answering_deinit(&scene->answering);
	mail_free(scene->mail);
	free(scene->core);
	free(scene);
	return 0;
}

/* Sends to a place for as long as it may. @return how many */
static uint32_t fill(struct scene *scene, uint32_t place, uint32_t most)
{
	uint32_t sent = 0;
	for (; sent < most && answering_may_send_elsewhere(&scene->answering, place); sent++) {
		struct mail_packet *packet = answering_packet(&scene->answering, 0);
		assert_non_null(packet);
		answering_send_elsewhere(&scene->answering, CARRIER + place, place, packet);
	}
	return sent;
}

static void bring_back(struct scene *scene, uint32_t place)
{
	struct mail_packet *packet = mail_take(scene->mail, CARRIER + place), *next;
	for (; packet != NULL; packet = next) {
		next = packet->next;
		answering_take_back(&scene->answering, packet);
	}
}

static void who_is_silent_leaves_room_to_the_others(void **state)
{
	struct scene *scene = *state;
	for (int round = 0; round < 3; round++) {
		assert_int_equal(fill(scene, 0, 1000), ANSWER_ELSEWHERE_PACKETS / 2); /* it answers nobody */
		assert_int_equal(fill(scene, 1, 1000), ANSWER_ELSEWHERE_PACKETS / 4); /* nor does this one */
		for (int turn = 0; turn < 100; turn++) {
			assert_int_equal(fill(scene, 2, 8), 8);
			bring_back(scene, 2);
		}
		bring_back(scene, 0);
		bring_back(scene, 1);
		assert_int_equal(scene->answering.elsewhere[0], 0);
	}
}

/* What waits for a log that stalls takes nothing from what waits for nothing. */
static void durable_packets_leave_room_to_the_others(void **state)
{
	struct scene *scene = *state;
	uint32_t sent = 0;
	for (uint32_t way = OWNERS_PLACES_MAX; way < OWNERS_INBOXES; way++)
		for (; answering_may_send_elsewhere(&scene->answering, way); sent++)
			answering_send_elsewhere(&scene->answering, CARRIER, way, answering_packet(&scene->answering, 0));
	assert_in_range(sent, ANSWER_DURABLE_PACKETS / 2, ANSWER_DURABLE_PACKETS);
	assert_int_equal(fill(scene, 0, 1000), ANSWER_ELSEWHERE_PACKETS / 2);
	bring_back(scene, 0);
	assert_int_equal(scene->answering.elsewhere[0] + scene->answering.elsewhere[1], 0);
}

static void the_threads_have_their_own(void **state)
{
	struct scene *scene = *state;
	uint32_t sent = 0;
	for (uint32_t place = 0; place < CARRIERS; place++)
		sent += fill(scene, place, 1000);
	assert_true(sent <= ANSWER_ELSEWHERE_PACKETS);
	for (; sent < MAIL_PACKETS_MAX; sent++) {
		struct mail_packet *packet = answering_packet(&scene->answering, 0);
		assert_non_null(packet);
		answering_send(&scene->answering, 0, packet);
	}
	assert_null(answering_packet(&scene->answering, 0));
}

static uint64_t told[4]; /* tickets */
static uint32_t told_count;

static void be_answered(void *context, const struct check_answer *answer)
{
	(void)context;
	told[told_count++] = answer->ticket;
}

/* What has been told is not told again, whatever is still awaited in the same packet. */
static void each_ask_is_answered_once(void **state)
{
	static const int64_t until_ms[] = {500, 1200, 500, 1200};
	struct scene *scene = *state;
	struct mail_packet *packet = answering_packet(&scene->answering, 0);
	scene->answering.surface.answered = be_answered;
	for (uint32_t i = 0; i < 4; i++) {
		const struct check_ask ask = {.zone = weir_span_of("z"), .key = weir_span_of("k"), .ticket = i};
		assert_true(answering_add(packet, &ask, until_ms[i]));
	}
	answering_send_elsewhere(&scene->answering, CARRIER, 0, packet);
	answering_expire(&scene->answering, 499);
	assert_int_equal(told_count, 0);
	for (int64_t now_ms = 500; now_ms < 1200; now_ms += 100)
		answering_expire(&scene->answering, now_ms);
	assert_int_equal(told_count, 2);
	for (uint32_t i = 0; i < 4; i++)
		packet->answers[i].ticket = i;
	bring_back(scene, 0);
	assert_int_equal(told_count, 4);
	assert_true(told[0] == 0 && told[1] == 2 && told[2] == 1 && told[3] == 3);
	answering_expire(&scene->answering, 2000);
	assert_int_equal(told_count, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_is_silent_leaves_room_to_the_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(durable_packets_leave_room_to_the_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_threads_have_their_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_ask_is_answered_once, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

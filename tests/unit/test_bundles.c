/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks that count all or none, against a judge that counts in plain numbers: keys with a limit, room for so many, and answers that come
 * at once, later or not at all.
 */
#include "limiter/worker/bundles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { KEYS = 6, LIMIT = 8, LATER_MOST = 64, FIRST_TICKET = 100, WALL_MS = 7, STEADY_US = 3 };

struct judge {
	struct bundles bundles;
	int64_t counted[KEYS], blocked[KEYS];
	uint32_t room; /* checks that may still be counted */
	bool here;     /* all keys are this worker's */
	bool later;    /* where they are not, answers come later, but for those of looks that wait for nothing */
	bool durable;  /* answers to what counts come later */
	bool tries;    /* what is asked counts only if it passes */
	int refused;   /* a key that is not answered; -1: none */
	int uncounted; /* likewise, but it is looked at */
	int trial;     /* a key whose zone is on trial; -1: none */
	int parked;    /* a key that waits for room where it counts, and had it where it was looked at; -1: none */
	struct check_answer waiting[LATER_MOST], given[CHECK_BUNDLE_MAX];
	uint32_t waiting_count, given_count, open, reserved;
	unsigned seed;
	bool stepped; /* what was asked first is answered, and what comes behind it is asked later */
};

static int key_of(const struct check_ask *ask)
{
	return ask->key.at[0] - 'a';
}

static struct check_answer judge_one(struct judge *judge, const struct check_ask *ask)
{
	int key = key_of(ask);
	struct check_answer answer = {.outcome = CHECK_UNAVAILABLE, .why = CHECK_WHY_FULL, .ticket = ask->ticket};
	bool peek = check_is_peek(ask);
	if (ask->kind == CHECK_SETTLES) {
		judge->counted[key] += ask->cost - ask->reservation[0];
		judge->open--;
		answer.outcome = CHECK_SETTLED;
		return answer;
	}
	if (key == judge->refused || (peek ? ask->beside : 1) > judge->room)
		return answer;
	answer.outcome = judge->counted[key] + ask->cost > LIMIT ? CHECK_BLOCKED : CHECK_PASSED;
	answer.why = CHECK_WHY_NONE;
	if (peek)
		return answer;
	if (key == judge->uncounted)
		return (struct check_answer){
			.outcome = CHECK_UNAVAILABLE, .why = CHECK_WHY_UNACKNOWLEDGED, .ticket = ask->ticket};
	judge->room--;
	if (answer.outcome == CHECK_BLOCKED) {
		judge->blocked[key] += !ask->tries;
		return answer;
	}
	judge->counted[key] += ask->cost;
	answer.reserved = ask->kind == CHECK_RESERVES;
	judge->open += answer.reserved;
	judge->reserved += answer.reserved;
	answer.reservation[0] = (uint8_t)ask->cost;
	return answer;
}

static bool comes_later(const struct judge *judge, const struct check_ask *ask, const struct check_answer *answer)
{
	if (ask->beside > 0 || ask->kind == CHECK_SETTLES)
		return false;
	bool counts = answer->outcome == CHECK_PASSED || (answer->outcome == CHECK_BLOCKED && !ask->tries);
	bool waits = ask->durable || key_of(ask) == judge->parked;
	return (judge->later && !judge->here) || (waits && counts && !check_is_peek(ask));
}

static void judge_ask(void *context, const struct check_ask *asks, uint32_t count, struct check_time now, bool counted,
                      struct check_answer *answers)
{
	struct judge *judge = context;
	(void)counted;
	assert_true(now.wall_ms == WALL_MS &&
	            (now.steady_us == STEADY_US || judge->stepped)); /* of all that it asks together */
	for (uint32_t i = 0; i < count; i++) {
		struct check_answer answer = judge_one(judge, &asks[i]);
		answers[i] = answer;
		if (!comes_later(judge, &asks[i], &answer))
			continue;
		assert_true(judge->waiting_count < LATER_MOST);
		judge->waiting[judge->waiting_count++] = answer;
		answers[i] = (struct check_answer){.outcome = CHECK_LATER, .ticket = asks[i].ticket};
	}
}

static bool judge_is_here(void *context, const struct check_ask *ask)
{
	(void)ask;
	return ((struct judge *)context)->here;
}

static void judge_answered(void *context, const struct check_answer *answer)
{
	struct judge *judge = context;
	judge->given[judge->given_count++] = *answer;
}

/* An answer that came later: to a part of a bundle, or to what a caller asked. */
static void take(struct judge *judge, const struct check_answer *answer)
{
	if (answer->ticket & CHECK_TICKET_OF_BUNDLE) {
		bundles_take(&judge->bundles, answer);
		judge->stepped = true;
		bundles_step(&judge->bundles, (struct check_time){.wall_ms = WALL_MS, .steady_us = STEADY_US + 1});
		return;
	}
	uint32_t i = (uint32_t)answer->ticket - FIRST_TICKET;
	assert_int_equal(judge->given[i].outcome, CHECK_LATER);
	judge->given[i] = *answer;
}

static bool all_are_answered(const struct judge *judge, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (judge->given[i].outcome == CHECK_LATER)
			return false;
	return true;
}

static struct judge judge_new(void)
{
	return (struct judge){
		.room = 1000, .here = true, .refused = -1, .uncounted = -1, .parked = -1, .trial = -1, .seed = 1};
}

/* Asks one bundle of keys, at these costs, and waits for its answers. */
static void ask(struct judge *judge, const char *keys, const int64_t *costs)
{
	struct check_ask asks[CHECK_BUNDLE_MAX] = {{.cost = 0}};
	uint32_t count = (uint32_t)strlen(keys);
	judge->bundles.context = judge;
	judge->bundles.ask = judge_ask;
	judge->bundles.is_here = judge_is_here;
	judge->bundles.answered = judge_answered;
	for (uint32_t i = 0; i < count; i++)
		asks[i] = (struct check_ask){.zone = weir_span_of("z"),
		                             .key = {.at = &keys[i], .length = 1},
		                             .cost = costs != NULL ? costs[i] : 1,
		                             .durable = judge->durable,
		                             .tries = judge->tries,
		                             .shadow = key_of(&(struct check_ask){.key.at = &keys[i]}) == judge->trial,
		                             .bundle = 1,
		                             .ticket = FIRST_TICKET + i};
	judge->given_count = 0;
	judge->stepped = false;
	bundles_ask(&judge->bundles, asks, count, (struct check_time){.wall_ms = WALL_MS, .steady_us = STEADY_US},
	            judge->given);
	while (judge->waiting_count > 0) { /* those of a step, and then of the next */
		struct check_answer answer = judge->waiting[--judge->waiting_count];
		take(judge, &answer);
	}
	assert_true(all_are_answered(judge, count));
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(judge->given[i].ticket, FIRST_TICKET + i);
}

static void where_one_has_no_room_none_counts(void **state)
{
	struct judge judge = judge_new();
	(void)state;
	judge.room = 3;
	ask(&judge, "abcd", NULL);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(judge.given[i].outcome, CHECK_UNAVAILABLE);
		assert_int_equal(judge.counted[i], 0);
	}
	assert_int_equal(judge.open, 0);
	judge.room = 3;
	ask(&judge, "abc", NULL);
	assert_int_equal(judge.counted[0] + judge.counted[1] + judge.counted[2], 3);
	assert_int_equal(judge.room, 0);
	bundles_deinit(&judge.bundles);
}

/* Whoever looked was told that all would pass, or be blocked: who is refused then is the answer of all. */
static void a_refusal_is_the_answer_of_all(void **state)
{
	(void)state;
	for (int blocked = 0; blocked < 2; blocked++) {
		struct judge judge = judge_new();
		judge.counted[0] = judge.counted[1] = blocked ? LIMIT : 0;
		judge.uncounted = 1;
		ask(&judge, "abc", NULL);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(judge.given[i].outcome, CHECK_UNAVAILABLE);
			assert_int_equal(judge.given[i].why, CHECK_WHY_UNACKNOWLEDGED);
		}
		bundles_deinit(&judge.bundles);
	}
}

/* Where a zone is on trial, it passes, whether it can be judged or not, and the others count without it. */
static void one_on_trial_refuses_the_others_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		struct judge judge = judge_new();
		judge.here = (i & 1) != 0;
		judge.later = (i & 2) != 0;
		judge.trial = 1;
		*((i & 4) != 0 ? &judge.refused : &judge.uncounted) = 1;
		ask(&judge, "abc", NULL);
		for (int key = 0; key < 3; key++) {
			assert_int_equal(judge.given[key].outcome, CHECK_PASSED);
			assert_int_equal(judge.counted[key], key != 1);
		}
		judge.counted[0] = LIMIT;
		ask(&judge, "abc", NULL);
		assert_int_equal(judge.given[0].outcome, CHECK_BLOCKED);
		assert_int_equal(judge.blocked[0], 1);
		assert_int_equal(judge.counted[2], 1);
		bundles_deinit(&judge.bundles);
	}
}

/* What a bundle has to come to, by the counts before it. */
static void compare(const struct judge *before, const struct judge *judge, const char *keys, const int64_t *costs)
{
	bool refused = false, blocked = false;
	for (uint32_t i = 0; keys[i] != '\0'; i++) {
		int key = keys[i] - 'a';
		int64_t wanted = before->counted[key]; /* with those of the key before it */
		for (uint32_t j = 0; j <= i; j++)
			wanted += keys[j] == keys[i] ? costs[j] : 0;
		refused |= key == before->refused;
		blocked |= wanted > LIMIT;
	}
	for (int key = 0; key < KEYS; key++) {
		int64_t cost = 0;
		for (uint32_t i = 0; keys[i] != '\0'; i++)
			cost += keys[i] - 'a' == key ? costs[i] : 0;
		assert_int_equal(judge->counted[key], before->counted[key] + (refused || blocked ? 0 : cost));
		/* Who is not over his limit is not blocked by others' asks, and who is, once. */
		bool over = cost > 0 && before->counted[key] + cost > LIMIT;
		assert_int_equal(judge->blocked[key], before->blocked[key] + (!refused && over && !judge->tries));
	}
	assert_true(judge->reserved == before->reserved ||
	            (!refused && !blocked)); /* nothing was taken from others meanwhile */
	for (uint32_t i = 0, any = 0; keys[i] != '\0'; i++) {
		enum check_outcome outcome = judge->given[i].outcome;
		any |= outcome == CHECK_BLOCKED;
		assert_true(refused ? outcome == CHECK_UNAVAILABLE : blocked || outcome == CHECK_PASSED);
		assert_true(refused || keys[i + 1] != '\0' || any == blocked);
	}
}

static void all_count_or_none(void **state)
{
	(void)state;
	uint32_t passed = 0;
	for (unsigned seed = 1; seed <= 20000; seed++) {
		static struct judge judge;
		if (seed % 10 == 1) {
			bundles_deinit(&judge.bundles);
			judge = judge_new();
		}
		char keys[5] = "";
		int64_t costs[4];
		unsigned random = seed;
		int count = 1 + (int)(rand_r(&random) % 4);
		for (int i = 0; i < count; i++) {
			keys[i] = (char)('a' + rand_r(&random) % KEYS);
			costs[i] = 1 + rand_r(&random) % 3;
		}
		judge.here = rand_r(&random) % 2;
		judge.later = rand_r(&random) % 2;
		judge.tries = rand_r(&random) % 2;
		judge.durable = rand_r(&random) % 2;
		judge.parked = rand_r(&random) % 3 == 0 ? (int)(rand_r(&random) % KEYS) : -1;
		judge.refused = rand_r(&random) % 4 == 0 ? (int)(rand_r(&random) % KEYS) : -1;
		struct judge before = judge;
		ask(&judge, keys, costs);
		compare(&before, &judge, keys, costs);
		bool all = judge.given[0].outcome == CHECK_PASSED;
		for (int i = 1; i < count; i++)
			all &= judge.given[i].outcome == CHECK_PASSED;
		passed += all;
		judge.open = all ? 0 : judge.open; /* those that passed end at their estimates */
		assert_int_equal(judge.open, 0);
		if (seed == 20000)
			bundles_deinit(&judge.bundles);
	}
	assert_true(passed > 1000 && passed < 19000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_one_has_no_room_none_counts),
		cmocka_unit_test(a_refusal_is_the_answer_of_all),
		cmocka_unit_test(one_on_trial_refuses_the_others_nothing),
		cmocka_unit_test(all_count_or_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

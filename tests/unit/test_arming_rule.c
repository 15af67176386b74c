/* SPDX-License-Identifier: Apache-2.0 */
/* Days against a list that is searched for every row of days; zones that wait, through changes of their policy. */
#include "archiver/arming/arming_rule.h"
#include "archiver/arming/waiting.h"
#include "policy_fixture.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 20000, DAYS_MAX = 40 };

#define DAY(n) ((n)*INT64_C(86400000))

/* What arming_rule.h says, of a whole list, oldest first, in exact fractions. */
static bool may_enforce(const struct arming_day *days, int count, const struct weir_arming *terms, int64_t *first_ms)
{
	int row = 0, needed = (int)(terms->span_ms / DAY(1));
	for (int i = count - 1; i >= 0; i--) {
		if (days[i].keys * (uint64_t)terms->share_ppm < 1000000)
			continue; /* one key of so few would be more than the share */
		if (days[i].blocked * 1000000 >= days[i].keys * (uint64_t)terms->share_ppm)
			return false;
		*first_ms = days[i].begin_ms;
		if (++row == needed)
			return true;
	}
	return false;
}

static struct arming_verdict judge(const struct arming_day *days, int count, const struct weir_arming *terms)
{
	struct arming_verdict verdict = {0};
	bool more = true;
	for (int i = count - 1; i >= 0 && more; i--)
		more = arming_rule_add(&verdict, terms, &days[i]);
	return verdict;
}

static void test_random_days_are_judged_as_by_a_list(void **state)
{
	(void)state;
	int armed = 0;
	srand(7);
	for (int round = 0; round < ROUNDS; round++) {
		struct weir_arming terms = {.share_ppm = 1 + rand() % 100000, .span_ms = DAY(1 + rand() % 8)};
		struct arming_day days[DAYS_MAX];
		int count = rand() % DAYS_MAX;
		int64_t first_ms = -1;
		for (int i = 0; i < count; i++) {
			uint64_t least = (uint64_t)weir_arming_least_keys(&terms);
			uint64_t keys = rand() % 4 == 0 ? least - (uint64_t)(rand() % 2) : (uint64_t)rand() % (least * 30);
			uint64_t edge = keys * (uint64_t)terms.share_ppm / 1000000;
			days[i] = (struct arming_day){DAY(i), keys, rand() % 6 == 0 ? edge + (uint64_t)(rand() % 2) : edge / 3};
		}
		bool wanted = may_enforce(days, count, &terms, &first_ms);
		struct arming_verdict verdict = judge(days, count, &terms);
		assert_int_equal(verdict.arms, wanted);
		if (wanted)
			assert_int_equal(verdict.first.begin_ms, first_ms);
		armed += wanted;
	}
	assert_true(armed > ROUNDS / 20 && armed < ROUNDS - ROUNDS / 20); /* both are met often */
}

static void require_words(const struct arming_day *days, int count, const struct weir_arming *terms, const char *wanted)
{
	struct weir_text words = {0};
	struct arming_verdict verdict = judge(days, count, terms);
	arming_rule_words(&words, terms, &verdict);
	weir_text_append(&words, "", 1);
	assert_string_equal(words.at, wanted);
	weir_text_deinit(&words);
}

static void test_words_say_why(void **state)
{
	(void)state;
	const struct weir_arming terms = {.share_ppm = 1000, .span_ms = DAY(2)};
	struct arming_day days[] = {{DAY(0), 48211, 12}, {DAY(1), 48211, 60}, {DAY(2), 10000, 3}, {DAY(3), 999, 0}};
	require_words(days, 0, &terms, "no whole day has been counted yet");
	require_words(days, 1, &terms,
	              "1 of 2 days in a row below 0.1%; on 1970-01-01, 12 of 48211 keys (0.0249%) would have been blocked");
	require_words(days, 2, &terms,
	              "0 of 2 days in a row below 0.1%; on 1970-01-02, 60 of 48211 keys (0.1245%) would have been blocked");
	require_words(
		days, 4, &terms,
		"1 of 2 days in a row below 0.1%; on 1970-01-04, 0 of 999 keys (0.0000%) would have been blocked, but a "
		"day with fewer than 1000 keys says nothing; the last day that was not below is 1970-01-02 with 60 of "
		"48211 keys (0.1245%)");
	days[1].blocked = 48; /* 0.0996 %, on the next-to-last day that counts */
	require_words(days, 4, &terms,
	              "at most 48 of 48211 keys (0.0996%) would have been blocked on a day, on 2 days from 1970-01-02 to "
	              "1970-01-03");
}

/* ---- zones ---- */

#define ZONE(rate, mode)                                                                                         \
	"[{\"id\":1,\"name\":\"site\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":" rate \
	",\"window\":\"1m\"}],\"mode\":" mode "}]"
#define UNTIL(share) "{\"shadow_until\":{\"blocked_keys_below\":\"" share "\",\"for\":\"7d\"}}"

static void take(struct waiting *waiting, uint64_t version, const char *zones)
{
	struct weir_policy *policy = accept(zones);
	policy->version = version;
	waiting_take(waiting, policy);
	weir_policy_free(policy);
}

static void test_a_zone_waits_anew_where_what_counts_has_changed(void **state)
{
	(void)state;
	struct waiting *waiting = calloc(1, sizeof *waiting);
	take(waiting, 1, ZONE("5", UNTIL("0.1%")));
	assert_int_equal(waiting->count, 1);
	waiting->zones[0].noted = true;
	waiting->zones[0].since_ms = DAY(3);
	take(waiting, 2, ZONE("5", UNTIL("0.1%")));
	assert_int_equal(waiting->zones[0].version, 1);
	assert_int_equal(waiting->zones[0].since_ms, DAY(3));
	take(waiting, 3, ZONE("6", UNTIL("0.1%")));
	assert_int_equal(waiting->zones[0].version, 3);
	assert_false(waiting->zones[0].noted);
	take(waiting, 4, ZONE("6", UNTIL("0.2%")));
	assert_int_equal(waiting->zones[0].version, 4);
	take(waiting, 5, ZONE("6", "\"shadow\""));
	assert_int_equal(waiting->count, 0);
	take(waiting, 6, ZONE("6", UNTIL("0.2%")));
	assert_int_equal(waiting->zones[0].version, 6);
	waiting_deinit(waiting);
	free(waiting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_days_are_judged_as_by_a_list),
		cmocka_unit_test(test_words_say_why),
		cmocka_unit_test(test_a_zone_waits_anew_where_what_counts_has_changed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

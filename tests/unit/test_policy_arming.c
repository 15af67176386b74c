/* SPDX-License-Identifier: Apache-2.0 */
/* A zone that stays in shadow until it would block few: how it is written, and what one policy after another makes of it. */
#include "policy_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define ZONE(rate, mode)                                                                                         \
	"[{\"id\":1,\"name\":\"site\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":" rate \
	",\"window\":\"1m\"}],\"mode\":" mode "}]"
#define UNTIL(share, span) "{\"shadow_until\":{\"blocked_keys_below\":\"" share "\",\"for\":\"" span "\"}}"

static void test_shares_are_read_and_written(void **state)
{
	static const struct {
		const char *text;
		int64_t ppm;
		const char *canonical;
	} shares[] = {{"0.1%", 1000, "0.1%"},    {"1%", 10000, "1%"},         {"0.0001%", 1, "0.0001%"},
	              {"50%", 500000, "50%"},    {"12.50%", 125000, "12.5%"}, {"10%", 100000, "10%"},
	              {"0.0250%", 250, "0.025%"}};
	(void)state;
	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
		char zones[512], text[WEIR_SHARE_BYTES];
		snprintf(zones, sizeof zones, ZONE("5", UNTIL("%s", "7d")), shares[i].text);
		struct weir_policy *policy = accept(zones);
		assert_int_equal(policy->zones[0].arming.share_ppm, shares[i].ppm);
		assert_string_equal(weir_share_text(shares[i].ppm, text), shares[i].canonical);
		assert_int_equal(policy->zones[0].mode, WEIR_SHADOW);
		assert_true(weir_zone_waits(&policy->zones[0]) && weir_policy_is_extended(policy));
		assert_non_null(strstr(policy->text, shares[i].canonical));
		weir_policy_free(policy);
	}
}

static void require_refused(const char *zones, const char *path, const char *words)
{
	struct weir_policy *policy;
	struct weir_error error;
	assert_int_equal(parse(zones, &policy, &error), WEIR_INVALID);
	if (strstr(error.text, path) == NULL || strstr(error.text, words) == NULL)
		fail_msg("%s", error.text);
}

static void test_what_cannot_be_meant_is_refused_with_its_place(void **state)
{
	static const char *const bad[] = {"0%",  "0.00001%", "50.0001%", "0.1", "0,1%", "-1%",  "%",
	                                  ".5%", "1.%",      "1.2.3%",   "1 %", "",     "nan%", "99999999999999999999%"};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char zones[512];
		snprintf(zones, sizeof zones, ZONE("5", UNTIL("%s", "7d")), bad[i]);
		require_refused(zones, "[0].mode.shadow_until.blocked_keys_below", "\"0.0001%\" to \"50%\"");
	}
	require_refused(ZONE("5", UNTIL("1%", "36h")), "[0].mode.shadow_until.for", "whole days");
	require_refused(ZONE("5", UNTIL("1%", "400d")), "[0].mode.shadow_until.for", "");
	require_refused(ZONE("5", UNTIL("1%", "1h")), "[0].mode.shadow_until.for", "");
	require_refused(ZONE("5", "{}"), "[0].mode.shadow_until", "is missing");
	require_refused(ZONE("5", "{\"shadow_until\":\"7d\"}"), "[0].mode.shadow_until", "object");
	require_refused(ZONE("5", "{\"shadow_until\":{\"for\":\"7d\"}}"), "blocked_keys_below", "is missing");
	require_refused(ZONE("5", "{\"shadow_until\":{\"blocked_keys_below\":\"1%\"}}"), "for", "is missing");
	require_refused(ZONE("5", "{\"shadow_untill\":{}}"), "[0].mode", "shadow_until");
	require_refused(ZONE("5", "\"shadwo\""), "[0].mode", "shadow");
	require_refused(ZONE("5", "7"), "[0].mode", "");
}

static struct weir_policy *armed(uint64_t version)
{
	struct weir_policy *policy = accept(ZONE("5", UNTIL("0.1%", "7d")));
	policy->version = version;
	weir_policy_arm(policy, 1, "at most 12 of 48211 keys");
	return policy;
}

static void test_an_armed_zone_enforces_and_is_read_again(void **state)
{
	(void)state;
	struct weir_policy *before = accept(ZONE("5", UNTIL("0.1%", "7d"))), *policy = armed(2), *again;
	struct weir_error error;
	assert_int_equal(policy->zones[0].mode, WEIR_ENFORCE);
	assert_int_equal(weir_policy_decode(2, policy->text, strlen(policy->text), &again, &error), WEIR_OK);
	assert_string_equal(again->text, policy->text);
	assert_int_equal(again->zones[0].mode, WEIR_ENFORCE);
	assert_true(weir_policy_is_arming(before, policy));
	assert_false(weir_policy_is_arming(policy, before));
	assert_false(weir_policy_is_arming(policy, policy) || weir_policy_is_arming(before, before));
	assert_false(weir_policy_is_arming(NULL, policy));
	char *sentence = weir_zone_describe(&policy->zones[0]);
	assert_non_null(strstr(sentence, "enforces, as weir armed it: at most 12 of 48211 keys"));
	free(sentence);
	weir_policy_free(again);
	weir_policy_free(before);
	weir_policy_free(policy);
}

/* @return whether the zone of a file is armed behind a policy that had it armed */
static bool stays(const char *zones)
{
	struct weir_policy *newest = armed(2), *policy = accept(zones);
	weir_policy_stay_armed(policy, newest);
	bool armed = policy->zones[0].arming.armed != NULL;
	assert_int_equal(armed, strstr(policy->text, "armed") != NULL);
	weir_policy_free(newest);
	weir_policy_free(policy);
	return armed;
}

static void test_a_file_that_is_applied_again_does_not_disarm(void **state)
{
	(void)state;
	assert_true(stays(ZONE("5", UNTIL("0.1%", "7d"))));
	assert_true(stays(ZONE("5", UNTIL("0.2%", "9d")))); /* other terms: they are fulfilled */
	assert_false(stays(ZONE("6", UNTIL("0.1%", "7d"))));
	assert_false(stays(ZONE("5", "\"shadow\"")));
	struct weir_policy *policy = accept(ZONE("5", UNTIL("0.1%", "7d")));
	weir_policy_stay_armed(policy, NULL);
	assert_true(weir_zone_waits(&policy->zones[0]));
	weir_policy_free(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares_are_read_and_written),
		cmocka_unit_test(test_what_cannot_be_meant_is_refused_with_its_place),
		cmocka_unit_test(test_an_armed_zone_enforces_and_is_read_again),
		cmocka_unit_test(test_a_file_that_is_applied_again_does_not_disarm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

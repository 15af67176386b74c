/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of stored positions: a gap, a recreated topic, and what there was no time to ask. */
#include "bus_fixture.h"
#include "common/base/clock.h"
#include "common/diagnosis/server_checks.h"

static void what_was_not_asked_is_neither_wrong_nor_good(void **state)
{
	struct fixture *fixture = *state;
	static char prefix[] = "one";
	static const bool known[FIXTURE_PARTITIONS] = {true, true, false, true};
	static const uint64_t next[FIXTURE_PARTITIONS] = {3, 5, 0, 9}; /* the last one is beyond the end */
	static const struct weir_mark marks[FIXTURE_PARTITIONS];
	for (uint32_t partition = 0; partition < FIXTURE_PARTITIONS; partition++)
		for (uint64_t i = 0; i < 5; i++)
			assert_int_equal(fixture_send_number(fixture, partition, i, 300), WEIR_OK);
	fixture_settle(fixture);
	struct weir_config config = {.bus.prefix = prefix};
	struct weir_findings findings = {0}, all = {0};
	struct weir_check check = {.config = &config, .config_words = "--config x", .findings = &findings};
	struct weir_check_positions positions = {.role = "archiver",
	                                         .topic = WEIR_TOPIC_EVENTS,
	                                         .partitions = FIXTURE_PARTITIONS,
	                                         .known = known,
	                                         .next = next,
	                                         .marks = marks};
	check.end_ms = weir_monotonic_ms(); /* there is no time */
	weir_check_positions(&check, fixture->bus, &positions);
	assert_false(positions.asked);
	assert_int_equal(positions.stuck, 0);
	assert_true(findings.unasked);
	assert_int_equal(findings.count, 1);
	assert_int_equal(weir_findings_count(&findings, WEIR_SEVERITY_TICKET), 0);
	assert_string_equal(findings.at[0].what,
	                    "archiver: there was no time left to ask about 3 of 3 partitions of one.events");
	weir_findings_take(&all, &findings);
	assert_true(all.unasked);
	check.end_ms = weir_monotonic_ms() + 10000;
	weir_check_positions(&check, fixture->bus, &positions);
	assert_true(positions.asked);
	assert_int_equal(positions.stuck, 1);
	assert_int_equal(positions.behind, 2);
	assert_false(findings.unasked);
	assert_int_equal(findings.count, 1);
	assert_non_null(strstr(findings.at[0].what, "which stops partition 3"));
	weir_findings_deinit(&findings);
	weir_findings_deinit(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_not_asked_is_neither_wrong_nor_good, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("positions_check", tests, NULL, NULL);
}

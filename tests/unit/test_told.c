/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several answers a client is told of first, and when it may try again: the same by HTTP and gRPC. */
#include "limiter/check/told.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct check_answer blocked(int64_t retry_ms)
{
	return (struct check_answer){
		.outcome = CHECK_BLOCKED, .limit = 10, .retry_after_ms = retry_ms, .reset_after_ms = 500};
}

static struct check_answer passed(int64_t remaining)
{
	return (struct check_answer){
		.outcome = CHECK_PASSED, .limit = 10, .remaining = remaining, .retry_after_ms = -1, .reset_after_ms = 500};
}

static struct check_answer unavailable(void)
{
	return (struct check_answer){.outcome = CHECK_UNAVAILABLE, .why = CHECK_WHY_LOADING};
}

/* However they come, they are told in this order, and a ninth is not. */
static void the_order_is_one(void **state)
{
	(void)state;
	const struct check_answer answers[] = {blocked(-1), blocked(90000), blocked(1000), passed(0), passed(1),
	                                       passed(2),   passed(3),      passed(4),     passed(5)};
	enum { COUNT = sizeof answers / sizeof *answers };
	static const char *const names[COUNT] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
	for (uint32_t step = 1; step < COUNT; step++) {
		struct told told[TOLD_ZONES_MAX];
		uint32_t count = 0;
		if (step % 3 == 0) /* it would not come to all */
			continue;
		for (uint32_t i = 0; i < COUNT; i++)
			count = told_add(told, count,
			                 &(struct told){.zone = names[i * step % COUNT], .answer = &answers[i * step % COUNT]});
		assert_int_equal(count, TOLD_ZONES_MAX);
		for (uint32_t i = 0; i < count; i++)
			assert_ptr_equal(told[i].answer, &answers[i]);
	}
	assert_false(told_is_tighter(&answers[0], &answers[0]));
	const struct check_answer none = {.outcome = CHECK_PASSED}, away = unavailable();
	struct told told[TOLD_ZONES_MAX];
	assert_int_equal(told_add(told, 0, &(struct told){.zone = "z", .answer = &none}), 0);
	assert_int_equal(told_add(told, 0, &(struct told){.zone = "z", .answer = &away}), 0);
}

/* Two descriptors by gRPC may be of one zone. */
static void a_zone_is_told_of_once_by_the_tightest(void **state)
{
	(void)state;
	const struct check_answer answers[] = {passed(5), passed(3), blocked(1000), passed(1), passed(4)};
	static const char *const names[] = {"a", "b", "a", "a", "b"};
	struct told told[TOLD_ZONES_MAX];
	uint32_t count = 0;
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
		count = told_add(told, count, &(struct told){.zone = names[i], .answer = &answers[i]});
	assert_int_equal(count, 2);
	assert_ptr_equal(told[0].answer, &answers[2]);
	assert_ptr_equal(told[1].answer, &answers[1]);
}

static struct told_verdict sum_of(const struct check_answer *answers, size_t count)
{
	struct told_verdict verdict = {0};
	for (size_t i = 0; i < count; i++)
		told_sum(&verdict, &answers[i]);
	return verdict;
}

static void a_client_waits_until_all_would_pass(void **state)
{
	(void)state;
	struct told_verdict verdict = sum_of((struct check_answer[]){blocked(1000), passed(3), blocked(90000)}, 3);
	assert_true(verdict.blocked && verdict.why == NULL);
	assert_int_equal(told_retry_ms(&verdict), 90000);
	verdict = sum_of((struct check_answer[]){blocked(1000), blocked(-1), blocked(90000)}, 3);
	assert_true(verdict.blocked);
	assert_int_equal(told_retry_ms(&verdict), -1); /* no time helps */
	verdict = sum_of((struct check_answer[]){passed(3), passed(0)}, 2);
	assert_false(verdict.blocked);
	assert_int_equal(told_retry_ms(&verdict), -1);
	verdict = sum_of((struct check_answer[]){unavailable(), blocked(0)}, 2);
	assert_true(verdict.blocked);
	assert_string_equal(verdict.why, check_why_word(CHECK_WHY_LOADING));
	assert_int_equal(told_retry_ms(&verdict), 0);
}

static void what_is_not_judged_is_as_configured(void **state)
{
	(void)state;
	struct check_answer answer = unavailable();
	told_settle(&answer, WEIR_ON_UNAVAILABLE_ERROR);
	assert_int_equal(answer.outcome, CHECK_UNAVAILABLE);
	told_settle(&answer, WEIR_ON_UNAVAILABLE_DENY);
	assert_int_equal(answer.outcome, CHECK_BLOCKED);
	assert_int_equal(answer.retry_after_ms, TOLD_DENIED_AGAIN_MS);
	answer = unavailable();
	told_settle(&answer, WEIR_ON_UNAVAILABLE_ALLOW);
	assert_int_equal(answer.outcome, CHECK_PASSED);
	assert_int_equal(answer.limit, 0);
	answer = (struct check_answer){.outcome = CHECK_NO_ZONE};
	told_settle(&answer, WEIR_ON_UNAVAILABLE_DENY);
	assert_int_equal(answer.outcome, CHECK_PASSED);
}

struct seen {
	char text[512];
};

static void see(void *context, const char *name, struct weir_span value)
{
	struct seen *seen = context;
	size_t length = strlen(seen->text);
	snprintf(seen->text + length, sizeof seen->text - length, "%s: %.*s\n", name, (int)value.length, value.at);
}

/* An operator may block without end: a time in the year 10000 would help nobody. */
static void of_a_block_without_end_no_time_is_told(void **state)
{
	(void)state;
	struct check_answer endless = blocked(-1), other = passed(3);
	endless.reset_after_ms = -1;
	endless.window_ms = other.window_ms = 60000;
	const struct told told[] = {{.zone = "a", .answer = &endless}, {.zone = "b", .answer = &other}};
	struct seen seen = {""};
	assert_int_equal(told_wait_ms(&endless), -1);
	told_fields(WEIR_FIELDS_DRAFT, told, 2, see, &seen);
	assert_string_equal(seen.text, "RateLimit-Policy: \"a\";q=10;w=60, \"b\";q=10;w=60\n"
	                               "RateLimit: \"a\";r=0, \"b\";r=3;t=1\n");
	seen.text[0] = '\0';
	told_fields(WEIR_FIELDS_X, told, 2, see, &seen);
	assert_string_equal(seen.text, "X-RateLimit-Limit: 10\nX-RateLimit-Remaining: 0\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_order_is_one),
		cmocka_unit_test(a_zone_is_told_of_once_by_the_tightest),
		cmocka_unit_test(a_client_waits_until_all_would_pass),
		cmocka_unit_test(what_is_not_judged_is_as_configured),
		cmocka_unit_test(of_a_block_without_end_no_time_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

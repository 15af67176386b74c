/* SPDX-License-Identifier: Apache-2.0 */
/* NATS's words: which subjects fit a pattern, and what a message's reply subject says of its place; and a stream that goes back. */
#include "collector/source/nats/internal.h"
#include "collector/source/nats/nats_subject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *subject;
		bool fits;
	} cases[] = {
		{"logs.a", "logs.a", true},    {"logs.a", "logs.b", false},
		{"logs.a", "logs", false},     {"logs", "logs.a", false},
		{"logs.*", "logs.a", true},    {"logs.*", "logs", false},
		{"logs.*", "logs.a.b", false}, {"logs.>", "logs.a.b", true},
		{"logs.>", "logs", false},     {">", "a", true},
		{"*.*.c", "a.b.c", true},      {"*.*.c", "a.b.d", false},
		{"logs.*.x", "logs..x", true}, {"logs.a", "logs.ab", false},
		{"logs.ab", "logs.a", false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(nats_subject_fits(cases[i].pattern, weir_span_of(cases[i].subject)), cases[i].fits);
}

static void test_what_is_a_subject(void **state)
{
	static const char *const good[] = {"a", "logs.a-b_c", "*", ">", "a.*.>", "a.b.c.d"};
	static const char *const bad[] = {"", ".", "a.", ".a", "a..b", "a.>.b", "a b", "a*", "a.b>", "a\n", "a\x7f"};
	char longest[NATS_SUBJECT_BYTES + 2];
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(nats_subject_valid(good[i]));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(nats_subject_valid(bad[i]));
	memset(longest, 'a', sizeof longest);
	longest[sizeof longest - 1] = '\0';
	assert_false(nats_subject_valid(longest));
}

static void test_places(void **state)
{
	static const char *const good[] = {
		"$JS.ACK.LOGS.c1.1.42.7.1700000000123456789.5",
		"$JS.ACK.hub.ACCHASH.LOGS.c1.1.42.7.1700000000123456789.5",
		"$JS.ACK._.ACCHASH.LOGS.c1.1.42.7.1700000000123456789.5.random",
	};
	static const char *const bad[] = {
		"",
		"$JS.FC.LOGS.c1.x",
		"$JS.ACK.LOGS.c1.1.42.7.1700000000123456789",
		"$JS.ACK.LOGS.c1.1.0.7.1700000000123456789.5",
		"$JS.ACK.LOGS.c1.1.4x.7.1700000000123456789.5",
		"$JS.ACK.LOGS.c1.1..7.1700000000123456789.5",
		"$JS.ACK.LOGS.c1.1.99999999999999999999999.7.1700000000123456789.5",
		"$JS.ACK.LOGS.c1.1.42.7.18446744073709551610.5",
		"_INBOX.LOGS.c1.1.42.7.1700000000123456789.5",
	};
	struct nats_place place;
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_true(nats_place_read(weir_span_of(good[i]), &place));
		assert_int_equal(place.sequence, 42);
		assert_int_equal(place.consumer, 7);
		assert_int_equal(place.pending, 5);
		assert_int_equal(place.put_ns, INT64_C(1700000000123456789));
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(nats_place_read(weir_span_of(bad[i]), &place));
}

static void test_a_stream_that_goes_back_is_counted_once(void **state)
{
	(void)state;
	static const struct {
		uint64_t place, last, lost;
	} looks[] = {
		{100, 100, 0}, {200, 200, 0}, {200, 150, 50}, {200, 150, 0},  {200, 151, 0}, {200, 160, 0},
		{200, 155, 5}, {200, 199, 0}, {200, 200, 0},  {200, 190, 10}, {250, 250, 0}, {250, 220, 30},
		{250, 0, 220}, {250, 1, 0},   {250, 0, 1},    {300, 310, 0},  {310, 310, 0},
	};
	struct nats_back back = {0};
	for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
		assert_int_equal(nats_went_back(&back, looks[i].place, looks[i].last, false), looks[i].lost);
}

/* The stream has newer messages, of numbers that were read: all of them may be others now. */
static void test_a_stream_that_begins_to_count_again_may_have_lost_all_numbers(void **state)
{
	(void)state;
	static const struct {
		uint64_t place, last, lost;
		bool newer;
	} looks[] = {
		{9, 7, 9, true},  {9, 8, 0, true},  {9, 9, 0, true},    {12, 12, 0, true}, {12, 0, 12, false},
		{12, 3, 0, true}, {12, 2, 1, true}, {20, 19, 1, false}, {20, 19, 0, true}, {21, 30, 0, true},
	};
	struct nats_back back = {0};
	for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
		assert_int_equal(nats_went_back(&back, looks[i].place, looks[i].last, looks[i].newer), looks[i].lost);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_what_is_a_subject),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_a_stream_that_goes_back_is_counted_once),
		cmocka_unit_test(test_a_stream_that_begins_to_count_again_may_have_lost_all_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

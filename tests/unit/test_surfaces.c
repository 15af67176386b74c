/* SPDX-License-Identifier: Apache-2.0 */
/* Surfaces beside one another: whose answer it is, and checks of a durable zone by any of them. */
#include "limiter/check/surfaces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "common/json/json.h"
#include "common/policy/policy.h"

#include <cmocka.h>

enum { ASKS_MAX = 4 };

/* Judges nothing, and notes what it was asked. */
struct noted {
	struct weir_policy *policy;
	struct check_ask asks[ASKS_MAX];
};

static void ask(void *context, const struct check_ask *asks, uint32_t count, struct check_answer *answers)
{
	struct noted *noted = context;
	assert_true(count <= ASKS_MAX);
	for (uint32_t i = 0; i < count; i++) {
		noted->asks[i] = asks[i];
		answers[i] = (struct check_answer){.outcome = CHECK_PASSED, .ticket = asks[i].ticket};
	}
}

static const struct weir_policy *policy(void *context)
{
	const struct noted *noted = context;
	return noted->policy;
}

static struct weir_policy *policy_of(uint64_t version, const char *first, const char *second)
{
	char text[512];
	struct weir_json_document *document;
	struct weir_error error;
	struct weir_policy *made;
	static const char limits[] = "\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":1,\"window\":\"1m\"}]";
	int length = snprintf(text, sizeof text,
	                      "[{\"name\":\"first\",\"key\":[\"ip\"]%s,%s},{\"name\":\"second\",\"key\":[\"ip\"]%s,%s}]",
	                      first, limits, second, limits);
	assert_int_equal(weir_json_parse("zones", text, (size_t)length, &document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	assert_int_equal(weir_policy_parse(&root, NULL, &made, &error), WEIR_OK);
	weir_json_document_free(document);
	made->version = version;
	return made;
}

/* Asks in both zones. @return 1: the first was durable, 2: the second, 3: both */
static int durable_of(struct noted *noted, const struct check_judge *judge, bool asks_for_it)
{
	struct check_answer answers[2];
	const struct check_ask asks[] = {
		{.zone = weir_span_of("first"), .key = weir_span_of("a"), .cost = 1, .durable = asks_for_it, .ticket = 1},
		{.zone = weir_span_of("second"), .key = weir_span_of("a"), .cost = 1, .ticket = 2}};
	judge->ask(judge->context, asks, 2, answers);
	assert_int_equal(answers[0].ticket, 1);
	assert_int_equal(answers[1].ticket, 2);
	return noted->asks[0].durable + 2 * noted->asks[1].durable;
}

static void a_check_is_durable_if_its_zone_is(void **state)
{
	(void)state;
	struct noted noted = {0};
	const struct check_judge judge = {.context = &noted, .ask = ask, .policy = policy};
	struct surfaces *surfaces = surfaces_new(&judge);
	const struct check_judge *own = surfaces_judge(surfaces);
	assert_int_equal(durable_of(&noted, own, false), 0); /* there is no policy */
	struct weir_policy *plain = policy_of(1, "", ""), *durable = policy_of(2, "", ",\"durable\":true");
	noted.policy = plain;
	assert_int_equal(durable_of(&noted, own, false), 0);
	assert_int_equal(durable_of(&noted, own, true), 1);
	noted.policy = durable;
	assert_int_equal(durable_of(&noted, own, false), 2);
	assert_int_equal(durable_of(&noted, own, true), 3);
	noted.policy = plain;
	assert_int_equal(durable_of(&noted, own, false), 0);
	surfaces_free(surfaces);
	weir_policy_free(plain);
	weir_policy_free(durable);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_check_is_durable_if_its_zone_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

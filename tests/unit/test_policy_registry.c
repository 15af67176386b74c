/* SPDX-License-Identifier: Apache-2.0 */
/* A policy that is compiled late is as one that was compiled when it was the newest. */
#include "limiter/bucket/bucket_layout.h"
#include "limiter/lane/policy_registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { VERSIONS = 300 };

/* Zone 1 changes with every third version, zone 2 is there in every second, zone 3 never changes. */
static void add(struct policy_registry *registry, unsigned version)
{
	static const char limit[] =
		"\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":%u,\"window\":\"1m\"}]}";
	char text[1024], one[256], two[256];
	struct weir_error error;
	snprintf(one, sizeof one, limit, 10 + version / 3);
	snprintf(two, sizeof two, limit, 5);
	snprintf(text, sizeof text, "{\"zones\":[{\"id\":1,\"name\":\"one\",%s%s%s,{\"id\":3,\"name\":\"three\",%s]}", one,
	         version % 2 > 0 ? ",{\"id\":2,\"name\":\"two\"," : "", version % 2 > 0 ? two : "", two);
	assert_int_equal(policy_registry_add(registry, version, weir_span_of(text), &error), WEIR_OK);
}

static void compare(const struct compiled_policy *late, const struct compiled_policy *then)
{
	assert_int_equal(compiled_policy_version(late), compiled_policy_version(then));
	assert_int_equal(compiled_policy_zone_count(late), compiled_policy_zone_count(then));
	for (uint32_t i = 0; i < compiled_policy_zone_count(late); i++)
		assert_int_equal(compiled_policy_zone_at(late, i)->layout->id, compiled_policy_zone_at(then, i)->layout->id);
	for (uint32_t id = 1;; id++) {
		const struct layout *one = compiled_policy_layout(late, id, 1000),
							*other = compiled_policy_layout(then, id, 1000);
		if (one == NULL || other == NULL) {
			assert_true(one == other);
			return;
		}
		assert_int_equal(one->version, other->version);
		assert_int_equal(one->ended_version, other->ended_version);
		assert_int_equal(one->next != NULL ? one->next->id : 0, other->next != NULL ? other->next->id : 0);
	}
}

static void compiled_policies_are_those_of_their_time(void **state)
{
	(void)state;
	struct policy_registry *late = policy_registry_new(), *then = policy_registry_new();
	for (unsigned version = 1; version <= VERSIONS; version++) {
		add(late, version);
		add(then, version);
		assert_int_equal(compiled_policy_version(policy_registry_compiled(then, version)), version);
	}
	for (unsigned version = VERSIONS; version > 0; version = version > 7 ? version - 7 : 0)
		compare(policy_registry_compiled(late, version), policy_registry_compiled(then, version));
	assert_ptr_equal(policy_registry_compiled(late, VERSIONS), policy_registry_compiled(late, VERSIONS));
	assert_null(policy_registry_compiled(late, VERSIONS + 1));
	policy_registry_free(late);
	policy_registry_free(then);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(compiled_policies_are_those_of_their_time)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

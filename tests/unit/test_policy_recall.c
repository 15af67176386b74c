/* SPDX-License-Identifier: Apache-2.0 */
/* A store that was restored from an older copy gets its policies back from the policy topic, under their numbers. */
#include "common/bus/local/bus_local.h"
#include "common/cluster/policy_log.h"
#include "common/cluster/policy_recall.h"
#include "common/store/sqlite/store_sqlite.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PARTITIONS = 2, TEXT_BYTES = 256 };

static struct weir_error error;

static void must(enum weir_status status)
{
	if (status != WEIR_OK)
		fail_msg("%s", error.text);
}

static const char *text_of(unsigned rate, char text[TEXT_BYTES])
{
	struct weir_policy *policy;
	snprintf(text, TEXT_BYTES,
	         "{\"zones\":[{\"id\":1,\"name\":\"site\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"sliding_window\","
	         "\"rate\":%u,\"window\":\"1m\"}]}]}",
	         rate);
	must(weir_policy_decode(1, text, strlen(text), &policy, &error));
	snprintf(text, TEXT_BYTES, "%s", policy->text);
	weir_policy_free(policy);
	return text;
}

static struct weir_store *open_store(const char *directory, unsigned first_rate, unsigned count)
{
	struct weir_store *store;
	char text[TEXT_BYTES];
	must(weir_store_sqlite_open(directory, &store, &error));
	for (unsigned i = 0; i < count; i++)
		must(store->ops->policy_put(store, i + 1, weir_span_of(text_of(first_rate + i, text)), &error));
	return store;
}

struct world {
	char *kept, *restored, *log;
	struct weir_store *store; /* of before, with three policies, all in the log */
	struct weir_bus *bus;
};

static int set_up(void **state)
{
	static struct world world;
	const struct weir_bus_local_options options = {.partitions = PARTITIONS};
	world = (struct world){.kept = scratch_new(), .restored = scratch_new(), .log = scratch_new()};
	world.store = open_store(world.kept, 10, 3);
	must(weir_bus_local_open(world.log, &options, &world.bus, &error));
	must(weir_policy_append(world.store, world.bus, 3, 1000, 30000, &error));
	*state = &world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;
	world->store->ops->close(world->store);
	world->bus->ops->close(world->bus);
	scratch_remove(world->kept), scratch_remove(world->restored), scratch_remove(world->log);
	free(world->kept), free(world->restored), free(world->log);
	return 0;
}

static enum weir_status compare(void *context, uint64_t version, struct weir_span text)
{
	char expected[TEXT_BYTES];
	assert_true(weir_span_equal(text, weir_span_of(text_of(9 + (unsigned)version, expected))));
	*(uint64_t *)context += 1;
	return WEIR_OK;
}

static void what_is_missing_comes_back_under_its_numbers(void **state)
{
	struct world *world = *state;
	for (unsigned has = 0; has <= 3; has++) {
		char *directory = scratch_new();
		struct weir_store *store = open_store(directory, 10, has);
		struct weir_policies_recalled recalled;
		uint64_t count = 0, newest;
		must(weir_policy_recall(store, world->bus, &recalled, &error));
		assert_int_equal(recalled.first, has < 3 ? has + 1 : 0);
		assert_int_equal(recalled.last, has < 3 ? 3 : 0);
		must(store->ops->policy_each(store, 1, compare, &count, &error));
		assert_int_equal(count, 3);
		must(weir_policy_stored_newest(store, 2, &newest, &error));
		assert_int_equal(newest, 3);
		must(weir_policy_stored_newest(store, 4, &newest, &error));
		assert_int_equal(newest, 0);
		store->ops->close(store);
		scratch_remove(directory);
		free(directory);
	}
}

static void append(struct weir_bus *bus, const char *key, struct weir_span message)
{
	struct weir_producer *producer;
	struct weir_delivery delivery;
	must(bus->ops->producer_new(bus, &producer, &error));
	must(bus->ops->send(producer, WEIR_TOPIC_POLICY, 0, weir_span_of(key), message, 0, &error));
	while (bus->ops->poll(producer, &delivery, 1, 1000) == 0)
		;
	bus->ops->producer_free(producer);
}

static void a_hole_is_not_jumped(void **state)
{
	struct world *world = *state;
	char *directory = scratch_new(), text[TEXT_BYTES];
	struct weir_store *behind = open_store(world->restored, 10, 1), *odd = open_store(directory, 10, 4);
	struct weir_policies_recalled recalled;
	/* A topic that begins with the fourth. */
	const struct weir_bus_local_options options = {.partitions = PARTITIONS};
	struct weir_bus *bus;
	char *log = scratch_new();
	must(weir_bus_local_open(log, &options, &bus, &error));
	must(odd->ops->note_put(odd, "policy-appended", weir_span_of("3"), &error));
	struct weir_policy *policy;
	size_t length;
	text_of(13, text);
	must(weir_policy_decode(4, text, strlen(text), &policy, &error));
	char *message = weir_policy_message(policy, weir_span_of(text), 1000, &length);
	append(bus, "4", (struct weir_span){.at = message, .length = (uint32_t)length});
	assert_int_equal(weir_policy_recall(behind, bus, &recalled, &error), WEIR_INVALID);
	assert_non_null(strstr(error.text, "lack policy 2"));
	assert_int_equal(recalled.last, 0);
	free(message);
	weir_policy_free(policy);
	bus->ops->close(bus);
	behind->ops->close(behind);
	odd->ops->close(odd);
	scratch_remove(directory), scratch_remove(log);
	free(directory), free(log);
}

/* Anybody who may write to the topic can write such a record, and it must not keep everybody from applying a policy. */
static void one_that_a_newer_weir_seems_to_have_written_is_passed_over(void **state)
{
	struct world *world = *state;
	static const char newer[100] = "wF\x03";
	struct weir_policies_recalled recalled;
	uint64_t newest;
	append(world->bus, "newer", (struct weir_span){.at = newer, .length = sizeof newer});
	must(weir_policy_recall(world->store, world->bus, &recalled, &error));
	assert_int_equal(recalled.last, 0);
	struct weir_store *store = open_store(world->restored, 10, 1);
	must(weir_policy_recall(store, world->bus, &recalled, &error));
	assert_int_equal(recalled.last, 3);
	must(weir_policy_stored_newest(store, 1, &newest, &error));
	assert_int_equal(newest, 3);
	store->ops->close(store);
}

static void a_checkpoint_under_a_policy_that_the_store_lacks_is_found(void **state)
{
	struct world *world = *state;
	struct weir_store *store = world->store;
	struct weir_partition_state row;
	must(weir_policy_check_checkpoints(store, PARTITIONS, &error));
	must(store->ops->take(store, WEIR_STORE_ROLE_LIMITER, 1, &row, &error));
	row.checkpoint = 1;
	row.policy_version = 3;
	row.extra = (struct weir_span){.at = "", .length = 0};
	must(store->ops->commit(store, WEIR_STORE_ROLE_LIMITER, &row, 1, NULL, NULL, 0, &error));
	must(weir_policy_check_checkpoints(store, PARTITIONS, &error));
	row.checkpoint = 2;
	row.policy_version = 4;
	must(store->ops->commit(store, WEIR_STORE_ROLE_LIMITER, &row, 1, NULL, NULL, 0, &error));
	assert_int_equal(weir_policy_check_checkpoints(store, PARTITIONS, &error), WEIR_INVALID);
	assert_non_null(strstr(error.text, "partition 1 was saved under policy 4"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_missing_comes_back_under_its_numbers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_hole_is_not_jumped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_a_newer_weir_seems_to_have_written_is_passed_over, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_checkpoint_under_a_policy_that_the_store_lacks_is_found, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

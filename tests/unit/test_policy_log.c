/* SPDX-License-Identifier: Apache-2.0 */
/* Policies are appended again to a policy topic that was made anew, whenever the process that does it is killed. */
#include "common/bus/local/bus_local.h"
#include "common/cluster/policy_log.h"
#include "common/store/sqlite/store_sqlite.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { PARTITIONS = 2, POLICIES = 3, STEPS = POLICIES * (PARTITIONS + 2) /* the policy topic, and the note */ };

static struct weir_bus_ops bus_ops;
static struct weir_store_ops store_ops;
static const struct weir_bus_ops *real_bus;
static const struct weir_store_ops *real_store;
static int steps_left; /* until the process is killed */

static enum weir_status send_or_die(struct weir_producer *producer, enum weir_topic topic, uint32_t partition,
                                    struct weir_span key, struct weir_span payload, uint64_t tag,
                                    struct weir_error *error)
{
	if (steps_left-- <= 0)
		return weir_fail(error, WEIR_IO, "killed");
	return real_bus->send(producer, topic, partition, key, payload, tag, error);
}

static enum weir_status note_or_die(struct weir_store *store, const char *name, struct weir_span value,
                                    struct weir_error *error)
{
	if (steps_left-- <= 0)
		return weir_fail(error, WEIR_IO, "killed");
	return real_store->note_put(store, name, value, error);
}

static struct weir_bus *open_log(const char *directory)
{
	struct weir_bus_local_options options = {.partitions = PARTITIONS};
	struct weir_bus *bus;
	struct weir_error error;
	if (weir_bus_local_open(directory, &options, &bus, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	real_bus = bus->ops;
	bus_ops = *real_bus;
	bus_ops.send = send_or_die;
	bus->ops = &bus_ops;
	return bus;
}

static struct weir_store *open_store(const char *directory)
{
	struct weir_store *store;
	struct weir_error error;
	if (weir_store_sqlite_open(directory, &store, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	for (uint64_t version = 1; version <= POLICIES; version++) {
		char text[256];
		snprintf(text, sizeof text,
		         "{\"zones\":[{\"id\":1,\"name\":\"site\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":"
		         "\"sliding_window\",\"rate\":%llu,\"window\":\"1m\"}]}]}",
		         (unsigned long long)version);
		if (store->ops->policy_put(store, version, weir_span_of(text), &error) != WEIR_OK)
			fail_msg("%s", error.text);
	}
	real_store = store->ops;
	store_ops = *real_store;
	store_ops.note_put = note_or_die;
	store->ops = &store_ops;
	return store;
}

static enum weir_status append(struct weir_store *store, struct weir_bus *bus, int steps)
{
	struct weir_error error;
	steps_left = steps;
	return weir_policy_append(store, bus, POLICIES, 1000, 30000, &error);
}

/* What is noted of the topic before says nothing of the new one, which has a part of the policies. */
static void a_policy_topic_that_was_made_anew_gets_them_all_whenever_it_is_killed(void **state)
{
	struct weir_error error;
	(void)state;
	for (int steps = 0; steps <= STEPS; steps++) {
		char *kept = scratch_new(), *old = scratch_new(), *new = scratch_new();
		uint64_t version, first, next;
		struct weir_store *store = open_store(kept);
		struct weir_bus *bus = open_log(old);
		assert_int_equal(append(store, bus, STEPS), WEIR_OK);
		assert_int_equal(append(store, bus, 0), WEIR_OK); /* all are there: it sends nothing */
		bus->ops->close(bus);
		bus = open_log(new);
		assert_int_equal(weir_policy_appended(store, bus, &version, &error), WEIR_OK);
		assert_int_equal(version, 0);
		assert_int_equal(append(store, bus, steps), steps < STEPS ? WEIR_IO : WEIR_OK);
		bus->ops->close(bus);
		bus = open_log(new);
		assert_int_equal(append(store, bus, 2 * STEPS), WEIR_OK);
		assert_int_equal(weir_policy_topic_newest(bus, &version, &error), WEIR_OK);
		assert_int_equal(version, POLICIES);
		for (uint32_t partition = 0; partition < PARTITIONS; partition++) {
			assert_int_equal(bus->ops->extent(bus, WEIR_TOPIC_EVENTS, partition, &first, &next, &error), WEIR_OK);
			assert_true(next >= POLICIES);
		}
		assert_int_equal(weir_policy_appended(store, bus, &version, &error), WEIR_OK);
		assert_int_equal(version, POLICIES);
		bus->ops->close(bus);
		store->ops->close(store);
		scratch_remove(kept), scratch_remove(old), scratch_remove(new);
		free(kept), free(old), free(new);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_policy_topic_that_was_made_anew_gets_them_all_whenever_it_is_killed),
	};
	return cmocka_run_group_tests_name("policy_log", tests, NULL, NULL);
}

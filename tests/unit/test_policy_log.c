/* SPDX-License-Identifier: Apache-2.0 */
/* Policies are appended again to a policy topic that was made anew, whenever the process that does it is killed. */
#include "common/base/clock.h"
#include "common/base/stop.h"
#include "common/bus/local/bus_local.h"
#include "common/cluster/policy_log.h"
#include "common/store/sqlite/store_sqlite.h"
#include "scratch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { PARTITIONS = 2, POLICIES = 3, STEPS = POLICIES * (PARTITIONS + 1) /* and the policy topic */ };

static struct weir_bus_ops bus_ops;
static const struct weir_bus_ops *real_bus;
static int steps_left;            /* until the process is killed */
static struct weir_store *faster; /* in which another process notes the newest policy, before this one notes its own */

static enum weir_status send_or_die(struct weir_producer *producer, enum weir_topic topic, uint32_t partition,
                                    struct weir_span key, struct weir_span payload, uint64_t tag,
                                    struct weir_error *error)
{
	if (steps_left-- <= 0)
		return weir_fail(error, WEIR_IO, "killed");
	if (faster != NULL && faster->ops->note_put(faster, "policy-appended", weir_span_of("3"), error) != WEIR_OK)
		fail_msg("%s", error->text);
	return real_bus->send(producer, topic, partition, key, payload, tag, error);
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

static void an_older_policy_that_is_slower_does_not_lower_what_is_noted(void **state)
{
	char *kept = scratch_new(), *log = scratch_new();
	struct weir_store *store = open_store(kept);
	struct weir_bus *bus = open_log(log);
	struct weir_error error;
	uint64_t version;
	(void)state;
	faster = store;
	steps_left = STEPS;
	assert_int_equal(weir_policy_append(store, bus, POLICIES - 1, 1000, 30000, &error), WEIR_OK);
	faster = NULL;
	assert_int_equal(weir_policy_appended(store, NULL, &version, &error), WEIR_OK);
	assert_int_equal(version, POLICIES);
	bus->ops->close(bus);
	store->ops->close(store);
	scratch_remove(kept), scratch_remove(log);
	free(kept), free(log);
}

static size_t poll_silence(struct weir_producer *producer, struct weir_delivery *deliveries, size_t most,
                           int timeout_ms)
{
	(void)producer;
	(void)deliveries;
	(void)most;
	nanosleep(&(struct timespec){.tv_nsec = (timeout_ms < 50 ? timeout_ms : 50) * 1000000L}, NULL);
	return 0;
}

static bool full(struct weir_bus *bus, char *text, size_t bytes)
{
	(void)bus;
	snprintf(text, bytes, "cannot write: No space left on device");
	return true;
}

static bool none(struct weir_bus *bus, char *text, size_t bytes)
{
	(void)bus;
	(void)text;
	(void)bytes;
	return false;
}

/* Nothing is acknowledged: what the wait says that ends before its time. */
static void assert_ends(bool (*problem)(struct weir_bus *, char *, size_t), const char *said)
{
	struct weir_error error = {.text = ""};
	char *kept = scratch_new(), *logs = scratch_new();
	struct weir_store *store = open_store(kept);
	struct weir_bus *bus = open_log(logs);
	steps_left = STEPS;
	bus_ops.poll = poll_silence;
	bus_ops.problem = problem;
	int64_t begun_ms = weir_monotonic_ms();
	assert_int_equal(weir_policy_append(store, bus, POLICIES, 1000, 600000, &error), WEIR_IO);
	assert_true(weir_monotonic_ms() - begun_ms < 300000);
	if (strstr(error.text, said) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", error.text, said);
	bus->ops = real_bus;
	bus->ops->close(bus);
	store->ops->close(store);
	scratch_remove(kept), scratch_remove(logs);
	free(kept), free(logs);
}

/* Nobody frees a full disk by waiting, and whoever stops a start does not wait either. */
static void a_wait_ends_with_the_disk_s_fault_or_a_signal(void **state)
{
	(void)state;
	assert_ends(full, "the log cannot take the policy: cannot write: No space left on device");
	weir_stop_install();
	assert_int_equal(raise(SIGTERM), 0);
	assert_ends(none, "a signal ended the wait");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_older_policy_that_is_slower_does_not_lower_what_is_noted),
		cmocka_unit_test(a_policy_topic_that_was_made_anew_gets_them_all_whenever_it_is_killed),
		cmocka_unit_test(a_wait_ends_with_the_disk_s_fault_or_a_signal), /* the last: the signal stays */
	};
	return cmocka_run_group_tests_name("policy_log", tests, NULL, NULL);
}

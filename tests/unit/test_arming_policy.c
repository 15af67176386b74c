/* SPDX-License-Identifier: Apache-2.0 */
/* A policy that arms a zone is written once, whenever its process is killed, and never over an operator's. */
#include "archiver/arming/arming.h"
#include "archiver/arming/arming_policy.h"
#include "common/bus/local/bus_local.h"
#include "common/cluster/policy_log.h"
#include "common/cluster/policy_note.h"
#include "common/store/sqlite/store_sqlite.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { PARTITIONS = 2, STEPS_MOST = 20, FIRST = 1, ARMED = 2, WAIT_MS = 30000, PATH_BYTES = 512 };

#define ZONE(rate)                                                                                            \
	"{\"zones\":[{\"id\":1,\"name\":\"site\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"sliding_window\"," \
	"\"rate\":" rate                                                                                          \
	",\"window\":\"1m\"}],\"mode\":{\"shadow_until\":{\"blocked_keys_below\":\"1%\",\"for\":\"2d\"}}}]}"

static struct weir_bus_ops bus_ops;
static struct weir_store_ops store_ops;
static const struct weir_bus_ops *real_bus;
static const struct weir_store_ops *real_store;
static int steps_left;    /* until the process is killed */
static const char *rival; /* NULL: nobody else comes */

static enum weir_status send_or_die(struct weir_producer *producer, enum weir_topic topic, uint32_t partition,
                                    struct weir_span key, struct weir_span payload, uint64_t tag,
                                    struct weir_error *error)
{
	if (steps_left-- <= 0)
		return weir_fail(error, WEIR_IO, "killed");
	return real_bus->send(producer, topic, partition, key, payload, tag, error);
}

static enum weir_status commit_or_die(struct weir_store *store, int role, const struct weir_partition_state *states,
                                      size_t count, const char *const *names, const struct weir_span *values,
                                      size_t note_count, struct weir_error *error)
{
	if (steps_left-- <= 0)
		return weir_fail(error, WEIR_IO, "killed");
	return real_store->commit(store, role, states, count, names, values, note_count, error);
}

static enum weir_status note_or_die(struct weir_store *store, const char *name, struct weir_span value,
                                    struct weir_error *error)
{
	if (steps_left-- <= 0)
		return weir_fail(error, WEIR_IO, "killed");
	return real_store->note_put(store, name, value, error);
}

static enum weir_status put_or_die(struct weir_store *store, uint64_t version, struct weir_span text,
                                   struct weir_error *error)
{
	if (steps_left-- <= 0)
		return weir_fail(error, WEIR_IO, "killed");
	/* In the last moment, behind the look at what is there. */
	if (rival != NULL && real_store->policy_put(store, version, weir_span_of(rival), error) != WEIR_OK)
		fail_msg("%s", error->text);
	return real_store->policy_put(store, version, text, error);
}

struct world {
	char log[PATH_BYTES], state[PATH_BYTES];
	struct weir_bus *bus;
	struct weir_store *store;
};

static void must(enum weir_status status, const struct weir_error *error)
{
	if (status != WEIR_OK)
		fail_msg("%s", error->text);
}

static void open_world(struct world *world)
{
	struct weir_bus_local_options options = {.partitions = PARTITIONS};
	struct weir_error error;
	must(weir_bus_local_open(world->log, &options, &world->bus, &error), &error);
	must(weir_store_sqlite_open(world->state, &world->store, &error), &error);
	real_bus = world->bus->ops;
	bus_ops = *real_bus;
	bus_ops.send = send_or_die;
	world->bus->ops = &bus_ops;
	real_store = world->store->ops;
	store_ops = *real_store;
	store_ops.note_put = note_or_die;
	store_ops.commit = commit_or_die;
	store_ops.policy_put = put_or_die;
	world->store->ops = &store_ops;
}

static void close_world(struct world *world)
{
	world->bus->ops->close(world->bus);
	world->store->ops->close(world->store);
}

static void make_scratch(char path[PATH_BYTES])
{
	char *made = scratch_new();
	assert_non_null(made);
	snprintf(path, PATH_BYTES, "%s", made);
	free(made);
}

/* A cluster with one policy, whose zone waits. */
static struct world new_world(void)
{
	struct world world = {0};
	struct weir_error error;
	make_scratch(world.log);
	make_scratch(world.state);
	open_world(&world);
	rival = NULL;
	steps_left = STEPS_MOST;
	must(world.store->ops->policy_put(world.store, FIRST, weir_span_of(ZONE("5")), &error), &error);
	must(weir_policy_append(world.store, world.bus, FIRST, 1000, WAIT_MS, &error), &error);
	return world;
}

static void end_world(struct world *world)
{
	close_world(world);
	scratch_remove(world->log), scratch_remove(world->state);
}

static uint64_t newest_of(struct weir_store *store, char text[1024])
{
	struct weir_policy_history history;
	struct weir_error error;
	must(weir_policy_history_load(store, &history, &error), &error);
	const struct weir_policy *newest = history.policies[history.count - 1];
	uint64_t version = newest->version;
	snprintf(text, 1024, "%s", newest->text);
	weir_policy_history_deinit(&history);
	return version;
}

/* What an archiver does: it arms the first policy's zone, or finishes what is there. */
static enum weir_status arm(struct world *world, int steps, const char *words)
{
	char text[1024];
	struct weir_policy *policy;
	struct weir_error error;
	uint64_t version = newest_of(world->store, text);
	must(weir_policy_decode(version, text, strlen(text), &policy, &error), &error);
	if (version == FIRST)
		weir_policy_arm(policy, 1, words);
	steps_left = steps;
	enum weir_status status = arming_policy_put(world->store, world->bus, FIRST, policy, WAIT_MS, &version, &error);
	steps_left = STEPS_MOST;
	weir_policy_free(policy);
	return status;
}

static void it_is_written_once_whenever_it_is_killed(void **state)
{
	(void)state;
	bool whole = false;
	for (int steps = 0; !whole; steps++) {
		struct world world = new_world();
		struct weir_policy_note note;
		struct weir_error error;
		char text[1024];
		uint64_t first, next, appended;
		assert_true(steps < STEPS_MOST);
		enum weir_status status = arm(&world, steps, "at most 1 of 120 keys");
		whole = status == WEIR_OK;
		assert_true(whole || status == WEIR_IO);
		close_world(&world);
		open_world(&world);
		assert_int_equal(arm(&world, STEPS_MOST, "at most 1 of 120 keys"), WEIR_OK);
		assert_int_equal(arm(&world, STEPS_MOST, "other words"), WEIR_OK); /* another archiver, behind it */
		assert_int_equal(newest_of(world.store, text), ARMED);
		assert_non_null(strstr(text, "at most 1 of 120 keys"));
		must(weir_policy_note_get(world.store, ARMED, &note, &error), &error);
		assert_string_equal(note.by, "weir");
		must(weir_policy_appended(world.store, world.bus, &appended, &error), &error);
		assert_int_equal(appended, ARMED);
		for (uint32_t partition = 0; partition < PARTITIONS; partition++) {
			must(world.bus->ops->extent(world.bus, WEIR_TOPIC_EVENTS, partition, &first, &next, &error), &error);
			assert_in_range(next, ARMED, ARMED + 1); /* once more where the note of it was not made */
		}
		end_world(&world);
	}
}

static void an_operators_policy_that_came_in_between_stays(void **state)
{
	(void)state;
	struct world world = new_world();
	char text[1024];
	rival = ZONE("9");
	assert_int_equal(arm(&world, STEPS_MOST, "at most 1 of 120 keys"), WEIR_AGAIN);
	rival = NULL;
	assert_int_equal(newest_of(world.store, text), ARMED);
	assert_null(strstr(text, "armed"));
	assert_non_null(strstr(text, "\"rate\":9"));
	/* Nor is it overwritten by one that still believes in the policy before. */
	struct weir_policy *policy;
	struct weir_error error;
	uint64_t version;
	must(weir_policy_decode(FIRST, ZONE("5"), strlen(ZONE("5")), &policy, &error), &error);
	weir_policy_arm(policy, 1, "at most 1 of 120 keys");
	assert_int_equal(arming_policy_put(world.store, world.bus, FIRST, policy, WAIT_MS, &version, &error), WEIR_AGAIN);
	weir_policy_free(policy);
	assert_int_equal(newest_of(world.store, text), ARMED);
	end_world(&world);
}

/* What an operator reads who was second: by whom the number is taken, and what to do. */
static void who_comes_second_is_told(void **state)
{
	(void)state;
	struct world world = new_world();
	struct weir_policy_history history;
	struct weir_policy *policy;
	struct weir_error error;
	uint64_t version;
	must(weir_policy_decode(FIRST, ZONE("7"), strlen(ZONE("7")), &policy, &error), &error);
	must(weir_policy_history_load(world.store, &history, &error), &error);
	rival = ZONE("9");
	const struct weir_policy *const *policies = (const struct weir_policy *const *)history.policies;
	assert_int_equal(weir_policy_number(world.store, policies, history.count, policy, &version, &error), WEIR_AGAIN);
	assert_string_equal(error.text,
	                    "weir itself or somebody else put policy 2 in force meanwhile: see `weir policy history`, and "
	                    "apply again");
	weir_policy_history_deinit(&history);
	weir_policy_free(policy);
	end_world(&world);
}

/* Which has found other words, as it looked at another day, and is killed before it has written them into the log. */
static void of_two_archivers_one_arms_and_the_other_finishes_it(void **state)
{
	(void)state;
	struct world world = new_world();
	struct weir_policy *policy;
	struct weir_policy_note note;
	struct weir_error error;
	char text[1024];
	uint64_t appended;
	must(weir_policy_decode(FIRST, ZONE("5"), strlen(ZONE("5")), &policy, &error), &error);
	weir_policy_arm(policy, 1, "at most 2 of 130 keys");
	rival = policy->text;
	assert_int_equal(arm(&world, STEPS_MOST, "at most 1 of 120 keys"), WEIR_AGAIN);
	rival = NULL;
	weir_policy_free(policy);
	must(weir_policy_appended(world.store, world.bus, &appended, &error), &error);
	assert_int_equal(appended, FIRST);
	assert_int_equal(arm(&world, STEPS_MOST, "at most 1 of 120 keys"), WEIR_OK);
	assert_int_equal(newest_of(world.store, text), ARMED);
	assert_non_null(strstr(text, "at most 2 of 130 keys"));
	must(weir_policy_note_get(world.store, ARMED, &note, &error), &error);
	assert_string_equal(note.by, "weir");
	must(weir_policy_appended(world.store, world.bus, &appended, &error), &error);
	assert_int_equal(appended, ARMED);
	end_world(&world);
}

/* One that can never be written is an error, which is told, and no policy that came in between. */
static void a_policy_that_does_not_fit_is_an_error(void **state)
{
	(void)state;
	struct world world = new_world();
	char *words = malloc(WEIR_POLICY_TEXT_MAX_BYTES + 1);
	memset(words, 'x', WEIR_POLICY_TEXT_MAX_BYTES);
	words[WEIR_POLICY_TEXT_MAX_BYTES] = '\0';
	assert_int_equal(arm(&world, STEPS_MOST, words), WEIR_INVALID);
	free(words);
	end_world(&world);
}

static enum weir_status open_again(void *context, struct weir_store **store, struct weir_error *error)
{
	return weir_store_sqlite_open(context, store, error);
}

static bool is_mine(void *context)
{
	return *(bool *)context;
}

/* Another archiver has the figures from then on. */
static void an_archiver_that_looks_no_more_shows_no_zone(void **state)
{
	(void)state;
	struct world world = new_world();
	struct weir_text page = {0};
	const struct weir_log log = {.fd = STDERR_FILENO, .level = WEIR_LOG_ERROR};
	bool mine = true;
	struct arming *arming = arming_new(&(struct arming_options){.bus = world.bus,
	                                                            .log = &log,
	                                                            .open_store = open_again,
	                                                            .store_context = world.state,
	                                                            .is_mine = is_mine,
	                                                            .context = &mine});
	arming_step(arming);
	arming_metrics(arming, &page);
	weir_text_append(&page, "", 1);
	assert_non_null(strstr(page.at, "weir_archiver_shadow_days_needed{zone=\"site\"} 2"));
	mine = false;
	arming_step(arming);
	weir_text_clear(&page);
	arming_metrics(arming, &page);
	weir_text_append(&page, "", 1);
	assert_null(strstr(page.at, "site"));
	weir_text_deinit(&page);
	arming_free(arming);
	end_world(&world);
}

static int64_t now_ms;

static int64_t clock_of_the_log(void)
{
	return now_ms;
}

static void step(struct arming *arming, int64_t after_ms)
{
	now_ms += after_ms;
	arming_step(arming);
}

/* What the log has, once more from its beginning. */
static const char *said(FILE *file, char text[4096])
{
	rewind(file);
	text[fread(text, 1, 4095, file)] = '\0';
	return text;
}

/* An operator's, whose command was killed behind the number. */
static void a_policy_that_stays_out_of_the_log_is_a_fault(void **state)
{
	(void)state;
	static const char words[] =
		"policy 2 is not in the whole log after minutes: partitions without it go by the one before, and zones that "
		"wait in shadow stay there. Waiting for it: apply it again (runbook: zone-armed)";
	enum { LONG_MS = 180000 };
	struct world world = new_world();
	struct weir_error error;
	char text[4096];
	bool mine = true;
	FILE *file = tmpfile();
	const struct weir_log log = {.fd = fileno(file), .level = WEIR_LOG_INFO, .clock_ms = clock_of_the_log};
	now_ms = 1000000;
	struct arming *arming = arming_new(&(struct arming_options){.bus = world.bus,
	                                                            .log = &log,
	                                                            .open_store = open_again,
	                                                            .store_context = world.state,
	                                                            .is_mine = is_mine,
	                                                            .context = &mine});
	step(arming, 0);
	must(real_store->policy_put(world.store, ARMED, weir_span_of(ZONE("9")), &error), &error);
	step(arming, 1000);
	step(arming, LONG_MS);
	assert_null(strstr(said(file, text), "whole log"));
	step(arming, 1000);
	assert_non_null(strstr(said(file, text), words));
	must(weir_policy_append(world.store, world.bus, ARMED, 1000, WAIT_MS, &error), &error);
	step(arming, 1000);
	assert_non_null(strstr(said(file, text), "the newest policy is in the whole log"));
	arming_free(arming);
	fclose(file);
	end_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_written_once_whenever_it_is_killed),
		cmocka_unit_test(an_operators_policy_that_came_in_between_stays),
		cmocka_unit_test(who_comes_second_is_told),
		cmocka_unit_test(of_two_archivers_one_arms_and_the_other_finishes_it),
		cmocka_unit_test(a_policy_that_does_not_fit_is_an_error),
		cmocka_unit_test(a_policy_that_stays_out_of_the_log_is_a_fault),
		cmocka_unit_test(an_archiver_that_looks_no_more_shows_no_zone),
	};
	return cmocka_run_group_tests_name("arming_policy", tests, NULL, NULL);
}

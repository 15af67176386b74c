/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of a subscriber over the local bus, with a target that remembers
 * what it was told and fails when it is told to.
 */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bus/local/bus_local.h"
#include "deploy/gateways/subscriber/subscriber.h"
#include "scratch.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

/* As a page shows its label. */
#define GATEWAY "gateway=\"fake:\\\"x\\\"\""

enum { PARTITIONS = 2, BLOCKED_MAX = 4096, PATIENCE_MS = 60000, HOUR_MS = 3600000 };

/* By how much the clock was set. */
static _Atomic int64_t step_s;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int status = (int)syscall(SYS_clock_gettime, clock, now);
	if (clock == CLOCK_REALTIME)
		now->tv_sec += step_s;
	return status;
}

/* What a target holds: keys that are blocked. Written by the loop, read by the test. */
struct fake {
	struct target target;
	pthread_mutex_t lock;
	char *blocked[BLOCKED_MAX];
	size_t count;
	unsigned copies, applies, checks;
	int64_t copied_ms; /* by the clock: the last copy */
	bool fails;        /* every call */
	bool emptied;      /* the next check finds that */
};

static size_t place_of(const struct fake *fake, struct weir_span key)
{
	for (size_t i = 0; i < fake->count; i++)
		if (weir_span_equal(key, weir_span_of(fake->blocked[i])))
			return i;
	return fake->count;
}

static void set_blocked(struct fake *fake, struct weir_span key, bool blocked)
{
	size_t place = place_of(fake, key);
	if (blocked && place == fake->count) {
		assert_true(fake->count < BLOCKED_MAX);
		fake->blocked[fake->count++] = weir_copy(key.at, key.length);
	} else if (!blocked && place < fake->count) {
		free(fake->blocked[place]);
		fake->blocked[place] = fake->blocked[--fake->count];
	}
}

static void forget_all(struct fake *fake)
{
	while (fake->count > 0)
		free(fake->blocked[--fake->count]);
}

static enum weir_status fake_copy(struct target *target, const struct block_table *table, int64_t now_ms,
                                  struct weir_error *error)
{
	struct fake *fake = (struct fake *)target;
	struct block_walk walk = {0};
	const struct block_entry *entry;
	pthread_mutex_lock(&fake->lock);
	fake->copies++;
	fake->copied_ms = now_ms;
	bool fails = fake->fails;
	if (!fails) {
		forget_all(fake);
		while ((entry = block_table_next(table, &walk)) != NULL)
			set_blocked(fake, block_entry_key(entry), true);
	}
	pthread_mutex_unlock(&fake->lock);
	return fails ? weir_fail(error, WEIR_IO, "away") : WEIR_OK;
}

static enum weir_status fake_apply(struct target *target, const struct block_table *table, int64_t now_ms,
                                   struct weir_error *error)
{
	(void)now_ms;
	struct fake *fake = (struct fake *)target;
	uint32_t count;
	struct block_entry *const *changes = block_table_changes(table, &count);
	pthread_mutex_lock(&fake->lock);
	fake->applies++;
	bool fails = fake->fails;
	for (uint32_t i = 0; i < count && !fails; i++)
		set_blocked(fake, block_entry_key(changes[i]), changes[i]->state == BLOCK_LIVE);
	pthread_mutex_unlock(&fake->lock);
	return fails ? weir_fail(error, WEIR_IO, "away") : WEIR_OK;
}

static enum weir_status fake_check(struct target *target, const struct block_table *table, int64_t now_ms,
                                   struct weir_error *error)
{
	(void)table;
	(void)now_ms;
	struct fake *fake = (struct fake *)target;
	pthread_mutex_lock(&fake->lock);
	fake->checks++;
	bool emptied = fake->emptied;
	fake->emptied = false;
	pthread_mutex_unlock(&fake->lock);
	return emptied ? weir_fail(error, WEIR_AGAIN, "emptied") : WEIR_OK;
}

static enum weir_status fake_close(struct target *target, struct weir_error *error)
{
	(void)target;
	(void)error;
	return WEIR_OK;
}

static const struct target_ops changes_ops = {.kind = "fake",
                                              .keeps_json = true,
                                              .counts_down = true,
                                              .check_after_ms = 20,
                                              .copy = fake_copy,
                                              .apply = fake_apply,
                                              .check = fake_check,
                                              .close = fake_close};
static const struct target_ops copies_ops = {.kind = "fake",
                                             .copies_only = true,
                                             .check_after_ms = 20,
                                             .copy = fake_copy,
                                             .check = fake_check,
                                             .close = fake_close};
static const struct target_ops burst_ops = {.kind = "fake",
                                            .burst = 3,
                                            .copies_only = true,
                                            .check_after_ms = 20,
                                            .copy = fake_copy,
                                            .check = fake_check,
                                            .close = fake_close};
static const struct target_ops each_ops = {.kind = "fake",
                                           .keeps_json = true,
                                           .wants_each = true,
                                           .check_after_ms = 20,
                                           .copy = fake_copy,
                                           .apply = fake_apply,
                                           .check = fake_check,
                                           .close = fake_close};

struct scene {
	char *directory;
	struct weir_bus *bus;
	struct weir_producer *producer;
	struct fake fake;
	struct weir_log log;
	_Atomic bool stop;
	struct subscriber *subscriber;
	pthread_t thread;
	bool running;
	enum weir_status status;
	struct weir_error error;
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof *scene);
	*state = scene;
	step_s = 0;
	scene->directory = scratch_new();
	struct weir_bus_local_options options = {.partitions = PARTITIONS};
	if (weir_bus_local_open(scene->directory, &options, &scene->bus, &scene->error) != WEIR_OK ||
	    scene->bus->ops->producer_new(scene->bus, &scene->producer, &scene->error) != WEIR_OK)
		fail_msg("%s", scene->error.text);
	scene->log = (struct weir_log){.fd = STDERR_FILENO, .level = WEIR_LOG_ERROR};
	scene->fake.target.ops = &changes_ops;
	pthread_mutex_init(&scene->fake.lock, NULL);
	return 0;
}

static void *run(void *context)
{
	struct scene *scene = context;
	scene->status = subscriber_run(scene->subscriber, scene->bus, &scene->error);
	return NULL;
}

static void start_with(struct scene *scene, struct subscriber_options options)
{
	options.partitions = PARTITIONS;
	options.target = &scene->fake.target;
	options.max = options.max > 0 ? options.max : 1000;
	options.once_wait_ms = options.once_wait_ms > 0 ? options.once_wait_ms : PATIENCE_MS;
	options.log = &scene->log;
	options.stop = &scene->stop;
	scene->stop = false;
	scene->subscriber = subscriber_new(&options);
	assert_int_equal(0, pthread_create(&scene->thread, NULL, run, scene));
	scene->running = true;
}

static void start(struct scene *scene)
{
	start_with(scene, (struct subscriber_options){.interval_ms = 0});
}

static void join(struct scene *scene)
{
	pthread_join(scene->thread, NULL);
	scene->running = false;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	scene->stop = true;
	if (scene->running)
		join(scene);
	subscriber_free(scene->subscriber);
	forget_all(&scene->fake);
	scene->bus->ops->producer_free(scene->producer);
	scene->bus->ops->close(scene->bus);
	scratch_remove(scene->directory);
	free(scene->directory);
	free(scene);
	return 0;
}

static void publish(struct scene *scene, uint32_t partition, const char *key, const char *payload)
{
	struct weir_delivery delivery;
	if (scene->bus->ops->send(scene->producer, WEIR_TOPIC_DECISIONS, partition, weir_span_of(key),
	                          weir_span_of(payload), 0, &scene->error) != WEIR_OK)
		fail_msg("%s", scene->error.text);
	assert_int_equal(1, scene->bus->ops->poll(scene->producer, &delivery, 1, PATIENCE_MS));
	assert_int_equal(WEIR_OK, delivery.status);
}

/* A decision on a key of the zone; until 0: a lift. */
static void decide(struct scene *scene, const char *zone, const char *key, unsigned offset, int64_t until_ms)
{
	char name[128], json[512];
	int64_t now_ms = weir_wall_ms();
	snprintf(name, sizeof name, "%s|%s", zone, key);
	snprintf(json, sizeof json,
	         "{\"id\":\"1-%u-0\",\"zone\":\"%s\",\"key\":[\"%s\"],\"action\":\"%s\",\"at\":%lld,\"until\":%lld}",
	         offset, zone, key, until_ms > 0 ? "block" : "lift", (long long)now_ms,
	         (long long)(until_ms > 0 ? until_ms : now_ms));
	publish(scene, 1, name, json);
}

static bool is_blocked(struct scene *scene, const char *key)
{
	pthread_mutex_lock(&scene->fake.lock);
	bool blocked = place_of(&scene->fake, weir_span_of(key)) < scene->fake.count;
	pthread_mutex_unlock(&scene->fake.lock);
	return blocked;
}

#define AWAIT(condition)                                    \
	do {                                                    \
		int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS; \
		while (!(condition)) {                              \
			if (weir_monotonic_ms() > end_ms)               \
				fail_msg("not in time: %s", #condition);    \
			usleep(1000);                                   \
		}                                                   \
	} while (0)

static unsigned counted(struct scene *scene, const unsigned *counter)
{
	pthread_mutex_lock(&scene->fake.lock);
	unsigned value = *counter;
	pthread_mutex_unlock(&scene->fake.lock);
	return value;
}

static void set(struct scene *scene, bool *flag, bool value)
{
	pthread_mutex_lock(&scene->fake.lock);
	*flag = value;
	pthread_mutex_unlock(&scene->fake.lock);
}

static bool page_has(struct scene *scene, const char *line)
{
	struct weir_text page = {0};
	const struct subscriber_row row = {scene->subscriber, {.at = "fake:\"x\"", .length = 8}};
	subscriber_metrics(&row, 1, &page);
	weir_text_append(&page, "", 1);
	bool found = strstr(page.at, line) != NULL;
	weir_text_deinit(&page);
	return found;
}

static bool is_ready(struct scene *scene)
{
	struct weir_text why = {0};
	bool ready = subscriber_ready(scene->subscriber, &why);
	assert_int_equal(!ready, why.length > 0);
	weir_text_deinit(&why);
	return ready;
}

static int64_t later(int64_t more_ms)
{
	return weir_wall_ms() + more_ms;
}

/* ---- */

static void test_what_there_was_is_copied_once(void **state)
{
	struct scene *scene = *state;
	decide(scene, "site", "a", 1, later(600000));
	decide(scene, "site", "b", 2, later(600000));
	decide(scene, "site", "a", 3, 0);
	decide(scene, "site", "c", 4, later(-1000));
	publish(scene, 0, "x", "no decision");
	start(scene);
	AWAIT(is_ready(scene));
	assert_true(is_blocked(scene, "b"));
	assert_int_equal(1, scene->fake.count);
	assert_int_equal(1, counted(scene, &scene->fake.copies));
	assert_int_equal(0, counted(scene, &scene->fake.applies));
	assert_true(page_has(scene, "decisions_total{" GATEWAY ",result=\"malformed\"} 1\n"));
	assert_true(page_has(scene, "weir_subscribe_entries{" GATEWAY "} 1\n"));
	assert_true(page_has(scene, "weir_subscribe_lag_messages{" GATEWAY "} 0\n"));
	assert_true(page_has(scene, "weir_subscribe_delay_seconds_count{" GATEWAY "} 0\n")); /* it was decided before */
}

static void test_changes_reach_the_target(void **state)
{
	struct scene *scene = *state;
	start(scene);
	AWAIT(is_ready(scene));
	decide(scene, "site", "a", 1, later(600000));
	AWAIT(is_blocked(scene, "a"));
	decide(scene, "site", "a", 2, 0);
	AWAIT(!is_blocked(scene, "a"));
	decide(scene, "site", "a", 1, later(600000)); /* again, from one that lags */
	decide(scene, "site", "b", 3, later(300));
	AWAIT(is_blocked(scene, "b"));
	AWAIT(!is_blocked(scene, "b")); /* by itself */
	assert_false(is_blocked(scene, "a"));
	assert_int_equal(1, counted(scene, &scene->fake.copies));
	AWAIT(page_has(scene, "weir_subscribe_delay_seconds_count{" GATEWAY "} 3\n"));
	assert_true(page_has(scene, "decisions_total{" GATEWAY ",result=\"older\"} 1\n"));
}

static void test_a_target_that_was_away_gets_a_copy(void **state)
{
	struct scene *scene = *state;
	start(scene);
	AWAIT(is_ready(scene));
	decide(scene, "site", "a", 1, later(600000));
	AWAIT(is_blocked(scene, "a"));
	set(scene, &scene->fake.fails, true);
	decide(scene, "site", "b", 2, later(600000));
	AWAIT(!is_ready(scene));
	decide(scene, "site", "a", 3, 0);
	unsigned before = counted(scene, &scene->fake.copies);
	AWAIT(counted(scene, &scene->fake.copies) > before + 1); /* it tries */
	set(scene, &scene->fake.fails, false);
	AWAIT(is_ready(scene));
	assert_true(is_blocked(scene, "b"));
	assert_false(is_blocked(scene, "a"));
	/* And how long each of them took is counted, as of one that was applied. */
	AWAIT(page_has(scene, "weir_subscribe_delay_seconds_count{" GATEWAY "} 3\n"));
}

static void test_a_list_that_was_emptied_is_written_again(void **state)
{
	struct scene *scene = *state;
	decide(scene, "site", "a", 1, later(600000));
	start(scene);
	AWAIT(is_blocked(scene, "a"));
	pthread_mutex_lock(&scene->fake.lock);
	forget_all(&scene->fake);
	scene->fake.emptied = true;
	pthread_mutex_unlock(&scene->fake.lock);
	AWAIT(is_blocked(scene, "a"));
	assert_int_equal(2, counted(scene, &scene->fake.copies));
}

static void test_a_target_of_copies_waits_for_its_interval(void **state)
{
	struct scene *scene = *state;
	scene->fake.target.ops = &copies_ops;
	start_with(scene, (struct subscriber_options){.interval_ms = 400});
	AWAIT(is_ready(scene));
	unsigned before = counted(scene, &scene->fake.copies);
	int64_t start_ms = weir_monotonic_ms();
	char key[16];
	for (unsigned i = 1; i <= 100; i++) {
		snprintf(key, sizeof key, "k%u", i);
		decide(scene, "site", key, i, later(600000));
	}
	AWAIT(is_blocked(scene, "k100"));
	int64_t took_ms = weir_monotonic_ms() - start_ms;
	assert_true(counted(scene, &scene->fake.copies) - before <= 2 + took_ms / 400);
}

static void test_the_first_changes_do_not_wait(void **state)
{
	struct scene *scene = *state;
	scene->fake.target.ops = &burst_ops;
	start_with(scene, (struct subscriber_options){.interval_ms = 10 * PATIENCE_MS});
	AWAIT(is_ready(scene));
	decide(scene, "site", "a", 1, later(600000));
	AWAIT(is_blocked(scene, "a"));
	decide(scene, "site", "b", 2, later(600000));
	AWAIT(is_blocked(scene, "b"));
	decide(scene, "site", "c", 3, later(600000));
	AWAIT(page_has(scene, "decisions_total{" GATEWAY ",result=\"applied\"} 3\n"));
	assert_int_equal(3, counted(scene, &scene->fake.copies)); /* the one at the start is among them */
	assert_false(is_blocked(scene, "c"));
}

static void test_each_change_by_itself(void **state)
{
	struct scene *scene = *state;
	scene->fake.target.ops = &each_ops;
	start(scene);
	AWAIT(is_ready(scene));
	for (unsigned i = 0; i < 50; i++) {
		decide(scene, "site", "a", 2 * i + 1, later(600000));
		decide(scene, "site", "a", 2 * i + 2, 0);
	}
	AWAIT(page_has(scene, "decisions_total{" GATEWAY ",result=\"applied\"} 100\n"));
	assert_int_equal(100, counted(scene, &scene->fake.applies));
}

static void test_zones_that_are_not_asked_for(void **state)
{
	struct scene *scene = *state;
	const char *zones[] = {"shop", "mail"};
	start_with(scene, (struct subscriber_options){.zones = zones, .zone_count = 2});
	AWAIT(is_ready(scene));
	decide(scene, "site", "a", 1, later(600000));
	decide(scene, "mail", "b", 2, later(600000));
	AWAIT(is_blocked(scene, "b"));
	assert_false(is_blocked(scene, "a"));
	assert_true(page_has(scene, "decisions_total{" GATEWAY ",result=\"other_zone\"} 1\n"));
}

static void test_more_than_it_may_hold(void **state)
{
	struct scene *scene = *state;
	start_with(scene, (struct subscriber_options){.max = 10});
	AWAIT(is_ready(scene));
	char key[16];
	for (unsigned i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "k%u", i);
		decide(scene, "site", key, i + 1, later(600000 + 1000 * i));
	}
	AWAIT(is_blocked(scene, "k99"));
	AWAIT(page_has(scene, "weir_subscribe_left_out_total{" GATEWAY "} 90\n"));
	pthread_mutex_lock(&scene->fake.lock);
	assert_int_equal(10, scene->fake.count);
	pthread_mutex_unlock(&scene->fake.lock);
	assert_true(is_blocked(scene, "k90"));
}

static void test_once_copies_and_ends(void **state)
{
	struct scene *scene = *state;
	decide(scene, "site", "a", 1, later(600000));
	start_with(scene, (struct subscriber_options){.once = true});
	join(scene);
	assert_int_equal(WEIR_OK, scene->status);
	assert_true(is_blocked(scene, "a"));
}

static void test_once_says_that_it_failed(void **state)
{
	struct scene *scene = *state;
	scene->fake.fails = true;
	start_with(scene, (struct subscriber_options){.once = true});
	join(scene);
	assert_int_equal(WEIR_IO, scene->status);
	assert_string_equal("away", scene->error.text);
}

static void test_a_clock_that_was_ahead_for_a_moment(void **state)
{
	struct scene *scene = *state;
	int64_t now_ms = weir_wall_ms();
	decide(scene, "site", "a", 1, now_ms + HOUR_MS);
	decide(scene, "site", "lifted", 2, now_ms + HOUR_MS);
	decide(scene, "site", "long", 3, now_ms + 10 * HOUR_MS);
	start(scene);
	AWAIT(is_blocked(scene, "a") && is_ready(scene));
	decide(scene, "site", "lifted", 4, 0);
	AWAIT(!is_blocked(scene, "lifted"));
	step_s = 2 * HOUR_MS / 1000;
	AWAIT(!is_blocked(scene, "a"));
	assert_true(is_blocked(scene, "long"));
	decide(scene, "site", "b", 5, now_ms + HOUR_MS);
	AWAIT(page_has(scene, "decisions_total{" GATEWAY ",result=\"over\"} 1\n"));
	assert_false(is_blocked(scene, "b"));
	step_s = 0;
	AWAIT(is_blocked(scene, "a") && is_blocked(scene, "b") && is_ready(scene));
	assert_true(is_blocked(scene, "long"));
	assert_false(is_blocked(scene, "lifted"));
	decide(scene, "site", "a", 6, 0);
	AWAIT(!is_blocked(scene, "a"));
}

static void test_a_clock_that_was_behind(void **state)
{
	struct scene *scene = *state;
	int64_t now_ms = weir_wall_ms();
	decide(scene, "site", "a", 1, now_ms + HOUR_MS);
	decide(scene, "site", "over", 2, now_ms - HOUR_MS);
	step_s = -72 * HOUR_MS / 1000;
	start(scene);
	AWAIT(is_ready(scene));
	assert_true(is_blocked(scene, "a") && is_blocked(scene, "over"));
	step_s = -1;
	AWAIT(counted(scene, &scene->fake.copies) == 2);
	step_s = 0; /* is no step, or a leap second were one */
	AWAIT(!is_blocked(scene, "over"));
	decide(scene, "site", "b", 3, now_ms + HOUR_MS);
	AWAIT(is_blocked(scene, "b"));
	assert_int_equal(2, counted(scene, &scene->fake.copies)); /* is seen at once, and once */
	assert_true(is_blocked(scene, "a") && is_ready(scene));
	assert_true(scene->fake.copied_ms >= now_ms - 1000);
}

/* Several may share such a list: what one clock says is over stays in it for the others. */
static void test_a_list_that_does_not_count_down_is_not_written_again(void **state)
{
	struct scene *scene = *state;
	int64_t now_ms = weir_wall_ms();
	scene->fake.target.ops = &each_ops;
	decide(scene, "site", "a", 1, now_ms + HOUR_MS);
	decide(scene, "site", "long", 2, now_ms + 10 * HOUR_MS);
	start(scene);
	AWAIT(is_blocked(scene, "a") && is_ready(scene));
	step_s = 2 * HOUR_MS / 1000;
	AWAIT(!is_blocked(scene, "a"));
	unsigned checks = counted(scene, &scene->fake.checks);
	AWAIT(counted(scene, &scene->fake.checks) > checks + 1);
	assert_int_equal(1, counted(scene, &scene->fake.copies));
	step_s = 0;
	AWAIT(is_blocked(scene, "a") && is_ready(scene));
	assert_int_equal(2, counted(scene, &scene->fake.copies));
}

static enum weir_status refuse_consumer(struct weir_bus *bus, enum weir_topic topic, const char *group,
                                        struct weir_consumer **consumer, struct weir_error *error)
{
	(void)bus;
	(void)topic;
	(void)group;
	(void)consumer;
	return weir_fail(error, WEIR_IO, "no consumer to be had");
}

static void test_once_does_not_wait_for_ever(void **state)
{
	struct scene *scene = *state;
	struct weir_bus *bus = scene->bus;
	struct weir_bus_ops ops = *bus->ops;
	ops.consumer_new = refuse_consumer;
	struct weir_bus refusing = {.ops = &ops, .partitions = bus->partitions};
	scene->bus = &refusing;
	start_with(scene, (struct subscriber_options){.once = true, .once_wait_ms = 200});
	join(scene);
	scene->bus = bus;
	assert_int_equal(WEIR_IO, scene->status);
	assert_string_equal("no consumer to be had", scene->error.text);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_what_there_was_is_copied_once),
		CASE(test_changes_reach_the_target),
		CASE(test_a_target_that_was_away_gets_a_copy),
		CASE(test_a_list_that_was_emptied_is_written_again),
		CASE(test_a_target_of_copies_waits_for_its_interval),
		CASE(test_the_first_changes_do_not_wait),
		CASE(test_each_change_by_itself),
		CASE(test_zones_that_are_not_asked_for),
		CASE(test_more_than_it_may_hold),
		CASE(test_once_copies_and_ends),
		CASE(test_once_says_that_it_failed),
		CASE(test_once_does_not_wait_for_ever),
		CASE(test_a_clock_that_was_ahead_for_a_moment),
		CASE(test_a_clock_that_was_behind),
		CASE(test_a_list_that_does_not_count_down_is_not_written_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The policy topic as its readers take it: the newest by version, whatever else lies there. */
#include "common/bus/local/bus_local.h"
#include "common/cluster/policy_feed.h"

#include "common/base/clock.h"
#include "common/frame/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "scratch.h"

#include <cmocka.h>

struct scene {
	char *directory;
	struct weir_bus *bus;
	struct weir_producer *producer;
	struct weir_policy_feed *feed;
	struct weir_log log;
};

static void open_feed(struct scene *scene)
{
	struct weir_error error;
	struct weir_policy_feed_options options = {.bus = scene->bus, .log = &scene->log, .part = "test"};
	weir_policy_feed_free(scene->feed);
	if (weir_policy_feed_new(&options, &scene->feed, &error) != WEIR_OK)
		fail_msg("%s", error.text);
}

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof *scene);
	struct weir_bus_local_options options = {.partitions = 2};
	struct weir_error error;
	scene->directory = scratch_new();
	if (weir_bus_local_open(scene->directory, &options, &scene->bus, &error) != WEIR_OK ||
	    scene->bus->ops->producer_new(scene->bus, &scene->producer, &error) != WEIR_OK)
		return -1;
	scene->log = (struct weir_log){.fd = STDERR_FILENO, .level = WEIR_LOG_ERROR};
	open_feed(scene);
	*state = scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *scene = *state;
	weir_policy_feed_free(scene->feed);
	scene->bus->ops->producer_free(scene->producer);
	scene->bus->ops->close(scene->bus);
	scratch_remove(scene->directory);
	free(scene->directory);
	free(scene);
	return 0;
}

static void send(struct scene *scene, const void *bytes, size_t length)
{
	struct weir_error error;
	struct weir_delivery delivery;
	struct weir_span no_key = {0}, payload = {.at = bytes, .length = (uint32_t)length};
	if (scene->bus->ops->send(scene->producer, WEIR_TOPIC_POLICY, 0, no_key, payload, 0, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	assert_int_equal(scene->bus->ops->poll(scene->producer, &delivery, 1, 30000), 1);
	assert_int_equal(delivery.status, WEIR_OK);
}

/* A policy of one zone, whose name says the version. */
static void send_policy(struct scene *scene, uint64_t version)
{
	char zones[256];
	struct weir_json_document *document;
	struct weir_error error;
	struct weir_policy *policy;
	int used = snprintf(zones, sizeof zones,
	                    "[{\"name\": \"z%llu\", \"key\": [\"ip\"], \"limits\": [{\"algorithm\": \"fixed_window\", "
	                    "\"rate\": 1, \"window\": \"1m\"}]}]",
	                    (unsigned long long)version);
	assert_int_equal(weir_json_parse("zones", zones, (size_t)used, &document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	assert_int_equal(weir_policy_parse(&root, NULL, &policy, &error), WEIR_OK);
	size_t length;
	char *message = weir_frame_control(WEIR_FRAME_POLICY, 1, version, weir_span_of(policy->text), &length);
	send(scene, message, length);
	free(message);
	weir_policy_free(policy);
	weir_json_document_free(document);
}

static void send_control(struct scene *scene, enum weir_frame_kind kind, uint64_t version, const char *body)
{
	size_t length;
	char *message = weir_frame_control(kind, 1, version, weir_span_of(body), &length);
	send(scene, message, length);
	free(message);
}

static void poll_feed(struct scene *scene)
{
	struct weir_error error;
	if (weir_policy_feed_poll(scene->feed, 10, &error) != WEIR_OK)
		fail_msg("%s", error.text);
}

static void await_version(struct scene *scene, uint64_t version)
{
	const struct weir_policy *newest = NULL;
	for (int64_t end_ms = weir_monotonic_ms() + 30000; weir_monotonic_ms() < end_ms;) {
		poll_feed(scene);
		newest = weir_policy_feed_newest(scene->feed);
		if (newest != NULL && newest->version == version)
			break;
	}
	char name[32];
	snprintf(name, sizeof name, "z%llu", (unsigned long long)version);
	assert_non_null(newest);
	assert_int_equal(newest->version, version);
	assert_string_equal(newest->zones[0].name, name);
}

static void an_empty_topic_is_known_to_be_empty(void **state)
{
	struct scene *scene = *state;
	assert_false(weir_policy_feed_caught_up(scene->feed));
	poll_feed(scene);
	assert_true(weir_policy_feed_caught_up(scene->feed));
	assert_null(weir_policy_feed_newest(scene->feed));
	send_policy(scene, 1);
	await_version(scene, 1);
}

static void the_newest_by_version_counts(void **state)
{
	struct scene *scene = *state;
	send_policy(scene, 1);
	send_policy(scene, 3);
	send_policy(scene, 2); /* two appliers at once: their records may come in either order */
	send_policy(scene, 3);
	await_version(scene, 3);
	while (!weir_policy_feed_caught_up(scene->feed))
		poll_feed(scene);
	const struct weir_policy *newest = weir_policy_feed_newest(scene->feed);
	weir_policy_feed_forget(scene->feed, 3);
	assert_ptr_equal(weir_policy_feed_newest(scene->feed), newest);
	send_policy(scene, 4);
	await_version(scene, 4);
	for (enum weir_policy_skip why = 0; why < WEIR_POLICY_SKIPS; why++)
		assert_int_equal(weir_policy_feed_skipped(scene->feed, why), 0);
}

static void what_is_no_policy_is_passed_over(void **state)
{
	struct scene *scene = *state;
	send_policy(scene, 1);
	send(scene, "", 0);
	send(scene, "hello", 5);
	send_control(scene, WEIR_FRAME_COMMAND, 7, "{}");
	send_control(scene, WEIR_FRAME_POLICY, 8, "{\"zones\":[{}]}");
	send_control(scene, WEIR_FRAME_POLICY, 8, "nothing");
	send_control(scene, WEIR_FRAME_POLICY, 0, "{\"zones\":[]}");
	size_t length;
	char *newer = weir_frame_control(WEIR_FRAME_POLICY, 1, 9, weir_span_of("{}"), &length);
	newer[2] = 9; /* the form of some later program */
	send(scene, newer, length);
	free(newer);
	for (int i = 0; i < 100; i++)
		send(scene, "flood", 5);
	for (int64_t end_ms = weir_monotonic_ms() + 30000;
	     weir_policy_feed_skipped(scene->feed, WEIR_POLICY_SKIP_FOREIGN) < 106 && weir_monotonic_ms() < end_ms;)
		poll_feed(scene);
	assert_int_equal(weir_policy_feed_beyond(scene->feed), 2); /* the one in force is not known here */
	assert_int_equal(weir_policy_feed_newest(scene->feed)->version, 1);
	send_policy(scene, 2);
	await_version(scene, 2);
	assert_int_equal(weir_policy_feed_beyond(scene->feed), 2); /* a later one is */
	assert_int_equal(weir_policy_feed_skipped(scene->feed, WEIR_POLICY_SKIP_FOREIGN), 106);
	assert_int_equal(weir_policy_feed_skipped(scene->feed, WEIR_POLICY_SKIP_NEWER), 1);
	assert_true(weir_policy_feed_caught_up(scene->feed));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_empty_topic_is_known_to_be_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(the_newest_by_version_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_policy_is_passed_over, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

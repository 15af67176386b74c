/* SPDX-License-Identifier: Apache-2.0 */
/* Which policies a collector matches by: the newest that its sources can be matched by, once the topic is read. */
#include "collector/daemon/policies.h"

#include "collector/follow/inputs.h"
#include "common/base/clock.h"
#include "common/bus/local/bus_local.h"
#include "common/frame/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "scratch.h"

#include <cmocka.h>

enum { TOO_MANY_FIELDS = WEIR_FIELD_MAX };

struct scene {
	char *directory;
	struct weir_bus *bus;
	struct weir_producer *producer;
	struct weir_config *config;
	struct policies *policies;
	struct weir_log log;
	FILE *said;
	char lists[300];
};

static int setup(void **state)
{
	static const char text[] =
		"{\"bus\": {\"type\": \"kafka\", \"brokers\": \"none:1\"}, \"sources\": [{\"type\": \"file\", \"path\": "
		"\"/nowhere\", \"format\": \"combined\"}, {\"type\": \"file\", \"path\": \"/neither\", \"format\": {\"type\": "
		"\"pattern\", \"pattern\": \"^(?<time>\\\\S+) (?<ip>\\\\S+) (?<session>\\\\S+)\"}}]}";
	struct scene *scene = calloc(1, sizeof *scene);
	struct weir_bus_local_options options = {.partitions = 1};
	struct weir_error error;
	scene->directory = scratch_new();
	scene->said = tmpfile();
	snprintf(scene->lists, sizeof scene->lists, "%s/lists", scene->directory);
	scene->log = (struct weir_log){.fd = fileno(scene->said), .level = WEIR_LOG_INFO};
	if (weir_config_parse("config", text, strlen(text), &scene->config, &error) != WEIR_OK ||
	    weir_bus_local_open(scene->directory, &options, &scene->bus, &error) != WEIR_OK ||
	    scene->bus->ops->producer_new(scene->bus, &scene->producer, &error) != WEIR_OK ||
	    policies_new(scene->config, scene->bus, scene->lists, &scene->log, &scene->policies, &error) != WEIR_OK)
		return -1;
	*state = scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *scene = *state;
	policies_free(scene->policies);
	weir_config_free(scene->config);
	scene->bus->ops->producer_free(scene->producer);
	scene->bus->ops->close(scene->bus);
	fclose(scene->said);
	scratch_remove(scene->directory);
	free(scene->directory);
	free(scene);
	return 0;
}

static void apply_zones(struct scene *scene, uint64_t version, const char *zones)
{
	struct weir_json_document *document;
	struct weir_error error;
	struct weir_policy *policy;
	assert_int_equal(weir_json_parse("zones", zones, strlen(zones), &document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	assert_int_equal(weir_policy_parse(&root, NULL, &policy, &error), WEIR_OK);
	size_t length;
	char *message = weir_frame_control(WEIR_FRAME_POLICY, 1, version, weir_span_of(policy->text), &length);
	struct weir_delivery delivery;
	struct weir_span no_key = {0}, payload = {.at = message, .length = (uint32_t)length};
	assert_int_equal(scene->bus->ops->send(scene->producer, WEIR_TOPIC_POLICY, 0, no_key, payload, 0, &error), WEIR_OK);
	assert_int_equal(scene->bus->ops->poll(scene->producer, &delivery, 1, 30000), 1);
	free(message);
	weir_policy_free(policy);
	weir_json_document_free(document);
}

#define LIMITS "\"limits\": [{\"algorithm\": \"fixed_window\", \"rate\": 1, \"window\": \"1m\"}]"

/* A policy with a zone for each of the keys. */
static void apply(struct scene *scene, uint64_t version, const char *const *keys, size_t count)
{
	struct weir_text zones = {0};
	for (size_t i = 0; i < count; i++)
		weir_text_printf(&zones, "%s{\"name\": \"%s\", \"key\": [\"%s\"], " LIMITS "}", i == 0 ? "[" : ", ", keys[i],
		                 keys[i]);
	weir_text_append(&zones, "]", 2);
	apply_zones(scene, version, zones.at);
	weir_text_deinit(&zones);
}

static const struct weir_policy *await_policy(struct scene *scene)
{
	const struct weir_policy *policy = NULL;
	for (int64_t end_ms = weir_monotonic_ms() + 30000; policy == NULL && weir_monotonic_ms() < end_ms;)
		policy = policies_poll(scene->policies, 10);
	assert_non_null(policy);
	return policy;
}

/* In how many lines of the log it said so. */
static unsigned times_said(struct scene *scene, const char *words)
{
	char line[4096];
	unsigned count = 0;
	rewind(scene->said);
	while (fgets(line, sizeof line, scene->said) != NULL)
		count += strstr(line, words) != NULL;
	fseek(scene->said, 0, SEEK_END);
	return count;
}

static bool is_ready(struct scene *scene, const char *why)
{
	struct weir_text text = {0};
	bool ready = policies_ready(scene->policies, &text);
	weir_text_append(&text, "", 1);
	assert_non_null(strstr(text.at, why));
	weir_text_deinit(&text);
	return ready;
}

static void the_lack_of_a_policy_is_said_once(void **state)
{
	struct scene *scene = *state;
	for (int i = 0; i < 5; i++)
		assert_null(policies_poll(scene->policies, 1));
	assert_true(policies_known(scene->policies));
	assert_int_equal(times_said(scene, "no policy yet: run `weir policy apply --config FILE`"), 1);
	assert_false(is_ready(scene, "no policy yet"));
	apply(scene, 1, (const char *[]){"ip"}, 1);
	assert_int_equal(await_policy(scene)->version, 1);
	assert_true(is_ready(scene, ""));
	assert_null(policies_poll(scene->policies, 1));
}

static void the_newest_is_given_and_older_ones_are_passed_by(void **state)
{
	struct scene *scene = *state;
	for (uint64_t version = 1; version <= 200; version++)
		apply(scene, version, (const char *[]){"ip"}, 1);
	assert_int_equal(await_policy(scene)->version, 200);
	apply(scene, 201, (const char *[]){"ip", "path"}, 2);
	const struct weir_policy *policy = await_policy(scene);
	policies_forget(scene->policies, 201);
	assert_int_equal(policy->zone_count, 2);
}

static void fields_that_no_source_gives_are_a_warning(void **state)
{
	struct scene *scene = *state;
	apply(scene, 1, (const char *[]){"ip", "session", "referer", "tenant"}, 4);
	assert_int_equal(await_policy(scene)->version, 1);
	assert_int_equal(times_said(scene, "never matches here"), 1);
	assert_int_equal(times_said(scene, "zone \"tenant\" never matches here: no source of this collector provides the "
	                                   "field \"tenant\""),
	                 1);
	assert_true(is_ready(scene, ""));
}

static void what_cannot_be_used_leaves_the_one_before_in_use(void **state)
{
	struct scene *scene = *state;
	static char names[TOO_MANY_FIELDS][16];
	const char *keys[TOO_MANY_FIELDS];
	for (size_t i = 0; i < TOO_MANY_FIELDS; i++) {
		snprintf(names[i], sizeof names[i], "field%zu", i);
		keys[i] = names[i];
	}
	apply(scene, 1, (const char *[]){"ip"}, 1);
	const struct weir_policy *first = await_policy(scene);
	apply(scene, 2, keys, TOO_MANY_FIELDS);
	for (int64_t end_ms = weir_monotonic_ms() + 30000;
	     times_said(scene, "cannot use policy 2") == 0 && weir_monotonic_ms() < end_ms;)
		assert_null(policies_poll(scene->policies, 10));
	assert_int_equal(times_said(scene, "The previous one stays in use"), 1);
	assert_int_equal(first->version, 1);
	assert_false(is_ready(scene, "cannot use policy 2"));
	apply(scene, 3, (const char *[]){"ip"}, 1);
	assert_int_equal(await_policy(scene)->version, 3);
	assert_true(is_ready(scene, ""));
}

/* A policy whose zone exempts a list. */
static void apply_list(struct scene *scene, uint64_t version, const char *path)
{
	char zones[1024];
	snprintf(zones, sizeof zones,
	         "[{\"name\": \"a\", \"key\": [\"ip\"], \"exempt\": [{\"list\": \"%s\"}], " LIMITS "}]", path);
	apply_zones(scene, version, zones);
}

static void write_list(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void await_words(struct scene *scene, const char *words)
{
	for (int64_t end_ms = weir_monotonic_ms() + 30000; times_said(scene, words) == 0 && weir_monotonic_ms() < end_ms;)
		assert_null(policies_poll(scene->policies, 10));
	assert_int_equal(times_said(scene, words), 1);
}

static void a_list_that_changes_gives_the_policy_again(void **state)
{
	struct scene *scene = *state;
	char path[512];
	snprintf(path, sizeof path, "%s/list", scene->directory);
	apply_list(scene, 1, path);
	await_words(scene, "cannot use policy 1: zone \"a\", exempt: cannot open");
	assert_false(is_ready(scene, "cannot use policy 1"));
	write_list(path, "192.0.2.1\n");
	assert_int_equal(await_policy(scene)->version, 1);
	assert_true(is_ready(scene, ""));
	write_list(path, "192.0.2.1\n192.0.2.2\n");
	assert_int_equal(await_policy(scene)->version, 1);
	/* a bad one leaves what was read before, and is not told again each second */
	write_list(path, "192.0.2.1/24\n");
	assert_int_equal(await_policy(scene)->version, 1);
	for (int64_t end_ms = weir_monotonic_ms() + 4000; weir_monotonic_ms() < end_ms;)
		assert_null(policies_poll(scene->policies, 10));
	assert_int_equal(times_said(scene, "list:1: \"192.0.2.1/24\" is not a network: host bits are set. The list stays"),
	                 1);
	assert_true(is_ready(scene, ""));
	write_list(path, "192.0.2.0/24\n");
	assert_int_equal(await_policy(scene)->version, 1);
	assert_true(is_ready(scene, ""));
}

/* A list that cannot be fetched holds no policy back: it was asked for before the policy is given. */
static void a_list_that_is_away_is_asked_for_first(void **state)
{
	struct scene *scene = *state;
	apply_zones(scene, 1,
	            "[{\"name\": \"a\", \"key\": [\"ip\"], \"exempt\": {\"list\": \"http://127.0.0.1:1/bots\"}, " LIMITS
	            "}]");
	assert_int_equal(await_policy(scene)->version, 1);
	assert_int_equal(times_said(scene, "cannot fetch the list http://127.0.0.1:1/bots: "), 1);
	struct weir_text page = {0};
	policies_metrics(scene->policies, &page);
	weir_text_append(&page, "", 1);
	assert_non_null(strstr(page.at, "\nweir_exempt_fetched_missing 1\n"));
	assert_non_null(strstr(page.at, "\nweir_verified_asked_total 0\n"));
	weir_text_deinit(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_lack_of_a_policy_is_said_once, setup, teardown),
		cmocka_unit_test_setup_teardown(the_newest_is_given_and_older_ones_are_passed_by, setup, teardown),
		cmocka_unit_test_setup_teardown(fields_that_no_source_gives_are_a_warning, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_used_leaves_the_one_before_in_use, setup, teardown),
		cmocka_unit_test_setup_teardown(a_list_that_changes_gives_the_policy_again, setup, teardown),
		cmocka_unit_test_setup_teardown(a_list_that_is_away_is_asked_for_first, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The topic of decisions in shadow mode cannot be asked, or read: nothing else waits for it, and it is told. */
#include "archiver/work/archiver_metrics.h"
#include "archiver/work/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PARTITIONS = 2, END = 5, LONG_END = 100000 };

static enum { SHADOW_ASKED = 1, OTHERS_ASKED = 2 } answered; /* which topics' ends can be asked for */
static unsigned asked;                                       /* how often that of decisions in shadow mode was */

static enum weir_status extent(struct weir_bus *bus, enum weir_topic topic, uint32_t partition, uint64_t *first,
                               uint64_t *next, struct weir_error *error)
{
	(void)bus;
	(void)partition;
	asked += topic == WEIR_TOPIC_SHADOW;
	if ((answered & (topic == WEIR_TOPIC_SHADOW ? SHADOW_ASKED : OTHERS_ASKED)) == 0)
		return weir_fail(error, WEIR_IO, "nobody answers");
	*first = 0;
	*next = END;
	return WEIR_OK;
}

static enum weir_status resume_denied(struct weir_consumer *consumer, uint32_t partition, uint64_t offset,
                                      const struct weir_mark *mark, struct weir_error *error)
{
	(void)consumer;
	(void)partition;
	(void)offset;
	(void)mark;
	return weir_fail(error, WEIR_IO, "it may not be read");
}

static enum weir_status receive_nothing(struct weir_consumer *consumer, struct weir_message *messages, size_t most,
                                        int timeout_ms, size_t *count, struct weir_error *error)
{
	(void)consumer;
	(void)messages;
	(void)most;
	(void)timeout_ms;
	(void)error;
	*count = 0;
	return WEIR_OK;
}

static bool no_problem(struct weir_bus *bus, char *text, size_t bytes)
{
	(void)bus;
	(void)text;
	(void)bytes;
	return false;
}

static const struct weir_bus_ops ops = {
	.extent = extent, .resume = resume_denied, .receive = receive_nothing, .problem = no_problem};

/* ---- a topic in which messages are damaged ---- */

static struct {
	uint64_t from, to; /* the offsets that are refused, in the first partition */
	uint64_t end, next;
	bool read;
	unsigned refusals;
} damage;

static enum weir_status damaged_extent(struct weir_bus *bus, enum weir_topic topic, uint32_t partition, uint64_t *first,
                                       uint64_t *next, struct weir_error *error)
{
	(void)bus;
	(void)topic;
	(void)error;
	*first = 0;
	*next = partition == 0 ? damage.end : 0;
	return WEIR_OK;
}

static enum weir_status resume_at(struct weir_consumer *consumer, uint32_t partition, uint64_t offset,
                                  const struct weir_mark *mark, struct weir_error *error)
{
	(void)consumer;
	(void)error;
	if (partition != 0)
		return WEIR_OK;
	assert_true(offset == 0 || !weir_mark_is_set(mark)); /* what is before it may be damaged, too */
	damage.next = offset;
	damage.read = true;
	return WEIR_OK;
}

static void unassign(struct weir_consumer *consumer, uint32_t partition)
{
	(void)consumer;
	assert_int_equal(partition, 0);
	damage.read = false;
}

static enum weir_status receive_or_refuse(struct weir_consumer *consumer, struct weir_message *messages, size_t most,
                                          int timeout_ms, size_t *count, struct weir_error *error)
{
	(void)consumer;
	(void)most;
	(void)timeout_ms;
	*count = 0;
	if (!damage.read || damage.next == damage.end)
		return WEIR_OK;
	messages[0] = (struct weir_message){
		.topic = WEIR_TOPIC_SHADOW, .partition = 0, .offset = damage.next, .payload = weir_span_of("none")};
	if (damage.next >= damage.from && damage.next < damage.to) {
		damage.refusals++;
		return weir_fail(error, WEIR_INVALID, "shadow/7.log is damaged at byte 9");
	}
	damage.next++;
	*count = 1;
	return WEIR_OK;
}

static const struct weir_bus_ops damaged_ops = {.extent = damaged_extent,
                                                .resume = resume_at,
                                                .unassign = unassign,
                                                .receive = receive_or_refuse,
                                                .problem = no_problem};

struct scene {
	struct weir_bus bus;
	struct weir_log log;
	FILE *lines;
	struct partition partitions[PARTITIONS];
	struct archiver archiver;
	char said[1024];
};

static int begin(void **state)
{
	struct scene *scene = calloc(1, sizeof *scene);
	*state = scene;
	answered = SHADOW_ASKED | OTHERS_ASKED;
	asked = 0;
	scene->bus = (struct weir_bus){.ops = &ops, .partitions = PARTITIONS};
	scene->lines = tmpfile();
	scene->log = (struct weir_log){.fd = fileno(scene->lines)};
	for (uint32_t i = 0; i < PARTITIONS; i++)
		scene->partitions[i] = (struct partition){.state = PARTITION_LIVE, .ledger = ledger_new(i)};
	scene->archiver.options = (struct archiver_options){.bus = &scene->bus, .log = &scene->log};
	scene->archiver.partitions = scene->partitions;
	return 0;
}

static int end(void **state)
{
	struct scene *scene = *state;
	for (uint32_t i = 0; i < PARTITIONS; i++)
		ledger_free(scene->partitions[i].ledger);
	fclose(scene->lines);
	free(scene);
	return 0;
}

static void read_up_to(struct scene *scene, enum weir_topic topic, uint64_t next)
{
	for (uint32_t i = 0; i < PARTITIONS; i++)
		scene->partitions[i].ledger->positions[topic].next = next;
}

/* What the log says at the end. */
static const char *told_at_end(struct scene *scene, const uint64_t *ends)
{
	archiver_tell_unread_shadow(&scene->archiver, ends + 2 * PARTITIONS);
	rewind(scene->lines);
	scene->said[fread(scene->said, 1, sizeof scene->said - 1, scene->lines)] = '\0';
	return scene->said;
}

static void ends_of_the_others_are_read_up_to_without_it(void **state)
{
	struct scene *scene = *state;
	struct weir_error error;
	answered = OTHERS_ASKED;
	uint64_t *ends = archiver_ends(&scene->archiver, &error);
	assert_non_null(ends);
	assert_int_equal(asked, 1); /* each question may take seconds */
	assert_false(archiver_caught_up(&scene->archiver, ends));
	read_up_to(scene, WEIR_TOPIC_JUDGED, END);
	assert_false(archiver_caught_up(&scene->archiver, ends));
	read_up_to(scene, WEIR_TOPIC_DECISIONS, END);
	assert_true(archiver_caught_up(&scene->archiver, ends));
	assert_non_null(strstr(told_at_end(scene, ends), "WARNING archiver: not all decisions of zones in shadow mode"));
	assert_non_null(strstr(scene->said, "of 2 of 2 partitions"));
	free(ends);
}

static void what_cannot_be_read_is_not_waited_for_and_told(void **state)
{
	struct scene *scene = *state;
	struct weir_error error;
	uint64_t *ends = archiver_ends(&scene->archiver, &error);
	read_up_to(scene, WEIR_TOPIC_JUDGED, END);
	read_up_to(scene, WEIR_TOPIC_DECISIONS, END);
	assert_false(archiver_caught_up(&scene->archiver, ends));
	archiver_receive_shadow(&scene->archiver);
	assert_true(archiver_caught_up(&scene->archiver, ends));
	assert_non_null(strstr(told_at_end(scene, ends), "of 2 of 2 partitions"));
	free(ends);
}

static void what_is_read_is_not_told(void **state)
{
	struct scene *scene = *state;
	struct weir_error error;
	uint64_t *ends = archiver_ends(&scene->archiver, &error);
	read_up_to(scene, WEIR_TOPIC_JUDGED, END);
	read_up_to(scene, WEIR_TOPIC_DECISIONS, END);
	read_up_to(scene, WEIR_TOPIC_SHADOW, END);
	assert_true(archiver_caught_up(&scene->archiver, ends));
	assert_string_equal(told_at_end(scene, ends), "");
	free(ends);
	answered = SHADOW_ASKED;
	assert_null(archiver_ends(&scene->archiver, &error));
	assert_string_equal(error.text, "nobody answers");
}

static void a_metric_says_that_it_cannot_be_read(void **state)
{
	struct scene *scene = *state;
	struct weir_text page = {0};
	archiver_metrics(archiver_stats(&scene->archiver), 1, &page);
	weir_text_append(&page, "", 1);
	assert_non_null(strstr(page.at, "\nweir_archiver_shadow_up 1\n"));
	archiver_receive_shadow(&scene->archiver);
	weir_text_clear(&page);
	archiver_metrics(archiver_stats(&scene->archiver), 1, &page);
	weir_text_append(&page, "", 1);
	assert_non_null(strstr(page.at, "\nweir_archiver_shadow_up 0\n"));
	weir_text_deinit(&page);
}

/* Reads the damaged topic for some turns. @return where the archiver goes on */
static uint64_t read_damaged(struct scene *scene, uint64_t from, uint64_t to, uint64_t end_offset, unsigned turns)
{
	memset(&damage, 0, sizeof damage);
	damage.from = from;
	damage.to = to;
	damage.end = end_offset;
	scene->bus.ops = &damaged_ops;
	while (turns-- > 0)
		archiver_receive_shadow(&scene->archiver);
	rewind(scene->lines);
	scene->said[fread(scene->said, 1, sizeof scene->said - 1, scene->lines)] = '\0';
	return scene->partitions[0].ledger->positions[WEIR_TOPIC_SHADOW].next;
}

static void a_log_of_its_own_is_read_on_behind_what_is_damaged(void **state)
{
	struct scene *scene = *state;
	scene->archiver.options.standalone = true;
	assert_int_equal(read_damaged(scene, 2, 3, END, 10), END);
	assert_int_equal(damage.refusals, 1);
	assert_true(scene->partitions[0].ledger->changed);
	assert_non_null(strstr(scene->said, "WARNING archiver: partition 0: shadow/7.log is damaged at byte 9. "));
	assert_non_null(strstr(scene->said, "from offset 2 to 2 are lost"));
}

static void a_file_that_is_refused_as_a_whole_is_passed_in_few_steps(void **state)
{
	struct scene *scene = *state;
	const uint64_t to = LONG_END / 2;
	scene->archiver.options.standalone = true;
	(void)read_damaged(scene, 2, to, LONG_END, 120);
	assert_true(damage.refusals < 120);
	assert_in_range(scene->partitions[0].shadow_refused, 0, 0); /* messages behind it were read */
	assert_in_range(damage.next, to, to + to / 8 + 120);
}

static void what_is_damaged_at_the_end_is_passed_up_to_there(void **state)
{
	struct scene *scene = *state;
	scene->archiver.options.standalone = true;
	assert_int_equal(read_damaged(scene, 1, LONG_END, LONG_END, 200), LONG_END);
}

static void brokers_topics_are_not_read_on_behind_it(void **state)
{
	struct scene *scene = *state;
	assert_int_equal(read_damaged(scene, 2, 3, END, 10), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ends_of_the_others_are_read_up_to_without_it, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_is_not_waited_for_and_told, begin, end),
		cmocka_unit_test_setup_teardown(what_is_read_is_not_told, begin, end),
		cmocka_unit_test_setup_teardown(a_metric_says_that_it_cannot_be_read, begin, end),
		cmocka_unit_test_setup_teardown(a_log_of_its_own_is_read_on_behind_what_is_damaged, begin, end),
		cmocka_unit_test_setup_teardown(a_file_that_is_refused_as_a_whole_is_passed_in_few_steps, begin, end),
		cmocka_unit_test_setup_teardown(what_is_damaged_at_the_end_is_passed_up_to_there, begin, end),
		cmocka_unit_test_setup_teardown(brokers_topics_are_not_read_on_behind_it, begin, end),
	};
	return cmocka_run_group_tests_name("archiver_shadow", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector over a bus that fails: every line arrives once, as limiters count them, and the low-water mark never
 * passes what has not arrived.
 */
#include "collector/follow/collector.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bus/local/bus_local.h"
#include "common/frame/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include "faulty_bus.h"
#include "scratch.h"

#include <cmocka.h>

enum { PARTITIONS = 4, GARBAGE_EVERY = 500, PATIENCE_MS = 120000 };

struct scene {
	char *directory;
	struct weir_bus *local;
	struct weir_bus_ops ops;
	struct faulty_bus bus;
	struct weir_config *config;
	struct source_memory *memory;
	struct collector *collector;
	struct weir_log log;
	uint32_t lines, garbage, linger_ms;
	/* what has arrived, as a limiter takes it */
	struct weir_frame_reader *reader;
	uint64_t offsets[PARTITIONS], positions[PARTITIONS];
	uint32_t *seen; /* by a line's number: how often */
	uint32_t distinct;
	uint64_t repeated;
};

static const char *path_in(const struct scene *scene, const char *name)
{
	static char paths[4][512];
	static unsigned turn;
	char *path = paths[turn++ % 4];
	snprintf(path, sizeof paths[0], "%s/%s", scene->directory, name);
	return path;
}

static void open_state(struct scene *scene)
{
	struct weir_error error;
	if (source_memory_open(scene->directory, &scene->memory, &error) != WEIR_OK)
		fail_msg("%s", error.text);
}

static void configure(struct scene *scene, const char *source)
{
	char text[2048];
	struct weir_error error;
	snprintf(
		text, sizeof text,
		"{\"zones\": [{\"name\": \"all\", \"key\": [\"path\"], \"limits\": [{\"algorithm\": \"fixed_window\", "
		"\"rate\": 1, \"window\": \"1m\"}]}], \"bus\": {\"partitions\": %d, \"linger\": \"%ums\", \"max_linger\": \"1s\"}, \"deadletter\": {\"rate\": 0}, "
		"\"collector\": {\"line_max\": \"1KiB\"}, \"sources\": [%s]}",
		PARTITIONS, scene->linger_ms, source);
	if (weir_config_parse("config", text, strlen(text), &scene->config, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	scene->config->policy->version = 1;
}

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof *scene);
	struct weir_error error;
	struct weir_bus_local_options options = {.partitions = PARTITIONS};
	scene->directory = scratch_new();
	if (weir_bus_local_open(path_in(scene, "bus"), &options, &scene->local, &error) != WEIR_OK)
		return -1;
	unsigned seed = (unsigned)weir_monotonic_ms();
	print_message("seed %u\n", seed);
	faulty_bus_init(&scene->bus, &scene->ops, scene->local, seed);
	scene->log = (struct weir_log){.fd = STDERR_FILENO, .level = WEIR_LOG_ERROR};
	scene->reader = weir_frame_reader_new();
	open_state(scene);
	*state = scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *scene = *state;
	if (scene->collector != NULL) { /* a test that failed leaves it at work */
		scene->bus.down = false;
		scene->bus.breaks_left = scene->bus.producers_refused = 0;
		collector_stop(scene->collector);
		(void)!collector_join(scene->collector, NULL);
	}
	collector_free(scene->collector);
	source_memory_free(scene->memory);
	weir_config_free(scene->config);
	scene->local->ops->close(scene->local);
	weir_frame_reader_free(scene->reader);
	scratch_remove(scene->directory);
	free(scene->directory);
	free(scene->seen);
	free(scene);
	return 0;
}

/* Lines whose paths are their numbers; each GARBAGE_EVERY-th one is none. */
static void write_lines(struct scene *scene, FILE *file, uint32_t count)
{
	for (uint32_t end = scene->lines + count; scene->lines < end; scene->lines++)
		if (scene->lines % GARBAGE_EVERY == GARBAGE_EVERY - 1)
			fprintf(file, "garbage %u%s\n", scene->lines, scene->garbage++ % 2 == 0 ? "" : " \xff\x01\"");
		else
			fprintf(file, "192.0.2.1 - - [21/Nov/2024:07:20:00 +0000] \"GET /%u HTTP/1.1\" 200 1\n", scene->lines);
	scene->seen = realloc(scene->seen, scene->lines * sizeof *scene->seen);
	memset(scene->seen, 0, scene->lines * sizeof *scene->seen);
}

static void append_lines(struct scene *scene, uint32_t count)
{
	FILE *file = fopen(path_in(scene, "log"), "a");
	assert_non_null(file);
	write_lines(scene, file, count);
	fclose(file);
}

static void follow_file(struct scene *scene)
{
	char source[600];
	snprintf(source, sizeof source,
	         "{\"type\": \"file\", \"path\": \"%s\", \"format\": \"combined\", \"follow\": true}",
	         path_in(scene, "log"));
	configure(scene, source);
}

static void start(struct scene *scene)
{
	struct weir_error error;
	struct collector_options options = {.config = scene->config,
	                                    .bus = &scene->bus.bus,
	                                    .memory = scene->memory,
	                                    .dead_topic = true,
	                                    .policy = scene->config->policy,
	                                    .log = &scene->log};
	if (collector_new(&options, &scene->collector, &error) != WEIR_OK ||
	    collector_start(scene->collector, &error) != WEIR_OK)
		fail_msg("%s", error.text);
}

static void stop(struct scene *scene)
{
	struct weir_error error;
	collector_stop(scene->collector);
	if (collector_join(scene->collector, &error) != WEIR_OK)
		fail_msg("%s", error.text);
}

/* A sample of the page; -1 where it is not there. */
static double metric(struct scene *scene, const char *name)
{
	struct weir_text page = {0};
	char wanted[128];
	collector_metrics(scene->collector, &page);
	weir_text_append(&page, "", 1);
	snprintf(wanted, sizeof wanted, "\n%s", name);
	const char *found = strstr(page.at, wanted);
	double value = found != NULL ? strtod(strrchr(strndupa(found + 1, strcspn(found + 1, "\n")), ' '), NULL) : -1;
	weir_text_deinit(&page);
	return value;
}

/* ---- what is in the log ---- */

typedef void take_message(struct scene *scene, const struct weir_message *message);

/* Reads a partition on to its end; gives the next offset. */
static uint64_t read_on(struct scene *scene, enum weir_topic topic, uint32_t partition, uint64_t from,
                        take_message *take)
{
	const struct weir_bus_ops *bus = scene->local->ops;
	struct weir_consumer *consumer;
	struct weir_error error;
	struct weir_message messages[64];
	uint64_t first, next;
	size_t count;
	assert_int_equal(bus->extent(scene->local, topic, partition, &first, &next, &error), WEIR_OK);
	assert_int_equal(bus->consumer_new(scene->local, topic, NULL, &consumer, &error), WEIR_OK);
	assert_int_equal(bus->assign(consumer, partition, from, &error), WEIR_OK);
	while (from < next) {
		assert_int_equal(bus->receive(consumer, messages, 64, 10000, &count, &error), WEIR_OK);
		for (size_t i = 0; i < count; i++) {
			take(scene, &messages[i]);
			from = messages[i].offset + 1;
		}
	}
	bus->consumer_free(consumer);
	return from;
}

/* As a limiter: events that are not newer than the newest of their source before the frame are dropped. */
static void take_frame(struct scene *scene, const struct weir_message *message)
{
	struct weir_frame frame;
	struct weir_error error;
	if (weir_frame_decode(scene->reader, message->payload, &frame, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	uint64_t before = scene->positions[message->partition];
	for (uint32_t i = 0; i < frame.event_count; i++) {
		const struct weir_frame_event *event = &frame.events[i];
		if (event->position <= before) {
			scene->repeated++;
			continue;
		}
		struct weir_span key = frame.keys[event->key];
		char text[32] = "";
		memcpy(text, key.at, key.length < sizeof text ? key.length : sizeof text - 1);
		assert_int_equal(text[0], '/');
		uint32_t number = (uint32_t)strtoul(text + 1, NULL, 10);
		assert_true(number < scene->lines);
		scene->distinct += scene->seen[number]++ == 0;
		scene->positions[message->partition] = event->position;
	}
}

static void take_all(struct scene *scene)
{
	for (uint32_t i = 0; i < PARTITIONS; i++)
		scene->offsets[i] = read_on(scene, WEIR_TOPIC_EVENTS, i, scene->offsets[i], take_frame);
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static uint32_t good_lines(const struct scene *scene)
{
	return scene->lines - scene->garbage;
}

/* Waits until every line has arrived, each once. */
static void await_all(struct scene *scene)
{
	for (int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS; scene->distinct < good_lines(scene); nap()) {
		take_all(scene);
		if (weir_monotonic_ms() > end_ms || collector_ended(scene->collector))
			break;
	}
	take_all(scene);
	assert_int_equal(scene->distinct, good_lines(scene));
	for (uint32_t i = 0; i < scene->lines; i++)
		assert_int_equal(scene->seen[i], i % GARBAGE_EVERY != GARBAGE_EVERY - 1);
}

static void take_dead_letter(struct scene *scene, const struct weir_message *message)
{
	struct weir_error error;
	struct weir_json_document *document;
	assert_null(message->key.at);
	if (weir_json_parse("letter", message->payload.at, message->payload.length, &document, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	struct weir_json dead_letter = weir_json_root(document);
	const char *text = NULL, *reason = NULL, *host = NULL;
	struct weir_json at = weir_json_member(&dead_letter, "text");
	assert_int_equal(weir_json_string(&at, &text, &error), WEIR_OK);
	at = weir_json_member(&dead_letter, "reason");
	assert_int_equal(weir_json_string(&at, &reason, &error), WEIR_OK);
	at = weir_json_member(&dead_letter, "host");
	assert_int_equal(weir_json_string(&at, &host, &error), WEIR_OK);
	assert_non_null(host);
	assert_string_equal(reason, "not combined");
	assert_memory_equal(text, "garbage ", 8);
	scene->seen[strtoul(text + 8, NULL, 10)]++;
	weir_json_document_free(document);
}

/* Every malformed line is among the dead letters, at least once. */
static void check_dead_letters(struct scene *scene)
{
	memset(scene->seen, 0, scene->lines * sizeof *scene->seen);
	read_on(scene, WEIR_TOPIC_DEADLETTER, 0, 0, take_dead_letter);
	for (uint32_t i = 0; i < scene->lines; i++)
		assert_true((scene->seen[i] > 0) == (i % GARBAGE_EVERY == GARBAGE_EVERY - 1));
}

static uint64_t file_end(const struct scene *scene)
{
	struct stat about;
	assert_int_equal(stat(path_in(scene, "log"), &about), 0);
	return source_position(1, (uint64_t)about.st_size);
}

/* ---- tests ---- */

static void every_line_arrives_once_through_broken_producers(void **state)
{
	struct scene *scene = *state;
	append_lines(scene, 200000);
	scene->linger_ms = 20; /* frames are mostly open when a producer breaks */
	follow_file(scene);
	scene->bus.breaks_left = 6;
	scene->bus.producers_refused = 1;
	start(scene);
	for (int i = 0; i < 20; i++)
		append_lines(scene, 5000);
	/* what was appended cleared what was seen: nothing was looked at before */
	await_all(scene);
	assert_int_equal(scene->bus.broken, 6);
	assert_int_equal(scene->bus.producers_refused, 0);
	assert_int_equal(metric(scene, "weir_collector_producer_restarts_total"), scene->bus.broken + 1);
	assert_int_equal(metric(scene, "weir_source_lost_lines_total"), 0);
	stop(scene);
	print_message("%llu events came again\n", (unsigned long long)scene->repeated);
	/* what was read again for them counts no more */
	assert_int_equal(metric(scene, "weir_collector_lines_total"), scene->lines);
	assert_int_equal(metric(scene, "weir_collector_records_total"), scene->lines - scene->garbage);
	assert_int_equal(metric(scene, "weir_collector_malformed_total{reason=\"not combined\"}"), scene->garbage);
	assert_int_equal(scene->memory->streams[0]->low_water, file_end(scene));
	assert_true(metric(scene, "weir_collector_low_water_age_seconds") < 60);
	check_dead_letters(scene);
}

/*
 * While nothing is ever delivered, however often another producer is made, what was read first is owed: its age grows
 * all the time, and is over only when it has arrived.
 */
static void the_age_of_what_is_owed_outlives_its_producers(void **state)
{
	struct scene *scene = *state;
	append_lines(scene, 1000);
	follow_file(scene);
	faulty_bus_break(&scene->bus, 1000, 1);
	scene->bus.at_once = true;
	int64_t begun_ms = weir_monotonic_ms();
	start(scene);
	double before = 0, age = 0;
	while (scene->bus.producers < 2 && weir_monotonic_ms() < begun_ms + PATIENCE_MS)
		nap();
	for (int64_t end_ms = begun_ms + PATIENCE_MS; scene->bus.producers < 8 && weir_monotonic_ms() < end_ms; nap()) {
		age = metric(scene, "weir_collector_low_water_age_seconds");
		assert_true(age + 0.001 >= before);
		before = age;
	}
	assert_true(scene->bus.producers >= 8);
	assert_true(age >= (double)(weir_monotonic_ms() - begun_ms) / 1000.0 - 1.5);
	scene->bus.breaks_left = 0;
	await_all(scene);
	for (int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS; age > 2 && weir_monotonic_ms() < end_ms; nap())
		age = metric(scene, "weir_collector_low_water_age_seconds");
	assert_true(age <= 2);
	stop(scene);
}

static void a_low_water_mark_waits_for_dead_letters(void **state)
{
	struct scene *scene = *state;
	FILE *file = fopen(path_in(scene, "log"), "w");
	fputs("garbage 499\n", file);
	fclose(file);
	scene->lines = 500;
	scene->seen = calloc(scene->lines, sizeof *scene->seen);
	follow_file(scene);
	/* the one message that there is fails: it must come again */
	faulty_bus_break(&scene->bus, 1, 1);
	start(scene);
	uint64_t written = 0, dropped;
	for (int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS; written < 2 && weir_monotonic_ms() < end_ms; nap())
		collector_dead_letters(scene->collector, &written, &dropped);
	stop(scene);
	assert_int_equal(scene->bus.broken, 1);
	assert_int_equal(scene->memory->streams[0]->low_water, file_end(scene));
	check_dead_letters(scene);
}

/* Whether positions are saved, by the metric. */
static bool await_saved(struct scene *scene, bool saved)
{
	int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	while ((metric(scene, "weir_collector_unsaved_seconds") > 0) == saved && weir_monotonic_ms() < end_ms)
		nap();
	return (metric(scene, "weir_collector_unsaved_seconds") > 0) != saved;
}

static void positions_that_cannot_be_saved_are_told_until_they_are(void **state)
{
	struct scene *scene = *state;
	struct weir_text why = {0};
	append_lines(scene, 1000);
	follow_file(scene);
	start(scene);
	for (int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS; weir_monotonic_ms() < end_ms; nap())
		if (metric(scene, "weir_collector_lines_total") >= 1000)
			break;
	assert_int_equal(mkdir(path_in(scene, "sources.json.new"), 0700), 0); /* where a save writes first */
	append_lines(scene, 1000);
	assert_true(await_saved(scene, false));
	for (int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS; weir_monotonic_ms() < end_ms; nap())
		if (!collector_ready(scene->collector, &why))
			break;
	weir_text_append(&why, "", 1);
	assert_non_null(strstr(why.at, "positions could not be saved for 1"));
	weir_text_deinit(&why);
	await_all(scene); /* they are judged all the same */
	assert_int_equal(rmdir(path_in(scene, "sources.json.new")), 0);
	assert_true(await_saved(scene, true));
	assert_true(collector_ready(scene->collector, &why));
	weir_text_deinit(&why);
	stop(scene);
	assert_int_equal(scene->memory->streams[0]->low_water, file_end(scene));
}

static void a_bus_that_is_down_stops_the_reading(void **state)
{
	struct scene *scene = *state;
	append_lines(scene, 100000);
	follow_file(scene);
	scene->bus.down = true;
	start(scene);
	for (int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS; scene->bus.fulls < 20 && weir_monotonic_ms() < end_ms;)
		nap();
	double lag_bytes = metric(scene, "weir_source_lag_bytes{");
	assert_true(lag_bytes > 0);
	for (uint64_t fulls = scene->bus.fulls; scene->bus.fulls < fulls + 20;)
		nap();
	assert_true(metric(scene, "weir_source_lag_bytes{") == lag_bytes);
	assert_int_equal(scene->bus.producers, 1);
	scene->bus.down = false;
	await_all(scene);
	stop(scene);
	assert_int_equal(scene->repeated, 0);
}

/* The collector has ended before all was sent: another one goes on. */
static void go_on(struct scene *scene)
{
	collector_free(scene->collector);
	scene->collector = NULL;
	source_memory_free(scene->memory);
	open_state(scene);
	start(scene);
	await_all(scene);
	stop(scene);
	assert_int_equal(scene->memory->streams[0]->low_water, file_end(scene));
}

static void a_stop_while_the_bus_is_down_is_bounded_and_loses_nothing(void **state)
{
	struct scene *scene = *state;
	append_lines(scene, 100000);
	follow_file(scene);
	scene->bus.down = true;
	start(scene);
	for (int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS; scene->bus.fulls < 20 && weir_monotonic_ms() < end_ms;)
		nap();
	int64_t start_ms = weir_monotonic_ms();
	stop(scene);
	assert_true(weir_monotonic_ms() - start_ms < 60000);
	scene->bus.down = false;
	go_on(scene);
}

/* Reads a pipe in the place of standard input; gives its writing end. */
static FILE *follow_input(struct scene *scene)
{
	int ends[2];
	assert_true(pipe(ends) == 0 && dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
	close(ends[0]);
	configure(scene, "{\"type\": \"stdin\", \"path\": \"-\", \"format\": \"combined\"}");
	return fdopen(ends[1], "w");
}

static void await_end(struct scene *scene)
{
	while (!collector_ended(scene->collector))
		nap();
	stop(scene);
	take_all(scene);
}

static void what_cannot_be_read_again_is_counted_as_lost(void **state)
{
	struct scene *scene = *state;
	FILE *pipe_file = follow_input(scene);
	faulty_bus_break(&scene->bus, 3, 5);
	start(scene);
	write_lines(scene, pipe_file, 60000);
	while (scene->bus.breaks_left > 0) {
		fflush(pipe_file);
		nap();
		write_lines(scene, pipe_file, 100);
	}
	fclose(pipe_file);
	await_end(scene);
	double lost = metric(scene, "weir_source_lost_lines_total");
	assert_true(lost > 0);
	assert_true(scene->distinct + lost >= good_lines(scene));
	for (uint32_t i = 0; i < scene->lines; i++)
		assert_true(scene->seen[i] <= 1);
}

/* The producer breaks at a frame, in the middle of a chunk: the rest of that is sent by the next. */
static void a_chunk_that_cannot_be_read_again_is_read_to_its_end(void **state)
{
	struct scene *scene = *state;
	scene->linger_ms = 1000; /* frames go out as they are full, and that is within a chunk */
	FILE *pipe_file = follow_input(scene);
	faulty_bus_break(&scene->bus, 5, 1);
	scene->bus.at_once = true;
	start(scene);
	write_lines(scene, pipe_file, 60000);
	fclose(pipe_file);
	await_end(scene);
	assert_int_equal(scene->bus.broken, 5);
	assert_int_equal(metric(scene, "weir_collector_lines_total"), scene->lines);
	assert_true(scene->distinct + metric(scene, "weir_source_lost_lines_total") >= good_lines(scene));
}

/* A stop gives up while a dead letter waits for the bus, in the middle of a chunk: its other lines are lost as well. */
static void what_a_stop_leaves_of_a_chunk_is_counted_as_lost(void **state)
{
	struct scene *scene = *state;
	FILE *pipe_file = follow_input(scene);
	write_lines(scene, pipe_file, 700);
	fclose(pipe_file);
	scene->bus.down = true;
	start(scene);
	while (scene->bus.fulls == 0)
		nap();
	stop(scene);
	assert_int_equal(metric(scene, "weir_collector_lines_total"), scene->lines);
	assert_int_equal(metric(scene, "weir_source_lost_lines_total"), scene->lines);
}

static void a_stop_while_no_producer_can_be_had_loses_nothing(void **state)
{
	struct scene *scene = *state;
	append_lines(scene, 100000);
	scene->linger_ms = 1000; /* the last frames are open when the producer breaks */
	follow_file(scene);
	faulty_bus_break(&scene->bus, 1, 1);
	scene->bus.producers_refused = 1000000;
	start(scene);
	for (int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS;
	     metric(scene, "weir_collector_producer_restarts_total") < 3 && weir_monotonic_ms() < end_ms;)
		nap();
	assert_false(collector_ended(scene->collector));
	stop(scene);
	scene->bus.producers_refused = 0;
	go_on(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_line_arrives_once_through_broken_producers, setup, teardown),
		cmocka_unit_test_setup_teardown(the_age_of_what_is_owed_outlives_its_producers, setup, teardown),
		cmocka_unit_test_setup_teardown(a_low_water_mark_waits_for_dead_letters, setup, teardown),
		cmocka_unit_test_setup_teardown(positions_that_cannot_be_saved_are_told_until_they_are, setup, teardown),
		cmocka_unit_test_setup_teardown(a_bus_that_is_down_stops_the_reading, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stop_while_the_bus_is_down_is_bounded_and_loses_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_again_is_counted_as_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(a_chunk_that_cannot_be_read_again_is_read_to_its_end, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_stop_leaves_of_a_chunk_is_counted_as_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stop_while_no_producer_can_be_had_loses_nothing, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limiters at work on one log and one store: the local bus and SQLite, with as
 * many processes as a test wants (each its own policy registry, assignment, checkpoint
 * I/O and workers, as if they were processes), and the means to break things.
 *
 * The same frames are judged in a second scene by one undisturbed worker: at the
 * end decisions and states must be equal.
 */
#ifndef TESTS_UNIT_WORKER_SCENE_H
#define TESTS_UNIT_WORKER_SCENE_H

#include "common/base/clock.h"
#include "common/bus/local/bus_local.h"
#include "common/frame/frame.h"
#include "common/store/sqlite/store_sqlite.h"
#include "limiter/worker/worker.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

enum {
	SCENE_PARTITIONS = 4,
	SCENE_USERS = 40,
	SCENE_FRAME_EVENTS = 50,
	SCENE_THREADS_MAX = 2, /* of a process */
	SCENE_PATIENCE_MS = 100000,
};

static const int64_t SCENE_START_MS = INT64_C(1732173600000);

/* What is broken, and counts of it: read by any thread. */
struct faults {
	_Atomic bool store_down;       /* every write, take and load is WEIR_IO */
	_Atomic int failed_deliveries; /* so many of the next polls report a failed delivery */
	_Atomic int producers_refused; /* so many of the next producers cannot be made */
	_Atomic uint32_t gap;          /* this partition + 1 cannot be assigned, nor read on; 0: none */
	_Atomic uint32_t lost;     /* the store does not have this partition's + 1 last checkpoint any more; 0: it does */
	_Atomic bool cut_off;      /* and its log ends before what was read of it */
	_Atomic int hidden_policy; /* the store does not show this version; 0: it shows all */
	_Atomic int producers;     /* made */
	_Atomic int send_takes_ms; /* each */
	_Atomic int read_takes_ms; /* of segments, behind the reading */
	_Atomic int one_takes_ms;  /* of one segment alone, besides */
	_Atomic int one;           /* the first one that was, + 1 */
	_Atomic int ones;          /* so many readings of it alone have begun */
	_Atomic bool full;         /* nothing more is accepted */
	_Atomic bool deaf;         /* nothing is received */
	_Atomic int withheld;      /* acknowledgements of this topic + 1 are kept back; 0: they are given out again */
};

static struct faults faults; /* of the test that runs */

struct scene {
	char *directory;
	struct weir_config *config;
	struct weir_bus *bus;
	struct weir_bus_ops ops;        /* the bus's, with faults */
	const struct weir_bus_ops *own; /* without */
	struct weir_store *store;
	struct weir_store_ops store_ops; /* of the stores of checkpoint I/O, with faults */
	const struct weir_store_ops *own_store;
	struct weir_producer *producer;
	struct weir_frame_writer *writer;
	struct weir_log log;
	uint64_t position; /* of the source */
	uint64_t frames;
	int64_t remind_ms;                  /* of its processes */
	const struct worker_checks *checks; /* of the next process; NULL: it takes none */
	struct weir_error error;
};

/* One limiter. */
struct process {
	struct scene *scene;
	struct policy_registry *registry;
	struct weir_assignment *assignment;
	struct placement *placement;
	struct checkpoint_io *checkpoint_writer, *checkpoint_reader;
	struct worker *workers[SCENE_THREADS_MAX];
	struct worker *worker; /* the first */
	uint32_t threads;
	bool given[SCENE_PARTITIONS];
	uint64_t generation;
};

static const char scene_config[] =
	"{\"zones\":[{\"id\":1,\"name\":\"site\",\"key\":[\"user\"],\"limits\":[{\"algorithm\":\"sliding_window\","
	"\"rate\":5,\"window\":\"1m\"},{\"algorithm\":\"fixed_window\",\"rate\":40,\"window\":\"1h\"}]}],"
	"\"bus\":{\"partitions\":4},\"archiver\":{\"enabled\":true},"
	"\"limiter\":{\"memory\":\"64MiB\",\"checkpoint_interval\":\"30ms\",\"threads\":1}}";

/* ---- faults ---- */

/* The scene whose functions are interposed: those of a bus and a store have no argument to find it by. */
static struct scene *scene_faulty;

enum { KEPT_MAX = 4096 };

/* Acknowledgements that are kept back. Of the one thread that polls. */
static struct {
	struct weir_delivery deliveries[KEPT_MAX];
	size_t first, count;
} kept_back;

static size_t keep_back(struct weir_delivery *deliveries, size_t count, size_t most)
{
	int withheld = faults.withheld;
	size_t given = 0;
	for (size_t i = 0; i < count; i++) {
		bool back = withheld == 0 ? kept_back.first < kept_back.count : (int)deliveries[i].topic == withheld - 1;
		assert_true(kept_back.count < KEPT_MAX);
		*(back ? &kept_back.deliveries[kept_back.count++] : &deliveries[given++]) = deliveries[i];
	}
	while (withheld == 0 && kept_back.first < kept_back.count && given < most)
		deliveries[given++] = kept_back.deliveries[kept_back.first++];
	return given;
}

static size_t faulty_poll(struct weir_producer *producer, struct weir_delivery *deliveries, size_t most, int timeout_ms)
{
	size_t count = scene_faulty->own->poll(producer, deliveries, most, timeout_ms);
	if (count > 0 && faults.failed_deliveries > 0) {
		faults.failed_deliveries--;
		deliveries[0].status = WEIR_IO;
		deliveries[0].why = "no reason";
	}
	return keep_back(deliveries, count, most);
}

static enum weir_status slow_send(struct weir_producer *producer, enum weir_topic topic, uint32_t partition,
                                  struct weir_span key, struct weir_span payload, uint64_t tag,
                                  struct weir_error *error)
{
	if (faults.send_takes_ms > 0)
		usleep((useconds_t)faults.send_takes_ms * 1000);
	if (faults.full)
		return weir_fail(error, WEIR_FULL, "the bus is full");
	return scene_faulty->own->send(producer, topic, partition, key, payload, tag, error);
}

static enum weir_status faulty_producer_new(struct weir_bus *bus, struct weir_producer **producer,
                                            struct weir_error *error)
{
	if (faults.producers_refused > 0) {
		faults.producers_refused--;
		return weir_fail(error, WEIR_IO, "no producer just now");
	}
	faults.producers++;
	return scene_faulty->own->producer_new(bus, producer, error);
}

static enum weir_status faulty_resume(struct weir_consumer *consumer, uint32_t partition, uint64_t offset,
                                      const struct weir_mark *mark, struct weir_error *error)
{
	if (faults.gap == partition + 1)
		return weir_fail(error, WEIR_INVALID, "weir.events partition %u has offsets 100 to 200, not %llu", partition,
		                 (unsigned long long)offset);
	return scene_faulty->own->resume(consumer, partition, offset, mark, error);
}

static enum weir_status faulty_receive(struct weir_consumer *consumer, struct weir_message *messages, size_t most,
                                       int timeout_ms, size_t *count, struct weir_error *error)
{
	uint32_t gap = faults.gap;
	if (faults.deaf) {
		*count = 0;
		nanosleep(&(struct timespec){.tv_nsec = 1000000L}, NULL);
		return WEIR_OK;
	}
	uint64_t position = gap > 0 ? scene_faulty->own->position(consumer, gap - 1) : 0;
	if (position == 0)
		return scene_faulty->own->receive(consumer, messages, most, timeout_ms, count, error);
	messages[0] = (struct weir_message){.topic = WEIR_TOPIC_EVENTS, .partition = gap - 1, .offset = position};
	return weir_fail(error, WEIR_INVALID, "weir.events partition %u has other offsets", gap - 1);
}

static enum weir_status faulty_extent(struct weir_bus *bus, enum weir_topic topic, uint32_t partition, uint64_t *first,
                                      uint64_t *next, struct weir_error *error)
{
	enum weir_status status = scene_faulty->own->extent(bus, topic, partition, first, next, error);
	if (faults.cut_off && partition + 1 == faults.gap)
		*next = 1;
	return status;
}

static enum weir_status store_is_down(struct weir_error *error)
{
	return weir_fail(error, WEIR_IO, "the store is down");
}

static enum weir_status faulty_take(struct weir_store *store, int role, uint32_t partition,
                                    struct weir_partition_state *state, struct weir_error *error)
{
	return faults.store_down ? store_is_down(error)
	                         : scene_faulty->own_store->take(store, role, partition, state, error);
}

static enum weir_status faulty_archive(struct weir_store *store, int role, const struct weir_archive_batch *batch,
                                       const struct weir_partition_state *states, size_t count,
                                       const char *const *names, const struct weir_span *values, size_t note_count,
                                       struct weir_error *error)
{
	if (faults.store_down)
		return store_is_down(error);
	if (faults.lost == states->partition + 1)
		return weir_fail(error, WEIR_FENCED, "its last checkpoint is gone");
	return scene_faulty->own_store->archive(store, role, batch, states, count, names, values, note_count, error);
}

/* What it has read is of when it began. */
static enum weir_status slow_read(struct weir_store *store, uint32_t partition, uint64_t epoch, uint64_t at_least,
                                  const uint32_t *segments, size_t count,
                                  enum weir_status (*each)(void *context, const struct weir_segment_blob *blob),
                                  void *context, struct weir_error *error)
{
	if (count == 1 && faults.one_takes_ms > 0) {
		if (faults.one == 0)
			faults.one = (int)segments[0] + 1;
		faults.ones += faults.one == (int)segments[0] + 1;
	}
	enum weir_status status = scene_faulty->own_store->read_segments(store, partition, epoch, at_least, segments, count,
	                                                                 each, context, error);
	int takes_ms = faults.read_takes_ms + (count == 1 ? faults.one_takes_ms : 0);
	if (takes_ms > 0)
		usleep((useconds_t)takes_ms * 1000);
	return status;
}

struct policies_shown {
	enum weir_status (*each)(void *context, uint64_t version, struct weir_span text);
	void *context;
};

static enum weir_status show_policy(void *context, uint64_t version, struct weir_span text)
{
	const struct policies_shown *shown = context;
	return (uint64_t)faults.hidden_policy == version ? WEIR_OK : shown->each(shown->context, version, text);
}

static enum weir_status faulty_policy_each(struct weir_store *store, uint64_t from,
                                           enum weir_status (*each)(void *context, uint64_t version,
                                                                    struct weir_span text),
                                           void *context, struct weir_error *error)
{
	struct policies_shown shown = {.each = each, .context = context};
	return scene_faulty->own_store->policy_each(store, from, show_policy, &shown, error);
}

static enum weir_status scene_open_store(void *context, struct weir_store **store, struct weir_error *error)
{
	struct scene *scene = context;
	enum weir_status status = weir_store_sqlite_open(scene->directory, store, error);
	if (status == WEIR_OK && scene == scene_faulty)
		(*store)->ops = &scene->store_ops;
	return status;
}

/* ---- the scene ---- */

/* What fails ends the program: threads are still at work on what would be torn down. */
static inline void scene_end_at_failure(void)
{
	setenv("CMOCKA_TEST_ABORT", "1", 1);
}

static inline struct scene *scene_new(bool faulty)
{
	struct scene *scene = calloc(1, sizeof *scene);
	char path[300];
	scene->directory = scratch_new();
	snprintf(path, sizeof path, "%s/log", scene->directory);
	mkdir(path, 0755);
	scene->log = (struct weir_log){.fd = STDERR_FILENO,
	                               .level = getenv("WEIR_TEST_LOG") != NULL ? WEIR_LOG_INFO : WEIR_LOG_ERROR};
	struct weir_bus_local_options options = {.partitions = SCENE_PARTITIONS};
	if (weir_config_parse("weir.json", scene_config, strlen(scene_config), &scene->config, &scene->error) != WEIR_OK ||
	    weir_bus_local_open(path, &options, &scene->bus, &scene->error) != WEIR_OK ||
	    weir_store_sqlite_open(scene->directory, &scene->store, &scene->error) != WEIR_OK)
		fail_msg("%s", scene->error.text);
	scene->own = scene->bus->ops;
	assert_int_equal(scene->own->producer_new(scene->bus, &scene->producer, NULL), WEIR_OK);
	scene->writer = weir_frame_writer_new();
	scene->position = 1; /* above what is held of a source that was never seen */
	if (!faulty)
		return scene;
	faults = (struct faults){0};
	kept_back.first = kept_back.count = 0;
	scene_faulty = scene;
	scene->ops = *scene->own;
	scene->ops.poll = faulty_poll;
	scene->ops.send = slow_send;
	scene->ops.producer_new = faulty_producer_new;
	scene->ops.resume = faulty_resume;
	scene->ops.receive = faulty_receive;
	scene->ops.extent = faulty_extent;
	scene->bus->ops = &scene->ops;
	scene->own_store = scene->store->ops;
	scene->store_ops = *scene->own_store;
	scene->store_ops.take = faulty_take;
	scene->store_ops.archive = faulty_archive;
	scene->store_ops.read_segments = slow_read;
	scene->store_ops.policy_each = faulty_policy_each;
	return scene;
}

static inline void scene_free(struct scene *scene)
{
	weir_frame_writer_free(scene->writer);
	scene->own->producer_free(scene->producer);
	scene->own->close(scene->bus);
	scene->store->ops->close(scene->store);
	weir_config_free(scene->config);
	scratch_remove(scene->directory);
	free(scene->directory);
	free(scene);
}

static inline void scene_settle(struct scene *scene, uint32_t waiting)
{
	struct weir_delivery deliveries[64];
	while (waiting > 0) {
		size_t count = scene->own->poll(scene->producer, deliveries, 64, SCENE_PATIENCE_MS);
		assert_true(count > 0);
		waiting -= (uint32_t)count;
	}
}

/* A message to each partition, or to one. */
static inline void scene_send(struct scene *scene, uint32_t partition, struct weir_span message)
{
	assert_int_equal(scene->own->send(scene->producer, WEIR_TOPIC_EVENTS, partition, (struct weir_span){0}, message, 0,
	                                  &scene->error),
	                 WEIR_OK);
	scene_settle(scene, 1);
}

static inline void scene_put_policy(struct scene *scene, uint64_t version, const char *zones)
{
	struct weir_config *config;
	if (weir_config_parse("weir.json", zones, strlen(zones), &config, &scene->error) != WEIR_OK ||
	    scene->store->ops->policy_put(scene->store, version, weir_span_of(config->policy->text), &scene->error) !=
	        WEIR_OK)
		fail_msg("%s", scene->error.text);
	size_t length;
	char *message =
		weir_frame_control(WEIR_FRAME_POLICY, SCENE_START_MS, version, weir_span_of(config->policy->text), &length);
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++)
		scene_send(scene, partition, (struct weir_span){message, (uint32_t)length});
	free(message);
	weir_config_free(config);
}

/* A frame of events: users of the partition by turns, one event each 100 ms. */
static inline void scene_feed_frame(struct scene *scene, uint32_t partition)
{
	static const struct weir_frame_zone zone = {.id = 1};
	static const uint8_t source[WEIR_SOURCE_ID_BYTES] = {1, 2, 3};
	int64_t at_ms = SCENE_START_MS + (int64_t)scene->position * 100;
	weir_frame_begin(scene->writer, source, 1, at_ms, scene->position);
	for (uint32_t j = 0; j < SCENE_FRAME_EVENTS; j++) {
		char key[16];
		uint64_t number = scene->position * 2654435761u >> 7;
		int length =
			snprintf(key, sizeof key, "user%u", (uint32_t)(number % SCENE_USERS) * SCENE_PARTITIONS + partition);
		struct weir_span span = {.at = key, .length = (uint32_t)length};
		at_ms = SCENE_START_MS + (int64_t)scene->position * 100;
		assert_int_equal(
			weir_frame_add(scene->writer, span, weir_hash64(key, span.length), at_ms, scene->position++, 1, &zone, 1),
			WEIR_OK);
	}
	struct weir_span message = weir_frame_finish(scene->writer, at_ms);
	assert_int_equal(scene->own->send(scene->producer, WEIR_TOPIC_EVENTS, partition, (struct weir_span){0}, message, 0,
	                                  &scene->error),
	                 WEIR_OK);
}

/* As many frames to each partition. */
static inline void scene_feed(struct scene *scene, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds * SCENE_PARTITIONS; i++)
		scene_feed_frame(scene, (uint32_t)(scene->frames++ % SCENE_PARTITIONS));
	scene_settle(scene, rounds * SCENE_PARTITIONS);
}

/* ---- limiters ---- */

static inline void process_start_threads(struct process *process, struct scene *scene, bool shared,
                                         int64_t age_limit_ms, uint32_t threads)
{
	*process = (struct process){.scene = scene, .registry = policy_registry_new(), .threads = threads};
	process->placement = placement_new(SCENE_PARTITIONS, threads);
	process->assignment = (shared ? weir_assignment_new : weir_assignment_of_all)(SCENE_PARTITIONS);
	struct weir_error error;
	if (checkpoint_io_start(scene_open_store, scene, &scene->log, &process->checkpoint_writer, &error) != WEIR_OK ||
	    checkpoint_io_start(scene_open_store, scene, &scene->log, &process->checkpoint_reader, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	struct worker_options options = {
		.config = scene->config,
		.bus = scene->bus,
		.registry = process->registry,
		.first_policy = 1,
		.seed = 7,
		.placement = process->placement,
		.assignment = process->assignment,
		.standalone = !shared,
		.dead_letters = shared,
		.age_limit_ms = age_limit_ms,
		.remind_ms = scene->remind_ms,
		.checkpoint_writer = process->checkpoint_writer,
		.checkpoint_reader = process->checkpoint_reader,
		.checks = scene->checks,
		.log = &scene->log,
	};
	for (; options.number < threads; options.number++) {
		struct worker **worker = &process->workers[options.number];
		if (worker_new(&options, worker, &error) != WEIR_OK || worker_start(*worker, &error) != WEIR_OK)
			fail_msg("%s", error.text);
	}
	process->worker = process->workers[0];
}

static inline void process_start(struct process *process, struct scene *scene, bool shared, int64_t age_limit_ms)
{
	process_start_threads(process, scene, shared, age_limit_ms, 1);
}

/* SIGTERM: last checkpoints, then the end. */
static inline void process_stop(struct process *process, bool drain)
{
	struct weir_error error;
	for (uint32_t i = 0; i < process->threads; i++)
		worker_stop(process->workers[i], drain);
	for (uint32_t i = 0; i < process->threads; i++)
		if (worker_join(process->workers[i], &error) != WEIR_OK)
			fail_msg("%s", error.text);
	checkpoint_io_stop(process->checkpoint_writer);
	checkpoint_io_stop(process->checkpoint_reader);
	for (uint32_t i = 0; i < process->threads; i++)
		worker_free(process->workers[i]);
	weir_assignment_free(process->assignment);
	placement_free(process->placement);
	policy_registry_free(process->registry);
}

/* The group speaks: this process has these partitions, by bit. */
static inline void process_give(struct process *process, unsigned partitions)
{
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++)
		process->given[partition] = (partitions >> partition & 1) != 0;
	weir_assignment_set(process->assignment, process->given, ++process->generation);
}

static inline void process_view(struct process *process, uint32_t partition, struct worker_partition *look)
{
	worker_view(process->workers[placement_holder(process->placement, partition)], partition, look);
}

static inline enum worker_state process_state(struct process *process, uint32_t partition)
{
	struct worker_partition look;
	process_view(process, partition, &look);
	return look.state;
}

static inline uint64_t process_count(struct process *process, const struct weir_counter *counter)
{
	assert_false(worker_ended(process->worker));
	return weir_counter_read(counter);
}

#define PROCESS_COUNT(process, member) process_count(process, &worker_stats((process)->worker)->member)

/* Waits for a condition. */
#define AWAIT(condition)                                           \
	do {                                                           \
		int64_t end_ms_ = weir_monotonic_ms() + SCENE_PATIENCE_MS; \
		while (!(condition)) {                                     \
			if (weir_monotonic_ms() > end_ms_)                     \
				fail_msg("in vain awaited: %s", #condition);       \
			usleep(2000);                                          \
		}                                                          \
	} while (0)

/* Whether a process has judged all of a partition's log. */
static inline bool process_is_done(struct process *process, uint32_t partition)
{
	struct worker_partition look;
	uint64_t first, next;
	struct scene *scene = process->scene;
	assert_int_equal(scene->own->extent(scene->bus, WEIR_TOPIC_EVENTS, partition, &first, &next, NULL), WEIR_OK);
	process_view(process, partition, &look);
	return look.state == WORKER_LIVE && look.next_offset == next;
}

static inline bool all_done(struct process *processes, uint32_t count)
{
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++) {
		bool done = false;
		for (uint32_t i = 0; i < count && !done; i++)
			done = processes[i].given[partition] && process_is_done(&processes[i], partition);
		if (!done)
			return false;
	}
	return true;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log that is made anew, again and again, under a lane that is killed, cut and
 * recovered at random. In every order of these: no number is given to two records,
 * numbers only grow, and nothing of the log that is there is skipped.
 */
#include "bus_fixture.h"
#include "common/frame/frame.h"
#include "limiter/lane/lane.h"

#include <fcntl.h>

enum { ROUNDS = 60, STEPS = 150, RECORDS_MAX = 4000, PARTITION = 2 };

#define ZONE                                                                \
	"{\"zones\":[{\"id\":1,\"name\":\"site\",\"key\":[\"ip\"],\"limits\":[" \
	"{\"algorithm\":\"sliding_window\",\"rate\":3,\"window\":\"1m\"}]}]}"

struct world {
	struct fixture *fixture;
	struct policy_registry *registry;
	struct weir_frame_writer *writer;
	struct weir_consumer *consumer;
	struct lane *lane; /* NULL: its log was refused */
	/* The store. */
	struct weir_partition_state stored;
	struct weir_text extra;
	/* What came to be: a record is known by its event's position. */
	uint64_t position;               /* of the newest record */
	uint64_t life_begin;             /* the first position of the log that is there */
	uint64_t number_of[RECORDS_MAX]; /* + 1, by position; 0: it was not judged */
	uint64_t highest;                /* number, + 1 */
	uint64_t life, stored_life;      /* of the log; of what is stored */
};

static const struct shard_options options = {.partition = PARTITION, .seed = 7, .lateness_ms = 600000};

/* Another state with the same content in its own memory. */
static void store(struct world *world)
{
	uint64_t checkpoint = world->stored.checkpoint;
	weir_text_clear(&world->extra);
	lane_state(world->lane, &world->stored, &world->extra);
	world->stored.checkpoint = checkpoint + 1;
	world->stored_life = world->life;
}

static void append(struct world *world)
{
	static const uint8_t source[WEIR_SOURCE_ID_BYTES] = "the only source";
	const struct weir_frame_zone zone = {.id = 1};
	uint64_t position = ++world->position;
	assert_true(position < RECORDS_MAX);
	weir_frame_begin(world->writer, source, 1, 1000, position - 1);
	assert_int_equal(weir_frame_add(world->writer, weir_span_of("192.0.2.1"), 99, 1000, position, 1, &zone, 1),
	                 WEIR_OK);
	struct weir_span message = weir_frame_finish(world->writer, 1000);
	assert_int_equal(world->fixture->ops->send(world->fixture->producer, WEIR_TOPIC_EVENTS, PARTITION,
	                                           (struct weir_span){0}, message, world->fixture->sent++, NULL),
	                 WEIR_OK);
	fixture_settle(world->fixture);
}

/* A process begins: from the stored state. */
static void begin(struct world *world)
{
	struct lane *lane = lane_new(&options, world->registry, 1);
	assert_int_equal(lane_restore(lane, &world->stored, &world->fixture->error), WEIR_OK);
	enum weir_status status = world->fixture->ops->resume(world->consumer, PARTITION, world->stored.next_offset,
	                                                      &lane_place(lane)->last, &world->fixture->error);
	bool same = world->stored_life == world->life || !weir_mark_is_set(&lane_place(lane)->last);
	assert_int_equal(status, same ? WEIR_OK : WEIR_ANEW);
	world->lane = status == WEIR_OK ? lane : NULL;
	if (status != WEIR_OK)
		lane_free(lane);
}

static void kill_lane(struct world *world)
{
	lane_free(world->lane);
	world->lane = NULL;
}

static void judge(struct world *world, int most)
{
	struct weir_message message;
	struct lane_result result;
	size_t count = 1;
	for (int i = 0; i < most && count > 0; i++) {
		assert_int_equal(world->fixture->ops->receive(world->consumer, &message, 1, 0, &count, &world->fixture->error),
		                 WEIR_OK);
		if (count == 0)
			return;
		assert_int_equal(lane_offer(world->lane, message.payload, message.offset, message.appended_ms, &result,
		                            &world->fixture->error),
		                 WEIR_OK);
		uint64_t position = result.frame->events[0].position;
		uint64_t *number = &world->number_of[position];
		if (*number != 0) { /* judged again after a kill: under the same number, and in its order */
			assert_int_equal(*number, result.number + 1);
			continue;
		}
		assert_true(result.number + 1 > world->highest);
		*number = world->highest = result.number + 1;
	}
}

/* The log is deleted and made anew, beside a process that is restarted. */
static void make_anew(struct world *world)
{
	world->fixture->ops->consumer_free(world->consumer);
	if (world->lane != NULL)
		kill_lane(world);
	fixture_close(world->fixture);
	scratch_remove(world->fixture->directory);
	free(world->fixture->directory);
	world->fixture->directory = scratch_new();
	fixture_reopen(world->fixture);
	world->consumer = fixture_consumer(world->fixture, NULL);
	world->life_begin = world->position + 1;
	world->life++;
	for (int i = rand() % 12; i > 0; i--)
		append(world);
}

/* What `weir recover` does. */
static void recover(struct world *world)
{
	struct lane_place place;
	struct weir_text extra = {0};
	struct weir_span rest = world->stored.extra;
	append(world);
	assert_int_equal(lane_place_read(&rest, &place, &world->fixture->error), WEIR_OK);
	place.base = lane_place_next_base(place.base + world->stored.next_offset);
	assert_int_equal(weir_bus_read_mark(world->fixture->bus, WEIR_TOPIC_EVENTS, PARTITION, 0, 1000, &place.last,
	                                    &world->fixture->error),
	                 WEIR_OK);
	lane_place_write(&place, &extra);
	weir_text_append(&extra, rest.at, rest.length);
	weir_text_deinit(&world->extra);
	world->extra = extra;
	world->stored.extra = (struct weir_span){.at = extra.at, .length = (uint32_t)extra.length};
	world->stored.next_offset = 0;
	world->stored.checkpoint++;
	world->stored_life = world->life;
}

static void step(struct world *world)
{
	int choice = rand() % 100;
	if (choice < 35)
		append(world);
	else if (choice < 70 && world->lane != NULL)
		judge(world, 1 + rand() % 8);
	else if (choice < 82 && world->lane != NULL)
		store(world);
	else if (choice < 90 && world->lane != NULL)
		kill_lane(world);
	else if (choice >= 97)
		make_anew(world);
	if (world->lane == NULL)
		begin(world);
	if (world->lane == NULL && rand() % 2 == 0)
		recover(world);
}

/* Judges all that there is, however often somebody must be asked. */
static void finish(struct world *world)
{
	while (world->lane == NULL) {
		recover(world);
		begin(world);
	}
	judge(world, RECORDS_MAX);
	for (uint64_t position = world->life_begin; position <= world->position; position++)
		assert_true(world->number_of[position] > 0);
}

static void whatever_happens_to_the_log_numbers_grow_and_nothing_of_it_is_skipped(void **state)
{
	struct fixture *fixture = *state;
	uint64_t lives = 0;
	for (int round = 0; round < ROUNDS; round++) {
		static struct world world;
		srand((unsigned)round);
		world =
			(struct world){.fixture = fixture, .registry = policy_registry_new(), .writer = weir_frame_writer_new()};
		assert_int_equal(policy_registry_add(world.registry, 1, weir_span_of(ZONE), &fixture->error), WEIR_OK);
		world.consumer = fixture_consumer(fixture, NULL);
		make_anew(&world);
		world.life_begin = 1; /* the first life */
		world.life = 0;
		begin(&world);
		if (world.lane != NULL) { /* numbers are safe from the first checkpoint on */
			append(&world);
			judge(&world, RECORDS_MAX);
			store(&world);
		}
		for (int i = 0; i < STEPS; i++)
			step(&world);
		finish(&world);
		lives += world.life;
		kill_lane(&world);
		fixture->ops->consumer_free(world.consumer);
		weir_text_deinit(&world.extra);
		policy_registry_free(world.registry);
		weir_frame_writer_free(world.writer);
	}
	assert_true(lives > ROUNDS); /* the logs were made anew more than once each */
}

/* A mark is of the last message that was read; what says nothing is no reason to refuse. */
static void a_position_is_taken_up_in_the_same_log_alone(void **state)
{
	struct fixture *fixture = *state;
	struct weir_mark mark, other, none = {0};
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(fixture_send_number(fixture, 1, i, 300), WEIR_OK);
	fixture_settle(fixture);
	struct weir_consumer *consumer = fixture_consumer(fixture, NULL);
	assert_int_equal(weir_bus_read_mark(fixture->bus, WEIR_TOPIC_EVENTS, 1, 3, 1000, &mark, &fixture->error), WEIR_OK);
	assert_int_equal(mark.offset, 3);
	assert_int_equal(weir_bus_read_mark(fixture->bus, WEIR_TOPIC_EVENTS, 1, 5, 1000, &other, &fixture->error),
	                 WEIR_END);
	assert_int_equal(fixture->ops->resume(consumer, 1, 4, &mark, &fixture->error), WEIR_OK);
	assert_int_equal(weir_bus_verify(fixture->bus, WEIR_TOPIC_EVENTS, 1, 4, &mark, 1000, &fixture->error), WEIR_OK);
	other = mark;
	other.hash++;
	assert_int_equal(fixture->ops->resume(consumer, 1, 4, &other, &fixture->error), WEIR_ANEW);
	assert_non_null(strstr(fixture->error.text, "weir.events was recreated or lost its newest messages"));
	assert_int_equal(weir_bus_verify(fixture->bus, WEIR_TOPIC_EVENTS, 1, 4, &other, 1000, &fixture->error), WEIR_ANEW);
	other = mark;
	other.appended_ms--;
	assert_int_equal(fixture->ops->resume(consumer, 1, 4, &other, &fixture->error), WEIR_ANEW);
	assert_int_equal(fixture->ops->resume(consumer, 1, 6, &mark, &fixture->error), WEIR_ANEW);
	assert_non_null(strstr(fixture->error.text, "lost its newest messages (partition 1 ends at 5"));
	assert_int_equal(fixture->ops->resume(consumer, 1, 4, &none, &fixture->error), WEIR_OK);
	assert_int_equal(fixture->ops->resume(consumer, 1, 0, &none, &fixture->error), WEIR_OK);
	fixture->ops->consumer_free(consumer);
}

static struct weir_mark mark_at(struct fixture *fixture, uint32_t partition, uint64_t offset)
{
	struct weir_mark mark;
	assert_int_equal(
		weir_bus_read_mark(fixture->bus, WEIR_TOPIC_EVENTS, partition, offset, 1000, &mark, &fixture->error), WEIR_OK);
	return mark;
}

/* Each gets its own answer, whatever the others get. */
static void many_positions_are_verified_together(void **state)
{
	struct fixture *fixture = *state;
	for (uint32_t partition = 0; partition < FIXTURE_PARTITIONS; partition++)
		for (uint64_t i = 0; i < 40; i++)
			assert_int_equal(fixture_send_number(fixture, partition, i, 300), WEIR_OK);
	fixture_settle(fixture);
	struct weir_position positions[FIXTURE_PARTITIONS];
	for (uint32_t i = 0; i < FIXTURE_PARTITIONS; i++)
		positions[i] = (struct weir_position){.partition = i, .next = 10 + i, .mark = mark_at(fixture, i, 9 + i)};
	positions[1].mark.hash++;
	positions[2].next = 41;
	weir_bus_verify_all(fixture->bus, WEIR_TOPIC_EVENTS, positions, FIXTURE_PARTITIONS, 5000);
	static const enum weir_status expected[] = {WEIR_OK, WEIR_ANEW, WEIR_ANEW, WEIR_OK};
	for (uint32_t i = 0; i < FIXTURE_PARTITIONS; i++) {
		assert_int_equal(positions[i].status, expected[i]);
		assert_int_equal(positions[i].first, 0);
		assert_int_equal(positions[i].end, 40);
	}
	assert_non_null(strstr(positions[1].why.text, "another message at offset 10"));
	assert_non_null(strstr(positions[2].why.text, "ends at 40"));
	weir_bus_verify_all(fixture->bus, WEIR_TOPIC_EVENTS, positions, FIXTURE_PARTITIONS, 0);
	for (uint32_t i = 0; i < FIXTURE_PARTITIONS; i++)
		assert_int_equal(positions[i].status, WEIR_AGAIN);
}

/* A message that cannot be read can be compared with nothing: that is no gap. */
static void a_damaged_mark_is_no_gap(void **state)
{
	struct fixture *fixture = *state;
	char found[16 * 1024];
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(fixture_send_number(fixture, 1, i, 300), WEIR_OK);
	fixture_settle(fixture);
	struct weir_mark mark = mark_at(fixture, 1, 4);
	int fd = open(fixture_segment(fixture, 1), O_RDWR);
	assert_true(fd >= 0);
	ssize_t length = pread(fd, found, sizeof found, 0);
	const char *at = length > 0 ? memmem(found, (size_t)length, "1 4 ", 4) : NULL;
	assert_non_null(at);
	assert_int_equal(pwrite(fd, "X", 1, at + 100 - found), 1);
	close(fd);
	assert_int_equal(weir_bus_read_mark(fixture->bus, WEIR_TOPIC_EVENTS, 1, 4, 1000, &mark, &fixture->error),
	                 WEIR_INVALID);
	assert_int_equal(weir_bus_verify(fixture->bus, WEIR_TOPIC_EVENTS, 1, 5, &mark, 1000, &fixture->error), WEIR_OK);
	assert_int_equal(weir_bus_verify(fixture->bus, WEIR_TOPIC_EVENTS, 1, 9, &mark, 1000, &fixture->error), WEIR_ANEW);
}

/* A log of which a part is deleted between the question for its extent and the reading of a mark. */
static struct weir_bus_ops trimmed_ops;
static const struct weir_bus_ops *real_ops;
static uint64_t trimmed_to, extents;

static enum weir_status trimmed_extent(struct weir_bus *bus, enum weir_topic topic, uint32_t partition, uint64_t *first,
                                       uint64_t *next, struct weir_error *error)
{
	enum weir_status status = real_ops->extent(bus, topic, partition, first, next, error);
	if (extents++ > 0)
		*first = trimmed_to;
	return status;
}

static enum weir_status trimmed_assign(struct weir_consumer *consumer, uint32_t partition, uint64_t offset,
                                       struct weir_error *error)
{
	(void)consumer;
	return weir_fail(error, WEIR_INVALID, "partition %u has no offset %llu any more", partition,
	                 (unsigned long long)offset);
}

static void a_mark_that_is_deleted_meanwhile_is_no_gap(void **state)
{
	struct fixture *fixture = *state;
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(fixture_send_number(fixture, 1, i, 300), WEIR_OK);
	fixture_settle(fixture);
	struct weir_mark mark = mark_at(fixture, 1, 4);
	real_ops = fixture->bus->ops;
	trimmed_ops = *real_ops;
	trimmed_ops.extent = trimmed_extent;
	trimmed_ops.assign = trimmed_assign;
	fixture->bus->ops = &trimmed_ops;
	for (trimmed_to = 5; trimmed_to <= 6; trimmed_to++) {
		extents = 0;
		assert_int_equal(weir_bus_verify(fixture->bus, WEIR_TOPIC_EVENTS, 1, 5, &mark, 1000, &fixture->error),
		                 trimmed_to == 5 ? WEIR_OK : WEIR_INVALID);
	}
	fixture->bus->ops = real_ops;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whatever_happens_to_the_log_numbers_grow_and_nothing_of_it_is_skipped,
	                                    fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_position_is_taken_up_in_the_same_log_alone, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(many_positions_are_verified_together, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_damaged_mark_is_no_gap, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_mark_that_is_deleted_meanwhile_is_no_gap, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("recreated", tests, NULL, NULL);
}

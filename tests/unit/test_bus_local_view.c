/* SPDX-License-Identifier: Apache-2.0 */
/* A local bus as another process sees it: every message in order, as it is written, succeeded, trimmed and mended. */
#include "bus_fixture.h"
#include "common/base/clock.h"
#include "common/bus/local/bus_local_segment.h"
#include "common/bus/local/bus_local_view.h"

#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#define test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

enum { MESSAGE_BYTES = 500, BATCH = 64 };

/* Messages to partitions 0, 1, 2 in turn. */
static void fill(struct fixture *fixture, uint64_t count)
{
	uint64_t before = fixture->sent;
	for (uint64_t i = before; i < before + count; i++) {
		assert_int_equal(WEIR_OK, fixture_send_number(fixture, (uint32_t)(i % 3), i / 3, MESSAGE_BYTES));
		if (i % 50 == 0)
			fixture_settle(fixture);
	}
	fixture_settle(fixture);
}

static struct weir_bus *view_of(struct fixture *fixture)
{
	struct weir_bus *bus;
	if (weir_bus_local_view(fixture->directory, &bus, &fixture->error) != WEIR_OK)
		fail_msg("%s", fixture->error.text);
	return bus;
}

static struct weir_consumer *consumer_from(struct fixture *fixture, struct weir_bus *bus, uint64_t from)
{
	struct weir_consumer *consumer;
	assert_int_equal(WEIR_OK, bus->ops->consumer_new(bus, WEIR_TOPIC_EVENTS, NULL, &consumer, &fixture->error));
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(WEIR_OK, bus->ops->assign(consumer, i, from, &fixture->error));
	return consumer;
}

/* Reads what is there, and asserts that it is in order. @return how many messages; -1: refused */
static int64_t read_all(struct fixture *fixture, struct weir_bus *bus, struct weir_consumer *consumer, uint64_t next[3])
{
	struct weir_message messages[BATCH];
	size_t count;
	int64_t all = 0;
	do {
		enum weir_status status = bus->ops->receive(consumer, messages, BATCH, 0, &count, &fixture->error);
		if (status == WEIR_INVALID)
			return -1;
		assert_int_equal(WEIR_OK, status);
		for (size_t i = 0; i < count; i++) {
			char expected[64];
			int length = snprintf(expected, sizeof expected, "%u %llu ", messages[i].partition,
			                      (unsigned long long)messages[i].offset);
			assert_int_equal(next[messages[i].partition]++, messages[i].offset);
			assert_int_equal(MESSAGE_BYTES, messages[i].payload.length);
			assert_memory_equal(expected, messages[i].payload.at, (size_t)length);
		}
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(next[i], bus->ops->position(consumer, i));
		all += (int64_t)count;
	} while (count > 0);
	return all;
}

/* What comes may have come before. @param delivered  set to the offset behind the last one of each partition */
static void read_again(struct fixture *fixture, struct weir_bus *bus, struct weir_consumer *consumer,
                       uint64_t delivered[3])
{
	struct weir_message messages[BATCH];
	size_t count;
	do {
		assert_int_equal(WEIR_OK, bus->ops->receive(consumer, messages, BATCH, 0, &count, &fixture->error));
		for (size_t i = 0; i < count; i++)
			delivered[messages[i].partition] = messages[i].offset + 1;
	} while (count > 0);
}

static void test_it_follows_what_is_written(void **state)
{
	struct fixture *fixture = *state;
	uint64_t next[3] = {0}, first, end;
	struct weir_bus *bus = view_of(fixture);
	struct weir_consumer *consumer = consumer_from(fixture, bus, 0);
	assert_int_equal(0, read_all(fixture, bus, consumer, next));
	for (int round = 0; round < 20; round++) { /* through many files */
		fill(fixture, 90);
		assert_int_equal(90, read_all(fixture, bus, consumer, next));
	}
	usleep(150 * 1000); /* so old may be what it says of the end */
	assert_int_equal(WEIR_OK, bus->ops->extent(bus, WEIR_TOPIC_EVENTS, 1, &first, &end, &fixture->error));
	assert_int_equal(0, first);
	assert_int_equal(600, end);
	/* From the middle on. */
	struct weir_consumer *other = consumer_from(fixture, bus, 321);
	uint64_t middle[3] = {321, 321, 321};
	assert_int_equal(3 * (600 - 321), read_all(fixture, bus, other, middle));
	assert_int_equal(WEIR_INVALID, bus->ops->assign(other, 0, 601, &fixture->error));
	assert_int_equal(WEIR_OK, bus->ops->assign(other, 2, 599, &fixture->error)); /* back by one */
	middle[2] = 599;
	assert_int_equal(1, read_all(fixture, bus, other, middle));
	bus->ops->consumer_free(other);
	bus->ops->consumer_free(consumer);
	bus->ops->close(bus);
}

static void test_it_goes_on_when_the_holder_is_started_again(void **state)
{
	struct fixture *fixture = *state;
	uint64_t next[3] = {0};
	fill(fixture, 30);
	struct weir_bus *bus = view_of(fixture);
	struct weir_consumer *consumer = consumer_from(fixture, bus, 0);
	assert_int_equal(30, read_all(fixture, bus, consumer, next));
	fixture_close(fixture);
	assert_int_equal(0, read_all(fixture, bus, consumer, next));
	fixture_open(fixture);
	fill(fixture, 30);
	assert_int_equal(30, read_all(fixture, bus, consumer, next));
	bus->ops->consumer_free(consumer);
	bus->ops->close(bus);
}

/* The path of a file of the topic, by its place. */
static void file_at(const struct fixture *fixture, size_t place, char path[WEIR_PATH_BYTES])
{
	glob_t found;
	char pattern[WEIR_PATH_BYTES];
	assert_int_equal(WEIR_OK, weir_path_format(pattern, NULL, "%s/events/*.log", fixture->directory));
	assert_int_equal(0, glob(pattern, 0, NULL, &found));
	assert_true(found.gl_pathc > place);
	snprintf(path, WEIR_PATH_BYTES, "%s", found.gl_pathv[place]);
	globfree(&found);
}

static void test_what_is_trimmed_before_it_is_read_is_a_gap(void **state)
{
	struct fixture *fixture = *state;
	uint64_t next[3] = {0};
	char path[WEIR_PATH_BYTES];
	struct weir_message message;
	size_t count;
	fill(fixture, 30);
	struct weir_bus *bus = view_of(fixture);
	struct weir_consumer *consumer = consumer_from(fixture, bus, 0);
	assert_int_equal(30, read_all(fixture, bus, consumer, next));
	fill(fixture, 900);
	for (int i = 0; i < 3; i++) {
		file_at(fixture, 0, path);
		assert_int_equal(0, unlink(path));
	}
	/* The rest of the file that it has open is read yet; then it does not go on as if nothing were missing. */
	assert_int_equal(-1, read_all(fixture, bus, consumer, next));
	assert_true(next[0] > 10 && next[0] < 300);
	assert_int_equal(WEIR_INVALID, bus->ops->receive(consumer, &message, 1, 0, &count, &fixture->error));
	assert_int_equal(next[message.partition], message.offset);
	bus->ops->consumer_free(consumer);
	bus->ops->close(bus);
}

static void test_damage_is_told_and_can_be_passed(void **state)
{
	struct fixture *fixture = *state;
	uint64_t next[3] = {0};
	char path[WEIR_PATH_BYTES], byte;
	fill(fixture, 600);
	file_at(fixture, 0, path);
	int fd = open(path, O_RDWR);
	off_t at = (off_t)weir_bus_segment_header_bytes(3) + 10 * (WEIR_BUS_RECORD_HEADER_BYTES + MESSAGE_BYTES) + 100;
	assert_int_equal(1, pread(fd, &byte, 1, at));
	byte ^= 0x40;
	assert_int_equal(1, pwrite(fd, &byte, 1, at));
	close(fd);
	struct weir_bus *bus = view_of(fixture);
	struct weir_consumer *consumer = consumer_from(fixture, bus, 0);
	assert_int_equal(-1, read_all(fixture, bus, consumer, next));
	assert_int_equal(3, next[1]); /* the tenth message is partition 1's fourth */
	assert_int_equal(WEIR_OK, bus->ops->assign(consumer, 1, 4, &fixture->error));
	next[1] = 4;
	read_all(fixture, bus, consumer, next);
	for (int i = 0; i < 3; i++)
		assert_int_equal(200, next[i]);
	bus->ops->consumer_free(consumer);
	bus->ops->close(bus);
}

static void test_what_could_not_be_written_is_delivered_again(void **state)
{
	struct fixture *fixture = *state;
	uint64_t next[3] = {0};
	fill(fixture, 30);
	struct weir_bus *bus = view_of(fixture);
	struct weir_consumer *consumer = consumer_from(fixture, bus, 0);
	assert_int_equal(30, read_all(fixture, bus, consumer, next));
	for (uint64_t failures = 1; failures <= 6; failures++) {
		uint64_t first = 9 + failures;
		/* Written, and seen; then the disk says that it is not there, of the next file, too. */
		sync_blocked = true;
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(WEIR_OK, fixture_send_number(fixture, i, first, MESSAGE_BYTES));
		for (int64_t end_ms = weir_monotonic_ms() + 30000; next[0] < first + 1;) {
			assert_true(weir_monotonic_ms() < end_ms);
			read_all(fixture, bus, consumer, next);
		}
		syncs_to_fail = (int)failures;
		sync_blocked = false;
		uint64_t delivered[3] = {0};
		while (syncs_to_fail > 0)
			read_again(fixture, bus, consumer, delivered);
		fixture_settle(fixture);
		read_again(fixture, bus, consumer, delivered);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(first + 1, delivered[i]);
			assert_int_equal(first + 1, bus->ops->position(consumer, (uint32_t)i));
			next[i] = first + 1;
		}
	}
	bus->ops->consumer_free(consumer);
	bus->ops->close(bus);
}

static void test_a_log_that_is_made_anew_ends_at_its_beginning(void **state)
{
	struct fixture *fixture = *state;
	uint64_t next[3] = {0}, first, end;
	char path[WEIR_PATH_BYTES], words[256];
	struct weir_bus *bus;
	fill(fixture, 30);
	bus = view_of(fixture);
	struct weir_consumer *consumer = consumer_from(fixture, bus, 0);
	assert_int_equal(30, read_all(fixture, bus, consumer, next));
	assert_false(bus->ops->problem(bus, words, sizeof words));
	assert_int_equal(WEIR_OK, weir_path_format(path, NULL, "%s/partitions", fixture->directory));
	assert_int_equal(WEIR_OK, weir_durable_write(path, "3\n", 2, &fixture->error));
	assert_int_equal(-1, read_all(fixture, bus, consumer, next));
	assert_int_equal(WEIR_OK, bus->ops->extent(bus, WEIR_TOPIC_EVENTS, 0, &first, &end, &fixture->error));
	assert_int_equal(0, end);
	assert_true(bus->ops->problem(bus, words, sizeof words));
	bus->ops->consumer_free(consumer);
	bus->ops->close(bus);
}

static void test_it_can_change_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct weir_consumer *consumer;
	struct weir_producer *producer;
	struct weir_bus *bus = view_of(fixture), *none;
	assert_int_equal(WEIR_INVALID, bus->ops->consumer_new(bus, WEIR_TOPIC_EVENTS, "name", &consumer, &fixture->error));
	assert_int_equal(WEIR_INVALID, bus->ops->producer_new(bus, &producer, &fixture->error));
	bus->ops->close(bus);
	char path[WEIR_PATH_BYTES];
	assert_int_equal(WEIR_OK, weir_path_format(path, NULL, "%s/none", fixture->directory));
	assert_int_equal(WEIR_AGAIN, weir_bus_local_view(path, &none, &fixture->error));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_it_follows_what_is_written),
		test(test_it_goes_on_when_the_holder_is_started_again),
		test(test_what_is_trimmed_before_it_is_read_is_a_gap),
		test(test_damage_is_told_and_can_be_passed),
		test(test_what_could_not_be_written_is_delivered_again),
		test(test_a_log_that_is_made_anew_ends_at_its_beginning),
		test(test_it_can_change_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

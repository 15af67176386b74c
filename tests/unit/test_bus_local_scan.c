/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a local bus from beside it: every message, in order, past damage, while it is written and trimmed. */
#include "bus_fixture.h"
#include "common/bus/local/bus_local_scan.h"
#include "common/bus/local/bus_local_segment.h"

#include <fcntl.h>
#include <sys/stat.h>

#define test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

enum { MESSAGE_BYTES = 500, RECORD_BYTES = WEIR_BUS_RECORD_HEADER_BYTES + MESSAGE_BYTES, COUNT = 600 };

/* Messages to partitions 0, 1, 2 in turn: several files of them. */
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

static struct weir_bus_scan *scan_from(struct fixture *fixture, uint32_t partition, uint64_t from)
{
	struct weir_bus_scan *scan;
	if (weir_bus_scan_open(fixture->directory, WEIR_TOPIC_EVENTS, partition, from, &scan, &fixture->error) != WEIR_OK)
		fail_msg("%s", fixture->error.text);
	return scan;
}

static void assert_number(const struct weir_message *message)
{
	char expected[64];
	int length =
		snprintf(expected, sizeof expected, "%u %llu ", message->partition, (unsigned long long)message->offset);
	assert_int_equal(MESSAGE_BYTES, message->payload.length);
	assert_memory_equal(expected, message->payload.at, (size_t)length);
}

/* What a scan to the end finds: messages, and complaints. */
struct found {
	uint64_t messages, damaged;
	uint64_t first, last; /* offsets of the last partition seen */
	char words[WEIR_ERROR_TEXT_BYTES];
};

static struct found scan_all(struct fixture *fixture, uint32_t partition, uint64_t from)
{
	struct found found = {.first = UINT64_MAX};
	struct weir_bus_scan *scan = scan_from(fixture, partition, from);
	struct weir_message message;
	enum weir_status status;
	while ((status = weir_bus_scan_next(scan, &message, &fixture->error)) != WEIR_END) {
		if (status != WEIR_OK) {
			assert_int_equal(WEIR_INVALID, status);
			snprintf(found.words, sizeof found.words, "%s", fixture->error.text);
			found.damaged++;
			continue;
		}
		assert_number(&message);
		assert_int_equal(WEIR_TOPIC_EVENTS, message.topic);
		if (found.first == UINT64_MAX)
			found.first = message.offset;
		found.last = message.offset;
		found.messages++;
	}
	weir_bus_scan_free(scan);
	return found;
}

static void flip(const char *path, off_t at)
{
	char byte;
	int fd = open(path, O_RDWR);
	assert_int_equal(1, pread(fd, &byte, 1, at));
	byte = (char)(byte ^ 0x40);
	assert_int_equal(1, pwrite(fd, &byte, 1, at));
	close(fd);
}

/* The place of the n-th record of the first file. */
static off_t place_of(unsigned n)
{
	return (off_t)weir_bus_segment_header_bytes(FIXTURE_PARTITIONS) + (off_t)n * RECORD_BYTES;
}

static void every_message_is_found_while_the_bus_is_open(void **state)
{
	struct fixture *fixture = *state;
	assert_int_equal(0, scan_all(fixture, WEIR_BUS_EVERY_PARTITION, 0).messages);
	fill(fixture, COUNT);
	assert_int_equal(0, access(fixture_segment(fixture, 4), F_OK));
	struct found found = scan_all(fixture, WEIR_BUS_EVERY_PARTITION, 0);
	assert_int_equal(COUNT, found.messages);
	assert_int_equal(0, found.damaged);
	/* They come as they were written: partitions in turn. */
	struct weir_bus_scan *scan = scan_from(fixture, WEIR_BUS_EVERY_PARTITION, 0);
	struct weir_message message;
	for (uint64_t i = 0; i < COUNT; i++) {
		assert_int_equal(WEIR_OK, weir_bus_scan_next(scan, &message, NULL));
		assert_int_equal(i % 3, message.partition);
		assert_int_equal(i / 3, message.offset);
	}
	assert_int_equal(WEIR_END, weir_bus_scan_next(scan, &message, NULL));
	assert_int_equal(WEIR_END, weir_bus_scan_next(scan, &message, NULL));
	weir_bus_scan_free(scan);
}

static void keys_are_told_from_none(void **state)
{
	struct fixture *fixture = *state;
	assert_int_equal(WEIR_OK, fixture_send(fixture, 0, "a key", "payload"));
	assert_int_equal(WEIR_OK, fixture_send(fixture, 0, NULL, "payload"));
	fixture_settle(fixture);
	struct weir_bus_scan *scan = scan_from(fixture, 0, 0);
	struct weir_message message;
	assert_int_equal(WEIR_OK, weir_bus_scan_next(scan, &message, NULL));
	assert_span("a key", message.key);
	assert_span("payload", message.payload);
	assert_int_equal(WEIR_OK, weir_bus_scan_next(scan, &message, NULL));
	assert_null(message.key.at);
	weir_bus_scan_free(scan);
}

static void a_partition_is_read_from_any_offset(void **state)
{
	struct fixture *fixture = *state;
	fill(fixture, COUNT);
	for (uint64_t from = 0; from <= COUNT / 3 + 5; from += 13) {
		struct found found = scan_all(fixture, 1, from);
		uint64_t expected = from < COUNT / 3 ? COUNT / 3 - from : 0;
		assert_int_equal(expected, found.messages);
		if (expected > 0) {
			assert_int_equal(from, found.first);
			assert_int_equal(COUNT / 3 - 1, found.last);
		}
	}
	assert_int_equal(0, scan_all(fixture, 3, 0).messages);
	assert_int_equal(3 * 100, scan_all(fixture, WEIR_BUS_EVERY_PARTITION, 100).messages);
}

static void what_is_no_bus_or_partition_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct weir_bus_scan *scan;
	assert_int_equal(WEIR_INVALID, weir_bus_scan_open("/", WEIR_TOPIC_EVENTS, 0, 0, &scan, &fixture->error));
	assert_non_null(strstr(fixture->error.text, "no local log in /"));
	assert_int_equal(WEIR_INVALID, weir_bus_scan_open(fixture->directory, WEIR_TOPIC_EVENTS, FIXTURE_PARTITIONS, 0,
	                                                  &scan, &fixture->error));
	assert_non_null(strstr(fixture->error.text, "no partition 4; expected 0 to 3"));
	assert_int_equal(WEIR_INVALID,
	                 weir_bus_scan_open(fixture->directory, WEIR_TOPIC_POLICY, 1, 0, &scan, &fixture->error));
}

static void damage_costs_what_is_damaged(void **state)
{
	struct fixture *fixture = *state;
	fill(fixture, COUNT);
	fixture_close(fixture);
	const char *path = fixture_segment(fixture, 1);
	flip(path, place_of(5) + 3);                /* a header */
	flip(path, place_of(9) + RECORD_BYTES - 1); /* a body */
	flip(path, place_of(20) + 30);              /* two next to each other */
	flip(path, place_of(21) + 200);
	struct found found = scan_all(fixture, WEIR_BUS_EVERY_PARTITION, 0);
	assert_int_equal(3, found.damaged);
	assert_int_equal(COUNT - 4, found.messages);
	char words[64];
	snprintf(words, sizeof words, "bytes %lld to %lld", (long long)place_of(20), (long long)place_of(22));
	assert_non_null(strstr(found.words, words));
	assert_non_null(strstr(found.words, "00000000000000000001.log"));
	/* The header of a file that is not the last one. */
	flip(fixture_segment(fixture, 2), 20);
	assert_int_equal(4, scan_all(fixture, WEIR_BUS_EVERY_PARTITION, 0).damaged);
}

static void damage_to_the_last_batch_is_told(void **state)
{
	struct fixture *fixture = *state;
	fill(fixture, 10);
	fixture_close(fixture);
	const char *path = fixture_segment(fixture, 1);
	flip(path, place_of(9) + RECORD_BYTES - 1);
	struct found found = scan_all(fixture, WEIR_BUS_EVERY_PARTITION, 0);
	assert_int_equal(9, found.messages);
	assert_int_equal(1, found.damaged);
	char words[64];
	snprintf(words, sizeof words, "bytes %lld to %lld", (long long)place_of(9), (long long)place_of(10));
	assert_non_null(strstr(found.words, words));
}

static void a_torn_tail_is_no_damage(void **state)
{
	struct fixture *fixture = *state;
	fill(fixture, 10);
	const char *path = fixture_segment(fixture, 1);
	for (off_t left = RECORD_BYTES - 1; left > 0; left -= 37) {
		assert_int_equal(0, truncate(path, place_of(9) + left));
		struct found found = scan_all(fixture, WEIR_BUS_EVERY_PARTITION, 0);
		assert_int_equal(9, found.messages);
		assert_int_equal(0, found.damaged);
	}
	/* A file that is just being made. */
	int fd = open(fixture_segment(fixture, 2), O_CREAT | O_WRONLY, 0600);
	assert_int_equal(4, write(fd, "weir", 4));
	close(fd);
	assert_int_equal(9, scan_all(fixture, WEIR_BUS_EVERY_PARTITION, 0).messages);
}

/* Has the n-th record of the first file say that so many bytes were on disk when it was written. */
static void say_durable(struct fixture *fixture, unsigned n, off_t durable)
{
	char directory[512], header[WEIR_BUS_RECORD_HEADER_BYTES];
	struct weir_bus_segment *segment;
	struct weir_bus_record record;
	snprintf(directory, sizeof directory, "%s/events", fixture->directory);
	assert_int_equal(WEIR_OK,
	                 weir_bus_segment_open(directory, WEIR_TOPIC_EVENTS, FIXTURE_PARTITIONS, 1, &segment, NULL));
	int fd = open(fixture_segment(fixture, 1), O_RDWR);
	assert_int_equal(sizeof header, pread(fd, header, sizeof header, place_of(n)));
	assert_true(weir_bus_record_decode(header, segment->id, FIXTURE_PARTITIONS, &record));
	record.durable = (uint32_t)durable;
	weir_bus_record_encode(&record, segment->id, header);
	assert_int_equal(sizeof header, pwrite(fd, header, sizeof header, place_of(n)));
	close(fd);
	weir_bus_segment_free(segment);
}

/* A crash may leave later records of a batch, and not the ones before them: none of it was acknowledged. */
static void a_batch_that_is_torn_in_its_middle_is_no_damage(void **state)
{
	struct fixture *fixture = *state;
	fill(fixture, 10);
	fixture_close(fixture);
	const char *path = fixture_segment(fixture, 1);
	assert_int_equal(0, truncate(path, place_of(10)));
	for (unsigned n = 6; n < 10; n++)
		say_durable(fixture, n, place_of(6));
	flip(path, place_of(7) + 100);
	struct found found = scan_all(fixture, WEIR_BUS_EVERY_PARTITION, 0);
	assert_int_equal(0, found.damaged);
	assert_int_equal(7, found.messages);
	/* A later one says that it was on disk: then the whole ones between them count, too. */
	say_durable(fixture, 9, place_of(9));
	found = scan_all(fixture, WEIR_BUS_EVERY_PARTITION, 0);
	assert_int_equal(1, found.damaged);
	assert_int_equal(9, found.messages);
	char words[64];
	snprintf(words, sizeof words, "bytes %lld to %lld", (long long)place_of(7), (long long)place_of(8));
	assert_non_null(strstr(found.words, words));
}

static void trimming_goes_on_meanwhile(void **state)
{
	struct fixture *fixture = *state;
	struct weir_consumer *consumer = fixture_consumer(fixture, "reader");
	fill(fixture, COUNT);
	unsigned last = 1;
	while (access(fixture_segment(fixture, last + 1), F_OK) == 0)
		last++;
	struct weir_bus_scan *scan = scan_from(fixture, WEIR_BUS_EVERY_PARTITION, 0);
	struct weir_message message;
	assert_int_equal(WEIR_OK, weir_bus_scan_next(scan, &message, NULL));
	for (uint32_t i = 0; i < 3; i++)
		fixture->ops->consumed(consumer, i, COUNT / 3);
	while (access(fixture_segment(fixture, last - 1), F_OK) == 0)
		usleep(1000);
	uint64_t messages = 1;
	enum weir_status status;
	while ((status = weir_bus_scan_next(scan, &message, &fixture->error)) == WEIR_OK) {
		assert_number(&message);
		messages++;
	}
	assert_int_equal(WEIR_END, status);
	assert_true(messages > 1 && messages < COUNT);
	weir_bus_scan_free(scan);
	scan = scan_from(fixture, 0, 0);
	uint64_t first = weir_bus_scan_first(scan, 0), known, next;
	assert_true(first > 0);
	do /* its files go before the bus forgets them */
		fixture_extent(fixture, 0, &known, &next);
	while (known < first);
	assert_int_equal(first, known);
	assert_int_equal(WEIR_OK, weir_bus_scan_next(scan, &message, NULL));
	assert_int_equal(first, message.offset);
	weir_bus_scan_free(scan);
	fixture->ops->consumer_free(consumer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(every_message_is_found_while_the_bus_is_open),
		test(keys_are_told_from_none),
		test(a_partition_is_read_from_any_offset),
		test(what_is_no_bus_or_partition_is_refused),
		test(damage_costs_what_is_damaged),
		test(damage_to_the_last_batch_is_told),
		test(a_torn_tail_is_no_damage),
		test(a_batch_that_is_torn_in_its_middle_is_no_damage),
		test(trimming_goes_on_meanwhile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

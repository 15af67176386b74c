/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local bus for tests: opened in a directory, with a disk that fails when
 * told to, and words for sending and receiving.
 */
#ifndef TESTS_UNIT_BUS_FIXTURE_H
#define TESTS_UNIT_BUS_FIXTURE_H

#include "common/bus/bus.h"
#include "common/bus/local/bus_local.h"
#include "common/files/durable_file.h"
#include "scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <cmocka.h>

/*
 * These stand before the C library's: what a failing disk does cannot be had otherwise. Each counts down: so many of the
 * next calls fail.
 */
static _Atomic int syncs_to_fail, writes_to_fail, writes_error = EIO;
static _Atomic long long write_room = -1; /* bytes until writing fails with ENOSPC; -1: no end */
static _Atomic long long write_most = -1; /* bytes of one write; more of them fail with ENOSPC; -1: no end */
static _Atomic bool sync_blocked;

int fdatasync(int fd)
{
	while (sync_blocked)
		usleep(1000);
	if (syncs_to_fail > 0) {
		syncs_to_fail--;
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fdatasync, fd);
}

ssize_t pwritev(int fd, const struct iovec *vectors, int count, off_t at)
{
	if (writes_to_fail > 0) {
		writes_to_fail--;
		errno = writes_error;
		return -1;
	}
	size_t bytes = 0;
	for (int i = 0; i < count; i++)
		bytes += vectors[i].iov_len;
	if (write_most >= 0 && bytes > (size_t)write_most) {
		errno = ENOSPC;
		return -1;
	}
	if (write_room >= 0) {
		/* A disk that fills up takes a part first. */
		if (write_room == 0) {
			errno = ENOSPC;
			return -1;
		}
		size_t part = vectors->iov_len < (size_t)write_room ? vectors->iov_len : (size_t)write_room;
		write_room -= (long long)part;
		return (ssize_t)syscall(SYS_pwrite64, fd, vectors->iov_base, part, at);
	}
	return (ssize_t)syscall(SYS_pwritev, fd, vectors, count, at, 0);
}

enum { FIXTURE_PARTITIONS = 4 };

struct fixture {
	char *directory;
	struct weir_bus_local_options options;
	struct weir_bus *bus;
	const struct weir_bus_ops *ops;
	struct weir_producer *producer;
	uint64_t sent, delivered; /* tags: the number of a message */
	struct weir_error error;
};

static inline void fixture_open(struct fixture *fixture)
{
	if (weir_bus_local_open(fixture->directory, &fixture->options, &fixture->bus, &fixture->error) != WEIR_OK ||
	    fixture->bus == NULL)
		fail_msg("%s", fixture->error.text);
	fixture->ops = fixture->bus->ops;
	assert_int_equal(WEIR_OK, fixture->ops->producer_new(fixture->bus, &fixture->producer, NULL));
}

static inline void fixture_close(struct fixture *fixture)
{
	if (fixture->bus == NULL)
		return;
	fixture->ops->producer_free(fixture->producer);
	fixture->ops->close(fixture->bus);
	fixture->bus = NULL;
}

static inline void fixture_reopen(struct fixture *fixture)
{
	fixture_close(fixture);
	fixture->sent = fixture->delivered = 0;
	fixture_open(fixture);
}

static inline int fixture_setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	syncs_to_fail = writes_to_fail = 0;
	writes_error = EIO;
	write_room = write_most = -1;
	sync_blocked = false;
	fixture->directory = scratch_new();
	fixture->options.partitions = FIXTURE_PARTITIONS;
	fixture->options.segment_bytes = 64 * 1024;
	*state = fixture;
	fixture_open(fixture);
	return 0;
}

static inline int fixture_teardown(void **state)
{
	struct fixture *fixture = *state;
	fixture_close(fixture);
	scratch_remove(fixture->directory);
	free(fixture->directory);
	free(fixture);
	return 0;
}

static inline struct weir_span span(const char *text)
{
	return text != NULL ? weir_span_of(text) : (struct weir_span){0};
}

static inline void assert_span(const char *expected, struct weir_span found)
{
	struct weir_span wanted = span(expected);
	assert_int_equal(wanted.length, found.length);
	if (wanted.length > 0)
		assert_memory_equal(wanted.at, found.at, wanted.length);
}

static inline enum weir_status fixture_send(struct fixture *fixture, uint32_t partition, const char *key,
                                            const char *payload)
{
	enum weir_status status = fixture->ops->send(fixture->producer, WEIR_TOPIC_EVENTS, partition, span(key),
	                                             span(payload), fixture->sent, &fixture->error);
	fixture->sent += status == WEIR_OK;
	return status;
}

/* A message whose payload says its partition and number, padded to a size. */
static inline enum weir_status fixture_send_number(struct fixture *fixture, uint32_t partition, uint64_t number,
                                                   size_t bytes)
{
	char *payload = malloc(bytes + 64);
	int used = snprintf(payload, 64, "%u %llu ", partition, (unsigned long long)number);
	for (size_t i = (size_t)used; i < bytes; i++)
		payload[i] = (char)('a' + (number + i) % 26);
	payload[(size_t)used < bytes ? bytes : (size_t)used] = '\0';
	enum weir_status status = fixture_send(fixture, partition, NULL, payload);
	free(payload);
	return status;
}

/* Waits until everything sent is delivered. */
static inline void fixture_settle(struct fixture *fixture)
{
	struct weir_delivery deliveries[16];
	while (fixture->delivered < fixture->sent) {
		size_t count = fixture->ops->poll(fixture->producer, deliveries, 16, 10000);
		assert_true(count > 0);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(WEIR_OK, deliveries[i].status);
		fixture->delivered += count;
	}
}

static inline struct weir_consumer *fixture_consumer(struct fixture *fixture, const char *reader)
{
	struct weir_consumer *consumer;
	if (fixture->ops->consumer_new(fixture->bus, WEIR_TOPIC_EVENTS, reader, &consumer, &fixture->error) != WEIR_OK)
		fail_msg("%s", fixture->error.text);
	return consumer;
}

static inline void fixture_assign(struct fixture *fixture, struct weir_consumer *consumer, uint32_t partition,
                                  uint64_t offset)
{
	if (fixture->ops->assign(consumer, partition, offset, &fixture->error) != WEIR_OK)
		fail_msg("%s", fixture->error.text);
}

static inline void fixture_extent(struct fixture *fixture, uint32_t partition, uint64_t *first, uint64_t *next)
{
	assert_int_equal(WEIR_OK, fixture->ops->extent(fixture->bus, WEIR_TOPIC_EVENTS, partition, first, next, NULL));
}

/*
 * Reads a partition from an offset, or its first one if that is higher, to its next and checks that payloads are
 * "partition offset". Gives the next offset.
 */
static inline uint64_t fixture_check_from(struct fixture *fixture, uint32_t partition, uint64_t from)
{
	uint64_t first, next;
	struct weir_message messages[64];
	fixture_extent(fixture, partition, &first, &next);
	if (first < from)
		first = from;
	struct weir_consumer *consumer = fixture_consumer(fixture, NULL);
	fixture_assign(fixture, consumer, partition, first);
	for (uint64_t offset = first; offset < next;) {
		size_t count;
		if (fixture->ops->receive(consumer, messages, 64, 10000, &count, &fixture->error) != WEIR_OK)
			fail_msg("%s", fixture->error.text);
		assert_true(count > 0);
		for (size_t i = 0; i < count; i++, offset++) {
			char expected[64];
			int length = snprintf(expected, sizeof expected, "%u %llu ", partition, (unsigned long long)offset);
			assert_int_equal(partition, messages[i].partition);
			assert_int_equal(offset, messages[i].offset);
			assert_true(messages[i].payload.length >= (uint32_t)length);
			assert_memory_equal(expected, messages[i].payload.at, (size_t)length);
		}
	}
	fixture->ops->consumer_free(consumer);
	return next;
}

static inline uint64_t fixture_check_numbers(struct fixture *fixture, uint32_t partition)
{
	return fixture_check_from(fixture, partition, 0);
}

static inline const char *fixture_segment(struct fixture *fixture, unsigned sequence)
{
	static char path[512];
	snprintf(path, sizeof path, "%s/events/%020u.log", fixture->directory, sequence);
	return path;
}

#endif

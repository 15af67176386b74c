/* SPDX-License-Identifier: Apache-2.0 */
/* The local bus as its users meet it: order, offsets, bounds, readers, trimming. */
#include "bus_fixture.h"
#include "common/base/wake.h"
#include "common/bus/local/bus_local.h"
#include "common/bus/local/bus_local_consumer.h"
#include "common/bus/local/bus_local_producer.h"

#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>

static void messages_come_back_as_sent(void **state)
{
	struct fixture *fixture = *state;
	assert_int_equal(WEIR_OK, fixture_send(fixture, 0, "key", "payload"));
	assert_int_equal(WEIR_OK, fixture_send(fixture, 0, NULL, "no key"));
	assert_int_equal(WEIR_OK, fixture_send(fixture, 0, "", "empty key"));
	assert_int_equal(WEIR_OK, fixture_send(fixture, 0, "only a key", NULL));
	struct weir_delivery deliveries[8];
	for (size_t done = 0; done < 4;) {
		size_t count = fixture->ops->poll(fixture->producer, deliveries + done, 4 - done, 10000);
		assert_true(count > 0);
		done += count;
	}
	struct weir_consumer *consumer = fixture_consumer(fixture, NULL);
	fixture_assign(fixture, consumer, 0, 0);
	assert_int_equal(4, fixture->ops->waiting(consumer, 0));
	struct weir_message messages[8];
	size_t count;
	assert_int_equal(WEIR_OK, fixture->ops->receive(consumer, messages, 8, 0, &count, NULL));
	assert_int_equal(4, count);
	assert_int_equal(0, fixture->ops->waiting(consumer, 0));
	const char *const keys[] = {"key", NULL, "", "only a key"}, *const payloads[] = {"payload", "no key", "empty key",
	                                                                                 ""};
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(i, deliveries[i].tag);
		assert_int_equal(i, deliveries[i].offset);
		assert_int_equal(WEIR_TOPIC_EVENTS, deliveries[i].topic);
		assert_int_equal(WEIR_OK, deliveries[i].status);
		assert_int_equal(i, messages[i].offset);
		assert_int_equal(WEIR_TOPIC_EVENTS, messages[i].topic);
		assert_int_equal(keys[i] == NULL, messages[i].key.at == NULL);
		assert_span(keys[i], messages[i].key);
		assert_span(payloads[i], messages[i].payload);
	}
	assert_int_equal(WEIR_OK, fixture->ops->receive(consumer, messages, 8, 10, &count, NULL));
	assert_int_equal(0, count);
	assert_int_equal(0, fixture->ops->poll(fixture->producer, deliveries, 8, 10));
	fixture->ops->consumer_free(consumer);
}

static void nothing_is_seen_before_it_is_durable(void **state)
{
	struct fixture *fixture = *state;
	struct weir_consumer *consumer = fixture_consumer(fixture, NULL);
	struct weir_message message;
	struct weir_delivery delivery;
	size_t count;
	uint64_t first, next;
	fixture_assign(fixture, consumer, 1, 0);
	sync_blocked = true;
	assert_int_equal(WEIR_OK, fixture_send(fixture, 1, NULL, "x"));
	assert_int_equal(WEIR_OK, fixture->ops->receive(consumer, &message, 1, 30, &count, NULL));
	assert_int_equal(0, count);
	assert_int_equal(0, fixture->ops->poll(fixture->producer, &delivery, 1, 0));
	fixture_extent(fixture, 1, &first, &next);
	assert_int_equal(0, next);
	assert_int_equal(0, fixture->ops->position(consumer, 1));
	sync_blocked = false;
	assert_int_equal(WEIR_OK, fixture->ops->receive(consumer, &message, 1, 10000, &count, NULL));
	assert_int_equal(1, count);
	assert_int_equal(1, fixture->ops->position(consumer, 1));
	assert_int_equal(0, fixture->ops->position(consumer, 0));
	assert_int_equal(0, fixture->ops->waiting(consumer, 1));
	assert_int_equal(0, fixture->ops->waiting(consumer, 0));
	assert_int_equal(1, fixture->ops->poll(fixture->producer, &delivery, 1, 10000));
	fixture->ops->consumer_free(consumer);
}

static void offsets_go_on_after_a_restart(void **state)
{
	struct fixture *fixture = *state;
	for (uint64_t run = 0; run < 5; run++) {
		for (uint64_t i = 0; i < 100; i++)
			for (uint32_t partition = 0; partition < 3; partition++)
				assert_int_equal(WEIR_OK, fixture_send_number(fixture, partition, run * 100 + i, 300));
		fixture_settle(fixture);
		fixture_reopen(fixture);
		for (uint32_t partition = 0; partition < 3; partition++)
			assert_int_equal((run + 1) * 100, fixture_check_numbers(fixture, partition));
	}
	assert_int_equal(0, fixture_check_numbers(fixture, 3));
}

enum { SENDERS = 3, SENT_EACH = 2000 };

struct sender {
	struct weir_bus *bus;
	uint32_t number;
};

static void *send_many(void *context)
{
	const struct sender *sender = context;
	const struct weir_bus_ops *ops = sender->bus->ops;
	struct weir_producer *producer;
	struct weir_delivery deliveries[64];
	uint64_t next_tag[FIXTURE_PARTITIONS] = {0}, last_offset[FIXTURE_PARTITIONS] = {0};
	size_t done = 0, wrong = ops->producer_new(sender->bus, &producer, NULL) != WEIR_OK;
	for (uint64_t i = 0; done < SENT_EACH;) {
		if (i < SENT_EACH) {
			char payload[32];
			int length = snprintf(payload, sizeof payload, "%u %llu", sender->number, (unsigned long long)i);
			wrong += ops->send(producer, WEIR_TOPIC_EVENTS, (uint32_t)(i % FIXTURE_PARTITIONS), (struct weir_span){0},
			                   (struct weir_span){.at = payload, .length = (uint32_t)length}, i, NULL) != WEIR_OK;
			i++;
		}
		size_t count = ops->poll(producer, deliveries, 64, i < SENT_EACH ? 0 : 10000);
		for (size_t k = 0; k < count; k++) {
			/* A partition's deliveries come in the order sent, and their offsets rise. */
			const struct weir_delivery *delivery = &deliveries[k];
			wrong += delivery->tag / FIXTURE_PARTITIONS != next_tag[delivery->partition]++;
			wrong += delivery->offset < last_offset[delivery->partition];
			last_offset[delivery->partition] = delivery->offset + 1;
		}
		done += count;
	}
	ops->producer_free(producer);
	return (void *)wrong;
}

static void producers_and_consumers_work_side_by_side(void **state)
{
	struct fixture *fixture = *state;
	pthread_t threads[SENDERS];
	struct sender senders[SENDERS];
	for (uint32_t i = 0; i < SENDERS; i++) {
		senders[i] = (struct sender){fixture->bus, i};
		assert_int_equal(0, pthread_create(&threads[i], NULL, send_many, &senders[i]));
	}
	/* Two consumers share the partitions; each producer's messages come in its order. */
	struct weir_consumer *consumers[2] = {fixture_consumer(fixture, "limiter"), fixture_consumer(fixture, "limiter")};
	uint64_t next_offset[FIXTURE_PARTITIONS] = {0}, next_number[SENDERS][FIXTURE_PARTITIONS] = {0};
	for (uint32_t i = 0; i < FIXTURE_PARTITIONS; i++)
		fixture_assign(fixture, consumers[i % 2], i, 0);
	for (size_t received = 0; received < SENDERS * SENT_EACH;) {
		struct weir_message messages[50];
		size_t count;
		assert_int_equal(WEIR_OK, fixture->ops->receive(consumers[received % 2], messages, 50, 1, &count, NULL));
		for (size_t i = 0; i < count; i++) {
			unsigned sender;
			unsigned long long number;
			char text[64];
			snprintf(text, sizeof text, "%.*s", (int)messages[i].payload.length, messages[i].payload.at);
			assert_int_equal(2, sscanf(text, "%u %llu", &sender, &number));
			assert_int_equal(next_offset[messages[i].partition]++, messages[i].offset);
			assert_int_equal(next_number[sender][messages[i].partition]++, number / FIXTURE_PARTITIONS);
			assert_int_equal(messages[i].partition, number % FIXTURE_PARTITIONS);
			fixture->ops->consumed(consumers[0], messages[i].partition, messages[i].offset + 1);
		}
		received += count;
		if (count == 0) {
			struct weir_consumer *other = consumers[0];
			consumers[0] = consumers[1];
			consumers[1] = other;
		}
	}
	for (uint32_t i = 0; i < SENDERS; i++) {
		void *wrong;
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	fixture->ops->consumer_free(consumers[0]);
	fixture->ops->consumer_free(consumers[1]);
}

static void a_partition_is_read_from_any_offset(void **state)
{
	struct fixture *fixture = *state;
	struct weir_message messages[4];
	size_t count;
	for (uint64_t i = 0; i < 500; i++)
		assert_int_equal(WEIR_OK, fixture_send_number(fixture, 2, i, 1000));
	fixture_settle(fixture);
	for (int reopened = 0; reopened < 2; reopened++) {
		struct weir_consumer *consumer = fixture_consumer(fixture, NULL);
		for (uint64_t i = 0; i < 500; i += 7) {
			uint64_t offset = (i * 211) % 500;
			fixture_assign(fixture, consumer, 2, offset);
			assert_int_equal(WEIR_OK, fixture->ops->receive(consumer, messages, 1, 0, &count, NULL));
			assert_int_equal(1, count);
			assert_int_equal(offset, messages[0].offset);
		}
		fixture_assign(fixture, consumer, 2, 500);
		assert_int_equal(WEIR_OK, fixture->ops->receive(consumer, messages, 1, 0, &count, NULL));
		assert_int_equal(0, count);
		assert_int_equal(WEIR_INVALID, fixture->ops->assign(consumer, 2, 501, &fixture->error));
		assert_string_equal("weir.events partition 2 has offsets 0 to 500, not 501", fixture->error.text);
		assert_int_equal(WEIR_INVALID, fixture->ops->assign(consumer, FIXTURE_PARTITIONS, 0, NULL));
		fixture->ops->consumer_free(consumer);
		fixture_reopen(fixture);
	}
}

static void a_paused_partition_keeps_its_place(void **state)
{
	struct fixture *fixture = *state;
	struct weir_consumer *consumer = fixture_consumer(fixture, NULL);
	struct weir_message messages[8];
	size_t count;
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, i, 10));
		assert_int_equal(WEIR_OK, fixture_send_number(fixture, 1, i, 10));
	}
	fixture_settle(fixture);
	fixture_assign(fixture, consumer, 0, 0);
	fixture_assign(fixture, consumer, 1, 0);
	assert_int_equal(WEIR_OK, fixture->ops->receive(consumer, messages, 3, 0, &count, NULL));
	assert_int_equal(3, count);
	fixture->ops->pause(consumer, 1, true);
	fixture->ops->pause(consumer, 3, true); /* not assigned: of no effect */
	assert_int_equal(WEIR_OK, fixture->ops->receive(consumer, messages, 8, 0, &count, NULL));
	assert_int_equal(2, count);
	assert_int_equal(0, messages[0].partition);
	fixture->ops->pause(consumer, 1, false);
	fixture->ops->unassign(consumer, 0);
	fixture->ops->unassign(consumer, 0);
	assert_int_equal(WEIR_OK, fixture->ops->receive(consumer, messages, 8, 0, &count, NULL));
	assert_int_equal(3, count);
	assert_int_equal(1, messages[0].partition);
	assert_int_equal(1, messages[0].offset);
	fixture->ops->consumer_free(consumer);
}

static void what_is_not_polled_is_bounded(void **state)
{
	struct fixture *fixture = *state;
	uint64_t i = 0;
	while (fixture_send_number(fixture, 0, i, 1 << 20) == WEIR_OK)
		i++;
	assert_in_range(i, 14, 15);
	assert_int_equal(WEIR_FULL, fixture_send_number(fixture, 0, i, 1 << 20));
	fixture_settle(fixture);
	assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, i, 20 << 20)); /* alone, it may be larger */
	assert_int_equal(WEIR_FULL, fixture_send_number(fixture, 0, i + 1, 1));
	fixture_settle(fixture);
	assert_int_equal(WEIR_INVALID, fixture_send_number(fixture, 0, i + 1, WEIR_BUS_MESSAGE_MAX_BYTES + 1));
	assert_non_null(strstr(fixture->error.text, "too large for weir.events"));
	assert_int_equal(WEIR_INVALID, fixture_send(fixture, FIXTURE_PARTITIONS, NULL, "x"));
	assert_int_equal(i + 1, fixture_check_numbers(fixture, 0));
}

static void a_producer_may_leave_before_its_deliveries(void **state)
{
	struct fixture *fixture = *state;
	for (uint64_t i = 0; i < 200; i++) {
		struct weir_producer *producer;
		assert_int_equal(WEIR_OK, fixture->ops->producer_new(fixture->bus, &producer, NULL));
		for (int k = 0; k < 3; k++)
			assert_int_equal(WEIR_OK,
			                 fixture->ops->send(producer, WEIR_TOPIC_POLICY, 0, span(NULL), span("x"), 0, NULL));
		fixture->ops->producer_free(producer);
	}
	fixture->ops->producer_free(NULL);
	fixture_reopen(fixture); /* closing writes what is queued */
	uint64_t first, next;
	assert_int_equal(WEIR_OK, fixture->ops->extent(fixture->bus, WEIR_TOPIC_POLICY, 0, &first, &next, NULL));
	assert_int_equal(600, next);
	assert_int_equal(WEIR_INVALID, fixture->ops->extent(fixture->bus, WEIR_TOPIC_POLICY, 1, &first, &next, NULL));
}

/* Files of a topic's folder that are segments. */
static int count_segments(struct fixture *fixture)
{
	int count = 0;
	for (unsigned i = 1; i < 1000; i++)
		count += access(fixture_segment(fixture, i), F_OK) == 0;
	return count;
}

static void wait_for_first(struct fixture *fixture, uint32_t partition, uint64_t at_least)
{
	uint64_t first, next;
	do {
		usleep(1000);
		fixture_extent(fixture, partition, &first, &next);
	} while (first < at_least);
}

static void files_are_trimmed_behind_the_slowest_reader(void **state)
{
	struct fixture *fixture = *state;
	fixture->options.retention_bytes = 1;
	fixture_reopen(fixture);
	struct weir_consumer *slow = fixture_consumer(fixture, "slow"), *fast = fixture_consumer(fixture, "fast");
	uint64_t first, next;
	for (uint64_t i = 0; i < 400; i++)
		assert_int_equal(WEIR_OK, fixture_send_number(fixture, i % 2 ? 1 : 0, i / 2, 2000));
	fixture_settle(fixture);
	int all = count_segments(fixture);
	/* As many as hold 800 kB, and twice as many at most: a batch that no longer fits begins a file, and how large batches
	 * are is how many messages came during an fsync. */
	assert_in_range(all, 12, 26);
	for (uint32_t i = 0; i < FIXTURE_PARTITIONS; i++)
		fixture->ops->consumed(fast, i, i < 2 ? 200 : 0);
	fixture->ops->consumed(slow, 0, 100);
	fixture->ops->consumed(slow, 1, 100);
	fixture->ops->consumed(slow, 1, 50); /* never goes back */
	wait_for_first(fixture, 0, 70);
	fixture_extent(fixture, 0, &first, &next);
	assert_in_range(first, 70, 100);
	assert_int_equal(200, next);
	assert_int_equal(200, fixture_check_from(fixture, 0, 100));
	fixture_assign(fixture, slow, 0, 100);
	assert_int_equal(WEIR_INVALID, fixture->ops->assign(slow, 0, first - 1, &fixture->error));
	fixture->ops->consumer_free(slow);
	fixture->ops->consumer_free(fast);

	/* Positions are kept over a restart, and so is what they hold back. */
	fixture_reopen(fixture);
	fixture_extent(fixture, 0, &first, &next);
	assert_in_range(first, 70, 100);
	assert_int_equal(WEIR_OK, weir_bus_local_forget(fixture->bus, WEIR_TOPIC_EVENTS, "slow", NULL));
	assert_int_equal(WEIR_OK, weir_bus_local_forget(fixture->bus, WEIR_TOPIC_EVENTS, "nobody", NULL));
	while (count_segments(fixture) > 1)
		usleep(1000);
	fixture_reopen(fixture);
	assert_int_equal(200, fixture_check_numbers(fixture, 0));
	assert_int_equal(200, fixture_check_numbers(fixture, 1));
	assert_int_equal(WEIR_OK, fixture_send_number(fixture, 1, 200, 100));
	fixture_settle(fixture);
	assert_int_equal(201, fixture_check_numbers(fixture, 1));
}

/* What is kept to explain decisions stays though it was read; more than that does not. */
static void events_that_were_read_stay_to_be_explained(void **state)
{
	struct fixture *fixture = *state;
	fixture->options.explain_bytes = 300000;
	fixture_reopen(fixture);
	struct weir_consumer *reader = fixture_consumer(fixture, "reader");
	for (uint64_t i = 0; i < 500; i++)
		assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, i, 2000));
	fixture_settle(fixture);
	fixture->ops->consumed(reader, 0, 500);
	wait_for_first(fixture, 0, 300);
	uint64_t first, next;
	fixture_extent(fixture, 0, &first, &next);
	assert_in_range(first, 300, 354); /* 500 less those that fill what stays, and less up to a file */
	fixture->ops->consumer_free(reader);
}

static void a_topic_without_readers_keeps_what_it_may(void **state)
{
	struct fixture *fixture = *state;
	fixture->options.retention_bytes = 300000;
	fixture_reopen(fixture);
	struct weir_consumer *late = fixture_consumer(fixture, NULL);
	fixture_assign(fixture, late, 0, 0);
	for (uint64_t i = 0; i < 500; i++) {
		assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, i, 2000));
		if (i % 100 == 99)
			fixture_settle(fixture);
	}
	wait_for_first(fixture, 0, 300);
	assert_in_range(count_segments(fixture), 3, 9);
	/* A consumer that comes too late is told. */
	struct weir_message message;
	size_t count;
	assert_int_equal(WEIR_INVALID, fixture->ops->receive(late, &message, 1, 0, &count, &fixture->error));
	assert_string_equal("weir.events partition 0: offset 0 was trimmed before it was read", fixture->error.text);
	fixture->ops->consumer_free(late);
	assert_int_equal(500, fixture_check_from(fixture, 0, 400));
}

static void readers_have_names_and_a_bound(void **state)
{
	struct fixture *fixture = *state;
	struct weir_consumer *consumer;
	static const char *const bad[] = {"", "a b", "a/b", "a\n",
	                                  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(WEIR_INVALID,
		                 fixture->ops->consumer_new(fixture->bus, WEIR_TOPIC_EVENTS, bad[i], &consumer, NULL));
	for (int i = 0; i < 16; i++) {
		char name[8];
		snprintf(name, sizeof name, "r%d", i);
		fixture->ops->consumer_free(fixture_consumer(fixture, name));
	}
	assert_int_equal(WEIR_FULL,
	                 fixture->ops->consumer_new(fixture->bus, WEIR_TOPIC_EVENTS, "one-more", &consumer, NULL));
	assert_int_equal(WEIR_OK, weir_bus_local_forget(fixture->bus, WEIR_TOPIC_EVENTS, "r3", NULL));
	fixture->ops->consumer_free(fixture_consumer(fixture, "one-more"));
	fixture->ops->consumer_free(fixture_consumer(fixture, "r4"));
	fixture->ops->consumer_free(NULL);
}

static void the_number_of_partitions_is_kept(void **state)
{
	struct fixture *fixture = *state;
	struct weir_bus *bus;
	fixture_close(fixture);
	fixture->options.partitions = 8;
	assert_int_equal(WEIR_INVALID, weir_bus_local_open(fixture->directory, &fixture->options, &bus, &fixture->error));
	assert_non_null(strstr(fixture->error.text, "was created with 4 partitions, not 8"));
	fixture->options.partitions = FIXTURE_PARTITIONS;
	fixture_open(fixture);
}

static void a_damaged_number_of_partitions_is_told_as_such(void **state)
{
	struct fixture *fixture = *state;
	struct weir_bus *bus;
	char path[512];
	static const char *const damaged[] = {"", "4", "4\n\n", "four\n", "0\n", "-4\n", "4294967300\n", " 4\n"};
	fixture_close(fixture);
	snprintf(path, sizeof path, "%s/partitions", fixture->directory);
	for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
		FILE *file = fopen(path, "w");
		fputs(damaged[i], file);
		fclose(file);
		assert_int_equal(WEIR_INVALID,
		                 weir_bus_local_open(fixture->directory, &fixture->options, &bus, &fixture->error));
		assert_non_null(strstr(fixture->error.text, "/partitions is damaged: "));
		assert_non_null(strstr(fixture->error.text, "/damaged-partitions (runbook: state-file-damaged)"));
	}
	/* what was moved away before stays */
	char moved[512];
	snprintf(moved, sizeof moved, "%s/damaged-partitions", fixture->directory);
	fclose(fopen(moved, "w"));
	assert_int_equal(WEIR_INVALID, weir_bus_local_open(fixture->directory, &fixture->options, &bus, &fixture->error));
	assert_non_null(strstr(fixture->error.text, "/damaged-partitions.2 (runbook: state-file-damaged)"));
	FILE *file = fopen(path, "w");
	fputs("4\n", file);
	fclose(file);
	fixture_open(fixture);
}

static void a_bus_has_one_process(void **state)
{
	struct fixture *fixture = *state;
	struct weir_bus *bus;
	assert_int_equal(WEIR_LOCKED, weir_bus_local_open(fixture->directory, &fixture->options, &bus, &fixture->error));
	assert_non_null(strstr(fixture->error.text, "is in use by process"));
}

static void messages_are_gathered_for_a_while_if_asked(void **state)
{
	struct fixture *fixture = *state;
	fixture->options.sync_delay_ms = 1000;
	fixture_reopen(fixture);
	struct weir_delivery deliveries[4];
	assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, 0, 10));
	assert_int_equal(1, fixture->ops->poll(fixture->producer, deliveries, 4, 10000)); /* the first does not wait */
	for (uint64_t i = 1; i < 4; i++) {
		assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, i, 10));
		usleep(1000);
	}
	assert_int_equal(3, fixture->ops->poll(fixture->producer, deliveries, 4, 10000)); /* one batch */
	fixture->delivered = 4;
	assert_int_equal(4, fixture_check_numbers(fixture, 0));
}

static void who_waits_and_what_is_much_is_not_held_up(void **state)
{
	struct fixture *fixture = *state;
	fixture->options.sync_delay_ms = 60 * 1000; /* longer than any poll here */
	fixture_reopen(fixture);
	struct weir_delivery deliveries[4];
	uint64_t sent = 0;
	assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, sent++, 10));
	assert_int_equal(1, fixture->ops->poll(fixture->producer, deliveries, 4, 10000));

	assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, sent++, 10));
	assert_int_equal(0, fixture->ops->poll(fixture->producer, deliveries, 4, 100));
	fixture->ops->hurry(fixture->producer, WEIR_TOPIC_EVENTS);
	assert_int_equal(1, fixture->ops->poll(fixture->producer, deliveries, 4, 10000));

	assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, sent++, 1024 * 1024));
	assert_int_equal(1, fixture->ops->poll(fixture->producer, deliveries, 4, 10000));

	/* One hurry is for what was sent before it; and closing writes what waits. */
	assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, sent++, 10));
	assert_int_equal(0, fixture->ops->poll(fixture->producer, deliveries, 4, 100));
	fixture_reopen(fixture);
	assert_int_equal(sent, fixture_check_numbers(fixture, 0));
}

static void indexes_of_old_files_are_dropped_and_come_back(void **state)
{
	struct fixture *fixture = *state;
	char directory[512];
	snprintf(directory, sizeof directory, "%s/of-its-own", fixture->directory);
	struct weir_bus_journal_options options = {.topic = WEIR_TOPIC_DEADLETTER,
	                                           .partitions = 2,
	                                           .segment_bytes = 65536,
	                                           .retention_bytes = 1 << 30,
	                                           .indexes_max_bytes = 40000};
	struct weir_bus_journal *journal, *journals[WEIR_TOPIC_COUNT];
	assert_int_equal(WEIR_OK, weir_bus_journal_open(directory, &options, &journal, NULL));
	for (int i = 0; i < WEIR_TOPIC_COUNT; i++)
		journals[i] = journal;
	struct weir_producer *producer = weir_producer_new(journals);
	struct weir_delivery deliveries[64];
	struct weir_message messages[64];
	size_t done = 0, count;
	enum { MESSAGES = 40000 };
	for (uint64_t i = 0; i < MESSAGES; i++) {
		struct weir_span payload = {.at = (const char *)&i, .length = sizeof i};
		assert_int_equal(WEIR_OK, weir_producer_send(producer, WEIR_TOPIC_EVENTS, i % 2, span(NULL), payload, i, NULL));
		done += weir_producer_poll(producer, deliveries, 64, 0);
	}
	while (done < MESSAGES)
		done += weir_producer_poll(producer, deliveries, 64, 10000);
	struct weir_consumer *consumer;
	assert_int_equal(WEIR_OK, weir_consumer_new(journal, NULL, &consumer, NULL));
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(WEIR_OK, weir_consumer_assign(consumer, 0, 0, NULL));
		assert_int_equal(WEIR_OK, weir_consumer_assign(consumer, 1, MESSAGES / 4, NULL));
		uint64_t next[2] = {0, MESSAGES / 4};
		while (next[0] + next[1] < MESSAGES) {
			assert_int_equal(WEIR_OK, weir_consumer_receive(consumer, messages, 64, 0, &count, NULL));
			assert_true(count > 0);
			for (size_t i = 0; i < count; i++) {
				uint64_t number;
				memcpy(&number, messages[i].payload.at, sizeof number);
				assert_int_equal(next[messages[i].partition]++, messages[i].offset);
				assert_int_equal(messages[i].offset * 2 + messages[i].partition, number);
			}
		}
		pthread_mutex_lock(&journal->lock);
		/* What is counted is what is there: it keeps to the bound, but for the file in use. */
		uint64_t bytes = 0;
		for (uint32_t i = 0; i < journal->segment_count; i++)
			bytes += journal->segments[i]->index != NULL ? journal->segments[i]->index->bytes : 0;
		assert_int_equal(bytes, journal->index_bytes);
		assert_in_range(bytes, 1, 80000);
		pthread_mutex_unlock(&journal->lock);
	}
	weir_consumer_free(consumer);
	weir_producer_free(producer);
	weir_bus_journal_close(journal);
}

/* ---- descriptors ---- */

enum { WOKEN_MESSAGES = 3000, WOKEN_LIMIT_MS = 20000 };

/* Waits for a descriptor, and clears it. A wake-up that was lost ends the test. */
static void await(int descriptor)
{
	struct pollfd at = {.fd = descriptor, .events = POLLIN};
	assert_int_equal(1, poll(&at, 1, WOKEN_LIMIT_MS));
	weir_wake_clear(descriptor);
}

/* Sends in bursts, and waits for the acknowledgements of each by the descriptor alone. */
static void *send_and_await(void *context)
{
	struct fixture *fixture = context;
	struct weir_delivery deliveries[8];
	int wake = weir_wake_new();
	fixture->ops->wake_producer(fixture->producer, wake);
	for (uint64_t number = 0; number < WOKEN_MESSAGES;) {
		uint64_t burst = 1 + number % 20;
		for (; burst > 0 && number < WOKEN_MESSAGES; burst--, number++)
			assert_int_equal(WEIR_OK, fixture_send_number(fixture, number % FIXTURE_PARTITIONS, number, 10));
		while (fixture->delivered < fixture->sent) {
			size_t count = fixture->ops->poll(fixture->producer, deliveries, 8, 0);
			fixture->delivered += count;
			if (count < 8 && fixture->delivered < fixture->sent)
				await(wake);
		}
	}
	fixture->ops->producer_free(fixture->producer);
	close(wake);
	return NULL;
}

static void a_descriptor_tells_of_messages_and_acknowledgements(void **state)
{
	struct fixture *fixture = *state;
	struct weir_consumer *consumer = fixture_consumer(fixture, NULL);
	struct weir_message messages[8];
	int wake = weir_wake_new();
	pthread_t sender;
	size_t received = 0, count;
	for (uint32_t partition = 0; partition < FIXTURE_PARTITIONS; partition++)
		fixture_assign(fixture, consumer, partition, 0);
	fixture->ops->wake_consumer(consumer, wake);
	assert_int_equal(0, pthread_create(&sender, NULL, send_and_await, fixture));
	while (received < WOKEN_MESSAGES) {
		assert_int_equal(WEIR_OK, fixture->ops->receive(consumer, messages, 8, 0, &count, NULL));
		received += count;
		if (count == 0)
			await(wake);
	}
	pthread_join(sender, NULL);
	/* One that is freed is told no more. */
	fixture->ops->consumer_free(consumer);
	weir_wake_clear(wake);
	assert_int_equal(WEIR_OK, fixture->ops->producer_new(fixture->bus, &fixture->producer, NULL));
	fixture->sent = fixture->delivered = 0;
	assert_int_equal(WEIR_OK, fixture_send(fixture, 0, NULL, "nobody waits"));
	fixture_settle(fixture);
	struct pollfd at = {.fd = wake, .events = POLLIN};
	assert_int_equal(0, poll(&at, 1, 0));
	close(wake);
}

/* What was there before the descriptor is told of too. */
static void a_descriptor_comes_late(void **state)
{
	struct fixture *fixture = *state;
	struct weir_delivery delivery;
	assert_int_equal(WEIR_OK, fixture_send(fixture, 0, NULL, "early"));
	uint64_t first, next;
	do
		fixture_extent(fixture, 0, &first, &next);
	while (next == 0);
	int wake = weir_wake_new();
	fixture->ops->wake_producer(fixture->producer, wake);
	await(wake);
	assert_int_equal(1, fixture->ops->poll(fixture->producer, &delivery, 1, 10000));
	fixture->delivered = 1;
	fixture_close(fixture);
	close(wake);
}

#define test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(messages_come_back_as_sent),
		test(nothing_is_seen_before_it_is_durable),
		test(offsets_go_on_after_a_restart),
		test(producers_and_consumers_work_side_by_side),
		test(a_partition_is_read_from_any_offset),
		test(a_paused_partition_keeps_its_place),
		test(what_is_not_polled_is_bounded),
		test(a_producer_may_leave_before_its_deliveries),
		test(files_are_trimmed_behind_the_slowest_reader),
		test(events_that_were_read_stay_to_be_explained),
		test(a_topic_without_readers_keeps_what_it_may),
		test(readers_have_names_and_a_bound),
		test(the_number_of_partitions_is_kept),
		test(a_damaged_number_of_partitions_is_told_as_such),
		test(a_bus_has_one_process),
		test(messages_are_gathered_for_a_while_if_asked),
		test(who_waits_and_what_is_much_is_not_held_up),
		test(indexes_of_old_files_are_dropped_and_come_back),
		test(a_descriptor_tells_of_messages_and_acknowledgements),
		test(a_descriptor_comes_late),
	};
	return cmocka_run_group_tests_name("bus_local", tests, NULL, NULL);
}

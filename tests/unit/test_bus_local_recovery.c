/* SPDX-License-Identifier: Apache-2.0 */
/* The local bus after crashes, on damaged files and on failing disks: what was acknowledged is there, once. */
#include "bus_fixture.h"
#include "common/bus/local/bus_local.h"
#include "common/bus/local/bus_local_segment.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

enum { MESSAGE_BYTES = 500, MARK_BYTES = WEIR_BUS_RECORD_HEADER_BYTES /* behind the last batch */ };

/* Sends messages to partition 0 (and 1), each batch synced before the next. */
static void fill(struct fixture *fixture, uint64_t from, uint64_t to, uint64_t batch)
{
	for (uint64_t i = from; i < to; i++) {
		assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, i, MESSAGE_BYTES));
		if ((i + 1) % batch == 0)
			fixture_settle(fixture);
	}
	fixture_settle(fixture);
}

static off_t size_of(const char *path)
{
	struct stat about;
	assert_int_equal(0, stat(path, &about));
	return about.st_size;
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

static void append(const char *path, const char *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_APPEND);
	assert_int_equal(length, write(fd, bytes, length));
	close(fd);
}

static void assert_refused(struct fixture *fixture, const char *words)
{
	struct weir_bus *bus;
	struct weir_error looked;
	assert_int_equal(WEIR_INVALID, weir_bus_local_check(fixture->directory, &fixture->options, &looked));
	assert_int_equal(WEIR_INVALID, weir_bus_local_open(fixture->directory, &fixture->options, &bus, &fixture->error));
	if (strstr(fixture->error.text, words) == NULL)
		fail_msg("%s", fixture->error.text);
	assert_string_equal(looked.text, fixture->error.text);
	assert_non_null(strstr(looked.text, ". To start: "));
}

static void a_torn_tail_is_cut_wherever_it_ends(void **state)
{
	struct fixture *fixture = *state;
	const char *path = fixture_segment(fixture, 1);
	fill(fixture, 0, 10, 1);
	fixture_close(fixture);
	off_t whole = size_of(path) - MARK_BYTES;
	enum { RECORD = WEIR_BUS_RECORD_HEADER_BYTES + MESSAGE_BYTES };
	/* What is cut counts as not written; each round cuts the last message and sends it again. */
	for (off_t cut = 1; cut <= RECORD; cut += cut < RECORD - 3 ? 3 : 1) {
		assert_int_equal(0, truncate(path, whole - cut));
		fixture->sent = fixture->delivered = 0;
		fixture_open(fixture);
		assert_int_equal(9, fixture_check_numbers(fixture, 0));
		/* Whoever refuses to start for another reason finds what the crash left. */
		assert_int_equal(whole - cut, size_of(path));
		fill(fixture, 9, 10, 1);
		fixture_close(fixture);
		assert_int_equal(whole + MARK_BYTES, size_of(path));
	}
	char zeros[1000] = {0}, garbage[1000];
	memset(garbage, 'w', sizeof garbage);
	append(path, zeros, sizeof zeros);
	fixture_open(fixture);
	assert_int_equal(10, fixture_check_numbers(fixture, 0));
	fixture_close(fixture);
	append(path, garbage, sizeof garbage);
	fixture_open(fixture);
	assert_int_equal(10, fixture_check_numbers(fixture, 0));
	fill(fixture, 10, 11, 1);
	assert_int_equal(whole + RECORD + MARK_BYTES, size_of(path));
}

static void a_batch_that_is_torn_in_its_middle_is_cut(void **state)
{
	struct fixture *fixture = *state;
	const char *path = fixture_segment(fixture, 1);
	fill(fixture, 0, 5, 1);
	off_t before = size_of(path);
	/* One batch, whose later messages reached the disk and an earlier one did not: it was not acknowledged, nor marked. */
	sync_blocked = true;
	for (uint64_t i = 5; i < 15; i++)
		assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, i, MESSAGE_BYTES));
	usleep(20000);
	for (uint64_t i = 15; i < 25; i++)
		assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, i, MESSAGE_BYTES));
	sync_blocked = false;
	fixture_settle(fixture);
	off_t after = size_of(path) - MARK_BYTES;
	fixture_close(fixture);
	assert_int_equal(0, truncate(path, after));
	/* The last batch holds at least two messages; its first is damaged. */
	flip(path, after - 2 * (MESSAGE_BYTES + WEIR_BUS_RECORD_HEADER_BYTES) + 100);
	fixture->sent = fixture->delivered = 0;
	fixture_open(fixture);
	assert_int_equal(23, fixture_check_numbers(fixture, 0));
	assert_true(size_of(path) > before);
}

/* Nothing was written behind the last batch, so that no record speaks for it. */
static void damage_to_the_last_batch_is_refused(void **state)
{
	struct fixture *fixture = *state;
	const char *path = fixture_segment(fixture, 1);
	fill(fixture, 0, 3, 1);
	fill(fixture, 3, 13, 20);
	fixture_close(fixture);
	off_t record = MESSAGE_BYTES + WEIR_BUS_RECORD_HEADER_BYTES, whole = size_of(path);
	off_t start = whole - MARK_BYTES - 13 * record;
	for (off_t i = 3 * record; i < 13 * record; i += 97) {
		flip(path, start + i);
		char words[128];
		long long at = start + i / record * record;
		snprintf(words, sizeof words, "events/00000000000000000001.log is damaged at byte %lld: ", at);
		assert_refused(fixture, words);
		assert_int_equal(whole, size_of(path));
		flip(path, start + i);
	}
	/* A mark that is damaged says nothing. */
	for (off_t i = whole - MARK_BYTES; i < whole; i += 5) {
		flip(path, i);
		fixture->sent = fixture->delivered = 0;
		fixture_open(fixture);
		assert_int_equal(13, fixture_check_numbers(fixture, 0));
		fixture_close(fixture);
		flip(path, i);
	}
}

static void damage_to_what_was_acknowledged_is_refused(void **state)
{
	struct fixture *fixture = *state;
	const char *path = fixture_segment(fixture, 1);
	fill(fixture, 0, 20, 1);
	fixture_close(fixture);
	off_t record = MESSAGE_BYTES + WEIR_BUS_RECORD_HEADER_BYTES;
	off_t start = size_of(path) - MARK_BYTES - 20 * record;
	for (off_t i = 0; i < 20 * record; i += 97) {
		flip(path, start + i);
		char words[128];
		long long at = start + i / record * record;
		snprintf(words, sizeof words, "events/00000000000000000001.log is damaged at byte %lld: ", at);
		assert_refused(fixture, words);
		flip(path, start + i);
	}
	for (off_t i = 0; i < start; i += 5) {
		flip(path, i);
		assert_refused(fixture, "events/00000000000000000001.log: its header is damaged");
		flip(path, i);
	}
	assert_int_equal(0, truncate(path, start + 10 * record)); /* no witness is left: it may be a torn tail */
	fixture->sent = fixture->delivered = 0;
	fixture_open(fixture);
	assert_int_equal(10, fixture_check_numbers(fixture, 0));
}

static void a_newer_version_is_said(void **state)
{
	struct fixture *fixture = *state;
	struct weir_bus *bus;
	char readers[512];
	fill(fixture, 0, 1, 1);
	fixture_close(fixture);
	snprintf(readers, sizeof readers, "%s/events/readers", fixture->directory);
	close(open(readers, O_WRONLY | O_CREAT, 0600));
	append(readers, "weir readers 2\nwhatever\n", 24);
	assert_int_equal(WEIR_NEWER, weir_bus_local_open(fixture->directory, &fixture->options, &bus, &fixture->error));
	assert_non_null(strstr(fixture->error.text, "events/readers: written by a newer version of weir"));
	unlink(readers);
	int fd = open(fixture_segment(fixture, 1), O_WRONLY);
	assert_int_equal(1, pwrite(fd, "\2", 1, 7));
	close(fd);
	assert_int_equal(WEIR_NEWER, weir_bus_local_open(fixture->directory, &fixture->options, &bus, &fixture->error));
	assert_non_null(strstr(fixture->error.text, "00000001.log: written by a newer version of weir"));
}

static void a_reader_ahead_of_the_log_is_noticed(void **state)
{
	struct fixture *fixture = *state;
	fill(fixture, 0, 10, 1);
	struct weir_consumer *consumer = fixture_consumer(fixture, "limiter");
	fixture->ops->consumed(consumer, 0, 10);
	fixture->ops->consumer_free(consumer);
	fixture_close(fixture);
	off_t size = size_of(fixture_segment(fixture, 1));
	assert_int_equal(0, truncate(fixture_segment(fixture, 1), size - MARK_BYTES - 10));
	assert_refused(fixture,
	               "limiter has read partition 0 up to 10, but it ends at 9: acknowledged messages are missing");
	char path[512];
	snprintf(path, sizeof path, "%s/events/readers", fixture->directory);
	append(path, "limiter 0 x\n", 12);
	assert_refused(fixture, "readers is damaged at byte");
}

static void damage_to_a_closed_file_stops_its_reader_there(void **state)
{
	struct fixture *fixture = *state;
	struct weir_message messages[8];
	size_t count, received = 0;
	fill(fixture, 0, 400, 10);
	fixture_close(fixture);
	flip(fixture_segment(fixture, 1), 30000);
	fixture->sent = fixture->delivered = 0;
	fixture_open(fixture);
	struct weir_consumer *consumer = fixture_consumer(fixture, NULL);
	fixture_assign(fixture, consumer, 0, 0);
	enum weir_status status;
	while ((status = fixture->ops->receive(consumer, messages, 8, 0, &count, &fixture->error)) == WEIR_OK) {
		assert_true(count > 0);
		received += count;
	}
	assert_int_equal(WEIR_INVALID, status);
	assert_in_range(received, 50, 56);
	assert_non_null(strstr(fixture->error.text, "events/00000000000000000001.log is damaged at byte "));
	assert_int_equal(WEIR_INVALID, fixture->ops->receive(consumer, messages, 8, 0, &count, &fixture->error));
	/* The other files can be read. */
	fixture_assign(fixture, consumer, 0, 200);
	assert_int_equal(WEIR_OK, fixture->ops->receive(consumer, messages, 8, 0, &count, &fixture->error));
	assert_int_equal(200, messages[0].offset);
	fixture->ops->consumer_free(consumer);
	fixture_close(fixture);

	/* A header among the records. */
	flip(fixture_segment(fixture, 1), 30000);
	flip(fixture_segment(fixture, 2), (off_t)weir_bus_segment_header_bytes(FIXTURE_PARTITIONS) + 8);
	fixture_open(fixture);
	consumer = fixture_consumer(fixture, NULL);
	fixture_assign(fixture, consumer, 0, 0);
	while ((status = fixture->ops->receive(consumer, messages, 8, 0, &count, &fixture->error)) == WEIR_OK)
		assert_true(count > 0);
	assert_int_equal(WEIR_INVALID, status);
	assert_non_null(strstr(fixture->error.text, "events/00000000000000000002.log is damaged at byte 80: no record"));
	fixture->ops->consumer_free(consumer);
}

static void missing_and_short_files_are_refused(void **state)
{
	struct fixture *fixture = *state;
	fill(fixture, 0, 600, 10);
	fixture_close(fixture);
	char away[512];
	snprintf(away, sizeof away, "%s/away", fixture->directory);
	assert_int_equal(0, rename(fixture_segment(fixture, 2), away));
	assert_refused(fixture, "a file is missing after ");
	assert_int_equal(0, rename(away, fixture_segment(fixture, 2)));

	off_t size = size_of(fixture_segment(fixture, 2));
	assert_int_equal(0, truncate(fixture_segment(fixture, 2), size - MARK_BYTES - 1));
	assert_refused(fixture, "is damaged at byte");
	append(fixture_segment(fixture, 2), "x", 1); /* its last byte is another now, which its reader will notice */
	fixture->sent = fixture->delivered = 0;
	fixture_open(fixture);
	fixture_close(fixture);

	snprintf(away, sizeof away, "%s", fixture_segment(fixture, 1));
	char command[1100];
	snprintf(command, sizeof command, "cp '%s' '%s'", away, fixture_segment(fixture, 2));
	assert_int_equal(0, system(command));
	assert_refused(fixture, "it is a copy of another file");
}

static void a_file_that_was_being_made_is_no_damage(void **state)
{
	struct fixture *fixture = *state;
	fill(fixture, 0, 200, 10);
	fixture_close(fixture);
	unsigned last = 1;
	while (access(fixture_segment(fixture, last + 1), F_OK) == 0)
		last++;
	for (size_t length = 0; length <= 80; length += 8) {
		char bytes[80];
		memset(bytes, 'x', sizeof bytes);
		memcpy(bytes, "weirbus\1", 8);
		int fd = open(fixture_segment(fixture, last + 1), O_CREAT | O_WRONLY | O_TRUNC, 0600);
		assert_int_equal(length, write(fd, bytes, length));
		close(fd);
		fixture->sent = fixture->delivered = 0;
		fixture_open(fixture);
		assert_int_equal(200, fixture_check_numbers(fixture, 0));
		fixture_close(fixture);
		assert_int_equal(-1, access(fixture_segment(fixture, last + 1), F_OK));
	}
	/* The very first file, too. */
	char command[700];
	snprintf(command, sizeof command,
	         "rmdir '%s/decisions'; mkdir '%s/decisions'; : > '%s/decisions/00000000000000000001.log'",
	         fixture->directory, fixture->directory, fixture->directory);
	assert_int_equal(0, system(command));
	fixture_open(fixture);
}

/* ---- disks that fail ---- */

static void a_failed_sync_moves_to_a_fresh_file(void **state)
{
	struct fixture *fixture = *state;
	char text[256];
	fill(fixture, 0, 10, 1);
	for (int round = 0; round < 5; round++) {
		uint64_t at = 10 + (uint64_t)round * 5;
		syncs_to_fail = round % 3 + 1;
		for (uint64_t i = at; i < at + 5; i++)
			assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, i, MESSAGE_BYTES));
		bool seen = false;
		while (fixture->delivered < fixture->sent) {
			struct weir_delivery delivery;
			seen |= fixture->ops->problem(fixture->bus, text, sizeof text);
			fixture->delivered += fixture->ops->poll(fixture->producer, &delivery, 1, 1);
		}
		assert_true(seen);
		assert_non_null(strstr(text, "cannot sync "));
		assert_non_null(strstr(text, "Input/output error"));
		assert_false(fixture->ops->problem(fixture->bus, text, sizeof text));
		assert_int_equal(at + 5, fixture_check_numbers(fixture, 0));
	}
	/* Each time the old file ended where it was synced, and a new one went on. */
	assert_int_equal(0, access(fixture_segment(fixture, 6), F_OK));
	assert_int_equal(-1, access(fixture_segment(fixture, 7), F_OK));
	fixture_reopen(fixture);
	assert_int_equal(35, fixture_check_numbers(fixture, 0));
}

static void what_a_failed_sync_left_behind_is_not_read(void **state)
{
	struct fixture *fixture = *state;
	fill(fixture, 0, 10, 1);
	off_t size = size_of(fixture_segment(fixture, 1));
	syncs_to_fail = 1;
	fill(fixture, 10, 20, 10);
	/* The bytes that were written and not synced come back, as if the file could not be cut. */
	char command[1200];
	char second[512];
	snprintf(second, sizeof second, "%s", fixture_segment(fixture, 2));
	assert_int_equal(size - MARK_BYTES, size_of(fixture_segment(fixture, 1)));
	snprintf(command, sizeof command, "cat '%s' >> '%s'", second, fixture_segment(fixture, 1));
	assert_int_equal(0, system(command));
	fixture_reopen(fixture);
	assert_int_equal(20, fixture_check_numbers(fixture, 0));
}

static void a_failed_write_moves_to_a_fresh_file(void **state)
{
	struct fixture *fixture = *state;
	fill(fixture, 0, 10, 1);
	writes_to_fail = 4;
	fill(fixture, 10, 20, 10);
	assert_int_equal(20, fixture_check_numbers(fixture, 0));
	assert_int_equal(0, access(fixture_segment(fixture, 2), F_OK));
	assert_int_equal(-1, access(fixture_segment(fixture, 3), F_OK));
	fixture_reopen(fixture);
	assert_int_equal(20, fixture_check_numbers(fixture, 0));
}

/* As a disk of a network does, or one that is frozen for a snapshot: no call fails, and none ends. */
static void a_disk_that_does_not_answer_is_told(void **state)
{
	struct fixture *fixture = *state;
	char text[256];
	fill(fixture, 0, 10, 1);
	usleep(100000);
	assert_false(fixture->ops->problem(fixture->bus, text, sizeof text));
	sync_blocked = true;
	assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, 10, MESSAGE_BYTES));
	assert_false(fixture->ops->problem(fixture->bus, text, sizeof text));
	while (!fixture->ops->problem(fixture->bus, text, sizeof text))
		usleep(10000);
	assert_non_null(strstr(text, "has not answered for "));
	sync_blocked = false;
	fixture_settle(fixture);
	while (fixture->ops->problem(fixture->bus, text,
	                             sizeof text)) /* it was delivered a moment before the thread waits again */
		usleep(1000);
	assert_int_equal(11, fixture_check_numbers(fixture, 0));
}

static void a_full_disk_is_waited_for(void **state)
{
	struct fixture *fixture = *state;
	struct weir_delivery delivery;
	char text[256];
	uint64_t number = 0;
	unsigned seed = 5;
	for (int round = 0; round < 15; round++) {
		fill(fixture, number, number + 7, 3);
		number += 7;
		write_room = rand_r(&seed) % 3000;
		for (int i = 0; i < 10; i++, number++)
			assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, number, MESSAGE_BYTES));
		while (!fixture->ops->problem(fixture->bus, text, sizeof text))
			usleep(1000);
		assert_non_null(strstr(text, "No space left on device"));
		/* What was delivered before is read, what was not is not seen; then there is room again, or a restart. */
		while (fixture->ops->poll(fixture->producer, &delivery, 1, 0) > 0)
			fixture->delivered++;
		uint64_t seen = fixture_check_numbers(fixture, 0);
		assert_in_range(seen, number - 10, number);
		if (round % 3 == 2) {
			fixture_reopen(fixture);
			write_room = -1;
			assert_in_range(fixture_check_numbers(fixture, 0), seen, number);
			number = fixture_check_numbers(fixture, 0);
			continue;
		}
		write_room = -1;
		fixture_settle(fixture);
		assert_false(fixture->ops->problem(fixture->bus, text, sizeof text));
		assert_int_equal(number, fixture_check_numbers(fixture, 0));
	}
	fixture_reopen(fixture);
	assert_int_equal(number, fixture_check_numbers(fixture, 0));
}

/* A closing bus gives up a batch that does not fit, and with it whatever was sent behind it, though that would fit. */
static void nothing_is_written_behind_what_was_given_up(void **state)
{
	struct fixture *fixture = *state;
	char text[256];
	fill(fixture, 0, 5, 5);
	write_most = MESSAGE_BYTES;
	assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, 5, 4 * MESSAGE_BYTES));
	while (!fixture->ops->problem(fixture->bus, text, sizeof text))
		usleep(1000);
	assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, 6, 20));
	fixture_reopen(fixture);
	write_most = -1;
	assert_int_equal(5, fixture_check_numbers(fixture, 0));
}

/* On a real small file system: trimming makes the room that the producer waits for. */
static void trimming_frees_a_full_disk(void **state)
{
	struct fixture *fixture = *state;
	char *small = scratch_new();
	if (mount("weir-test", small, "tmpfs", 0, "size=1m") != 0) {
		print_message("skipped: cannot mount a small file system: %s\n", strerror(errno));
		scratch_remove(small);
		free(small);
		return;
	}
	struct fixture inner = {.directory = small, .options = fixture->options};
	fixture_open(&inner);
	struct weir_consumer *consumer = fixture_consumer(&inner, "limiter");
	struct weir_message messages[64];
	struct weir_delivery deliveries[64];
	char text[256] = "";
	size_t count;
	uint64_t received = 0;
	enum { TOTAL = 600 };
	fixture_assign(&inner, consumer, 0, 0);
	while (!inner.ops->problem(inner.bus, text, sizeof text)) {
		if (inner.sent < TOTAL)
			assert_int_equal(WEIR_OK, fixture_send_number(&inner, 0, inner.sent, 4000));
		inner.delivered += inner.ops->poll(inner.producer, deliveries, 64, inner.sent < TOTAL ? 0 : 1);
	}
	assert_non_null(strstr(text, "No space left on device"));
	while (received < TOTAL) {
		assert_int_equal(WEIR_OK, inner.ops->receive(consumer, messages, 64, 10, &count, &inner.error));
		for (size_t i = 0; i < count; i++)
			assert_int_equal(received++, messages[i].offset);
		inner.ops->consumed(consumer, 0, received);
		if (inner.sent < TOTAL)
			assert_int_equal(WEIR_OK, fixture_send_number(&inner, 0, inner.sent, 4000));
		inner.delivered += inner.ops->poll(inner.producer, deliveries, 64, 0);
	}
	inner.ops->consumer_free(consumer);
	fixture_close(&inner);
	assert_int_equal(0, umount(small));
	scratch_remove(small);
	free(small);
}

static void closing_does_not_wait_for_a_broken_disk(void **state)
{
	struct fixture *fixture = *state;
	fill(fixture, 0, 3, 1);
	writes_to_fail = 1000000;
	assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, 3, MESSAGE_BYTES));
	usleep(60000);
	assert_int_equal(WEIR_OK, fixture_send_number(fixture, 0, 4, MESSAGE_BYTES));
	fixture_close(fixture);
	writes_to_fail = 0;
	fixture->sent = fixture->delivered = 0;
	fixture_open(fixture);
	assert_int_equal(3, fixture_check_numbers(fixture, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_torn_tail_is_cut_wherever_it_ends),
		test(a_batch_that_is_torn_in_its_middle_is_cut),
		test(damage_to_the_last_batch_is_refused),
		test(damage_to_what_was_acknowledged_is_refused),
		test(a_newer_version_is_said),
		test(a_reader_ahead_of_the_log_is_noticed),
		test(damage_to_a_closed_file_stops_its_reader_there),
		test(missing_and_short_files_are_refused),
		test(a_file_that_was_being_made_is_no_damage),
		test(a_failed_sync_moves_to_a_fresh_file),
		test(what_a_failed_sync_left_behind_is_not_read),
		test(a_failed_write_moves_to_a_fresh_file),
		test(a_full_disk_is_waited_for),
		test(nothing_is_written_behind_what_was_given_up),
		test(trimming_frees_a_full_disk),
		test(a_disk_that_does_not_answer_is_told),
		test(closing_does_not_wait_for_a_broken_disk),
	};
	return cmocka_run_group_tests_name("bus_local_recovery", tests, NULL, NULL);
}

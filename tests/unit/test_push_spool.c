/* SPDX-License-Identifier: Apache-2.0 */
/* The spool of pushed batches: what is answered is on disk, comes once, and is known by its id. */
#include "collector/follow/spools_left.h"
#include "collector/source/push/internal.h"
#include "collector/source/push/push_ids.h"
#include "collector/source/push/push_spool.h"
#include "common/base/alloc.h"
#include "common/bytes/hash.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MIB = 1 << 20, LINE_MAX_BYTES = 64 };

static char directory[64];

static int make_directory(void **state)
{
	(void)state;
	snprintf(directory, sizeof directory, "/tmp/push-spool-XXXXXX");
	return mkdtemp(directory) != NULL ? 0 : -1;
}

static int remove_directory(void **state)
{
	(void)state;
	char command[256];
	snprintf(command, sizeof command, "rm -rf %s", directory);
	return system(command);
}

static struct push_spool *open_spool(int64_t bytes)
{
	struct push_spool *spool = NULL;
	struct weir_error error;
	if (push_spool_open(&(struct push_spool_options){.directory = directory, .most_bytes = bytes}, &spool, &error) !=
	    WEIR_OK)
		fail_msg("%s", error.text);
	return spool;
}

static enum weir_status append(struct push_spool *spool, const char *id, const char *lines,
                               struct push_outcome *outcome)
{
	struct weir_text text = {0};
	weir_text_puts(&text, lines);
	struct weir_span name = id != NULL ? weir_span_of(id) : (struct weir_span){.at = NULL};
	enum weir_status status = push_spool_append_wait(spool, name, &text, outcome);
	weir_text_deinit(&text);
	return status;
}

static void take(struct push_spool *spool, const char *id, const char *lines)
{
	struct push_outcome outcome;
	if (append(spool, id, lines, &outcome) != WEIR_OK)
		fail_msg("%s", outcome.why.text);
	assert_false(outcome.again);
}

/* How many bytes of ids are on disk. */
static long bytes_of_ids(void)
{
	char path[128];
	struct stat about;
	snprintf(path, sizeof path, "%s/ids-1", directory);
	return stat(path, &about) == 0 ? (long)about.st_size : 0;
}

static uint64_t last_position(const struct source_chunk *chunk)
{
	size_t count = 0;
	for (size_t i = 0; i < chunk->length; i++)
		count += chunk->data[i] == '\n';
	for (size_t i = 1; i < count; i++)
		assert_true(chunk->positions[i] > chunk->positions[i - 1]);
	return chunk->positions[count > 0 ? count - 1 : 0];
}

/* Expects the next chunk. @return the position of its last line */
static uint64_t expect(struct push_spool *spool, const char *lines)
{
	struct source_chunk chunk;
	struct weir_error error;
	assert_int_equal(push_spool_read(spool, LINE_MAX_BYTES, &chunk, &error), WEIR_OK);
	assert_int_equal(chunk.length, strlen(lines));
	assert_memory_equal(chunk.data, lines, chunk.length);
	return last_position(&chunk);
}

static void expect_none(struct push_spool *spool)
{
	struct source_chunk chunk;
	struct weir_error error;
	assert_int_equal(push_spool_read(spool, LINE_MAX_BYTES, &chunk, &error), WEIR_AGAIN);
}

static void what_is_taken_is_read_once(void **state)
{
	(void)state;
	struct push_spool *spool = open_spool(16 * MIB);
	expect_none(spool);
	take(spool, NULL, "one\ntwo\n");
	take(spool, "a", "three\n");
	uint64_t first = expect(spool, "one\ntwo\n");
	uint64_t second = expect(spool, "three\n");
	assert_int_equal(first, UINT64_C(1) << PUSH_POSITION_LINE_BITS | 1);
	assert_int_equal(second, UINT64_C(2) << PUSH_POSITION_LINE_BITS);
	expect_none(spool);
	push_spool_close(spool);
}

static void an_id_is_known_again_after_a_start(void **state)
{
	(void)state;
	struct push_outcome outcome;
	struct push_spool *spool = open_spool(16 * MIB);
	take(spool, "a", "one\n");
	assert_int_equal(append(spool, "a", "one\n", &outcome), WEIR_OK);
	assert_true(outcome.again);
	assert_int_equal(outcome.lines, 1);
	assert_int_equal(append(spool, "a", "other\n", &outcome), WEIR_INVALID);
	take(spool, NULL, "one\n");
	push_spool_close(spool);

	spool = open_spool(16 * MIB);
	assert_int_equal(append(spool, "a", "one\n", &outcome), WEIR_OK);
	assert_true(outcome.again);
	expect(spool, "one\n");
	push_spool_acknowledge(spool, expect(spool, "one\n"));
	expect_none(spool);
	push_spool_close(spool);
	char command[256];
	snprintf(command, sizeof command, "rm %s/events/*.log %s/events/readers", directory, directory);
	assert_int_equal(system(command), 0);

	/* The batch itself is gone: its id is in a file of its own. */
	spool = open_spool(16 * MIB);
	assert_int_equal(append(spool, "a", "one\n", &outcome), WEIR_OK);
	assert_true(outcome.again);
	push_spool_close(spool);
}

/* A hash of records names equal ones, too: they are others once the sender of the first knows that it is taken. */
static void an_id_that_has_ended_is_another_batch_s(void **state)
{
	(void)state;
	struct push_outcome outcome;
	struct push_spool *spool = open_spool(16 * MIB);
	push_spool_end(spool, weir_span_of("a")); /* of nobody yet */
	take(spool, "a", "one\n");
	assert_int_equal(append(spool, "a", "one\n", &outcome), WEIR_OK);
	assert_true(outcome.again);
	push_spool_end(spool, weir_span_of("a"));
	take(spool, "a", "one\n");
	assert_int_equal(append(spool, "a", "one\n", &outcome), WEIR_OK);
	assert_true(outcome.again);
	take(spool, "b", "two\n");
	expect(spool, "one\n");
	expect(spool, "one\n");
	push_spool_end(spool, weir_span_of("a"));
	push_spool_end(spool, weir_span_of("b"));
	take(spool, "b", "two\n"); /* the newest of "a" has ended, that of "b" has not */
	expect(spool, "two\n");
	push_spool_acknowledge(spool, expect(spool, "two\n"));
	while (bytes_of_ids() == 0) /* they are saved soon */
		usleep(10000);
	push_spool_close(spool);
	spool = open_spool(16 * MIB);
	assert_int_equal(append(spool, "b", "two\n", &outcome), WEIR_OK);
	assert_true(outcome.again);
	take(spool, "a", "one\n");
	push_spool_close(spool);
}

/* What was read before a start is none that waits. */
/* An id ends seconds after its batch was saved, or before anyone has read that: a start knows it in either case. */
static void that_an_id_has_ended_is_known_after_a_start(void **state)
{
	(void)state;
	struct push_outcome outcome;
	struct push_spool *spool = open_spool(16 * MIB);
	take(spool, "a", "one\n");
	push_spool_acknowledge(spool, expect(spool, "one\n"));
	while (bytes_of_ids() == 0)
		usleep(10000);
	long saved = bytes_of_ids();
	push_spool_end(spool, weir_span_of("a"));
	while (bytes_of_ids() == saved) /* nothing more is acknowledged */
		usleep(10000);
	take(spool, "b", "two\n");
	push_spool_end(spool, weir_span_of("b"));
	take(spool, "c", "three\n");
	push_spool_close(spool);

	spool = open_spool(16 * MIB);
	assert_int_equal(append(spool, "c", "three\n", &outcome), WEIR_OK);
	assert_true(outcome.again);
	take(spool, "a", "one\n");
	take(spool, "b", "two\n");
	push_spool_close(spool);

	spool = open_spool(16 * MIB); /* that of the batch before says nothing of the next */
	assert_int_equal(append(spool, "a", "one\n", &outcome), WEIR_OK);
	assert_true(outcome.again);
	assert_int_equal(append(spool, "b", "two\n", &outcome), WEIR_OK);
	assert_true(outcome.again);
	push_spool_close(spool);
}

static void what_was_read_before_a_start_is_no_lag(void **state)
{
	(void)state;
	struct push_spool *spool = open_spool(16 * MIB);
	struct push_spool_status status;
	take(spool, NULL, "one\n");
	take(spool, NULL, "two\n");
	expect(spool, "one\n");
	uint64_t last = expect(spool, "two\n");
	push_spool_acknowledge(spool, last);
	push_spool_close(spool);
	spool = open_spool(16 * MIB);
	push_spool_resume(spool, last);
	expect_none(spool);
	push_spool_status(spool, &status);
	assert_int_equal(status.waiting_batches, 0);
	take(spool, NULL, "three\n");
	push_spool_status(spool, &status);
	assert_int_equal(status.waiting_batches, 1);
	push_spool_close(spool);
}

/* ---- what nobody reads ---- */

static uint64_t low_of(void *context, const uint8_t *id)
{
	(void)id;
	return *(uint64_t *)context;
}

static uint64_t low_of_the_last(void *context, const uint8_t *id)
{
	assert_null(id);
	return *(uint64_t *)context;
}

static void assert_left(uint64_t low, uint64_t requests, uint64_t lines)
{
	struct source_left left = {.end_ms = INT64_MAX};
	struct weir_error error;
	assert_int_equal(push_spool_count(directory, low_of, &low, &left, &error), WEIR_OK);
	assert_int_equal(left.requests, requests);
	assert_int_equal(left.lines, lines);
	assert_false(left.more);
}

static void what_nobody_reads_is_counted_and_stays(void **state)
{
	(void)state;
	struct push_spool *spool = open_spool(16 * MIB);
	take(spool, NULL, "one\ntwo\n");
	take(spool, "a", "three\n");
	push_spool_close(spool);
	assert_left(0, 2, 3);
	assert_left(UINT64_C(1) << PUSH_POSITION_LINE_BITS, 2, 2);
	assert_left(UINT64_C(1) << PUSH_POSITION_LINE_BITS | 1, 1, 1);
	assert_left(UINT64_C(2) << PUSH_POSITION_LINE_BITS, 0, 0);
	assert_left(UINT64_C(3) << PUSH_POSITION_LINE_BITS, 2, 3); /* not of these batches: a start reads all */
	spool = open_spool(16 * MIB);
	expect(spool, "one\ntwo\n");
	expect(spool, "three\n");
	push_spool_close(spool);
}

static void what_is_left_of_a_spool_without_its_id_is_counted_behind_the_last_position(void **state)
{
	(void)state;
	char path[96];
	uint64_t low = UINT64_C(1) << PUSH_POSITION_LINE_BITS;
	struct source_left left = {.end_ms = INT64_MAX};
	struct weir_error error;
	struct push_spool *spool = open_spool(16 * MIB);
	take(spool, NULL, "one\ntwo\n");
	push_spool_close(spool);
	snprintf(path, sizeof path, "%s/id", directory);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(push_spool_count(directory, low_of_the_last, &low, &left, &error), WEIR_OK);
	assert_int_equal(left.lines, 1);
}

static void keep_words(void *context, bool waits, const char *words)
{
	(void)waits;
	snprintf(context, 2048, "%s", words);
}

static void only_a_spool_that_nobody_has_open_is_named_to_be_removed(void **state)
{
	(void)state;
	const struct weir_config none = {0};
	char path[128], place[sizeof directory], words[2048] = "";
	memcpy(place, directory, sizeof place);
	snprintf(path, sizeof path, "%s/spool-mail", place);
	assert_int_equal(mkdir(path, 0700), 0);
	spools_left(place, &none, NULL, keep_words, words);
	assert_string_equal(words, "");   /* somebody else's directory */
	assert_int_equal(rmdir(path), 0); /* and nothing was put there */

	assert_true(snprintf(directory, sizeof directory, "%.40s/spool-web", place) < (int)sizeof directory);
	struct push_spool *spool = open_spool(16 * MIB);
	take(spool, NULL, "one\n");
	spools_left(place, &none, NULL, keep_words, words);
	assert_non_null(strstr(words, "a running process has it open"));
	assert_null(strstr(words, "rm -r"));
	push_spool_close(spool);
	memcpy(directory, place, sizeof directory);
	spools_left(place, &none, NULL, keep_words, words);
	assert_non_null(strstr(words, "it holds 1 requests with 1 lines"));
	assert_non_null(strstr(words, "rm -r"));
}

static void reading_goes_on_within_a_batch(void **state)
{
	(void)state;
	struct push_spool *spool = open_spool(16 * MIB);
	take(spool, NULL, "one\ntwo\nthree\n");
	take(spool, NULL, "four\n");
	uint64_t last = expect(spool, "one\ntwo\nthree\n");
	push_spool_acknowledge(spool, last - 1);
	push_spool_close(spool);
	spool = open_spool(16 * MIB);
	push_spool_resume(spool, last - 1);
	assert_int_equal(expect(spool, "three\n"), last);
	expect(spool, "four\n");
	push_spool_close(spool);
}

static void a_long_line_comes_alone(void **state)
{
	(void)state;
	char lines[2 * LINE_MAX_BYTES];
	struct source_chunk chunk;
	struct weir_error error;
	struct push_spool *spool = open_spool(16 * MIB);
	memset(lines, 'x', sizeof lines);
	memcpy(lines, "one\n", 4);
	memcpy(lines + 4 + LINE_MAX_BYTES + 10, "\nend\n", 6);
	take(spool, NULL, lines);
	expect(spool, "one\n");
	assert_int_equal(push_spool_read(spool, LINE_MAX_BYTES, &chunk, &error), WEIR_OK);
	assert_true(chunk.too_long);
	assert_int_equal(chunk.length, LINE_MAX_BYTES);
	assert_int_equal(chunk.skipped, 11);
	assert_int_equal(chunk.tail.length, 10);
	assert_memory_equal(chunk.tail.at, "xxxxxxxxxx", 10);
	uint64_t position = chunk.positions[0];
	assert_int_equal(expect(spool, "end\n"), position + 1);
	push_spool_close(spool);
}

/* Fills the spool. @return how many batches it took */
static int fill(struct push_spool *spool, const char *batch)
{
	struct push_outcome outcome;
	int taken = 0;
	while (append(spool, NULL, batch, &outcome) == WEIR_OK)
		taken++;
	assert_int_equal(outcome.status, WEIR_FULL);
	return taken;
}

static void a_full_spool_takes_again_what_is_read(void **state)
{
	(void)state;
	struct push_spool *spool = open_spool(MIB);
	char *batch = weir_alloc(50001, 1);
	struct source_chunk chunk = {0};
	struct weir_error error;
	struct push_spool_status status;
	memset(batch, 'x', 50000);
	for (int i = 50; i <= 50000; i += 50)
		batch[i - 1] = '\n';
	int taken = fill(spool, batch);
	assert_in_range(taken, 12, 20);
	push_spool_status(spool, &status);
	assert_int_equal(status.waiting_batches, taken);
	assert_true(status.bytes <= MIB);
	for (int i = 0; i < taken; i++) {
		uint64_t position = 0;
		for (size_t read = 0; read < 50000; read += chunk.length) {
			assert_int_equal(push_spool_read(spool, LINE_MAX_BYTES, &chunk, &error), WEIR_OK);
			position = chunk.positions[chunk.length / 50 - 1];
		}
		push_spool_acknowledge(spool, position);
	}
	struct push_outcome outcome = {.status = WEIR_FULL};
	for (int i = 0; i < 500 && append(spool, NULL, batch, &outcome) != WEIR_OK; i++) {
		expect_none(spool);
		usleep(20000);
	}
	assert_int_equal(outcome.status, WEIR_OK);
	free(batch);
	push_spool_close(spool);
}

static void a_batch_that_never_fits_is_refused(void **state)
{
	(void)state;
	struct push_spool *spool = open_spool(MIB);
	struct push_outcome outcome;
	char *batch = weir_alloc(300001, 1), id[PUSH_ID_MOST_BYTES + 2] = {0};
	memset(batch, '\n', 300000);
	memset(id, 'i', sizeof id - 1);
	assert_int_equal(append(spool, NULL, batch, &outcome), WEIR_INVALID);
	assert_int_equal(append(spool, id, "one\n", &outcome), WEIR_INVALID);
	free(batch);
	push_spool_close(spool);
}

/* A sender that is killed: appends numbered batches with ids, and writes each number once it is answered. */
static void send_until_killed(int answered)
{
	struct push_spool *spool = open_spool(16 * MIB);
	for (int number = 0;; number++) {
		char id[16], line[16];
		struct push_outcome outcome;
		snprintf(id, sizeof id, "%d", number);
		snprintf(line, sizeof line, "%d\n", number);
		if (append(spool, id, line, &outcome) != WEIR_OK || write(answered, &number, sizeof number) < 0)
			_exit(1);
	}
}

static void a_kill_loses_nothing_answered(void **state)
{
	(void)state;
	int expected = 0;
	for (int round = 0; round < 5; round++) {
		int ends[2], number, last = -1;
		assert_int_equal(pipe(ends), 0);
		pid_t child = fork();
		if (child == 0)
			send_until_killed(ends[1]);
		close(ends[1]);
		while (last < expected + 20 * (round + 1) && read(ends[0], &number, sizeof number) == sizeof number)
			last = number;
		kill(child, SIGKILL);
		while (read(ends[0], &number, sizeof number) == sizeof number)
			last = number;
		close(ends[0]);
		assert_int_equal(waitpid(child, NULL, 0), child);
		expected = last;
	}
	struct push_spool *spool = open_spool(16 * MIB);
	struct source_chunk chunk;
	struct weir_error error;
	int next = 0;
	while (push_spool_read(spool, LINE_MAX_BYTES, &chunk, &error) == WEIR_OK)
		assert_int_equal(atoi(chunk.data), next++);
	assert_true(next > expected);
	push_spool_close(spool);
}

static void ids_are_forgotten_after_an_hour(void **state)
{
	(void)state;
	struct push_ids *ids;
	struct weir_error error;
	assert_int_equal(push_ids_open(directory, 1000, &ids, &error), WEIR_OK);
	for (uint64_t i = 0; i < 5000; i++) {
		struct push_id id = {.body = i, .at_ms = (int64_t)i, .offset = i};
		memcpy(id.hash, &i, sizeof i);
		push_ids_add(ids, &id, (int64_t)i);
	}
	assert_int_equal(push_ids_count(ids), 5000);
	assert_true(push_ids_unsaved(ids, 3000));
	assert_int_equal(push_ids_save(ids, 3000, 5000, &error), WEIR_OK);
	assert_false(push_ids_unsaved(ids, 3000));
	push_ids_forget(ids, PUSH_IDS_KEPT_MS + 1000);
	assert_int_equal(push_ids_count(ids), 4000);
	for (uint64_t i = 0; i < 5000; i++) {
		uint8_t hash[PUSH_ID_HASH_BYTES] = {0};
		memcpy(hash, &i, sizeof i);
		const struct push_id *found = push_ids_find(ids, hash);
		assert_int_equal(found != NULL, i >= 1000);
		assert_true(found == NULL || found->body == i);
	}
	push_ids_free(ids);
	assert_int_equal(push_ids_open(directory, PUSH_IDS_KEPT_MS + 2000, &ids, &error), WEIR_OK);
	assert_int_equal(push_ids_count(ids), 1000);
	push_ids_free(ids);
}

static void a_torn_tail_of_ids_is_cut(void **state)
{
	(void)state;
	struct push_ids *ids;
	struct weir_error error;
	char path[96];
	assert_int_equal(push_ids_open(directory, 0, &ids, &error), WEIR_OK);
	for (uint64_t i = 0; i < 10; i++) {
		struct push_id id = {.offset = i};
		memcpy(id.hash, &i, sizeof i);
		push_ids_add(ids, &id, 0);
	}
	assert_int_equal(push_ids_save(ids, 10, 0, &error), WEIR_OK);
	push_ids_free(ids);
	snprintf(path, sizeof path, "%s/ids-1", directory);
	assert_int_equal(truncate(path, 16 + 9 * 48 + 7), 0);
	assert_int_equal(push_ids_open(directory, 0, &ids, &error), WEIR_OK);
	assert_int_equal(push_ids_count(ids), 9);
	struct push_id id = {.offset = 9, .hash = {99}};
	push_ids_add(ids, &id, 0);
	assert_int_equal(push_ids_save(ids, 10, 0, &error), WEIR_OK);
	push_ids_free(ids);
	assert_int_equal(push_ids_open(directory, 0, &ids, &error), WEIR_OK);
	assert_int_equal(push_ids_count(ids), 10);
	push_ids_free(ids);
}

/* Opens the ids at a moment, expects so many to be known, and saves one more. */
static void save_one_more(int64_t now_ms, size_t known, uint64_t offset)
{
	struct push_ids *ids;
	struct weir_error error;
	struct push_id id = {.at_ms = now_ms, .offset = offset};
	memcpy(id.hash, &offset, sizeof offset);
	if (push_ids_open(directory, now_ms, &ids, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	assert_int_equal(push_ids_count(ids), known);
	push_ids_add(ids, &id, now_ms);
	assert_int_equal(push_ids_save(ids, offset + 1, now_ms, &error), WEIR_OK);
	push_ids_free(ids);
}

/* The file is an hour old, so the next is begun without a write to it. */
static void a_torn_tail_of_ids_is_cut_where_the_next_file_is_begun(void **state)
{
	(void)state;
	const int64_t later_ms = PUSH_IDS_KEPT_MS + 10;
	char path[96];
	snprintf(path, sizeof path, "%s/ids-1", directory);
	save_one_more(0, 0, 0);
	save_one_more(0, 1, 1);
	assert_int_equal(truncate(path, 16 + 48 + 7), 0);
	save_one_more(later_ms, 0, 2);
	save_one_more(later_ms, 1, 3);
	assert_int_equal(bytes_of_ids(), 16 + 48);
	/* A file without its whole head has none of the ids of the one before. */
	snprintf(path, sizeof path, "%s/ids-2", directory);
	assert_int_equal(truncate(path, 7), 0);
	save_one_more(later_ms, 0, 4);
	save_one_more(later_ms, 1, 5);
	snprintf(path, sizeof path, "%s/ids-3", directory);
	assert_int_equal(access(path, F_OK), -1);
}

/* ---- a batch that comes and is read while the status is asked for ---- */

static struct push_spool *asked;
static const struct weir_bus_ops *real;

static enum weir_status extent_and_a_batch(struct weir_bus *bus, enum weir_topic topic, uint32_t partition,
                                           uint64_t *first, uint64_t *next, struct weir_error *error)
{
	enum weir_status status = real->extent(bus, topic, partition, first, next, error);
	bus->ops = real;
	take(asked, NULL, "one\n");
	push_spool_acknowledge(asked, expect(asked, "one\n"));
	return status;
}

static void no_batch_waits_where_one_is_read_meanwhile(void **state)
{
	(void)state;
	struct push_spool_status status;
	asked = open_spool(16 * MIB); /* whose thread has nothing to do yet, and does not look at the bus */
	real = asked->bus->ops;
	struct weir_bus_ops between = *real;
	between.extent = extent_and_a_batch;
	asked->bus->ops = &between;
	push_spool_status(asked, &status);
	assert_int_equal(status.waiting_batches, 0);
	push_spool_close(asked);
}

/* ---- more than a batch may have ---- */

static uint64_t stored(struct push_spool *spool)
{
	struct push_spool_status status;
	push_spool_status(spool, &status);
	return status.batches;
}

static void ignore_outcome(void *context, const struct push_outcome *outcome)
{
	(void)context;
	(void)outcome;
}

/* Lines of 64 bytes with a byte in them. */
static struct weir_text many_lines(size_t bytes, char with)
{
	struct weir_text lines = {0};
	char *at = weir_text_reserve(&lines, bytes);
	for (size_t i = 0; i < bytes; i++)
		at[i] = i % 64 == 63 ? '\n' : with;
	lines.length = bytes;
	return lines;
}

static void a_long_batch_with_an_id_is_stored_in_parts_once(void **state)
{
	(void)state;
	enum { WHOLE_BYTES = 33 * MIB, PART_BYTES = 8 * MIB, PARTS = 5 };
	struct push_outcome outcome;
	struct weir_error error;
	struct push_spool *spool = open_spool(256 * MIB);
	struct weir_text lines = many_lines(WHOLE_BYTES, 'a'), nameless = many_lines(WHOLE_BYTES, 'a'),
					 again = many_lines(WHOLE_BYTES, 'a'), other = many_lines(WHOLE_BYTES, 'b'), first = {0};
	struct weir_span id = weir_span_of("k:one"), none = {.at = NULL};

	assert_int_equal(push_spool_append_wait(spool, none, &nameless, &outcome), WEIR_INVALID);
	assert_non_null(strstr(outcome.why.text, "Idempotency-Key"));

	/* A crash has left the first part alone. */
	weir_text_append(&first, lines.at, PART_BYTES);
	uint64_t whole = weir_hash64(lines.at, lines.length);
	assert_int_equal(push_append_part(spool, id, whole, &first, ignore_outcome, NULL, &error), WEIR_OK);
	assert_int_equal(push_spool_append_wait(spool, id, &lines, &outcome), WEIR_OK);
	assert_false(outcome.again);
	assert_int_equal(outcome.lines, WHOLE_BYTES / 64);
	assert_int_equal(stored(spool), PARTS);

	assert_int_equal(push_spool_append_wait(spool, id, &other, &outcome), WEIR_INVALID);
	assert_true(outcome.clashes);
	push_spool_close(spool);
	spool = open_spool(256 * MIB);
	assert_int_equal(push_spool_append_wait(spool, id, &again, &outcome), WEIR_OK);
	assert_true(outcome.again);
	assert_int_equal(outcome.lines, WHOLE_BYTES / 64);
	assert_int_equal(stored(spool), 0);

	uint64_t bytes = 0;
	struct source_chunk chunk;
	while (push_spool_read(spool, LINE_MAX_BYTES, &chunk, &error) == WEIR_OK)
		bytes += chunk.length;
	assert_int_equal(bytes, WHOLE_BYTES);
	push_spool_close(spool);
	weir_text_deinit(&nameless);
	weir_text_deinit(&other);
}

static void no_part_is_stored_where_one_cannot_be(void **state)
{
	(void)state;
	struct push_outcome outcome;
	struct push_spool *spool = open_spool(256 * MIB);
	struct weir_text lines = many_lines(48 * MIB, 'a');
	memset(lines.at + 10 * MIB, 'x', 32 * MIB); /* a line that no batch has room for */
	assert_int_equal(push_spool_append_wait(spool, weir_span_of("k:one"), &lines, &outcome), WEIR_INVALID);
	assert_false(outcome.clashes);
	assert_int_equal(stored(spool), 0);
	push_spool_close(spool);
	weir_text_deinit(&lines);
}

/* ---- senders that are told to wait ---- */

static int64_t waiting_ms(struct push_spool *spool)
{
	struct push_spool_status status;
	push_spool_status(spool, &status);
	return status.waiting_ms;
}

/* As if nobody had asked for a minute, and the spool's thread has looked since. */
static void let_a_minute_pass(struct push_spool *spool)
{
	pthread_mutex_lock(&spool->mutex);
	spool->refused_ms -= 60000;
	pthread_mutex_unlock(&spool->mutex);
	take(spool, NULL, "one\n");
	take(spool, NULL, "two\n"); /* once this is taken, the thread has looked after the one before */
}

static void a_sender_that_asks_rarely_waits_all_the_time(void **state)
{
	(void)state;
	enum { BATCH_BYTES = 200 << 10 };
	struct push_outcome outcome;
	char *lines = weir_alloc(BATCH_BYTES + 1, 1);
	for (size_t i = 0; i < BATCH_BYTES; i++)
		lines[i] = i % 64 == 63 ? '\n' : 'x';
	struct push_spool *spool = open_spool(MIB);
	assert_int_equal(waiting_ms(spool), 0);
	while (append(spool, NULL, lines, &outcome) == WEIR_OK)
		;
	assert_int_equal(outcome.status, WEIR_FULL);
	assert_true(waiting_ms(spool) > 0);
	let_a_minute_pass(spool); /* small batches find room: one like that which was refused does not */
	assert_true(waiting_ms(spool) > 0);

	struct source_chunk chunk;
	struct weir_error error;
	while (push_spool_read(spool, LINE_MAX_BYTES, &chunk, &error) == WEIR_OK)
		push_spool_acknowledge(spool, last_position(&chunk));
	for (int i = 0; i < 1000 && waiting_ms(spool) > 0; i++) { /* files go when their ids are on disk, once a second */
		assert_int_equal(push_spool_read(spool, LINE_MAX_BYTES, &chunk, &error), WEIR_AGAIN);
		usleep(10000);
	}
	assert_int_equal(waiting_ms(spool), 0);
	assert_int_equal(append(spool, NULL, lines, &outcome), WEIR_OK);
	push_spool_close(spool);
	free(lines);
}

/* Bytes that files may have from here on; a write beyond them is cut short, as on a full disk. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void ids_are_on_disk_after_a_full_disk_wherever_it_was_full(void **state)
{
	(void)state;
	struct weir_error error;
	char path[96];
	snprintf(path, sizeof path, "%s/ids-1", directory);
	signal(SIGXFSZ, SIG_IGN);
	/* Before the head, within it, before, within and behind the first records. */
	for (rlim_t room = 0; room <= 16 + 4 * 48; room += 8) {
		struct push_ids *ids;
		assert_int_equal(push_ids_open(directory, 0, &ids, &error), WEIR_OK);
		for (uint64_t i = 0; i < 3; i++) {
			struct push_id id = {.offset = i};
			memcpy(id.hash, &i, sizeof i);
			push_ids_add(ids, &id, 0);
		}
		limit_files(room);
		enum weir_status status = push_ids_save(ids, 3, 0, &error);
		limit_files(RLIM_INFINITY);
		assert_int_equal(status, room < 16 + 3 * 48 ? WEIR_IO : WEIR_OK);
		assert_int_equal(push_ids_unsaved(ids, 3), status != WEIR_OK);
		assert_int_equal(push_ids_save(ids, 3, 0, &error), WEIR_OK);
		push_ids_free(ids);
		assert_int_equal(push_ids_open(directory, 0, &ids, &error), WEIR_OK);
		assert_int_equal(push_ids_count(ids), 3);
		push_ids_free(ids);
		assert_int_equal(unlink(path), 0);
	}
	signal(SIGXFSZ, SIG_DFL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_taken_is_read_once),
		TEST(an_id_is_known_again_after_a_start),
		TEST(what_nobody_reads_is_counted_and_stays),
		TEST(what_is_left_of_a_spool_without_its_id_is_counted_behind_the_last_position),
		TEST(only_a_spool_that_nobody_has_open_is_named_to_be_removed),
		TEST(reading_goes_on_within_a_batch),
		TEST(a_long_line_comes_alone),
		TEST(a_full_spool_takes_again_what_is_read),
		TEST(a_batch_that_never_fits_is_refused),
		TEST(a_kill_loses_nothing_answered),
		TEST(an_id_that_has_ended_is_another_batch_s),
		TEST(that_an_id_has_ended_is_known_after_a_start),
		TEST(what_was_read_before_a_start_is_no_lag),
		TEST(ids_are_forgotten_after_an_hour),
		TEST(a_torn_tail_of_ids_is_cut),
		TEST(a_torn_tail_of_ids_is_cut_where_the_next_file_is_begun),
		TEST(no_batch_waits_where_one_is_read_meanwhile),
		TEST(ids_are_on_disk_after_a_full_disk_wherever_it_was_full),
		TEST(a_long_batch_with_an_id_is_stored_in_parts_once),
		TEST(no_part_is_stored_where_one_cannot_be),
		TEST(a_sender_that_asks_rarely_waits_all_the_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

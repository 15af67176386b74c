/* SPDX-License-Identifier: Apache-2.0 */
/* A spool on a disk that hangs: whoever waits is answered, and it ends. On one that fails, it waits between its attempts. */
#include "collector/source/push/push_spool.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum { SENDERS = 3, PATIENCE_S = 60, SPOOL_BYTES = 1 << 20 };

/* Stands before the C library's: such a disk cannot be had otherwise. */
static _Atomic bool disk_hangs, disk_fails;
static _Atomic unsigned failures;

int fdatasync(int fd)
{
	if (disk_fails) {
		failures++;
		usleep(5000); /* an error takes its time, too */
		errno = EIO;
		return -1;
	}
	while (disk_hangs)
		usleep(1000);
	return (int)syscall(SYS_fdatasync, fd);
}

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

static struct push_spool *open_spool(void)
{
	struct push_spool *spool = NULL;
	struct weir_error error;
	if (push_spool_open(&(struct push_spool_options){.directory = directory, .most_bytes = SPOOL_BYTES}, &spool,
	                    &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return spool;
}

/* Appends empty lines. @param id  NULL: none */
static enum weir_status append(struct push_spool *spool, const char *id, size_t count)
{
	struct weir_text lines = {0};
	struct push_outcome outcome;
	memset(weir_text_reserve(&lines, count), '\n', count);
	lines.length = count;
	struct weir_span name = id != NULL ? weir_span_of(id) : (struct weir_span){.at = NULL};
	enum weir_status status = push_spool_append_wait(spool, name, &lines, &outcome);
	weir_text_deinit(&lines);
	return status;
}

static void *append_one(void *spool)
{
	return (void *)(uintptr_t)append(spool, "one", 1);
}

static void a_repeated_batch_is_answered(void **state)
{
	(void)state;
	pthread_t senders[SENDERS];
	void *status;
	struct push_spool *spool = open_spool();
	disk_hangs = true;
	alarm(PATIENCE_S); /* else it would wait for ever */
	for (int i = 0; i < SENDERS; i++) {
		assert_int_equal(pthread_create(&senders[i], NULL, append_one, spool), 0);
		usleep(100000); /* the first is on its way to the disk */
	}
	push_spool_stop(spool);
	for (int i = 0; i < SENDERS; i++) {
		pthread_join(senders[i], &status);
		assert_int_equal((uintptr_t)status, WEIR_AGAIN);
	}
	alarm(0);
	disk_hangs = false;
	push_spool_close(spool);
}

static void a_full_spool_waits_before_it_tries_again_to_save_ids(void **state)
{
	(void)state;
	enum { BATCH_LINES = 50000, WATCHED_S = 2 };
	struct source_chunk chunk;
	struct push_spool_status status;
	struct weir_error error;
	struct push_spool *spool = open_spool();
	assert_int_equal(append(spool, "one", 1), WEIR_OK);
	assert_int_equal(push_spool_read(spool, 64, &chunk, &error), WEIR_OK);
	enum weir_status appended;
	while ((appended = append(spool, NULL, BATCH_LINES)) == WEIR_OK)
		;
	assert_int_equal(appended, WEIR_FULL); /* so it hurries */
	disk_fails = true;
	push_spool_acknowledge(spool, chunk.positions[0]);
	sleep(WATCHED_S);
	assert_in_range(failures, 1, 2 * WATCHED_S);
	push_spool_status(spool, &status);
	assert_non_null(strstr(status.problem, "cannot write"));
	disk_fails = false;
	alarm(PATIENCE_S);
	while (push_spool_status(spool, &status), status.problem[0] != '\0')
		usleep(10000);
	alarm(0);
	push_spool_close(spool);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_repeated_batch_is_answered),
		TEST(a_full_spool_waits_before_it_tries_again_to_save_ids),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

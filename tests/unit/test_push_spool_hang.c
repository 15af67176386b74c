/* SPDX-License-Identifier: Apache-2.0 */
/* A spool on a disk that hangs: whoever waits is answered, and it ends. */
#include "collector/source/push/push_spool.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum { SENDERS = 3, PATIENCE_S = 60 };

/* Stands before the C library's: such a disk cannot be had otherwise. */
static _Atomic bool disk_hangs;

int fdatasync(int fd)
{
	while (disk_hangs)
		usleep(1000);
	return (int)syscall(SYS_fdatasync, fd);
}

static void *append_one(void *spool)
{
	struct weir_text lines = {0};
	struct push_outcome outcome;
	weir_text_puts(&lines, "a\n");
	enum weir_status status = push_spool_append_wait(spool, weir_span_of("one"), &lines, &outcome);
	weir_text_deinit(&lines);
	return (void *)(uintptr_t)status;
}

static void a_repeated_batch_is_answered(void **state)
{
	(void)state;
	char directory[] = "/tmp/push-spool-XXXXXX", command[64];
	struct push_spool *spool = NULL;
	struct weir_error error;
	pthread_t senders[SENDERS];
	void *status;
	assert_non_null(mkdtemp(directory));
	if (push_spool_open(&(struct push_spool_options){.directory = directory, .most_bytes = 1 << 20}, &spool, &error) !=
	    WEIR_OK)
		fail_msg("%s", error.text);
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
	snprintf(command, sizeof command, "rm -rf %s", directory);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_repeated_batch_is_answered)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

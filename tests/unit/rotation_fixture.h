/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of followed files share: an empty directory and memory for each case, restarts, and a writer. */
#ifndef TESTS_UNIT_ROTATION_FIXTURE_H
#define TESTS_UNIT_ROTATION_FIXTURE_H

#include "tests/unit/source_fixture.h"

#include <sys/time.h>

static const char *const one = "{\"type\":\"file\",\"path\":\"%s/access.log\",\"follow\":true}";
static const char *const all = "{\"type\":\"file\",\"path\":\"%s/access.log*\",\"follow\":true}";
static const char *const both[] = {one, all};
#define FOR_BOTH(config) for (size_t i_ = 0; i_ < 2 && (config = both[i_], true); i_++)

static struct source_memory *memory;

/* Each case begins with an empty directory and an empty memory. */
static inline void begin(void)
{
	assert_int_equal(log_directory_make(NULL), 0);
	memory = source_memory_new(NULL);
}

static inline void end(void)
{
	source_memory_free(memory);
	assert_int_equal(log_directory_remove(NULL), 0);
}

/* kill -9 and a start: what was acknowledged is known, and which parts were begun. */
static inline void restart(struct reader *reader, const char *config)
{
	struct source_memory *again = memory_again(memory);
	reader_close(reader);
	source_memory_free(memory);
	memory = again;
	reader_open(reader, config, false, memory);
}

/* A stop in which everything was acknowledged. */
static inline void stop(struct reader *reader)
{
	reader_acknowledge(reader);
	struct source_memory *again = memory_again(memory);
	reader_close(reader);
	source_memory_free(memory);
	memory = again;
}

/* A writer that has a file open, as services do. */
static inline int open_writer(const char *name)
{
	int fd = open(log_path(name), O_WRONLY | O_CREAT | O_APPEND, 0600);
	assert_true(fd >= 0);
	return fd;
}

static inline void say(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

#endif

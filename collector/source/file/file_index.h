/* SPDX-License-Identifier: Apache-2.0 */
/* Which logs have a path: events name paths, and logs are many. */
#ifndef COLLECTOR_SOURCE_FILE_INDEX_H
#define COLLECTOR_SOURCE_FILE_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct file_log;

/* Zero-initialised: it holds nothing. What is added stays: who asks compares the paths. */
struct file_index {
	struct file_index_slot {
		uint64_t hash;
		struct file_log *log; /* NULL: it is empty */
	} * slots;
	size_t capacity, count;
};

void file_index_add(struct file_index *index, const char *path, struct file_log *log);

/**
 * A log that was added with this path, or one whose path has the same hash.
 *
 * @param turn  0 for the first, then as the call left it
 * @return NULL: there are no more
 */
struct file_log *file_index_next(const struct file_index *index, const char *path, size_t *turn);

void file_index_deinit(struct file_index *index);

#endif

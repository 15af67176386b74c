/* SPDX-License-Identifier: Apache-2.0 */
/* A few bytes guarded by a mutex, and a counter that says whether taking the mutex is worthwhile. */
#include "common/cluster/assignment.h"

#include "common/base/alloc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct weir_assignment {
	pthread_mutex_t lock;
	_Atomic uint64_t version;
	uint64_t generation;
	uint32_t partitions, count;
	bool given[];
};

struct weir_assignment *weir_assignment_new(uint32_t partitions)
{
	struct weir_assignment *assignment = weir_alloc(1, sizeof *assignment + partitions * sizeof assignment->given[0]);
	pthread_mutex_init(&assignment->lock, NULL);
	assignment->partitions = partitions;
	return assignment;
}

struct weir_assignment *weir_assignment_of_all(uint32_t partitions)
{
	struct weir_assignment *assignment = weir_assignment_new(partitions);
	memset(assignment->given, true, partitions * sizeof assignment->given[0]);
	assignment->count = partitions;
	assignment->generation = 1;
	atomic_store(&assignment->version, 1);
	return assignment;
}

void weir_assignment_free(struct weir_assignment *assignment)
{
	if (assignment == NULL)
		return;
	pthread_mutex_destroy(&assignment->lock);
	free(assignment);
}

void weir_assignment_set(struct weir_assignment *assignment, const bool *given, uint64_t generation)
{
	pthread_mutex_lock(&assignment->lock);
	if (generation != assignment->generation ||
	    memcmp(given, assignment->given, assignment->partitions * sizeof *given) != 0) {
		memcpy(assignment->given, given, assignment->partitions * sizeof *given);
		assignment->generation = generation;
		assignment->count = 0;
		for (uint32_t i = 0; i < assignment->partitions; i++)
			assignment->count += given[i];
		atomic_fetch_add(&assignment->version, 1);
	}
	pthread_mutex_unlock(&assignment->lock);
}

void weir_assignment_lose(struct weir_assignment *assignment)
{
	pthread_mutex_lock(&assignment->lock);
	if (assignment->generation != 0) {
		assignment->generation = 0;
		atomic_fetch_add(&assignment->version, 1);
	}
	pthread_mutex_unlock(&assignment->lock);
}

uint64_t weir_assignment_version(const struct weir_assignment *assignment)
{
	return atomic_load(&assignment->version);
}

uint64_t weir_assignment_get(struct weir_assignment *assignment, bool *given, uint32_t *count)
{
	pthread_mutex_lock(&assignment->lock);
	if (given != NULL)
		memcpy(given, assignment->given, assignment->partitions * sizeof *given);
	if (count != NULL)
		*count = assignment->count;
	uint64_t generation = assignment->generation;
	pthread_mutex_unlock(&assignment->lock);
	return generation;
}

bool weir_assignment_has(struct weir_assignment *assignment, uint32_t partition)
{
	pthread_mutex_lock(&assignment->lock);
	bool given = partition < assignment->partitions && assignment->given[partition];
	pthread_mutex_unlock(&assignment->lock);
	return given;
}

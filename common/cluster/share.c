/* A few bytes behind a mutex, and a number that says whether it is worth taking. */
#include "common/cluster/share.h"

#include "common/base/alloc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct weir_share {
	pthread_mutex_t lock;
	_Atomic uint64_t version;
	uint64_t generation;
	uint32_t partitions, count;
	bool given[];
};

struct weir_share *weir_share_new(uint32_t partitions)
{
	struct weir_share *share = weir_alloc(1, sizeof *share + partitions * sizeof share->given[0]);
	pthread_mutex_init(&share->lock, NULL);
	share->partitions = partitions;
	return share;
}

void weir_share_free(struct weir_share *share)
{
	if (share == NULL)
		return;
	pthread_mutex_destroy(&share->lock);
	free(share);
}

void weir_share_set(struct weir_share *share, const bool *given, uint64_t generation)
{
	pthread_mutex_lock(&share->lock);
	if (generation != share->generation || memcmp(given, share->given, share->partitions * sizeof *given) != 0) {
		memcpy(share->given, given, share->partitions * sizeof *given);
		share->generation = generation;
		share->count = 0;
		for (uint32_t i = 0; i < share->partitions; i++)
			share->count += given[i];
		atomic_fetch_add(&share->version, 1);
	}
	pthread_mutex_unlock(&share->lock);
}

void weir_share_lose(struct weir_share *share)
{
	pthread_mutex_lock(&share->lock);
	if (share->generation != 0) {
		share->generation = 0;
		atomic_fetch_add(&share->version, 1);
	}
	pthread_mutex_unlock(&share->lock);
}

uint64_t weir_share_version(const struct weir_share *share)
{
	return atomic_load(&share->version);
}

uint64_t weir_share_get(struct weir_share *share, bool *given, uint32_t *count)
{
	pthread_mutex_lock(&share->lock);
	if (given != NULL)
		memcpy(given, share->given, share->partitions * sizeof *given);
	if (count != NULL)
		*count = share->count;
	uint64_t generation = share->generation;
	pthread_mutex_unlock(&share->lock);
	return generation;
}

bool weir_share_has(struct weir_share *share, uint32_t partition)
{
	pthread_mutex_lock(&share->lock);
	bool given = partition < share->partitions && share->given[partition];
	pthread_mutex_unlock(&share->lock);
	return given;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One transaction that is guarded by an epoch: if several processes start
 * together, one puts the notes; the others are refused, and look again.
 */
#include "common/cluster/put_if_absent.h"

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

enum { TRIES = 50, NAP_MS_MAX = 64 };

/* @return WEIR_FENCED: another process does it at the same time */
static enum weir_status try_once(struct weir_store *store, const char *const *names, const struct weir_span *values,
                                 size_t count, struct weir_error *error)
{
	struct weir_partition_state state;
	size_t length;
	char *note;
	enum weir_status status = store->ops->take(store, WEIR_STORE_ROLE_ALL, 0, &state, error);
	if (status == WEIR_OK)
		status = store->ops->note_get(store, names[0], &note, &length, error);
	if (status != WEIR_OK)
		return status;
	bool is_there = note != NULL;
	free(note);
	if (is_there)
		return WEIR_OK;
	state.checkpoint++;
	state.extra = (struct weir_span){.at = "", .length = 0};
	return store->ops->commit(store, WEIR_STORE_ROLE_ALL, &state, 1, names, values, count, error);
}

/* Sleeps for a random time, so that processes do not retry in step. */
static void nap(void)
{
	unsigned char random = 0;
	if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
		random = NAP_MS_MAX;
	nanosleep(&(struct timespec){.tv_nsec = (1 + random % NAP_MS_MAX) * 1000000L}, NULL);
}

enum weir_status weir_put_if_absent(struct weir_store *store, const char *const *names, const struct weir_span *values,
                                    size_t count, struct weir_error *error)
{
	for (int i = 0; i < TRIES; i++) {
		enum weir_status status = try_once(store, names, values, count, error);
		if (status != WEIR_FENCED)
			return status;
		nap();
	}
	return weir_fail(error, WEIR_IO, "the starting processes did not agree on cluster metadata after %d tries", TRIES);
}

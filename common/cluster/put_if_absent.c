/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One transaction that is guarded by an epoch: if several processes put notes
 * together, one does; the others are refused, and look again.
 */
#include "common/cluster/put_if_absent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

enum { TRIES = 50, NAP_MS_MAX = 64 };

struct put {
	const char *const *names;
	const struct weir_span *values;
	size_t count;
	bool (*is_due)(const char *note, struct weir_span value); /* by the first note as it is; NULL: it is not there */
};

static bool is_absent(const char *note, struct weir_span value)
{
	(void)value;
	return note == NULL;
}

static bool is_lower(const char *note, struct weir_span value)
{
	return note == NULL || strtoull(note, NULL, 10) < strtoull(value.at, NULL, 10);
}

/* @return WEIR_FENCED: another process does it at the same time */
static enum weir_status try_once(struct weir_store *store, const struct put *put, struct weir_error *error)
{
	struct weir_partition_state state;
	size_t length;
	char *note;
	enum weir_status status = store->ops->take(store, WEIR_STORE_ROLE_ALL, 0, &state, error);
	if (status == WEIR_OK)
		status = store->ops->note_get(store, put->names[0], &note, &length, error);
	if (status != WEIR_OK)
		return status;
	bool due = put->is_due(note, put->values[0]);
	free(note);
	if (!due)
		return WEIR_OK;
	state.checkpoint++;
	state.extra = (struct weir_span){.at = "", .length = 0};
	return store->ops->commit(store, WEIR_STORE_ROLE_ALL, &state, 1, put->names, put->values, put->count, error);
}

/* Sleeps for a random time, so that processes do not retry in step. */
static void nap(void)
{
	unsigned char random = 0;
	if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
		random = NAP_MS_MAX;
	nanosleep(&(struct timespec){.tv_nsec = (1 + random % NAP_MS_MAX) * 1000000L}, NULL);
}

static enum weir_status put_if_due(struct weir_store *store, const struct put *put, struct weir_error *error)
{
	for (int i = 0; i < TRIES; i++) {
		enum weir_status status = try_once(store, put, error);
		if (status != WEIR_FENCED)
			return status;
		nap();
	}
	return weir_fail(error, WEIR_IO, "processes of the store did not agree on the note \"%s\" after %d tries",
	                 put->names[0], TRIES);
}

enum weir_status weir_put_if_absent(struct weir_store *store, const char *const *names, const struct weir_span *values,
                                    size_t count, struct weir_error *error)
{
	return put_if_due(store, &(struct put){names, values, count, is_absent}, error);
}

enum weir_status weir_put_if_higher(struct weir_store *store, const char *name, uint64_t number,
                                    struct weir_error *error)
{
	char digits[24];
	snprintf(digits, sizeof digits, "%" PRIu64, number);
	const struct weir_span value = weir_span_of(digits);
	return put_if_due(store, &(struct put){&name, &value, 1, is_lower}, error);
}

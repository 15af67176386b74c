/* SPDX-License-Identifier: Apache-2.0 */
/* Two notes, created once: if several limiters start together, one creates them and the others read them. */
#include "limiter/checkpoint/cluster_metadata.h"

#include "common/cluster/put_if_absent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SEED_NOTE "seed"
#define PARTITIONS_NOTE "partitions"

/* WEIR_END: there is no such note. */
static enum weir_status read_number(struct weir_store *store, const char *name, int base, uint64_t *number,
                                    struct weir_error *error)
{
	char *note;
	size_t length;
	enum weir_status status = store->ops->note_get(store, name, &note, &length, error);
	if (status != WEIR_OK)
		return status;
	if (note == NULL)
		return WEIR_END;
	*number = strtoull(note, NULL, base);
	free(note);
	return WEIR_OK;
}

enum weir_status cluster_metadata_read(struct weir_store *store, uint32_t partitions, uint64_t *seed,
                                       struct weir_error *error)
{
	uint64_t stored = 0;
	enum weir_status status = read_number(store, PARTITIONS_NOTE, 10, &stored, error);
	if (status == WEIR_OK && stored != partitions)
		return weir_fail(
			error, WEIR_INVALID,
			"the store was made for %llu partitions, but \"bus.partitions\" is %u: the number cannot change "
			"once there is state",
			(unsigned long long)stored, partitions);
	return status == WEIR_OK ? read_number(store, SEED_NOTE, 16, seed, error) : status;
}

enum weir_status cluster_metadata_establish(struct weir_store *store, uint32_t partitions, uint64_t *seed,
                                            struct weir_error *error)
{
	char hex[20], count[12];
	uint64_t random;
	enum weir_status status = cluster_metadata_read(store, partitions, seed, error);
	if (status != WEIR_END)
		return status;
	if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
		return weir_fail(error, WEIR_IO, "cannot get random bytes: %s", weir_errno_words(errno));
	snprintf(hex, sizeof hex, "%016llx", (unsigned long long)random);
	snprintf(count, sizeof count, "%u", partitions);
	const char *names[] = {SEED_NOTE, PARTITIONS_NOTE};
	const struct weir_span values[] = {weir_span_of(hex), weir_span_of(count)};
	status = weir_put_if_absent(store, names, values, 2, error);
	return status == WEIR_OK ? cluster_metadata_read(store, partitions, seed, error) : status;
}

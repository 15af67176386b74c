/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which object was last seen under each key: tells one that was written again. It is not saved, and forgets all where it
 * is full; so a change may go untold, but none is told that was not.
 *
 * @thread one at a time
 */
#ifndef COLLECTOR_REMOTE_S3_VERSIONS_H
#define COLLECTOR_REMOTE_S3_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { S3_VERSIONS_MOST = 131072 }; /* of 16 bytes, in a table twice as large */

struct s3_version;

/* Zero-initialised is empty. */
struct s3_versions {
	struct s3_version *slots; /* owned */
	size_t room, count;
};

void s3_versions_deinit(struct s3_versions *versions);

/**
 * Notes what a key is.
 *
 * @param key  a hash of it
 * @param id   of the object; not 0
 * @return whether it was another one before
 */
bool s3_versions_note(struct s3_versions *versions, uint64_t key, uint64_t id);

#endif

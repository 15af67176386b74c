/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Over which connection each blob of a checkpoint that is not current yet was
 * written.
 *
 * A server that was restarted, or that another one has replaced, may have lost
 * the last transactions, where it is set up to be fast. Those lost are always
 * the newest: so a checkpoint that is current still has its blobs, but blobs
 * that were there before the connection broke may be gone when it is to become
 * current. Then they are to be written again.
 */
#ifndef WEIR_COMMON_STORE_MYSQL_WRITTEN_H
#define WEIR_COMMON_STORE_MYSQL_WRITTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_mysql_blob_place {
	uint32_t partition, segment;
	uint64_t connection;
};

/* Zero-initialised is empty. At most one for each segment of the partitions that are being saved. */
struct weir_mysql_written {
	struct weir_mysql_blob_place *places;
	size_t count, capacity;
	size_t next; /* a try that is made again writes in the same order: the search begins here */
};

void weir_mysql_written_note(struct weir_mysql_written *written, uint32_t partition, uint32_t segment,
                             uint64_t connection);
/** Whether all of the partition's blobs were written over this connection. */
bool weir_mysql_written_over(const struct weir_mysql_written *written, uint32_t partition, uint64_t connection);
void weir_mysql_written_forget(struct weir_mysql_written *written, uint32_t partition);

#endif

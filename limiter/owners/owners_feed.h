/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that publishes in the store which partitions this process has, and reads which ones others have: about once a
 * second, and sooner when somebody doubts it. While the store is away, what was read last holds: without it nobody can take
 * a partition.
 */
#ifndef LIMITER_OWNERS_FEED_H
#define LIMITER_OWNERS_FEED_H

#include "common/log/log.h"
#include "common/store/store.h"
#include "limiter/owners/owners.h"

struct owners_feed;

struct owners_feed_options {
	struct owners *owners; /* borrowed, like all that follows */
	/** Opens the thread's own store, in that thread. */
	enum weir_status (*open)(void *context, struct weir_store **store, struct weir_error *error);
	void *open_context;
	/** Told of each place that a partition has, at each reading, in the feed's thread. */
	void (*found)(void *context, uint32_t place);
	void *found_context;
	/** Reads, at each reading, what else whoever asks must know: the policies. In the feed's thread. NULL: nothing */
	enum weir_status (*look)(void *context, struct weir_store *store, struct weir_error *error);
	void *look_context;
	const struct weir_log *log;
};

WEIR_MUST_USE enum weir_status owners_feed_start(const struct owners_feed_options *options, struct owners_feed **feed,
                                                 struct weir_error *error);
/** Ends the thread and frees. NULL is fine. */
void owners_feed_stop(struct owners_feed *feed);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the loop counts and the pages show; the loop writes it, any thread reads it. */
#ifndef DEPLOY_GATEWAYS_SUBSCRIBER_INTERNAL_H
#define DEPLOY_GATEWAYS_SUBSCRIBER_INTERNAL_H

#include "common/base/clock_step.h"
#include "deploy/gateways/subscriber/ager.h"
#include "deploy/gateways/subscriber/subscriber.h"

#include <pthread.h>

/* What became of a decision. The first ones are those of enum block_outcome. */
enum subscriber_result {
	RESULT_APPLIED = BLOCK_APPLIED,
	RESULT_OLDER = BLOCK_OLDER,
	RESULT_OVER = BLOCK_OVER,
	RESULT_NO_ROOM = BLOCK_NO_ROOM,
	RESULT_OTHER_ZONE,
	RESULT_SHADOW,
	RESULT_MALFORMED,
	RESULT_COUNT,
};

/* Something that continues, said at once and then each minute with how often. */
struct subscriber_notice {
	uint64_t told;
	int64_t next_ms;
};

struct subscriber {
	struct subscriber_options options;
	struct weir_bus *bus; /* NULL until it is there */
	struct block_table *table;
	struct ager *ager;           /* NULL: the target is the loop's */
	_Atomic(struct feed *) feed; /* NULL until it is open */
	_Atomic bool caught_up;
	_Atomic bool in_place; /* the target's list is the table's, but for what waits for its interval */
	pthread_mutex_t reason_lock;
	char reason[WEIR_ERROR_TEXT_BYTES]; /* under the lock: why the target failed last; "": it did not */

	/* the loop's own */
	bool copy_wanted;
	int64_t *left_ms; /* the times of decisions that the next copy will hold */
	uint32_t left_count, left_room;
	bool overflowed; /* more changed than the list of changes is let grow to: a copy instead */
	int64_t retry_at_ms, retry_wait_ms, in_place_since_ms, apply_at_ms, check_at_ms; /* monotonic */
	int64_t paid_until_ms; /* monotonic: the changes so far would have come until then, one in each interval */
	int64_t expire_at_ms;  /* Unix ms */
	struct weir_fault target_fault, feed_fault, bus_fault;
	struct weir_lasting feed_fails;
	int64_t bus_look_at_ms;
	int64_t progress_ms; /* monotonic: when something of the topic came */
	struct subscriber_notice malformed_notice, left_out_notice, unfit_notice;
	struct weir_clock_step clock;
	struct subscriber_notice clock_notices[2]; /* set forward, set back */
	uint64_t clock_steps;

	struct weir_counter results[RESULT_COUNT];
	struct weir_counter copies, errors;
	struct weir_histogram delay;
};

#endif

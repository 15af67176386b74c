/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policies of a cluster, as the policy topic has them: read from its first
 * offset on, the newest by its version in force.
 *
 * A message that is not a policy is logged with its offset, counted and skipped: a
 * foreign message on the topic must not hide the policies after it.
 *
 * @thread one owner, but where said
 */
#ifndef WEIR_COMMON_POLICY_FEED_H
#define WEIR_COMMON_POLICY_FEED_H

#include "common/bus/bus.h"
#include "common/log/log.h"
#include "common/policy/policy.h"

#include <stdbool.h>

struct weir_policy_feed;

struct weir_policy_feed_options {
	struct weir_bus *bus; /* borrowed, as all that follows */
	const struct weir_log *log;
	const char *part; /* who reads, for the log: "collector" */
};

WEIR_MUST_USE enum weir_status weir_policy_feed_new(const struct weir_policy_feed_options *options,
                                                    struct weir_policy_feed **feed, struct weir_error *error);
void weir_policy_feed_free(struct weir_policy_feed *feed);

/**
 * Reads on, waiting at most timeout_ms for the first message. A version that is not above the newest is ignored.
 *
 * @return WEIR_OK; WEIR_IO, WEIR_INVALID: the topic cannot be read just now, the next poll retries; a topic that
 *         was trimmed or recreated is read from its first offset again
 */
WEIR_MUST_USE enum weir_status weir_policy_feed_poll(struct weir_policy_feed *feed, int timeout_ms,
                                                     struct weir_error *error);

/** The newest version so far, or NULL. Borrowed until it is forgotten or the feed freed. */
const struct weir_policy *weir_policy_feed_newest(const struct weir_policy_feed *feed);

/** Frees those below a version: nobody uses them any more. */
void weir_policy_feed_forget(struct weir_policy_feed *feed, uint64_t version);

/** Whether everything was read that was there when the feed began: no newest then means that there is no policy. */
bool weir_policy_feed_caught_up(const struct weir_policy_feed *feed);

/** Messages skipped. @thread any */
uint64_t weir_policy_feed_bad(const struct weir_policy_feed *feed);

#endif

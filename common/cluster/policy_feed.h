/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policies of a cluster, as the policy topic has them. The topic is read from
 * its first offset on; the policy with the highest version is in force.
 *
 * A message that is not a policy, or one of a newer weir, is logged with its offset,
 * counted and skipped: it must not hide the policies after it.
 *
 * @thread one owner, except where noted
 */
#ifndef WEIR_COMMON_POLICY_FEED_H
#define WEIR_COMMON_POLICY_FEED_H

#include "common/bus/bus.h"
#include "common/log/log.h"
#include "common/policy/policy.h"

#include <stdbool.h>

struct weir_policy_feed;

struct weir_policy_feed_options {
	struct weir_bus *bus; /* borrowed, like all that follows */
	const struct weir_log *log;
	const char *part; /* who reads, for the log: "collector" */
};

WEIR_MUST_USE enum weir_status weir_policy_feed_new(const struct weir_policy_feed_options *options,
                                                    struct weir_policy_feed **feed, struct weir_error *error);
void weir_policy_feed_free(struct weir_policy_feed *feed);

/**
 * Reads more messages, waiting at most timeout_ms for the first. A version not above the newest one is ignored.
 *
 * @return WEIR_OK; WEIR_IO, WEIR_INVALID: the topic cannot be read now, and the next poll retries; a topic that
 *         was trimmed or recreated is read from its first offset again
 */
WEIR_MUST_USE enum weir_status weir_policy_feed_poll(struct weir_policy_feed *feed, int timeout_ms,
                                                     struct weir_error *error);

/** The policy with the highest version so far, or NULL. Borrowed until it is forgotten or the feed freed. */
const struct weir_policy *weir_policy_feed_newest(const struct weir_policy_feed *feed);

/** Frees policies below a version, which nobody may use any more. */
void weir_policy_feed_forget(struct weir_policy_feed *feed, uint64_t version);

/** The one with the lowest version above this; NULL: there is none. Borrowed likewise. */
const struct weir_policy *weir_policy_feed_above(const struct weir_policy_feed *feed, uint64_t version);

/**
 * Reads the whole topic as it is now, for whoever does not go on reading it. Of messages that are skipped only errors are
 * told, on standard error.
 *
 * @param bus   borrowed
 * @param feed  returned, the caller frees
 * @return WEIR_OK; WEIR_IO, WEIR_INVALID: it cannot be read, or not in that time
 */
WEIR_MUST_USE enum weir_status weir_policy_feed_read(struct weir_bus *bus, int64_t wait_ms,
                                                     struct weir_policy_feed **feed, struct weir_error *error);

/** Whether all messages that existed when reading began were read. If there is no newest then, there is no policy. */
bool weir_policy_feed_caught_up(const struct weir_policy_feed *feed);

/* Why a message was skipped. */
enum weir_policy_skip {
	WEIR_POLICY_SKIP_FOREIGN, /* it is no policy: something else wrote it, or it is damaged */
	WEIR_POLICY_SKIP_NEWER,   /* a newer weir wrote it */
	WEIR_POLICY_SKIPS
};

/** "foreign", "newer": as a metric's label has it. */
const char *weir_policy_skip_word(enum weir_policy_skip why);

/** How many messages were skipped for this reason. @thread any */
uint64_t weir_policy_feed_skipped(const struct weir_policy_feed *feed, enum weir_policy_skip why);

/**
 * The least version that the last policy of a newer weir can have, of which nothing else can be read; 0: there was none.
 * Above that of the newest: the newest is not the one in force elsewhere.
 */
uint64_t weir_policy_feed_beyond(const struct weir_policy_feed *feed);

#endif

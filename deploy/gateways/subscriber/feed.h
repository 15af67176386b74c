/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions topic, all of its partitions from their start, and how far the
 * reading is behind.
 *
 * @thread one owner; where another may call, it says so
 */
#ifndef DEPLOY_GATEWAYS_SUBSCRIBER_FEED_H
#define DEPLOY_GATEWAYS_SUBSCRIBER_FEED_H

#include "common/bus/bus.h"

struct feed;

/**
 * Begins to read every partition at the first message that it holds. A thread of its own asks for the ends each second.
 *
 * @param bus  borrowed until feed_close()
 * @return WEIR_OK; WEIR_IO: try again
 */
WEIR_MUST_USE enum weir_status feed_open(struct weir_bus *bus, struct feed **feed, struct weir_error *error);
/** NULL is fine. */
void feed_close(struct feed *feed);

/**
 * Up to `most` messages, waiting at most timeout_ms for the first.
 *
 * A gap (what is older than the topic's retention went while it was being read) is skipped and counted: see
 * feed_begin_anew_if_lost(). So are damaged bytes, from their second refusal on: a list that stands still would be
 * worse.
 *
 * @param messages  their bytes are borrowed until the next receive
 * @return WEIR_OK with *count >= 0; WEIR_IO: a passing fault; WEIR_ANEW: the topic was recreated, and
 *         the next receive begins at its start, as in a new feed
 */
WEIR_MUST_USE enum weir_status feed_receive(struct feed *feed, struct weir_message *messages, size_t most,
                                            int timeout_ms, size_t *count, struct weir_error *error);

/**
 * After a receive, whatever it gave: where a gap followed on what was read, a lift may have been in it. Then the next
 * receive begins at the topic's start, as in a new feed; limiters see to it that whatever is live stands there.
 *
 * @return whether it does: what was received of the topic is to be forgotten, also just now
 */
bool feed_begin_anew_if_lost(struct feed *feed);

/** The next receive begins at the topic's start, as in a new feed. What the last one gave is gone. */
void feed_begin_anew(struct feed *feed);

/** Whether all that the topic held when reading began was received. */
bool feed_caught_up(const struct feed *feed);

/** Messages that the topic is known to hold and that were not received yet. @thread any */
uint64_t feed_lag(const struct feed *feed);
/** How long ago the end of a partition was heard, of all the longest: as old is what the lag says. @thread any */
int64_t feed_ends_age_ms(const struct feed *feed);
/** How many gaps were skipped. @thread any */
uint64_t feed_gaps(const struct feed *feed);

#endif

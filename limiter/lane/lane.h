/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: one partition being judged in a limiter. It turns messages of the log into
 * verdicts, and checkpoints are cut from it.
 *
 * It joins the shard with what a shard does not know: wire form, policies by
 * version, the next offset, and the tally. Between two messages it is
 * consistent; only then may it be cut. One thread touches it.
 */
#ifndef LIMITER_LANE_H
#define LIMITER_LANE_H

#include "common/store/store.h"
#include "limiter/lane/policy_registry.h"
#include "limiter/lane/tally.h"
#include "limiter/shard/shard.h"

struct lane;
struct policy_switch;

/* A sender's clock may be ahead of the log's by so much; its frames' sending times count as no later than that. */
enum { LANE_AHEAD_MOST_MS = 5000 };

/* What one message came to. Everything is borrowed from the lane until its next message. */
struct lane_result {
	uint64_t offset;
	const struct weir_frame *frame;                 /* NULL: not events */
	struct shard_result judged;                     /* of the frame */
	const struct policy_switch *change;             /* what another policy publishes; NULL: it is none */
	const struct override_command *command;         /* of an operator, that was carried out; NULL: none */
	const struct shard_override_decision *override; /* what it publishes, NULL: nothing */
	int64_t at_ms;                                  /* sending time, bounded by what the log's own clock allows */
	int64_t ahead_ms;                               /* what was taken off it for that */
	const uint8_t *source;                          /* who sent it: WEIR_SOURCE_ID_BYTES; zero of control records */
};

/** @param registry  borrowed; the policy `version` is in force at first */
struct lane *lane_new(const struct shard_options *options, struct policy_registry *registry, uint64_t version);
void lane_free(struct lane *lane);

/**
 * Goes on where a checkpoint left off; which segments the store holds its shard is told apart. Before the first
 * message.
 *
 * @param state  as take() gave it; a checkpoint of 0 is an empty lane
 */
WEIR_MUST_USE enum weir_status lane_restore(struct lane *lane, const struct weir_partition_state *state,
                                            struct weir_error *error);

/**
 * Takes the next message. Those below next_offset are skipped (WEIR_OK with an empty result).
 *
 * @param message      borrowed until this and the following lane_go_on calls are over
 * @param appended_ms  when the log took it, by the log's clock; 0: it does not say, and the sender is believed
 * @return WEIR_OK; WEIR_AGAIN: lane_missing() segments must be loaded (none: it is a policy that the policy registry does not
 *         have, and the store may), then lane_go_on(); WEIR_INVALID: not a frame, or a command that cannot be done: counted and
 *         skipped; WEIR_NEWER: a newer weir wrote it: nothing was taken, the partition must wait
 */
WEIR_MUST_USE enum weir_status lane_offer(struct lane *lane, struct weir_span message, uint64_t offset,
                                          int64_t appended_ms, struct lane_result *result, struct weir_error *error);

/** Tries again after loads: as lane_offer. */
WEIR_MUST_USE enum weir_status lane_go_on(struct lane *lane, struct lane_result *result, struct weir_error *error);

/**
 * Whether the waiting message is a policy that somebody has numbered, and that the policy registry lacks: policies are in the
 * log in order and without a gap, so that one whose predecessor is not known, or whose text is none, nobody has.
 */
bool lane_awaits_policy(const struct lane *lane);

/** The waiting message was moved: `copy` has the same bytes, and is borrowed instead. */
void lane_keep_message(struct lane *lane, struct weir_span copy);

/** Segments that the waiting message needs. */
const uint32_t *lane_missing(const struct lane *lane, uint32_t *count);

/** The row of a cut taken now: extra is appended to `extra` and borrowed from it. */
void lane_state(const struct lane *lane, struct weir_partition_state *state, struct weir_text *extra);

struct shard *lane_shard(struct lane *lane);
struct tally *lane_tally(struct lane *lane);
uint32_t lane_partition(const struct lane *lane);
uint64_t lane_next_offset(const struct lane *lane);
uint64_t lane_policy_version(const struct lane *lane);
/** In force now. */
const struct compiled_policy *lane_compiled_policy(const struct lane *lane);

#endif

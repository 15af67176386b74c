/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: one partition being judged in a limiter. It turns messages of the log into
 * verdicts, and checkpoints are cut from it.
 *
 * It joins the shard with what a shard does not know: the wire format, policies by
 * version, the next offset, and the tally. It is consistent between two messages,
 * and may be cut only then. One thread uses it.
 */
#ifndef LIMITER_LANE_H
#define LIMITER_LANE_H

#include "common/store/store.h"
#include "limiter/lane/lane_place.h"
#include "limiter/lane/policy_registry.h"
#include "limiter/lane/tally.h"
#include "limiter/shard/shard.h"

struct lane;
struct policy_switch;

/* The result of one message. Everything is borrowed from the lane until its next message. */
struct lane_result {
	uint64_t offset;                                /* in the topic */
	uint64_t number;                                /* by which decisions and judged frames name the record */
	const struct weir_frame *frame;                 /* NULL: not events */
	struct shard_result judged;                     /* of the frame */
	const struct policy_switch *change;             /* what a policy switch publishes; NULL: no switch */
	const struct override_command *command;         /* an operator's command that was carried out; NULL: none */
	const struct shard_override_decision *override; /* what the command publishes, NULL: nothing */
	int64_t at_ms;                                  /* sending time, after the reduction */
	int64_t ahead_ms;                               /* by how much the sending time was reduced */
	const uint8_t *source;                          /* the sender: WEIR_SOURCE_ID_BYTES; zeros in control records */
};

/** @param registry  borrowed @param version  the policy in force at first */
struct lane *lane_new(const struct shard_options *options, struct policy_registry *registry, uint64_t version);
void lane_free(struct lane *lane);

/**
 * Restores the state of a checkpoint, without segments: shard_set_stored() says which the store has. Called before the
 * first message.
 *
 * @param state  from the store's take(); checkpoint 0 is an empty lane
 */
WEIR_MUST_USE enum weir_status lane_restore(struct lane *lane, const struct weir_partition_state *state,
                                            struct weir_error *error);

/**
 * Takes the next message. Messages below next_offset are skipped (WEIR_OK with an empty result).
 *
 * @param message      borrowed until this call or, after WEIR_AGAIN, lane_go_on() is done with it
 * @param appended_ms  when the log took it, by the log's clock; 0: not known, and the sender's clock is trusted
 * @return WEIR_OK; WEIR_AGAIN: the segments of lane_missing() must be loaded (if none: it is a policy that the registry
 *         does not have, but the store may), then call lane_go_on(); WEIR_INVALID: not a frame, or a command or policy
 *         that cannot be applied: it is skipped, and the caller counts it; WEIR_NEWER: a newer weir wrote it: nothing
 *         was taken, and the partition must wait
 */
WEIR_MUST_USE enum weir_status lane_offer(struct lane *lane, struct weir_span message, uint64_t offset,
                                          int64_t appended_ms, struct lane_result *result, struct weir_error *error);

/** Tries the waiting message again, after loading. @return as lane_offer() */
WEIR_MUST_USE enum weir_status lane_go_on(struct lane *lane, struct lane_result *result, struct weir_error *error);

/**
 * Whether the waiting message is a policy that the store may have and the registry lacks. Policies are in the log in
 * order and without gaps; so one whose predecessor is unknown, or whose text is not a policy, is not in the store
 * either.
 */
bool lane_awaits_policy(const struct lane *lane);
/** The version of the policy that is awaited; 0: none is. */
uint64_t lane_awaited_policy(const struct lane *lane);

/** Says that the waiting message was moved: `copy` has the same bytes, and is borrowed instead. */
void lane_keep_message(struct lane *lane, struct weir_span copy);

/** The segments that the waiting message needs. */
const uint32_t *lane_missing(const struct lane *lane, uint32_t *count);

/** Fills in the partition's row for a cut at this moment. state->extra is appended to `extra`, and borrowed from it. */
void lane_state(const struct lane *lane, struct weir_partition_state *state, struct weir_text *extra);

struct shard *lane_shard(struct lane *lane);
struct tally *lane_tally(struct lane *lane);
uint32_t lane_partition(const struct lane *lane);
uint64_t lane_next_offset(const struct lane *lane);
/** Which life of the topic it is in, and the last message taken. */
const struct lane_place *lane_place(const struct lane *lane);
uint64_t lane_policy_version(const struct lane *lane);
/** The compiled policy in force. */
const struct compiled_policy *lane_compiled_policy(const struct lane *lane);

#endif

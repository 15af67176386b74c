/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of one partition at a worker, from taking it to leaving it.
 *
 *   EMPTY ─► TAKING ─► LIVE ⇄ LOADING, HELD ─► HALTED          it receives messages
 *     ▲        │        │
 *     │        │        ├─► (FINISHING ─►) LEAVING ─► ANNOUNCING ─┐  with a last checkpoint
 *     │        │        └─────────────────────────────────────────┤  without one
 *     │        ▼                                                  ▼
 *     ├───── PARKED ◄────────── it cannot continue ───────────── RELEASING
 *     └───────────────────────────────────────────────────────────┘
 */
#ifndef LIMITER_PARTITION_STATE_H
#define LIMITER_PARTITION_STATE_H

#include <stdbool.h>

enum partition_state {
	PARTITION_EMPTY,      /* not this worker's */
	PARTITION_TAKING,     /* checkpoint I/O raises its epoch and reads its checkpoint */
	PARTITION_LIVE,       /* messages are judged as they come */
	PARTITION_LOADING,    /* a message waits for segments, or for a policy; those after it are queued */
	PARTITION_HELD,       /* messages wait until a checkpoint makes room, or is recent enough */
	PARTITION_HALTED,     /* a newer weir wrote the next message: nothing from there on is judged here */
	PARTITION_FINISHING,  /* must leave, but a message still waits for segments, or for a policy */
	PARTITION_LEAVING,    /* its last checkpoint is being stored */
	PARTITION_ANNOUNCING, /* the last checkpoint is stored, and the next owner is being told so */
	PARTITION_RELEASING,  /* only waiting for checkpoint I/O's outstanding answers */
	PARTITION_PARKED,     /* it has another owner, or an error that a person must fix; retried now and then */
	PARTITION_STATE_COUNT,
};

/** Whether one state may follow another; EMPTY is the first. */
bool partition_state_may_follow(enum partition_state from, enum partition_state to);

/** The only way to another state. Asserts that it may follow. */
void partition_state_set(enum partition_state *state, enum partition_state to);

/* ---- kinds of states ---- */

/** Whether it receives messages, though they may have to wait. */
bool partition_state_receives(enum partition_state state);
/** Whether its lane waits for segments, or for a policy, and so cannot be cut. */
bool partition_state_loads(enum partition_state state);
/** Whether it has a lane whose state may be checkpointed. */
bool partition_state_works(enum partition_state state);

#endif

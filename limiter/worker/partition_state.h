/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of one partition at a worker, from taking it to leaving it.
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
	PARTITION_LOADING,    /* a message waits for segments, or for a policy; those behind it are queued */
	PARTITION_HELD,       /* messages wait until a checkpoint makes room, or is young enough */
	PARTITION_HALTED,     /* a message that a newer weir wrote: nothing behind it is judged here */
	PARTITION_FINISHING,  /* is to leave; a message still waits for segments, or for a policy */
	PARTITION_LEAVING,    /* its last checkpoint is on its way */
	PARTITION_ANNOUNCING, /* that is stored, and the next owner is told so */
	PARTITION_RELEASING,  /* nothing more is done with it; answers of checkpoint I/O are waited for */
	PARTITION_PARKED,     /* it has another owner, or an error that a person must end; retried now and then */
	PARTITION_STATE_COUNT,
};

/** Whether one state may follow the other: EMPTY is the first. */
bool partition_state_may_follow(enum partition_state from, enum partition_state to);

/** The only way to another state. Asserts that it may follow. */
void partition_state_set(enum partition_state *state, enum partition_state to);

/* ---- kinds of states ---- */

/** It receives messages, though they may have to wait. */
bool partition_state_receives(enum partition_state state);
/** Its lane waits for segments, or for a policy: it cannot be cut. */
bool partition_state_loads(enum partition_state state);
/** Its lane is worth a checkpoint. */
bool partition_state_works(enum partition_state state);

#endif

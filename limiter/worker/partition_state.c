/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a partition as a table: what may follow what, and what is true in each. */
#include "limiter/worker/partition_state.h"

#include <assert.h>

#define FOLLOWS(state) (1U << PARTITION_##state)

/* By state: the states that may follow it. */
static const unsigned followers[PARTITION_STATE_COUNT] = {
	[PARTITION_EMPTY] = FOLLOWS(TAKING),
	[PARTITION_TAKING] = FOLLOWS(EMPTY) | FOLLOWS(LIVE) | FOLLOWS(PARKED),
	[PARTITION_LIVE] = FOLLOWS(LOADING) | FOLLOWS(HELD) | FOLLOWS(HALTED) | FOLLOWS(LEAVING) | FOLLOWS(RELEASING),
	[PARTITION_LOADING] = FOLLOWS(LIVE) | FOLLOWS(HELD) | FOLLOWS(HALTED) | FOLLOWS(FINISHING) | FOLLOWS(RELEASING),
	[PARTITION_HELD] = FOLLOWS(LIVE) | FOLLOWS(LOADING) | FOLLOWS(HALTED) | FOLLOWS(LEAVING) | FOLLOWS(RELEASING),
	[PARTITION_HALTED] = FOLLOWS(LEAVING) | FOLLOWS(RELEASING),
	[PARTITION_FINISHING] = FOLLOWS(LEAVING) | FOLLOWS(RELEASING),
	[PARTITION_LEAVING] = FOLLOWS(ANNOUNCING) | FOLLOWS(RELEASING),
	[PARTITION_ANNOUNCING] = FOLLOWS(RELEASING),
	[PARTITION_RELEASING] = FOLLOWS(EMPTY) | FOLLOWS(PARKED),
	[PARTITION_PARKED] = FOLLOWS(EMPTY),
};

bool partition_state_may_follow(enum partition_state from, enum partition_state to)
{
	return (followers[from] >> to & 1U) != 0;
}

void partition_state_set(enum partition_state *state, enum partition_state to)
{
	assert(partition_state_may_follow(*state, to));
	*state = to;
}

bool partition_state_receives(enum partition_state state)
{
	return state == PARTITION_LIVE || state == PARTITION_LOADING || state == PARTITION_HELD ||
	       state == PARTITION_HALTED;
}

bool partition_state_loads(enum partition_state state)
{
	return state == PARTITION_LOADING || state == PARTITION_FINISHING;
}

bool partition_state_works(enum partition_state state)
{
	return partition_state_receives(state) || state == PARTITION_FINISHING || state == PARTITION_LEAVING ||
	       state == PARTITION_ANNOUNCING;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who looks at what a --once run judges, beside its own outputs: `weir backtest`, `weir suggest`.
 */
#ifndef DEPLOY_WEIR_RUN_ONCE_WATCH_H
#define DEPLOY_WEIR_RUN_ONCE_WATCH_H

#include "limiter/lane/lane.h"

enum { ROUNDS_UNDER_WAY = 4 }; /* a round's place is below this */

struct summary;

struct once_watch {
	void *context;
	/**
	 * A frame of a round was judged; what is borrowed lasts until the call returns.
	 *
	 * @param place   of the round among those that are under way
	 * @param worker  below limiter.threads; a partition is always the same worker's
	 * @thread the worker
	 */
	void (*judged)(void *context, unsigned place, uint32_t worker, const struct lane *lane,
	               const struct lane_result *result);
	/**
	 * All of a round is judged; rounds come in their order, and their place is free afterwards.
	 *
	 * @return WEIR_OK; WEIR_AGAIN: a signal ended a wait; else the run fails
	 * @thread the one that reads
	 */
	enum weir_status (*written)(void *context, unsigned place, struct weir_error *error);
	/** All that was read is judged and written; it is told in place of the run's own summary. Borrowed. */
	void (*ended)(void *context, const struct summary *summary);
};

#endif

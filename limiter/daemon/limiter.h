/*
 * The limiter's process: the servers, the group's membership, the workers and
 * their keepers, in the order in which they start and end.
 */
#ifndef LIMITER_LIMITER_H
#define LIMITER_LIMITER_H

#include "common/daemon/daemon.h"

struct limiter;

/** @param daemon  borrowed until the process ends */
struct limiter *limiter_new(struct weir_daemon *daemon);

/** Pages about it, from now on: while it waits for its servers, too. */
const struct weir_daemon_pages *limiter_pages(struct limiter *limiter);

/**
 * Says on standard output whether it could start: servers, topics, schema. What is missing of topics and tables is made.
 *
 * @return the exit code
 */
enum weir_exit limiter_check(struct limiter *limiter);

/** Connects, waiting for servers that are not there yet. @return WEIR_END: asked to stop meanwhile */
WEIR_MUST_USE enum weir_status limiter_connect(struct limiter *limiter, struct weir_error *error);

/** Starts the threads and joins the group. */
WEIR_MUST_USE enum weir_status limiter_start(struct limiter *limiter, struct weir_error *error);

/** Works until a signal says to stop, or until a part has failed. */
void limiter_watch(struct limiter *limiter);

/**
 * Last checkpoints, then out of the group, each within a bound. The threads of servers' libraries are left as they are:
 * the process must end by _exit().
 *
 * @return whether all went well
 */
bool limiter_stop(struct limiter *limiter);

#endif

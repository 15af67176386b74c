/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the thread of a surface waits for: connections and listeners, a wish to be served again, and time. One epoll, which
 * is the surface's descriptor, has them all. Of one thread.
 */
#ifndef LIMITER_CHECK_LINK_LOOP_H
#define LIMITER_CHECK_LINK_LOOP_H

#include "limiter/check/link.h"

#include <sys/epoll.h>

enum { LINK_EVENTS = 256 };

struct link_loop {
	int epoll, wake, timer; /* the latter two are in the former */
	bool woken;
	int64_t tick_ms; /* 0: the timer is off */
	struct link_listeners listeners;
};

/** Opens one in zeroed memory. @return 0; errno: it can only be closed */
WEIR_MUST_USE int link_loop_open(struct link_loop *loop);
/** Closes it, and the listeners. */
void link_loop_close(struct link_loop *loop);

/** Makes the epoll readable until the next link_loop_wait(): there is more to do. */
void link_loop_wake(struct link_loop *loop);

/** Sets how often it is readable because of time; 0: never. */
void link_loop_tick(struct link_loop *loop, int64_t tick_ms);

/** Waits. @param events  room for LINK_EVENTS @return how many came */
int link_loop_wait(struct link_loop *loop, struct epoll_event *events, int timeout_ms);

enum link_event {
	LINK_EVENT_NONE, /* it was woken */
	LINK_EVENT_TIME,
	LINK_EVENT_LISTENER,   /* link_listener_of(event->data.u64) has connections */
	LINK_EVENT_CONNECTION, /* event->data.ptr is the connection that was added */
};

/** What an event is of. */
enum link_event link_event_of(struct link_loop *loop, const struct epoll_event *event);

/** Adds a connection, to be read. @param connection  even, for its events @return false: it cannot be waited for */
WEIR_MUST_USE bool link_loop_add(struct link_loop *loop, const struct link *link, void *connection);
/** What is waited for of a connection from now on. */
void link_loop_watch(struct link_loop *loop, const struct link *link, void *connection, bool in, bool out);

/** Whether an event says that a connection is of no use any more. @param watched_in  it was waited for to be read */
static inline bool link_event_ends(const struct epoll_event *event, bool watched_in)
{
	return (event->events & EPOLLERR) != 0 || ((event->events & EPOLLHUP) != 0 && !watched_in);
}

#endif

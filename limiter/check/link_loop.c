/* SPDX-License-Identifier: Apache-2.0 */
/* Events are told apart by data.u64: connections by their addresses, which are even, listeners by theirs and one. */
#include "limiter/check/link_loop.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* What is neither a connection nor a listener. */
#define WAKE UINT64_C(3)
#define TIMER UINT64_C(5)

static bool watch_own(struct link_loop *loop, int fd, uint64_t name)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = name};
	return fd >= 0 && epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

int link_loop_open(struct link_loop *loop)
{
	loop->wake = loop->timer = -1;
	loop->epoll = loop->listeners.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll >= 0)
		loop->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (loop->wake >= 0)
		loop->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	return watch_own(loop, loop->wake, WAKE) && watch_own(loop, loop->timer, TIMER) ? 0 : errno;
}

static void close_own(int fd)
{
	if (fd >= 0)
		close(fd);
}

void link_loop_close(struct link_loop *loop)
{
	link_listeners_close(&loop->listeners);
	close_own(loop->epoll);
	close_own(loop->wake);
	close_own(loop->timer);
}

void link_loop_wake(struct link_loop *loop)
{
	static const uint64_t one = 1;
	if (!loop->woken)
		loop->woken = write(loop->wake, &one, sizeof one) == (ssize_t)sizeof one;
}

void link_loop_tick(struct link_loop *loop, int64_t tick_ms)
{
	if (tick_ms == loop->tick_ms)
		return;
	const struct timespec time = {.tv_sec = tick_ms / 1000, .tv_nsec = tick_ms % 1000 * 1000000};
	const struct itimerspec timer = {.it_interval = time, .it_value = time};
	if (timerfd_settime(loop->timer, 0, &timer, NULL) == 0)
		loop->tick_ms = tick_ms;
}

int link_loop_wait(struct link_loop *loop, struct epoll_event *events, int timeout_ms)
{
	uint64_t passed;
	int count = epoll_wait(loop->epoll, events, LINK_EVENTS, timeout_ms);
	if (loop->woken)
		loop->woken = read(loop->wake, &passed, sizeof passed) < 0;
	return count;
}

enum link_event link_event_of(struct link_loop *loop, const struct epoll_event *event)
{
	uint64_t passed;
	if (event->data.u64 == WAKE)
		return LINK_EVENT_NONE; /* it was read before */
	if (event->data.u64 == TIMER) {
		(void)!read(loop->timer, &passed, sizeof passed);
		return LINK_EVENT_TIME;
	}
	return link_listener_of(event->data.u64) != NULL ? LINK_EVENT_LISTENER : LINK_EVENT_CONNECTION;
}

bool link_loop_add(struct link_loop *loop, const struct link *link, void *connection)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, link->fd, &event) == 0;
}

void link_loop_watch(struct link_loop *loop, const struct link *link, void *connection, bool in, bool out)
{
	struct epoll_event event = {.events = (in ? EPOLLIN : 0u) | (out ? EPOLLOUT : 0u), .data.ptr = connection};
	(void)epoll_ctl(loop->epoll, EPOLL_CTL_MOD, link->fd, &event);
}

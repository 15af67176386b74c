/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Being woken when files change: inotify on directories, and a timer.
 *
 * Nothing depends on inotify: it may be missing (network file systems), out of
 * watches, or overflow. The timer brings the next scan anyway.
 */
#include "collector/source/file/file_watch.h"

#include "common/base/alloc.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
	WATCH_NAMES = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF,
	WATCH_EVENTS = WATCH_NAMES | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_ONLYDIR,
	WATCH_READS_MAX = 16, /* of 16 KiB: a caller is not kept here by a busy directory */
};

struct watched {
	char *path;
	int id; /* -1: not watched just now */
};

struct file_watch {
	int epoll, notify, timer;    /* notify may be -1 */
	struct watched *directories; /* by path */
	size_t count;
	int64_t wake_ms; /* 0: none asked for */
};

static bool poll_too(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	return fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

struct file_watch *file_watch_new(void)
{
	struct file_watch *watch = weir_alloc(1, sizeof *watch);
	watch->epoll = epoll_create1(EPOLL_CLOEXEC);
	watch->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	watch->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watch->epoll < 0 || !poll_too(watch->epoll, watch->timer)) {
		file_watch_free(watch);
		return NULL;
	}
	if (watch->notify >= 0 && !poll_too(watch->epoll, watch->notify)) {
		close(watch->notify);
		watch->notify = -1;
	}
	return watch;
}

void file_watch_free(struct file_watch *watch)
{
	if (watch == NULL)
		return;
	for (size_t i = 0; i < watch->count; i++)
		free(watch->directories[i].path);
	free(watch->directories);
	int fds[] = {watch->notify, watch->timer, watch->epoll};
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(watch);
}

int file_watch_fd(const struct file_watch *watch)
{
	return watch->epoll;
}

static bool watched_by_another(const struct watched *list, size_t count, int id)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].id == id)
			return true;
	return false;
}

void file_watch_directories(struct file_watch *watch, char *const *directories, size_t count)
{
	struct watched *next = weir_alloc(count, sizeof *next);
	size_t before = 0;
	for (size_t i = 0; i < count; i++) {
		int order = -1;
		while (before < watch->count && (order = strcmp(watch->directories[before].path, directories[i])) < 0)
			before++;
		bool kept = before < watch->count && order == 0;
		next[i].path = weir_copy(directories[i], strlen(directories[i]));
		next[i].id = kept ? watch->directories[before].id : -1;
		/* Two paths of one directory have one id between them. */
		if (next[i].id < 0 && watch->notify >= 0)
			next[i].id = inotify_add_watch(watch->notify, directories[i], WATCH_EVENTS);
	}
	for (size_t i = 0; i < watch->count; i++) {
		struct watched *old = &watch->directories[i];
		if (old->id >= 0 && !watched_by_another(next, count, old->id))
			inotify_rm_watch(watch->notify, old->id);
		free(old->path);
	}
	free(watch->directories);
	watch->directories = next;
	watch->count = count;
}

void file_watch_wake(struct file_watch *watch, int64_t at_ms)
{
	if (watch->wake_ms != 0 && watch->wake_ms <= at_ms)
		return;
	watch->wake_ms = at_ms;
	/* A time of zero would disarm it. */
	struct itimerspec when = {.it_value = {.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000 + 1}};
	timerfd_settime(watch->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* One event, for every path of its directory. */
static void pass_on(struct file_watch *watch, const struct inotify_event *event,
                    void (*changed)(void *context, const char *directory, const char *name, bool names), void *context)
{
	if (event->mask & IN_Q_OVERFLOW) {
		changed(context, NULL, NULL, true);
		return;
	}
	for (size_t i = 0; i < watch->count; i++) {
		struct watched *watched = &watch->directories[i];
		if (watched->id != event->wd)
			continue;
		bool names = (event->mask & (WATCH_NAMES | IN_IGNORED | IN_UNMOUNT)) != 0;
		changed(context, watched->path, event->len > 0 ? event->name : NULL, names);
		/* The directory has gone, or has another name: what is at this path is looked for again. */
		if (event->mask & (IN_IGNORED | IN_MOVE_SELF))
			watched->id = -1;
	}
	if (event->mask & IN_MOVE_SELF)
		inotify_rm_watch(watch->notify, event->wd);
}

void file_watch_read(struct file_watch *watch, int64_t now_ms,
                     void (*changed)(void *context, const char *directory, const char *name, bool names), void *context)
{
	if (watch->wake_ms != 0 && now_ms >= watch->wake_ms) {
		uint64_t expirations;
		ssize_t ignored = read(watch->timer, &expirations, sizeof expirations);
		(void)ignored; /* EAGAIN where the timer is a moment behind: it wakes once for nothing */
		watch->wake_ms = 0;
	}
	if (watch->notify < 0)
		return;
	char buffer[16 << 10] __attribute__((aligned(__alignof__(struct inotify_event))));
	for (int i = 0; i < WATCH_READS_MAX; i++) {
		ssize_t length = read(watch->notify, buffer, sizeof buffer);
		if (length <= 0)
			return;
		for (const char *at = buffer; at < buffer + length;) {
			const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
			pass_on(watch, event, changed, context);
			at += sizeof *event + event->len;
		}
	}
}

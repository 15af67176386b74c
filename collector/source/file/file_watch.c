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
	struct watched **by_id;      /* the same by id: those that are not watched first */
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
	free(watch->by_id);
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

static int by_id(const void *a, const void *b)
{
	const struct watched *x = *(struct watched *const *)a, *y = *(struct watched *const *)b;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* The first of those that have an id, or would. */
static size_t first_with(const struct file_watch *watch, int id)
{
	size_t low = 0, high = watch->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (watch->by_id[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_watched(const struct file_watch *watch, int id)
{
	size_t place = first_with(watch, id);
	return place < watch->count && watch->by_id[place]->id == id;
}

static void sort_by_id(struct file_watch *watch)
{
	for (size_t i = 0; i < watch->count; i++)
		watch->by_id[i] = &watch->directories[i];
	if (watch->count > 1)
		qsort(watch->by_id, watch->count, sizeof(struct watched *), by_id);
}

bool file_watch_complete(const struct file_watch *watch)
{
	return watch->notify < 0 || watch->count == 0 || watch->by_id[0]->id >= 0;
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
	struct watched *old = watch->directories;
	size_t old_count = watch->count;
	watch->directories = next;
	watch->count = count;
	watch->by_id = weir_realloc(watch->by_id, count, sizeof(struct watched *));
	sort_by_id(watch);
	for (size_t i = 0; i < old_count; i++) {
		if (old[i].id >= 0 && !is_watched(watch, old[i].id))
			inotify_rm_watch(watch->notify, old[i].id);
		free(old[i].path);
	}
	free(old);
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
	bool gone = (event->mask & (IN_IGNORED | IN_MOVE_SELF)) != 0;
	for (size_t i = first_with(watch, event->wd); i < watch->count && watch->by_id[i]->id == event->wd; i++) {
		struct watched *watched = watch->by_id[i];
		bool names = (event->mask & (WATCH_NAMES | IN_IGNORED | IN_UNMOUNT)) != 0;
		changed(context, watched->path, event->len > 0 ? event->name : NULL, names);
	}
	/* The directory has gone, or has another name: what is at this path is looked for again. */
	for (size_t i = first_with(watch, event->wd); gone && i < watch->count && watch->by_id[i]->id == event->wd; i++)
		watch->by_id[i]->id = -1;
	if (gone)
		sort_by_id(watch);
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

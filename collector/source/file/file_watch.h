/* SPDX-License-Identifier: Apache-2.0 */
/* Being woken: inotify where it works, a timer where not. */
#ifndef COLLECTOR_SOURCE_FILE_WATCH_H
#define COLLECTOR_SOURCE_FILE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_watch;

/** NULL where the system has no such means; then a caller asks again and again. */
struct file_watch *file_watch_new(void);
void file_watch_free(struct file_watch *watch);
/** Pollable: readable when something has changed or a time has come. */
int file_watch_fd(const struct file_watch *watch);
/** The directories to hear of, instead of those before. Borrowed; sorted and without duplicates. */
void file_watch_directories(struct file_watch *watch, char *const *directories, size_t count);
/** Whether all of them are watched, or cannot be. */
bool file_watch_complete(const struct file_watch *watch);
/** Wakes at this time (monotonic ms), or at an earlier one that was asked for. */
void file_watch_wake(struct file_watch *watch, int64_t at_ms);
/**
 * Takes what has happened.
 *
 * @param changed  called for each: a file of the directory was written to (names = false), or came, went or was renamed
 *                 (names = true). name NULL: anything may have happened
 */
void file_watch_read(struct file_watch *watch, int64_t now_ms,
                     void (*changed)(void *context, const char *directory, const char *name, bool names),
                     void *context);

#endif

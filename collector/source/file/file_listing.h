/* SPDX-License-Identifier: Apache-2.0 */
/* Which files the patterns name, and what the last scan found there. */
#ifndef COLLECTOR_SOURCE_FILE_LISTING_H
#define COLLECTOR_SOURCE_FILE_LISTING_H

#include "collector/source/file/file_settings.h"

/* Where a file was seen by the last scan, and what it was: so that only changes are looked at. */
struct file_entry {
	char *path;
	uint32_t pattern; /* which named it first */
	bool linked;      /* a symbolic link lies there */
	uint64_t device, inode;
	uint64_t size;
	int64_t modified_ns;
	bool compressed;
	bool doubtful; /* by its name it may be a rotation: looked at again behind all others */
	bool judged;   /* it is known, or has become a stream: nothing to do until it changes */
};

/* Zero-initialised: nothing was listed yet. */
struct file_listing {
	struct file_entry *entries; /* by path bytes */
	size_t count;
	uint64_t changes; /* grows when a path comes or goes */
};

/** Lists anew; an entry whose path is listed again keeps what it holds. @param named  whether each pattern names any */
void file_listing_refresh(struct file_listing *listing, const struct file_settings *settings, bool *named);
/** The entry of a path that a pattern names: a new one where the last refresh did not find it. Moves the others. */
struct file_entry *file_listing_add(struct file_listing *listing, const char *path, uint32_t pattern);
void file_listing_deinit(struct file_listing *listing);

/**
 * Calls for each directory that a pattern's wildcards lead to and that cannot be looked into.
 *
 * @param call  path: what the pattern means within that directory; borrowed until it returns
 */
void file_listing_each_closed(const char *pattern, void (*call)(void *context, const char *path), void *context);

/**
 * Why nothing can be found by a pattern: the directory before its first wildcard that cannot be read, also for want of a
 * descriptor, of which glob() says nothing.
 *
 * @param text  set to it, for people
 * @return false: none is in the way
 */
bool file_listing_obstacle(const char *pattern, char *text, size_t bytes);

/** Whether a pattern is expanded: it has wildcards, and is not the path of a file as it stands. */
bool file_listing_expands(const char *pattern);

#endif

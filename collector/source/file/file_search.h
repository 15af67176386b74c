/* SPDX-License-Identifier: Apache-2.0 */
/* Where a known file has gone to, and which files were rotated away before they were seen. */
#ifndef COLLECTOR_SOURCE_FILE_SEARCH_H
#define COLLECTOR_SOURCE_FILE_SEARCH_H

#include "collector/source/file/file_identity.h"
#include "collector/source/file/file_shared.h"

/* Where a stream's files are looked for. Borrowed. */
struct file_route {
	const char *path;
	const char *real; /* where the path leads, if a link in it leads elsewhere; else NULL */
};

enum file_found {
	FOUND_NOWHERE,
	FOUND_NO_DIRECTORY, /* nowhere, with its directory */
	FOUND_UNKNOWN,      /* a directory or file cannot be read just now: the error says which */
	FOUND,
	FOUND_COPY,    /* under another inode: compressed, or copied */
	FOUND_SHORTER, /* its own file, but with fewer bytes than were read: cut, and otherwise the same */
};

struct file_finding {
	enum file_found found;
	char *path; /* returned, with the beginning's input, for FOUND, FOUND_COPY and FOUND_SHORTER; else NULL */
	struct file_beginning beginning; /* its input stands at the offset, but for FOUND_SHORTER */
};

/**
 * Finds a known file and opens it at an offset. One whose inode has other content by now, and that lies nowhere else,
 * has its inode taken from it.
 *
 * It is looked for at its stream's path, in that directory and the directories within it, where a link in the path leads,
 * where it was last seen, and in the directory that rotated files are moved to. Where the directory is gone, the one that
 * it lay in takes its place.
 *
 * @param copies_only  the file itself is not looked for
 * @param finding      the caller's to deinit
 */
void file_search_find(struct file_shared *shared, const struct file_route *route, struct source_memory_file *file,
                      uint64_t offset, bool copies_only, struct file_finding *finding, struct weir_error *error);
void file_finding_deinit(struct file_finding *finding);

/** Whether a search that found this is the last for a file: it was looked for in vain often enough. */
bool file_search_is_last(const struct source_memory_file *file, enum file_found found);

/*
 * Files beside a stream's path that were rotated away from it and never seen; and where its newest file was moved to,
 * those that were written after that. What a source names is none of them, unless it follows the stream's own file in a
 * row of rotations.
 */
struct file_missed {
	struct file_candidate oldest; /* path NULL: there is none; else the caller's to deinit */
	size_t count;
};

/** @return WEIR_OK; WEIR_IO: the directory cannot be read; WEIR_END: there is none */
WEIR_MUST_USE enum weir_status file_search_missed(struct file_shared *shared, const struct file_route *route,
                                                  const struct source_memory_stream *record, struct file_missed *missed,
                                                  struct weir_error *error);

/** Remembers the rotated files that are there when a stream begins, so that they are never taken for missed ones. */
void file_search_remember_rotated(struct file_shared *shared, const struct file_route *route,
                                  struct source_memory_stream *record);

/** How long ago a name came or went in the directory of a path: -1 where it cannot be told. */
int64_t file_search_directory_age_ms(const char *path);

/** Whether a file lies at a path, or one that was rotated away from it beside; true where it cannot be told. */
bool file_search_any_left(struct file_shared *shared, const char *path);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files a journal consists of, by their headers (https://systemd.io/JOURNAL_FILE_FORMAT).
 *
 * Entries are numbered under a seqnum id. On rotation a file is renamed from NAME.journal to NAME@..., and its
 * successor continues the numbers of the id. So files of one id and name follow one another by those numbers. The
 * system's and users' files have ids of their own or, from systemd 254 on, share one id and its numbers: then the
 * numbers between two entries of one name belong to entries of others.
 *
 * @thread one owner
 */
#ifndef COLLECTOR_JOURNAL_FILES_H
#define COLLECTOR_JOURNAL_FILES_H

#include "common/base/span.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JOURNAL_ID_BYTES = 16,
	JOURNAL_HEADER_BYTES = 208,
	JOURNAL_FILES_MAX = 16384,
	JOURNAL_FOLDERS_MAX = 1024, /* whose changes are seen at once; others' are seen within JOURNAL_RESCAN_MS */
	JOURNAL_RESCAN_MS = 30000,
};

struct journal_header {
	uint8_t id[JOURNAL_ID_BYTES];
	uint64_t head, tail; /* seqnums of its first and newest entry; the newest may still be being written */
	uint64_t entries;
	bool archived; /* nothing more is written to it */
};

struct journal_listed {
	char *path;
	uint64_t device, inode;
	struct journal_header header;
};

struct journal_files {
	char **directories; /* owned; some may not exist */
	size_t directory_count;
	bool below;                  /* also scan subdirectories whose names are machine ids */
	struct journal_listed *list; /* sorted by id, then by head; without files that have no entries */
	size_t count;
	uint32_t empty; /* files that had no entry yet */
	/* what the last scan saw, to tell whether another is due */
	char **folders; /* the directories and those below them that it listed; owned */
	size_t folder_count;
	int64_t changed_ns;
	int64_t scanned_ms; /* wall clock; 0: never */
	int64_t pause_ms;   /* until the next scan, if no change is seen */
	char problem[200];  /* what could not be read; "": nothing */
};

/** Reads a file's header. @return false: it is not one of a journal */
bool journal_header_parse(const uint8_t *bytes, size_t length, struct journal_header *header);

/** @param directory  NULL: the directories of the system's own journal */
void journal_files_init(struct journal_files *files, const char *directory);
void journal_files_deinit(struct journal_files *files);

/** The name of a file: "user-1000" for .../user-1000.journal and .../user-1000@....journal. */
struct weir_span journal_name(const char *path);

/** Whether a listed file has this id and this name. */
bool journal_is_of(const struct journal_listed *listed, const uint8_t *id, const char *name);

/** Lists the files again, if any may have been added or removed since. @return whether it did */
bool journal_files_scan(struct journal_files *files);

/**
 * Finds the first listed file of an id and name that has, or may still get, entries after a seqnum.
 *
 * @param kept  set to whether a file of this id and name still exists that begins at or before this seqnum
 * @return its index, or files->count
 */
size_t journal_files_after(const struct journal_files *files, const uint8_t *id, const char *name, uint64_t seqnum,
                           bool *kept);

#endif

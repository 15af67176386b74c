/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files a journal consists of, by their headers (https://systemd.io/JOURNAL_FILE_FORMAT).
 *
 * Entries are numbered under a seqnum id, of which a rotated file's successor continues counting; the rotated one is
 * renamed from NAME.journal to NAME@... . Files of one id and name follow one another by those numbers. The system's
 * and users' files have ids of their own, or, from systemd 254 on, share one with all its numbers: then what lies
 * between two entries of one name are those of others.
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

enum { JOURNAL_ID_BYTES = 16, JOURNAL_HEADER_BYTES = 208, JOURNAL_FILES_MAX = 16384 };

struct journal_header {
	uint8_t id[JOURNAL_ID_BYTES];
	uint64_t head, tail; /* seqnums of its first and newest entry; the newest may still be on its way */
	uint64_t entries;
	bool archived; /* nothing is written to it any more */
};

struct journal_listed {
	char *path;
	uint64_t device, inode;
	struct journal_header header;
};

struct journal_files {
	char **directories; /* owned; not all need be there */
	size_t directory_count;
	bool below;                  /* their subdirectories too, where they are named as machines are */
	struct journal_listed *list; /* by id, then by head; those without entries are left out */
	size_t count;
	uint32_t empty; /* files and directories that had no entry yet */
	/* what the newest scan saw, to tell whether another is due */
	int64_t changed_ns;
	int64_t scanned_ms; /* wall clock; 0: never */
	char problem[200];  /* "" or what could not be read */
};

/** Reads a header. False: it is none. */
bool journal_header_parse(const uint8_t *bytes, size_t length, struct journal_header *header);

/** @param directory  NULL: where the system's own journal is */
void journal_files_init(struct journal_files *files, const char *directory);
void journal_files_deinit(struct journal_files *files);

/** Of which name a file is: "user-1000" for .../user-1000.journal and .../user-1000@....journal. */
struct weir_span journal_name(const char *path);

/** Whether a listed file is one of an id and name. */
bool journal_is_of(const struct journal_listed *listed, const uint8_t *id, const char *name);

/** Lists the files again, if any may have come or gone since. @return whether the list is a new one */
bool journal_files_scan(struct journal_files *files);

/**
 * The first listed file of an id and name that has, or may be given, entries behind a seqnum: an index, or count.
 *
 * @param kept  set: whether the file that has the entry of this seqnum, or ends before it, is still there
 */
size_t journal_files_after(const struct journal_files *files, const uint8_t *id, const char *name, uint64_t seqnum,
                           bool *kept);

#endif

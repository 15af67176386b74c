/* SPDX-License-Identifier: Apache-2.0 */
/* Whose file lies at a path: a known one's, a copy of one, or a new one. */
#ifndef COLLECTOR_SOURCE_FILE_IDENTITY_H
#define COLLECTOR_SOURCE_FILE_IDENTITY_H

#include "collector/source/file/file_settings.h"
#include "collector/source/source_memory.h"

#include <sys/stat.h>

/* ---- names ---- */

/** A path's last part. */
const char *file_identity_base(const char *path);

/** Where a path leads, if a link anywhere in it leads elsewhere; returned. NULL: it leads nowhere else, or to nothing. */
char *file_identity_real(const char *path);

enum file_rotated {
	FILE_ROTATED_NOT = 0,
	FILE_ROTATED,       /* base.1, base-20240131.gz, base.old, base.gz and the like */
	FILE_ROTATED_MAYBE, /* stem-1.ext: or another log of the same kind */
};

/** Whether a name is that of a file rotated away from base. */
enum file_rotated file_identity_rotated(const char *base, const char *name);

/** How long the part of base is that every name rotated away from it begins with. */
size_t file_identity_stem(const char *base);

/**
 * Whether a file of this name came after one that was rotated away from base and is called `known` by now: in the same
 * row of numbers or dates. So it is a rotation too, whoever else names it.
 */
bool file_identity_follows(const char *base, const char *known, const char *name);

/**
 * Calls for each path that this one may be rotated away from: "a/x.log.2" for "a/x.log", and "a/x-2.log" too.
 *
 * @return what the first call returned that was not NULL, or NULL
 */
void *file_identity_each_base(const char *path, void *(*call)(void *context, const char *base), void *context);

/* ---- a file that is there ---- */

int64_t file_identity_modified_ns(const struct stat *about);
bool file_identity_has_inode(const struct source_memory_file *file, const struct stat *about);

/** How many of the first bytes a file is known by: zeros at their end may be room that is yet to be written. */
size_t file_identity_head(const char *head, size_t length);

/**
 * Whether what has a known file's inode may be that file. Of one of which no byte is known, as it was empty, the inode
 * alone says little: another file may have got it, unless it is open. Then its name must say so too.
 */
bool file_identity_may_be(const struct source_memory_file *file, const char *path);

/* What opening a path gives: its input, after its first bytes. */
struct file_beginning {
	struct input *input; /* returned */
	struct stat about;
	char head[FINGERPRINT_HEAD_BYTES];
	size_t length;
	bool cut;                       /* it is compressed, and its data ends within them */
	struct fingerprint fingerprint; /* of these bytes */
};

/** Whether a compressed file is cut so early that it cannot be told from a known one that was read further. */
bool file_beginning_short(const struct file_beginning *beginning, const struct source_memory_file *file);

enum file_opening { FILE_OPENING_DONE, FILE_OPENING_ABSENT, FILE_OPENING_FAILED };

/** @param fd  taken */
enum file_opening file_identity_open_fd(int fd, const char *path, bool growing, struct file_beginning *beginning,
                                        struct weir_error *error);
enum file_opening file_identity_open(const char *path, bool growing, struct file_beginning *beginning,
                                     struct weir_error *error);

/* ---- whose it is ---- */

enum file_verdict {
	FILE_NEW,
	FILE_KNOWN,      /* by device and inode, and it begins as it did */
	FILE_COPY,       /* it holds a known one's lines: compressed, or copied under a rotated name or to the same path */
	FILE_UNREADABLE, /* cannot be told just now */
	FILE_ABSENT,
};

struct file_judgement {
	enum file_verdict verdict;
	struct source_memory_stream *stream; /* of FILE_KNOWN and FILE_COPY */
	struct source_memory_file *file;
	struct stat about;
	enum input_kind kind;
	struct fingerprint fingerprint; /* its head */
};

/**
 * A known file that lies there is marked as seen.
 *
 * @param record  NULL, or the stream that it is looked at for: it may be a copy of a file of that, whatever its path
 */
void file_identity_judge(const struct file_settings *settings, const struct source_memory *memory, const char *path,
                         const struct source_memory_stream *record, struct file_judgement *judgement,
                         struct weir_error *error);

bool file_judgement_compressed(const struct file_judgement *judgement);

/** Whether a new file can be begun: it is not empty, and if compressed no longer written to. */
bool file_judgement_ready(const struct file_judgement *judgement, const struct file_settings *settings);

/* A new file that may be begun. */
struct file_candidate {
	char *path; /* owned */
	uint64_t device, inode, size;
	uint64_t from; /* where what was not read before begins */
	int64_t modified_ns;
	bool compressed;
	bool ready; /* see file_judgement_ready() */
	struct fingerprint fingerprint;
};

void file_candidate_init(struct file_candidate *candidate, const char *path, const struct file_judgement *judgement);
void file_candidate_deinit(struct file_candidate *candidate);
/** Writes down which file it is. */
void file_candidate_remember(const struct file_candidate *candidate, struct source_memory *memory,
                             struct source_memory_file *file);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What is configured of a file source, and its times. */
#ifndef COLLECTOR_SOURCE_FILE_SETTINGS_H
#define COLLECTOR_SOURCE_FILE_SETTINGS_H

#include "collector/source/source.h"

/* In ms; tests make them shorter. */
struct file_timing {
	int64_t poll;        /* between scans, whatever inotify says */
	int64_t quiet;       /* a rotated file had no new line for so long before its successor begins ... */
	int64_t patience;    /* ... but after this long with lines in the successor it begins all the same */
	int64_t rest;        /* a directory has not changed for so long before it is read for successors, within patience */
	int64_t grace;       /* how long a file left behind is watched for late lines after its last */
	int64_t idle;        /* a followed file without new lines is closed after this */
	int64_t complete;    /* a compressed file is read once it has not changed for so long */
	int64_t retry_least; /* after a failure; doubled up to retry_most */
	int64_t retry_most;
};

struct file_settings {
	char **patterns;
	size_t pattern_count;
	char **excluded;      /* globs of what is not read, though a pattern names it */
	char **excluded_real; /* of those with a slash, where their directories lead; of the others NULL */
	size_t excluded_count;
	char *olddir; /* where rotated files are moved: with its slash; NULL: that is not known */
	bool follow;
	bool forgets; /* as in the context */
	enum source_at_start start;
	size_t line_max;
	struct file_timing timing;
};

/* Of the configuration. */
extern const struct weir_json_rule file_members[];

/** Fills the settings; what it has filled is the caller's to deinit, after a failure too. */
WEIR_MUST_USE enum weir_status file_settings_init(struct file_settings *settings, const struct weir_json *config,
                                                  const struct source_context *context, struct weir_error *error);
void file_settings_deinit(struct file_settings *settings);

/** Whether a path is left out, whatever names it: by its text, or where it leads. */
bool file_settings_excludes(const struct file_settings *settings, const char *path);

/** Whether a pattern names a path without links, however its own directory is spelled. */
bool file_settings_would_read(const struct file_settings *settings, const char *path);

/** Which of the patterns names a path: its place, or -1. */
int file_settings_pattern(const struct file_settings *settings, const char *path);

#endif

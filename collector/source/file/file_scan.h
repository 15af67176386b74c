/* SPDX-License-Identifier: Apache-2.0 */
/* Looking for files. */
#ifndef COLLECTOR_SOURCE_FILE_SCAN_H
#define COLLECTOR_SOURCE_FILE_SCAN_H

#include "collector/source/file/file_source.h"

/** Looks for files: new ones become logs, logs whose files changed are woken. Says when the next look is due. */
void file_scan(struct file_source *source, int64_t now_ms);

/** What belongs to a scan is over: says when the next is due, by how long it took. */
void file_scan_end(struct file_source *source, int64_t began_ms);

/**
 * Looks at one path that has changed, if a pattern names it.
 *
 * @return false: what is there can only be told by a look at all of them
 */
bool file_scan_path(struct file_source *source, const char *path, int64_t now_ms);

#endif

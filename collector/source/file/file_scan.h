/* SPDX-License-Identifier: Apache-2.0 */
/* Looking for files. */
#ifndef COLLECTOR_SOURCE_FILE_SCAN_H
#define COLLECTOR_SOURCE_FILE_SCAN_H

#include "collector/source/file/file_source.h"

/** Looks for files: new ones become logs, logs whose files changed are woken. Says when the next look is due. */
void file_scan(struct file_source *source, int64_t now_ms);

#endif

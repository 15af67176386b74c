/* SPDX-License-Identifier: Apache-2.0 */
/* Files that other programs write and rotate, as a source. */
#ifndef COLLECTOR_SOURCE_FILE_H
#define COLLECTOR_SOURCE_FILE_H

#include "collector/source/source.h"

/*
 * { "type": "file", "path": "/var/log/nginx/access*.log", "follow": true, "start": "beginning" }: a stream for each file
 * that a path or pattern names, which continues in whatever its writer rotates it to.
 */
extern const struct source_ops source_file_ops;

#endif

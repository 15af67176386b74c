/* Files that other programs write and rotate, as a source. */
#ifndef COLLECTOR_SOURCE_FILE_H
#define COLLECTOR_SOURCE_FILE_H

#include "collector/source/source.h"

/**
 * { "type": "file", "path": "/var/log/nginx/access*.log", "follow": true, "start": "beginning" }: a stream for each file
 * that a path or pattern names, which goes on in whatever its writer rotates it to.
 */
WEIR_MUST_USE enum weir_status source_file_new(const struct weir_json *config, const struct source_context *context,
                                               struct source **source, struct weir_error *error);

#endif

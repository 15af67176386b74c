/* The kinds of source that there are: a new one is a line in source_kinds.c. */
#ifndef COLLECTOR_SOURCE_KINDS_H
#define COLLECTOR_SOURCE_KINDS_H

#include "collector/source/source.h"

/** Creates a source from one element of "sources" by its "type" ("file", "stdin", "syslog", "journal", "kafka"). */
WEIR_MUST_USE enum weir_status source_new(const struct weir_json *config, const struct source_context *context,
                                          struct source **source, struct weir_error *error);

/**
 * Whether a source may stand beside those before it in "sources": two that give the same messages under the same ids
 * may not.
 *
 * @param place  its index in the list
 * @return WEIR_OK; WEIR_INVALID with words
 */
WEIR_MUST_USE enum weir_status source_apart(const struct weir_json *sources, size_t place, struct weir_error *error);

#endif

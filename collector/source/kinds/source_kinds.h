/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of source kinds.
 *
 * A new one is a folder with its struct source_ops (source.h), a line in the list of source_kinds.c beside the include
 * of its header, a row in tests/unit/test_architecture, a test, and a table of its members in formats.md. Nothing else
 * knows which kinds there are: who needs to know something of a kind asks its struct source_ops.
 */
#ifndef COLLECTOR_SOURCE_KINDS_H
#define COLLECTOR_SOURCE_KINDS_H

#include "collector/source/source.h"

/** All of them. */
const struct source_ops *const *source_kinds(size_t *count);

/** What an element of "sources" may be (common/json/json_shape.h); it names "format". */
json_t *source_shape(void);

/** The kind that an element of "sources" names as its "type"; NULL: there is no such kind. */
const struct source_ops *source_kind(const struct weir_json *config);

/** What zones call the source of an element of "sources": its "name", or its kind's own; borrowed. NULL: nothing. */
const char *source_zones_name(const struct weir_json *config);

/** Creates a source of that kind, and tells what is dangerous in its configuration. @return WEIR_OK; WEIR_INVALID with words; WEIR_IO: it cannot be opened */
WEIR_MUST_USE enum weir_status source_new(const struct weir_json *config, const struct source_context *context,
                                          struct source **source, struct weir_error *error);

/**
 * Whether a source may stand beside those before it in "sources": each kind says of two of its own which may not.
 *
 * @param place  its index in the list
 * @return WEIR_OK; WEIR_INVALID with words
 */
WEIR_MUST_USE enum weir_status source_apart(const struct weir_json *sources, size_t place, struct weir_error *error);

#endif

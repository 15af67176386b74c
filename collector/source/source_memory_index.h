/* SPDX-License-Identifier: Apache-2.0 */
/* Which stream has a path, and which files have an inode: a scan asks for each of many files. */
#ifndef COLLECTOR_SOURCE_MEMORY_INDEX_H
#define COLLECTOR_SOURCE_MEMORY_INDEX_H

#include "collector/source/source_memory.h"

struct source_memory_index;

struct source_memory_index *source_memory_index_new(void);
/** NULL is fine. */
void source_memory_index_free(struct source_memory_index *index);

void source_memory_index_add_stream(struct source_memory_index *index, struct source_memory_stream *stream);
void source_memory_index_remove_stream(struct source_memory_index *index, struct source_memory_stream *stream);

/** A file without an inode is in no index. */
void source_memory_index_add_file(struct source_memory_index *index, struct source_memory_file *file);
void source_memory_index_remove_file(struct source_memory_index *index, struct source_memory_file *file);

#endif

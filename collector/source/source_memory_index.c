/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two hash tables with chains through what they hold. The number of chains
 * follows the number of streams, so a chain is short; a stream has few files
 * that have an inode.
 */
#include "collector/source/source_memory_index.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"

#include <stdlib.h>
#include <string.h>

enum { CHAINS_LEAST = 64 };

struct source_memory_index {
	size_t chains; /* of each table: a power of 2 */
	struct source_memory_stream **streams;
	struct source_memory_file **files;
	size_t stream_count, file_count;
};

struct source_memory_index *source_memory_index_new(void)
{
	struct source_memory_index *index = weir_alloc(1, sizeof *index);
	index->chains = CHAINS_LEAST;
	index->streams = weir_alloc(index->chains, sizeof *index->streams);
	index->files = weir_alloc(index->chains, sizeof *index->files);
	return index;
}

void source_memory_index_free(struct source_memory_index *index)
{
	if (index == NULL)
		return;
	free(index->streams);
	free(index->files);
	free(index);
}

static size_t chain_of_path(const struct source_memory_index *index, const char *path)
{
	return (size_t)weir_hash64(path, strlen(path)) & (index->chains - 1);
}

static size_t chain_of_inode(const struct source_memory_index *index, uint64_t device, uint64_t inode)
{
	const uint64_t key[] = {device, inode};
	return (size_t)weir_hash64(key, sizeof key) & (index->chains - 1);
}

static void link_stream(struct source_memory_index *index, struct source_memory_stream *stream)
{
	struct source_memory_stream **chain = &index->streams[chain_of_path(index, stream->path)];
	stream->next_alike = *chain;
	*chain = stream;
}

static void link_file(struct source_memory_index *index, struct source_memory_file *file)
{
	struct source_memory_file **chain = &index->files[chain_of_inode(index, file->device, file->inode)];
	file->next_alike = *chain;
	*chain = file;
}

/* Four times as many chains, once there are as many things as chains. */
static void grow(struct source_memory_index *index)
{
	if (index->stream_count < index->chains && index->file_count < index->chains)
		return;
	struct source_memory_index before = *index;
	index->chains *= 4;
	index->streams = weir_alloc(index->chains, sizeof *index->streams);
	index->files = weir_alloc(index->chains, sizeof *index->files);
	for (size_t i = 0; i < before.chains; i++) {
		for (struct source_memory_stream *stream = before.streams[i], *next; stream != NULL; stream = next) {
			next = stream->next_alike;
			link_stream(index, stream);
		}
		for (struct source_memory_file *file = before.files[i], *next; file != NULL; file = next) {
			next = file->next_alike;
			link_file(index, file);
		}
	}
	free(before.streams);
	free(before.files);
}

void source_memory_index_add_stream(struct source_memory_index *index, struct source_memory_stream *stream)
{
	index->stream_count++;
	grow(index);
	link_stream(index, stream);
}

void source_memory_index_remove_stream(struct source_memory_index *index, struct source_memory_stream *stream)
{
	struct source_memory_stream **at = &index->streams[chain_of_path(index, stream->path)];
	while (*at != NULL && *at != stream)
		at = &(*at)->next_alike;
	if (*at == NULL)
		return;
	*at = stream->next_alike;
	index->stream_count--;
}

void source_memory_index_add_file(struct source_memory_index *index, struct source_memory_file *file)
{
	if (file->device == 0 && file->inode == 0)
		return;
	index->file_count++;
	grow(index);
	link_file(index, file);
}

void source_memory_index_remove_file(struct source_memory_index *index, struct source_memory_file *file)
{
	if (file->device == 0 && file->inode == 0)
		return;
	struct source_memory_file **at = &index->files[chain_of_inode(index, file->device, file->inode)];
	while (*at != NULL && *at != file)
		at = &(*at)->next_alike;
	if (*at == NULL)
		return;
	*at = file->next_alike;
	index->file_count--;
}

struct source_memory_stream *source_memory_find(const struct source_memory *memory, const char *path)
{
	struct source_memory_stream *stream = memory->index->streams[chain_of_path(memory->index, path)];
	while (stream != NULL && strcmp(stream->path, path) != 0)
		stream = stream->next_alike;
	return stream;
}

static struct source_memory_file *with_inode(struct source_memory_file *file, uint64_t device, uint64_t inode)
{
	while (file != NULL && (file->device != device || file->inode != inode))
		file = file->next_alike;
	return file;
}

struct source_memory_file *source_memory_file_with(const struct source_memory *memory, uint64_t device, uint64_t inode)
{
	return with_inode(memory->index->files[chain_of_inode(memory->index, device, inode)], device, inode);
}

struct source_memory_file *source_memory_file_next(const struct source_memory_file *file)
{
	return with_inode(file->next_alike, file->device, file->inode);
}

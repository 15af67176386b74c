/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory's file in the state directory. It is replaced as a whole, so that a
 * crash leaves the old one or the new one. Making sure that it is on disk takes a
 * tenth of a second if the disk is busy, so there is a thread for it.
 */
#include "collector/source/source_memory.h"

#include "common/base/alloc.h"
#include "common/files/durable_file.h"
#include "common/files/file_damage.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_MAX_BYTES = 64 << 20 }; /* a source of remote objects may have half of it */

enum weir_status source_memory_look(const char *directory, struct source_memory **memory, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES], *text = NULL;
	size_t length;
	*memory = NULL;
	enum weir_status status = weir_path_format(path, error, "%s/sources.json", directory);
	if (status == WEIR_OK)
		status = weir_durable_read(path, MEMORY_MAX_BYTES, &text, &length, error);
	if (status == WEIR_OK && text != NULL)
		status = source_memory_import(path, text, length, memory, error);
	free(text);
	if (status == WEIR_INVALID && error != NULL)
		(void)weir_damage_move(
			error, path, "weir reads its sources from their beginning again, and lines that were counted count again");
	return status;
}

enum weir_status source_memory_open(const char *directory, struct source_memory **memory, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	struct source_memory *opened;
	enum weir_status status = weir_path_format(path, error, "%s/sources.json", directory);
	if (status == WEIR_OK)
		status = source_memory_look(directory, &opened, error);
	if (status != WEIR_OK)
		return status;
	if (opened == NULL)
		opened = source_memory_new(NULL);
	opened->path = weir_copy(path, strlen(path));
	status = source_memory_save(opened, error);
	if (status != WEIR_OK) {
		source_memory_free(opened);
		return status;
	}
	*memory = opened;
	return WEIR_OK;
}

/* ---- writing ---- */

/* What a write needs. The writing thread reads nothing else. */
struct source_memory_writer {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	const char *path;
	char *text; /* NULL: there is nothing to write */
	size_t length;
	enum weir_status status;
	struct weir_error error;
	bool stop;
	uint64_t changes; /* memory->changes of the text; only the owner's thread uses it */
};

static enum weir_status write_text(const char *path, const char *text, size_t length, struct weir_error *error)
{
	if (length > MEMORY_MAX_BYTES)
		return weir_fail(error, WEIR_FULL, "the saved positions would exceed %d bytes", MEMORY_MAX_BYTES);
	return weir_durable_write(path, text, length, error);
}

static void *work(void *context)
{
	struct source_memory_writer *writer = context;
	pthread_mutex_lock(&writer->lock);
	while (writer->text != NULL || !writer->stop) {
		if (writer->text == NULL) {
			pthread_cond_wait(&writer->moved, &writer->lock);
			continue;
		}
		pthread_mutex_unlock(&writer->lock);
		enum weir_status status = write_text(writer->path, writer->text, writer->length, &writer->error);
		pthread_mutex_lock(&writer->lock);
		writer->status = status;
		free(writer->text);
		writer->text = NULL;
		pthread_cond_broadcast(&writer->moved);
	}
	pthread_mutex_unlock(&writer->lock);
	return NULL;
}

/* @return NULL: no thread could be started */
static struct source_memory_writer *writer_new(const char *path)
{
	struct source_memory_writer *writer = weir_alloc(1, sizeof *writer);
	writer->path = path;
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->moved, NULL);
	if (pthread_create(&writer->thread, NULL, work, writer) == 0)
		return writer;
	pthread_cond_destroy(&writer->moved);
	pthread_mutex_destroy(&writer->lock);
	free(writer);
	return NULL;
}

void source_memory_writer_free(struct source_memory_writer *writer)
{
	if (writer == NULL)
		return;
	pthread_mutex_lock(&writer->lock);
	writer->stop = true;
	pthread_cond_broadcast(&writer->moved);
	pthread_mutex_unlock(&writer->lock);
	pthread_join(writer->thread, NULL);
	pthread_cond_destroy(&writer->moved);
	pthread_mutex_destroy(&writer->lock);
	free(writer);
}

static bool is_saved(const struct source_memory *memory)
{
	return memory->path == NULL || memory->saved == memory->changes;
}

enum weir_status source_memory_save(struct source_memory *memory, struct weir_error *error)
{
	struct source_memory_writer *writer = memory->writer;
	if (writer != NULL) { /* an older text must not be written after this one */
		pthread_mutex_lock(&writer->lock);
		while (writer->text != NULL)
			pthread_cond_wait(&writer->moved, &writer->lock);
		pthread_mutex_unlock(&writer->lock);
	}
	if (is_saved(memory))
		return WEIR_OK;
	size_t length;
	char *text = source_memory_export(memory, &length);
	enum weir_status status = write_text(memory->path, text, length, error);
	free(text);
	if (status == WEIR_OK)
		memory->saved = memory->changes;
	return status;
}

enum weir_status source_memory_save_begin(struct source_memory *memory, struct weir_error *error)
{
	if (is_saved(memory))
		return WEIR_OK;
	if (memory->writer == NULL)
		memory->writer = writer_new(memory->path);
	struct source_memory_writer *writer = memory->writer;
	if (writer == NULL)
		return source_memory_save(memory, error);
	size_t length;
	char *text = source_memory_export(memory, &length);
	writer->changes = memory->changes;
	pthread_mutex_lock(&writer->lock);
	writer->text = text;
	writer->length = length;
	pthread_cond_broadcast(&writer->moved);
	pthread_mutex_unlock(&writer->lock);
	return WEIR_AGAIN;
}

enum weir_status source_memory_save_end(struct source_memory *memory, struct weir_error *error)
{
	struct source_memory_writer *writer = memory->writer;
	pthread_mutex_lock(&writer->lock);
	enum weir_status status = writer->text == NULL ? writer->status : WEIR_AGAIN;
	pthread_mutex_unlock(&writer->lock);
	if (status == WEIR_OK && memory->saved < writer->changes)
		memory->saved = writer->changes;
	else if (status != WEIR_OK && status != WEIR_AGAIN)
		*error = writer->error;
	return status;
}

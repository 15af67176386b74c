/*
 * The memory's file in the state directory: replaced whole, so that a crash
 * leaves the old one or the new one.
 */
#include "collector/source_memory.h"

#include "common/alloc.h"
#include "common/durable_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_MAX_BYTES = 16 << 20 };

enum weir_status source_memory_open(const char *directory, struct source_memory **memory, struct weir_error *error)
{
	char path[PATH_MAX];
	int used = snprintf(path, sizeof path, "%s/sources.json", directory);
	if (used < 0 || (size_t)used >= sizeof path)
		return weir_fail(error, WEIR_IO, "the path is too long: %s", directory);
	char *text;
	size_t length;
	enum weir_status status = weir_durable_read(path, MEMORY_MAX_BYTES, &text, &length, error);
	if (status != WEIR_OK)
		return status;
	struct source_memory *opened = NULL;
	if (text != NULL)
		status = source_memory_import(path, text, length, &opened, error);
	else
		opened = source_memory_new(NULL);
	free(text);
	if (status != WEIR_OK)
		return status;
	opened->path = weir_copy(path, strlen(path));
	status = source_memory_save(opened, error);
	if (status != WEIR_OK) {
		source_memory_free(opened);
		return status;
	}
	*memory = opened;
	return WEIR_OK;
}

enum weir_status source_memory_save(struct source_memory *memory, struct weir_error *error)
{
	if (memory->path == NULL || memory->saved == memory->changes)
		return WEIR_OK;
	size_t length;
	char *text = source_memory_export(memory, &length);
	enum weir_status status = WEIR_OK;
	if (length > MEMORY_MAX_BYTES)
		status = weir_fail(error, WEIR_FULL, "the memory of files would have more than %d bytes", MEMORY_MAX_BYTES);
	else
		status = weir_durable_write(memory->path, text, length, error);
	free(text);
	if (status == WEIR_OK)
		memory->saved = memory->changes;
	return status;
}

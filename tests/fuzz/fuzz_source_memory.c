/* SPDX-License-Identifier: Apache-2.0 */
/* The saved memory of files: whatever lies in its place is refused, or is read and written back the same. */
#include "collector/source/source_memory.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct source_memory *read_memory(const char *text, size_t length)
{
	struct weir_error error;
	struct source_memory *memory = NULL;
	return source_memory_import("fuzz", text, length, &memory, &error) == WEIR_OK ? memory : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source_memory *memory = read_memory((const char *)data, size);
	if (memory == NULL)
		return 0;
	size_t length, length_again;
	char *text = source_memory_export(memory, &length);
	struct source_memory *again = read_memory(text, length);
	if (again == NULL)
		abort();
	char *text_again = source_memory_export(again, &length_again);
	if (length != length_again || memcmp(text, text_again, length) != 0)
		abort();
	for (size_t i = 0; i < again->stream_count; i++) {
		struct source_memory_stream *stream = again->streams[i];
		source_memory_acknowledge(again, stream, stream->low_water + (UINT64_C(1) << 40));
		source_memory_forget(again, stream, INT64_C(2000000000));
	}
	free(text);
	free(text_again);
	source_memory_free(memory);
	source_memory_free(again);
	return 0;
}

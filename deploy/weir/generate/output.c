/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines gather in a buffer and leave it in one write, so that a reader who
 * follows the file sees whole lines, and a rotation between two writes takes
 * none apart.
 */
#include "deploy/weir/generate/output.h"

#include "common/base/alloc.h"
#include "common/files/durable_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *name_of(const struct generate_output *output)
{
	return output->path != NULL ? output->path : "standard output";
}

static enum weir_status open_file(struct generate_output *output, struct weir_error *error)
{
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (output->append ? O_APPEND : O_TRUNC);
	struct stat about;
	output->fd = output->path != NULL ? open(output->path, flags, 0644) : STDOUT_FILENO;
	if (output->fd < 0)
		return weir_fail(error, WEIR_IO, "cannot open %s: %s", name_of(output), weir_errno_words(errno));
	/* A file that has lines has its header. */
	if (output->path != NULL && fstat(output->fd, &about) == 0 && about.st_size > 0)
		return WEIR_OK;
	size_t length = strlen(output->header);
	memcpy(output->buffer, output->header, length);
	generate_output_take(output, output->buffer + length);
	return WEIR_OK;
}

enum weir_status generate_output_open(struct generate_output *output, const char *path, const char *header, bool append,
                                      struct weir_error *error)
{
	*output = (struct generate_output){.path = path, .header = header, .append = append};
	output->buffer = weir_alloc(1, GENERATE_OUTPUT_BUFFER_BYTES);
	enum weir_status status = open_file(output, error);
	if (status != WEIR_OK)
		free(output->buffer);
	return status;
}

enum weir_status generate_output_flush(struct generate_output *output, struct weir_error *error)
{
	size_t written;
	int failed = weir_write_all(output->fd, output->buffer, output->length, &written);
	int reason = errno;
	memmove(output->buffer, output->buffer + written, output->length - written);
	output->length -= written;
	if (failed == 0)
		return WEIR_OK;
	output->reader_gone = reason == EPIPE;
	return weir_fail(error, WEIR_IO, "cannot write to %s: %s", name_of(output), weir_errno_words(reason));
}

char *generate_output_room(struct generate_output *output, size_t most_bytes, struct weir_error *error)
{
	if (output->length + most_bytes > GENERATE_OUTPUT_BUFFER_BYTES && generate_output_flush(output, error) != WEIR_OK)
		return NULL;
	return output->buffer + output->length;
}

enum weir_status generate_output_reopen(struct generate_output *output, struct weir_error *error)
{
	if (output->path == NULL)
		return WEIR_OK;
	enum weir_status status = generate_output_flush(output, error);
	if (status != WEIR_OK)
		return status;
	close(output->fd);
	return open_file(output, error);
}

enum weir_status generate_output_close(struct generate_output *output, struct weir_error *error)
{
	enum weir_status status = generate_output_flush(output, error);
	if (output->path != NULL && output->fd >= 0 && close(output->fd) != 0 && status == WEIR_OK)
		status = weir_fail(error, WEIR_IO, "cannot write to %s: %s", output->path, weir_errno_words(errno));
	free(output->buffer);
	return status;
}

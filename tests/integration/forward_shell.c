/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the source `forward` makes of bytes, for scripts with an oracle.
 *
 * usage: forward_shell values|frames
 *
 *   values  reads MessagePack values from standard input, one after another, and prints each as a line of JSON
 *   frames  reads messages of the Forward protocol, and prints their lines; behind each message "." and its chunk
 *
 * Ends with 1, and words on standard error, at what cannot be read.
 */
#include "collector/source/push/forward/forward_lines.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_BYTES = 64 << 20, LINE_MAX_BYTES = 1 << 20, PART_BYTES = 1000 };

static enum weir_status print_value(const char *bytes, size_t length, struct weir_error *error)
{
	struct weir_text text = {0};
	struct msgpack from = msgpack_of(bytes, length);
	enum weir_status status = msgpack_json(&from, SIZE_MAX, &text);
	fwrite(text.at, 1, text.length, stdout);
	putchar('\n');
	weir_text_deinit(&text);
	return status == WEIR_OK ? status : weir_fail(error, status, "a value cannot be read");
}

/* In parts, as the source takes them. */
static enum weir_status print_frame(const char *bytes, size_t length, struct weir_error *error)
{
	static const struct forward_limits limits = {
		.line_max = LINE_MAX_BYTES, .entry_most = MOST_BYTES, .packed_most = MOST_BYTES};
	struct forward_frame frame;
	struct forward_lines lines;
	struct weir_text text = {0};
	enum weir_status status = forward_frame_read(bytes, length, &frame, error);
	if (status != WEIR_OK || frame.kind < FORWARD_MESSAGE)
		return status;
	forward_lines_init(&lines, &frame, &limits);
	while (status == WEIR_OK) {
		uint32_t count = 0;
		weir_text_clear(&text);
		status = forward_lines_next(&lines, PART_BYTES, 10, &text, &count, error);
		fwrite(text.at, 1, text.length, stdout);
	}
	printf(".%.*s\n", (int)frame.chunk.length, frame.chunk.length > 0 ? frame.chunk.at : "");
	forward_lines_deinit(&lines);
	weir_text_deinit(&text);
	return status == WEIR_END ? WEIR_OK : status;
}

int main(int count, char **arguments)
{
	if (count != 2)
		return 2;
	bool frames = strcmp(arguments[1], "frames") == 0;
	char *bytes = malloc(MOST_BYTES);
	size_t length = fread(bytes, 1, MOST_BYTES, stdin);
	enum weir_status status = WEIR_OK;
	struct weir_error error = {.text = "it is cut off"};
	for (size_t at = 0; at < length && status == WEIR_OK;) {
		struct msgpack_extent extent = {0};
		status = msgpack_measure(&extent, bytes + at, length - at, MOST_BYTES, &error);
		if (status == WEIR_OK)
			status = (frames ? print_frame : print_value)(bytes + at, extent.seen, &error);
		at += extent.seen;
	}
	if (status != WEIR_OK)
		fprintf(stderr, "%s\n", error.text);
	free(bytes);
	return status != WEIR_OK;
}

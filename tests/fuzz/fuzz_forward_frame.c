/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a message of the Forward protocol: its lines do not depend on the parts in which they are taken, each is
 * one object with the message's tag, and none is longer than a line may be by more than the byte that tells so.
 */
#include "collector/record/json_scan.h"
#include "collector/source/push/forward/forward_lines.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINE_MAX_BYTES = 2048, ENTRY_MOST = 1 << 16, PACKED_MOST = 1 << 20 };

static void check_lines(const struct weir_text *text, uint32_t count, const struct weir_text *head)
{
	struct json_scan scan;
	json_scan_init(&scan);
	(void)json_scan_want(&scan, "tag");
	for (size_t at = 0; at < text->length; count--) {
		const char *line = text->at + at, *end = memchr(line, '\n', text->length - at);
		require(end != NULL && count > 0);
		size_t length = (size_t)(end - line);
		require(length <= LINE_MAX_BYTES + 1);
		if (length <= LINE_MAX_BYTES) {
			require(json_scan_line(&scan, line, (uint32_t)length));
			require(memmem(line, length, head->at, head->length) != NULL);
		}
		at += length + 1;
	}
	require(count == 0);
	json_scan_deinit(&scan);
}

/* All lines, taken in parts of so many bytes. @return how it ended */
static enum weir_status take(const struct forward_frame *frame, size_t part, struct weir_text *all, bool check)
{
	static const struct forward_limits limits = {
		.line_max = LINE_MAX_BYTES, .entry_most = ENTRY_MOST, .packed_most = PACKED_MOST};
	struct forward_lines lines;
	struct weir_text text = {0};
	struct weir_error error;
	enum weir_status status = WEIR_OK;
	forward_lines_init(&lines, frame, &limits);
	while (status == WEIR_OK) {
		uint32_t count = 0;
		weir_text_clear(&text);
		status = forward_lines_next(&lines, part, 1 << 19, &text, &count, &error);
		if (check)
			check_lines(&text, count, &lines.head);
		if (text.length > 0)
			weir_text_append(all, text.at, text.length);
	}
	forward_lines_deinit(&lines);
	weir_text_deinit(&text);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct msgpack_extent extent = {0};
	struct forward_frame frame;
	struct weir_error error;
	if (msgpack_measure(&extent, data, size, size, &error) != WEIR_OK ||
	    forward_frame_read(data, extent.seen, &frame, &error) != WEIR_OK || frame.kind < FORWARD_MESSAGE)
		return 0;
	struct weir_text whole = {0}, parts = {0};
	enum weir_status status = take(&frame, SIZE_MAX, &whole, true);
	require(status == WEIR_END || status == WEIR_INVALID);
	require(take(&frame, 1, &parts, false) == status);
	require(whole.length == parts.length && (whole.length == 0 || memcmp(whole.at, parts.at, whole.length) == 0));
	weir_text_deinit(&whole);
	weir_text_deinit(&parts);
	return 0;
}

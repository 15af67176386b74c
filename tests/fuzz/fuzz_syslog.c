/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a connection sends: the messages do not depend on how the bytes come, and each becomes one line
 * whose head is whole, or stays as it is.
 */
#include "collector/record/syslog_header.h"
#include "collector/source/syslog/syslog_frames.h"
#include "collector/source/syslog/syslog_line.h"
#include "tests/fuzz/require.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINE_MAX_BYTES = 100 };

#define NOW_MS INT64_C(1709251200000) /* 2024-03-01 */

/* What came out, each message with its length and what was skipped. */
struct told {
	struct weir_text text;
	struct syslog_line *line; /* NULL: messages are not looked at */
};

static void check_parts(const struct syslog_header *header, struct weir_span line)
{
	const struct weir_span parts[] = {header->time,  header->host, header->app,    header->procid,
	                                  header->msgid, header->data, header->message};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		require(parts[i].at == NULL ||
		        (parts[i].at >= line.at && parts[i].at + parts[i].length <= line.at + line.length));
	struct weir_span data = header->data, id = {0};
	struct syslog_param param;
	size_t seen = 0;
	while (data.at != NULL && syslog_data_next(&data, &id, &param)) {
		char *out = malloc(param.value.length + 1);
		require(syslog_unescape(param.value, out) <= param.value.length);
		free(out);
		require(++seen <= line.length);
	}
}

/* A line that was made of a message: one line, with a head that says the same when it is made again. */
static void check_line(struct syslog_line *line, struct weir_span message)
{
	struct weir_text text = {0}, again = {0};
	char *copy = malloc(message.length + 1); /* of just its size: a read past it is seen */
	memcpy(copy, message.at, message.length);
	struct weir_span exact = {.at = copy, .length = message.length};
	struct syslog_header header;
	bool good = syslog_line_put(line, exact, NOW_MS, &text);
	if (text.length > 0) {
		require(memchr(text.at, '\n', text.length) == text.at + text.length - 1);
		struct weir_span made = {.at = text.at, .length = (uint32_t)text.length - 1};
		bool head = syslog_header_parse(made, &header);
		require(head || !good);
		if (head)
			check_parts(&header, made);
		require(!good || (header.modern && header.time.length > 0));
		if (good && made.length > 0 && made.at[made.length - 1] != '\r' && made.at[made.length - 1] != '\0') {
			require(syslog_line_put(line, made, NOW_MS, &again));
			require(again.length == text.length && memcmp(again.at, text.at, text.length) == 0);
		}
	}
	weir_text_deinit(&text);
	weir_text_deinit(&again);
	free(copy);
}

static void take_all(struct syslog_frames *frames, bool ended, struct told *told)
{
	struct syslog_frame frame;
	enum syslog_frame_status status;
	while ((status = syslog_frames_next(frames, ended, &frame)) != SYSLOG_FRAME_NONE) {
		require(frame.message.length <= LINE_MAX_BYTES);
		weir_text_printf(&told->text, "%d %u+%llu ", (int)status, frame.message.length,
		                 (unsigned long long)frame.skipped);
		weir_text_append(&told->text, frame.message.at, frame.message.length);
		if (told->line != NULL)
			check_line(told->line, frame.message);
	}
}

static void feed(const uint8_t *data, size_t size, unsigned seed, struct told *told)
{
	struct syslog_frames frames;
	syslog_frames_init(&frames, LINE_MAX_BYTES);
	for (size_t at = 0; at < size;) {
		size_t room, count = size;
		if (seed != 0) {
			seed = seed * 1103515245 + 12345;
			count = 1 + (seed >> 16) % 64;
		}
		char *to = syslog_frames_room(&frames, &room);
		require(room > 0);
		count = count < room ? count : room;
		count = count < size - at ? count : size - at;
		memcpy(to, data + at, count);
		syslog_frames_added(&frames, count);
		at += count;
		take_all(&frames, false, told);
	}
	take_all(&frames, true, told);
	require(syslog_frames_empty(&frames));
	syslog_frames_deinit(&frames);
}

/* The first byte says in which pieces the rest comes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct syslog_line line;
	struct time_zone *zone;
	struct weir_error error;
	require(time_zone_new("+01:00", &zone, &error) == WEIR_OK);
	syslog_line_init(&line, zone);
	struct told whole = {.line = &line}, pieces = {.line = NULL};
	feed(data + 1, size - 1, 0, &whole);
	feed(data + 1, size - 1, data[0] + 1U, &pieces);
	require(whole.text.length == pieces.text.length &&
	        (whole.text.length == 0 || memcmp(whole.text.at, pieces.text.at, whole.text.length) == 0));
	weir_text_deinit(&whole.text);
	weir_text_deinit(&pieces.text);
	syslog_line_deinit(&line);
	return 0;
}

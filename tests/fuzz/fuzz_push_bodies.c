/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the body of a pushed request: whatever a decoder takes becomes whole lines, JSON where it writes JSON, and
 * what is given back in pieces of a journal is what its whole gives. Packed bodies unpack within their bound, and lines
 * end at theirs.
 */
#include "collector/input/input_unpack.h"
#include "collector/source/push/decode/decode.h"
#include "common/json/json.h"
#include "tests/fuzz/require.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { UNPACKED_MOST_BYTES = 1 << 20, LINES_MOST_BYTES = 64 << 10 };

/* Each line is an object that can be read, but for bytes that no text has, which may stand as they are. */
static void check_objects(struct weir_text *lines)
{
	for (size_t i = 0; i < lines->length; i++)
		if ((unsigned char)lines->at[i] >= 0x80)
			lines->at[i] = '?';
	const char *at = lines->at, *end = lines->at + lines->length;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		json_t *object = json_loadb(at, (size_t)(newline - at), JSON_ALLOW_NUL, NULL);
		require(object != NULL);
		json_decref(object);
		at = newline + 1;
	}
}

static void check_journal_in_pieces(struct weir_span body, const struct weir_text *whole)
{
	struct weir_text lines = {0}, answer = {0};
	struct weir_error error;
	while (body.length > 0) {
		struct weir_span piece = {.at = body.at, .length = 1};
		while (piece.length < body.length && decode_journal_whole(piece) == 0)
			piece.length++;
		piece.length = (uint32_t)decode_journal_whole(piece);
		if (piece.length == 0) /* the last entry, without its empty line */
			piece.length = body.length;
		require(decode_journal(piece, SIZE_MAX, &lines, &answer, &error) == WEIR_OK);
		body.at += piece.length;
		body.length -= piece.length;
	}
	require(lines.length == whole->length && (lines.length == 0 || memcmp(lines.at, whole->at, lines.length) == 0));
	weir_text_deinit(&lines);
	weir_text_deinit(&answer);
}

static void decode(push_decode *how, struct weir_span body)
{
	struct weir_text lines = {0}, answer = {0};
	struct weir_error error;
	/* What passes the bound is one event: its own bytes, each at most six long in JSON, and what lies around it. */
	enum weir_status status = how(body, LINES_MOST_BYTES, &lines, &answer, &error);
	require(lines.length <= LINES_MOST_BYTES + 8 * (size_t)body.length + 256);
	require(answer.length <= 16 * (size_t)body.length + 256);
	if (status == WEIR_OK) {
		require(lines.length <= LINES_MOST_BYTES);
		require(lines.length == 0 || lines.at[lines.length - 1] == '\n');
		if (how == decode_journal && body.length <= 1024)
			check_journal_in_pieces(body, &lines);
		if (lines.length > 0 && (how == decode_otlp || how == decode_loki || how == decode_journal))
			check_objects(&lines);
		if (how == decode_bulk) {
			struct weir_text items = {0};
			weir_text_puts(&items, "[");
			weir_text_append(&items, answer.at, answer.length);
			weir_text_puts(&items, "]");
			json_t *list = json_loadb(items.at, items.length, JSON_ALLOW_NUL, NULL);
			require(list != NULL);
			json_decref(list);
			weir_text_deinit(&items);
		}
	}
	weir_text_deinit(&lines);
	weir_text_deinit(&answer);
}

static void unpack(enum input_kind kind, struct weir_span body)
{
	struct weir_text plain = {0};
	struct weir_error error;
	if (input_unpack(kind, body, UNPACKED_MOST_BYTES, &plain, &error) == WEIR_OK)
		require(plain.length <= UNPACKED_MOST_BYTES);
	weir_text_deinit(&plain);
}

/* The first byte says what the rest is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static push_decode *const decoders[] = {decode_lines, decode_json, decode_firehose, decode_otlp,
	                                        decode_loki,  decode_bulk, decode_journal};
	enum { DECODERS = sizeof decoders / sizeof decoders[0] };
	if (size == 0)
		return 0;
	char *copy = malloc(size - 1); /* of just its size: a read past it is seen */
	memcpy(copy, data + 1, size - 1);
	struct weir_span body = {.at = copy, .length = (uint32_t)size - 1};
	unsigned which = data[0] % (DECODERS + 2);
	if (which < DECODERS)
		decode(decoders[which], body);
	else
		unpack(which == DECODERS ? INPUT_GZIP : INPUT_ZSTD, body);
	free(copy);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits matter most: a log in the wrong format makes a dead letter of every
 * line, which must neither fill the disk nor slow down the good lines of other
 * sources.
 */
#include "collector/send/dead_letter.h"

#include "common/base/alloc.h"

#include <stdlib.h>

struct dead_letters {
	bool kept; /* there is a sink */
	struct dead_letter_sink sink;
	struct dead_letter_options options;
	int64_t second;            /* the current second, for the rate */
	int64_t written_in_second; /* how many came in that second */
	uint64_t written, dropped;
};

struct dead_letters *dead_letters_new(const struct dead_letter_sink *sink, const struct dead_letter_options *options)
{
	struct dead_letters *dead = weir_alloc(1, sizeof *dead);
	dead->kept = sink != NULL;
	if (sink != NULL)
		dead->sink = *sink;
	dead->options = *options;
	return dead;
}

void dead_letters_free(struct dead_letters *dead)
{
	free(dead);
}

/* Not by weir_json_writer, which takes 60 % longer: a log in the wrong format has a dead letter for every line. */
void dead_letter_json(struct weir_text *text, const char *source, uint64_t position, const char *reason,
                      struct weir_span line)
{
	struct weir_span kept = line;
	if (kept.length > DEAD_LETTER_TEXT_MAX_BYTES)
		kept.length = DEAD_LETTER_TEXT_MAX_BYTES;
	weir_text_puts(text, "{\"source\":");
	weir_text_json(text, weir_span_of(source));
	weir_text_puts(text, ",\"position\":");
	weir_text_uint(text, position);
	weir_text_puts(text, ",\"reason\":");
	weir_text_json(text, weir_span_of(reason));
	weir_text_puts(text, ",\"text\":");
	weir_text_json(text, kept);
	weir_text_puts(text, kept.length < line.length ? ",\"cut\":true}\n" : "}\n");
}

void dead_letters_drop(struct dead_letters *dead)
{
	dead->dropped++;
}

static bool within_rate(struct dead_letters *dead, int64_t now_ms)
{
	if (dead->options.rate_per_second == 0)
		return true;
	if (now_ms / 1000 != dead->second) {
		dead->second = now_ms / 1000;
		dead->written_in_second = 0;
	}
	return dead->written_in_second++ < dead->options.rate_per_second;
}

static bool fits(const struct dead_letters *dead, size_t length, int64_t now_ms)
{
	return dead->kept &&
	       dead->sink.held_bytes(dead->sink.context, now_ms) + length <= (uint64_t)dead->options.max_bytes;
}

void dead_letters_write(struct dead_letters *dead, struct weir_span dead_letters, int64_t now_ms)
{
	const char *at = dead_letters.at, *end = dead_letters.at + dead_letters.length;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *next = newline != NULL ? newline + 1 : end;
		struct weir_span dead_letter = {.at = at, .length = (uint32_t)(next - at)};
		if (fits(dead, dead_letter.length, now_ms) && within_rate(dead, now_ms) &&
		    dead->sink.put(dead->sink.context, dead_letter))
			dead->written++;
		else
			dead->dropped++;
		at = next;
	}
}

enum weir_status dead_letters_settle(struct dead_letters *dead, bool reopen, struct weir_error *error)
{
	return dead->kept ? dead->sink.settle(dead->sink.context, reopen, error) : WEIR_OK;
}

void dead_letters_lose(struct dead_letters *dead, uint64_t count)
{
	if (count > dead->written)
		count = dead->written;
	dead->written -= count;
	dead->dropped += count;
}

void dead_letters_restore(struct dead_letters *dead, uint64_t written, uint64_t dropped)
{
	dead->written = written;
	dead->dropped = dropped;
}

uint64_t dead_letters_written(const struct dead_letters *dead)
{
	return dead->written;
}

uint64_t dead_letters_dropped(const struct dead_letters *dead)
{
	return dead->dropped;
}

/* ---- a file as the sink ---- */

static uint64_t file_held(void *context, int64_t now_ms)
{
	(void)now_ms;
	return weir_line_file_mark(context).length;
}

static bool file_put(void *context, struct weir_span dead_letter)
{
	return weir_line_file_append(context, dead_letter) == WEIR_OK;
}

static enum weir_status file_settle(void *context, bool reopen, struct weir_error *error)
{
	return reopen ? weir_line_file_reopen(context, error) : weir_line_file_sync(context, error);
}

struct dead_letter_sink dead_letter_file(struct weir_line_file *file)
{
	return (struct dead_letter_sink){.context = file, .held_bytes = file_held, .put = file_put, .settle = file_settle};
}

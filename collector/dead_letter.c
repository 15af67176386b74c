/*
 * The caps come first: a log in the wrong format makes a letter of every line,
 * and must neither fill the disk nor slow the good lines of other sources.
 */
#include "collector/dead_letter.h"

#include "common/alloc.h"

#include <stdlib.h>

struct dead_letters {
	struct weir_line_file *file; /* borrowed, or NULL */
	struct dead_letter_options options;
	int64_t second;         /* that the rate is counted for */
	int64_t second_letters; /* written in it */
	uint64_t written, dropped;
};

struct dead_letters *dead_letters_new(struct weir_line_file *file, const struct dead_letter_options *options)
{
	struct dead_letters *dead = weir_alloc(1, sizeof *dead);
	dead->file = file;
	dead->options = *options;
	return dead;
}

void dead_letters_free(struct dead_letters *dead)
{
	free(dead);
}

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
	weir_text_puts(text, "}\n");
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
		dead->second_letters = 0;
	}
	return dead->second_letters++ < dead->options.rate_per_second;
}

static bool fits(const struct dead_letters *dead, size_t length)
{
	return dead->file != NULL && weir_line_file_mark(dead->file).length + length <= (uint64_t)dead->options.max_bytes;
}

void dead_letters_write(struct dead_letters *dead, struct weir_span letters, int64_t now_ms)
{
	const char *at = letters.at, *end = letters.at + letters.length;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *next = newline != NULL ? newline + 1 : end;
		size_t length = (size_t)(next - at);
		if (fits(dead, length) && within_rate(dead, now_ms) &&
		    weir_line_file_append(dead->file, (struct weir_span){at, (uint32_t)length}) == WEIR_OK)
			dead->written++;
		else
			dead->dropped++;
		at = next;
	}
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

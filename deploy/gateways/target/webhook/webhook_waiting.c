/* SPDX-License-Identifier: Apache-2.0 */
/* The times of lines stand apart from them, so that the lines are one text, as a message takes it. */
#include "deploy/gateways/target/webhook/webhook_waiting.h"

#include <string.h>

enum {
	MESSAGE_LINES = 20, /* Discord takes 2,000 characters, with a backslash before each at most */
	MESSAGE_BYTES = 950,
	MOST_BYTES = 64 << 10,
};

void webhook_waiting_deinit(struct webhook_waiting *waiting)
{
	weir_text_deinit(&waiting->lines);
	weir_text_deinit(&waiting->since);
}

struct weir_text *webhook_waiting_add(struct webhook_waiting *waiting, int64_t now_ms)
{
	if (waiting->lines.length >= MOST_BYTES) {
		waiting->left_out++;
		waiting->left_out_ms = now_ms;
		return NULL;
	}
	weir_text_append(&waiting->since, &now_ms, sizeof now_ms);
	return &waiting->lines;
}

/* How long the first lines are: at most so many, and so many bytes unless one alone has more. */
static size_t bytes_of(const struct webhook_waiting *waiting, size_t lines, size_t bytes, size_t *count)
{
	const char *at = waiting->lines.at, *end = at + waiting->lines.length;
	*count = 0;
	while (at < end && *count < lines) {
		const char *next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
		if (*count > 0 && (size_t)(next - waiting->lines.at) > bytes)
			break;
		at = next;
		++*count;
	}
	return (size_t)(at - waiting->lines.at);
}

struct weir_span webhook_waiting_message(const struct webhook_waiting *waiting, size_t *count)
{
	return (struct weir_span){waiting->lines.at, (uint32_t)bytes_of(waiting, MESSAGE_LINES, MESSAGE_BYTES, count)};
}

static void remove_first(struct weir_text *text, size_t bytes)
{
	text->length -= bytes;
	memmove(text->at, text->at + bytes, text->length);
}

void webhook_waiting_remove(struct webhook_waiting *waiting, size_t count)
{
	remove_first(&waiting->lines, bytes_of(waiting, count, waiting->lines.length, &count));
	remove_first(&waiting->since, count * sizeof(int64_t));
	if (waiting->lines.length > 0 || waiting->left_out == 0)
		return;
	weir_text_printf(webhook_waiting_add(waiting, waiting->left_out_ms), "and %llu more that found no room\n",
	                 (unsigned long long)waiting->left_out);
	waiting->left_out = 0;
}

size_t webhook_waiting_refused(struct webhook_waiting *waiting, int64_t now_ms, int64_t give_up_after_ms)
{
	int64_t old_ms = now_ms - give_up_after_ms, since_ms;
	size_t count = 0, lines = waiting->since.length / sizeof since_ms;
	if (waiting->refused_ms == 0)
		waiting->refused_ms = now_ms;
	for (; waiting->refused_ms <= old_ms && count < lines; count++) {
		memcpy(&since_ms, waiting->since.at + count * sizeof since_ms, sizeof since_ms);
		if (since_ms > old_ms)
			break;
	}
	if (count > 0)
		webhook_waiting_remove(waiting, count);
	return count;
}

void webhook_waiting_not_refused(struct webhook_waiting *waiting)
{
	waiting->refused_ms = 0;
}

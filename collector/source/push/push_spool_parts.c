/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches whose giver waits for them, and those with an id that are longer than a batch may be: they are stored in parts,
 * one after another.
 *
 * Each part has an id of its own, made of the batch's and the part's number, and the hash of the whole. So when the batch
 * comes again after only some parts were stored, the missing ones alone are; and where it comes with other lines, its first
 * part says so, and nothing is stored. Lines are parted by their bytes alone, the same each time.
 */
#include "collector/source/push/internal.h"

#include "common/bytes/hash.h"

#include <string.h>

enum { PART_BYTES = 8 << 20, PART_LINES = 1 << 18 };

struct waiter {
	pthread_mutex_t mutex;
	pthread_cond_t done;
	bool is_done;
	struct push_outcome *outcome;
};

static void wake(void *context, const struct push_outcome *outcome)
{
	struct waiter *waiter = context;
	pthread_mutex_lock(&waiter->mutex);
	*waiter->outcome = *outcome;
	waiter->is_done = true;
	pthread_cond_signal(&waiter->done);
	pthread_mutex_unlock(&waiter->mutex);
}

static enum weir_status append_and_wait(struct push_spool *spool, struct weir_span id, uint64_t body,
                                        struct weir_text *lines, struct push_outcome *outcome)
{
	struct waiter waiter = {.outcome = outcome};
	*outcome = (struct push_outcome){.status = WEIR_OK};
	pthread_mutex_init(&waiter.mutex, NULL);
	pthread_cond_init(&waiter.done, NULL);
	enum weir_status status = push_append_part(spool, id, body, lines, wake, &waiter, &outcome->why);
	if (status == WEIR_OK) {
		pthread_mutex_lock(&waiter.mutex);
		while (!waiter.is_done)
			pthread_cond_wait(&waiter.done, &waiter.mutex);
		pthread_mutex_unlock(&waiter.mutex);
	} else {
		outcome->status = status;
	}
	pthread_cond_destroy(&waiter.done);
	pthread_mutex_destroy(&waiter.mutex);
	return outcome->status;
}

/* ---- parts ---- */

static bool is_one_batch(const struct push_spool *spool, struct weir_span lines)
{
	return lines.length <= push_spool_batch_most(spool) &&
	       (lines.length <= PUSH_BATCH_MOST_LINES || push_count_lines(lines) <= PUSH_BATCH_MOST_LINES);
}

/* Takes the next part off lines: whole ones. */
static struct weir_span next_part(struct weir_span *rest)
{
	struct weir_span part = {.at = rest->at};
	for (int i = 0; i < PART_LINES && part.length < PART_BYTES && part.length < rest->length; i++) {
		const char *at = part.at + part.length;
		const char *newline = memchr(at, '\n', rest->length - part.length);
		part.length = newline != NULL ? (uint32_t)(newline - part.at) + 1 : rest->length;
	}
	rest->at += part.length;
	rest->length -= part.length;
	return part;
}

/* Whether every part may be a batch: else none of them is stored. */
static bool has_good_parts(const struct push_spool *spool, struct weir_span lines)
{
	size_t most = push_spool_batch_most(spool);
	while (lines.length > 0)
		if (next_part(&lines).length > most)
			return false;
	return true;
}

static enum weir_status append_parts(struct push_spool *spool, struct weir_span id, struct weir_span lines,
                                     struct push_outcome *outcome)
{
	struct weir_text name = {0}, part = {0};
	uint64_t body = weir_hash64(lines.at, lines.length);
	struct push_outcome whole = {.status = WEIR_OK, .again = true};
	weir_text_append(&name, id.at, id.length);
	for (int number = 0; lines.length > 0 && whole.status == WEIR_OK; number++) {
		struct weir_span bytes = next_part(&lines);
		struct push_outcome one;
		name.length = id.length;
		if (number > 0)
			weir_text_printf(&name, "\n%d", number);
		weir_text_append(&part, bytes.at, bytes.length);
		whole.status = append_and_wait(spool, weir_text_span(&name), body, &part, &one);
		whole.lines += one.lines;
		whole.again &= one.again;
		whole.clashes = one.clashes;
		whole.why = one.why;
	}
	weir_text_deinit(&name);
	weir_text_deinit(&part);
	*outcome = whole;
	return whole.status;
}

enum weir_status push_spool_append_wait(struct push_spool *spool, struct weir_span id, struct weir_text *lines,
                                        struct push_outcome *outcome)
{
	struct weir_span bytes = weir_text_span(lines);
	if (id.at != NULL && !is_one_batch(spool, bytes) && has_good_parts(spool, bytes)) {
		enum weir_status status = append_parts(spool, id, bytes, outcome);
		if (status == WEIR_OK) {
			weir_text_deinit(lines);
			*lines = (struct weir_text){0};
		}
		return status;
	}
	return append_and_wait(spool, id, id.at != NULL ? weir_hash64(lines->at, lines->length) : 0, lines, outcome);
}

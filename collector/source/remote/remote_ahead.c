/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many objects that grow are asked for their next bytes several at a time: each answer takes a server some milliseconds,
 * most of which it waits.
 *
 * The answers lie in temporary files until their objects have their turns, one after another, on the source's thread.
 */
#include "collector/source/remote/internal.h"

#include <unistd.h>

enum { THREADS_MOST = 16 };

struct work {
	struct remote_fetch *fetch;
	_Atomic size_t next;
};

static void *read_some(void *context)
{
	struct work *work = context;
	for (size_t i; (i = atomic_fetch_add(&work->next, 1)) < work->fetch->ahead_count;) {
		struct remote_ahead *ahead = &work->fetch->ahead[i];
		struct remote_object object = remote_object_of(ahead->known);
		ahead->status = remote_read_bytes(work->fetch, &object, ahead->from, ahead->from + REMOTE_AHEAD_BYTES,
		                                  ahead->fd, &ahead->got, &ahead->error);
	}
	return NULL;
}

void remote_read_ahead(struct remote_fetch *fetch, struct remote_known *const *objects, size_t count)
{
	pthread_t threads[THREADS_MOST];
	struct work work = {.fetch = fetch};
	struct weir_error ignored;
	size_t started = 0, most = (size_t)fetch->options.ops->at_once;
	remote_ahead_clear(fetch);
	for (size_t i = 0; i < count && i < REMOTE_AHEAD_MOST; i++) {
		int fd = remote_temporary(fetch, &ignored);
		if (fd < 0)
			break;
		fetch->ahead[fetch->ahead_count++] = (struct remote_ahead){
			.known = objects[i], .from = objects[i]->offset - remote_check_bytes(fetch, objects[i]), .fd = fd};
	}
	while (started + 1 < most && started < THREADS_MOST && started + 1 < fetch->ahead_count &&
	       pthread_create(&threads[started], NULL, read_some, &work) == 0)
		started++;
	read_some(&work);
	while (started > 0)
		pthread_join(threads[--started], NULL);
}

struct remote_ahead *remote_ahead_of(struct remote_fetch *fetch, const struct remote_known *known)
{
	for (size_t i = 0; i < fetch->ahead_count; i++) {
		struct remote_ahead *ahead = &fetch->ahead[i];
		if (ahead->known != known)
			continue;
		ahead->known = NULL;
		return ahead->from == known->offset - remote_check_bytes(fetch, known) ? ahead : NULL;
	}
	return NULL;
}

void remote_ahead_clear(struct remote_fetch *fetch)
{
	for (size_t i = 0; i < fetch->ahead_count; i++)
		close(fetch->ahead[i].fd);
	fetch->ahead_count = 0;
}

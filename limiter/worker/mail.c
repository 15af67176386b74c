/* SPDX-License-Identifier: Apache-2.0 */
/* Inboxes: whoever sends appends, and wakes the thread if the inbox was empty; the thread takes all at once. */
#include "limiter/worker/mail.h"

#include "common/base/alloc.h"
#include "common/base/wake.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct inbox {
	pthread_mutex_t lock;
	struct mail_packet *first, **end;
	_Atomic bool some; /* read without the lock: it may have something */
	int wake;
};

struct mail {
	uint32_t threads;
	struct inbox inboxes[];
};

struct mail *mail_new(uint32_t threads)
{
	struct mail *mail = weir_alloc(1, sizeof *mail + threads * sizeof mail->inboxes[0]);
	bool good = true;
	mail->threads = threads;
	for (uint32_t i = 0; i < threads; i++) {
		struct inbox *inbox = &mail->inboxes[i];
		pthread_mutex_init(&inbox->lock, NULL);
		inbox->end = &inbox->first;
		inbox->wake = weir_wake_new();
		good = good && inbox->wake >= 0;
	}
	if (good)
		return mail;
	mail_free(mail);
	return NULL;
}

void mail_free(struct mail *mail)
{
	if (mail == NULL)
		return;
	for (uint32_t i = 0; i < mail->threads; i++) {
		struct inbox *inbox = &mail->inboxes[i];
		for (struct mail_packet *packet = inbox->first, *next; packet != NULL; packet = next) {
			next = packet->next;
			free(packet);
		}
		pthread_mutex_destroy(&inbox->lock);
		if (inbox->wake >= 0)
			close(inbox->wake);
	}
	free(mail);
}

int mail_wake(const struct mail *mail, uint32_t thread)
{
	assert(thread < mail->threads);
	return mail->inboxes[thread].wake;
}

void mail_send(struct mail *mail, uint32_t to, struct mail_packet *packet)
{
	struct inbox *inbox = &mail->inboxes[to];
	packet->next = NULL;
	pthread_mutex_lock(&inbox->lock);
	bool empty = inbox->first == NULL;
	*inbox->end = packet;
	inbox->end = &packet->next;
	inbox->some = true;
	pthread_mutex_unlock(&inbox->lock);
	if (empty)
		weir_wake_up(inbox->wake);
}

struct mail_packet *mail_take(struct mail *mail, uint32_t thread)
{
	struct inbox *inbox = &mail->inboxes[thread];
	if (!inbox->some)
		return NULL;
	pthread_mutex_lock(&inbox->lock);
	struct mail_packet *taken = inbox->first;
	inbox->first = NULL;
	inbox->end = &inbox->first;
	inbox->some = false;
	pthread_mutex_unlock(&inbox->lock);
	return taken;
}

static struct weir_span keep(struct mail_packet *packet, struct weir_span span)
{
	char *at = packet->bytes + packet->used;
	if (span.length > 0)
		memcpy(at, span.at, span.length);
	packet->used += span.length;
	return (struct weir_span){.at = at, .length = span.length};
}

bool mail_packet_add(struct mail_packet *packet, const struct check_ask *ask)
{
	uint64_t bytes = (uint64_t)ask->zone.length + ask->key.length;
	if (packet->count == CHECK_GROUP_MAX || bytes > MAIL_PACKET_BYTES - packet->used)
		return false;
	struct check_ask *to = &packet->asks[packet->count++];
	*to = *ask;
	to->zone = keep(packet, ask->zone);
	to->key = keep(packet, ask->key);
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The links of a process, by place. */
#include "limiter/forward/forward.h"

#include "common/base/alloc.h"
#include "common/base/wake.h"
#include "limiter/forward/internal.h"

#include <stdlib.h>
#include <string.h>

struct forward {
	struct forward_options options;
	_Atomic bool stop;
	struct weir_fault fault; /* the feed's thread's */
	struct peer_link links[OWNERS_INBOXES];
};

struct forward *forward_new(const struct forward_options *options)
{
	struct forward *forward = weir_alloc(1, sizeof *forward);
	forward->options = *options;
	for (uint32_t i = 0; i < OWNERS_INBOXES; i++) {
		struct peer_link *link = &forward->links[i];
		link->options = &forward->options;
		link->place = i % OWNERS_PLACES_MAX;
		link->durable = i == owners_inbox(link->place, true);
		link->inbox = options->first_inbox + i;
		link->stop = &forward->stop;
		link->end = &link->first;
	}
	return forward;
}

static void start(struct forward *forward, struct peer_link *link)
{
	if (link->started)
		return;
	int failed = pthread_create(&link->thread, NULL, link_serve, link);
	link->started = failed == 0;
	if (failed != 0)
		weir_fault_raise(&forward->fault, forward->options.log, "checks",
		                 "cannot start a thread that asks another limiter: %s. Checks of its partitions are "
		                 "unavailable here. Retrying",
		                 weir_errno_words(failed));
	else
		weir_fault_over(&forward->fault, forward->options.log, "checks", "threads can be started again");
}

void forward_reach(struct forward *forward, uint32_t place)
{
	for (int durable = 0; durable < 2; durable++)
		start(forward, &forward->links[owners_inbox(place, durable)]);
}

void forward_stop(struct forward *forward)
{
	if (forward == NULL || forward->stop)
		return;
	forward->stop = true;
	for (uint32_t i = 0; i < OWNERS_INBOXES; i++) {
		struct peer_link *link = &forward->links[i];
		if (!link->started)
			continue;
		weir_wake_up(mail_wake(forward->options.mail, link->inbox));
		pthread_join(link->thread, NULL);
	}
}

void forward_free(struct forward *forward)
{
	forward_stop(forward);
	free(forward);
}

const struct forward_figures *forward_figures(const struct forward *forward, uint32_t inbox)
{
	const struct peer_link *link = &forward->links[inbox];
	return link->started ? &link->figures : NULL;
}

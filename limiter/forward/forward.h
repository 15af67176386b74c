/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks for keys of other limiters' partitions: carried there, and their answers back.
 *
 * Each place (owners.h) that has a partition gets two links, each a thread with one connection to that limiter's
 * listen.resp, by which all workers' asks go in a pipeline, as WEIR.FORWARD: one for durable asks, whose answers wait for
 * the log, and one for all others, as answers come in the order of asks. Whoever is asked so never forwards in turn. A worker
 * sends a packet to the inbox first_inbox + owners_inbox(), and gets it back with the answers. Bounds: what a worker may have
 * on the way (answering.h), and each packet's deadline: a link whose oldest packet is past it is given up and made anew.
 * While there is no connection, packets come back at once, CHECK_WHY_MOVING.
 */
#ifndef LIMITER_FORWARD_H
#define LIMITER_FORWARD_H

#include "common/log/log.h"
#include "common/log/metrics.h"
#include "limiter/owners/owners.h"
#include "limiter/worker/mail.h"

struct forward;

struct forward_options {
	struct owners *owners; /* borrowed, like all that follows */
	struct mail *mail;
	uint32_t first_inbox;
	const char *password; /* NULL: none */
	bool tls;
	char *ca;                /* file of certificates to trust; NULL: the system's */
	char *certificate, *key; /* files of what is shown to limiters that ask for a certificate; NULL: nothing */
	const struct weir_log *log;
};

/* Of one link; read by any thread. */
struct forward_figures {
	struct weir_counter asks, unanswered; /* sent there; of which no answer came, for whatever reason */
	struct weir_counter connects, failures;
	struct weir_counter connected; /* gauge: 1 or 0 */
};

struct forward *forward_new(const struct forward_options *options);
/** Ends the links' threads; their figures stay. Called when no worker sends any more. NULL is fine. */
void forward_stop(struct forward *forward);
/** Does so if it was not done, and frees. NULL is fine. */
void forward_free(struct forward *forward);

/** Starts the links to a place, if there are none. @thread the owners' feed's */
void forward_reach(struct forward *forward, uint32_t place);

/** The figures of a link. @param inbox  owners_inbox() @return NULL: there is none @thread any */
const struct forward_figures *forward_figures(const struct forward *forward, uint32_t inbox);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks on their way between the threads of a process. A connection is one thread's,
 * and may ask for a key of any partition: what is another thread's travels there in
 * a packet, and the packet travels back with the answers. What another process has
 * travels likewise to the thread that carries it there (limiter/forward/).
 *
 * A packet is its sender's again when it is back, and is used again; a thread has
 * PACKETS_MAX of them at most. It is written by whoever has it. Each thread has an
 * inbox: a list behind a lock, and an eventfd. In both the lock is held for a few
 * instructions alone.
 */
#ifndef LIMITER_MAIL_H
#define LIMITER_MAIL_H

#include "limiter/check/check.h"

enum {
	MAIL_PACKETS_MAX = 256,       /* of one thread */
	MAIL_PACKET_BYTES = 8 * 1024, /* of names and keys in one */
};

struct mail_packet {
	struct mail_packet *next;
	uint32_t from;       /* the thread that it belongs to */
	uint32_t count;      /* asks; set by the sender */
	uint32_t open;       /* those that are not answered yet; the owner's, who has it */
	bool back;           /* it has its answers */
	uint64_t unanswered; /* bits: asks that no limiter answered; whoever carries it elsewhere sets them */
	int64_t asked_us;    /* monotonic */
	int64_t deadline_ms; /* monotonic: nobody waits for an answer after this */
	uint32_t used;       /* of bytes */
	struct check_ask asks[CHECK_GROUP_MAX]; /* their bytes are in the packet; written by the sender alone */
	struct check_answer answers[CHECK_GROUP_MAX];
	/* the sender's alone, wherever the packet is */
	uint64_t expired;                  /* bits: asks that were told CHECK_UNAVAILABLE */
	int64_t expires_ms;                /* monotonic: when the next one is; INT64_MAX: none is any more */
	int64_t until_ms[CHECK_GROUP_MAX]; /* monotonic, of each ask: nobody waits for its answer after this */
	bool elsewhere;                    /* it was sent to another process: */
	uint32_t way;                      /* by which of the places' inboxes (owners.h) */
	struct mail_packet *later;         /* among those that are away */
	char bytes[MAIL_PACKET_BYTES];
};

struct mail;

/** Inboxes for the threads 0 to threads - 1. @return NULL: no eventfd could be had; errno says why */
struct mail *mail_new(uint32_t threads);
/** Frees what is still in the inboxes too. Called when the threads have ended. */
void mail_free(struct mail *mail);

/** The thread's eventfd: written when its inbox has something; others may write it too (common/base/wake.h). */
int mail_wake(const struct mail *mail, uint32_t thread);

/** Puts a packet into a thread's inbox. @param packet  taken @thread any */
void mail_send(struct mail *mail, uint32_t to, struct mail_packet *packet);

/** Takes all of the thread's inbox, oldest first. @return by `next`; NULL: it is empty */
struct mail_packet *mail_take(struct mail *mail, uint32_t thread);

/**
 * Copies an ask into a packet.
 *
 * @return false: there is no room; nothing was copied
 */
bool mail_packet_add(struct mail_packet *packet, const struct check_ask *ask);

#endif

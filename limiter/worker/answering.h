/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the answers of one worker's checks go: to its surface, or into the packet that the ask came in. It also has the
 * worker's own packets: those on their way, and those to be used again; and it counts.
 */
#ifndef LIMITER_ANSWERING_H
#define LIMITER_ANSWERING_H

#include "limiter/check/surface.h"
#include "limiter/owners/owners.h"
#include "limiter/worker/core.h"
#include "limiter/worker/mail.h"

enum {
	ANSWER_LOAD_MS = 50,                             /* how long an ask may wait for segments, or for room */
	ANSWER_DURABLE_MS = 1000,                        /* the same, for an acknowledgement */
	ANSWER_AWAY_MS = 1200,                           /* the same, for another thread's answer: longer than both */
	ANSWER_ELSEWHERE_MS = 500,                       /* the same, for another process's, unless it is durable */
	ANSWER_ELSEWHERE_PACKETS = MAIL_PACKETS_MAX / 2, /* that may be at other processes: the rest is for threads; */
	ANSWER_DURABLE_PACKETS = MAIL_PACKETS_MAX / 4, /* beside them, of durable asks, which a stall of the log holds up */
};

struct answering {
	struct worker_core *core;
	struct mail *mail;
	struct check_surface surface;         /* free NULL: none */
	struct bundles *bundles;              /* whose parts' answers are not the surface's; NULL: none */
	bool told;                            /* the surface has answers to write */
	struct mail_packet *idle;             /* by `next` */
	uint32_t packets;                     /* of this worker, wherever they are */
	uint32_t elsewhere[2];                /* of which at other processes: of asks that are not durable, and that are; */
	uint32_t by_way[OWNERS_INBOXES];      /* by each of the places' inboxes */
	struct mail_packet *away, **away_end; /* by `later`, oldest first */
};

/* Where the answer to one ask goes. */
struct answer_place {
	struct mail_packet *packet; /* NULL: to the surface */
	uint32_t index;             /* in the packet */
	int64_t asked_us;           /* monotonic */
};

void answering_init(struct answering *answering, struct worker_core *core, struct mail *mail);
/** Frees the surface, and the packets that are not in an inbox. */
void answering_deinit(struct answering *answering);

int64_t answering_now_us(void);
struct check_time answering_now(void);

/** An empty packet; NULL: too many are on their way. */
struct mail_packet *answering_packet(struct answering *answering, int64_t now_us);
/**
 * Copies an ask into a packet that is to be sent. Each has a time of its own, whatever else travels with it.
 *
 * @param until_ms  monotonic: when it is told that its answer is too late
 * @return false: there is no room; nothing was copied
 */
bool answering_add(struct mail_packet *packet, const struct check_ask *ask, int64_t until_ms);
/** Sends it to another thread. Its asks are answered when it is back, or by answering_expire(). */
void answering_send(struct answering *answering, uint32_t to, struct mail_packet *packet);
/**
 * Whether one more packet may go to another process. One that does not answer has as many at most as it leaves to the
 * others: so it cannot hold up what they are asked.
 *
 * @param way  owners_inbox()
 */
bool answering_may_send_elsewhere(const struct answering *answering, uint32_t way);
/** The same as answering_send(), to a thread that carries it to another process. */
void answering_send_elsewhere(struct answering *answering, uint32_t to, uint32_t way, struct mail_packet *packet);
/** Puts a packet of this worker, without asks, among those to be used again. */
void answering_put_back(struct answering *answering, struct mail_packet *packet);
/** Takes back a packet of this worker: gives its answers to the surface. */
void answering_take_back(struct answering *answering, struct mail_packet *packet);
/** Answers those asks of a packet with CHECK_UNAVAILABLE whose time is over. @return whether nobody waits for any more */
bool answering_give_up(struct answering *answering, struct mail_packet *packet, int64_t now_ms);
/** The same, of packets that have not come back. */
void answering_expire(struct answering *answering, int64_t now_ms);

/** Counts an answer. Called for each once, by the worker that has made it. */
void answering_count(struct answering *answering, const struct check_answer *answer, int64_t took_us);

/** Gives an answer to the surface, or a part's to its bundle. */
void answering_to_surface(struct answering *answering, const struct check_answer *answer);
/** Gives an answer that was not given within ask(): counts it and delivers it. */
void answering_give(struct answering *answering, const struct answer_place *place, const struct check_answer *answer);

/** CHECK_UNAVAILABLE. */
static inline struct check_answer answer_unavailable(uint64_t ticket, enum check_why why)
{
	return (struct check_answer){.outcome = CHECK_UNAVAILABLE, .retry_after_ms = -1, .why = why, .ticket = ticket};
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of one partition at its worker: asks go to the lane, check frames to the
 * log, and answers out.
 *
 * When the partition is taken, a marker goes to its log; checks are answered once it
 * has come back, as all that was in the log is judged then. Frames are sent in order
 * and without waiting: one that the bus has no room for is kept, and nothing more is
 * answered until it is sent. While PARTITION_CHECKS_FRAMES_SOON are not acknowledged,
 * checks gather until the open frame is due. Once the oldest has waited for
 * PARTITION_CHECKS_ACKNOWLEDGED_MS, nothing more is answered: that bounds what a crash
 * can forget.
 *
 * The answer to a durable ask is held until its frame is acknowledged. Where other
 * processes can take the partition, it is held until the frame has come back, too: had
 * another taken it before, its marker would have come first, and the answer is void.
 *
 * An ask whose bucket is in the store waits until its segment is loaded, and one that
 * finds too many under way until some have come back: ANSWER_LOAD_MS at most.
 *
 * A store that was restored from an older copy gives epochs below those of the log, so
 * that the log seems to say that another has the partition. Once a checkpoint is stored
 * that was cut after that was read, the store has said that nobody has: a marker above
 * the log's epochs begins anew.
 */
#ifndef LIMITER_PARTITION_CHECKS_H
#define LIMITER_PARTITION_CHECKS_H

#include "limiter/lane/lane_checks.h"
#include "limiter/worker/answering.h"
#include "limiter/worker/publisher.h"

enum {
	PARTITION_CHECKS_FRAMES_SOON = 64, /* so many are sent as soon as a turn ends, however small; */
	PARTITION_CHECKS_FRAMES = 128,     /* so many at all, the others full */
	PARTITION_CHECKS_ACKNOWLEDGED_MS = 500,
	PARTITION_CHECKS_PARKED_MAX = 1024,
	PARTITION_CHECKS_AHEAD_MS = 2000, /* of a clock that is so far behind its checks it is told, */
	PARTITION_CHECKS_TELL_MS = 60000, /* once in so long */
};

/* A frame that was sent and is not acknowledged. */
struct sent_checks {
	uint64_t number; /* how many messages the partition had sent to events with it */
	uint32_t events;
	int64_t sent_ms;
};

/* An answer that waits for an acknowledgement. */
struct held_answer {
	uint64_t frame; /* the number of the message that has its event; the marker's is 1 */
	struct answer_place place;
	struct check_answer answer;
};

/* An ask that waits. */
struct parked_ask {
	struct answer_place place;
	enum check_why why; /* LOADING: for a segment; FULL */
};

struct partition_checks {
	struct publisher *publisher;
	struct answering *answering; /* NULL: no checks are asked */
	uint32_t number;             /* of the partition */
	struct lane *lane;           /* NULL: closed */
	struct weir_text unsent;     /* a frame that the bus had no room for; empty: none */
	uint32_t unsent_events;
	int64_t unsent_ms;     /* monotonic: since when */
	int64_t ahead_told_ms; /* monotonic: when it was told last that the clock is behind; 0: never */
	struct sent_checks sent[PARTITION_CHECKS_FRAMES];
	uint32_t sent_first, sent_count;
	uint32_t unacknowledged; /* events that were answered and are not acknowledged */
	uint64_t closed,
		acknowledged; /* how many messages were closed, to be sent, and acknowledged, since it was opened */
	/* answers held, in a ring */
	struct held_answer *held;
	uint32_t held_room;
	uint64_t held_first, held_next; /* numbers */
	struct parked_ask *parked;      /* room for PARTITION_CHECKS_PARKED_MAX; NULL: none was ever needed */
	uint32_t parked_count;
	uint32_t parked_full; /* of which FULL */
	int64_t wanted_ms;    /* monotonic: when the last one came that waits for segments; 0: none has */
	uint64_t epoch;       /* under which the partition was taken */
	bool doubted;         /* a marker has to be sent before more is answered */
	bool leaving;         /* no marker is sent any more: it would not be read here */
	bool proved;          /* the log says that another has the partition, and the store that nobody has */
	bool loading;         /* a job for them is at checkpoint I/O */
	bool outdated;        /* what was loaded last for them came too late, as a checkpoint was stored meanwhile */
};

void partition_checks_init(struct partition_checks *checks, uint32_t number, struct publisher *publisher,
                           struct answering *answering);
void partition_checks_deinit(struct partition_checks *checks);

/** The partition was taken, under an epoch: sends the marker. */
void partition_checks_open(struct partition_checks *checks, struct lane *lane, uint64_t epoch);
/**
 * The thread has stood still for so long that another may have taken the partition: nothing is answered until a new marker
 * has come back.
 */
void partition_checks_doubt(struct partition_checks *checks);
/** A checkpoint was stored under the epoch: higher ones in the log before its next offset are of nobody any more. */
void partition_checks_stored(struct partition_checks *checks, uint64_t next_offset);
/**
 * The partition begins to leave: its messages are not read any more, so no marker is sent. It would be behind the last
 * checkpoint, and could not come back.
 */
void partition_checks_leave(struct partition_checks *checks);

/** Ends it: what was not answered yet gets CHECK_UNAVAILABLE. Does nothing if it is closed. */
void partition_checks_close(struct partition_checks *checks);

/**
 * Judges asks that are for this partition.
 *
 * @param places   which of them
 * @param packet   that they came in; NULL: from the surface
 * @param now      no clock is read: what is looked at and then counted at one time has one answer
 * @param answers  set; CHECK_LATER: the answer comes through answering_give()
 */
void partition_checks_ask(struct partition_checks *checks, const struct check_ask *asks, const uint32_t *places,
                          uint32_t count, struct mail_packet *packet, struct check_time now,
                          struct check_answer *answers);

/** At the end of a turn: takes acknowledgements, sends what was gathered, and ends waits that are over. */
void partition_checks_step(struct partition_checks *checks, int64_t now_ms);

/** Whether a step has something to do, or to wait for. */
bool partition_checks_are_busy(const struct partition_checks *checks);
/** Whether another has taken the partition: nothing more will be answered. */
bool partition_checks_are_over(const struct partition_checks *checks);
/** Whether the store says that another has taken it: nobody else's checks lead here any more. */
bool partition_checks_are_lost(const struct partition_checks *checks);
/** Whether all answers that were given are acknowledged. */
bool partition_checks_are_safe(const struct partition_checks *checks);

/** The segments that asks wait for, unless they are being loaded. @param segments  room for SHARD_MISSING_MOST */
uint32_t partition_checks_missing(const struct partition_checks *checks, uint32_t *segments);
/** They were loaded, or could not be: what waited is asked again. */
void partition_checks_loaded(struct partition_checks *checks);

#endif

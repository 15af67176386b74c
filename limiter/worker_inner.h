/*
 * A worker's inside, shared by its three files: worker.c (the loop),
 * worker_judge.c (messages in, verdicts out), worker_checkpoint.c (cuts and the
 * keepers' answers). Everything here belongs to the worker's thread.
 */
#ifndef LIMITER_WORKER_INNER_H
#define LIMITER_WORKER_INNER_H

#include "common/clock.h"
#include "limiter/worker.h"

enum {
	WORKER_BATCH_MESSAGES = 64,
	WORKER_QUEUED_MAX = WORKER_BATCH_MESSAGES, /* of one partition, behind a message that waits */
	WORKER_IDLE_WAIT_MS = 100,
	WORKER_STOP_LIMIT_MS = 20000, /* without any progress, once it is to stop */
	WORKER_BUSY_WAIT_MS = 2,      /* while a keeper or the bus owes an answer */
};

/* A message that waits behind one whose segments are being loaded. */
struct queued {
	uint64_t offset;
	uint32_t length;
	char *bytes;
};

/* One partition of this worker. */
struct slot {
	struct lane *lane;
	struct checkpoint_partition stored;
	bool waiting;                           /* its lane waits for segments */
	bool paused;                            /* at the bus */
	bool full;                              /* paused until a checkpoint makes room */
	struct queued queue[WORKER_QUEUED_MAX]; /* queue[0] is the waiting one */
	uint32_t queued;
	/* Messages published for it, by topic: within one they are acknowledged in order, between two in none. */
	uint64_t sent[WEIR_TOPIC_COUNT], acknowledged[WEIR_TOPIC_COUNT];
	struct keeper_job *cut;               /* cut, but not yet handed to the saver: it waits for acknowledgements */
	uint64_t cut_needs[WEIR_TOPIC_COUNT]; /* acknowledged must reach these */
	bool saving;                          /* handed to the saver */
	int64_t cut_ms;                       /* monotonic: when the cut that is current or under way was taken */
	uint64_t cut_offset;                  /* next_offset of it */
};

struct worker {
	struct worker_options options;
	const struct weir_bus_ops *bus;
	struct slot *slots;
	struct lane **lanes; /* of the slots */
	uint32_t slot_count;
	struct weir_consumer *consumer;
	struct weir_producer *producer;
	struct keeper_replies replies;
	struct weir_text text, key, judged;
	enum weir_status status; /* the first failure: ends the loop */
	struct weir_error error;
	struct weir_trouble trouble;
	int64_t stats_due_ms;
	struct worker_stats stats;

	pthread_t thread;
	bool started;
	_Atomic bool stop, drain, ended;
};

/** Whether of every topic as many are acknowledged. */
static inline bool worker_acknowledged(const struct slot *slot, const uint64_t *wanted)
{
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++)
		if (slot->acknowledged[topic] < wanted[topic])
			return false;
	return true;
}

static inline struct slot *worker_slot(struct worker *worker, uint32_t partition)
{
	return &worker->slots[partition / worker->options.count];
}

/** The first failure is kept, and ends the loop. */
void worker_fail(struct worker *worker, enum weir_status status, const struct weir_error *error);

/* ---- worker_judge.c ---- */

/** Receives and judges one batch; gives whether there was any. */
bool worker_receive(struct worker *worker, int timeout_ms);

/** Takes acknowledgements of what was published, waiting at most timeout_ms for the first. */
void worker_take_deliveries(struct worker *worker, int timeout_ms);

/** Goes on with the message that waits for segments, and those behind it as far as they can. */
void worker_go_on(struct worker *worker, struct slot *slot);

void worker_pause_slot(struct worker *worker, struct slot *slot, bool paused);

/* ---- worker_checkpoint.c ---- */

/** Cuts what is due (`all`: whatever has changed), and hands cuts whose messages are acknowledged to the saver. */
void worker_checkpoints(struct worker *worker, bool all);

/** Takes the keepers' answers: checkpoints that are stored, segments that are loaded. */
void worker_take_replies(struct worker *worker);

#endif

/*
 * A worker's inside, shared by its files: worker.c (the loop), worker_judge.c
 * (messages in, verdicts out), worker_publish.c (what they give, and what became
 * of it), worker_checkpoint.c (cuts and the keepers' answers), worker_share.c
 * (partitions that come and go), worker_look.c (what other threads see).
 * Everything here belongs to the worker's thread, except where it says so.
 */
#ifndef LIMITER_WORKER_INTERNAL_H
#define LIMITER_WORKER_INTERNAL_H

#include "common/base/clock.h"
#include "limiter/worker/worker.h"

#include <pthread.h>

enum {
	WORKER_BATCH_MESSAGES = 64,
	WORKER_QUEUED_MAX = WORKER_BATCH_MESSAGES, /* of one partition, behind a message that waits */
	WORKER_IDLE_WAIT_MS = 100,
	WORKER_ASSIGNMENT_WAIT_MS = 20, /* where partitions come and go */
	WORKER_BUSY_WAIT_MS = 2,        /* while a keeper or the bus owes an answer */
	WORKER_STOP_LIMIT_MS = 20000,   /* without any progress, once it is to stop, or a partition to go */
	WORKER_RETRY_MS = 1000,
	WORKER_FENCED_RETRY_MS = 15000, /* a partition that another took in passing, and the group still gives us */
	WORKER_STUCK_RETRY_MS = 30000,  /* one that a person has to do something about */
};

/* A message that waits behind one whose segments are being loaded. */
struct queued {
	uint64_t offset;
	int64_t appended_ms;
	uint32_t length;
	char *bytes;
};

/* One partition, which this worker has, or may have. */
struct slot {
	uint32_t partition;
	enum worker_state state;
	bool given;                          /* by the group */
	bool wanted;                         /* given, and placed at this worker */
	bool stuck;                          /* DROPPED: STUCK comes next */
	uint32_t jobs;                       /* that keepers have */
	uint64_t generation;                 /* of the group, when it was taken */
	int64_t retry_ms;                    /* monotonic: EMPTY, STUCK: not taken before then */
	int64_t asked_ms;                    /* monotonic: when it was first asked for; 0: it is not */
	bool saying_left;                    /* LEAVING: its last checkpoint is stored, and this is being said */
	int64_t leave_end_ms;                /* LEAVING: then it goes without a last checkpoint */
	struct lane *lane;                   /* LIVE, LEAVING, DROPPED */
	struct worker_partition look;        /* under worker->lock */
	struct weir_counter messages, bytes; /* received, ever */

	struct checkpoint_partition stored;     /* the saver's while it saves */
	uint64_t current;                       /* the checkpoint that is known to be stored */
	bool waiting;                           /* its lane waits for segments, or a policy */
	int64_t policy_due_ms;                  /* monotonic: when the store is asked again for that policy; 0: it is not */
	bool paused;                            /* at the bus */
	bool full;                              /* paused until a checkpoint makes room, or is young enough */
	struct queued queue[WORKER_QUEUED_MAX]; /* queue[0] is the waiting one */
	uint32_t queued;
	/*
	 * Messages published for it, by topic: within one they are acknowledged in order, between two in none. They go on
	 * from owner to owner, as acknowledgements of one that is dropped still come.
	 */
	uint64_t sent[WEIR_TOPIC_COUNT], acknowledged[WEIR_TOPIC_COUNT];
	struct checkpoint_job *cut;           /* cut, but not yet handed to the saver: it waits for acknowledgements */
	uint64_t cut_needs[WEIR_TOPIC_COUNT]; /* acknowledged must reach these */
	bool saving;                          /* handed to the saver */
	int64_t cut_ms;                       /* monotonic: when the cut that is current or under way was taken */
	uint64_t cut_offset;                  /* next_offset of it */
	int64_t safe_ms;                      /* monotonic: all that was judged by then is stored */
	uint64_t checkpoints;                 /* stored since it was taken */
	int64_t remind_due_ms;                /* monotonic: when its operators' blocks are looked through again */
	bool streaming;                       /* segments that nothing asks for are being read */
	bool whole;                           /* all of them are, or there is no room for more */
};

struct worker {
	struct worker_options options;
	const struct weir_bus_ops *bus;
	struct slot *slots; /* one for each partition */
	uint32_t slot_count;
	struct weir_consumer *consumer;
	struct weir_producer *producer; /* NULL: broken, until there is a new one */
	bool broken;                    /* it is to be given up */
	int64_t renew_ms, renewed_ms;   /* monotonic: the next one not before then; when this one was made */
	uint32_t breaks_in_row;
	struct checkpoint_replies replies;
	struct weir_text text, key, judged;
	enum weir_status status; /* the first failure: ends the loop */
	struct weir_error error;
	struct weir_trouble trouble, consumer_trouble, producer_trouble, age_trouble, policy_trouble;
	uint64_t assignment_version, generation;
	bool *given;            /* room for the assignment */
	int64_t ceiling_bytes;  /* of one partition */
	int64_t letters_second; /* the second in which so many dead letters were kept */
	int64_t letters;
	int64_t looks_due_ms, gauges_due_ms, remind_due_ms;
	int64_t ahead_due_ms; /* monotonic: before then no more is said of senders whose clock is ahead */
	struct worker_stats stats;

	pthread_mutex_t lock;  /* of what other threads look at: */
	struct tally *retired; /* counters of lanes that went, less those that lanes came with */
	struct lane **lanes;   /* there are now */
	uint32_t lane_count;

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
	return &worker->slots[partition];
}

/** Whether it has a lane that is worth a checkpoint. */
static inline bool worker_has(const struct slot *slot)
{
	return slot->state == WORKER_LIVE || slot->state == WORKER_LEAVING;
}

/** Whether the loop goes on with messages: nothing has failed, and what they give can be published. */
static inline bool worker_works(const struct worker *worker)
{
	return worker->status == WEIR_OK && !worker->broken;
}

/** The first failure is kept, and ends the loop. */
void worker_fail(struct worker *worker, enum weir_status status, const struct weir_error *error);

/* ---- worker_judge.c ---- */

/** Receives and judges one batch; gives whether there was any. */
bool worker_receive(struct worker *worker, int timeout_ms);

/** Goes on with the message that waits for segments, and those behind it as far as they can. */
void worker_go_on(struct worker *worker, struct slot *slot);

/**
 * The store was asked for the policy that the lane waits for: goes on, or asks again each second, as a store may show
 * what another one has taken a little later.
 */
void worker_policies_read(struct worker *worker, struct slot *slot);

/** Asks for it, if that is due. */
void worker_ask_for_policy(struct worker *worker, struct slot *slot, int64_t now_ms);

void worker_pause_slot(struct worker *worker, struct slot *slot, bool paused);

/** Frees what is queued from a place on. */
void worker_cut_queue(struct slot *slot, uint32_t from);

/* ---- worker_publish.c ---- */

/** Publishes what a message came to. */
void worker_publish(struct worker *worker, struct slot *slot, const struct lane_result *result,
                    struct weir_span message);

/**
 * Publishes operators' blocks that outlast the topic's retention again, with the ids that they have: a gateway that
 * starts later is to learn of them. When is for the wall clock to say, as it is for the topic; readers of the first
 * copy pass over the others.
 */
void worker_remind(struct worker *worker);

/** Says that a message is none, and keeps it. */
void worker_bury(struct worker *worker, struct slot *slot, struct weir_span message, uint64_t offset,
                 const char *reason);

/** Takes acknowledgements of what was published, waiting at most timeout_ms for the first. */
void worker_take_deliveries(struct worker *worker, int timeout_ms);

/**
 * A broken producer may have lost what no checkpoint passed yet: all partitions are dropped, to be taken again from
 * their checkpoints once there is a new one, and what they publish again has the same ids.
 */
void worker_renew_producer(struct worker *worker);

/* ---- worker_checkpoint.c ---- */

/** Cuts what is due (`all`: whatever has changed), and hands cuts whose messages are acknowledged to the saver. */
void worker_checkpoints(struct worker *worker, bool all);

/** Takes the keepers' answers: partitions that are taken, checkpoints that are stored, segments that are loaded. */
void worker_take_replies(struct worker *worker);

/** Reads segments that nothing asked for yet, a few at a time. */
void worker_stream(struct worker *worker, struct slot *slot);

/** A job about a partition for one of the keepers. */
struct checkpoint_job *worker_job(struct worker *worker, struct slot *slot, enum checkpoint_job_kind kind);
void worker_submit(struct worker *worker, struct slot *slot, struct checkpoint_job *job);

/** Whether nothing of it is newer than its last checkpoint. */
bool worker_is_stored(const struct slot *slot);

/** Whether the oldest change that no checkpoint holds is too old to go on. */
bool worker_is_overdue(const struct worker *worker, const struct slot *slot);

/* ---- worker_share.c ---- */

/** Takes what the assignment gives by now, and lets go what it does not; once it is to stop, that is all. */
void worker_follow_assignment(struct worker *worker);

/** A keeper's answer: the partition goes live, if all is well. Says what went wrong where it is the worker's failure. */
WEIR_MUST_USE enum weir_status worker_taken(struct worker *worker, struct slot *slot, struct checkpoint_job *job,
                                            struct weir_error *error);

/** Lets a partition go without a checkpoint, to be taken again after retry_ms. */
void worker_drop(struct worker *worker, struct slot *slot, int64_t retry_ms);

/**
 * What befell one partition: WEIR_FENCED: it has another owner; else a trouble that does not pass by itself. Without a
 * assignment it is the worker's failure.
 */
void worker_stick(struct worker *worker, struct slot *slot, enum weir_status status, const struct weir_error *error);

/** The store has lost what it had of a partition that is still ours: it is dropped, and taken again at once. */
void worker_take_again(struct worker *worker, struct slot *slot, const struct weir_error *error);

/** The log is not whole at a place: its partition stands still, once what was judged of it is stored. */
void worker_stand_at_gap(struct worker *worker, const struct weir_message *at, struct weir_error *error);

/* ---- worker_look.c ---- */

void worker_set_state(struct worker *worker, struct slot *slot, enum worker_state state);
/** @param trouble  "": none */
void worker_set_trouble(struct worker *worker, struct slot *slot, const char *trouble);
/** Shows how far a lane is that does not come to work. */
void worker_set_place(struct worker *worker, struct slot *slot, struct lane *lane);
/** A lane that came, and one that goes: they are counted together with all others. */
void worker_add_lane(struct worker *worker, struct slot *slot, struct lane *lane);
void worker_remove_lane(struct worker *worker, struct slot *slot);
/** Sets what is due of gauges and looks, or all. */
void worker_refresh(struct worker *worker, bool all);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the archiver's thread share. Only that thread uses it, except for atomic members. */
#ifndef ARCHIVER_WORK_INTERNAL_H
#define ARCHIVER_WORK_INTERNAL_H

#include "archiver/work/archiver.h"
#include "archiver/work/keep_clock.h"
#include "archiver/work/writer.h"
#include "common/log/partition_faults.h"

#include <pthread.h>

enum partition_state {
	PARTITION_EMPTY, /* not archived here */
	PARTITION_LIVE,
	PARTITION_PARKED, /* assigned, but not read until a person fixes something, or the process starts again */
};

struct partition {
	enum partition_state state;
	struct ledger *ledger; /* if it is live */
	bool unfed;            /* its limiter publishes no judged frames: it is archived, and not whole */
	bool at_gap;           /* parked until a person accepts that messages are missing (`weir recover --accept-gap`) */
	uint32_t writer;       /* the one that stores it, or tried to */
	uint64_t checkpoint;   /* at a gap: the stored checkpoint; once the store has another one, a person has accepted */
	bool shadow_read;      /* its decisions in shadow mode are being read, which may fail while it is live */
	int64_t shadow_due_ms; /* monotonic: if they are not, when to try again; 0: at once */
	uint64_t shadow_refused; /* how many were passed over as damaged, since the last one that was read */
};

/* A partition's positions: set by the archiver's thread, read by any. */
struct place {
	_Atomic bool live;
	_Atomic uint64_t judged_next, decisions_next;
	_Atomic int64_t clock_ms;
};

/* What people are told, under its lock: written by the archiver's thread, read by any. */
struct reasons {
	pthread_mutex_t lock;
	char (*parked)[ARCHIVER_REASON_BYTES]; /* by partition: why it is parked; "": it is not */
	char store[ARCHIVER_REASON_BYTES];     /* why the store failed last */
};

struct archiver {
	struct archiver_options options;
	struct reasons reasons;
	pthread_t thread;
	_Atomic bool stop, drain, ended;
	struct weir_store *store;   /* the first of `stores`, whose writer works in this thread */
	struct weir_store **stores; /* one for each writer */
	struct writer **writers;    /* options.writers of them */
	struct weir_consumer *judged, *decisions, *shadow;
	struct partition *partitions; /* by number */
	struct place *places;         /* by number */
	struct weir_frame_reader *reader;
	struct histories *histories;
	/* the assignment */
	uint64_t assignment_version; /* as last read */
	int64_t retake_ms;           /* monotonic: when to try again to take partitions; 0: none failed */
	int64_t gap_look_ms;         /* monotonic: when to check partitions at a gap again */
	/* storing */
	bool unsettled;           /* the last attempt failed, or got no answer: the same rows are retried, none are added */
	bool behind;              /* a topic of decisions may have more at once */
	int64_t due_ms, retry_ms; /* monotonic */
	int64_t ask_ms;           /* monotonic: while the store fails and nothing is to be stored, when to ask it again */
	int64_t keep_due_ms;      /* monotonic: when to delete old rows again */
	struct keep_clock keep_clock;
	int64_t kept_ms; /* Unix ms: by this time rows are deleted, as was noted before; 0: nothing is noted yet */
	struct weir_fault store_fault, bus_fault, keep_fault, clock_fault, lost_fault, shadow_fault;
	struct weir_lasting bus_fails, shadow_fails;
	int64_t shadow_failed_ms; /* monotonic: when the topic of decisions in shadow mode failed last; 0: it works */
	struct weir_notice skipped, moved, shadow_gaps, no_policy;
	struct weir_partition_faults faults; /* of partitions that are stopped */
	int64_t unfed_look_ms;               /* monotonic: when to ask again which partitions are unfed */
	int64_t tell_ms;                     /* monotonic: when to tell of them again */
	struct weir_error failure;           /* why it ended by itself, or why something was not stored */
	enum weir_status status;
	struct archiver_stats stats;
};

static inline const struct weir_bus_ops *bus_of(const struct archiver *archiver)
{
	return archiver->options.bus->ops;
}

/* ---- archiver_partitions.c ---- */

/** Takes partitions that were assigned, and gives up those that no longer are. */
void archiver_follow_assignment(struct archiver *archiver);
/** Stops reading a partition and drops its rows, which the topics still have. */
void archiver_drop(struct archiver *archiver, uint32_t partition, enum partition_state state);
/** Parks a partition. The reason is logged, for all that have it. */
void archiver_stick(struct archiver *archiver, uint32_t partition, const char *why);

/**
 * Parks a partition at a gap in its topics, or because one was made anew. It is taken again after `weir recover
 * --accept-gap` has moved it.
 *
 * @param why  WEIR_INVALID, WEIR_ANEW
 */
void archiver_stand_at_gap(struct archiver *archiver, uint32_t partition, uint64_t checkpoint,
                           const struct weir_error *why);

/** The store has failed: what that means, and what it says. */
void archiver_store_fails(struct archiver *archiver, const struct weir_error *error);
/** Logs which partitions are stopped, and which go on, if that is due. */
void archiver_tell_partitions(struct archiver *archiver);

/* ---- archiver_messages.c ---- */

/** Takes messages from the three topics, waiting at most timeout_ms for the first. */
void archiver_receive(struct archiver *archiver, int timeout_ms);
/** Moves one message into its partition's ledger. @return false: it was not taken, and none after it may be */
typedef bool archiver_take(struct archiver *archiver, struct ledger *ledger, const struct weir_message *message);
void archiver_take_messages(struct archiver *archiver, const struct weir_message *messages, size_t count,
                            archiver_take *take);
/** Takes a decision of either mode; what is none is counted and skipped. Always true. */
bool archiver_take_decision(struct archiver *archiver, struct ledger *ledger, const struct weir_message *message);
/** The bus has failed: what that means, and what it says, where it lasts and the bus does not say so itself. */
void archiver_bus_fails(struct archiver *archiver, const struct weir_error *error);
#define ARCHIVER_END_UNKNOWN UINT64_MAX

/** Whether every live partition has been read up to `ends`, from archiver_ends(); but for decisions in shadow mode that cannot be. */
bool archiver_caught_up(struct archiver *archiver, const uint64_t *ends);
/** Updates archiver.places. */
void archiver_tell_places(struct archiver *archiver);
/**
 * The ends of the topics: judged, then decisions, then those in shadow mode, by partition. The caller frees. Of those in
 * shadow mode each may be ARCHIVER_END_UNKNOWN, as nothing waits for them. NULL: another end is not known now.
 */
uint64_t *archiver_ends(struct archiver *archiver, struct weir_error *error);

/* ---- archiver_shadow.c ---- */

/**
 * Takes messages from the topic of decisions in shadow mode, where it can be read. Does not wait for any.
 *
 * @return whether there may be more at once
 */
bool archiver_receive_shadow(struct archiver *archiver);
/** Stops reading them of a partition. */
void archiver_leave_shadow(struct archiver *archiver, uint32_t partition);
/** At the end: logs where they were not read up to `ends`, those of their topic by partition. */
void archiver_tell_unread_shadow(const struct archiver *archiver, const uint64_t *ends);

/* ---- archiver_store.c ---- */

/** Counts an attempt with the store, and whether it failed. @param error  why; NULL with WEIR_OK */
void archiver_note_store(struct archiver *archiver, enum weir_status status, const struct weir_error *error);
/** Counts what waits to be stored, and stores it if that is due. */
void archiver_store_if_due(struct archiver *archiver);
/**
 * Stores all rows. Where there are none, nothing is known of the store.
 *
 * @return whether nothing is left; if false, the ledgers must not change until it is stored
 */
bool archiver_store(struct archiver *archiver);

/* ---- archiver_keep.c ---- */

/** Deletes rows older than archiver.keep_* says, if that is due. */
void archiver_keep_if_due(struct archiver *archiver);

#endif

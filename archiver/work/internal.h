/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the archiver's thread share. Everything belongs to that thread, but what is atomic. */
#ifndef ARCHIVER_WORK_INTERNAL_H
#define ARCHIVER_WORK_INTERNAL_H

#include "archiver/work/archiver.h"
#include "archiver/work/writer.h"

#include <pthread.h>

enum partition_state {
	PARTITION_EMPTY, /* not its own */
	PARTITION_LIVE,
	PARTITION_PARKED, /* its own; it gives nothing until a person does something, or the process starts again */
};

struct partition {
	enum partition_state state;
	struct ledger *ledger; /* where it is live */
	bool at_gap;           /* parked, until somebody says that what its topics have lost may be missing */
	uint32_t writer;       /* that stores it, or tried to */
	uint64_t checkpoint;   /* at a gap: as it is stored; another one says that somebody has */
};

/* How far a partition is: told by the archiver's thread, read by any. */
struct place {
	_Atomic bool live;
	_Atomic uint64_t judged_next, decisions_next;
	_Atomic int64_t clock_ms;
};

struct archiver {
	struct archiver_options options;
	pthread_t thread;
	_Atomic bool stop, drain, ended;
	struct weir_store *store;   /* the first of `stores`, whose writer works in this thread */
	struct weir_store **stores; /* one for each writer */
	struct writer **writers;    /* options.writers of them */
	struct weir_consumer *judged, *decisions;
	struct partition *partitions; /* by number */
	struct place *places;         /* likewise */
	struct weir_frame_reader *reader;
	struct histories *histories;
	/* the assignment */
	uint64_t assignment_version; /* as of the last look */
	int64_t retake_ms;           /* monotonic: not before; what could not be taken is retried */
	int64_t gap_look_ms;         /* likewise: when partitions at a gap are looked at again */
	/* storing */
	bool unsettled; /* what was tried last may be stored, though no answer came: nothing is added to it until then */
	int64_t due_ms, retry_ms; /* monotonic */
	int64_t keep_due_ms;      /* likewise: when old rows are to be removed again */
	struct weir_fault store_fault, bus_fault, keep_fault;
	struct weir_error failure; /* why it ended by itself, or what was not stored */
	enum weir_status status;
	struct archiver_stats stats;
};

static inline const struct weir_bus_ops *bus_of(const struct archiver *archiver)
{
	return archiver->options.bus->ops;
}

/* ---- archiver_partitions.c ---- */

/** Takes what has come to be its own, gives up what has gone. */
void archiver_follow_assignment(struct archiver *archiver);
/** The partition gives nothing more; what it holds is dropped: it lies in the topics. */
void archiver_drop(struct archiver *archiver, uint32_t partition, enum partition_state state);
/** Likewise, with the reason for people. */
void archiver_stick(struct archiver *archiver, uint32_t partition, const char *why);

/** Likewise at a gap in its topics, which `weir recover` goes behind: then it is taken again. */
void archiver_stand_at_gap(struct archiver *archiver, uint32_t partition, uint64_t checkpoint, const char *why);

/* ---- archiver_messages.c ---- */

/** Takes what there is, waiting a little for it. */
void archiver_receive(struct archiver *archiver, int timeout_ms);
/** Whether every live partition stands at, or behind, the ends of its topics that there are now, asked once. */
bool archiver_caught_up(struct archiver *archiver, const uint64_t *ends);
/** Tells how far partitions are. */
void archiver_tell_places(struct archiver *archiver);
/** The topics' ends: judged, then decisions, by partition; the caller frees. NULL: they cannot be told now. */
uint64_t *archiver_ends(struct archiver *archiver);

/* ---- archiver_store.c ---- */

/** Counts what waits to be stored, and stores where it is time. */
void archiver_store_if_due(struct archiver *archiver);
/** Removes what is too old, now and then. */
void archiver_keep_if_due(struct archiver *archiver);
/** Stores what there is. @return whether nothing is left; else the ledgers stay as they are until it has been stored */
bool archiver_store(struct archiver *archiver);

#endif

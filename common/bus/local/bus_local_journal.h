/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One topic of the local bus: its segment files, its queue of messages to write,
 * the thread that writes them, and its readers' positions.
 *
 * The lock guards everything except what is marked as the thread's own. No file is
 * written or read under it, and no other lock is taken while it is held.
 */
#ifndef WEIR_COMMON_BUS_LOCAL_JOURNAL_H
#define WEIR_COMMON_BUS_LOCAL_JOURNAL_H

#include "common/base/deadline.h"
#include "common/bus/local/bus_local_segment.h"

#include <pthread.h>

enum {
	WEIR_BUS_READERS_MAX = 16,
	WEIR_BUS_READER_NAME_BYTES = 64,
	WEIR_BUS_PROBLEM_BYTES = 256,
	WEIR_BUS_GATHERED_BYTES = 1024 * 1024, /* enough to sync before the delay has passed */
};

/* A message on its way to disk; allocated and freed by its producer's thread. */
struct weir_bus_entry {
	struct weir_bus_entry *next;
	struct weir_producer *producer;
	uint64_t tag;
	enum weir_topic topic;
	enum weir_status status; /* WEIR_OK: durable */
	struct weir_bus_record record;
	uint32_t bytes; /* of the whole record */
	char encoded[]; /* its header, filled in when it is written; key; payload */
};

struct weir_bus_entries {
	struct weir_bus_entry *first, **end; /* end: the pointer to which the next one is appended */
	uint64_t bytes;
};

static inline void weir_bus_entries_init(struct weir_bus_entries *entries)
{
	*entries = (struct weir_bus_entries){.end = &entries->first};
}

static inline void weir_bus_entries_add(struct weir_bus_entries *entries, struct weir_bus_entry *entry)
{
	entry->next = NULL;
	*entries->end = entry;
	entries->end = &entry->next;
	entries->bytes += entry->bytes;
}

/* A consumer that waits on a descriptor of its own. */
struct weir_bus_watcher {
	struct weir_bus_watcher *next;
	int descriptor;
	bool waits; /* it has found nothing since it was last woken */
};

/* A named reader: nothing that it may still need is trimmed. positions NULL: this entry is free. */
struct weir_bus_reader {
	char name[WEIR_BUS_READER_NAME_BYTES + 1];
	uint64_t *positions; /* by partition: it does not need offsets below */
};

struct weir_bus_journal_options {
	enum weir_topic topic;
	uint32_t partitions;
	int64_t segment_bytes, retention_bytes, sync_delay_ms; /* as weir_bus_local_options, without defaults */
	int64_t read_bytes;                                    /* kept though every reader has read them */
	uint64_t indexes_max_bytes;                            /* of memory for the indexes of closed segments */
};

struct weir_bus_journal {
	struct weir_bus_journal_options options; /* these three never change */
	uint32_t partitions;
	char *directory;

	pthread_mutex_t lock;
	pthread_cond_t work;    /* for the thread: the queue, the readers' positions or `stopping` changed */
	pthread_cond_t durable; /* for consumers: there is more to read */
	struct weir_bus_entries queue;
	struct weir_bus_segment **segments; /* oldest first; the last one is written */
	uint32_t segment_count;
	uint64_t *next; /* by partition: the offset after the last durable message */
	uint64_t index_bytes;
	uint64_t index_uses; /* counts uses of indexes, to find the least recently used one */
	struct weir_bus_reader readers[WEIR_BUS_READERS_MAX];
	struct weir_bus_watcher *watchers; /* woken where `durable` is signalled */
	bool readers_moved;                /* a position has moved since the thread last trimmed */
	bool readers_unsaved;              /* a position has moved since the readers' file was written */
	bool pausing;                      /* the thread waits for `next_sync`, and is not woken for each message */
	bool hurried;                      /* somebody waits for a message of the queue */
	bool stopping;
	bool published;                       /* something, since it was opened: whoever reads has had the time to say so */
	char problem[WEIR_BUS_PROBLEM_BYTES]; /* "": none */
	int64_t busy_ms; /* monotonic: since when the thread is at the disk; 0: it waits for messages */

	pthread_mutex_t readers_file; /* taken before `lock`: one thread writes the file at a time */
	pthread_mutex_t loading;      /* taken before `lock`: one thread loads an index at a time */

	/* The thread's own. */
	pthread_t thread;
	int fd;      /* of the last segment; -1: none is open */
	bool broken; /* its last write or fsync failed: what is after its length counts as not written */
	bool torn;   /* bytes stand behind its length, as a crash left them: they are cut before it is written */
	uint64_t *planned;
	int64_t readers_saved_ms;
	struct weir_deadline next_sync; /* not earlier, unless enough was gathered or somebody waits */
};

/** Opens the topic's directory, repairs it after a crash, and starts the thread. @return as weir_bus_local_open() */
WEIR_MUST_USE enum weir_status weir_bus_journal_open(const char *directory,
                                                     const struct weir_bus_journal_options *options,
                                                     struct weir_bus_journal **journal, struct weir_error *error);

/** Whether it could be opened. Changes nothing; what is written meanwhile may look damaged. @return as it would */
WEIR_MUST_USE enum weir_status weir_bus_journal_check(const char *directory,
                                                      const struct weir_bus_journal_options *options,
                                                      struct weir_error *error);

/** Writes what is queued if it can, then ends the thread. */
void weir_bus_journal_close(struct weir_bus_journal *journal);

/** Queues a message for the thread, which returns it through weir_producer_deliver(). @thread any */
void weir_bus_journal_send(struct weir_bus_journal *journal, struct weir_bus_entry *entry);

/** Has the thread write what is queued without gathering more. @thread any */
void weir_bus_journal_hurry(struct weir_bus_journal *journal);

/* ---- bus_local_journal.c: finding offsets; the caller holds the lock, except where noted ---- */

/** The first offset that can still be read. */
uint64_t weir_bus_journal_first(const struct weir_bus_journal *journal, uint32_t partition);

/** The segment that has an offset; first <= offset < next. */
struct weir_bus_segment *weir_bus_journal_find(const struct weir_bus_journal *journal, uint32_t partition,
                                               uint64_t offset);

/** Loads a segment's index, unless it is loaded. Takes the lock itself. @return WEIR_INVALID: damaged, or trimmed */
WEIR_MUST_USE enum weir_status weir_bus_journal_load(struct weir_bus_journal *journal, uint64_t sequence,
                                                     struct weir_error *error);

/** Drops indexes of closed segments, the least recently used first, until their memory is within the bound. */
void weir_bus_journal_bound_indexes(struct weir_bus_journal *journal, const struct weir_bus_segment *keep);

/* ---- bus_local_sync.c ---- */

/** The thread's function, for pthread_create(). */
void *weir_bus_journal_run(void *journal);

/* ---- bus_local_readers.c ---- */

/** Reads the readers' file. @return WEIR_INVALID: damaged, or a position is after the end: messages were lost */
WEIR_MUST_USE enum weir_status weir_bus_readers_load(struct weir_bus_journal *journal, struct weir_error *error);
/** Adds a reader at the first offsets, on disk. @param number  its index @return WEIR_FULL; WEIR_INVALID: its name */
WEIR_MUST_USE enum weir_status weir_bus_readers_add(struct weir_bus_journal *journal, const char *name,
                                                    uint32_t *number, struct weir_error *error);
WEIR_MUST_USE enum weir_status weir_bus_readers_forget(struct weir_bus_journal *journal, const char *name,
                                                       struct weir_error *error);
/** Notes that a reader does not need offsets below this one. @thread any */
void weir_bus_readers_move(struct weir_bus_journal *journal, uint32_t number, uint32_t partition, uint64_t offset);
/** Up to where a reader needs no message any more; 0: there is none of that name. @thread any */
uint64_t weir_bus_readers_position(struct weir_bus_journal *journal, const char *name, uint32_t partition);
/** Writes the readers' file. @thread any */
WEIR_MUST_USE enum weir_status weir_bus_readers_save(struct weir_bus_journal *journal, struct weir_error *error);
/** Removes files that no reader needs or, without readers, that exceed the retention. @return how many. @thread the journal's */
uint32_t weir_bus_journal_trim(struct weir_bus_journal *journal);

#endif

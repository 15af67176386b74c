/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the collector share: its state, and saving. */
#ifndef COLLECTOR_FOLLOW_INTERNAL_H
#define COLLECTOR_FOLLOW_INTERNAL_H

#include "collector/follow/collector.h"
#include "collector/follow/format_watch.h"
#include "collector/follow/low_water.h"
#include "collector/send/dead_letter_topic.h"
#include "collector/send/framer.h"
#include "collector/send/sender.h"
#include "collector/source/source_reports.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SOURCE_NAME_BYTES = 128 };

/* Whether a source's times are those of the clock. Zero-initialised; of the thread that reads, but for `behind_ms`. */
struct source_clock {
	_Atomic int64_t behind_ms;       /* of `stream`; 0: no stream is known to be off */
	uint8_t stream[SOURCE_ID_BYTES]; /* that was seen to be off, or right */
	uint64_t ends;                   /* how often the source had nothing more to read */
	int64_t ended_ms;                /* monotonic: the last time */
	int64_t seen_ms;                 /* monotonic: when `stream` was last seen to be off, or right */
	int64_t twice_ms;                /* monotonic: when it was said that its local times exist twice; 0: never */
	struct weir_fault fault;
};

struct collector {
	struct collector_options options;
	struct source_context source_context;
	struct inputs *inputs;
	struct framer *framer;
	struct sender *sender;
	struct dead_letter_topic *dead_topic; /* NULL: dead letters go to a file, or nowhere */
	struct dead_letters *dead;
	struct source_reports *reports;
	struct format_watch *formats; /* of each source */
	struct source_clock *clocks;  /* likewise */
	bool *source_ended;           /* by place: nothing more comes of it */
	uint64_t policy_version;
	struct record_reader *interrupted; /* NULL, or the reader whose chunk was not finished when the producer broke */

	int64_t oldest_ms; /* when the oldest event in open frames was added */
	int64_t save_due_ms, counts_due_ms;
	bool absent_told;        /* which fields of the policy's zones no line has had */
	uint64_t absent_from;    /* records before that policy, which were not looked at for it */
	bool unpublished;        /* something was read since the counts were published */
	bool dirty;              /* marks became safe since the last save */
	bool saving;             /* a save is running in the background */
	int64_t saving_until_ms; /* the next low_water_ms, once the save has succeeded */
	/* after a broken producer, monotonic */
	int64_t owed_ms;         /* when the oldest of what it left unacknowledged was read; 0: nothing is owed */
	int64_t renewed_ms;      /* when it was replaced */
	int64_t resent_ms;       /* when all of it had been read and sent again; 0: not yet */
	bool read_again;         /* something was read since */
	enum weir_status status; /* the first failure */
	struct weir_error error;
	struct weir_fault fault;
	struct weir_notice left_out; /* lines whose writer left the message out */

	pthread_t thread;
	bool started;
	_Atomic bool stop, ended, reopen;
	_Atomic(const struct weir_policy *) next_policy;
	_Atomic uint64_t policy_in_use;
	_Atomic int64_t low_water_ms;     /* monotonic: all that was read before is acknowledged and saved */
	_Atomic int64_t unsaved_since_ms; /* monotonic: since when positions cannot be saved; 0: they are saved */

	pthread_mutex_t lock; /* guards `counts` */
	struct record_counts counts;
	struct weir_counter dead_letters_written, dead_letters_dropped, lost_lines;
};

/** Records a failure, which ends the collector. Only the first one is kept. */
void collector_fail(struct collector *collector, enum weir_status status, const struct weir_error *error);

/** Updates the counts that other threads see. */
void collector_publish_counts(struct collector *collector);

/** A source's name, or its place. @return text */
const char *collector_source_name(const struct collector *collector, size_t place, char *text, size_t bytes);

/** Notes that a source has nothing more to read now. */
void collector_clock_ended(struct source_clock *clock);
/** Whether a chunk that is about to be fed was written just now: its stream goes on from where it had been read to the end. */
bool collector_clock_live(const struct source_clock *clock, struct record_reader *reader,
                          const struct source_chunk *chunk);
/** Compares the times of such a chunk, once it is read, with the clock. @param now_ms  Unix ms, as it was read */
void collector_clock_see(struct collector *collector, struct record_reader *reader, int64_t now_ms);

/** Monotonic: everything read before this is acknowledged, whichever producer sent it. */
int64_t collector_low_water_ms(struct collector *collector);

/** For how long positions could not be saved; 0: they are saved. @thread any */
int64_t collector_unsaved_ms(const struct collector *collector);

/** Saves the safe positions before it returns: used before reading stops, or goes back. */
void collector_save_at_once(struct collector *collector);
/** Saves them in the background each second, while reading continues. */
void collector_save_if_due(struct collector *collector);

/** Says at a start, in one line, of which files no line is read again. Nothing is said where all are new. */
void collector_tell_resumed(const struct collector *collector);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One partition of the archive: its positions in the log's three topics, and the
 * rows collected since it was last stored.
 *
 * The judged topic may hold a frame twice (a limiter that crashed judges again
 * what its checkpoint did not hold): frames count by the number of the record
 * that they judge, each once, in order. Numbers grow also where the topic of
 * events was made anew (limiter/lane/lane_place.h). That rests on a rule of the limiter's
 * (common/specification/guarantees.md, How): no checkpoint passes an offset before
 * its judged frame is acknowledged. So whoever publishes a frame has published, or
 * found published, all before it.
 *
 * Plain structure: no clock, no store, no bus.
 *
 * @thread one at a time
 */
#ifndef ARCHIVER_LEDGER_H
#define ARCHIVER_LEDGER_H

#include "archiver/ledger/counts.h"
#include "archiver/ledger/decision_row.h"
#include "archiver/ledger/histories.h"
#include "common/base/text.h"
#include "common/bus/bus.h"
#include "common/frame/frame.h"
#include "common/store/store.h"

struct ledger_event {
	struct weir_archive_event row; /* its bucket lies in `names`, at bucket_at, and its fields behind that */
	size_t bucket_at;
};

/* How far a topic is taken. */
struct ledger_position {
	uint64_t next;         /* the next offset */
	struct weir_mark last; /* of the message before it: whether the topic is still the same */
};

struct ledger {
	uint32_t partition;
	uint64_t epoch, checkpoint;                         /* stored */
	struct ledger_position positions[WEIR_TOPIC_COUNT]; /* of judged, decisions, and those in shadow mode */
	uint64_t events_next;    /* the first number of a record of events whose judged frame has not been taken */
	int64_t clock_ms;        /* the highest sending time so far */
	uint64_t policy_version; /* of the newest frame */
	bool fresh;              /* nothing was ever stored: it begins where the topics begin */
	bool changed;            /* since it was last stored */
	/* What is to be stored. */
	struct counts *counts;
	struct decision_row *decisions; /* of both modes */
	size_t decision_count, decision_room;
	struct ledger_event *events; /* of zones with a history */
	size_t event_count, event_room;
	struct weir_text names;
	uint64_t event_total; /* counted since it was made: for metrics */
};

struct ledger *ledger_new(uint32_t partition);
/** NULL is fine. */
void ledger_free(struct ledger *ledger);

/** Begins where a stored state says. WEIR_NEWER, WEIR_INVALID: its extra is not what this program writes. */
WEIR_MUST_USE enum weir_status ledger_restore(struct ledger *ledger, const struct weir_partition_state *state,
                                              struct weir_error *error);

/**
 * Takes a message of the judged topic that has been decoded; the ledger then stands after it.
 *
 * @param frame      of kind WEIR_FRAME_JUDGED
 * @param histories  that know the frame's policy version
 * @return whether it counted: false: a frame that had been taken already
 */
bool ledger_judged(struct ledger *ledger, uint64_t offset, const struct weir_frame *frame,
                   const struct histories *histories);
/**
 * Counts a judged frame's events, wherever it came from: what ledger_judged() does once it knows that the frame is new.
 *
 * @param by_event  the frame's judged_offset is the number of its first event in the partition, and an event's id is its
 *                  own number and the place within it, as decisions of --once have them
 */
void ledger_count(struct ledger *ledger, const struct weir_frame *frame, const struct histories *histories,
                  bool by_event);
/** Takes a decision; owns the row from then on. @param topic  where it was: decisions, or those in shadow mode */
void ledger_decision(struct ledger *ledger, enum weir_topic topic, uint64_t offset, struct decision_row *row);
/** Stands behind a message that is not archived. @param topic  judged, decisions, or those in shadow mode */
void ledger_skip(struct ledger *ledger, enum weir_topic topic, uint64_t offset);
/** Remembers the message that was taken last, by which its topic is known again. */
void ledger_mark(struct ledger *ledger, const struct weir_message *message);

/** Rows that storing it would write, about. */
size_t ledger_size(const struct ledger *ledger);
/** Bytes that they take, about. */
size_t ledger_bytes(const struct ledger *ledger);

/** The state that makes it stored, with the checkpoint after its own. @param extra  cleared and filled: state->extra */
void ledger_state(const struct ledger *ledger, struct weir_partition_state *state, struct weir_text *extra);
/** Of a stored state's extra: the number that the next record to be counted has at least. @return false: it is none */
bool ledger_next_number(struct weir_span extra, uint64_t *number);
/** It has been stored: it is empty, and its checkpoint is the next. */
void ledger_stored(struct ledger *ledger);

#endif

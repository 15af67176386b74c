/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames: what travels on weir.events, and back out on weir.judged.
 *
 * A frame is one message of one partition: events of one source, in order, or
 * one control record (a policy, an operator's command). Events of a limiter that
 * answers checks come with what it answered. Everything that changes
 * a shard's state is a frame. Little-endian throughout; varint is LEB128 of at
 * most 10 bytes, svarint is zigzag of it.
 *
 *   bytes  what
 *   2      magic "wF"
 *   1      version: 2 where events have fields or answers, or where a policy or a command says what readers of version 1
 *          do not know; else 1 (a reader takes WEIR_FRAME_VERSION and the one before it)
 *   1      kind (enum weir_frame_kind)
 *   4      checksum: low half of XXH3-64 of everything after it
 *   8      sending time, Unix ms: the partition's clock is the highest so far
 *   16     source id (zero for control records)
 *   8      policy version that the events were matched under (a policy record: its own)
 *   -- events, judged and checks:
 *   8      base time, Unix ms
 *   8      base position in the source: its first event's; or below that, where several collectors may read the source
 *          as one, so that its positions come from each of them
 *   varint zone sets: count, then for each: varint n, then n times varint (zone id << 1 | done)
 *   varint keys: count, then for each: varint length, bytes (the joined key)
 *   varint events: count, then for each:
 *          varint key index
 *          svarint time - the time before it (the base for the first)
 *          varint position - the position before it
 *          varint zone set index << 1 | (1: a cost follows)
 *          varint cost, if said so; else it is 1
 *   in version 2 runs of events with the same fields (frame_fields.h): count, then for each:
 *          varint how many events before it, after the run before, have none
 *          varint how many events have them
 *          varint length, bytes
 *   -- judged only:
 *   8      offset of the events frame that was judged
 *   bytes  for each (event, zone) pair, 4 bits, low half first: enum weir_verdict_bits
 *   -- checks only, always of version 2; where a zone set says done, the event settles a reservation at its cost:
 *   bytes  for each event that opens or settles a reservation: varint how many events lie between it and the one before,
 *          and of one that opens: varint ms until it ends; of one that settles: 16 bytes, the reservation's id
 *   4      how many bytes these are
 *   8      epoch: under which whoever answered has taken the partition
 *   bytes  for each (event, zone) pair, 4 bits, low half first: what was answered, 0 or WEIR_VERDICT_BLOCK
 *   -- policy: the canonical text    -- command: JSON
 */
#ifndef WEIR_COMMON_FRAME_H
#define WEIR_COMMON_FRAME_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/bytes/bits.h"
#include "common/frame/frame_fields.h"

enum {
	WEIR_FRAME_VERSION = 2,
	WEIR_SOURCE_ID_BYTES = 16,
	WEIR_FRAME_TARGET_BYTES = 64 * 1024,    /* a frame is sent when it reaches this */
	WEIR_FRAME_MAX_BYTES = 2 * 1024 * 1024, /* the target and the largest record, with room to spare */
	WEIR_FRAME_EVENTS_MAX = 16384,
	WEIR_FRAME_PAIRS_MAX = 256 * 1024, /* (event, zone) pairs */
	WEIR_RESERVATION_ID_BYTES = 16,
	WEIR_ZONE_SET_MAX = 1024, /* zones in one set */
	/* A judged frame is its events frame with an offset and half a byte a pair behind it. */
	WEIR_FRAME_JUDGED_MAX_BYTES = WEIR_FRAME_MAX_BYTES + 8 + WEIR_FRAME_PAIRS_MAX / 2,
};

/* What an event may hold; the collector refuses records beyond it, and a reader frames. */
#define WEIR_COST_MAX (INT64_C(1) << 40)

enum weir_frame_kind {
	WEIR_FRAME_EVENTS = 1,
	WEIR_FRAME_JUDGED = 2,
	WEIR_FRAME_POLICY = 3,
	WEIR_FRAME_COMMAND = 4,
	WEIR_FRAME_CHECKS = 5, /* events that were answered before they came here; without any it is an owner's marker */
};

enum weir_verdict_bits {
	WEIR_VERDICT_BLOCK = 1,   /* else pass */
	WEIR_VERDICT_LATE = 2,    /* late for some limit */
	WEIR_VERDICT_DECIDED = 4, /* a decision was published */
	WEIR_VERDICT_NONE = 8,    /* not judged: zone unknown, a queue's done, or taken before */
};

/** @return enum weir_verdict_bits of an (event, zone) pair @param verdicts  4 bits for each pair, low half first */
static inline unsigned weir_verdict_of(const uint8_t *verdicts, uint32_t pair)
{
	return (verdicts[pair / 2] >> (pair % 2 * 4)) & 15u;
}

/* ---- writing: one open frame of one partition ---- */

struct weir_frame_writer; /* keeps its buffers from frame to frame */

struct weir_frame_writer *weir_frame_writer_new(void);
void weir_frame_writer_free(struct weir_frame_writer *writer);

/**
 * Starts an empty frame.
 *
 * @param base_position  not above the first event's; below it: see is_common of a frame
 */
void weir_frame_begin(struct weir_frame_writer *writer, const uint8_t source[WEIR_SOURCE_ID_BYTES],
                      uint64_t policy_version, int64_t base_time_ms, uint64_t base_position);

/* One zone of an event; sets are interned by the writer. */
struct weir_frame_zone {
	uint32_t id;
	bool done; /* the record removes the oldest entry of the zone's queues, and is not judged there */
};

/**
 * Adds an event.
 *
 * @param key        borrowed; looked up in the frame's dictionary by bytes, `key_hash` finds its place
 * @param position   not below the event before it
 * @return WEIR_OK; WEIR_FULL: the frame is at a bound, finish it and begin another: nothing was added
 */
WEIR_MUST_USE enum weir_status weir_frame_add(struct weir_frame_writer *writer, struct weir_span key, uint64_t key_hash,
                                              int64_t time_ms, uint64_t position, int64_t cost,
                                              const struct weir_frame_zone *zones, uint32_t zone_count);

/** Prefetches what weir_frame_add() reads first: for whoever knows some events before he adds them. */
void weir_frame_prefetch(const struct weir_frame_writer *writer, uint64_t key_hash);

/**
 * Gives the newest event its fields. Events that lie beside each other and have the same ones share them.
 *
 * @param fields  as weir_fields_put() makes them, at most WEIR_FIELDS_MAX_BYTES; not empty; borrowed
 * @return WEIR_OK; WEIR_FULL: the event stays without
 */
WEIR_MUST_USE enum weir_status weir_frame_add_fields(struct weir_frame_writer *writer, struct weir_span fields);

uint32_t weir_frame_events(const struct weir_frame_writer *writer);
/** Bytes the finished frame would have, but for a few. */
size_t weir_frame_size(const struct weir_frame_writer *writer);
/**
 * Whether to finish it: it has reached the target, or might not take the events of one more record. A frame that is
 * finished whenever it is due is never WEIR_FULL: a record has at most WEIR_ZONES_MAX events, with as many pairs in all.
 */
bool weir_frame_due(const struct weir_frame_writer *writer);

/** Closes the frame; bytes are borrowed from the writer until the next begin. */
struct weir_span weir_frame_finish(struct weir_frame_writer *writer, int64_t sending_time_ms);

/* An event of a frame of checks that opens a reservation, or settles one. */
struct weir_frame_reservation {
	uint32_t event;
	int64_t ttl_ms; /* of one that opens: from its time until it ends by itself; > 0 */
	uint8_t
		id[WEIR_RESERVATION_ID_BYTES]; /* of one that settles: which; of one that opens zero: weir_reservation_id() */
};

enum { WEIR_RESERVATION_TTL_MAX_MS = 86400000 };

/** The id of what an event opens: as unlike others as its source. */
void weir_reservation_id(const uint8_t source[WEIR_SOURCE_ID_BYTES], uint64_t position,
                         uint8_t id[WEIR_RESERVATION_ID_BYTES]);

/**
 * Closes a frame of checks.
 *
 * @param answers  4 bits for each (event, zone) pair, low half first: 0 or WEIR_VERDICT_BLOCK; NULL where there are no events
 * @param reservations  events that open or settle one, ascending: those in a zone set that says done, and others
 */
struct weir_span weir_frame_finish_checks(struct weir_frame_writer *writer, int64_t sending_time_ms, uint64_t epoch,
                                          const uint8_t *answers, const struct weir_frame_reservation *reservations,
                                          uint32_t reservation_count);

/* ---- reading ---- */

struct weir_frame_zone_set {
	const struct weir_frame_zone *zones;
	uint32_t count;
};

struct weir_frame_event {
	uint32_t key;      /* index into keys */
	uint32_t zone_set; /* index into zone_sets */
	int64_t time_ms;
	int64_t cost;
	uint64_t position;
};

/* Events that lie beside each other and have the same fields. */
struct weir_frame_run {
	uint32_t first, count; /* events */
	struct weir_span fields;
};

/* A decoded frame; arrays live in the reader until its next decode, keys point into the message. */
struct weir_frame {
	enum weir_frame_kind kind;
	int64_t sending_time_ms;
	uint8_t source[WEIR_SOURCE_ID_BYTES];
	uint64_t policy_version;
	bool is_common; /* the source's id is the same in all collectors, and several may read it */
	const struct weir_frame_zone_set *zone_sets;
	uint32_t zone_set_count;
	const struct weir_span *keys;
	uint32_t key_count;
	const struct weir_frame_event *events;
	uint32_t event_count;
	const struct weir_frame_run *runs; /* of events with fields, ascending; mostly none */
	uint32_t run_count;
	const struct weir_frame_reservation *reservations; /* of checks, by event: each that settles, and those that open */
	uint32_t reservation_count;
	uint32_t pair_count;     /* (event, zone) pairs in all */
	uint64_t judged_offset;  /* judged */
	uint64_t epoch;          /* checks */
	const uint8_t *verdicts; /* judged, and what was answered in checks: pair_count times 4 bits */
	struct weir_span body;   /* policy and command: their text */
};

/** Whether a frame of the log has events: they came from a collector, or were asked. Judged ones are not in the log. */
static inline bool weir_frame_is_of_events(const struct weir_frame *frame)
{
	return frame->kind == WEIR_FRAME_EVENTS || frame->kind == WEIR_FRAME_CHECKS;
}

/** An event's fields. @param run  0 at first; events are asked about in order @return at NULL: it has none */
static inline struct weir_span weir_frame_fields(const struct weir_frame *frame, uint32_t event, uint32_t *run)
{
	while (*run < frame->run_count && frame->runs[*run].first + frame->runs[*run].count <= event)
		++*run;
	return *run < frame->run_count && frame->runs[*run].first <= event ? frame->runs[*run].fields
	                                                                   : (struct weir_span){.at = NULL};
}

/** What an event of checks opens or settles. @param next  0 at first; events are asked about in order @return NULL: nothing */
static inline const struct weir_frame_reservation *weir_frame_reservation(const struct weir_frame *frame,
                                                                          uint32_t event, uint32_t *next)
{
	while (*next < frame->reservation_count && frame->reservations[*next].event < event)
		++*next;
	return *next < frame->reservation_count && frame->reservations[*next].event == event ? &frame->reservations[*next]
	                                                                                     : NULL;
}

struct weir_frame_reader;

struct weir_frame_reader *weir_frame_reader_new(void);
void weir_frame_reader_free(struct weir_frame_reader *reader);

/**
 * Decodes and checks a whole message: counts, indexes, ranges and the checksum, so that what it gives can be trusted.
 *
 * @param message  borrowed for as long as the frame is used
 * @return WEIR_OK; WEIR_INVALID with the reason; WEIR_NEWER: a version that this program does not know
 */
WEIR_MUST_USE enum weir_status weir_frame_decode(struct weir_frame_reader *reader, struct weir_span message,
                                                 struct weir_frame *frame, struct weir_error *error);

/* A sender's clock may be ahead of the log's by this much. */
enum { WEIR_FRAME_AHEAD_MOST_MS = 5000 };

/**
 * Lowers what a sender whose clock is ahead has said: the sending time to WEIR_FRAME_AHEAD_MOST_MS after the log took the
 * message, and then its events' times to that as well, or buckets would be of tomorrow. Times of checks stay, as they were
 * answered by them. What the log knows decides, so reading a message again gives the same.
 *
 * @param reader       that has decoded the frame
 * @param appended_ms  when the log took it, by the log's clock; 0: not known, and the sender is believed
 * @return by how much the sending time was lowered
 */
int64_t weir_frame_bound_times(struct weir_frame_reader *reader, struct weir_frame *frame, int64_t appended_ms);

/** A control record's message; returned, the caller frees. */
char *weir_frame_control(enum weir_frame_kind kind, int64_t sending_time_ms, uint64_t policy_version,
                         struct weir_span body, size_t *length);

/** Makes a control record's message one of version 2: who knows version 1 alone waits for a newer weir. */
void weir_frame_extend(char *message, size_t length);

/**
 * Turns a message of events or checks into its judged one: the same events, offset and verdicts behind; appended to a
 * buffer.
 *
 * @param verdicts  pair_count times 4 bits, low half first
 * @param out       at least message.length + 8 + (pair_count + 1) / 2 bytes; gives the bytes used
 */
size_t weir_frame_judged(struct weir_span message, uint64_t offset, const uint8_t *verdicts, uint32_t pair_count,
                         char *out);

#endif

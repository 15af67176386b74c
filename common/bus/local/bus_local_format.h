/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of the local bus: segment files of records.
 *
 * Little-endian. A segment file is one header and then records, of all
 * partitions of its topic, in the order in which they were written:
 *
 *   segment header                          record
 *   8  "weirbus" and version (1)            4  "wRec"
 *   4  topic                                4  partition
 *   4  partitions P                         8  offset
 *   8  sequence: the number in its name     4  bytes of the key, plus 1; 0: no key
 *   8  id: random                           4  bytes of key and payload together
 *   8  valid bytes of the file before it    4  durable: this file's bytes known to be on disk when it was written
 *   P x 8  next offset of each partition    4  zero
 *   8  hash of the bytes before             8  hash of key and payload
 *                                           8  hash of the 40 bytes before, by the segment's id
 *                                           .. key, payload
 *
 * `durable` tells a torn tail (cut) from damage (an error): broken bytes below a
 * later record's `durable` were acknowledged. Behind the last batch stands a mark
 * that says the same of it, until the next batch is written over it: a record of
 * partition 65535 and no body, which is not a message. The mark is written once the
 * batch is on disk, and is not synced itself. Because of the id, bytes inside a
 * payload cannot be taken for a record. "Valid bytes of the file before it" is
 * where a file ends whose last writes failed.
 */
#ifndef WEIR_COMMON_BUS_LOCAL_FORMAT_H
#define WEIR_COMMON_BUS_LOCAL_FORMAT_H

#include "common/base/span.h"
#include "common/bus/bus.h"

enum {
	WEIR_BUS_RECORD_HEADER_BYTES = 48,
	WEIR_BUS_SEGMENT_FIXED_BYTES = 48, /* header without offsets */
	WEIR_BUS_SEGMENT_HEADER_MAX_BYTES = WEIR_BUS_SEGMENT_FIXED_BYTES + WEIR_BUS_PARTITIONS_MAX * 8,
};

/* What to do about files of another number of partitions: a format with that number. */
#define WEIR_BUS_PARTITIONS_REMEDY \
	"set \"bus.partitions\" to %u, or choose another --state directory (runbook: partitions-changed)"

struct weir_bus_segment_header {
	enum weir_topic topic;
	uint32_t partitions;
	uint64_t sequence;
	uint64_t id;
	uint64_t previous_bytes;
	const uint64_t *next_offsets; /* encoding: borrowed; decoding: the caller's array of `partitions` */
};

static inline size_t weir_bus_segment_header_bytes(uint32_t partitions)
{
	return WEIR_BUS_SEGMENT_FIXED_BYTES + (size_t)partitions * 8;
}

/** @param bytes  room for weir_bus_segment_header_bytes(header->partitions) */
void weir_bus_segment_header_encode(const struct weir_bus_segment_header *header, char *bytes);

/** Whether the bytes begin with a complete header, of any number of partitions. */
WEIR_MUST_USE bool weir_bus_segment_header_is_whole(struct weir_span bytes);

/**
 * Decodes a header of a known number of partitions.
 *
 * @param next_offsets  room for `partitions` numbers; header->next_offsets then points there
 * @return WEIR_OK; WEIR_NEWER; WEIR_INVALID, also for another number of partitions: the error says why, without the
 *         file's name
 */
WEIR_MUST_USE enum weir_status weir_bus_segment_header_decode(struct weir_span bytes, uint32_t partitions,
                                                              uint64_t *next_offsets,
                                                              struct weir_bus_segment_header *header,
                                                              struct weir_error *error);

struct weir_bus_record {
	uint32_t partition;
	uint64_t offset;
	bool has_key;
	uint32_t key_bytes;
	uint32_t body_bytes; /* key and payload */
	uint32_t durable;
	uint64_t body_hash;
};

/** Writes the 48 bytes before a body, whose hash is in the record. */
void weir_bus_record_encode(const struct weir_bus_record *record, uint64_t segment_id, char *bytes);

/** Writes the 48 bytes of a mark: so many bytes of the file are on disk. */
void weir_bus_mark_encode(uint64_t durable, uint64_t segment_id, char *bytes);

/** Whether 48 bytes are a record or a mark of this segment. @param durable  set to what it says to be on disk */
WEIR_MUST_USE bool weir_bus_durable_decode(const char *bytes, uint64_t segment_id, uint32_t partitions,
                                           uint64_t *durable);

/** Decodes a record's 48 bytes. @return false: they are not a record of this segment, or are a mark */
WEIR_MUST_USE bool weir_bus_record_decode(const char *bytes, uint64_t segment_id, uint32_t partitions,
                                          struct weir_bus_record *record);

/** Whether the body, of body_bytes, matches the record's hash. */
WEIR_MUST_USE bool weir_bus_record_body_is_whole(const struct weir_bus_record *record, const char *body);

static inline uint64_t weir_bus_record_bytes(const struct weir_bus_record *record)
{
	return WEIR_BUS_RECORD_HEADER_BYTES + (uint64_t)record->body_bytes;
}

/** Sets key and payload of a message from a complete record. */
void weir_bus_record_message(const struct weir_bus_record *record, const char *body, struct weir_message *message);

/** Reads what the file `partitions` holds: a number, and a line's end. @return false: it is damaged */
WEIR_MUST_USE bool weir_bus_partitions_decode(const char *text, uint32_t *partitions);

#endif

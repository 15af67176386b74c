/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding and decoding of the local bus's files, only on bytes in memory.
 *
 * Decoding trusts nothing: every count is bounded before it is used, so that a
 * damaged or foreign file leads to an error message.
 */
#include "common/bus/local/bus_local_format.h"

#include "common/bytes/hash.h"
#include "common/files/file_damage.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENT_VERSION = 1 };

static const char segment_magic[8] = {'w', 'e', 'i', 'r', 'b', 'u', 's', SEGMENT_VERSION};
static const char record_magic[4] = {'w', 'R', 'e', 'c'};

enum { MAGIC_NAME_BYTES = 7, RECORD_HASHED_BYTES = 40, MARK_PARTITION = 65535 };

static_assert(MARK_PARTITION >= (int)WEIR_BUS_PARTITIONS_MAX, "no message is of the mark's partition");

static void put32(char *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof value);
}

static void put64(char *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof value);
}

static uint32_t get32(const char *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof value);
	return le32toh(value);
}

static uint64_t get64(const char *at)
{
	uint64_t value;
	memcpy(&value, at, sizeof value);
	return le64toh(value);
}

void weir_bus_segment_header_encode(const struct weir_bus_segment_header *header, char *bytes)
{
	memcpy(bytes, segment_magic, sizeof segment_magic);
	put32(bytes + 8, (uint32_t)header->topic);
	put32(bytes + 12, header->partitions);
	put64(bytes + 16, header->sequence);
	put64(bytes + 24, header->id);
	put64(bytes + 32, header->previous_bytes);
	char *at = bytes + 40;
	for (uint32_t i = 0; i < header->partitions; i++, at += 8)
		put64(at, header->next_offsets[i]);
	put64(at, weir_hash64(bytes, (size_t)(at - bytes)));
}

bool weir_bus_segment_header_is_whole(struct weir_span bytes)
{
	if (bytes.length < WEIR_BUS_SEGMENT_FIXED_BYTES)
		return false;
	uint32_t partitions = get32(bytes.at + 12);
	size_t length = weir_bus_segment_header_bytes(partitions);
	return partitions <= WEIR_BUS_PARTITIONS_MAX && length <= bytes.length &&
	       get64(bytes.at + length - 8) == weir_hash64(bytes.at, length - 8);
}

enum weir_status weir_bus_segment_header_decode(struct weir_span bytes, uint32_t partitions, uint64_t *next_offsets,
                                                struct weir_bus_segment_header *header, struct weir_error *error)
{
	const char *at = bytes.at;
	if (bytes.length < WEIR_BUS_SEGMENT_FIXED_BYTES || memcmp(at, segment_magic, MAGIC_NAME_BYTES) != 0)
		return weir_fail(error, WEIR_INVALID, "its header is damaged");
	if (at[MAGIC_NAME_BYTES] > SEGMENT_VERSION)
		return weir_fail(error, WEIR_NEWER, "written by a newer version of weir");
	if (at[MAGIC_NAME_BYTES] != SEGMENT_VERSION || !weir_bus_segment_header_is_whole(bytes))
		return weir_fail(error, WEIR_INVALID, "its header is damaged");
	uint32_t found = get32(at + 12);
	if (found != partitions) {
		enum weir_status status =
			weir_fail(error, WEIR_INVALID, "created with %u partitions, not %u", found, partitions);
		return error != NULL ? weir_damage_remedy(error, WEIR_BUS_PARTITIONS_REMEDY, found) : status;
	}
	uint32_t topic = get32(at + 8);
	if (topic >= WEIR_TOPIC_COUNT)
		return weir_fail(error, WEIR_INVALID, "the header names an unknown topic");
	*header = (struct weir_bus_segment_header){.topic = (enum weir_topic)topic,
	                                           .partitions = partitions,
	                                           .sequence = get64(at + 16),
	                                           .id = get64(at + 24),
	                                           .previous_bytes = get64(at + 32),
	                                           .next_offsets = next_offsets};
	for (uint32_t i = 0; i < partitions; i++) {
		next_offsets[i] = get64(at + 40 + (size_t)i * 8);
		if (next_offsets[i] > INT64_MAX)
			return weir_fail(error, WEIR_INVALID, "the header has an invalid offset");
	}
	return WEIR_OK;
}

/* The hash includes the segment's id, so that only this segment's writer can have made the header. */
static uint64_t header_hash(const char *bytes, uint64_t segment_id)
{
	char hashed[RECORD_HASHED_BYTES + 8];
	memcpy(hashed, bytes, RECORD_HASHED_BYTES);
	put64(hashed + RECORD_HASHED_BYTES, segment_id);
	return weir_hash64(hashed, sizeof hashed);
}

void weir_bus_record_encode(const struct weir_bus_record *record, uint64_t segment_id, char *bytes)
{
	memcpy(bytes, record_magic, sizeof record_magic);
	put32(bytes + 4, record->partition);
	put64(bytes + 8, record->offset);
	put32(bytes + 16, record->has_key ? record->key_bytes + 1 : 0);
	put32(bytes + 20, record->body_bytes);
	put32(bytes + 24, record->durable);
	put32(bytes + 28, 0);
	put64(bytes + 32, record->body_hash);
	put64(bytes + RECORD_HASHED_BYTES, header_hash(bytes, segment_id));
}

void weir_bus_mark_encode(uint64_t durable, uint64_t segment_id, char *bytes)
{
	struct weir_bus_record mark = {.partition = MARK_PARTITION, .durable = (uint32_t)durable};
	weir_bus_record_encode(&mark, segment_id, bytes);
}

bool weir_bus_record_decode(const char *bytes, uint64_t segment_id, uint32_t partitions, struct weir_bus_record *record)
{
	if (memcmp(bytes, record_magic, sizeof record_magic) != 0 ||
	    get64(bytes + RECORD_HASHED_BYTES) != header_hash(bytes, segment_id))
		return false;
	uint32_t key = get32(bytes + 16);
	*record = (struct weir_bus_record){.partition = get32(bytes + 4),
	                                   .offset = get64(bytes + 8),
	                                   .has_key = key > 0,
	                                   .key_bytes = key > 0 ? key - 1 : 0,
	                                   .body_bytes = get32(bytes + 20),
	                                   .durable = get32(bytes + 24),
	                                   .body_hash = get64(bytes + 32)};
	return record->partition < partitions && record->body_bytes <= WEIR_BUS_MESSAGE_MAX_BYTES &&
	       record->key_bytes <= record->body_bytes;
}

bool weir_bus_durable_decode(const char *bytes, uint64_t segment_id, uint32_t partitions, uint64_t *durable)
{
	struct weir_bus_record record;
	if (!weir_bus_record_decode(bytes, segment_id, MARK_PARTITION + 1, &record) ||
	    (record.partition >= partitions && record.partition != MARK_PARTITION))
		return false;
	*durable = record.durable;
	return true;
}

bool weir_bus_record_body_is_whole(const struct weir_bus_record *record, const char *body)
{
	return weir_hash64(body, record->body_bytes) == record->body_hash;
}

void weir_bus_record_message(const struct weir_bus_record *record, const char *body, struct weir_message *message)
{
	message->partition = record->partition;
	message->offset = record->offset;
	message->appended_ms = 0;
	message->key = (struct weir_span){.at = record->has_key ? body : NULL, .length = record->key_bytes};
	message->payload =
		(struct weir_span){.at = body + record->key_bytes, .length = record->body_bytes - record->key_bytes};
}

bool weir_bus_partitions_decode(const char *text, uint32_t *partitions)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long number = digits > 0 && digits < 6 ? strtoul(text, NULL, 10) : 0;
	*partitions = (uint32_t)number;
	return number > 0 && number <= WEIR_BUS_PARTITIONS_MAX && strcmp(text + digits, "\n") == 0;
}

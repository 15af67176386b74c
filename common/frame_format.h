/* Where a frame's fixed parts stand: what its writer and its reader share. See frame.h for the whole. */
#ifndef WEIR_COMMON_FRAME_FORMAT_H
#define WEIR_COMMON_FRAME_FORMAT_H

#include "common/frame.h"
#include "common/hash.h"

#include <endian.h>

enum {
	FRAME_AT_VERSION = 2,
	FRAME_AT_KIND = 3,
	FRAME_AT_CHECKSUM = 4,
	FRAME_AT_SENDING_TIME = 8,
	FRAME_AT_SOURCE = 16,
	FRAME_AT_POLICY_VERSION = 32,
	FRAME_HEADER_BYTES = 40,
	FRAME_AT_BASE_TIME = 40,
	FRAME_AT_BASE_POSITION = 48,
	FRAME_EVENTS_HEADER_BYTES = 56,
};

static inline void frame_put64(uint8_t *at, uint64_t number)
{
	number = htole64(number);
	memcpy(at, &number, sizeof number);
}

static inline uint64_t frame_get64(const uint8_t *at)
{
	uint64_t number;
	memcpy(&number, at, sizeof number);
	return le64toh(number);
}

static inline uint32_t frame_get32(const uint8_t *at)
{
	uint32_t number;
	memcpy(&number, at, sizeof number);
	return le32toh(number);
}

static inline uint32_t frame_checksum(const uint8_t *frame, size_t length)
{
	return (uint32_t)weir_hash64(frame + FRAME_AT_SENDING_TIME, length - FRAME_AT_SENDING_TIME);
}

/** Magic, version and kind, and then, when all behind it is in place, the checksum. */
static inline void frame_seal(uint8_t *frame, size_t length, enum weir_frame_kind kind)
{
	frame[0] = 'w';
	frame[1] = 'F';
	frame[FRAME_AT_VERSION] = WEIR_FRAME_VERSION;
	frame[FRAME_AT_KIND] = (uint8_t)kind;
	uint32_t checksum = htole32(frame_checksum(frame, length));
	memcpy(frame + FRAME_AT_CHECKSUM, &checksum, sizeof checksum);
}

#endif

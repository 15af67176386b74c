/* SPDX-License-Identifier: Apache-2.0 */
/* Where a frame's fixed parts stand: what its writer and its reader share. See frame.h for the whole. */
#ifndef WEIR_COMMON_FRAME_FORMAT_H
#define WEIR_COMMON_FRAME_FORMAT_H

#include "common/bytes/hash.h"
#include "common/frame/frame.h"

#include <endian.h>

enum {
	WEIR_FRAME_AT_VERSION = 2,
	WEIR_FRAME_AT_KIND = 3,
	WEIR_FRAME_AT_CHECKSUM = 4,
	WEIR_FRAME_AT_SENDING_TIME = 8,
	WEIR_FRAME_AT_SOURCE = 16,
	WEIR_FRAME_AT_POLICY_VERSION = 32,
	WEIR_FRAME_HEADER_BYTES = 40,
	WEIR_FRAME_AT_BASE_TIME = 40,
	WEIR_FRAME_AT_BASE_POSITION = 48,
	WEIR_FRAME_EVENTS_HEADER_BYTES = 56,
};

static inline void weir_frame_put64(uint8_t *at, uint64_t number)
{
	number = htole64(number);
	memcpy(at, &number, sizeof number);
}

static inline uint64_t weir_frame_get64(const uint8_t *at)
{
	uint64_t number;
	memcpy(&number, at, sizeof number);
	return le64toh(number);
}

static inline void weir_frame_put32(uint8_t *at, uint32_t number)
{
	number = htole32(number);
	memcpy(at, &number, sizeof number);
}

static inline uint32_t weir_frame_get32(const uint8_t *at)
{
	uint32_t number;
	memcpy(&number, at, sizeof number);
	return le32toh(number);
}

static inline uint32_t weir_frame_checksum(const uint8_t *frame, size_t length)
{
	return (uint32_t)weir_hash64(frame + WEIR_FRAME_AT_SENDING_TIME, length - WEIR_FRAME_AT_SENDING_TIME);
}

enum { WEIR_FRAME_PLAIN = 1, WEIR_FRAME_EXTENDED = 2 }; /* versions */

/** Magic, version and kind, and then, when all behind it is in place, the checksum. */
static inline void weir_frame_seal(uint8_t *frame, size_t length, uint8_t version, enum weir_frame_kind kind)
{
	frame[0] = 'w';
	frame[1] = 'F';
	frame[WEIR_FRAME_AT_VERSION] = version;
	frame[WEIR_FRAME_AT_KIND] = (uint8_t)kind;
	uint32_t checksum = htole32(weir_frame_checksum(frame, length));
	memcpy(frame + WEIR_FRAME_AT_CHECKSUM, &checksum, sizeof checksum);
}

#endif

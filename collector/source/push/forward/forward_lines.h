/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message's entries as JSON lines:
 *
 *     {"time":1732173600.123456789,"tag":"nginx.access","method":"GET", ...}
 *
 * `time` and `tag` are the entry's and come first. A record's own members of these names are called `_time` and `_tag`,
 * so that nothing in a record passes for them. Fluent Bit's metadata ([[time, metadata], record]) become a member
 * `metadata`, unless there are none. An entry that is no time and map becomes {"tag": ..., "entry": ...}: it has no time, and so
 * ends among the dead letters rather than nowhere.
 *
 * Packed entries are unpacked piece by piece, as far as lines are asked for.
 *
 * @thread one owner
 */
#ifndef COLLECTOR_FORWARD_LINES_H
#define COLLECTOR_FORWARD_LINES_H

#include "collector/input/input_codec.h"
#include "collector/source/push/forward/forward_frame.h"

struct forward_limits {
	size_t line_max;      /* a longer line is cut behind one byte more, which tells that it is longer */
	size_t entry_most;    /* bytes of one unpacked entry */
	uint64_t packed_most; /* bytes that a message may have when it is unpacked */
};

struct forward_lines {
	const struct forward_frame *frame;
	struct forward_limits limits;
	struct msgpack rest;   /* entries, or packed bytes, that are still to be read */
	struct weir_text head; /* "tag":"..." */
	/* of packed ones: what is unpacked, from `begin` on not taken yet */
	const struct input_codec_ops *codec;
	void *codec_state;
	struct weir_text window;
	size_t begin;
	struct msgpack_extent extent;
	uint64_t unpacked;
};

/** @param frame  with entries; borrowed until the deinit, with its bytes */
void forward_lines_init(struct forward_lines *lines, const struct forward_frame *frame,
                        const struct forward_limits *limits);
void forward_lines_deinit(struct forward_lines *lines);

/**
 * Appends lines, each with its '\n', until the text has so many bytes or lines.
 *
 * @param count  raised by the lines
 * @return WEIR_OK: there may be more; WEIR_END: these were all; WEIR_INVALID: what follows cannot be read
 */
WEIR_MUST_USE enum weir_status forward_lines_next(struct forward_lines *lines, size_t bytes, uint32_t most_lines,
                                                  struct weir_text *text, uint32_t *count, struct weir_error *error);

#endif

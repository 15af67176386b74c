/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits a TCP connection into messages (RFC 6587). A message is either "LENGTH SP MESSAGE" (octet counting), where the
 * message begins with "<", or ends at a newline or a NUL. Whether it is counted is decided for each message. Which byte
 * ends the others is decided by the end of the first of them, as a message may contain the other byte.
 *
 * @thread one owner
 */
#ifndef COLLECTOR_SYSLOG_FRAMES_H
#define COLLECTOR_SYSLOG_FRAMES_H

#include "common/base/span.h"

/* One connection's bytes that are not taken yet. */
struct syslog_frames {
	size_t line_max; /* a longer message takes no more memory than this */
	char *bytes;
	size_t capacity;
	size_t begin, end;
	size_t searched; /* there is no end in so many bytes from begin on */
	bool told;       /* it is known which byte ends a message that is not counted */
	char delimiter;
	/* skipping: a message exceeds line_max; bytes[0 .. line_max) is its beginning, the rest is only counted */
	bool skipping, counted; /* counted: its length was given */
	uint64_t left;          /* if counted: how many octets of it are still to come */

	uint64_t skipped;
};

struct syslog_frame {
	struct weir_span message; /* borrowed until the next syslog_frames_room() */
	uint64_t skipped;         /* above 0: it was too long, and this many of its bytes are missing here */
};

enum syslog_frame_status {
	SYSLOG_FRAME_NONE, /* more bytes are needed */
	SYSLOG_FRAME_OK,
	SYSLOG_FRAME_CUT, /* the connection ended within a message whose length was given */
};

void syslog_frames_init(struct syslog_frames *frames, size_t line_max);
void syslog_frames_deinit(struct syslog_frames *frames);

/** Where to read to, and at most how much: at least one byte. Call it only after SYSLOG_FRAME_NONE. */
char *syslog_frames_room(struct syslog_frames *frames, size_t *bytes);

/** Says how many bytes were read there. */
void syslog_frames_added(struct syslog_frames *frames, size_t bytes);

/** Takes the next message. @param ended  no more bytes will come, so a last line needs no newline */
enum syslog_frame_status syslog_frames_next(struct syslog_frames *frames, bool ended, struct syslog_frame *frame);

/** Whether it holds nothing of any message. */
bool syslog_frames_empty(const struct syslog_frames *frames);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages out of a TCP connection (RFC 6587): "LENGTH SP MESSAGE", where the message begins with "<", or a message and
 * a newline or a NUL, each as its sender likes. Whether it is counted is told message by message; which of the two ends
 * the others is what ended the first of them: a message may contain the other.
 *
 * @thread one owner
 */
#ifndef COLLECTOR_SYSLOG_FRAMES_H
#define COLLECTOR_SYSLOG_FRAMES_H

#include "common/base/span.h"

/* One connection's bytes that are no whole message yet. */
struct syslog_frames {
	size_t line_max; /* a longer message costs no more memory than this */
	char *bytes;
	size_t capacity;
	size_t begin, end;
	size_t searched; /* from begin on: no end lies there */
	bool told;       /* which byte ends a message that is not counted */
	char delimiter;
	/* a message above line_max: its first bytes are bytes[0 .. line_max], the rest is counted */
	bool skipping, counted;
	uint64_t left; /* octets of it that are to come, where they were counted */
	uint64_t skipped;
};

struct syslog_frame {
	struct weir_span message; /* borrowed until the next syslog_frames_room() */
	uint64_t skipped;         /* above 0: it was too long, and so many bytes of it are not here */
};

enum syslog_frame_status {
	SYSLOG_FRAME_NONE, /* more bytes are needed */
	SYSLOG_FRAME_OK,
	SYSLOG_FRAME_CUT, /* the connection ended within a message whose length was given */
};

void syslog_frames_init(struct syslog_frames *frames, size_t line_max);
void syslog_frames_deinit(struct syslog_frames *frames);

/** Where to read to, and how much: at least one byte. Call it only when next() gave NONE. */
char *syslog_frames_room(struct syslog_frames *frames, size_t *bytes);

/** So many bytes were put there. */
void syslog_frames_added(struct syslog_frames *frames, size_t bytes);

/** The next message. @param ended  no more bytes will come: a last line needs no newline */
enum syslog_frame_status syslog_frames_next(struct syslog_frames *frames, bool ended, struct syslog_frame *frame);

/** Whether nothing of a message is held. */
bool syslog_frames_empty(const struct syslog_frames *frames);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which frames are in flight, and which stream positions wait for them.
 *
 * Frames are numbered in the order of sending, and may be acknowledged in any
 * order. A mark says that a stream is safe up to a position once every frame with
 * a number below the mark's is acknowledged.
 */
#ifndef COLLECTOR_IN_FLIGHT_H
#define COLLECTOR_IN_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct in_flight;

struct in_flight_mark {
	void *stream; /* the caller's */
	uint64_t position;
	uint64_t lines; /* how many lines the stream has up to there */
	uint64_t below; /* safe when every frame with a smaller number is acknowledged */
};

struct in_flight *in_flight_new(void);
void in_flight_free(struct in_flight *flight);

/** Counts a frame as sent. @return its number */
uint64_t in_flight_send(struct in_flight *flight, int64_t now_ms);

/** Notes that a frame was acknowledged. @return how long that took, ms */
int64_t in_flight_acknowledge(struct in_flight *flight, uint64_t number, int64_t now_ms);

/** How many frames are not acknowledged. */
uint64_t in_flight_count(const struct in_flight *flight);

/** When the oldest of them was sent; `now_ms` if there is none. */
int64_t in_flight_oldest_ms(const struct in_flight *flight, int64_t now_ms);

/**
 * Notes that everything read of the stream up to the position has been sent. Replaces a mark of the stream that waits
 * for the same frames, so the number of marks grows with the frames in flight and not with what is read.
 */
void in_flight_mark(struct in_flight *flight, void *stream, uint64_t position, uint64_t lines);

/** Takes the next mark that has become safe, in order; false: there is none. */
bool in_flight_safe(struct in_flight *flight, struct in_flight_mark *mark);

#endif

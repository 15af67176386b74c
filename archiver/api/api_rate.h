/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often each client of the API may ask: the generic cell rate algorithm, as
 * a zone with "gcra" would have it.
 *
 * weir's own limiter keeps state that survives, by the log; here a table of
 * fixed size in memory is enough, and no role may reach into another's code.
 */
#ifndef ARCHIVER_API_RATE_H
#define ARCHIVER_API_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct api_rate;

/** @param rate  requests a second on average, of which `API_RATE_BURST_S` seconds may come at once; 0: all pass */
struct api_rate *api_rate_new(int64_t rate);
/** NULL is fine. */
void api_rate_free(struct api_rate *rate);

enum { API_RATE_BURST_S = 4 };

/**
 * Counts one request of a client, if it passes.
 *
 * @param client   any 64 bits that stand for it
 * @param now_us   a clock that never goes back
 * @param wait_s   set where it does not pass: seconds until it would, at least 1
 * @thread any
 */
bool api_rate_take(struct api_rate *rate, uint64_t client, int64_t now_us, unsigned *wait_s);

#endif

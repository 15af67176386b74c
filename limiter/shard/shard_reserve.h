/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations in the log: opening and settling them as frames of checks say. The shard's files alone. */
#ifndef LIMITER_SHARD_RESERVE_H
#define LIMITER_SHARD_RESERVE_H

#include "limiter/shard/internal.h"

/** What a settlement corrects. @return false: there is no such reservation of the bucket, or it has ended */
bool shard_find_correction(const struct reservations *reservations, const uint8_t *id, uint64_t low, uint32_t high,
                           int64_t t, int64_t cost, const struct override_effect *effect,
                           struct bucket_correction *correction);

/**
 * Settles a reservation of a lookup's bucket.
 *
 * @param correction  set, also where it is 0
 * @param verdict     its bits are 0, or WEIR_VERDICT_DECIDED alone
 * @return false: there is no such reservation
 */
bool shard_settle(struct shard *shard, struct lookup *lookup, const struct weir_frame_event *event,
                  const struct weir_frame_reservation *named, struct bucket_correction *correction,
                  struct bucket_verdict *verdict);

/** Opens a reservation: its check was judged, with these bits. @param is_own  it is known among those that may be settled */
void shard_open_reservation(struct shard *shard, const struct lookup *lookup, const struct weir_frame_event *event,
                            int64_t ttl_ms, unsigned bits, bool is_own);

/**
 * What reservations of a bucket, or of all of a zone, took is gone, or counts at other rates: they give nothing back. Copies
 * that may have been given something are made again.
 */
void shard_void_bucket(struct shard *shard, uint64_t low, uint32_t high);
void shard_void_zone(struct shard *shard, uint32_t zone_id);

/** A policy follows: what a zone whose limits change took is counted no more. */
void shard_void_changed(struct shard *shard, const struct compiled_policy *next);

#endif

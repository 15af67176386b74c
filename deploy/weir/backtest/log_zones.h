/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which zones of the policies that are tried are carried by a log's frames. A frame has a record's keys and zones, not its
 * fields: so a zone is carried where the policy that the events were matched under has one with the same key, the same
 * records ("match", "exempt", "sources"), and the same "done" of its queues. Its limits may be any.
 */
#ifndef DEPLOY_WEIR_BACKTEST_LOG_ZONES_H
#define DEPLOY_WEIR_BACKTEST_LOG_ZONES_H

#include "common/frame/frame.h"
#include "deploy/weir/backtest/policies.h"

/* For one version of the log's policy. */
struct log_zones {
	uint64_t version;
	uint32_t zone_count; /* of the log's policy */
	uint32_t *ids;       /* of its zones */
	uint32_t **places;   /* of each: the zones that it carries, by place in the joined policy, ascending */
	uint32_t *counts;    /* how many those are */
	bool *lacks;         /* by place in the joined policy: nothing carries it */
};

/** @param policy  of the log */
void log_zones_init(struct log_zones *zones, const struct weir_policy *policy,
                    const struct backtest_policies *policies);
void log_zones_deinit(struct log_zones *zones);

/**
 * What a frame's set of zones carries.
 *
 * @param carried  room for policies' zone_count
 * @return how many: none of the policies' zones is about the event where it is 0
 */
uint32_t log_zones_carried(const struct log_zones *zones, const struct weir_frame_zone_set *set,
                           struct weir_frame_zone *carried);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policies that are compared, and the one that they are judged as: its zones are theirs, one policy's behind
 * another's. No zone touches another, so each is judged as it is alone; zones that share a key share its work.
 */
#ifndef DEPLOY_WEIR_BACKTEST_POLICIES_H
#define DEPLOY_WEIR_BACKTEST_POLICIES_H

#include "common/base/exit.h"
#include "common/config/config.h"
#include "common/exempt/exempt_list.h"
#include "deploy/weir/backtest/figures.h"

struct backtest_policy {
	const char *path;           /* borrowed */
	char *name;                 /* the file's, without its folder and ".json"; the path where others have it, too */
	struct weir_config *config; /* owned; its zones have the names and ids that people know */
	uint32_t first;             /* its first zone's place in the joined policy */
};

struct backtest_policies {
	struct backtest_policy *at;
	uint32_t count;
	uint32_t zone_count;        /* of all */
	uint32_t *owners;           /* by place in the joined policy: whose zone it is */
	struct figures_pair *pairs; /* zones that answer the same question: of the first policy, and of another */
	uint32_t pair_count;
};

/**
 * Reads the configurations. What is wrong is said, of all of them.
 *
 * @param paths  borrowed
 * @return WEIR_EXIT_NOT_YET: go on; else the exit code
 */
enum weir_exit policies_load(struct backtest_policies *policies, const char *const *paths, uint32_t count,
                             struct weir_exempt_lists *lists);
void policies_deinit(struct backtest_policies *policies);

/** The policy that all are judged as: its zone at place i has the id i + 1. @param joined  returned */
WEIR_MUST_USE enum weir_status policies_join(const struct backtest_policies *policies, struct weir_policy **joined,
                                             struct weir_error *error);

/** The zone at a place of the joined policy, as its own policy has it. */
const struct weir_zone *policies_zone(const struct backtest_policies *policies, uint32_t place);

#endif

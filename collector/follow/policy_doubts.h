/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a policy says and can hardly mean: entries of "exempt" and values of "match" that nothing ever equals. Such a policy
 * is no error, but would look like one by which nobody is exempt, or over a limit.
 */
#ifndef COLLECTOR_POLICY_DOUBTS_H
#define COLLECTOR_POLICY_DOUBTS_H

#include "common/config/config.h"
#include "common/exempt/exempt_list.h"

/**
 * Told of one doubt.
 *
 * @param zone    its place in the policy
 * @param member  where in the zone: "exempt", "match.path", "limits[0].done.method"; NULL: it is of the zone as a whole
 * @param words   what is to be doubted, and what helps
 */
typedef void policy_doubt(void *context, uint32_t zone, const char *member, const char *words);

/**
 * Tells each doubt about a policy, at most DOUBTS_TOLD of one member.
 *
 * @param config  whose sources the zones may name; NULL: others may have more
 * @param lists   of its "exempt"; NULL: they are not looked at
 */
void policy_doubts(const struct weir_policy *policy, const struct weir_config *config, struct weir_exempt_lists *lists,
                   policy_doubt *tell, void *context);

/* Of which policy doubts are logged. */
struct policy_doubts_log {
	const struct weir_log *log;
	const struct weir_policy *policy;
	const char *file; /* of the policy, for the words where there are several; NULL: there is one */
};

/** A policy_doubt that is a warning in the log. @param context  a struct policy_doubts_log */
void policy_doubt_log(void *context, uint32_t zone, const char *member, const char *words);

enum { DOUBTS_TOLD = 8 };

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Zones that nothing can ever be in, as no source gives what they ask for: a misspelt field, most often; and doubts. */
#ifndef DEPLOY_WEIR_RUN_UNMATCHED_H
#define DEPLOY_WEIR_RUN_UNMATCHED_H

#include "common/config/config.h"
#include "common/exempt/exempt_list.h"
#include "common/log/log.h"

/**
 * Warns of each zone of the policy that no source of the configuration can match, and of what it can hardly mean.
 *
 * @param file  of the policy, for the words where there are several; NULL: there is one
 */
void unmatched_tell(const struct weir_config *config, const struct weir_policy *policy, struct weir_exempt_lists *lists,
                    const char *file, const struct weir_log *log);

#endif

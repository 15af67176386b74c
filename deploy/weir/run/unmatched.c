/* SPDX-License-Identifier: Apache-2.0 */
/* Such a run is not an error, but would look like one in which nobody was over a limit. */
#include "deploy/weir/run/unmatched.h"

#include "collector/follow/inputs.h"
#include "collector/follow/policy_doubts.h"

void unmatched_tell(const struct weir_config *config, const struct weir_policy *policy, struct weir_exempt_lists *lists,
                    const char *file, const struct weir_log *log)
{
	struct policy_doubts_log to = {log, policy, file};
	struct weir_error error;
	if (inputs_each_lack(config, policy, lists, policy_doubt_log, &to, &error) != WEIR_OK)
		weir_log(log, WEIR_LOG_WARNING, "policy", "%s%s%s", file != NULL ? file : "", file != NULL ? ": " : "",
		         error.text);
	policy_doubts(policy, config, lists, policy_doubt_log, &to);
}

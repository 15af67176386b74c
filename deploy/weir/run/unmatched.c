/* SPDX-License-Identifier: Apache-2.0 */
/* Such a run is not an error, but would look like one in which nobody was over a limit. */
#include "deploy/weir/run/unmatched.h"

#include "collector/follow/inputs.h"
#include "collector/follow/policy_doubts.h"

struct teller {
	const struct weir_log *log;
};

static void tell(void *context, const struct weir_zone *zone, const char *field, enum inputs_use use)
{
	const struct weir_log *log = ((const struct teller *)context)->log;
	switch (use) {
	case INPUTS_MATCHES:
		weir_log(log, WEIR_LOG_WARNING, "policy", "zone \"%s\" never matches: no source provides the field \"%s\"",
		         zone->name, field);
		break;
	case INPUTS_KEEPS:
		weir_log(log, WEIR_LOG_WARNING, "policy",
		         "zone \"%s\", history: no source provides the field \"%s\", so none is kept", zone->name, field);
		break;
	case INPUTS_VERIFIES:
		weir_log(log, WEIR_LOG_WARNING, "policy",
		         "zone \"%s\", exempt: no source provides the field \"%s\", so no robot is exempt as verified",
		         zone->name, field);
		break;
	}
}

void unmatched_tell(const struct weir_config *config, const struct weir_policy *policy, struct exempt_lists *lists,
                    const struct weir_log *log)
{
	struct teller teller = {.log = log};
	struct weir_error error;
	if (inputs_each_lack(config, policy, lists, tell, &teller, &error) != WEIR_OK)
		weir_log(log, WEIR_LOG_WARNING, "policy", "%s", error.text);
	policy_doubts_log(policy, config, lists, log);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Such a run is not an error, but would look like one in which nobody was over a limit. */
#include "deploy/weir/run/unmatched.h"

#include "collector/follow/inputs.h"
#include "collector/follow/policy_doubts.h"

struct teller {
	const struct weir_log *log;
	const struct weir_policy *policy;
	const char *file, *colon; /* before the words; both empty where there is one policy alone */
};

static void tell(void *context, const struct weir_zone *zone, const char *field, enum inputs_use use)
{
	const struct teller *teller = context;
	const struct weir_log *log = teller->log;
	switch (use) {
	case INPUTS_MATCHES:
		weir_log(log, WEIR_LOG_WARNING, "policy", "%s%szone \"%s\" never matches: no source provides the field \"%s\"",
		         teller->file, teller->colon, zone->name, field);
		break;
	case INPUTS_KEEPS:
		weir_log(log, WEIR_LOG_WARNING, "policy",
		         "%s%szone \"%s\", history: no source provides the field \"%s\", so none is kept", teller->file,
		         teller->colon, zone->name, field);
		break;
	case INPUTS_VERIFIES:
		weir_log(log, WEIR_LOG_WARNING, "policy",
		         "%s%szone \"%s\", exempt: no source provides the field \"%s\", so no robot is exempt as verified",
		         teller->file, teller->colon, zone->name, field);
		break;
	}
}

/* A policy_doubt. */
static void tell_doubt(void *context, uint32_t zone, const char *member, const char *words)
{
	const struct teller *teller = context;
	weir_log(teller->log, WEIR_LOG_WARNING, "policy", "%s%szone \"%s\", %s: %s", teller->file, teller->colon,
	         teller->policy->zones[zone].name, member, words);
}

void unmatched_tell(const struct weir_config *config, const struct weir_policy *policy, struct weir_exempt_lists *lists,
                    const char *file, const struct weir_log *log)
{
	struct teller teller = {
		.log = log, .policy = policy, .file = file != NULL ? file : "", .colon = file != NULL ? ": " : ""};
	struct weir_error error;
	if (inputs_each_lack(config, policy, lists, tell, &teller, &error) != WEIR_OK)
		weir_log(log, WEIR_LOG_WARNING, "policy", "%s%s%s", teller.file, teller.colon, error.text);
	policy_doubts(policy, config, lists, tell_doubt, &teller);
}

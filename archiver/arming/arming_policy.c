/* SPDX-License-Identifier: Apache-2.0 */
/* The number is taken in the store, which refuses another text under it: of several who take it, one has it. */
#include "archiver/arming/arming_policy.h"

#include "common/base/clock.h"
#include "common/cluster/policy_log.h"
#include "common/cluster/policy_note.h"
#include "common/cluster/policy_recall.h"

#include <string.h>

static enum weir_status take_number(struct weir_store *store, const struct weir_policy_history *history,
                                    uint64_t behind, struct weir_policy *policy, uint64_t *version,
                                    struct weir_error *error)
{
	const struct weir_policy *newest = history->count > 0 ? history->policies[history->count - 1] : NULL;
	if (newest == NULL || (newest->version != behind && strcmp(newest->text, policy->text) != 0))
		return WEIR_AGAIN;
	return weir_policy_number(store, (const struct weir_policy *const *)history->policies, history->count, policy,
	                          version, error);
}

enum weir_status arming_policy_put(struct weir_store *store, struct weir_bus *bus, uint64_t behind,
                                   struct weir_policy *policy, int64_t wait_ms, uint64_t *version,
                                   struct weir_error *error)
{
	struct weir_policy_note note = {.at_ms = weir_wall_ms(), .by = WEIR_POLICY_AUTHOR_SELF};
	struct weir_policy_history history;
	struct weir_policies_recalled recalled;
	enum weir_status status = weir_policy_recall(store, bus, &recalled, error);
	if (status == WEIR_OK)
		status = weir_policy_check_checkpoints(store, bus->partitions, error);
	if (status == WEIR_OK)
		status = weir_policy_history_load(store, &history, error);
	if (status != WEIR_OK)
		return status;
	status = take_number(store, &history, behind, policy, version, error);
	weir_policy_history_deinit(&history);
	if (status == WEIR_OK)
		status = weir_policy_note_put(store, *version, &note, error);
	return status == WEIR_OK ? weir_policy_append(store, bus, *version, note.at_ms, wait_ms, error) : status;
}

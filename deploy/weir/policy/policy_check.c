/* SPDX-License-Identifier: Apache-2.0 */
/* What one machine can do and a cluster cannot. */
#include "deploy/weir/policy/policy_check.h"

#include "common/bytes/http_address.h"

enum weir_status policy_check_cluster(const struct weir_policy *policy, struct weir_error *error)
{
	for (uint32_t z = 0; z < policy->zone_count; z++) {
		const struct weir_zone *zone = &policy->zones[z];
		for (uint32_t i = 0; i < zone->exempt_list_count; i++) {
			if (weir_http_address_has_account(zone->exempt_lists[i]))
				return weir_fail(
					error, WEIR_INVALID,
					"zone \"%s\": the address of an exempt list must have no account: it would stand in the "
					"policy for all who read it",
					zone->name);
			if (zone->exempt_lists[i][0] != '/' && !weir_http_address_meant(zone->exempt_lists[i]))
				return weir_fail(
					error, WEIR_INVALID,
					"zone \"%s\": every collector reads the exempt list %s by itself, as it stays a file: give its "
					"whole path",
					zone->name, zone->exempt_lists[i]);
		}
	}
	return WEIR_OK;
}

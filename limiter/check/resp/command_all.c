/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WEIR.ALL: several keys and zones, of which all count or none.
 *
 * The reply is one, so the parts' slots are written together; they are gathered together, too.
 */
#include "common/policy/policy.h"
#include "common/resp/resp_number.h"
#include "limiter/check/resp/internal.h"

enum { FIRST_PART = 2, PART_WORDS = 3 };

/*
 * Looks at all words before anything is asked.
 *
 * @param durable, zones  set; zones are NULL before there is a policy
 * @return why not; NULL: they are good
 */
static const char *refuse(struct connection *connection, const struct weir_resp_command *words, int64_t count,
                          bool *durable, const struct weir_zone *zones[CHECK_BUNDLE_MAX],
                          const struct weir_zone **denied, struct weir_error *error)
{
	int64_t cost;
	uint32_t word_count;
	bool possible = count >= 1 && count <= CHECK_BUNDLE_MAX;
	uint32_t parts_end = FIRST_PART + PART_WORDS * (possible ? (uint32_t)count : 0);
	*durable = check_durable(words, parts_end, &word_count);
	if (!possible || word_count != parts_end)
		return "WEIR.ALL takes how many checks follow, 1 to 16, and of each key, zone and cost; then DURABLE, or nothing";
	for (int64_t i = 0; i < count; i++) {
		const struct weir_span *part = &words->words[FIRST_PART + PART_WORDS * i];
		const struct weir_zone *zone = zones[i] = check_zone(connection, part[1], error);
		if (zone == NULL && connection->server->policy != NULL)
			return error->text;
		if (zone != NULL && !resp_user_may_ask(connection->user, zone)) {
			*denied = zone; /* whether the key could be asked for there is no business of the user's */
			return NULL;
		}
		if (zone != NULL && check_can_be(zone, part[0], error) != WEIR_OK)
			return error->text;
		if (!weir_resp_number(part[2], &cost) || cost < 0 || cost > WEIR_COST_MAX)
			return "cost must be a number from 0 to 1099511627776";
	}
	return NULL;
}

bool run_all(struct connection *connection, const struct weir_resp_command *words)
{
	struct weir_error error;
	int64_t count;
	bool durable;
	const struct weir_zone *zones[CHECK_BUNDLE_MAX], *denied = NULL;
	if (!weir_resp_number(words->words[1], &count))
		count = 0;
	const char *why = refuse(connection, words, count, &durable, zones, &denied, &error);
	if (why != NULL)
		return check_fail(connection, why);
	if (denied != NULL)
		return check_deny(connection, denied);
	if (zones[0] == NULL)
		return check_no_policy(connection, REPLY_PART, (uint32_t)count);
	if (!slots_together(connection, (uint32_t)count))
		return false;
	uint32_t bundle = ++connection->server->bundles;
	if (bundle == 0) /* means: of none */
		bundle = ++connection->server->bundles;
	for (int64_t i = 0; i < count; i++) {
		const struct weir_span *part = &words->words[FIRST_PART + PART_WORDS * i];
		bool more;
		struct check_ask *ask = check_take(connection, zones[i], part[0], REPLY_PART, &more);
		(void)weir_resp_number(part[2], &ask->cost);
		ask->bundle = bundle;
		ask->durable |= durable;
		connection->last->together = i == 0 ? (uint32_t)count : 0;
	}
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies, numbered; and their zones as rows, so that whoever asks the
 * database by SQL finds names and limits there.
 */
#include "common/store/sqlite/internal.h"

#include "common/policy/policy.h"

#include <inttypes.h>

static enum weir_status put_limit(struct weir_database *database, uint64_t version, const struct weir_zone *zone,
                                  uint32_t number, struct weir_error *error)
{
	const struct weir_limit *limit = &zone->limits[number];
	struct weir_statement *statement = weir_database_use(database, WEIR_STORE_ZONE_PUT);
	weir_statement_number(statement, 1, zone->id);
	weir_statement_number(statement, 2, number + 1);
	weir_statement_text(statement, 3, weir_span_of(zone->name));
	weir_statement_text(statement, 4, weir_span_of(zone->description));
	weir_statement_text(statement, 5, weir_span_of(weir_mode_name(zone->mode)));
	weir_statement_text(statement, 6, weir_span_of(limit->algorithm->name));
	weir_statement_number(statement, 7, (uint64_t)limit->rate);
	weir_statement_number(statement, 8, (uint64_t)limit->window_ms);
	weir_statement_number(statement, 9, (uint64_t)limit->burst);
	weir_statement_number(statement, 10, (uint64_t)weir_limit_value(limit, "precision"));
	weir_statement_number(statement, 11, (uint64_t)weir_limit_value(limit, "lateness"));
	weir_statement_number(statement, 12, (uint64_t)weir_limit_value(limit, "offset"));
	weir_statement_number(statement, 13, (uint64_t)weir_limit_value(limit, "penalize"));
	weir_statement_number(statement, 14, (uint64_t)zone->block_for_ms);
	weir_statement_number(statement, 15, version);
	return weir_statement_run(database, statement, NULL, error);
}

/*
 * A zone is as the newest policy that has it says, in whichever order they come. Rows of zones that it has no more stay:
 * what was counted under them keeps its names. A text that is no policy which this program reads has no rows.
 */
static enum weir_status put_zones(struct weir_database *database, uint64_t version, struct weir_span text,
                                  struct weir_error *error)
{
	struct weir_policy *policy;
	enum weir_status status = WEIR_OK;
	if (weir_policy_decode(version, text.at, text.length, &policy, NULL) != WEIR_OK)
		return WEIR_OK;
	for (uint32_t i = 0; i < policy->zone_count && status == WEIR_OK; i++) {
		const struct weir_zone *zone = &policy->zones[i];
		struct weir_statement *statement = weir_database_use(database, WEIR_STORE_ZONE_REMOVE);
		weir_statement_number(statement, 1, zone->id);
		weir_statement_number(statement, 2, version);
		status = weir_statement_run(database, statement, NULL, error);
		for (uint32_t number = 0; number < zone->limit_count && status == WEIR_OK; number++)
			status = put_limit(database, version, zone, number, error);
	}
	weir_policy_free(policy);
	return status;
}

/* WEIR_END: nobody has the number. */
static enum weir_status compare_policy(struct weir_database *database, uint64_t version, struct weir_span text,
                                       struct weir_error *error)
{
	struct weir_statement *statement = weir_database_use(database, WEIR_STORE_POLICY_GET);
	weir_statement_number(statement, 1, version);
	enum weir_status status = weir_statement_step(database, statement, error);
	if (status == WEIR_OK && !weir_span_equal(weir_row_bytes(statement, 0), text))
		status =
			weir_fail(error, WEIR_INVALID, "policy version %" PRIu64 " already exists with other contents", version);
	return status;
}

static enum weir_status put_policy(struct weir_database *database, uint64_t version, struct weir_span text,
                                   struct weir_error *error)
{
	enum weir_status status = compare_policy(database, version, text, error);
	if (status != WEIR_END)
		return status;
	struct weir_statement *statement = weir_database_use(database, WEIR_STORE_POLICY_PUT);
	weir_statement_number(statement, 1, version);
	weir_statement_bytes(statement, 2, text);
	status = weir_statement_run(database, statement, NULL, error);
	return status == WEIR_OK ? put_zones(database, version, text, error) : status;
}

enum weir_status weir_store_policy_put(struct weir_store *base, uint64_t version, struct weir_span text,
                                       struct weir_error *error)
{
	struct weir_database *database = weir_store_sqlite(base)->database;
	enum weir_status status = weir_database_begin(database, error);
	if (status != WEIR_OK)
		return status;
	status = put_policy(database, version, text, error);
	return weir_database_end(database, status, error);
}

enum weir_status weir_store_policy_each(struct weir_store *base, uint64_t first,
                                        enum weir_status (*each)(void *context, uint64_t version,
                                                                 struct weir_span text),
                                        void *context, struct weir_error *error)
{
	struct weir_database *database = weir_store_sqlite(base)->database;
	struct weir_statement *statement = weir_database_use(database, WEIR_STORE_POLICY_EACH);
	weir_statement_number(statement, 1, first);
	enum weir_status status, given = WEIR_OK;
	while (given == WEIR_OK && (status = weir_statement_step(database, statement, error)) == WEIR_OK)
		given = each(context, weir_row_number(statement, 0), weir_row_bytes(statement, 1));
	weir_database_use(database, WEIR_STORE_POLICY_EACH); /* ends its reading */
	if (given != WEIR_OK)
		return given;
	return status == WEIR_END ? WEIR_OK : status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies, numbered; and their zones as rows, so that whoever asks
 * the database by SQL finds names and limits there.
 */
#include "common/store/mysql/internal.h"

#include "common/policy/policy.h"

#include <inttypes.h>

struct policy_call {
	struct weir_mysql *mysql;
	uint64_t version;
	struct weir_span text;
	const struct weir_policy *policy; /* NULL: the text is no policy that this program reads */
};

static enum weir_status put_limit(const struct policy_call *call, const struct weir_zone *zone, uint32_t number,
                                  struct weir_error *error)
{
	const struct weir_limit *limit = &zone->limits[number];
	struct weir_mysql_statement *statement = weir_mysql_use(call->mysql, WEIR_MYSQL_ZONE_PUT);
	weir_mysql_put_number(statement, zone->id);
	weir_mysql_put_number(statement, number + 1);
	weir_mysql_put_text(statement, zone->name);
	weir_mysql_put_text(statement, zone->description);
	weir_mysql_put_text(statement, weir_mode_name(zone->mode));
	weir_mysql_put_text(statement, limit->algorithm->name);
	weir_mysql_put_signed(statement, limit->rate);
	weir_mysql_put_signed(statement, limit->window_ms);
	weir_mysql_put_signed(statement, limit->burst);
	weir_mysql_put_signed(statement, weir_limit_value(limit, "precision"));
	weir_mysql_put_signed(statement, weir_limit_value(limit, "lateness"));
	weir_mysql_put_signed(statement, weir_limit_value(limit, "offset"));
	weir_mysql_put_signed(statement, weir_limit_value(limit, "penalize"));
	weir_mysql_put_signed(statement, zone->block_for_ms);
	weir_mysql_put_number(statement, call->version);
	return weir_mysql_execute(call->mysql, statement, NULL, error);
}

/* Whether a newer policy has the zone, and its rows say so. */
static enum weir_status find_newer(const struct policy_call *call, uint32_t zone, bool *newer, struct weir_error *error)
{
	struct weir_mysql_statement *statement = weir_mysql_use(call->mysql, WEIR_MYSQL_ZONE_NEWER);
	weir_mysql_put_number(statement, zone);
	weir_mysql_put_number(statement, call->version);
	enum weir_status status = weir_mysql_step(call->mysql, statement, error);
	*newer = status == WEIR_OK;
	weir_mysql_done(statement);
	return status == WEIR_END ? WEIR_OK : status;
}

static enum weir_status put_zone(const struct policy_call *call, const struct weir_zone *zone, struct weir_error *error)
{
	bool newer;
	enum weir_status status = find_newer(call, zone->id, &newer, error);
	if (status != WEIR_OK || newer)
		return status;
	struct weir_mysql_statement *statement = weir_mysql_use(call->mysql, WEIR_MYSQL_ZONE_REMOVE);
	weir_mysql_put_number(statement, zone->id);
	status = weir_mysql_execute(call->mysql, statement, NULL, error);
	for (uint32_t number = 0; number < zone->limit_count && status == WEIR_OK; number++)
		status = put_limit(call, zone, number, error);
	return status;
}

/*
 * A zone is as the newest policy that has it says, in whichever order they come. Rows of zones that it has no more stay:
 * what was counted under them keeps its names.
 */
static enum weir_status put_zones(const struct policy_call *call, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; i < call->policy->zone_count && status == WEIR_OK; i++)
		status = put_zone(call, &call->policy->zones[i], error);
	return status;
}

/* WEIR_END: nobody has the number. */
static enum weir_status compare_policy(const struct policy_call *call, struct weir_error *error)
{
	struct weir_mysql_statement *statement = weir_mysql_use(call->mysql, WEIR_MYSQL_POLICY_GET);
	weir_mysql_put_number(statement, call->version);
	enum weir_status status = weir_mysql_step(call->mysql, statement, error);
	if (status == WEIR_OK && !weir_span_equal(weir_mysql_row_bytes(statement, 0), call->text))
		status = weir_fail(error, WEIR_INVALID, "policy version %" PRIu64 " already exists with other contents",
		                   call->version);
	weir_mysql_done(statement);
	return status;
}

static enum weir_status put_policy(void *context, struct weir_error *error)
{
	const struct policy_call *call = context;
	enum weir_status status = compare_policy(call, error);
	if (status != WEIR_END)
		return status;
	struct weir_mysql_statement *statement = weir_mysql_use(call->mysql, WEIR_MYSQL_POLICY_PUT);
	weir_mysql_put_number(statement, call->version);
	weir_mysql_put_bytes(statement, call->text.at != NULL ? call->text : (struct weir_span){.at = ""});
	status = weir_mysql_execute(call->mysql, statement, NULL, error);
	return status == WEIR_OK && call->policy != NULL ? put_zones(call, error) : status;
}

enum weir_status weir_mysql_policy_put(struct weir_store *base, uint64_t version, struct weir_span text,
                                       struct weir_error *error)
{
	struct weir_policy *policy = NULL;
	struct policy_call call = {weir_store_mysql(base)->mysql, version, text, NULL};
	if (weir_policy_decode(version, text.at, text.length, &policy, NULL) == WEIR_OK)
		call.policy = policy;
	enum weir_status status = weir_mysql_write(call.mysql, put_policy, &call, error);
	if (call.policy != NULL)
		weir_policy_free(policy);
	return status;
}

struct each_call {
	struct weir_mysql *mysql;
	uint64_t first;
	enum weir_status (*each)(void *context, uint64_t version, struct weir_span text);
	void *context;
};

static enum weir_status each_policy(void *context, struct weir_error *error)
{
	const struct each_call *call = context;
	struct weir_mysql_statement *statement = weir_mysql_use(call->mysql, WEIR_MYSQL_POLICY_EACH);
	weir_mysql_put_number(statement, call->first);
	enum weir_status status, given = WEIR_OK;
	while (given == WEIR_OK && (status = weir_mysql_step(call->mysql, statement, error)) == WEIR_OK)
		given = call->each(call->context, weir_mysql_row_number(statement, 0), weir_mysql_row_bytes(statement, 1));
	weir_mysql_done(statement);
	if (given != WEIR_OK)
		return given;
	return status == WEIR_END ? WEIR_OK : status;
}

enum weir_status weir_mysql_policy_each(struct weir_store *base, uint64_t first,
                                        enum weir_status (*each)(void *context, uint64_t version,
                                                                 struct weir_span text),
                                        void *context, struct weir_error *error)
{
	struct each_call call = {weir_store_mysql(base)->mysql, first, each, context};
	return weir_mysql_read(call.mysql, each_policy, &call, error);
}

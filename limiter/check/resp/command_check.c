/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that ask: a key in a zone.
 *
 * CL.THROTTLE names no zone but numbers: the zone is meant whose only limit is a gcra of these. What a caller sends does
 * not decide how much he may: the policy does.
 */
#include "common/frame/frame.h"
#include "common/resp/resp_number.h"
#include "limiter/check/check_key.h"
#include "limiter/check/resp/internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { THROTTLE_WORDS_MAX = 6, CHECK_WORDS_LEAST = 3, CHECK_WORDS_MAX = 4, MS = 1000 };

/* The policy in force; what is kept of another is forgotten. @return NULL: there is none yet */
static const struct weir_policy *current_policy(struct resp_server *server)
{
	const struct weir_policy *policy = link_server_policy(&server->base);
	if (policy != server->policy || (policy != NULL && policy->version != server->policy_version)) {
		server->policy = policy;
		server->policy_version = policy != NULL ? policy->version : 0;
		server->zone = NULL;
		memset(server->throttles, 0, sizeof server->throttles);
	}
	return policy;
}

/* An error is a reply like others: it has to wait for those before it. @return as command_run */
static bool fail(struct connection *connection, enum refusal_reason reason, const char *words)
{
	const char *code = reason == REFUSAL_RIGHTS ? "NOPERM" : "ERR";
	if (!answers_are_out(connection))
		return false;
	link_connection_refuse(&connection->base, reason, NULL, words, NULL);
	weir_resp_error(&connection->out, "%s %s", code, words);
	return true;
}

/* A user hears of the zones alone that it may ask in. */
static void say_no_zone(const struct resp_user *user, const struct weir_policy *policy, struct weir_span name,
                        struct weir_error *error)
{
	const char *names[RESP_USER_ZONES_MAX + 1];
	uint32_t count = 0;
	for (uint32_t i = 0; i < user->zone_count; i++)
		if (weir_policy_zone_named(policy, weir_span_of(user->zones[i])) != NULL)
			names[count++] = user->zones[i];
	names[count] = NULL;
	weir_policy_no_zone(names, name, error);
}

const struct weir_zone *check_zone(struct connection *connection, struct weir_span name, struct weir_error *error)
{
	struct resp_server *server = connection->server;
	const struct weir_policy *policy = current_policy(server);
	if (server->zone != NULL && weir_span_equal(weir_span_of(server->zone->name), name))
		return server->zone;
	if (policy == NULL) {
		(void)weir_fail(error, WEIR_INVALID, "there is no policy yet: run `weir policy apply`");
		return NULL;
	}
	server->zone = weir_policy_find_zone(policy, name, error);
	if (server->zone == NULL && connection->user != NULL && connection->user->zone_count > 0)
		say_no_zone(connection->user, policy, name, error);
	return server->zone;
}

bool check_no_zone(struct connection *connection, enum reply_form form, const char *words)
{
	if (connection->server->policy != NULL)
		return fail(connection, REFUSAL_ASKED, words);
	return check_no_policy(connection, form, 0);
}

bool check_no_policy(struct connection *connection, enum reply_form form, uint32_t together)
{
	if (!answers_are_out(connection))
		return false;
	slot_unavailable(connection, form, together);
	return true;
}

/* @param count  of the words @param cost  1 where there is no word @return false: it is none */
static bool read_cost(const struct weir_resp_command *words, uint32_t count, uint32_t at, int64_t *cost)
{
	*cost = 1;
	return count <= at || (weir_resp_number(words->words[at], cost) && *cost >= 0 && *cost <= WEIR_COST_MAX);
}

bool check_durable(const struct weir_resp_command *words, uint32_t least, uint32_t *count)
{
	bool durable = words->count > least && word_is(words->words[words->count - 1], "durable");
	*count = words->count - durable;
	return durable;
}

/* The room for one more joined key; NULL: there is none before answers have come. */
static char *key_room(struct connection *connection)
{
	if (connection->keys == NULL)
		connection->keys = buffer_take(connection->server);
	if (connection->keys_used + WEIR_KEY_MAX_BYTES > BUFFER_BYTES && answers_are_out(connection))
		connection->keys_used = 0;
	return connection->keys_used + WEIR_KEY_MAX_BYTES <= BUFFER_BYTES ? connection->keys + connection->keys_used : NULL;
}

bool check_fail(struct connection *connection, const char *words)
{
	return fail(connection, REFUSAL_ASKED, words);
}

bool check_deny(struct connection *connection, const struct weir_zone *zone)
{
	struct weir_error error;
	(void)weir_fail(&error, WEIR_INVALID, "user '%s' may not ask in zone '%s'", connection->user->name, zone->name);
	return fail(connection, REFUSAL_RIGHTS, error.text);
}

/* Says who has the key, to a client that asks there. @return as command_run */
static bool redirect(struct connection *connection, uint32_t slot, const struct owners_place *place)
{
	if (!answers_are_out(connection))
		return false;
	weir_counter_add(&connection->server->base.figures.redirected, 1);
	weir_resp_error(&connection->out, "MOVED %u %s:%u", slot, place->host, place->port);
	return true;
}

/*
 * The joined key that is meant.
 *
 * @param form  of the reply: another limiter sends a joined key
 * @return WEIR_FULL: it has to wait; WEIR_INVALID: an error says why
 */
static enum weir_status find_key(struct connection *connection, const struct weir_zone *zone, struct weir_span given,
                                 enum reply_form form, struct weir_span *key, struct weir_error *error)
{
	enum check_key_form key_form = form == REPLY_WHOLE ? CHECK_KEY_JOINED : CHECK_KEY_GIVEN;
	enum weir_status status = check_key(zone, given, key_form, NULL, key, error);
	if (status != WEIR_FULL)
		return status;
	char *room = key_room(connection);
	if (room == NULL)
		return WEIR_FULL;
	status = check_key(zone, given, key_form, room, key, error);
	if (status == WEIR_OK)
		connection->keys_used += key->length;
	return status;
}

enum weir_status check_can_be(const struct weir_zone *zone, struct weir_span given, struct weir_error *error)
{
	char room[WEIR_KEY_MAX_BYTES];
	struct weir_span key;
	return check_key(zone, given, CHECK_KEY_GIVEN, room, &key, error);
}

/* Another limiter has looked already. */
static bool is_exempt(const struct resp_server *server, const struct weir_zone *zone, struct weir_span given,
                      enum reply_form form)
{
	return server->options.exempt != NULL && form != REPLY_WHOLE &&
	       check_request_exempts(server->options.exempt, server->policy, zone, given);
}

struct check_ask *check_take(struct connection *connection, const struct weir_zone *zone, struct weir_span given,
                             enum reply_form form, bool *more)
{
	struct weir_span key;
	struct weir_error error;
	struct owners_place place;
	uint32_t moved;
	*more = false;
	if (!resp_user_may_ask(connection->user, zone)) {
		*more = check_deny(connection, zone);
		return NULL;
	}
	enum weir_status status = find_key(connection, zone, given, form, &key, &error);
	if (status == WEIR_FULL)
		return NULL;
	if (status != WEIR_OK) {
		*more = fail(connection, REFUSAL_ASKED, error.text);
		return NULL;
	}
	if (!slot_possible(connection)) {
		server_ask(connection->server);
		if (!slot_possible(connection)) {
			connection->server->starved |= connection->slot_count == 0;
			return NULL;
		}
	}
	bool exempt = is_exempt(connection->server, zone, given, form);
	if (!exempt && form != REPLY_WHOLE && form != REPLY_PART &&
	    node_elsewhere(connection->server, given, key, &moved, &place)) {
		*more = redirect(connection, moved, &place);
		return NULL;
	}
	struct check_ask *ask = slot_ask(connection, form);
	connection->last->counted = check_counts_named(connection->server->base.counts, zone->name);
	ask->shadow = connection->last->shadow = zone->mode == WEIR_SHADOW;
	ask->zone = weir_span_of(zone->name);
	ask->key = key;
	ask->exempt = exempt;
	ask->forwarded = form == REPLY_WHOLE;
	*more = true;
	return ask;
}

static bool ask_zone(struct connection *connection, const struct weir_resp_command *words, bool peek,
                     enum reply_form form)
{
	struct weir_error error;
	int64_t cost;
	uint32_t count;
	bool more, durable = check_durable(words, CHECK_WORDS_LEAST, &count);
	if (count > CHECK_WORDS_MAX)
		return fail(connection, REFUSAL_ASKED, "key, zone and cost are all: one check a command, many in a pipeline");
	if (durable && peek)
		return fail(connection, REFUSAL_ASKED, "a peek counts nothing that could be durable");
	if (!read_cost(words, count, 3, &cost))
		return fail(connection, REFUSAL_ASKED, "cost must be a number from 0 to 1099511627776");
	const struct weir_zone *zone = check_zone(connection, words->words[2], &error);
	if (zone == NULL)
		return check_no_zone(connection, form, error.text);
	struct check_ask *ask = check_take(connection, zone, words->words[1], form, &more);
	if (ask != NULL) {
		ask->cost = cost;
		ask->peek = peek;
		ask->durable |= durable;
	}
	return more;
}

bool run_check_command(struct connection *connection, const struct weir_resp_command *words)
{
	return ask_zone(connection, words, false, REPLY_FIVE);
}

bool run_peek(struct connection *connection, const struct weir_resp_command *words)
{
	return ask_zone(connection, words, true, REPLY_FIVE);
}

bool run_allow(struct connection *connection, const struct weir_resp_command *words)
{
	return ask_zone(connection, words, false, REPLY_ONE);
}

/* What another limiter's caller has asked, and is told by that one. */
bool run_forward(struct connection *connection, const struct weir_resp_command *words)
{
	struct weir_error error;
	int64_t cost, flags, more[2];
	bool goes_on;
	if (!read_cost(words, words->count, 3, &cost) || !weir_resp_number(words->words[4], &flags) || flags < 0 ||
	    !weir_resp_number(words->words[5], &more[0]) || !weir_resp_number(words->words[6], &more[1]) ||
	    flags >= 2 * CHECK_FORWARD_TRIES ||
	    (flags & (CHECK_FORWARD_RESERVES | CHECK_FORWARD_SETTLES)) ==
	        (CHECK_FORWARD_RESERVES | CHECK_FORWARD_SETTLES) ||
	    ((flags & CHECK_FORWARD_RESERVES) && (cost < 1 || more[0] < 1 || more[0] > CHECK_TTL_MAX_MS)))
		return fail(connection, REFUSAL_ASKED, "cost, flags and what follows must be numbers");
	const struct weir_zone *zone = check_zone(connection, words->words[2], &error);
	if (zone == NULL)
		return check_no_zone(connection, REPLY_WHOLE, error.text);
	struct check_ask *ask = check_take(connection, zone, words->words[1], REPLY_WHOLE, &goes_on);
	if (ask == NULL)
		return goes_on;
	ask->cost = cost;
	ask->peek = (flags & CHECK_FORWARD_PEEK) != 0;
	ask->durable |= (flags & CHECK_FORWARD_DURABLE) != 0;
	ask->tries = (flags & CHECK_FORWARD_TRIES) != 0;
	if (flags & CHECK_FORWARD_RESERVES) {
		ask->kind = CHECK_RESERVES;
		ask->ttl_ms = more[0];
	} else if (flags & CHECK_FORWARD_SETTLES) {
		ask->kind = CHECK_SETTLES;
		memcpy(ask->reservation, more, sizeof ask->reservation);
	}
	return true;
}

/* ---- CL.THROTTLE ---- */

static bool is_meant(const struct weir_zone *zone, const struct throttle *numbers)
{
	const struct weir_limit *limit = &zone->limits[0];
	return zone->limit_count == 1 && limit->algorithm == weir_algorithm_named("gcra") &&
	       limit->burst == numbers->burst && limit->rate == numbers->count &&
	       limit->window_ms == numbers->period_s * MS;
}

static void say_none(const struct resp_user *user, const struct throttle *numbers, struct weir_error *error)
{
	char asker[RESP_USER_NAME_MAX_BYTES + 32] = "";
	if (user != NULL)
		snprintf(asker, sizeof asker, " that user '%s' may ask in", user->name);
	(void)weir_fail(error, WEIR_INVALID,
	                "no zone%s has gcra burst %lld, rate %lld, window %llds as its only limit: add it", asker,
	                (long long)numbers->burst, (long long)numbers->count, (long long)numbers->period_s);
}

/* Looks at all zones that the user may ask in. @return NULL: there is none, or there are two; in words */
static const struct weir_zone *search(const struct resp_user *user, const struct weir_policy *policy,
                                      const struct throttle *numbers, struct weir_error *error)
{
	const struct weir_zone *found = NULL;
	for (uint32_t i = 0; policy != NULL && i < policy->zone_count; i++) {
		const struct weir_zone *zone = &policy->zones[i];
		if (!is_meant(zone, numbers) || !resp_user_may_ask(user, zone))
			continue;
		if (found != NULL) {
			(void)weir_fail(
				error, WEIR_INVALID,
				"zones '%s' and '%s' both have gcra burst %lld, rate %lld, window %llds: use WEIR.CHECK key zone",
				found->name, zone->name, (long long)numbers->burst, (long long)numbers->count,
				(long long)numbers->period_s);
			return NULL;
		}
		found = zone;
	}
	if (found == NULL)
		say_none(user, numbers, error);
	return found;
}

static const struct weir_zone *find_throttle(struct resp_server *server, const struct resp_user *user,
                                             const struct throttle *numbers, struct weir_error *error)
{
	const struct weir_policy *policy = current_policy(server);
	/* Those that may ask in all zones are as one. */
	const struct resp_user *restricted = user != NULL && user->zone_count > 0 ? user : NULL;
	uint64_t who = restricted != NULL ? (uint64_t)(restricted - server->options.users) + 1 : 0;
	uint64_t mixed = (uint64_t)numbers->burst * 31 + (uint64_t)numbers->count * 7 + (uint64_t)numbers->period_s + who;
	struct throttle *kept = &server->throttles[mixed % THROTTLES_KEPT];
	if (kept->zone != NULL && kept->user == restricted && kept->burst == numbers->burst &&
	    kept->count == numbers->count && kept->period_s == numbers->period_s)
		return kept->zone;
	const struct weir_zone *zone = search(restricted, policy, numbers, error);
	if (zone != NULL) {
		*kept = *numbers;
		kept->user = restricted;
		kept->zone = zone;
	}
	return zone;
}

/* As redis-cell reads it, in Rust: `+15` and `0015` are 15. */
static bool read_cell_number(struct weir_span text, int64_t *number)
{
	bool negative = text.length > 0 && *text.at == '-', sign = negative || (text.length > 0 && *text.at == '+');
	struct weir_span digits = {.at = text.at + sign, .length = text.length - sign};
	while (digits.length > 1 && *digits.at == '0')
		digits = (struct weir_span){.at = digits.at + 1, .length = digits.length - 1};
	if (digits.length == 0 || *digits.at == '-' || !weir_resp_number(digits, number))
		return false;
	*number = negative ? -*number : *number;
	return true;
}

/* Reads the numbers behind the key, each within what a zone can have. */
static bool read_throttle(const struct weir_resp_command *words, struct throttle *numbers, int64_t *quantity,
                          struct weir_error *error)
{
	const struct {
		const char *name;
		int64_t most;
		int64_t *number;
	} wanted[] = {
		{"max_burst", WEIR_RATE_MAX, &numbers->burst},
		{"count", WEIR_RATE_MAX, &numbers->count},
		{"period, in seconds,", WEIR_WINDOW_MAX_MS / MS, &numbers->period_s},
		{"quantity", WEIR_COST_MAX, quantity},
	};
	*quantity = 1;
	for (uint32_t i = 0; i < sizeof wanted / sizeof *wanted && i + 2 < words->count; i++)
		if (!read_cell_number(words->words[i + 2], wanted[i].number) || *wanted[i].number < 0 ||
		    *wanted[i].number > wanted[i].most) {
			(void)weir_fail(error, WEIR_INVALID, "%s must be a whole number from 0 to %lld", wanted[i].name,
			                (long long)wanted[i].most);
			return false;
		}
	return true;
}

bool run_throttle(struct connection *connection, const struct weir_resp_command *words)
{
	int64_t cost;
	bool more;
	struct throttle numbers = {0};
	struct weir_error error;
	if (words->count > THROTTLE_WORDS_MAX)
		return fail(connection, REFUSAL_ASKED, "Usage: CL.THROTTLE key max_burst count period [quantity]");
	if (!read_throttle(words, &numbers, &cost, &error))
		return fail(connection, REFUSAL_ASKED, error.text);
	if (numbers.count == 0 || numbers.period_s == 0)
		return fail(connection, REFUSAL_ASKED, "Zero rates are not supported");
	const struct weir_zone *zone = find_throttle(connection->server, connection->user, &numbers, &error);
	if (zone == NULL)
		return check_no_zone(connection, REPLY_THROTTLE, error.text);
	struct check_ask *ask = check_take(connection, zone, words->words[1], REPLY_THROTTLE, &more);
	if (ask != NULL)
		ask->cost = cost;
	return more;
}

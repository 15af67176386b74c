/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations: an estimate now, the real cost later.
 *
 * The caller gets an id, and names it with the key and the zone again, so that a client of a cluster finds the same node.
 */
#include "common/bytes/hex.h"
#include "common/resp/resp_number.h"
#include "limiter/check/resp/internal.h"

enum { RESERVE_WORDS_LEAST = 4, RESERVE_WORDS_MAX = 5 };

const char *reservation_text(const uint8_t id[WEIR_RESERVATION_ID_BYTES], char text[2 * WEIR_RESERVATION_ID_BYTES + 1])
{
	*weir_hex_put(text, id, WEIR_RESERVATION_ID_BYTES) = '\0';
	return text;
}

static bool read_id(struct weir_span word, uint8_t id[WEIR_RESERVATION_ID_BYTES])
{
	if (word.length != 2 * WEIR_RESERVATION_ID_BYTES)
		return false;
	for (int i = 0; i < WEIR_RESERVATION_ID_BYTES; i++) {
		int byte = weir_hex_byte(word.at + 2 * i);
		if (byte < 0)
			return false;
		id[i] = (uint8_t)byte;
	}
	return true;
}

/* What an exempt key was told in place of a reservation's: there is nothing to settle, whoever is exempt by now. */
static bool is_of_exempt(const uint8_t id[WEIR_RESERVATION_ID_BYTES])
{
	return memcmp(id, CHECK_RESERVATION_OF_EXEMPT, WEIR_RESERVATION_ID_BYTES) == 0;
}

bool run_reserve(struct connection *connection, const struct weir_resp_command *words)
{
	struct weir_error error;
	int64_t cost, ttl_ms = CHECK_TTL_MS;
	uint32_t count;
	bool more, durable = check_durable(words, RESERVE_WORDS_LEAST, &count);
	if (count > RESERVE_WORDS_MAX)
		return check_fail(connection,
		                  "key, zone, cost and ttl_ms are all: one reservation a command, many in a pipeline");
	if (!weir_resp_number(words->words[3], &cost) || cost < 1 || cost > WEIR_COST_MAX)
		return check_fail(connection, "cost must be a number from 1 to 1099511627776: what the work may cost at most");
	if (count > RESERVE_WORDS_LEAST &&
	    (!weir_resp_number(words->words[4], &ttl_ms) || ttl_ms < 1 || ttl_ms > CHECK_TTL_MAX_MS))
		return check_fail(connection, "ttl_ms must be a number from 1 to 86400000");
	const struct weir_zone *zone = check_zone(connection, words->words[2], &error);
	if (zone == NULL)
		return check_no_zone(connection, REPLY_RESERVATION, error.text);
	struct check_ask *ask = check_take(connection, zone, words->words[1], REPLY_RESERVATION, &more);
	if (ask != NULL) {
		ask->kind = CHECK_RESERVES;
		ask->cost = cost;
		ask->ttl_ms = ttl_ms;
		ask->durable |= durable;
	}
	return more;
}

static bool settle(struct connection *connection, const struct weir_resp_command *words, int64_t cost)
{
	struct weir_error error;
	uint8_t id[WEIR_RESERVATION_ID_BYTES];
	bool more;
	if (!read_id(words->words[3], id))
		return check_fail(connection, "id must be the 32 hexadecimal digits that WEIR.RESERVE gave");
	const struct weir_zone *zone = check_zone(connection, words->words[2], &error);
	if (zone == NULL)
		return check_no_zone(connection, REPLY_SETTLED, error.text);
	struct check_ask *ask = check_take(connection, zone, words->words[1], REPLY_SETTLED, &more);
	if (ask != NULL) {
		ask->kind = CHECK_SETTLES;
		ask->exempt = is_of_exempt(id);
		ask->cost = cost;
		memcpy(ask->reservation, id, sizeof id);
	}
	return more;
}

bool run_settle(struct connection *connection, const struct weir_resp_command *words)
{
	int64_t cost;
	if (!weir_resp_number(words->words[4], &cost) || cost < 0 || cost > WEIR_COST_MAX)
		return check_fail(connection, "cost must be a number from 0 to 1099511627776: what the work did cost");
	return settle(connection, words, cost);
}

bool run_release(struct connection *connection, const struct weir_resp_command *words)
{
	return settle(connection, words, 0);
}

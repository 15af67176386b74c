/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MULTI and EXEC, into which several clients wrap each pipeline: commands are kept as they came and run one behind the
 * other. Each is judged by itself: weir has no transaction, and what one of them blocks, the others do not wait for.
 */
#include "limiter/check/resp/internal.h"

void multi_clear(struct connection *connection)
{
	connection->multi = MULTI_NONE;
	connection->queued_count = 0;
	connection->queued_at = 0;
	weir_text_clear(&connection->queued);
}

void multi_queue(struct connection *connection, const char *bytes, size_t length)
{
	if (connection->queued_count == RESP_QUEUED_MAX || connection->queued.length + length > RESP_QUEUED_MAX_BYTES) {
		connection->multi = MULTI_SPOILT;
		weir_resp_error(&connection->out, "ERR a MULTI has at most %d commands and %d KiB: send them in several",
		                RESP_QUEUED_MAX, RESP_QUEUED_MAX_BYTES >> 10);
		return;
	}
	weir_text_append(&connection->queued, bytes, length);
	connection->queued_count++;
	weir_resp_simple(&connection->out, "QUEUED");
}

bool run_multi(struct connection *connection, const struct weir_resp_command *words)
{
	(void)words;
	if (connection->multi != MULTI_NONE) {
		weir_resp_error(&connection->out, "ERR MULTI calls can not be nested");
		return true;
	}
	multi_clear(connection);
	connection->multi = MULTI_QUEUES;
	weir_resp_simple(&connection->out, "OK");
	return true;
}

bool run_exec(struct connection *connection, const struct weir_resp_command *words)
{
	(void)words;
	switch (connection->multi) {
	case MULTI_NONE:
	case MULTI_RUNS: weir_resp_error(&connection->out, "ERR EXEC without MULTI"); return true;
	case MULTI_SPOILT:
		multi_clear(connection);
		weir_resp_error(&connection->out, "EXECABORT Transaction discarded because of previous errors.");
		return true;
	case MULTI_QUEUES: break;
	}
	weir_resp_array(&connection->out, connection->queued_count);
	connection->multi = connection->queued_count > 0 ? MULTI_RUNS : MULTI_NONE;
	return true;
}

bool run_discard(struct connection *connection, const struct weir_resp_command *words)
{
	if (connection->multi == MULTI_NONE || connection->multi == MULTI_RUNS) {
		weir_resp_error(&connection->out, "ERR DISCARD without MULTI");
		return true;
	}
	multi_clear(connection);
	return run_ok(connection, words);
}

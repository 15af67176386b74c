/* SPDX-License-Identifier: Apache-2.0 */
/* The turn: what is readable is read, what was gathered is judged, what was answered is written. */
#include "limiter/check/grpc/grpc_server.h"

#include "common/base/alloc.h"
#include "limiter/check/grpc/internal.h"

#include <assert.h>
#include <stdlib.h>

enum { LOOK_MS = 1000, DEADLINE_MS = 10, STALL_MS = 30000, ROOM_BYTES = 64 << 10 };

/* SETTINGS without any; GOAWAY behind no stream, INADEQUATE_SECURITY. */
static const char no_tls[] = "\0\0\0\4\0\0\0\0\0"
							 "\0\0\x1c\7\0\0\0\0\0\0\0\0\0\0\0\0\xc"
							 "this port speaks TLS";
/* SETTINGS without any; GOAWAY behind no stream, ENHANCE_YOUR_CALM. */
static const char too_many[] = "\0\0\0\4\0\0\0\0\0"
							   "\0\0\x36\7\0\0\0\0\0\0\0\0\0\0\0\0\xb"
							   "too many connections: raise checks.connections";

/* ---- asks ---- */

void grpc_server_ask(struct grpc_server *server)
{
	struct check_answer answers[CHECK_GROUP_MAX];
	uint32_t count = server->ask_count;
	if (count == 0)
		return;
	server->ask_count = 0;
	link_server_judge(&server->base, server->asks, count, answers);
	for (uint32_t i = 0; i < count; i++)
		if (answers[i].outcome == CHECK_LATER)
			call_wait(server->asked[i].call);
		else
			call_take_answer(server->asked[i].call, server->asked[i].index, &answers[i]);
}

static void answered(struct link_server *base, const struct check_answer *answer)
{
	uint32_t index;
	struct grpc_call *call = call_of_ticket((struct grpc_server *)base, answer->ticket, &index);
	assert(call != NULL);
	if (call != NULL)
		call_take_answer(call, index, answer);
}

/* ---- the turn ---- */

static void tick(struct link_server *base)
{
	calls_expire((struct grpc_server *)base);
}

/* Looks at all connections, once in a while. Not by the timer alone, as that is set anew whenever calls begin to wait. */
static void look(struct grpc_server *server)
{
	if (server->base.now_ms < server->look_ms)
		return;
	server->look_ms = server->base.now_ms + LOOK_MS;
	grpc_server_ask(server); /* so that no call ends while calls are gone through */
	link_server_look(&server->base);
}

/* Reads on where bytes are left that no epoll tells of. */
static void read_pending(struct grpc_server *server)
{
	for (struct link_connection *at = server->base.touched; at != NULL; at = at->next_touched) {
		struct grpc_connection *connection = (struct grpc_connection *)at;
		if (connection->pending && !at->dead) {
			connection->pending = false;
			grpc_connection_read(at);
		}
	}
}

/* The timer is faster while deadlines are waited for. */
static void turn(struct link_server *base, int timeout_ms)
{
	struct grpc_server *server = (struct grpc_server *)base;
	link_server_wait(base, timeout_ms);
	read_pending(server);
	link_server_receive(base);
	look(server);
	grpc_server_ask(server);
	link_server_finish(base);
	link_server_rest(base, server->waiting != NULL ? DEADLINE_MS : 0);
}

/* ---- the server ---- */

static void deinit(struct link_server *base)
{
	struct grpc_server *server = (struct grpc_server *)base;
	calls_free(server);
	session_unprepare(server);
	check_request_free(server->options.request);
	free(server->spare);
	free(server->room);
}

static const struct link_protocol protocol = {
	.surface = REFUSAL_GRPC,
	.alpn = "h2",
	.no_tls = {.at = no_tls, .length = sizeof no_tls - 1},
	.too_many = {.at = too_many, .length = sizeof too_many - 1},
	.connection_bytes = sizeof(struct grpc_connection),
	.stall_ms = STALL_MS,
	.open = grpc_connection_open,
	.read = grpc_connection_read,
	.finish = grpc_connection_finish,
	.look = grpc_connection_look,
	.leave = grpc_connection_leave,
	.close = grpc_connection_close,
	.turn = turn,
	.tick = tick,
	.answered = answered,
	.deinit = deinit,
};

struct link_server *grpc_server_new(const struct link_options *common, const struct grpc_options *options)
{
	struct grpc_server *server = weir_alloc(1, sizeof *server);
	server->options = *options;
	server->calls = weir_alloc(GRPC_CALLS_MAX, sizeof *server->calls);
	server->room = weir_alloc(ROOM_BYTES, 1);
	if (server->options.greeting_ms == 0)
		server->options.greeting_ms = GRPC_GREETING_DEFAULT_MS;
	link_server_init(&server->base, &protocol, common);
	session_prepare(server);
	return &server->base;
}

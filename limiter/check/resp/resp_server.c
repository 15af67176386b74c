/* SPDX-License-Identifier: Apache-2.0 */
/* The turn: what is readable is read, what was read is run, what was gathered is judged, what was answered is written. */
#include "limiter/check/resp/resp_server.h"

#include "common/base/alloc.h"
#include "limiter/check/resp/internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STALL_MS = 30000 };

static const char no_tls[] = "-ERR Protocol error: this port speaks TLS\r\n";
static const char too_many[] = "-ERR max number of clients reached: raise checks.connections\r\n";

/* The servers of a process, one a thread, are one node: they have one id. */
static void make_id(struct resp_server *server)
{
	char process[HOST_NAME_MAX + 32];
	int length = snprintf(process, sizeof process, "%d ", (int)getpid());
	(void)gethostname(process + length, sizeof process - (size_t)length - 1);
	process[sizeof process - 1] = '\0';
	node_make_id(process, server->id);
}

/* Connections that wait for a slot of which others have all. */
static void wake_starved(struct resp_server *server)
{
	if (!server->starved || server->free_slots == NULL)
		return;
	server->starved = false;
	for (struct link_connection *at = server->base.connections; at != NULL; at = at->next) {
		const struct connection *connection = (struct connection *)at;
		if (connection->stop == STOP_ANSWERS && connection->slot_count == 0)
			link_connection_touch(at);
	}
}

static void turn(struct link_server *base, int timeout_ms)
{
	struct resp_server *server = (struct resp_server *)base;
	wake_starved(server);
	link_server_wait(base, timeout_ms);
	link_server_receive(base);
	for (struct link_connection *at = base->touched; at != NULL; at = at->next_touched)
		connection_run((struct connection *)at);
	server_ask(server);
	link_server_finish(base);
	link_server_rest(base, 0);
}

static void deinit(struct link_server *base)
{
	struct resp_server *server = (struct resp_server *)base;
	while (server->spare_count > 0)
		free(server->spare[--server->spare_count]);
	free(server->slots);
	check_request_free(server->options.exempt);
}

static const struct link_protocol protocol = {
	.surface = REFUSAL_RESP,
	.no_tls = {.at = no_tls, .length = sizeof no_tls - 1},
	.too_many = {.at = too_many, .length = sizeof too_many - 1},
	.connection_bytes = sizeof(struct connection),
	.stall_ms = STALL_MS,
	.kept_max_bytes = RESP_BUFFERED_MAX_BYTES,
	.open = connection_open,
	.read = connection_read,
	.finish = connection_finish,
	.look = connection_look,
	.close = connection_close,
	.turn = turn,
	.tick = link_server_look,
	.answered = server_answered,
	.deinit = deinit,
};

struct link_server *resp_server_new(const struct link_options *common, const struct resp_options *options)
{
	struct resp_server *server = weir_alloc(1, sizeof *server);
	server->options = *options;
	server->slots = weir_alloc(SLOTS_MAX, sizeof *server->slots);
	if (server->options.login_ms == 0)
		server->options.login_ms = RESP_LOGIN_DEFAULT_MS;
	link_server_init(&server->base, &protocol, common);
	server->started_ms = server->base.now_ms;
	make_id(server);
	return &server->base;
}

void resp_server_add(const struct link_server *server, struct resp_totals *totals)
{
	const struct link_figures *figures = &server->figures;
	totals->servers++;
	totals->connections += weir_counter_read(&figures->connections);
	totals->accepted += weir_counter_read(&figures->accepted);
	totals->refused += weir_counter_read(&figures->refused);
	totals->in_flight += weir_counter_read(&figures->in_flight);
	totals->buffered_bytes += weir_counter_read(&figures->buffered_bytes);
	totals->commands += weir_counter_read(&figures->unknown);
	for (uint32_t i = 0; i < command_count(); i++)
		totals->commands += weir_counter_read(&figures->kinds[i]);
}

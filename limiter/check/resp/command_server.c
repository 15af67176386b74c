/* SPDX-License-Identifier: Apache-2.0 */
/* What clients and people ask about the server: INFO, COMMAND, CLUSTER. Of what a Redis would say, what some client reads. */
#include "common/bytes/hash.h"
#include "common/resp/resp_number.h"
#include "limiter/check/resp/internal.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUS_PORT_OFFSET = 10000, DOC_MEMBERS = 3, INFO_MEMBERS = 10 };

/* ---- who is where ---- */

struct place {
	char host[INET6_ADDRSTRLEN + 256];
	uint16_t port;
};

/* Where a node is, as the caller can reach it. */
static void find_place(const struct connection *connection, const struct resp_node *node, struct place *place)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = {.v6 = {0}};
	socklen_t length = sizeof address;
	(void)getsockname(connection->link.fd, &address.any, &length);
	bool v6 = address.any.sa_family == AF_INET6;
	place->port = node->port > 0 ? node->port : ntohs(v6 ? address.v6.sin6_port : address.v4.sin_port);
	place->host[0] = '\0';
	if (node->host != NULL)
		snprintf(place->host, sizeof place->host, "%s", node->host);
	else if (v6 && IN6_IS_ADDR_V4MAPPED(&address.v6.sin6_addr))
		(void)inet_ntop(AF_INET, address.v6.sin6_addr.s6_addr + 12, place->host, sizeof place->host);
	else
		(void)inet_ntop(v6 ? AF_INET6 : AF_INET, v6 ? (void *)&address.v6.sin6_addr : (void *)&address.v4.sin_addr,
		                place->host, sizeof place->host);
}

static void answer_slots(struct connection *connection)
{
	const struct resp_nodes *nodes = &connection->server->options.nodes;
	struct weir_text *out = &connection->out;
	struct place place;
	weir_resp_array(out, nodes->count);
	for (const struct resp_node *node = nodes->at; node < nodes->at + nodes->count; node++) {
		find_place(connection, node, &place);
		weir_resp_array(out, 3);
		weir_resp_integer(out, node->first_slot);
		weir_resp_integer(out, node->last_slot);
		weir_resp_array(out, 4);
		weir_resp_string(out, place.host);
		weir_resp_integer(out, place.port);
		weir_resp_string(out, node->id);
		weir_resp_array(out, 0);
	}
}

static void answer_shard(struct connection *connection, const struct resp_node *node)
{
	struct weir_text *out = &connection->out;
	struct place place;
	bool tls = connection->link.tls != NULL;
	find_place(connection, node, &place);
	weir_resp_map(out, 2, connection->protocol);
	weir_resp_string(out, "slots");
	weir_resp_array(out, 2);
	weir_resp_integer(out, node->first_slot);
	weir_resp_integer(out, node->last_slot);
	weir_resp_string(out, "nodes");
	weir_resp_array(out, 1);
	weir_resp_map(out, 7, connection->protocol);
	weir_resp_string(out, "id");
	weir_resp_string(out, node->id);
	weir_resp_string(out, tls ? "tls-port" : "port");
	weir_resp_integer(out, place.port);
	weir_resp_string(out, "ip");
	weir_resp_string(out, place.host);
	weir_resp_string(out, "endpoint");
	weir_resp_string(out, place.host);
	weir_resp_string(out, "role");
	weir_resp_string(out, "master");
	weir_resp_string(out, "replication-offset");
	weir_resp_integer(out, 0);
	weir_resp_string(out, "health");
	weir_resp_string(out, "online");
}

static void answer_nodes(struct connection *connection)
{
	const struct resp_nodes *nodes = &connection->server->options.nodes;
	struct weir_text text = {0};
	struct place place;
	for (uint32_t i = 0; i < nodes->count; i++) {
		const struct resp_node *node = &nodes->at[i];
		find_place(connection, node, &place);
		weir_text_printf(&text, "%s %s:%u@%u %s - 0 0 %u connected %u-%u\n", node->id, place.host, place.port,
		                 place.port + BUS_PORT_OFFSET, i == nodes->self ? "myself,master" : "master", i + 1,
		                 node->first_slot, node->last_slot);
	}
	weir_resp_bulk(&connection->out, weir_text_span(&text));
	weir_text_deinit(&text);
}

static void answer_cluster_info(struct connection *connection)
{
	const struct resp_nodes *nodes = &connection->server->options.nodes;
	char text[512];
	uint32_t slots = 0;
	for (uint32_t i = 0; i < nodes->count; i++)
		slots += nodes->at[i].last_slot - nodes->at[i].first_slot + 1;
	snprintf(text, sizeof text,
	         "cluster_enabled:1\r\ncluster_state:%s\r\ncluster_slots_assigned:%u\r\ncluster_slots_ok:%u\r\n"
	         "cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:%u\r\ncluster_size:%u\r\n"
	         "cluster_current_epoch:1\r\ncluster_my_epoch:1\r\n",
	         slots == WEIR_SLOTS ? "ok" : "fail", slots, slots, nodes->count, nodes->count);
	weir_resp_string(&connection->out, text);
}

bool run_cluster(struct connection *connection, const struct weir_resp_command *words)
{
	const struct resp_nodes *nodes = &connection->server->options.nodes;
	struct weir_text *out = &connection->out;
	struct weir_span sub = words->words[1];
	int64_t slot;
	if (word_is(sub, "slots")) {
		answer_slots(connection);
	} else if (word_is(sub, "shards")) {
		weir_resp_array(out, nodes->count);
		for (uint32_t i = 0; i < nodes->count; i++)
			answer_shard(connection, &nodes->at[i]);
	} else if (word_is(sub, "nodes")) {
		answer_nodes(connection);
	} else if (word_is(sub, "info")) {
		answer_cluster_info(connection);
	} else if (word_is(sub, "myid")) {
		weir_resp_string(out, nodes->at[nodes->self].id);
	} else if (word_is(sub, "links")) {
		weir_resp_array(out, 0);
	} else if (word_is(sub, "keyslot") && words->count == 3) {
		weir_resp_integer(out, weir_slot(words->words[2]));
	} else if (word_is(sub, "countkeysinslot") && words->count == 3 && weir_resp_number(words->words[2], &slot) &&
	           slot >= 0 && slot < WEIR_SLOTS) {
		weir_resp_integer(out, 0);
	} else {
		weir_resp_error(out, "ERR unknown subcommand '%.*s'. weir answers %s",
		                (int)(sub.length < NAME_MAX_BYTES ? sub.length : NAME_MAX_BYTES), sub.at,
		                command_find(words->words[0])->summary);
	}
	return true;
}

/* ---- INFO, CONFIG, DBSIZE ---- */

bool run_info(struct connection *connection, const struct weir_resp_command *words)
{
	const struct resp_server *server = connection->server;
	const struct resp_figures *figures = &server->figures;
	struct weir_text text = {0};
	struct place place;
	uint64_t commands = weir_counter_read(&figures->unknown_commands);
	(void)words; /* all of it is short */
	for (uint32_t i = 0; i < command_count(); i++)
		commands += weir_counter_read(&figures->commands[i]);
	find_place(connection, &server->options.nodes.at[server->options.nodes.self], &place);
	weir_text_printf(&text,
	                 "# Server\r\nredis_version:%s\r\nweir_version:%s\r\nredis_mode:cluster\r\nos:Linux\r\n"
	                 "arch_bits:64\r\nprocess_id:%d\r\nrun_id:%s\r\ntcp_port:%u\r\nuptime_in_seconds:%lld\r\n",
	                 RESP_AS_REDIS_VERSION, WEIR_VERSION, (int)getpid(),
	                 server->options.nodes.at[server->options.nodes.self].id, place.port,
	                 (long long)((server->now_ms - server->started_ms) / 1000));
	weir_text_printf(&text, "\r\n# Clients\r\nconnected_clients:%u\r\nmaxclients:%u\r\n", server->connection_count,
	                 server->options.connections);
	weir_text_printf(&text, "\r\n# Persistence\r\nloading:0\r\n\r\n# Stats\r\n");
	weir_text_printf(&text,
	                 "total_connections_received:%llu\r\nrejected_connections:%llu\r\n"
	                 "total_commands_processed:%llu\r\nchecks_in_flight:%llu\r\nbuffered_bytes:%zu\r\n",
	                 (unsigned long long)weir_counter_read(&figures->accepted),
	                 (unsigned long long)weir_counter_read(&figures->refused), (unsigned long long)commands,
	                 (unsigned long long)weir_counter_read(&figures->in_flight), server->buffered);
	weir_text_printf(
		&text, "\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n# Cluster\r\ncluster_enabled:1\r\n");
	weir_resp_bulk(&connection->out, weir_text_span(&text));
	weir_text_deinit(&text);
	return true;
}

bool run_config(struct connection *connection, const struct weir_resp_command *words)
{
	if (word_is(words->words[1], "get"))
		weir_resp_map(&connection->out, 0, connection->protocol);
	else
		weir_resp_error(&connection->out, "ERR settings are in weir's configuration, and are not changed here");
	return true;
}

bool run_dbsize(struct connection *connection, const struct weir_resp_command *words)
{
	(void)words;
	weir_resp_integer(&connection->out, 0);
	return true;
}

/* ---- COMMAND ---- */

static void describe(struct connection *connection, const struct command *command)
{
	struct weir_text *out = &connection->out;
	weir_resp_array(out, INFO_MEMBERS);
	weir_resp_string(out, command->name);
	weir_resp_integer(out, command->arity);
	weir_resp_array(out, command->key > 0 ? 2 : 1);
	if (command->key > 0)
		weir_resp_simple(out, "write");
	weir_resp_simple(out, "fast");
	for (int i = 0; i < 3; i++) /* the first key, the last one, and the step between them */
		weir_resp_integer(out, command->key);
	for (int i = 0; i < 4; i++)
		weir_resp_array(out, 0);
}

static void document(struct connection *connection, const struct command *command)
{
	struct weir_text *out = &connection->out;
	weir_resp_string(out, command->name);
	weir_resp_map(out, DOC_MEMBERS, connection->protocol);
	weir_resp_string(out, "summary");
	weir_resp_string(out, command->summary);
	weir_resp_string(out, "since");
	weir_resp_string(out, WEIR_VERSION);
	weir_resp_string(out, "group");
	weir_resp_string(out, command->key > 0 ? "checks" : "connection");
}

/* Of the commands that are named, or of all. */
static void answer_infos(struct connection *connection, const struct weir_resp_command *words)
{
	weir_resp_array(&connection->out, words->count > 2 ? words->count - 2 : command_count());
	for (uint32_t i = 2; i < words->count; i++) {
		const struct command *command = command_find(words->words[i]);
		if (command != NULL)
			describe(connection, command);
		else
			weir_resp_nil(&connection->out, connection->protocol);
	}
	for (uint32_t i = 0; words->count <= 2 && i < command_count(); i++)
		describe(connection, command_at(i));
}

static void answer_docs(struct connection *connection, const struct weir_resp_command *words)
{
	uint32_t known = 0;
	for (uint32_t i = 2; i < words->count; i++)
		known += command_find(words->words[i]) != NULL;
	weir_resp_map(&connection->out, words->count > 2 ? known : command_count(), connection->protocol);
	for (uint32_t i = 2; i < words->count; i++)
		if (command_find(words->words[i]) != NULL)
			document(connection, command_find(words->words[i]));
	for (uint32_t i = 0; words->count <= 2 && i < command_count(); i++)
		document(connection, command_at(i));
}

static void answer_keys(struct connection *connection, const struct weir_resp_command *words)
{
	const struct command *command = words->count > 2 ? command_find(words->words[2]) : NULL;
	if (command == NULL) {
		weir_resp_error(&connection->out, "ERR Invalid command specified");
	} else if (command->key == 0 || words->count <= 2u + command->key) {
		weir_resp_error(&connection->out, "ERR The command has no key arguments");
	} else {
		weir_resp_array(&connection->out, 1);
		weir_resp_bulk(&connection->out, words->words[2 + command->key]);
	}
}

bool run_command(struct connection *connection, const struct weir_resp_command *words)
{
	struct weir_text *out = &connection->out;
	if (words->count == 1 || word_is(words->words[1], "info")) {
		answer_infos(connection, words);
	} else if (word_is(words->words[1], "count")) {
		weir_resp_integer(out, command_count());
	} else if (word_is(words->words[1], "docs")) {
		answer_docs(connection, words);
	} else if (word_is(words->words[1], "getkeys")) {
		answer_keys(connection, words);
	} else if (word_is(words->words[1], "list")) {
		weir_resp_array(out, command_count());
		for (uint32_t i = 0; i < command_count(); i++)
			weir_resp_string(out, command_at(i)->name);
	} else {
		weir_resp_error(out, "ERR unknown subcommand. weir answers COMMAND, COMMAND COUNT, DOCS, INFO, LIST, GETKEYS");
	}
	return true;
}

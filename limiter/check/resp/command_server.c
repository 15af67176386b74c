/* SPDX-License-Identifier: Apache-2.0 */
/* What clients and people ask about the server: COMMAND, CLUSTER. Of what a Redis would say, what some client reads. */
#include "common/bytes/hash.h"
#include "common/resp/resp_number.h"
#include "limiter/check/resp/internal.h"

#include <stdio.h>

enum { BUS_PORT_OFFSET = 10000, DOC_MEMBERS = 3, INFO_MEMBERS = 10 };

/* ---- who is where ---- */

static void answer_slots(struct connection *connection, const struct nodes *nodes)
{
	struct weir_text *out = &connection->out;
	weir_resp_array(out, nodes->range_count);
	for (uint32_t i = 0; i < nodes->range_count; i++) {
		const struct node_range *range = &nodes->ranges[i];
		const struct node *node = &nodes->at[range->node];
		weir_resp_array(out, 3);
		weir_resp_integer(out, range->first);
		weir_resp_integer(out, range->last);
		weir_resp_array(out, 4);
		weir_resp_string(out, node->host);
		weir_resp_integer(out, node->port);
		weir_resp_string(out, node->id);
		weir_resp_array(out, 0);
	}
}

static void answer_ranges(struct connection *connection, const struct nodes *nodes, uint32_t node)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < nodes->range_count; i++)
		count += nodes->ranges[i].node == node;
	weir_resp_array(&connection->out, (size_t)2 * count);
	for (uint32_t i = 0; i < nodes->range_count; i++)
		if (nodes->ranges[i].node == node) {
			weir_resp_integer(&connection->out, nodes->ranges[i].first);
			weir_resp_integer(&connection->out, nodes->ranges[i].last);
		}
}

static void answer_shard(struct connection *connection, const struct nodes *nodes, uint32_t number)
{
	struct weir_text *out = &connection->out;
	bool tls = connection->base.link.tls != NULL;
	const struct node *node = &nodes->at[number];
	weir_resp_map(out, 2, connection->protocol);
	weir_resp_string(out, "slots");
	answer_ranges(connection, nodes, number);
	weir_resp_string(out, "nodes");
	weir_resp_array(out, 1);
	weir_resp_map(out, 7, connection->protocol);
	weir_resp_string(out, "id");
	weir_resp_string(out, node->id);
	weir_resp_string(out, tls ? "tls-port" : "port");
	weir_resp_integer(out, node->port);
	weir_resp_string(out, "ip");
	weir_resp_string(out, node->host);
	weir_resp_string(out, "endpoint");
	weir_resp_string(out, node->host);
	weir_resp_string(out, "role");
	weir_resp_string(out, "master");
	weir_resp_string(out, "replication-offset");
	weir_resp_integer(out, 0);
	weir_resp_string(out, "health");
	weir_resp_string(out, "online");
}

static void answer_node(struct weir_text *text, const struct nodes *nodes, uint32_t number, bool self)
{
	const struct node *node = &nodes->at[number];
	weir_text_printf(text, "%s %s:%u@%u %s - 0 0 %u connected", node->id, node->host, node->port,
	                 node->port + BUS_PORT_OFFSET, self ? "myself,master" : "master", number + 1);
	for (uint32_t i = 0; i < nodes->range_count; i++)
		if (nodes->ranges[i].node == number)
			weir_text_printf(text, " %u-%u", nodes->ranges[i].first, nodes->ranges[i].last);
	weir_text_puts(text, "\n");
}

/*
 * redis-benchmark takes a cluster of one node for none: such a one is listed twice, under one address. Of both lines each has
 * all slots, as redis-cli, which asks both nodes who they are, finds the first one twice.
 */
static void list_again(struct weir_text *text, const struct nodes *nodes)
{
	struct nodes again = {.count = 1, .ranges = nodes->ranges, .range_count = nodes->range_count};
	again.at[0] = nodes->at[0];
	again.at[0].id[0] = nodes->at[0].id[0] == '0' ? '1' : '0';
	answer_node(text, &again, 0, false);
}

static void answer_nodes(struct connection *connection, const struct nodes *nodes)
{
	struct weir_text text = {0};
	for (uint32_t i = 0; i < nodes->count; i++)
		answer_node(&text, nodes, i, i == 0);
	if (nodes->count == 1)
		list_again(&text, nodes);
	weir_resp_bulk(&connection->out, weir_text_span(&text));
	weir_text_deinit(&text);
}

static void answer_cluster_info(struct connection *connection, const struct nodes *nodes)
{
	char text[512];
	snprintf(text, sizeof text,
	         "cluster_enabled:1\r\ncluster_state:ok\r\ncluster_slots_assigned:%d\r\ncluster_slots_ok:%d\r\n"
	         "cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:%u\r\ncluster_size:%u\r\n"
	         "cluster_current_epoch:1\r\ncluster_my_epoch:1\r\n",
	         WEIR_SLOTS, WEIR_SLOTS, nodes->count, nodes->count);
	weir_resp_string(&connection->out, text);
}

/* @return false: it asks something else */
static bool answer_of_nodes(struct connection *connection, struct weir_span sub)
{
	struct nodes nodes;
	bool known = true;
	nodes_read(connection, &nodes);
	if (word_is(sub, "slots")) {
		answer_slots(connection, &nodes);
	} else if (word_is(sub, "shards")) {
		weir_resp_array(&connection->out, nodes.count);
		for (uint32_t i = 0; i < nodes.count; i++)
			answer_shard(connection, &nodes, i);
	} else if (word_is(sub, "nodes")) {
		answer_nodes(connection, &nodes);
	} else if (word_is(sub, "info")) {
		answer_cluster_info(connection, &nodes);
	} else if (word_is(sub, "myid")) {
		weir_resp_string(&connection->out, nodes.at[0].id);
	} else {
		known = false;
	}
	nodes_free(&nodes);
	return known;
}

bool run_cluster(struct connection *connection, const struct weir_resp_command *words)
{
	struct weir_text *out = &connection->out;
	struct weir_span sub = words->words[1];
	int64_t slot;
	if (answer_of_nodes(connection, sub))
		return true;
	if (word_is(sub, "links")) {
		weir_resp_array(out, 0);
	} else if (word_is(sub, "keyslot") && words->count == 3) {
		weir_resp_integer(out, weir_slot(words->words[2]));
	} else if (word_is(sub, "countkeysinslot") && words->count == 3) {
		if (!weir_resp_number(words->words[2], &slot))
			weir_resp_error(out, "ERR value is not an integer or out of range");
		else if (slot < 0 || slot >= WEIR_SLOTS)
			weir_resp_error(out, "ERR Invalid slot");
		else
			weir_resp_integer(out, 0);
	} else {
		weir_resp_error(out, "ERR unknown subcommand '%.*s'. weir answers %s",
		                (int)(sub.length < NAME_MAX_BYTES ? sub.length : NAME_MAX_BYTES), sub.at,
		                command_find(words->words[0])->summary);
	}
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

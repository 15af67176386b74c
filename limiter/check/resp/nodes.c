/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster as its clients see it: which node answers for which slots.
 *
 * A key's slot says which partition it is in, and a partition is a range of slots. So a client that sends a key where its
 * slot belongs finds its owner, unless the zone writes the key anew (an IPv6 address becomes its network): then the slot of
 * what was sent says nothing, and only forwarding is right. Whoever asks any other node is answered all the same.
 */
#include "common/base/alloc.h"
#include "common/bytes/hash.h"
#include "common/bytes/hex.h"
#include "limiter/check/resp/internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOT_BITS = 14 };

/* ---- ids: of an address, so that all nodes know each other by the same ones ---- */

void node_make_id(const char *text, char id[NODE_ID_DIGITS + 1])
{
	uint8_t hash[16], bytes[NODE_ID_DIGITS / 2];
	weir_hash128(text, strlen(text), hash);
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = hash[i % sizeof hash];
	*weir_hex_put(id, bytes, sizeof bytes) = '\0';
}

static void id_of(const struct owners_place *place, char id[NODE_ID_DIGITS + 1])
{
	char address[OWNERS_HOST_BYTES + 16];
	snprintf(address, sizeof address, "%s %u", place->host, place->port);
	node_make_id(address, id);
}

void node_own_id(const struct resp_server *server, char id[NODE_ID_DIGITS + 1])
{
	if (server->options.owners != NULL)
		id_of(owners_self(server->options.owners), id);
	else
		memcpy(id, server->id, sizeof server->id);
}

/* ---- addresses ---- */

/* Where the caller has reached this server. */
static void find_own_place(const struct connection *connection, struct node *node)
{
	struct link_end end = link_end_of(&connection->base.link, true);
	struct weir_address address;
	char host[WEIR_ADDRESS_TEXT_BYTES] = "";
	if (weir_address_parse(weir_span_of(end.host), &address)) /* one that is mapped is the address of IPv4 */
		weir_address_format(&address, host);
	snprintf(node->host, sizeof node->host, "%s", host);
	node->port = end.port;
}

static void set_node(struct node *node, const struct owners_place *place)
{
	id_of(place, node->id);
	snprintf(node->host, sizeof node->host, "%s", place->host);
	node->port = place->port;
}

/* ---- all of them ---- */

/* The first slot of a partition. */
static uint32_t first_slot(uint32_t partition, uint32_t partitions)
{
	return (uint32_t)((((uint64_t)partition << SLOT_BITS) + partitions - 1) / partitions);
}

static void add_range(struct nodes *nodes, uint32_t first, uint32_t last, uint32_t node)
{
	assert(nodes->ranges != NULL); /* there is room for one a partition */
	struct node_range *before = nodes->range_count > 0 ? &nodes->ranges[nodes->range_count - 1] : NULL;
	if (before != NULL && before->node == node)
		before->last = last;
	else
		nodes->ranges[nodes->range_count++] = (struct node_range){first, last, node};
}

/* The number among `nodes` of who has a partition. What nobody is known to have is asked here. */
static uint32_t node_of(struct owners *owners, uint32_t partition, struct nodes *nodes,
                        uint32_t known[OWNERS_PLACES_MAX])
{
	struct owners_place place;
	uint32_t number = owners_of(owners, partition);
	if (number == OWNERS_NONE)
		return 0;
	if (known[number] == 0 && owners_place(owners, number, &place)) {
		set_node(&nodes->at[nodes->count], &place);
		known[number] = nodes->count++;
	}
	return known[number];
}

void nodes_read(const struct connection *connection, struct nodes *nodes)
{
	const struct resp_server *server = connection->server;
	struct owners *owners = server->options.owners;
	uint32_t known[OWNERS_PLACES_MAX] = {0}, partitions = owners != NULL ? owners_partitions(owners) : 1;
	nodes->count = 1;
	nodes->range_count = 0;
	nodes->ranges = weir_alloc(partitions, sizeof *nodes->ranges);
	node_own_id(server, nodes->at[0].id);
	if (server->options.named)
		set_node(&nodes->at[0], owners_self(owners));
	else
		find_own_place(connection, &nodes->at[0]);
	for (uint32_t i = 0; i < partitions; i++) {
		uint32_t node = owners != NULL ? node_of(owners, i, nodes, known) : 0;
		add_range(nodes, first_slot(i, partitions), first_slot(i + 1, partitions) - 1, node);
	}
}

void nodes_free(struct nodes *nodes)
{
	free(nodes->ranges);
}

bool node_elsewhere(const struct resp_server *server, struct weir_span given, struct weir_span key, uint32_t *slot,
                    struct owners_place *place)
{
	struct owners *owners = server->options.owners;
	if (!server->options.redirect || owners == NULL)
		return false;
	*slot = weir_slot(given);
	uint32_t partitions = owners_partitions(owners), partition = weir_partition(*slot, partitions);
	bool same = given.at == key.at || weir_partition(weir_slot(key), partitions) == partition;
	uint32_t number = same ? owners_of(owners, partition) : OWNERS_NONE;
	return number != OWNERS_NONE && owners_place(owners, number, place);
}

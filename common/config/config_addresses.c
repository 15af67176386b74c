/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All addresses at which something listens, in one list. Each is of another protocol, or of another source: where two
 * share one, a start fails, or the system gives connections to either.
 */
#include "common/config/config.h"

#include "common/base/alloc.h"
#include "common/bytes/listen_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who listens there in a cluster, where each role may be on a machine of its own. */
enum owner { OWNER_ANY, OWNER_LIMITER, OWNER_ARCHIVER, OWNER_COLLECTOR };

struct address {
	struct weir_json at;
	char name[48]; /* "sources[0].listen" */
	enum owner owner;
	bool udp;
	char *host; /* owned */
	uint16_t port;
};

struct addresses {
	struct address *list;
	size_t count;
};

/* What is no address is told by who reads it. */
static void add(struct addresses *addresses, const struct weir_json *at, const char *text, const char *name,
                enum owner owner)
{
	struct address address = {.at = *at, .owner = owner, .udp = text != NULL && strncmp(text, "udp://", 6) == 0};
	const char *scheme = text != NULL ? strstr(text, "://") : NULL;
	if (text == NULL || !weir_listen_address(scheme != NULL ? scheme + 3 : text, &address.host, &address.port))
		return;
	snprintf(address.name, sizeof address.name, "%s", name);
	addresses->list = weir_realloc(addresses->list, addresses->count + 1, sizeof *addresses->list);
	addresses->list[addresses->count++] = address;
}

static void add_sources(struct addresses *addresses, const struct weir_config *config)
{
	for (size_t i = 0; i < config->source_count; i++) {
		struct weir_json source = weir_json_element(&config->sources, i), at = weir_json_member(&source, "listen");
		char name[48];
		snprintf(name, sizeof name, "sources[%zu].listen", i);
		add(addresses, &at, json_string_value(at.value), name, OWNER_COLLECTOR);
		for (size_t j = 0; j < json_array_size(at.value); j++) {
			struct weir_json element = weir_json_element(&at, j);
			add(addresses, &element, json_string_value(element.value), name, OWNER_COLLECTOR);
		}
	}
}

/* A socket of "::" takes IPv6 alone, so it may stand beside one of IPv4. A name may be of either. */
static bool is_within(const char *host, const char *every)
{
	bool v6 = strchr(host, ':') != NULL, name = strcmp(host, "localhost") == 0;
	return strcmp(every, "*") == 0 || (strcmp(every, "0.0.0.0") == 0 && (!v6 || name)) ||
	       (strcmp(every, "::") == 0 && (v6 || name));
}

static bool meet(const struct address *a, const struct address *b, bool cluster)
{
	if (cluster && a->owner != b->owner && a->owner != OWNER_ANY && b->owner != OWNER_ANY)
		return false;
	return a->udp == b->udp && a->port == b->port && a->port != 0 &&
	       (strcmp(a->host, b->host) == 0 || is_within(a->host, b->host) || is_within(b->host, a->host));
}

enum weir_status weir_config_check_addresses(const struct weir_json *root, const struct weir_config *config,
                                             struct weir_error *error)
{
	struct addresses addresses = {0};
	struct weir_json listen = weir_json_member(root, "listen"), archiver = weir_json_member(root, "archiver");
	struct weir_json api = weir_json_member(&archiver, "api");
	const char *const texts[] = {config->listen.http, config->listen.resp, config->listen.grpc,
	                             config->listen.check_http};
	static const char *const names[] = {"http", "resp", "grpc", "check_http"};
	bool cluster = config->bus.type == WEIR_BUS_KAFKA;
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct weir_json at = weir_json_member(&listen, names[i]);
		char name[48];
		snprintf(name, sizeof name, "listen.%s", names[i]);
		add(&addresses, &at, texts[i], name, i == 0 ? OWNER_ANY : OWNER_LIMITER);
	}
	if (cluster || config->archiver.enabled)
		add(&addresses, &api, config->archiver.api, "archiver.api", OWNER_ARCHIVER);
	add_sources(&addresses, config);
	for (size_t i = 1; i < addresses.count; i++)
		for (size_t j = 0; status == WEIR_OK && j < i; j++)
			if (meet(&addresses.list[i], &addresses.list[j], cluster))
				status = weir_json_fail(&addresses.list[i].at, error, "has the port of %s: give each one of its own",
				                        addresses.list[j].name);
	for (size_t i = 0; i < addresses.count; i++)
		free(addresses.list[i].host);
	free(addresses.list);
	return status;
}

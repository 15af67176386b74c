/* SPDX-License-Identifier: Apache-2.0 */
/* A server and a matching of requests for each worker, by the configuration. */
#include "limiter/daemon/checks_grpc.h"

#include "common/base/alloc.h"

#include <stdlib.h>

struct checks_grpc {
	const struct weir_config *config;
	const struct weir_log *log;
	struct refusals *refusals;
	uint16_t port; /* that the first worker listens on; the others follow it */
	uint32_t count;
	struct link_server **servers; /* by worker; each is its worker's */
	struct weir_exempt_lists *lists;
};

struct checks_grpc *checks_grpc_new(const struct weir_config *config, uint32_t threads, struct weir_exempt_lists *lists,
                                    struct refusals *refusals, const struct weir_log *log)
{
	struct checks_grpc *grpc = weir_alloc(1, sizeof *grpc);
	grpc->config = config;
	grpc->log = log;
	grpc->refusals = refusals;
	grpc->lists = lists;
	grpc->count = threads;
	grpc->servers = weir_alloc(threads, sizeof(struct link_server *));
	return grpc;
}

void checks_grpc_free(struct checks_grpc *grpc)
{
	if (grpc == NULL)
		return;
	free(grpc->servers);
	free(grpc);
}

static enum weir_status listen_at(struct checks_grpc *grpc, struct link_server *server,
                                  struct weir_http_tls_server *tls, struct weir_error *error)
{
	const struct weir_config *config = grpc->config;
	uint16_t wanted = grpc->port != 0 ? grpc->port : config->listen.grpc_port, bound = 0;
	enum weir_status status =
		link_server_listen(server, config->listen.grpc_host, wanted, grpc->count > 1, tls, &bound, error);
	if (status != WEIR_OK)
		return status;
	if (grpc->port == 0)
		weir_log(grpc->log, WEIR_LOG_INFO, "checks", "listening for gRPC on %s port %u%s", config->listen.grpc_host,
		         bound, tls != NULL ? ", by TLS" : "");
	grpc->port = bound;
	return WEIR_OK;
}

enum weir_status checks_grpc_open(struct checks_grpc *grpc, uint32_t worker, const struct check_judge *judge,
                                  const char *password, struct weir_http_tls_server *tls, struct check_surface *surface,
                                  struct weir_error *error)
{
	const struct check_request_options matching = {.lists = grpc->lists, .log = grpc->log};
	struct check_request *request;
	enum weir_status status = check_request_new(&matching, &request, error);
	if (status != WEIR_OK)
		return status;
	const struct grpc_options options = {
		.judge = *judge,
		.request = request,
		.password = password,
		.connections = (uint32_t)grpc->config->checks.connections,
		.on_unavailable = (enum weir_on_unavailable)grpc->config->checks.on_unavailable,
		.fields = (enum weir_rate_limit_fields)grpc->config->checks.fields,
		.durable = grpc->config->checks.durable,
		.refusals = grpc->refusals,
	};
	struct link_server *server = grpc->servers[worker] = grpc_server_new(&options);
	*surface = link_server_surface(server);
	return listen_at(grpc, server, tls, error);
}

uint64_t checks_grpc_figure(const struct checks_grpc *grpc, size_t member)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; grpc != NULL && i < grpc->count; i++) {
		const char *figures = (const char *)&grpc->servers[i]->figures;
		sum += weir_counter_read((const struct weir_counter *)(const void *)(figures + member));
	}
	return sum;
}

const struct check_counts *checks_grpc_counts(const struct checks_grpc *grpc, uint32_t worker)
{
	return grpc == NULL || worker >= grpc->count ? NULL : grpc->servers[worker]->counts;
}

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
	struct grpc_server **servers; /* by worker; each is its worker's */
	struct check_request **requests;
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
	grpc->servers = weir_alloc(threads, sizeof(struct grpc_server *));
	grpc->requests = weir_alloc(threads, sizeof(struct check_request *));
	return grpc;
}

void checks_grpc_free(struct checks_grpc *grpc)
{
	if (grpc == NULL)
		return;
	for (uint32_t i = 0; i < grpc->count; i++)
		check_request_free(grpc->requests[i]);
	free(grpc->requests);
	free(grpc->servers);
	free(grpc);
}

static void serve(void *context)
{
	grpc_server_turn(context, 0);
}

static void answered(void *context, const struct check_answer *answer)
{
	grpc_server_answered(context, answer);
}

static void stop(void *context)
{
	grpc_server_stop(context);
}

static void free_server(void *context)
{
	grpc_server_free(context);
}

static enum weir_status listen_at(struct checks_grpc *grpc, struct grpc_server *server,
                                  struct weir_http_tls_server *tls, struct weir_error *error)
{
	const struct weir_config *config = grpc->config;
	uint16_t wanted = grpc->port != 0 ? grpc->port : config->listen.grpc_port, bound = 0;
	enum weir_status status =
		grpc_server_listen(server, config->listen.grpc_host, wanted, grpc->count > 1, tls, &bound, error);
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
	enum weir_status status = check_request_new(&matching, &grpc->requests[worker], error);
	if (status != WEIR_OK)
		return status;
	const struct grpc_options options = {
		.judge = *judge,
		.request = grpc->requests[worker],
		.password = password,
		.connections = (uint32_t)grpc->config->checks.connections,
		.on_unavailable = (enum weir_on_unavailable)grpc->config->checks.on_unavailable,
		.fields = (enum weir_rate_limit_fields)grpc->config->checks.fields,
		.durable = grpc->config->checks.durable,
		.refusals = grpc->refusals,
	};
	struct grpc_server *server = grpc->servers[worker] = grpc_server_new(&options);
	*surface = (struct check_surface){.context = server,
	                                  .descriptor = grpc_server_descriptor(server),
	                                  .serve = serve,
	                                  .answered = answered,
	                                  .stop = stop,
	                                  .free = free_server};
	return listen_at(grpc, server, tls, error);
}

uint64_t checks_grpc_figure(const struct checks_grpc *grpc, size_t member)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; grpc != NULL && i < grpc->count; i++) {
		const char *figures = (const char *)grpc_server_figures(grpc->servers[i]);
		sum += weir_counter_read((const struct weir_counter *)(const void *)(figures + member));
	}
	return sum;
}

const struct check_counts *checks_grpc_counts(const struct checks_grpc *grpc, uint32_t worker)
{
	return grpc == NULL || worker >= grpc->count ? NULL : grpc_server_counts(grpc->servers[worker]);
}

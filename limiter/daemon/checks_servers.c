/* SPDX-License-Identifier: Apache-2.0 */
/* Makes what the configuration says of checks into the options of each worker's servers. */
#include "limiter/daemon/checks_servers.h"

#include "common/base/alloc.h"
#include "limiter/check/grpc/grpc_server.h"
#include "limiter/check/http/check_http.h"
#include "limiter/check/link_server.h"
#include "limiter/check/request/check_request.h"
#include "limiter/check/resp/resp_server.h"
#include "limiter/check/surfaces.h"

#include <stdatomic.h>
#include <stdlib.h>

struct checks_servers {
	struct checks_servers_options options;
	uint16_t ports[REFUSAL_SURFACES]; /* that the first worker listens on; the others follow it */
	/* By worker; each is its worker's. NULL: it has none, or did not open. */
	struct link_server **opened[REFUSAL_SURFACES];
	/* The same for any thread: NULL also until all of its worker is open, as what fails before that frees it. */
	struct link_server *_Atomic *servers[REFUSAL_SURFACES];
};

struct checks_servers *checks_servers_new(const struct checks_servers_options *options)
{
	struct checks_servers *servers = weir_alloc(1, sizeof *servers);
	servers->options = *options;
	for (int by = 0; by < REFUSAL_SURFACES; by++) {
		servers->opened[by] = weir_alloc(options->threads, sizeof(struct link_server *));
		servers->servers[by] = weir_alloc(options->threads, sizeof *servers->servers[by]);
	}
	return servers;
}

void checks_servers_free(struct checks_servers *servers)
{
	for (int by = 0; servers != NULL && by < REFUSAL_SURFACES; by++) {
		free(servers->opened[by]);
		free(servers->servers[by]);
	}
	free(servers);
}

/* ---- by each protocol. @param request  taken ---- */

static void sum_resp(void *context, struct resp_totals *totals)
{
	const struct checks_servers *servers = context;
	for (uint32_t i = 0; i < servers->options.threads; i++) {
		const struct link_server *server = atomic_load(&servers->servers[REFUSAL_RESP][i]);
		if (server != NULL)
			resp_server_add(server, totals);
	}
}

static struct link_server *open_resp(struct checks_servers *servers, const struct link_options *common,
                                     struct check_request *request)
{
	const struct checks_servers_options *given = &servers->options;
	const struct resp_options options = {
		.exempt = request,
		.users = given->users->at,
		.user_count = given->users->count,
		.owners = given->owners,
		.named = given->owners != NULL && given->config->checks.advertise_host != NULL,
		.redirect = given->config->checks.redirect,
		.sum = sum_resp,
		.sum_context = servers,
	};
	return resp_server_new(common, &options);
}

static struct link_server *open_http(struct checks_servers *servers, const struct link_options *common,
                                     struct check_request *request)
{
	const struct checks_servers_options *given = &servers->options;
	const struct check_http_options options = {
		.request = request,
		.password = given->password,
		.fields = (enum weir_rate_limit_fields)given->config->checks.fields,
	};
	return check_http_new(common, &options);
}

static struct link_server *open_grpc(struct checks_servers *servers, const struct link_options *common,
                                     struct check_request *request)
{
	const struct checks_servers_options *given = &servers->options;
	const struct grpc_options options = {
		.request = request,
		.password = given->password,
		.fields = (enum weir_rate_limit_fields)given->config->checks.fields,
	};
	return grpc_server_new(common, &options);
}

/* ---- all of them ---- */

static const struct {
	const char *name; /* as the log says it */
	struct link_server *(*open)(struct checks_servers *servers, const struct link_options *common,
	                            struct check_request *request);
} protocols[] = {
	[REFUSAL_RESP] = {"", open_resp},
	[REFUSAL_HTTP] = {" for HTTP", open_http},
	[REFUSAL_GRPC] = {" for gRPC", open_grpc},
};

static enum weir_status listen_at(struct checks_servers *servers, enum refusal_surface by, struct link_server *server,
                                  const char *host, uint16_t port, struct weir_error *error)
{
	const struct checks_servers_options *options = &servers->options;
	uint16_t wanted = servers->ports[by] != 0 ? servers->ports[by] : port, bound = 0;
	enum weir_status status =
		link_server_listen(server, host, wanted, options->threads > 1, options->tls, &bound, error);
	if (status != WEIR_OK)
		return status;
	if (servers->ports[by] == 0)
		weir_log(options->log, WEIR_LOG_INFO, "checks", "listening%s on %s port %u%s", protocols[by].name, host, bound,
		         options->tls != NULL ? ", by TLS" : "");
	servers->ports[by] = bound;
	return WEIR_OK;
}

static enum weir_status make_request(const struct checks_servers_options *options, enum refusal_surface by,
                                     struct check_request **request, struct weir_error *error)
{
	struct check_request_options matching = {.lists = options->lists, .log = options->log};
	if (by == REFUSAL_HTTP)
		matching.client_ip = options->config->checks.client_ip;
	return check_request_new(&matching, request, error);
}

static enum weir_status open_one(struct checks_servers *servers, enum refusal_surface by, uint32_t worker,
                                 struct surfaces *all, struct link_server **server, struct weir_error *error)
{
	const struct checks_servers_options *options = &servers->options;
	const struct link_options common = {
		.judge = *surfaces_judge(all),
		.connections = (uint32_t)options->config->checks.connections,
		.on_unavailable = (enum weir_on_unavailable)options->config->checks.on_unavailable,
		.durable = options->config->checks.durable,
		.refusals = options->refusals,
	};
	struct check_request *request;
	enum weir_status status = make_request(options, by, &request, error);
	if (status != WEIR_OK)
		return status;
	*server = protocols[by].open(servers, &common, request);
	servers->opened[by][worker] = *server;
	const struct check_surface surface = link_server_surface(*server);
	status = surfaces_add(all, &surface, error); /* which frees it, whatever follows */
	return link_server_opened(*server, error) == WEIR_OK ? status : WEIR_IO;
}

enum weir_status checks_servers_open(struct checks_servers *servers, uint32_t worker, const struct check_judge *judge,
                                     struct check_surface *surface, struct weir_error *error)
{
	const struct weir_config *config = servers->options.config;
	const struct {
		enum refusal_surface by;
		const char *host;
		uint16_t port;
	} places[] = {{REFUSAL_RESP, config->listen.resp_host, config->listen.resp_port},
	              {REFUSAL_GRPC, config->listen.grpc_host, config->listen.grpc_port},
	              {REFUSAL_HTTP, config->listen.check_http_host, config->listen.check_http_port}};
	struct surfaces *all = surfaces_new(judge);
	enum weir_status status = WEIR_OK;
	*surface = surfaces_all(all);
	for (size_t i = 0; i < sizeof places / sizeof *places && status == WEIR_OK; i++) {
		struct link_server *server;
		if (places[i].host == NULL)
			continue;
		status = open_one(servers, places[i].by, worker, all, &server, error);
		if (status == WEIR_OK)
			status = listen_at(servers, places[i].by, server, places[i].host, places[i].port, error);
	}
	return status;
}

void checks_servers_opened(struct checks_servers *servers, uint32_t worker)
{
	for (int by = 0; by < REFUSAL_SURFACES; by++)
		atomic_store(&servers->servers[by][worker], servers->opened[by][worker]);
}

uint16_t checks_servers_port(const struct checks_servers *servers)
{
	return servers->ports[REFUSAL_RESP];
}

/* ---- figures ---- */

uint64_t checks_servers_figure(const struct checks_servers *servers, enum refusal_surface by, size_t member)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; servers != NULL && i < servers->options.threads; i++) {
		const struct link_server *server = atomic_load(&servers->servers[by][i]);
		if (server == NULL)
			continue;
		const char *figures = (const char *)&server->figures;
		sum += weir_counter_read((const struct weir_counter *)(const void *)(figures + member));
	}
	return sum;
}

const struct check_counts *checks_servers_counts(const struct checks_servers *servers, enum refusal_surface by,
                                                 uint32_t worker)
{
	const struct link_server *server = atomic_load(&servers->servers[by][worker]);
	return server != NULL ? server->counts : NULL;
}

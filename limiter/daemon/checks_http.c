/* SPDX-License-Identifier: Apache-2.0 */
/* Makes what the configuration says of HTTP into the options of each worker's server. */
#include "limiter/daemon/checks_http.h"

#include "common/base/alloc.h"
#include "limiter/check/request/check_request.h"

#include <stdlib.h>

struct checks_http {
	const struct weir_config *config;
	const struct weir_log *log;
	struct refusals *refusals;
	struct weir_exempt_lists *lists;
	uint16_t port; /* that the first worker listens on; the others follow it */
	uint32_t count;
	struct link_server **servers; /* by worker; each is its worker's */
};

struct checks_http *checks_http_new(const struct weir_config *config, uint32_t threads, struct weir_exempt_lists *lists,
                                    struct refusals *refusals, const struct weir_log *log)
{
	struct checks_http *http = weir_alloc(1, sizeof *http);
	*http = (struct checks_http){.config = config, .log = log, .refusals = refusals, .lists = lists, .count = threads};
	http->servers = weir_alloc(threads, sizeof(struct link_server *));
	return http;
}

void checks_http_free(struct checks_http *http)
{
	if (http == NULL)
		return;
	free(http->servers);
	free(http);
}

static enum weir_status listen_at(struct checks_http *http, struct link_server *server,
                                  struct weir_http_tls_server *tls, struct weir_error *error)
{
	const struct weir_config *config = http->config;
	uint16_t wanted = http->port != 0 ? http->port : config->listen.check_http_port, bound = 0;
	enum weir_status status =
		link_server_listen(server, config->listen.check_http_host, wanted, http->count > 1, tls, &bound, error);
	if (status != WEIR_OK)
		return status;
	if (http->port == 0)
		weir_log(http->log, WEIR_LOG_INFO, "checks", "listening for HTTP on %s port %u%s",
		         config->listen.check_http_host, bound, tls != NULL ? ", by TLS" : "");
	http->port = bound;
	return WEIR_OK;
}

enum weir_status checks_http_open(struct checks_http *http, uint32_t worker, const struct check_judge *judge,
                                  const char *password, struct weir_http_tls_server *tls, struct check_surface *surface,
                                  struct weir_error *error)
{
	const struct weir_config *config = http->config;
	const struct check_request_options matching = {
		.lists = http->lists, .log = http->log, .client_ip = config->checks.client_ip};
	struct check_request *request;
	enum weir_status status = check_request_new(&matching, &request, error);
	if (status != WEIR_OK)
		return status;
	const struct check_http_options options = {
		.judge = *judge,
		.request = request,
		.password = password,
		.connections = (uint32_t)config->checks.connections,
		.on_unavailable = (enum weir_on_unavailable)config->checks.on_unavailable,
		.fields = (enum weir_rate_limit_fields)config->checks.fields,
		.durable = config->checks.durable,
		.refusals = http->refusals,
	};
	struct link_server *server = http->servers[worker] = check_http_new(&options);
	*surface = link_server_surface(server);
	return listen_at(http, server, tls, error);
}

uint64_t checks_http_figure(const struct checks_http *http, size_t member)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; http != NULL && i < http->count; i++) {
		const char *figures = (const char *)&http->servers[i]->figures;
		sum += weir_counter_read((const struct weir_counter *)(const void *)(figures + member));
	}
	return sum;
}

const struct check_counts *checks_http_counts(const struct checks_http *http, uint32_t worker)
{
	return http == NULL || worker >= http->count ? NULL : http->servers[worker]->counts;
}

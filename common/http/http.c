/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server: libmicrohttpd with one thread of its own for all
 * connections, and a pool of workers on which callbacks run.
 *
 * Everything a client can hold on to is bounded: connections, the time that one
 * may be idle or take over a request or a reply, the bytes of its request, the
 * replies that are made and not yet read. A slow reader holds memory and no
 * thread.
 */
#include "common/http/internal.h"
#include "common/http/listen_socket.h"

#include "common/base/alloc.h"
#include "common/bytes/http_target.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- what a callback may ask of its request ---- */

struct each_query {
	bool (*each)(void *context, struct weir_span name, struct weir_span value);
	void *context;
};

static enum MHD_Result pass_on(void *context, enum MHD_ValueKind kind, const char *name, size_t name_length,
                               const char *value, size_t value_length)
{
	const struct each_query *query = context;
	(void)kind;
	return query->each(query->context, (struct weir_span){name, (uint32_t)name_length},
	                   (struct weir_span){value, (uint32_t)value_length})
	           ? MHD_YES
	           : MHD_NO;
}

void weir_http_each_query(const struct weir_http_request *request,
                          bool (*each)(void *context, struct weir_span name, struct weir_span value), void *context)
{
	struct each_query query = {each, context};
	MHD_get_connection_values_n(request->exchange->connection, MHD_GET_ARGUMENT_KIND, pass_on, &query);
}

const char *weir_http_field(const struct weir_http_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->exchange->connection, MHD_HEADER_KIND, name);
}

const char *weir_http_host(const struct weir_http_request *request)
{
	const char *own = request->exchange->host;
	return own != NULL ? own : weir_http_field(request, MHD_HTTP_HEADER_HOST);
}

const char *weir_http_method(const struct weir_http_request *request)
{
	return request->exchange->method;
}

const char *weir_http_target(const struct weir_http_request *request)
{
	return request->exchange->target;
}

struct weir_span weir_http_body(const struct weir_http_request *request)
{
	const struct weir_text *body = &request->exchange->body;
	return (struct weir_span){.at = body->at != NULL ? body->at : "", .length = (uint32_t)body->length};
}

struct weir_text weir_http_move_body(const struct weir_http_request *request)
{
	struct weir_text body = request->exchange->body;
	request->exchange->body = (struct weir_text){0};
	return body;
}

void weir_http_take_pieces(const struct weir_http_request *request, size_t piece_bytes)
{
	request->exchange->piece_bytes = piece_bytes;
}

bool weir_http_body_ended(const struct weir_http_request *request)
{
	return request->exchange->ended;
}

void weir_http_taken(const struct weir_http_request *request, size_t bytes)
{
	request->exchange->taken = bytes;
}

uint64_t weir_http_taken_before(const struct weir_http_request *request)
{
	return request->exchange->before;
}

unsigned weir_http_worker(const struct weir_http_request *request)
{
	return request->worker;
}

struct weir_span weir_http_peer(const struct weir_http_request *request)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(request->exchange->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *address = info != NULL ? info->client_addr : NULL;
	if (address != NULL && address->sa_family == AF_INET)
		return (struct weir_span){(const char *)&((const struct sockaddr_in *)(const void *)address)->sin_addr, 4};
	if (address != NULL && address->sa_family == AF_INET6)
		return (struct weir_span){(const char *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16};
	return (struct weir_span){.at = NULL};
}

void weir_http_header(struct weir_http_reply *reply, const char *name, const char *format, ...)
{
	if (reply->header_count == WEIR_HTTP_HEADERS_MAX)
		abort();
	reply->headers[reply->header_count].name = name;
	va_list args;
	va_start(args, format);
	vsnprintf(reply->headers[reply->header_count++].value, WEIR_HTTP_HEADER_BYTES, format, args);
	va_end(args);
}

/* ---- exchanges ---- */

/*
 * Called with the target as it came. libmicrohttpd ends a path at a NUL: the server itself stands for the state of such
 * a request until its exchange is there.
 */
static void *look_at_target(void *http, const char *target, struct MHD_Connection *connection)
{
	(void)connection;
	const char *nul = strstr(target, "%00");
	return nul != NULL && nul < target + strcspn(target, "?") ? http : NULL;
}

enum { AT_ONCE_BYTES = 1 << 20 }; /* of a body, reserved before it is there */

/* Of a target in absolute form the path is what is asked for. */
static void take_target(struct weir_http_exchange *exchange, const char *target)
{
	struct weir_span rest = weir_span_of(target), host;
	exchange->misnamed = !weir_http_target_split(&rest, &host);
	exchange->target = rest.at; /* the end of it, or a constant */
	if (host.at != NULL)
		exchange->host = weir_copy(host.at, host.length);
}

static struct weir_http_exchange *exchange_new(struct weir_http *http, struct MHD_Connection *connection,
                                               const char *target, const char *method)
{
	struct weir_http_exchange *exchange = weir_alloc(1, sizeof *exchange);
	exchange->http = http;
	exchange->connection = connection;
	take_target(exchange, target);
	exchange->method = method;
	for (size_t i = 0; i < http->path_count && exchange->path == NULL; i++)
		if (strcmp(http->paths[i].path, "*") == 0 || strcmp(exchange->target, http->paths[i].path) == 0)
			exchange->path = &http->paths[i];
	exchange->reply = (struct weir_http_reply){.status = MHD_HTTP_OK, .content_type = "text/plain; charset=utf-8"};
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	exchange->client = info != NULL ? info->socket_context : NULL;
	weir_http_client_extend(exchange->client);
	return exchange;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
	(void)connection;
	(void)code;
	struct weir_http_exchange *exchange = *state != context ? *state : NULL;
	*state = NULL;
	if (exchange == NULL)
		return;
	weir_http_pool_forget(exchange);
	weir_http_client_extend(exchange->client);
	if (exchange->client != NULL)
		exchange->client->heard = exchange->client->brings = false;
	if (exchange->reply.end != NULL)
		exchange->reply.end(exchange->reply.stream);
	weir_gzip_free(exchange->gzip);
	weir_text_deinit(&exchange->reply.body);
	weir_text_deinit(&exchange->body);
	free(exchange->host);
	free(exchange);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **client,
                          enum MHD_ConnectionNotificationCode code)
{
	struct weir_http *http = context;
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		*client = info != NULL ? weir_http_pool_join(http->pool, info->connect_fd) : NULL;
		info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
		if (http->tls != NULL && *client != NULL && info != NULL)
			weir_http_tls_join(http->tls, *client, info->tls_session);
	} else if (*client != NULL) {
		if (http->tls != NULL)
			weir_http_tls_leave(http->tls, *client);
		weir_http_pool_leave(http->pool, *client);
		*client = NULL;
	}
}

static enum MHD_Result add_length(void *context, enum MHD_ValueKind kind, const char *name, size_t name_length,
                                  const char *value, size_t value_length)
{
	(void)kind;
	(void)name;
	(void)value;
	*(size_t *)context += name_length + value_length + 2;
	return MHD_YES;
}

static enum MHD_Result refuse(struct weir_http_exchange *exchange, unsigned status, const char *words)
{
	weir_http_refuse(exchange, status, words);
	return weir_http_send(exchange);
}

/* Nobody knows where the next request would begin: the connection ends. */
static enum MHD_Result refuse_head(struct weir_http_exchange *exchange, const char *words)
{
	weir_http_refuse(exchange, MHD_HTTP_BAD_REQUEST, words);
	weir_http_header(&exchange->reply, MHD_HTTP_HEADER_CONNECTION, "close");
	return weir_http_send(exchange);
}

/* How long the body will be, where that is said. */
static size_t announced(const struct weir_http_exchange *exchange)
{
	const char *length =
		MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
	return length != NULL ? strtoull(length, NULL, 10) : 0;
}

/*
 * Refuses a body before its end. Its rest is read and dropped, as many senders listen only then; but one who waits to be
 * told to send it (Expect), or has too much to send, is told at once.
 */
static enum MHD_Result refuse_body(struct weir_http_exchange *exchange, unsigned status, const char *words)
{
	size_t length = announced(exchange);
	bool begun = exchange->body.length > 0;
	if (words != NULL)
		weir_http_refuse(exchange, status, words);
	exchange->answered = true;
	weir_text_deinit(&exchange->body);
	exchange->body = (struct weir_text){0};
	bool waits = MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT) != NULL;
	bool too_much = length > WEIR_HTTP_DROPPED_MAX_BYTES;
	return !begun && (waits || too_much) ? weir_http_send(exchange) : MHD_YES;
}

/* Called with the headers of a request that brings a body. */
static enum MHD_Result begin_body(struct weir_http_exchange *exchange)
{
	struct weir_http_request request = {.exchange = exchange};
	if (exchange->http->admit != NULL)
		exchange->http->admit(exchange->http->admit_context, &request, &exchange->reply);
	if (exchange->reply.status != MHD_HTTP_OK)
		return refuse_body(exchange, 0, NULL);
	if (exchange->client != NULL)
		exchange->client->heard = exchange->client->brings =
			true; /* it makes room for nobody, unless it hardly comes */
	if (exchange->piece_bytes == 0 && announced(exchange) > exchange->http->body_most_bytes)
		return refuse_body(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large: send smaller ones");
	return MHD_YES;
}

/* Called with the headers, before any body. */
static enum MHD_Result begin(struct weir_http_exchange *exchange)
{
	const char *method = exchange->method;
	bool brings = strcmp(method, MHD_HTTP_METHOD_POST) == 0 || strcmp(method, MHD_HTTP_METHOD_PUT) == 0;
	bool takes = exchange->path != NULL && exchange->http->body_most_bytes > 0;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0 && !(brings && takes))
		return refuse(exchange, MHD_HTTP_METHOD_NOT_ALLOWED,
		              takes ? "only GET, HEAD, POST and PUT are allowed" : "only GET and HEAD are allowed");
	size_t address = strlen(exchange->target), fields = 0;
	MHD_get_connection_values_n(exchange->connection, MHD_GET_ARGUMENT_KIND, add_length, &address);
	MHD_get_connection_values_n(exchange->connection, MHD_HEADER_KIND, add_length, &fields);
	if (address > WEIR_HTTP_ADDRESS_MAX_BYTES)
		return refuse(exchange, MHD_HTTP_URI_TOO_LONG, "path and query must not exceed 8 KiB");
	if (fields > WEIR_HTTP_FIELDS_MAX_BYTES)
		return refuse(exchange, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, "header fields must not exceed 16 KiB");
	return brings ? begin_body(exchange) : MHD_YES;
}

/* Hands the request, or a piece of its body, to a worker. */
static enum MHD_Result hand_over(struct weir_http_exchange *exchange)
{
	if (weir_http_pool_take(exchange))
		return MHD_YES;
	if (!exchange->ended)
		return refuse_body(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "too many requests are waiting");
	return refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "too many requests are waiting");
}

/* Gathers a part of a body. */
static enum MHD_Result gather(struct weir_http_exchange *exchange, struct weir_span part)
{
	size_t most = exchange->http->body_most_bytes;
	weir_http_client_reward(exchange->client, part.length);
	if (exchange->answered || most == 0 || strcmp(exchange->method, MHD_HTTP_METHOD_GET) == 0 ||
	    strcmp(exchange->method, MHD_HTTP_METHOD_HEAD) == 0) {
		exchange->dropped += part.length;
		return exchange->dropped <= WEIR_HTTP_DROPPED_MAX_BYTES ? MHD_YES : MHD_NO;
	}
	if (exchange->body.length + part.length > most)
		return refuse_body(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large: send smaller ones");
	if (!weir_http_pool_hold(exchange, part.length))
		return refuse_body(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "too many bodies are being received");
	if (exchange->body.length == 0) {
		size_t expected = announced(exchange);
		(void)weir_text_reserve(&exchange->body, expected < AT_ONCE_BYTES ? expected + 1 : AT_ONCE_BYTES);
	}
	weir_text_append(&exchange->body, part.at, part.length);
	return exchange->piece_bytes > 0 && exchange->body.length >= exchange->piece_bytes ? hand_over(exchange) : MHD_YES;
}

/* Called for each part of a request, and again when a worker has answered; *state stays NULL until its headers came. */
static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *target, const char *method,
                              const char *version, const char *upload, size_t *upload_bytes, void **state)
{
	struct weir_http *http = context;
	bool cut = *state == http;
	struct weir_http_exchange *exchange = cut ? NULL : *state;
	if (exchange == NULL) {
		*state = exchange = exchange_new(http, connection, target, method);
		if (cut)
			exchange->path = NULL;
		const char *fault = weir_http_framing_fault(connection, version);
		if (fault == NULL && exchange->misnamed)
			fault = "the target has no host, or an account before it";
		return fault != NULL ? refuse_head(exchange, fault) : begin(exchange);
	}
	if (exchange->away)
		return MHD_YES; /* libmicrohttpd gives what it has already, although the connection is suspended */
	if (*upload_bytes > 0) {
		struct weir_span part = {.at = upload, .length = (uint32_t)*upload_bytes};
		*upload_bytes = 0;
		return gather(exchange, part);
	}
	if (exchange->answered)
		return weir_http_send(exchange);
	if (exchange->path == NULL)
		return refuse(exchange, MHD_HTTP_NOT_FOUND, "not found");
	exchange->ended = true;
	return hand_over(exchange);
}

/* ---- starting and stopping ---- */

static unsigned or_default(unsigned given, unsigned otherwise)
{
	return given > 0 ? given : otherwise;
}

static struct weir_http_options with_defaults(struct weir_http_options options)
{
	bool pages = options.workers == 0; /* of a daemon: short and soon made, so their time is short as well */
	options.connections = or_default(options.connections, WEIR_HTTP_CONNECTIONS_DEFAULT);
	options.timeout_s = or_default(options.timeout_s, WEIR_HTTP_TIMEOUT_DEFAULT_S);
	options.turn_s = or_default(options.turn_s, pages ? options.timeout_s : WEIR_HTTP_TURN_DEFAULT_S);
	options.request_bytes = or_default(options.request_bytes, WEIR_HTTP_REQUEST_DEFAULT_BYTES);
	options.waiting = or_default(options.waiting, WEIR_HTTP_WAITING_DEFAULT);
	options.workers = or_default(options.workers, 1);
	if (options.workers > WEIR_HTTP_WORKERS_MAX)
		options.workers = WEIR_HTTP_WORKERS_MAX;
	return options;
}

static struct weir_http *http_new(const struct weir_http_options *options)
{
	struct weir_http *http = weir_alloc(1, sizeof *http);
	http->refuse = options->refuse;
	http->refuse_context = options->refuse_context;
	http->body_most_bytes = options->body_most_bytes;
	http->admit = options->admit;
	http->admit_context = options->admit_context;
	http->path_count = options->path_count;
	http->paths = weir_alloc(options->path_count, sizeof *http->paths);
	if (options->path_count > 0)
		memcpy(http->paths, options->paths, options->path_count * sizeof *http->paths);
	return http;
}

/* Starts the threads. @param fd  taken, on success */
static enum weir_status start_serving(struct weir_http *http, const struct weir_http_options *options, int fd,
                                      struct weir_error *error)
{
	struct MHD_OptionItem tls_options[WEIR_HTTP_TLS_OPTIONS] = {{MHD_OPTION_END, 0, NULL}};
	if (http->tls != NULL)
		weir_http_tls_options(tls_options);
	int failed;
	http->pool = weir_http_pool_start(http, options, &failed);
	errno = 0; /* libmicrohttpd may leave it */
	http->daemon =
		failed != 0
			? NULL
			: MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
	                               (http->tls != NULL ? MHD_USE_TLS : 0),
	                           0, NULL, NULL, answer, http, MHD_OPTION_ARRAY, tls_options, MHD_OPTION_LISTEN_SOCKET, fd,
	                           MHD_OPTION_CONNECTION_LIMIT, options->connections, MHD_OPTION_CONNECTION_TIMEOUT,
	                           options->timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)options->request_bytes,
	                           MHD_OPTION_NOTIFY_COMPLETED, on_completed, http, MHD_OPTION_NOTIFY_CONNECTION,
	                           on_connection, http, MHD_OPTION_URI_LOG_CALLBACK, look_at_target, http, MHD_OPTION_END);
	if (http->daemon != NULL)
		return WEIR_OK;
	failed = failed != 0 ? failed : errno;
	return weir_fail(error, WEIR_IO, "cannot start the HTTP server on port %u%s%s", http->port, failed != 0 ? ": " : "",
	                 failed != 0 ? weir_errno_words(failed) : "");
}

enum weir_status weir_http_start(const struct weir_http_options *given, struct weir_http **http,
                                 struct weir_error *error)
{
	const struct weir_http_options options = with_defaults(*given);
	int fd = -1;
	uint16_t port = 0;
	struct weir_http_tls_server *tls = NULL;
	enum weir_status status = WEIR_OK;
	if (options.tls.certificate != NULL)
		status = weir_http_tls_open(&options.tls, options.log, &tls, error);
	if (status == WEIR_OK)
		status = weir_listen_socket(options.host, options.port, false, &fd, &port, error);
	if (status != WEIR_OK) {
		weir_http_tls_close(tls);
		return status;
	}
	struct weir_http *started = http_new(&options);
	started->port = port;
	started->tls = tls;
	started->log = options.log;
	status = start_serving(started, &options, fd, error);
	if (status != WEIR_OK) {
		close(fd);
		weir_http_stop(started);
		return status;
	}
	*http = started;
	return WEIR_OK;
}

uint16_t weir_http_port(const struct weir_http *http)
{
	return http->port;
}

/* ---- metrics ---- */

enum { CERTIFICATE_EXPIRES, METRIC_COUNT };

static const struct weir_metric metrics[METRIC_COUNT] = {
	[CERTIFICATE_EXPIRES] = {"weir_http_certificate_expires_timestamp_seconds", WEIR_GAUGE, "Unix time", WEIR_NO_LABELS,
                             "When the certificate of these pages expires. Only a server that speaks TLS has it."},
};

const struct weir_metric_table weir_http_metric_table = {metrics, METRIC_COUNT};

int64_t weir_http_certificate_expires_s(const struct weir_http *http)
{
	return http->tls != NULL ? weir_http_tls_expires_s(http->tls) : 0;
}

uint64_t weir_http_clients_refused(const struct weir_http *http)
{
	return http->tls != NULL ? weir_http_tls_refused(http->tls) : 0;
}

uint64_t weir_http_slow_cut(const struct weir_http *http)
{
	return weir_http_pool_slow_cut(http->pool);
}

void weir_http_metrics(const struct weir_http_request *request, struct weir_text *page)
{
	int64_t expires_s = weir_http_certificate_expires_s(request->exchange->http);
	weir_metrics_family(page, &metrics[CERTIFICATE_EXPIRES]);
	if (expires_s != 0)
		weir_metrics_double(page, &metrics[CERTIFICATE_EXPIRES], NULL, (double)expires_s);
}

void weir_http_stop(struct weir_http *http)
{
	if (http == NULL)
		return;
	weir_http_pool_quiet(http->pool);
	if (http->daemon != NULL)
		MHD_stop_daemon(http->daemon);
	weir_http_pool_free(http->pool);
	weir_http_tls_close(http->tls);
	free(http->paths);
	free(http);
}

/*
 * The HTTP server: libmicrohttpd with one thread of its own.
 *
 * Everything a client can hold on to is bounded: connections, the time that one
 * may be idle, the bytes of its request. Replies are built whole and handed
 * over, so a slow reader holds memory and no thread.
 */
#include "common/http.h"

#include "common/alloc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	REQUEST_MAX_BYTES = 16 * 1024, /* headers and what libmicrohttpd needs beside them */
	BACKLOG = 64,
};

struct weir_http {
	struct MHD_Daemon *daemon;
	struct weir_http_path *paths;
	size_t path_count;
	uint16_t port;
};

struct weir_http_request {
	struct MHD_Connection *connection;
};

bool weir_http_address(const char *text, char **host, uint16_t *port)
{
	const char *colon = strrchr(text, ':');
	size_t digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0;
	long number = digits >= 1 && digits <= 5 && colon[1 + digits] == '\0' ? strtol(colon + 1, NULL, 10) : -1;
	size_t length = colon != NULL ? (size_t)(colon - text) : 0;
	bool bracketed = length >= 2 && text[0] == '[' && text[length - 1] == ']';
	if (number < 0 || number > UINT16_MAX || (!bracketed && memchr(text, ':', length) != NULL))
		return false;
	*host = length == 0 ? weir_copy("*", 1) : bracketed ? weir_copy(text + 1, length - 2) : weir_copy(text, length);
	*port = (uint16_t)number;
	return true;
}

const char *weir_http_query(const struct weir_http_request *request, const char *name)
{
	const char *value = NULL;
	if (MHD_lookup_connection_value_n(request->connection, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value, NULL) !=
	    MHD_YES)
		return NULL;
	return value != NULL ? value : "";
}

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status, const char *content_type,
                             const char *allow, struct weir_text *body)
{
	/* The body is libmicrohttpd's from here on; an empty one has no memory to hand over. */
	struct MHD_Response *response =
		MHD_create_response_from_buffer(body->length, body->length > 0 ? body->at : "",
	                                    body->length > 0 ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
	if (response == NULL || body->length == 0)
		weir_text_deinit(body);
	if (response == NULL)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (allow != NULL)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allow);
	enum MHD_Result result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *words)
{
	struct weir_text body = {0};
	weir_text_puts(&body, words);
	return reply(connection, status, "text/plain; charset=utf-8",
	             status == MHD_HTTP_METHOD_NOT_ALLOWED ? "GET, HEAD" : NULL, &body);
}

/* Called for each part of a request; *state stays NULL until its headers were seen. */
static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                              const char *version, const char *upload, size_t *upload_bytes, void **state)
{
	struct weir_http *http = context;
	(void)version;
	(void)upload;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
		/* Answered before its body is read, which ends the connection. */
		return *state == NULL ? refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n") : MHD_NO;
	}
	if (*state == NULL) {
		*state = http;
		return MHD_YES;
	}
	if (*upload_bytes > 0) {
		*upload_bytes = 0;
		return MHD_YES;
	}
	for (size_t i = 0; i < http->path_count; i++) {
		if (strcmp(path, http->paths[i].path) != 0)
			continue;
		struct weir_http_request request = {.connection = connection};
		struct weir_http_reply filled = {.status = MHD_HTTP_OK, .content_type = "text/plain; charset=utf-8"};
		http->paths[i].handle(http->paths[i].context, &request, &filled);
		return reply(connection, filled.status, filled.content_type, NULL, &filled.body);
	}
	return refuse(connection, MHD_HTTP_NOT_FOUND, "not found\n");
}

/* A listening socket on the first of the host's addresses that takes it. */
static enum weir_status listen_on(const char *host, uint16_t port, int *fd, uint16_t *bound, struct weir_error *error)
{
	bool any = host == NULL || strcmp(host, "*") == 0;
	char service[8];
	snprintf(service, sizeof service, "%u", port);
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	int result = getaddrinfo(any ? NULL : host, service, &hints, &found);
	if (result != 0)
		return weir_fail(error, WEIR_INVALID, "cannot listen on %s: %s", any ? "*" : host, gai_strerror(result));

	enum weir_status status = WEIR_IO;
	*fd = -1;
	/* Every address of the machine: an IPv6 socket takes both, so it is tried first. */
	for (int pass = any ? 0 : 1; pass < 2 && *fd < 0; pass++) {
		for (struct addrinfo *at = found; at != NULL && *fd < 0; at = at->ai_next) {
			if (pass == 0 && at->ai_family != AF_INET6)
				continue;
			int one = 1, zero = 0;
			int candidate = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
			if (candidate >= 0) {
				setsockopt(candidate, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
				if (at->ai_family == AF_INET6)
					setsockopt(candidate, IPPROTO_IPV6, IPV6_V6ONLY, any ? &zero : &one, sizeof one);
			}
			if (candidate >= 0 && bind(candidate, at->ai_addr, at->ai_addrlen) == 0 &&
			    listen(candidate, BACKLOG) == 0) {
				*fd = candidate;
			} else {
				status = weir_fail(error, WEIR_IO, "cannot listen on %s port %u: %s", any ? "*" : host, port,
				                   strerror(errno));
				if (candidate >= 0)
					close(candidate);
			}
		}
	}
	freeaddrinfo(found);
	if (*fd < 0)
		return status;

	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = {.v6 = {0}};
	socklen_t length = sizeof address;
	getsockname(*fd, &address.any, &length);
	*bound = ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
	return WEIR_OK;
}

enum weir_status weir_http_start(const struct weir_http_options *options, struct weir_http **http,
                                 struct weir_error *error)
{
	int fd = -1;
	uint16_t port = 0;
	enum weir_status status = listen_on(options->host, options->port, &fd, &port, error);
	if (status != WEIR_OK)
		return status;

	struct weir_http *started = weir_alloc(1, sizeof *started);
	started->port = port;
	started->path_count = options->path_count;
	started->paths = weir_alloc(options->path_count, sizeof *started->paths);
	if (options->path_count > 0)
		memcpy(started->paths, options->paths, options->path_count * sizeof *started->paths);
	unsigned connections = options->connections > 0 ? options->connections : WEIR_HTTP_CONNECTIONS_DEFAULT;
	unsigned timeout_s = options->timeout_s > 0 ? options->timeout_s : WEIR_HTTP_TIMEOUT_DEFAULT_S;
	started->daemon =
		MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD, 0, NULL, NULL, answer, started, MHD_OPTION_LISTEN_SOCKET, fd,
	                     MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_TIMEOUT, timeout_s,
	                     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_MAX_BYTES, MHD_OPTION_END);
	if (started->daemon == NULL) {
		status = weir_fail(error, WEIR_IO, "cannot start the HTTP server on port %u", port);
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

void weir_http_stop(struct weir_http *http)
{
	if (http == NULL)
		return;
	if (http->daemon != NULL)
		MHD_stop_daemon(http->daemon);
	free(http->paths);
	free(http);
}

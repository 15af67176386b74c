/* SPDX-License-Identifier: Apache-2.0 */
/* An address is tried after the other; of every address of a machine, first the socket that takes IPv6 and IPv4 alike. */
#include "common/http/listen_socket.h"

#include "common/base/lookup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

enum weir_status weir_listen_socket(const char *host, uint16_t port, bool shared, int *fd, uint16_t *bound,
                                    struct weir_error *error)
{
	bool any = host == NULL || strcmp(host, "*") == 0;
	char service[8];
	snprintf(service, sizeof service, "%u", port);
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	int result = getaddrinfo(any ? NULL : host, service, &hints, &found);
	if (result != 0)
		return weir_fail(error, weir_lookup_status(result), "cannot listen on %s: %s", any ? "*" : host,
		                 weir_lookup_words(result));

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
				if (shared)
					setsockopt(candidate, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
				if (at->ai_family == AF_INET6)
					setsockopt(candidate, IPPROTO_IPV6, IPV6_V6ONLY, any ? &zero : &one, sizeof one);
			}
			if (candidate >= 0 && bind(candidate, at->ai_addr, at->ai_addrlen) == 0 &&
			    listen(candidate, BACKLOG) == 0) {
				*fd = candidate;
			} else {
				status = weir_fail(error, WEIR_IO, "cannot listen on %s port %u: %s", any ? "*" : host, port,
				                   weir_errno_words(errno));
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

/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets: one that listens, and beside TCP's one for the heartbeats that some send by UDP to the same port. */
#include "collector/source/push/forward/internal.h"

#include "common/base/lookup.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024, HEARTBEATS_AT_ONCE = 64 };

/* Takes away what a weir that was killed has left there. Whoever listens there keeps it. */
static void remove_stale(const struct sockaddr_un *name)
{
	struct stat found;
	if (lstat(name->sun_path, &found) != 0 || !S_ISSOCK(found.st_mode))
		return;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)name, sizeof *name) != 0 && errno == ECONNREFUSED)
		(void)unlink(name->sun_path);
	close(fd);
}

static int listen_unix(const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
	remove_stale(&name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || (bind(fd, (const struct sockaddr *)&name, sizeof name) == 0 && listen(fd, BACKLOG) == 0))
		return fd;
	int reason = errno;
	close(fd);
	errno = reason;
	return -1;
}

/* Tries one address. @return a socket; -1: errno says why not */
static int bind_to(const struct addrinfo *at, int kind, bool only6)
{
	int one = 1, only = only6;
	int fd = socket(at->ai_family, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (kind == SOCK_STREAM)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (at->ai_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
	if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && (kind != SOCK_STREAM || listen(fd, BACKLOG) == 0))
		return fd;
	int reason = errno;
	close(fd);
	errno = reason;
	return -1;
}

enum weir_status forward_listen(const struct forward_config *config, int *fd, int *heartbeats, struct weir_error *error)
{
	*fd = *heartbeats = -1;
	if (config->socket != NULL) {
		*fd = listen_unix(config->socket);
		return *fd >= 0 ? WEIR_OK
		                : weir_fail(error, WEIR_IO, "cannot listen on %s: %s", config->socket, weir_errno_words(errno));
	}
	bool any = strcmp(config->host, "*") == 0;
	char port[8];
	snprintf(port, sizeof port, "%u", config->port);
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found = NULL;
	int result = getaddrinfo(any ? NULL : config->host, port, &hints, &found);
	if (result != 0)
		return weir_fail(error, weir_lookup_status(result), "cannot listen on %s:%s: %s", config->host, port,
		                 weir_lookup_words(result));
	int reason = 0;
	/* For "*" the IPv6 wildcard address is tried first, as it accepts IPv4 too. */
	for (int pass = any ? 0 : 1; pass < 2 && *fd < 0; pass++)
		for (const struct addrinfo *at = found; at != NULL && *fd < 0; at = at->ai_next) {
			if (pass == 0 && at->ai_family != AF_INET6)
				continue;
			*fd = bind_to(at, SOCK_STREAM, !any);
			reason = errno;
			if (*fd >= 0)
				*heartbeats = bind_to(at, SOCK_DGRAM, !any);
		}
	freeaddrinfo(found);
	return *fd >= 0
	           ? WEIR_OK
	           : weir_fail(error, WEIR_IO, "cannot listen on %s:%s: %s", config->host, port, weir_errno_words(reason));
}

void forward_name_peer(const struct sockaddr_storage *name, socklen_t length, char text[FORWARD_NAME_BYTES])
{
	char host[64], port[8];
	if (name->ss_family == AF_UNIX || getnameinfo((const struct sockaddr *)name, length, host, sizeof host, port,
	                                              sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(text, FORWARD_NAME_BYTES, "the unix socket");
	else
		snprintf(text, FORWARD_NAME_BYTES, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
}

static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
              "one place for a port");

static uint16_t port_of(const struct sockaddr_storage *name)
{
	struct sockaddr_in6 address;
	memcpy(&address, name, sizeof address);
	return ntohs(address.sin6_port);
}

/* Senders ask from a port of their own. Whoever answers heartbeats itself would be answered without end. */
void forward_answer_heartbeats(int fd, const struct forward_config *config)
{
	for (int i = 0; i < HEARTBEATS_AT_ONCE; i++) {
		struct sockaddr_storage name = {0};
		socklen_t length = sizeof name;
		char byte = 0;
		if (recvfrom(fd, &byte, 1, MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&name, &length) < 0)
			return;
		if (port_of(&name) == config->port || !source_senders_take(&config->from, &name))
			continue;
		byte = 0;
		(void)sendto(fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&name, length);
	}
}

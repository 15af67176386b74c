/* SPDX-License-Identifier: Apache-2.0 */
/* Whether somebody listens at an address: for servers whose own words are not spoken here. */
#include "common/base/clock.h"
#include "common/base/lookup.h"
#include "deploy/weir/doctor/internal.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECT_MS = 2000, CONNECT_ALL_MS = 4000 };

/* @return 0, or why not */
static int wait_connected(int fd)
{
	struct pollfd one = {.fd = fd, .events = POLLOUT};
	int reason = 0;
	socklen_t size = sizeof reason;
	if (poll(&one, 1, CONNECT_MS) != 1)
		return ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &size) == 0 ? reason : errno;
}

static int try_connect(int family, const struct sockaddr *address, socklen_t length)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	int reason = connect(fd, address, length) == 0 ? 0 : errno;
	if (reason == EINPROGRESS)
		reason = wait_connected(fd);
	close(fd);
	return reason;
}

const char *doctor_reach(const char *host, unsigned port)
{
	struct addrinfo wanted = {.ai_socktype = SOCK_STREAM}, *found;
	char service[12];
	snprintf(service, sizeof service, "%u", port);
	int failed = getaddrinfo(host, service, &wanted, &found);
	if (failed != 0)
		return weir_lookup_words(failed);
	int64_t end_ms = weir_monotonic_ms() + CONNECT_ALL_MS;
	int reason = ETIMEDOUT; /* of the first address, which most clients try first */
	for (const struct addrinfo *one = found; one != NULL && reason != 0; one = one->ai_next) {
		if (one != found && weir_monotonic_ms() >= end_ms)
			break;
		int this = try_connect(one->ai_family, one->ai_addr, one->ai_addrlen);
		if (one == found || this == 0)
			reason = this;
	}
	freeaddrinfo(found);
	return reason != 0 ? strerrordesc_np(reason) : NULL;
}

void doctor_each_address(const char *list, void (*call)(void *context, const char *host, unsigned port), void *context)
{
	char one[300];
	for (const char *at = list; *at != '\0';) {
		size_t length = strcspn(at, ",");
		if (length < sizeof one) {
			memcpy(one, at, length);
			one[length] = '\0';
			char *colon = strrchr(one, ':'), *host = one + strspn(one, " [");
			if (colon != NULL && colon > host) {
				*colon = '\0';
				host[strcspn(host, "] ")] = '\0';
				call(context, host, (unsigned)strtoul(colon + 1, NULL, 10));
			}
		}
		at += length + (at[length] == ',');
	}
}

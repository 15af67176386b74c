/* SPDX-License-Identifier: Apache-2.0 */
/* A client of a Unix stream socket with a deadline for the whole exchange. */
#include "deploy/gateways/target/haproxy/haproxy_socket.h"

#include "common/base/clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { TIMEOUT_MS = 10000, ANSWER_MAX_BYTES = 64 << 20, READ_BYTES = 16 * 1024 };

static bool await(int fd, short events, int64_t end_ms)
{
	struct pollfd poller = {.fd = fd, .events = events};
	int64_t left_ms;
	while ((left_ms = end_ms - weir_monotonic_ms()) > 0) {
		int found = poll(&poller, 1, (int)left_ms);
		if (found > 0)
			return true;
		if (found < 0 && errno != EINTR)
			return false;
	}
	errno = ETIMEDOUT;
	return false;
}

static bool write_request(int fd, struct weir_span request, int64_t end_ms)
{
	while (request.length > 0) {
		ssize_t count = send(fd, request.at, request.length, MSG_NOSIGNAL);
		if (count > 0) {
			request.at += count;
			request.length -= (uint32_t)count;
		} else if (errno != EINTR && (errno != EAGAIN || !await(fd, POLLOUT, end_ms))) {
			return false;
		}
	}
	return true;
}

static bool read_answer(int fd, struct weir_text *answer, int64_t end_ms)
{
	for (;;) {
		ssize_t count = recv(fd, weir_text_reserve(answer, READ_BYTES), READ_BYTES, 0);
		if (count == 0)
			return true;
		if (count > 0)
			answer->length += (size_t)count;
		else if (errno != EINTR && (errno != EAGAIN || !await(fd, POLLIN, end_ms)))
			return false;
		if (answer->length > ANSWER_MAX_BYTES) {
			errno = EMSGSIZE;
			return false;
		}
	}
}

enum weir_status haproxy_socket_ask(const char *path, struct weir_span request, struct weir_text *answer,
                                    struct weir_error *error)
{
	weir_text_clear(answer);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof address.sun_path)
		return weir_fail(error, WEIR_INVALID, "a socket path has at most %zu bytes: %s", sizeof address.sun_path - 1,
		                 path);
	memcpy(address.sun_path, path, strlen(path));
	int64_t end_ms = weir_monotonic_ms() + TIMEOUT_MS;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	enum weir_status status = WEIR_OK;
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
		status = weir_fail(error, WEIR_IO, "cannot reach HAProxy at %s: %s", path, weir_errno_words(errno));
	else if (!write_request(fd, request, end_ms) || !read_answer(fd, answer, end_ms))
		status = weir_fail(error, WEIR_IO, "HAProxy at %s: %s", path, weir_errno_words(errno));
	if (fd >= 0)
		close(fd);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol is one datagram: no library is needed for it. */
#include "common/daemon/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void weir_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = path != NULL ? strlen(path) : 0;
	if (length == 0 || length >= sizeof address.sun_path)
		return;
	memcpy(address.sun_path, path, length);
	if (address.sun_path[0] == '@') /* an abstract name */
		address.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	ssize_t ignored = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address, bytes);
	(void)ignored;
	close(fd);
}

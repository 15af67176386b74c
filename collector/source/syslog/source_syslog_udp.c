/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams, many per call.
 *
 * While the collector does not read (its bus is down), the kernel keeps what fits into the receive buffer and drops the
 * rest. It counts the drops. The count is read here by itself, so that it is known even if no datagram follows.
 */
#include "collector/source/syslog/internal.h"

#include "common/base/alloc.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BATCH = 64, DATAGRAM_BYTES = 64 << 10, BATCHES_MAX = 64 };

struct syslog_udp {
	int fd;
	uint32_t kernel_dropped; /* the kernel's counter when last read; it wraps around */
	int64_t buffer_bytes;    /* the size that the kernel has set */
	struct mmsghdr headers[BATCH];
	struct iovec vectors[BATCH];
	struct sockaddr_storage senders[BATCH];
	char *bytes;
};

/* Sets the receive buffer: as root to any size, otherwise up to net.core.rmem_max. @return the size that is set */
static int64_t set_buffer(int fd, int64_t wanted_bytes)
{
	int wanted = (int)wanted_bytes, given = 0;
	socklen_t length = sizeof given;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &wanted, sizeof wanted) != 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof wanted);
	(void)getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &given, &length);
	return given / 2; /* the kernel reports twice the size that was set */
}

struct syslog_udp *syslog_udp_new(int fd, const struct syslog_config *config)
{
	struct syslog_udp *udp = weir_alloc(1, sizeof *udp);
	udp->fd = fd;
	udp->buffer_bytes = set_buffer(fd, config->receive_buffer_bytes);
	udp->bytes = weir_alloc(BATCH, DATAGRAM_BYTES);
	for (size_t i = 0; i < BATCH; i++) {
		udp->vectors[i] = (struct iovec){.iov_base = udp->bytes + i * DATAGRAM_BYTES, .iov_len = DATAGRAM_BYTES};
		udp->headers[i].msg_hdr =
			(struct msghdr){.msg_iov = &udp->vectors[i], .msg_iovlen = 1, .msg_name = &udp->senders[i]};
	}
	return udp;
}

void syslog_udp_free(struct syslog_udp *udp)
{
	if (udp == NULL)
		return;
	close(udp->fd);
	free(udp->bytes);
	free(udp);
}

int syslog_udp_fd(const struct syslog_udp *udp)
{
	return udp->fd;
}

static void ask_drops(struct syslog_udp *udp, struct syslog_source *source)
{
	uint32_t values[SK_MEMINFO_VARS] = {0};
	socklen_t length = sizeof values;
	if (getsockopt(udp->fd, SOL_SOCKET, SO_MEMINFO, values, &length) != 0 ||
	    length <= SK_MEMINFO_DROPS * sizeof(uint32_t))
		return;
	uint32_t more = values[SK_MEMINFO_DROPS] - udp->kernel_dropped;
	udp->kernel_dropped = values[SK_MEMINFO_DROPS];
	if (more == 0)
		return;
	source->dropped += more;
	syslog_source_problem(
		source, true,
		"the kernel dropped %u messages because its buffer of %lld KiB was full: raise receive_buffer and "
		"net.core.rmem_max",
		more, (long long)udp->buffer_bytes / 1024);
}

void syslog_udp_read(struct syslog_udp *udp, struct syslog_source *source, int64_t now_ms)
{
	for (int batch = 0; batch < BATCHES_MAX && !syslog_source_full(source); batch++) {
		for (int i = 0; i < BATCH; i++)
			udp->headers[i].msg_hdr.msg_namelen = sizeof udp->senders[i];
		int count = recvmmsg(udp->fd, udp->headers, BATCH, MSG_DONTWAIT, NULL);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
			source->errors++;
			syslog_source_problem(source, false, "cannot receive messages: %s", weir_errno_words(errno));
		}
		if (count <= 0)
			break;
		for (int i = 0; i < count; i++) {
			if (!source_senders_take(&source->config.from, &udp->senders[i])) {
				source->refused++;
				continue;
			}
			uint32_t length = udp->headers[i].msg_len;
			uint32_t most = length < source->config.line_max ? length : (uint32_t)source->config.line_max;
			struct weir_span message = {.at = udp->vectors[i].iov_base, .length = most};
			syslog_source_take(source, message, length - most, now_ms);
		}
		if (count < BATCH)
			break;
	}
	ask_drops(udp, source);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least that a server of HTTP/2 by libnghttp2 can do for a call by gRPC: it reads the request, looks at nothing, and
 * answers the same message. What a call costs beyond it is weir's. One thread.
 *
 *     bare_session        listens on a free port of 127.0.0.1, which it prints; ends with its standard input
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIELD(name, value)                                                                                \
	{                                                                                                     \
		(uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), sizeof(name) - 1, sizeof(value) - 1, \
			NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE                                  \
	}

enum { READ_BYTES = 64 << 10, STREAMS = 1000, WINDOW_BYTES = 1 << 20, EVENTS = 64 };

/* A head of five bytes, and a RateLimitResponse with a status and two fields, as long as weir's. */
static const char answer[117] =
	"\0\0\0\0\x70\x08\x01\x12\x14\x08\x01\x12\x0c\x08\x0a\x10\x02\x1a\x06site-a\x18\x09\x22";

struct client {
	int fd;
	nghttp2_session *session;
};

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *room, size_t bytes, uint32_t *flags,
                         nghttp2_data_source *source, void *context)
{
	static const nghttp2_nv end[] = {FIELD("grpc-status", "0")};
	(void)source, (void)context, (void)bytes;
	memcpy(room, answer, sizeof answer);
	*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	(void)nghttp2_submit_trailer(session, stream, end, 1);
	return sizeof answer;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	static const nghttp2_nv head[] = {FIELD(":status", "200"), FIELD("content-type", "application/grpc")};
	static const nghttp2_data_provider body = {.read_callback = read_body};
	(void)context;
	if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
	    (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
		(void)nghttp2_submit_response(session, frame->hd.stream_id, head, 2, &body);
	return 0;
}

static void write_all(struct client *client)
{
	static char out[READ_BYTES];
	size_t length = 0;
	for (;;) {
		const uint8_t *bytes;
		ssize_t some = nghttp2_session_mem_send(client->session, &bytes);
		if (some <= 0 || length + (size_t)some > sizeof out) {
			(void)!write(client->fd, out, length);
			length = 0;
		}
		if (some <= 0)
			return;
		memcpy(out + length, bytes, (size_t)some);
		length += (size_t)some;
	}
}

static void open_client(int listener, int epoll, const nghttp2_session_callbacks *callbacks)
{
	const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS},
	                                           {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES}};
	struct client *client = calloc(1, sizeof *client);
	int one = 1;
	client->fd = accept(listener, NULL, NULL);
	(void)setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	(void)nghttp2_session_server_new(&client->session, callbacks, client);
	(void)nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, settings, 2);
	(void)nghttp2_session_set_local_window_size(client->session, NGHTTP2_FLAG_NONE, 0, 16 * WINDOW_BYTES);
	write_all(client);
	(void)epoll_ctl(epoll, EPOLL_CTL_ADD, client->fd, &(struct epoll_event){.events = EPOLLIN, .data.ptr = client});
}

static void serve_client(struct client *client)
{
	static uint8_t room[READ_BYTES];
	ssize_t got = read(client->fd, room, sizeof room);
	if (got > 0 && nghttp2_session_mem_recv(client->session, room, (size_t)got) >= 0) {
		write_all(client);
		return;
	}
	nghttp2_session_del(client->session);
	close(client->fd);
	free(client);
}

int main(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	struct epoll_event events[EVENTS];
	nghttp2_session_callbacks *callbacks;
	int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0), stdin_marks = 0;
	if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, SOMAXCONN) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
	    nghttp2_session_callbacks_new(&callbacks) != 0)
		return 1;
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	(void)epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &(struct epoll_event){.events = EPOLLIN, .data.ptr = NULL});
	(void)epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO,
	                &(struct epoll_event){.events = EPOLLIN, .data.ptr = &stdin_marks});
	printf("%u\n", ntohs(address.sin_port));
	fflush(stdout);
	for (;;) {
		int count = epoll_wait(epoll, events, EVENTS, -1);
		for (int i = 0; i < count; i++) {
			if (events[i].data.ptr == &stdin_marks)
				return 0;
			if (events[i].data.ptr == NULL)
				open_client(listener, epoll, callbacks);
			else
				serve_client(events[i].data.ptr);
		}
	}
}

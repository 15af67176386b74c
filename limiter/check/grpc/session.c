/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 by libnghttp2, which is met here alone: streams become calls, and their answers frames. */
#include "limiter/check/grpc/internal.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	WINDOW_BYTES = 1 << 20,      /* that a client may send on a stream, and sixteen times as much on a connection */
	FRAME_ROOM_BYTES = 20 << 10, /* a frame to be written is at most as long */
	RESETS_A_SECOND = 10000,     /* a client that gives up after its timeout resets its streams */
	SETTINGS_MAX = 32,
	FRAMES_OF_A_CALL = 4, /* that ask nothing, and come with it */
	FRAME_UNIT_BYTES = 1 << 10,
};

static const char too_much_noise[] = "too many frames that ask nothing";

#define FIELD(name, value)                                                                                \
	{                                                                                                     \
		(uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), sizeof(name) - 1, sizeof(value) - 1, \
			NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE                                  \
	}

static struct grpc_call *call_of(nghttp2_session *session, int32_t stream)
{
	return nghttp2_session_get_stream_user_data(session, stream);
}

/* ---- what comes ---- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct grpc_connection *connection = context;
	int32_t stream = frame->hd.stream_id;
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	if (connection->call_count >= 2 * GRPC_STREAMS_MAX) /* of which most were reset: their answers are still to come */
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	struct grpc_call *call = call_open(connection, stream);
	if (call == NULL)
		return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_REFUSED_STREAM);
	return nghttp2_session_set_stream_user_data(session, stream, call);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                     const uint8_t *value, size_t value_length, uint8_t flags, void *context)
{
	struct grpc_call *call = call_of(session, frame->hd.stream_id);
	(void)flags, (void)context;
	if (call == NULL || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	call_header(call, (struct weir_span){.at = (const char *)name, .length = (uint32_t)name_length},
	            (struct weir_span){.at = (const char *)value, .length = (uint32_t)value_length});
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t length,
                   void *context)
{
	struct grpc_call *call = call_of(session, stream);
	(void)flags, (void)context;
	if (call != NULL)
		call_data(call, (const char *)bytes, length);
	return 0;
}

/* What a frame counts for, as long as nobody knows that it asks: what is passed over has to be read, too. */
static uint32_t weight_of(size_t length)
{
	return 1 + (uint32_t)(length / FRAME_UNIT_BYTES);
}

static void count_off(struct grpc_connection *connection, uint32_t weight)
{
	connection->frames -= connection->frames < weight ? connection->frames : weight;
}

/* All frames were counted as their heads came: those that ask are counted off. */
static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct grpc_connection *connection = context;
	bool begins = frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
	bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
	connection->greeted = true;
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	struct grpc_call *call = call_of(session, frame->hd.stream_id);
	if (begins)
		count_off(connection, weight_of(frame->hd.length) + FRAMES_OF_A_CALL);
	if (call == NULL)
		return 0;
	if (frame->hd.type == NGHTTP2_DATA && !call->finished && (frame->hd.length > frame->data.padlen || ends))
		count_off(connection, weight_of(frame->hd.length));
	if (begins)
		call_begin(call);
	if (ends)
		call_end(call);
	return 0;
}

static void tell_protocol_error(struct grpc_connection *connection, const char *what)
{
	weir_counter_add(&connection->server->base.figures.protocol_errors, 1);
	link_connection_refuse(&connection->base, REFUSAL_PROTOCOL, NULL, what, NULL);
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int code, void *context)
{
	struct grpc_connection *connection = context;
	(void)session, (void)frame, (void)code;
	tell_protocol_error(connection, "a frame of HTTP/2 is not as it must be");
	return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
	struct grpc_call *call = call_of(session, stream);
	(void)code, (void)context;
	if (call != NULL) {
		(void)nghttp2_session_set_stream_user_data(session, stream, NULL);
		call_close(call);
	}
	return 0;
}

/*
 * An answer to a request that goes on: nobody reads the rest. And libnghttp2 ends a connection by itself where it cannot
 * unpack a head.
 */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code == NGHTTP2_COMPRESSION_ERROR)
		tell_protocol_error(context, "a head has more than 64 KiB, or cannot be unpacked");
	if (frame->hd.type != NGHTTP2_HEADERS || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
		return 0;
	struct grpc_call *call = call_of(session, frame->hd.stream_id);
	if (call != NULL && !call->ended)
		(void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
	return 0;
}

/* ---- what goes ---- */

/* grpc-status and grpc-message. @return how many */
static size_t end_fields(const struct grpc_call *call, char code[16], nghttp2_nv fields[2])
{
	static const nghttp2_nv good = FIELD("grpc-status", "0");
	if (call->status == GRPC_OK) {
		fields[0] = good;
		return 1;
	}
	int length = snprintf(code, 16, "%d", (int)call->status);
	fields[0] = (nghttp2_nv){(uint8_t *)(uintptr_t) "grpc-status", (uint8_t *)code, 11, (size_t)length,
	                         NGHTTP2_NV_FLAG_NO_COPY_NAME};
	if (call->words == NULL)
		return 1;
	fields[1] = (nghttp2_nv){(uint8_t *)(uintptr_t) "grpc-message", (uint8_t *)(uintptr_t)call->words, 12,
	                         strlen(call->words), NGHTTP2_NV_FLAG_NO_COPY_NAME};
	return 2;
}

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *room, size_t bytes, uint32_t *flags,
                         nghttp2_data_source *source, void *context)
{
	struct grpc_call *call = source->ptr;
	size_t some = call->out.length - call->sent;
	(void)context;
	some = some < bytes ? some : bytes;
	if (some > 0)
		memcpy(room, call->out.at + call->sent, some);
	call->sent += some;
	call->read_ms = call->connection->server->base.now_ms;
	if (call->sent < call->out.length) {
		if (call->sent > GRPC_UNREAD_MAX_BYTES) { /* what is never read whole would grow without end */
			memmove(call->out.at, call->out.at + call->sent, call->out.length - call->sent);
			call->out.length -= call->sent;
			call->sent = 0;
		}
		return (ssize_t)some;
	}
	call->sent = 0;
	weir_text_clear(&call->out);
	if (call->finished) {
		char code[16];
		nghttp2_nv fields[2];
		*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
		(void)nghttp2_submit_trailer(session, stream, fields, end_fields(call, code, fields));
		return (ssize_t)some;
	}
	call->idle = some == 0;
	return some > 0 ? (ssize_t)some : NGHTTP2_ERR_DEFERRED;
}

static void submit_head(struct grpc_call *call)
{
	static const nghttp2_nv good[] = {FIELD(":status", "200"), FIELD("content-type", "application/grpc")};
	static const nghttp2_nv no_post = FIELD(":status", "405"), no_grpc = FIELD(":status", "415");
	nghttp2_session *session = call->connection->session;
	char code[16];
	if (call->out.length > 0 || !call->finished) {
		const nghttp2_data_provider body = {.source.ptr = call, .read_callback = read_body};
		(void)nghttp2_submit_response(session, call->stream, good, 2, &body);
		return;
	}
	nghttp2_nv fields[4] = {good[0], good[1]};
	if (!call->is_post)
		fields[0] = no_post;
	else if (!call->is_grpc)
		fields[0] = no_grpc;
	size_t count = 2 + end_fields(call, code, fields + 2);
	(void)nghttp2_submit_response(session, call->stream, fields, count, NULL);
}

void session_answer(struct grpc_call *call)
{
	if (call->closed || call->connection->session == NULL)
		return;
	if (!call->submitted) {
		call->submitted = true;
		submit_head(call);
	} else if (call->idle) {
		call->idle = false;
		(void)nghttp2_session_resume_data(call->connection->session, call->stream);
	}
	link_connection_touch(&call->connection->base);
}

void session_reset(struct grpc_call *call)
{
	(void)nghttp2_submit_rst_stream(call->connection->session, NGHTTP2_FLAG_NONE, call->stream, NGHTTP2_CANCEL);
	link_connection_touch(&call->connection->base);
}

/* ---- sessions ---- */

void session_prepare(struct grpc_server *server)
{
	if (nghttp2_session_callbacks_new(&server->callbacks) != 0 || nghttp2_option_new(&server->option) != 0)
		abort(); /* only if memory is exhausted */
	nghttp2_session_callbacks_set_on_begin_headers_callback(server->callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(server->callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(server->callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(server->callbacks, on_frame);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(server->callbacks, on_invalid_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(server->callbacks, on_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(server->callbacks, on_sent);
	nghttp2_option_set_no_closed_streams(server->option, 1);
	nghttp2_option_set_max_settings(server->option, SETTINGS_MAX);
#ifdef WEIR_NGHTTP2_RESETS
	nghttp2_option_set_stream_reset_rate_limit(server->option, RESETS_A_SECOND, RESETS_A_SECOND);
#endif
}

void session_unprepare(struct grpc_server *server)
{
	nghttp2_session_callbacks_del(server->callbacks);
	nghttp2_option_del(server->option);
}

void session_open(struct grpc_connection *connection)
{
	const struct grpc_server *server = connection->server;
	connection->place.left = NGHTTP2_CLIENT_MAGIC_LEN;
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_STREAMS_MAX},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_HEADERS_MAX_BYTES},
	};
	if (nghttp2_session_server_new2(&connection->session, server->callbacks, connection, server->option) != 0)
		abort(); /* only if memory is exhausted */
	(void)nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings);
	(void)nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0, 16 * WINDOW_BYTES);
}

void session_close(struct grpc_connection *connection)
{
	if (connection->session == NULL)
		return;
	nghttp2_session_del(connection->session);
	connection->session = NULL;
	for (struct grpc_call *call = connection->calls, *next; call != NULL; call = next) {
		next = call->next;
		if (!call->closed)
			call_close(call);
	}
}

static bool is_between(const struct frame_place *place)
{
	return place->left == 0 && place->head_length == 0 && !place->block;
}

/*
 * Libnghttp2 tells of no beginning and no end of what it passes over, so frames are followed here.
 *
 * @param weight  what the frames that begin count for is added
 * @return whether one ended
 */
static bool follow(struct frame_place *place, const uint8_t *at, size_t length, uint32_t *weight)
{
	bool ended = false;
	for (const uint8_t *end = at + length; at < end;) {
		size_t some = place->left < (size_t)(end - at) ? place->left : (size_t)(end - at);
		if (some == 0)
			place->head[place->head_length++] = *at++;
		place->left -= (uint32_t)some;
		at += some;
		if (place->head_length == FRAME_HEAD_BYTES) {
			const uint8_t *head = place->head;
			place->left = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];
			place->head_length = 0;
			*weight += weight_of(place->left);
			if (head[3] == NGHTTP2_HEADERS || head[3] == NGHTTP2_CONTINUATION)
				place->block = (head[4] & NGHTTP2_FLAG_END_HEADERS) == 0;
		}
		ended |= is_between(place);
	}
	return ended;
}

static void tell_noise(struct grpc_connection *connection)
{
	nghttp2_session *session = connection->session;
	tell_protocol_error(connection, too_much_noise);
	(void)nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session),
	                            NGHTTP2_ENHANCE_YOUR_CALM, (const uint8_t *)too_much_noise, sizeof too_much_noise - 1);
}

bool session_receive(struct grpc_connection *connection, const char *bytes, size_t length)
{
	bool ended = follow(&connection->place, (const uint8_t *)bytes, length, &connection->frames);
	if (is_between(&connection->place))
		connection->base.partial_ms = 0;
	else if (ended || connection->base.partial_ms == 0)
		connection->base.partial_ms = connection->server->base.now_ms;
	ssize_t taken = nghttp2_session_mem_recv(connection->session, (const uint8_t *)bytes, length);
	connection->strange = taken == NGHTTP2_ERR_BAD_CLIENT_MAGIC;
	if (taken == NGHTTP2_ERR_FLOODED || (taken >= 0 && connection->frames > GRPC_FRAMES_MAX)) {
		tell_noise(connection);
		return false;
	}
	if (taken < 0)
		tell_protocol_error(connection, connection->strange ? "it speaks another protocol: this port takes gRPC alone"
		                                                    : nghttp2_strerror((int)taken));
	return taken >= 0;
}

bool session_send(struct grpc_connection *connection)
{
	while (connection->out_length + FRAME_ROOM_BYTES <= OUT_BYTES) {
		const uint8_t *bytes;
		ssize_t length = nghttp2_session_mem_send(connection->session, &bytes);
		if (length <= 0)
			return length == 0;
		if ((size_t)length > OUT_BYTES - connection->out_length)
			return false;
		memcpy(connection->out + connection->out_length, bytes, (size_t)length);
		connection->out_length += (size_t)length;
	}
	return true;
}

bool session_is_over(const struct grpc_connection *connection)
{
	nghttp2_session *session = connection->session;
	bool writes = nghttp2_session_want_write(session) != 0;
	return !writes && (nghttp2_session_want_read(session) == 0 || (connection->leaving && connection->call_count == 0));
}

void session_leave(struct grpc_connection *connection)
{
	nghttp2_session *session = connection->session;
	(void)nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session),
	                            NGHTTP2_NO_ERROR, NULL, 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* librabbitmq: one connection, one channel, one consumer. */
#include "collector/source/amqp/amqp_client.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/words.h"

#include <stdlib.h>

#ifdef WEIR_AMQP

#if __has_include(<rabbitmq-c/amqp.h>) /* from 0.12 on */
#include <rabbitmq-c/amqp.h>
#include <rabbitmq-c/framing.h>
#include <rabbitmq-c/ssl_socket.h>
#include <rabbitmq-c/tcp_socket.h>
#else
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#endif
#include <string.h>
#include <sys/time.h>

enum {
	CHANNEL = 1,
	CONNECT_S = 3,
	ASK_S = 5,
	NEXT_US = 100000,
	HEARTBEAT_S = 30,
	FRAME_BYTES = 131072,
	BEAT_MS = 5000
};

struct amqp_client {
	amqp_connection_state_t connection;
	amqp_envelope_t envelope; /* what was given out last */
	bool given;
	int64_t beat_ms; /* monotonic: when the last heartbeat of our own was sent */
};

bool amqp_built_in(void)
{
	return true;
}

/* ---- what went wrong ---- */

static enum weir_status fail_words(struct weir_error *error, const char *what, int code, const char *at, size_t length)
{
	(void)weir_fail(error, WEIR_IO, "%s: %.*s (%d)", what, (int)(length < 300 ? length : 300), at, code);
	weir_words_clean(error->text);
	return WEIR_IO;
}

/* What the server says as it closes a channel or the connection. */
static enum weir_status fail_closed(const amqp_method_t *method, const char *what, struct weir_error *error)
{
	if (method->id == AMQP_CHANNEL_CLOSE_METHOD) {
		const amqp_channel_close_t *said = method->decoded;
		return fail_words(error, what, said->reply_code, said->reply_text.bytes, said->reply_text.len);
	}
	if (method->id == AMQP_CONNECTION_CLOSE_METHOD) {
		const amqp_connection_close_t *said = method->decoded;
		return fail_words(error, what, said->reply_code, said->reply_text.bytes, said->reply_text.len);
	}
	return weir_fail(error, WEIR_IO, "%s: the server answers with method 0x%x", what, (unsigned)method->id);
}

static enum weir_status fail_reply(amqp_rpc_reply_t reply, const char *what, struct weir_error *error)
{
	if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION)
		return fail_closed(&reply.reply, what, error);
	return weir_fail(error, WEIR_IO, "%s: %s", what,
	                 reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION ? amqp_error_string2(reply.library_error)
	                                                                     : "the server does not answer");
}

static bool is_good(amqp_rpc_reply_t reply)
{
	return reply.reply_type == AMQP_RESPONSE_NORMAL;
}

/* ---- connecting ---- */

static enum weir_status set_tls(amqp_socket_t *socket, const struct amqp_login *login, struct weir_error *error)
{
	if (amqp_ssl_socket_set_cacert(socket, login->ca) != AMQP_STATUS_OK)
		return weir_fail(error, WEIR_IO, "cannot use the authorities of %s", login->ca);
	if (login->certificate != NULL && amqp_ssl_socket_set_key(socket, login->certificate, login->key) != AMQP_STATUS_OK)
		return weir_fail(error, WEIR_IO, "cannot use the certificate %s with the key %s", login->certificate,
		                 login->key);
	amqp_ssl_socket_set_verify_peer(socket, 1);
	amqp_ssl_socket_set_verify_hostname(socket, 1);
	return WEIR_OK;
}

static enum weir_status log_in(struct amqp_client *client, const struct amqp_login *login, struct weir_error *error)
{
	struct timeval answer = {.tv_sec = ASK_S}, connecting = {.tv_sec = CONNECT_S};
	(void)amqp_set_handshake_timeout(client->connection, &answer);
	(void)amqp_set_rpc_timeout(client->connection, &answer);
	amqp_socket_t *socket =
		login->tls ? amqp_ssl_socket_new(client->connection) : amqp_tcp_socket_new(client->connection);
	if (socket == NULL)
		return weir_fail(error, WEIR_IO, "cannot make a socket");
	enum weir_status status = login->tls ? set_tls(socket, login, error) : WEIR_OK;
	if (status != WEIR_OK)
		return status;
	int code = amqp_socket_open_noblock(socket, login->host, login->port, &connecting);
	if (code != AMQP_STATUS_OK)
		return weir_fail(error, WEIR_IO, "cannot connect: %s", amqp_error_string2(code));
	amqp_rpc_reply_t reply = amqp_login(client->connection, login->vhost, 0, FRAME_BYTES, HEARTBEAT_S,
	                                    AMQP_SASL_METHOD_PLAIN, login->user, login->password);
	if (!is_good(reply))
		return fail_reply(reply, "cannot log in", error);
	(void)amqp_channel_open(client->connection, CHANNEL);
	reply = amqp_get_rpc_reply(client->connection);
	return is_good(reply) ? WEIR_OK : fail_reply(reply, "cannot open a channel", error);
}

enum weir_status amqp_client_open(const struct amqp_login *login, struct amqp_client **made, struct weir_error *error)
{
	struct amqp_client *client = weir_alloc(1, sizeof *client);
	client->connection = amqp_new_connection();
	client->beat_ms = weir_monotonic_ms();
	enum weir_status status = client->connection != NULL ? log_in(client, login, error)
	                                                     : weir_fail(error, WEIR_IO, "cannot make a connection");
	if (status == WEIR_OK)
		*made = client;
	else
		amqp_client_close(client, false);
	return status;
}

static void forget_message(struct amqp_client *client)
{
	if (client->given)
		amqp_destroy_envelope(&client->envelope);
	client->given = false;
}

void amqp_client_close(struct amqp_client *client, bool well)
{
	struct timeval last = {.tv_sec = 1};
	if (client == NULL)
		return;
	forget_message(client);
	if (well && amqp_set_rpc_timeout(client->connection, &last) == AMQP_STATUS_OK)
		(void)amqp_connection_close(client->connection, AMQP_REPLY_SUCCESS);
	if (client->connection != NULL)
		amqp_destroy_connection(client->connection);
	free(client);
}

/* ---- the queue ---- */

enum weir_status amqp_client_count(struct amqp_client *client, const char *queue, uint64_t *count,
                                   struct weir_error *error)
{
	amqp_queue_declare_ok_t *there =
		amqp_queue_declare(client->connection, CHANNEL, amqp_cstring_bytes(queue), 1, 0, 0, 0, amqp_empty_table);
	if (there == NULL)
		return fail_reply(amqp_get_rpc_reply(client->connection), "cannot read the queue", error);
	*count = there->message_count;
	return WEIR_OK;
}

enum weir_status amqp_client_consume(struct amqp_client *client, const char *queue, int64_t prefetch,
                                     enum amqp_begin begin, uint64_t offset, struct weir_error *error)
{
	amqp_table_entry_t entry = {.key = amqp_cstring_bytes("x-stream-offset")};
	amqp_table_t arguments = {.num_entries = begin == AMQP_NO_STREAM ? 0 : 1, .entries = &entry};
	amqp_bytes_t name = amqp_cstring_bytes(queue);
	entry.value.kind = begin == AMQP_OFFSET ? AMQP_FIELD_KIND_I64 : AMQP_FIELD_KIND_UTF8;
	if (begin == AMQP_OFFSET)
		entry.value.value.i64 = (int64_t)offset;
	else
		entry.value.value.bytes = amqp_cstring_bytes(begin == AMQP_FIRST ? "first" : "last");
	if (amqp_basic_qos(client->connection, CHANNEL, 0, (uint16_t)prefetch, 0) == NULL)
		return fail_reply(amqp_get_rpc_reply(client->connection), "cannot set the prefetch", error);
	if (amqp_basic_consume(client->connection, CHANNEL, name, amqp_cstring_bytes("weir"), 0, 0, 0, arguments) == NULL)
		return fail_reply(amqp_get_rpc_reply(client->connection), "cannot read the queue", error);
	return WEIR_OK;
}

/* ---- messages ---- */

bool amqp_client_has_more(struct amqp_client *client)
{
	return amqp_data_in_buffer(client->connection) || amqp_frames_enqueued(client->connection);
}

static void find_offset(const amqp_table_t *headers, struct amqp_message *message)
{
	static const char name[] = "x-stream-offset";
	for (int i = 0; i < headers->num_entries; i++) {
		const amqp_table_entry_t *entry = &headers->entries[i];
		if (entry->key.len != sizeof name - 1 || memcmp(entry->key.bytes, name, sizeof name - 1) != 0)
			continue;
		if (entry->value.kind != AMQP_FIELD_KIND_I64 && entry->value.kind != AMQP_FIELD_KIND_U64)
			continue;
		message->has_offset = entry->value.value.i64 >= 0;
		message->offset = entry->value.value.u64;
	}
}

static void read_envelope(const amqp_envelope_t *envelope, struct amqp_message *message)
{
	const amqp_basic_properties_t *properties = &envelope->message.properties;
	*message = (struct amqp_message){
		.data = {.at = envelope->message.body.bytes, .length = (uint32_t)envelope->message.body.len},
		.tag = envelope->delivery_tag,
		.again = envelope->redelivered,
	};
	if (properties->_flags & AMQP_BASIC_TIMESTAMP_FLAG && properties->timestamp < INT64_MAX / 1000)
		message->put_ms = (int64_t)properties->timestamp * 1000;
	if (properties->_flags & AMQP_BASIC_HEADERS_FLAG)
		find_offset(&properties->headers, message);
}

/* What came in place of a message: the server ends the consumer, the channel or the connection. */
static enum weir_status take_other(struct amqp_client *client, struct weir_error *error)
{
	amqp_frame_t frame;
	struct timeval now = {0};
	int code = amqp_simple_wait_frame_noblock(client->connection, &frame, &now);
	if (code == AMQP_STATUS_TIMEOUT)
		return WEIR_AGAIN;
	if (code != AMQP_STATUS_OK)
		return weir_fail(error, WEIR_IO, "the connection broke: %s", amqp_error_string2(code));
	if (frame.frame_type != AMQP_FRAME_METHOD)
		return WEIR_AGAIN;
	if (frame.payload.method.id == AMQP_BASIC_CANCEL_METHOD)
		return weir_fail(error, WEIR_IO, "the server ended the consumer: the queue was deleted, or has no leader now");
	return fail_closed(&frame.payload.method, "the server closed it", error);
}

enum weir_status amqp_client_next(struct amqp_client *client, struct amqp_message *message, struct weir_error *error)
{
	struct timeval patience = {.tv_usec = NEXT_US};
	forget_message(client);
	/* Of the one channel: for another, the library would look through all that waits here, for each message. */
	amqp_maybe_release_buffers_on_channel(client->connection, CHANNEL);
	amqp_rpc_reply_t reply = amqp_consume_message(client->connection, &client->envelope, &patience, 0);
	if (is_good(reply)) {
		client->given = true;
		read_envelope(&client->envelope, message);
		return WEIR_OK;
	}
	if (reply.reply_type != AMQP_RESPONSE_LIBRARY_EXCEPTION)
		return fail_reply(reply, "the server closed it", error);
	if (reply.library_error == AMQP_STATUS_TIMEOUT)
		return WEIR_AGAIN;
	if (reply.library_error == AMQP_STATUS_UNEXPECTED_STATE)
		return take_other(client, error);
	return fail_reply(reply, "the connection broke", error);
}

enum weir_status amqp_client_acknowledge(struct amqp_client *client, uint64_t tag, struct weir_error *error)
{
	int code = amqp_basic_ack(client->connection, CHANNEL, tag, 1);
	return code == AMQP_STATUS_OK ? WEIR_OK
	                              : weir_fail(error, WEIR_IO, "cannot acknowledge: %s", amqp_error_string2(code));
}

enum weir_status amqp_client_beat(struct amqp_client *client, struct weir_error *error)
{
	amqp_frame_t frame = {.frame_type = AMQP_FRAME_HEARTBEAT};
	int64_t now_ms = weir_monotonic_ms();
	if (now_ms - client->beat_ms < BEAT_MS)
		return WEIR_OK;
	client->beat_ms = now_ms;
	int code = amqp_send_frame(client->connection, &frame);
	return code == AMQP_STATUS_OK ? WEIR_OK
	                              : weir_fail(error, WEIR_IO, "the connection broke: %s", amqp_error_string2(code));
}

#else

bool amqp_built_in(void)
{
	return false;
}

static enum weir_status fail(struct weir_error *error)
{
	return weir_fail(error, WEIR_INVALID, "this program was built without librabbitmq");
}

enum weir_status amqp_client_open(const struct amqp_login *login, struct amqp_client **client, struct weir_error *error)
{
	(void)login, (void)client;
	return fail(error);
}

void amqp_client_close(struct amqp_client *client, bool well)
{
	(void)client, (void)well;
}

enum weir_status amqp_client_count(struct amqp_client *client, const char *queue, uint64_t *count,
                                   struct weir_error *error)
{
	(void)client, (void)queue, (void)count;
	return fail(error);
}

enum weir_status amqp_client_consume(struct amqp_client *client, const char *queue, int64_t prefetch,
                                     enum amqp_begin begin, uint64_t offset, struct weir_error *error)
{
	(void)client, (void)queue, (void)prefetch, (void)begin, (void)offset;
	return fail(error);
}

bool amqp_client_has_more(struct amqp_client *client)
{
	(void)client;
	return false;
}

enum weir_status amqp_client_next(struct amqp_client *client, struct amqp_message *message, struct weir_error *error)
{
	(void)client, (void)message;
	return fail(error);
}

enum weir_status amqp_client_acknowledge(struct amqp_client *client, uint64_t tag, struct weir_error *error)
{
	(void)client, (void)tag;
	return fail(error);
}

enum weir_status amqp_client_beat(struct amqp_client *client, struct weir_error *error)
{
	(void)client;
	return fail(error);
}

#endif

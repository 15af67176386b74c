/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a queue's messages are read: queue_rate source CONFIG COUNT, by weir's source; queue_rate nats URL STREAM COUNT
 * and queue_rate amqp PORT QUEUE COUNT, by a bare loop of the same library that drops what it gets. Writes the messages a
 * second, from the first on, and the processor time of each in nanoseconds. For tests/bench/bench_queues.py.
 */
#include "collector/source/kinds/source_kinds.h"
#include "common/base/clock.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#if __has_include(<nats/nats.h>)
#include <nats/nats.h>
#define HAS_NATS
#endif
#if __has_include(<amqp.h>)
#include <amqp.h>
#include <amqp_tcp_socket.h>
#define HAS_AMQP
#endif

enum { SKIPPED = 77 };

static int report(uint64_t count, int64_t began_ms)
{
	int64_t took_ms = weir_monotonic_ms() - began_ms;
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	double cpu_s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	               (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
	printf("%.0f %.0f\n", (double)count * 1000 / (double)(took_ms > 0 ? took_ms : 1), cpu_s * 1e9 / (double)count);
	return 0;
}

static int read_source(const char *path, uint64_t count)
{
	struct weir_json_document *document;
	struct source_context context = {.line_max_bytes = 1 << 16};
	struct source_chunk chunk;
	struct weir_error error;
	struct source *source;
	uint64_t got = 0;
	int64_t began_ms = 0;
	if (weir_json_load(path, &document, &error) != WEIR_OK)
		return 1;
	struct weir_json root = weir_json_root(document);
	if (source_new(&root, &context, &source, &error) != WEIR_OK) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	while (got < count) {
		if (source->ops->collect(source, NULL, &chunk, &error) != WEIR_OK) {
			struct pollfd at = {.fd = source->ops->fd(source), .events = POLLIN};
			poll(&at, 1, 100);
			continue;
		}
		began_ms = began_ms != 0 ? began_ms : weir_monotonic_ms();
		for (const char *at = chunk.data; (at = memchr(at, '\n', (size_t)(chunk.data + chunk.length - at))) != NULL;
		     at++)
			got++;
		source->ops->acknowledge(source, chunk.stream, chunk.positions != NULL ? chunk.positions[0] : chunk.position);
	}
	report(got, began_ms);
	source->ops->free(source);
	weir_json_document_free(document);
	return 0;
}

#ifdef HAS_NATS
static int read_nats(const char *url, const char *stream, uint64_t count)
{
	natsConnection *connection = NULL;
	jsCtx *js = NULL;
	natsSubscription *subscription = NULL;
	jsSubOptions options;
	int64_t began_ms = 0;
	jsSubOptions_Init(&options);
	options.Ordered = true;
	options.Stream = stream;
	if (natsConnection_ConnectTo(&connection, url) != NATS_OK ||
	    natsConnection_JetStream(&js, connection, NULL) != NATS_OK ||
	    js_SubscribeSync(&subscription, js, "logs.a", NULL, &options, NULL) != NATS_OK)
		return 1;
	natsSubscription_SetPendingLimits(subscription, -1, -1);
	for (uint64_t got = 0; got < count; got++) {
		natsMsg *message = NULL;
		if (natsSubscription_NextMsg(&message, subscription, 5000) != NATS_OK)
			return 1;
		began_ms = began_ms != 0 ? began_ms : weir_monotonic_ms();
		natsMsg_Destroy(message);
	}
	report(count, began_ms);
	natsSubscription_Destroy(subscription);
	jsCtx_Destroy(js);
	natsConnection_Destroy(connection);
	return 0;
}
#endif

#ifdef HAS_AMQP
static int read_amqp(int port, const char *queue, uint64_t count)
{
	amqp_connection_state_t connection = amqp_new_connection();
	amqp_socket_t *socket = amqp_tcp_socket_new(connection);
	amqp_table_entry_t first = {
		.key = amqp_cstring_bytes("x-stream-offset"),
		.value = {.kind = AMQP_FIELD_KIND_UTF8, .value = {.bytes = amqp_cstring_bytes("first")}}};
	amqp_table_t arguments = {1, &first};
	int64_t began_ms = 0;
	if (amqp_socket_open(socket, "127.0.0.1", port) != AMQP_STATUS_OK)
		return 1;
	(void)amqp_login(connection, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest");
	amqp_channel_open(connection, 1);
	amqp_basic_qos(connection, 1, 0, 50000, 0);
	amqp_basic_consume(connection, 1, amqp_cstring_bytes(queue), amqp_cstring_bytes("bare"), 0, 0, 0, arguments);
	for (uint64_t got = 1; got <= count; got++) {
		amqp_envelope_t envelope;
		amqp_maybe_release_buffers(connection);
		if (amqp_consume_message(connection, &envelope, NULL, 0).reply_type != AMQP_RESPONSE_NORMAL)
			return 1;
		began_ms = began_ms != 0 ? began_ms : weir_monotonic_ms();
		if (got % 12500 == 0)
			(void)amqp_basic_ack(connection, 1, envelope.delivery_tag, 1);
		amqp_destroy_envelope(&envelope);
	}
	report(count, began_ms);
	amqp_destroy_connection(connection);
	return 0;
}
#endif

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "source") == 0)
		return read_source(argv[2], strtoull(argv[3], NULL, 10));
#ifdef HAS_NATS
	if (argc == 5 && strcmp(argv[1], "nats") == 0)
		return read_nats(argv[2], argv[3], strtoull(argv[4], NULL, 10));
#endif
#ifdef HAS_AMQP
	if (argc == 5 && strcmp(argv[1], "amqp") == 0)
		return read_amqp(atoi(argv[2]), argv[3], strtoull(argv[4], NULL, 10));
#endif
	return SKIPPED;
}

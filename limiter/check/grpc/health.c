/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.health.v1.Health: serving once there is a policy, and until the process ends. */
#include "limiter/check/grpc/internal.h"

/* HealthCheckRequest, HealthCheckResponse */
enum { REQUEST_SERVICE = 1, RESPONSE_STATUS = 1 };
enum serving { SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3 };

static bool server_serves(const struct grpc_server *server)
{
	return !server->base.stopping && link_server_policy(&server->base) != NULL;
}

/* "" is the whole server; else the service of a method. */
static bool is_service(struct weir_span name)
{
	if (name.length == 0)
		return true;
	const struct grpc_method *method;
	for (uint32_t i = 0; (method = method_at(i)) != NULL; i++)
		if (strlen(method->path) > name.length + 1 && method->path[name.length + 1] == '/' &&
		    memcmp(method->path + 1, name.at, name.length) == 0)
			return true;
	return false;
}

/* @return false: it is no message */
static bool read_service(struct weir_span message, struct weir_span *service)
{
	struct protobuf_reader reader = protobuf_reader_of(message);
	struct protobuf_field field;
	*service = (struct weir_span){0};
	while (protobuf_next(&reader, &field))
		if (protobuf_is_bytes(&field, REQUEST_SERVICE))
			*service = field.bytes;
	return !reader.bad;
}

static void say(struct grpc_call *call, enum serving serving)
{
	protobuf_put_number(call_message_open(call), RESPONSE_STATUS, serving);
	call_message_close(call);
}

static void check(struct grpc_call *call, struct weir_span message)
{
	struct weir_span service;
	if (!read_service(message, &service)) {
		call_finish(call, GRPC_INVALID_ARGUMENT, "the message is no HealthCheckRequest");
	} else if (!is_service(service)) {
		call_finish(call, GRPC_NOT_FOUND, "weir has no such service");
	} else {
		say(call, server_serves(call->connection->server) ? SERVING : NOT_SERVING);
		call_finish(call, GRPC_OK, NULL);
	}
}

/* ---- Watch: its state is what was told last, as a number ---- */

static void tell(struct grpc_call *call, enum serving serving)
{
	if ((uintptr_t)call->state == serving)
		return;
	call->state = (void *)(uintptr_t)serving;
	say(call, serving);
}

static void look(struct grpc_call *call)
{
	if (call->state != NULL && (uintptr_t)call->state != SERVICE_UNKNOWN)
		tell(call, server_serves(call->connection->server) ? SERVING : NOT_SERVING);
}

static void watch(struct grpc_call *call, struct weir_span message)
{
	struct weir_span service;
	if (call->state != NULL)
		call_finish(call, GRPC_INVALID_ARGUMENT, "Watch takes one request");
	else if (!read_service(message, &service))
		call_finish(call, GRPC_INVALID_ARGUMENT, "the message is no HealthCheckRequest");
	else if (!is_service(service))
		tell(call, SERVICE_UNKNOWN);
	else
		tell(call, server_serves(call->connection->server) ? SERVING : NOT_SERVING);
}

/* The client has asked its one question, and listens. */
static void listen_on(struct grpc_call *call)
{
	(void)call;
}

const struct grpc_method method_health_check = {
	.name = "Health/Check", .path = "/grpc.health.v1.Health/Check", .message = check};
const struct grpc_method method_health_watch = {.name = "Health/Watch",
                                                .path = "/grpc.health.v1.Health/Watch",
                                                .streams = true,
                                                .message = watch,
                                                .look = look,
                                                .ended = listen_on};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a client sends by HTTP/2, at once or in pieces, answered at once or later: the surface answers or ends
 * the connection, and keeps nothing for a client that has gone.
 *
 * The first byte says how: 1, answers come later; 2, a password is asked for; 4, HTTP/2's preface and empty settings stand
 * before the bytes; the rest, by how many bytes at a time.
 */
#include "limiter/check/grpc/grpc_server.h"

#include "common/json/json.h"
#include "common/policy/policy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PENDING_MAX = 4096, PIECES_MAX = 64, TURNS_MAX = 200 };

static const char zones_text[] =
	"[{\"name\":\"z\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"gcra\",\"rate\":30,\"window\":\"1m\",\"burst\":15}]},"
	"{\"name\":\"n\",\"key\":[{\"field\":\"ip\",\"prefix6\":64},\"path\"],"
	"\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":10,\"window\":\"1m\"}]}]";

struct judge {
	struct weir_policy *policy;
	bool later;
	struct check_answer pending[PENDING_MAX];
	uint32_t pending_count;
};

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void ask(void *context, const struct check_ask *asks, uint32_t count, struct check_answer *answers)
{
	struct judge *judge = context;
	require(count > 0 && count <= CHECK_GROUP_MAX);
	for (uint32_t i = 0; i < count; i++) {
		const struct check_ask *one = &asks[i];
		require(one->key.length <= WEIR_KEY_MAX_BYTES && one->cost >= 0);
		require(weir_policy_zone_named(judge->policy, one->zone) != NULL);
		uint32_t sum = 0;
		for (uint32_t at = 0; at < one->key.length; at++)
			sum += (unsigned char)one->key.at[at];
		answers[i] = (struct check_answer){.outcome = (enum check_outcome)(sum % 4),
		                                   .why = CHECK_WHY_FULL,
		                                   .limit = 10,
		                                   .window_ms = 60000,
		                                   .remaining = sum,
		                                   .retry_after_ms = -1,
		                                   .reset_after_ms = one->cost,
		                                   .ticket = one->ticket};
		if (judge->later && judge->pending_count < PENDING_MAX) {
			judge->pending[judge->pending_count++] = answers[i];
			answers[i].outcome = CHECK_LATER;
		}
	}
}

static const struct weir_policy *policy(void *context)
{
	const struct judge *judge = context;
	return judge->policy;
}

static struct weir_policy *read_policy(void)
{
	struct weir_json_document *document;
	struct weir_policy *made = NULL;
	struct weir_error error;
	require(weir_json_parse("zones", zones_text, sizeof zones_text - 1, &document, &error) == WEIR_OK);
	struct weir_json root = weir_json_root(document);
	require(weir_policy_parse(&root, NULL, &made, &error) == WEIR_OK);
	weir_json_document_free(document);
	return made;
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct linger at_once = {.l_onoff = 1}; /* no port waits for its time to pass */
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	require(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	return fd;
}

static void turn(struct grpc_server *server, struct judge *judge, int fd)
{
	char rest[1 << 16];
	grpc_server_turn(server, 0);
	while (judge->pending_count > 0)
		grpc_server_answered(server, &judge->pending[--judge->pending_count]);
	while (fd >= 0 && recv(fd, rest, sizeof rest, MSG_DONTWAIT) > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct judge judge;
	static struct grpc_server *servers[2];
	static uint16_t ports[2];
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
	struct weir_error error;
	if (judge.policy == NULL) {
		judge.policy = read_policy();
		for (int i = 0; i < 2; i++) {
			static struct check_request *requests[2];
			const struct check_request_options matching = {0};
			require(check_request_new(&matching, &requests[i], &error) == WEIR_OK);
			const struct grpc_options options = {.judge = {.context = &judge, .ask = ask, .policy = policy},
			                                     .request = requests[i],
			                                     .password = i > 0 ? "p" : NULL};
			servers[i] = grpc_server_new(&options);
			require(grpc_server_listen(servers[i], "127.0.0.1", 0, false, NULL, &ports[i], &error) == WEIR_OK);
		}
	}
	if (size < 2)
		return 0;
	int which = (data[0] & 2) != 0;
	struct grpc_server *server = servers[which];
	size_t step = data[0] >> 3 > 0 ? data[0] >> 3 : size;
	judge.later = (data[0] & 1) != 0;
	const struct grpc_figures *figures = grpc_server_figures(server);
	uint64_t accepted = weir_counter_read(&figures->accepted) + 1;
	int fd = connect_to(ports[which]);
	step = size / step > PIECES_MAX ? size : step;
	if ((data[0] & 4) != 0)
		require(send(fd, preface, sizeof preface, MSG_NOSIGNAL) == (ssize_t)sizeof preface);
	for (size_t at = 1; at < size; at += step) {
		if (send(fd, data + at, size - at < step ? size - at : step, MSG_NOSIGNAL) < 0)
			break; /* it was ended */
		turn(server, &judge, fd);
	}
	close(fd);
	for (int turns = 0;
	     weir_counter_read(&figures->accepted) < accepted || weir_counter_read(&figures->connections) > 0; turns++) {
		require(turns < TURNS_MAX);
		grpc_server_turn(server, 10);
		turn(server, &judge, -1);
	}
	require(weir_counter_read(&figures->in_flight) == 0 && weir_counter_read(&figures->buffered_bytes) == 0);
	return 0;
}

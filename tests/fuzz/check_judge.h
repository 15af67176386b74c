/* SPDX-License-Identifier: Apache-2.0 */
/* A judge for the surfaces of checks, whose answers follow from the key, at once or later; and a client's socket. */
#ifndef WEIR_TESTS_FUZZ_CHECK_JUDGE_H
#define WEIR_TESTS_FUZZ_CHECK_JUDGE_H

#include "common/json/json.h"
#include "common/policy/policy.h"
#include "limiter/check/check.h"
#include "tests/fuzz/require.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { PENDING_MAX = 4096, PIECES_MAX = 64, TURNS_MAX = 200 };

static const char zones_text[] =
	"[{\"name\":\"z\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"gcra\",\"rate\":30,\"window\":\"1m\",\"burst\":15}]},"
	"{\"name\":\"n\",\"key\":[{\"field\":\"ip\",\"prefix6\":64},\"path\"],"
	"\"exempt\":[\"192.0.2.9\",\"2001:db8::/32\",\"a|*\",{\"path\":[\"/health/*\"]},{\"path\":{\"not\":[\"/*\"]},\"ip\":[\"::1\"]}],"
	"\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":10,\"window\":\"1m\"}]}]";

struct judge {
	struct weir_policy *policy;
	bool later;
	struct check_answer pending[PENDING_MAX];
	uint32_t pending_count;
};

static void ask(void *context, const struct check_ask *asks, uint32_t count, struct check_answer *answers)
{
	struct judge *judge = context;
	require(count > 0 && count <= CHECK_GROUP_MAX);
	for (uint32_t i = 0; i < count; i++) {
		const struct check_ask *one = &asks[i];
		require(one->key.length <= WEIR_KEY_MAX_BYTES && one->cost >= 0);
		const struct weir_zone *zone = weir_policy_zone_named(judge->policy, one->zone);
		require(zone != NULL && (!one->exempt || weir_zone_exempts(zone) || one->kind == CHECK_SETTLES));
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
	int status;
	require(fd >= 0);
	do /* libFuzzer's alarm may interrupt it; it goes on meanwhile */
		status = connect(fd, (struct sockaddr *)&address, sizeof address);
	while (status != 0 && (errno == EINTR || errno == EALREADY));
	require(status == 0 || errno == EISCONN);
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	return fd;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* All of it in one thread: what the server has to do is done while the client waits. */
#include "tests/support/asking.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "common/base/clock.h"
#include "common/json/json.h"
#include "common/policy/policy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { TURNS_MAX = 500, TURN_MS = 10 };

static void ask(void *context, const struct check_ask *asks, uint32_t count, struct check_answer *answers)
{
	struct asking *asking = context;
	for (uint32_t i = 0; i < count && asking->unavailable; i++)
		answers[i] = (struct check_answer){
			.outcome = CHECK_UNAVAILABLE, .why = CHECK_WHY_MOVING, .retry_after_ms = -1, .ticket = asks[i].ticket};
	for (uint32_t i = 0; i < count && !asking->unavailable; i++)
		answers[i] = (struct check_answer){.outcome = CHECK_PASSED,
		                                   .limit = 10,
		                                   .window_ms = 60000,
		                                   .remaining = 9,
		                                   .retry_after_ms = -1,
		                                   .reset_after_ms = 6000,
		                                   .ticket = asks[i].ticket};
	asking->asked += count;
}

static const struct weir_policy *policy(void *context)
{
	const struct asking *asking = context;
	return asking->policy;
}

struct link_options asking_options(struct asking *asking, enum weir_on_unavailable on_unavailable)
{
	*asking = (struct asking){.fd = -1};
	return (struct link_options){.judge = {.context = asking, .ask = ask, .policy = policy},
	                             .on_unavailable = on_unavailable};
}

void asking_begin(struct asking *asking, struct link_server *server)
{
	struct weir_error error;
	asking->server = server;
	assert_int_equal(link_server_listen(server, "127.0.0.1", 0, false, NULL, &asking->port, &error), WEIR_OK);
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(asking->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	asking->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(asking->fd >= 0);
	assert_int_equal(connect(asking->fd, (struct sockaddr *)&address, sizeof address), 0);
	for (int turns = 0; weir_counter_read(&server->figures.accepted) == 0; turns++) {
		assert_true(turns < TURNS_MAX);
		link_server_turn(server, TURN_MS);
	}
}

void asking_use(struct asking *asking, const char *zones)
{
	struct weir_json_document *document;
	struct weir_error error;
	assert_null(asking->policy);
	assert_int_equal(weir_json_parse("zones", zones, strlen(zones), &document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	assert_int_equal(weir_policy_parse(&root, NULL, &asking->policy, &error), WEIR_OK);
	weir_json_document_free(document);
	asking->policy->version = 1;
}

const char *asking_send(struct asking *asking, const char *bytes)
{
	size_t length = 0;
	bool quiet = false;
	assert_int_equal(send(asking->fd, bytes, strlen(bytes), MSG_NOSIGNAL), strlen(bytes));
	for (int turns = 0; !quiet; turns++) { /* until nothing more has come in a turn */
		assert_true(turns < TURNS_MAX);
		link_server_turn(asking->server, length > 0 ? 0 : TURN_MS);
		ssize_t got = recv(asking->fd, asking->reply + length, sizeof asking->reply - 1 - length, MSG_DONTWAIT);
		quiet = got == 0 || (got < 0 && length > 0);
		length += got > 0 ? (size_t)got : 0;
	}
	asking->reply[length] = '\0';
	return asking->reply;
}

void asking_wait(struct asking *asking, int ms)
{
	int64_t end_ms = weir_monotonic_ms() + ms;
	for (int64_t now_ms; (now_ms = weir_monotonic_ms()) <= end_ms;)
		link_server_turn(asking->server, (int)(end_ms - now_ms) + 1);
	link_server_turn(asking->server, 0);
}

bool asking_is_open(struct asking *asking)
{
	char byte;
	link_server_look(asking->server);
	link_server_turn(asking->server, 0);
	return recv(asking->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) != 0;
}

void asking_end(struct asking *asking)
{
	close(asking->fd);
	link_server_free(asking->server);
	weir_policy_free(asking->policy);
}

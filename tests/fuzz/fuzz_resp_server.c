/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a client of the surface of checks sends, at once or in pieces, answered at once or later: it answers or
 * ends the connection, and keeps nothing for a client that has gone.
 *
 * The first byte says how: 1, answers come later; 2, users must log in; the rest, by how many bytes at a time.
 */
#include "limiter/check/resp/resp_server.h"

#include "tests/fuzz/check_judge.h"

#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void turn(struct link_server *server, struct judge *judge, int fd)
{
	char rest[1 << 16];
	link_server_turn(server, 0);
	while (judge->pending_count > 0)
		link_server_answered(server, &judge->pending[--judge->pending_count]);
	while (fd >= 0 && recv(fd, rest, sizeof rest, MSG_DONTWAIT) > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct judge judge;
	static struct link_server *servers[2];
	static uint16_t ports[2];
	static const struct resp_user user = {.name = "default", .password = "p"};
	struct weir_error error;
	if (judge.policy == NULL) {
		judge.policy = read_policy();
		const struct check_request_options matching = {.log = NULL};
		for (int i = 0; i < 2; i++) {
			const struct link_options common = {.judge = {.context = &judge, .ask = ask, .policy = policy}};
			struct resp_options options = {.users = &user, .user_count = (uint32_t)i};
			require(check_request_new(&matching, &options.exempt, &error) == WEIR_OK);
			servers[i] = resp_server_new(&common, &options);
			require(link_server_listen(servers[i], "127.0.0.1", 0, false, NULL, &ports[i], &error) == WEIR_OK);
		}
	}
	if (size < 2)
		return 0;
	int which = (data[0] & 2) != 0;
	struct link_server *server = servers[which];
	size_t step = data[0] >> 2 > 0 ? data[0] >> 2 : size;
	judge.later = (data[0] & 1) != 0;
	const struct link_figures *figures = &server->figures;
	uint64_t accepted = weir_counter_read(&figures->accepted) + 1;
	int fd = connect_to(ports[which]);
	step = size / step > PIECES_MAX ? size : step;
	for (size_t at = 1; at < size; at += step) {
		if (send(fd, data + at, size - at < step ? size - at : step, MSG_NOSIGNAL) < 0)
			break; /* it was ended */
		turn(server, &judge, fd);
	}
	close(fd);
	for (int turns = 0;
	     weir_counter_read(&figures->accepted) < accepted || weir_counter_read(&figures->connections) > 0; turns++) {
		require(turns < TURNS_MAX);
		link_server_turn(server, 10);
		turn(server, &judge, -1);
	}
	require(weir_counter_read(&figures->in_flight) == 0 && weir_counter_read(&figures->buffered_bytes) == 0);
	return 0;
}

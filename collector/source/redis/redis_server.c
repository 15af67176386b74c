/* SPDX-License-Identifier: Apache-2.0 */
/* hiredis connects and logs in; from then on the socket is read here, as hiredis would keep whole answers in memory. */
#include "collector/source/redis/redis_server.h"

#include "common/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

enum { CONNECT_MS = 3000, STEP_MS = 200 };

void redis_server_init(struct redis_server *server, struct queue_source *queue, uint32_t text_max)
{
	*server = (struct redis_server){.queue = queue, .question = weir_question_new()};
	weir_resp_init(&server->resp, text_max);
}

void redis_server_deinit(struct redis_server *server)
{
	redis_server_close(server);
	weir_question_free(server->question);
	weir_resp_deinit(&server->resp);
	weir_text_deinit(&server->out);
}

void redis_server_close(struct redis_server *server)
{
	weir_redis_close(server->link);
	server->link = NULL;
}

/* A replica lags behind its master, and takes no low-water mark: whoever asks one takes the next address. */
static enum weir_status check_role(struct redis_server *server, struct weir_error *error)
{
	struct weir_span words[] = {weir_span_of("ROLE")};
	struct weir_redis_answer *answer;
	weir_redis_send(server->link, words, 1);
	enum weir_status status = weir_redis_receive(server->link, &answer, error);
	if (status == WEIR_INVALID)
		return WEIR_OK; /* not allowed to ask: what it refuses later says the rest */
	if (status != WEIR_OK)
		return status;
	bool replica = weir_redis_answer_count(answer) > 0 &&
	               weir_span_equal(weir_redis_answer_text(weir_redis_answer_element(answer, 0)), weir_span_of("slave"));
	weir_redis_answer_free(answer);
	return replica ? weir_fail(error, WEIR_IO, "%s is a replica: give its master's address in \"url\"", server->name)
	               : WEIR_OK;
}

enum weir_status redis_server_open(struct redis_server *server, const struct weir_redis_url *url,
                                   struct weir_error *error)
{
	redis_server_close(server);
	weir_resp_reset(&server->resp);
	weir_text_clear(&server->out);
	snprintf(server->name, sizeof server->name, "Redis at %.120s:%u", url->host, url->port);
	enum weir_status status = weir_redis_open(url, server->question, CONNECT_MS, &server->link, error);
	if (status == WEIR_OK)
		status = check_role(server, error);
	if (status != WEIR_OK)
		redis_server_close(server);
	return status;
}

void redis_server_command(struct redis_server *server, size_t words)
{
	weir_text_printf(&server->out, "*%zu\r\n", words);
}

void redis_server_word(struct redis_server *server, struct weir_span word)
{
	weir_text_printf(&server->out, "$%" PRIu32 "\r\n", word.length);
	weir_text_append(&server->out, word.at, word.length);
	weir_text_append(&server->out, "\r\n", 2);
}

void redis_server_text(struct redis_server *server, const char *word)
{
	redis_server_word(server, weir_span_of(word));
}

void redis_server_number(struct redis_server *server, uint64_t number)
{
	char digits[24];
	snprintf(digits, sizeof digits, "%" PRIu64, number);
	redis_server_text(server, digits);
}

/* Waits for the socket, and sends and takes what goes. */
static enum weir_status exchange(struct redis_server *server, struct weir_error *error)
{
	int fd = weir_redis_fd(server->link);
	size_t room;
	struct pollfd at = {.fd = fd, .events = (short)(POLLIN | (server->out.length > 0 ? POLLOUT : 0))};
	int ready = poll(&at, 1, STEP_MS);
	if (ready > 0 && server->out.length > 0) {
		ssize_t sent = send(fd, server->out.at, server->out.length, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			return weir_fail(error, WEIR_IO, "%s: %s", server->name, weir_errno_words(errno));
		if (sent > 0) {
			server->out.length -= (size_t)sent;
			memmove(server->out.at, server->out.at + sent, server->out.length);
		}
	}
	char *into = weir_resp_room(&server->resp, &room);
	ssize_t got = ready > 0 ? recv(fd, into, room, MSG_DONTWAIT) : -1;
	if (got > 0)
		weir_resp_filled(&server->resp, (size_t)got);
	if (got == 0)
		return weir_fail(error, WEIR_IO, "%s has closed the connection", server->name);
	if (ready > 0 && got < 0 && errno != EAGAIN && errno != EINTR)
		return weir_fail(error, WEIR_IO, "%s: %s", server->name, weir_errno_words(errno));
	return got > 0 ? WEIR_OK : WEIR_AGAIN;
}

enum weir_status redis_server_next(struct redis_server *server, struct weir_resp_token *token, struct weir_error *error)
{
	int64_t end_ms = 0;
	enum weir_status status;
	if (server->link == NULL)
		return weir_fail(error, WEIR_IO, "%s is not connected", server->name);
	while ((status = weir_resp_next(&server->resp, token, error)) == WEIR_AGAIN) {
		enum weir_status moved = exchange(server, error);
		if (moved == WEIR_IO)
			return WEIR_IO;
		if (moved == WEIR_OK) {
			end_ms = 0;
			continue;
		}
		int64_t now_ms = weir_monotonic_ms();
		queue_flush(server->queue);
		if (queue_ending(server->queue) && !server->finishing)
			return WEIR_END;
		if (end_ms == 0)
			end_ms = now_ms + server->patience_ms;
		if (now_ms >= end_ms)
			return weir_fail(error, WEIR_IO, "%s gives no answer", server->name);
	}
	return status == WEIR_INVALID ? weir_fail(error, WEIR_IO, "%s: what answers is no Redis", server->name) : status;
}

enum weir_status redis_server_skip(struct redis_server *server, const struct weir_resp_token *token,
                                   struct weir_error *error)
{
	struct weir_resp_token inner;
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && token->kind == WEIR_RESP_LIST && token->number > 0 && server->resp.depth > token->depth)
		status = redis_server_next(server, &inner, error);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection's asks are answered in their order: packets stand in a queue, the first of which is being answered.
 * Connecting waits, and so does who asks meanwhile, LINK_CONNECT_MS at most; it is done ahead, as soon as a place has a
 * partition; for durable asks once there was one, as many policies have no durable zone.
 */
#include "limiter/forward/internal.h"

#include "common/base/clock.h"
#include "common/base/wake.h"
#include "common/resp/resp_writer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	LINK_CONNECT_MS = 500,
	LINK_LOOK_MS = 100,
	BACKOFF_FIRST_MS = 100,
	BACKOFF_MOST_MS = 1000,
	TEXT_KEPT_BYTES = 1024,
	ANSWER_NUMBERS = sizeof((struct peer_link *)0)->numbers / sizeof(int64_t),
};

/* ---- packets ---- */

static void give_back(struct peer_link *link, struct mail_packet *packet)
{
	packet->back = true;
	mail_send(link->options->mail, packet->from, packet);
}

static void answer(struct mail_packet *packet, uint32_t index, const struct check_answer *with)
{
	packet->answers[index] = *with;
	packet->answers[index].ticket = packet->asks[index].ticket;
}

/* Tells that nobody answers a packet's asks from one on, and gives it back. */
static void give_up(struct peer_link *link, struct mail_packet *packet, uint32_t from, enum check_why why)
{
	const struct check_answer unavailable = {.outcome = CHECK_UNAVAILABLE, .retry_after_ms = -1, .why = why};
	weir_counter_add(&link->figures.unanswered, packet->count - from);
	for (uint32_t i = from; i < packet->count; i++) {
		answer(packet, i, &unavailable);
		packet->unanswered |= UINT64_C(1) << i;
	}
	give_back(link, packet);
}

static struct mail_packet *take_first(struct peer_link *link)
{
	struct mail_packet *packet = link->first;
	link->first = packet->next;
	if (link->first == NULL)
		link->end = &link->first;
	link->answered = 0;
	return packet;
}

/* ---- the connection ---- */

static void disconnect(struct peer_link *link, enum check_why why)
{
	while (link->first != NULL) {
		uint32_t from = link->answered;
		give_up(link, take_first(link), from, why);
	}
	weir_redis_close(link->connection);
	link->connection = NULL;
	weir_counter_set(&link->figures.connected, 0);
	weir_text_clear(&link->out);
	link->sent = 0;
	weir_resp_reset(&link->in);
}

static void fail(struct peer_link *link, enum check_why why, const char *words)
{
	struct owners_place place;
	(void)owners_place(link->options->owners, link->place, &place);
	disconnect(link, why);
	weir_counter_add(&link->figures.failures, 1);
	link->backoff_ms = link->backoff_ms == 0 ? BACKOFF_FIRST_MS : 2 * link->backoff_ms;
	if (link->backoff_ms > BACKOFF_MOST_MS)
		link->backoff_ms = BACKOFF_MOST_MS;
	link->retry_ms = weir_monotonic_ms() + link->backoff_ms;
	owners_doubt(link->options->owners);
	weir_fault_raise(
		&link->fault, link->options->log, "checks",
		"the limiter at %s port %u does not answer checks of its partitions: %s. They are unavailable here "
		"until it does, or until another has them. Retrying",
		place.host, place.port, words);
}

/* @return whether there is a connection */
static bool connect_to(struct peer_link *link)
{
	const struct forward_options *options = link->options;
	struct owners_place place;
	struct weir_error error;
	if (weir_monotonic_ms() < link->retry_ms || !owners_place(options->owners, link->place, &place))
		return false;
	const struct weir_redis_url url = {.host = place.host,
	                                   .port = place.port,
	                                   .password = (char *)(uintptr_t)options->password,
	                                   .tls = options->tls,
	                                   .ca = options->ca,
	                                   .certificate = options->certificate,
	                                   .key = options->key};
	link->version = place.version;
	if (weir_redis_open(&url, link->question, LINK_CONNECT_MS, &link->connection, &error) != WEIR_OK) {
		link->connection = NULL;
		fail(link, CHECK_WHY_MOVING, error.text);
		return false;
	}
	weir_counter_add(&link->figures.connects, 1);
	weir_counter_set(&link->figures.connected, 1);
	return true;
}

static bool is_of_now(struct peer_link *link)
{
	struct owners_place place;
	return owners_place(link->options->owners, link->place, &place) && place.version == link->version;
}

/* ---- out ---- */

static void write_asks(struct peer_link *link, const struct mail_packet *packet)
{
	for (uint32_t i = 0; i < packet->count; i++) {
		const struct check_ask *ask = &packet->asks[i];
		int64_t numbers[] = {ask->cost,
		                     (ask->peek ? CHECK_FORWARD_PEEK : 0) + (ask->durable ? CHECK_FORWARD_DURABLE : 0) +
		                         (ask->kind == CHECK_RESERVES ? CHECK_FORWARD_RESERVES : 0) +
		                         (ask->kind == CHECK_SETTLES ? CHECK_FORWARD_SETTLES : 0) +
		                         (ask->tries ? CHECK_FORWARD_TRIES : 0),
		                     ask->kind == CHECK_RESERVES ? ask->ttl_ms : 0, 0};
		struct weir_text *out = &link->out;
		if (ask->kind == CHECK_SETTLES)
			memcpy(&numbers[2], ask->reservation, sizeof ask->reservation);
		weir_resp_array(out, 3 + sizeof numbers / sizeof *numbers);
		weir_resp_string(out, "WEIR.FORWARD");
		weir_resp_bulk(out, ask->key);
		weir_resp_bulk(out, ask->zone);
		for (size_t j = 0; j < sizeof numbers / sizeof *numbers; j++) {
			char word[24];
			snprintf(word, sizeof word, "%lld", (long long)numbers[j]);
			weir_resp_string(out, word);
		}
	}
	weir_counter_add(&link->figures.asks, packet->count);
}

static void take_mail(struct peer_link *link, bool connects)
{
	struct mail_packet *packet = mail_take(link->options->mail, link->inbox);
	link->used |= packet != NULL;
	/* What is under way there is told so: whether it was counted is not known. */
	if (packet != NULL && link->connection != NULL && !is_of_now(link))
		disconnect(link, CHECK_WHY_LATE);
	while (packet != NULL) {
		struct mail_packet *next = packet->next;
		packet->next = NULL;
		if (link->connection == NULL && !(connects && connect_to(link))) {
			give_up(link, packet, 0, CHECK_WHY_MOVING);
		} else {
			write_asks(link, packet);
			*link->end = packet;
			link->end = &packet->next;
		}
		packet = next;
	}
}

static void send_out(struct peer_link *link)
{
	while (link->connection != NULL && link->sent < link->out.length) {
		ssize_t sent = send(weir_redis_fd(link->connection), link->out.at + link->sent, link->out.length - link->sent,
		                    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent > 0)
			link->sent += (size_t)sent;
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
			return;
		else if (errno != EINTR)
			fail(link, CHECK_WHY_LATE, weir_errno_words(errno));
	}
	if (link->sent == link->out.length) {
		weir_text_clear(&link->out);
		link->sent = 0;
	}
}

/* ---- in ---- */

/* One ask is answered. */
static void settle(struct peer_link *link, const struct check_answer *with)
{
	struct mail_packet *packet = link->first;
	answer(packet, link->answered++, with);
	if (with->outcome == CHECK_UNAVAILABLE && (with->why == CHECK_WHY_NOT_OWNER || with->why == CHECK_WHY_MOVING))
		owners_doubt(link->options->owners);
	if (link->answered < packet->count)
		return;
	give_back(link, take_first(link));
}

/* @return false: these are no answer */
static bool take_numbers(struct peer_link *link)
{
	const int64_t *numbers = link->numbers;
	bool good = numbers[0] >= 0 && numbers[0] < CHECK_LATER && numbers[5] >= 0 && numbers[5] < CHECK_WHY_COUNT;
	struct check_answer with = {.outcome = (enum check_outcome)numbers[0],
	                            .limit = numbers[1],
	                            .remaining = numbers[2],
	                            .retry_after_ms = numbers[3],
	                            .reset_after_ms = numbers[4],
	                            .why = (enum check_why)numbers[5],
	                            .reserved = (numbers[6] | numbers[7]) != 0,
	                            .window_ms = numbers[8]};
	memcpy(with.reservation, &numbers[6], sizeof with.reservation);
	if (good)
		settle(link, &with);
	return good;
}

/* @return false: it is no answer to WEIR.FORWARD */
static bool take_token(struct peer_link *link, const struct weir_resp_token *token)
{
	if (link->first == NULL)
		return false;
	if (token->depth == 0 && token->kind == WEIR_RESP_LIST)
		return token->number == ANSWER_NUMBERS;
	if (token->depth == 0 && token->kind == WEIR_RESP_ERROR) { /* an older weir, or other settings */
		link->first->unanswered |= UINT64_C(1) << link->answered;
		weir_counter_add(&link->figures.unanswered, 1);
		settle(link,
		       &(struct check_answer){.outcome = CHECK_UNAVAILABLE, .retry_after_ms = -1, .why = CHECK_WHY_NOT_OWNER});
		return true;
	}
	if (token->depth != 1 || token->kind != WEIR_RESP_NUMBER)
		return false;
	link->numbers[token->index] = token->number;
	return token->index + 1 < ANSWER_NUMBERS || take_numbers(link);
}

/* @return false: the connection is of no use any more, and that is told */
static bool read_answers(struct peer_link *link)
{
	struct weir_resp_token token;
	struct weir_error error;
	enum weir_status status;
	while ((status = weir_resp_next(&link->in, &token, &error)) == WEIR_OK)
		if (!take_token(link, &token)) {
			fail(link, CHECK_WHY_LATE, "what came is no answer to WEIR.FORWARD");
			return false;
		}
	if (status == WEIR_AGAIN)
		return true;
	fail(link, CHECK_WHY_LATE, error.text);
	return false;
}

static void read_in(struct peer_link *link)
{
	while (link->connection != NULL) {
		size_t room;
		char *at = weir_resp_room(&link->in, &room);
		ssize_t came = recv(weir_redis_fd(link->connection), at, room, MSG_DONTWAIT);
		if (came > 0) {
			weir_resp_filled(&link->in, (size_t)came);
			if (read_answers(link) && link->backoff_ms > 0) {
				link->backoff_ms = 0;
				weir_fault_over(&link->fault, link->options->log, "checks", "the other limiter answers checks again");
			}
		} else if (came == 0) {
			fail(link, CHECK_WHY_LATE, "it has ended the connection");
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			return;
		} else if (errno != EINTR) {
			fail(link, CHECK_WHY_LATE, weir_errno_words(errno));
		}
	}
}

/* ---- the thread ---- */

static bool is_needed(const struct peer_link *link)
{
	const struct owners *owners = link->options->owners;
	if (link->durable && !link->used)
		return false;
	for (uint32_t i = 0; i < owners_partitions(owners); i++)
		if (owners_of(owners, i) == link->place)
			return true;
	return false;
}

/* Connects ahead, ends a connection that nobody needs, and one that does not answer. */
static void look(struct peer_link *link, int64_t now_ms)
{
	if (link->first != NULL && now_ms >= link->first->deadline_ms) {
		fail(link, CHECK_WHY_LATE, "no answer in time");
		return;
	}
	bool needed = is_needed(link);
	if (link->connection == NULL && needed)
		(void)connect_to(link);
	else if (link->connection != NULL && link->first == NULL && (!needed || !is_of_now(link)))
		disconnect(link, CHECK_WHY_MOVING);
}

void *link_serve(void *context)
{
	struct peer_link *link = context;
	int wake = mail_wake(link->options->mail, link->inbox);
	int64_t look_ms = 0;
	link->question = weir_question_new();
	weir_resp_init(&link->in, TEXT_KEPT_BYTES);
	while (!*link->stop) {
		int64_t now_ms = weir_monotonic_ms();
		if (now_ms >= look_ms) {
			look_ms = now_ms + LINK_LOOK_MS;
			look(link, now_ms);
		}
		struct pollfd waits[] = {{.fd = wake, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
		if (link->connection != NULL) {
			waits[1].fd = weir_redis_fd(link->connection);
			waits[1].events = link->sent < link->out.length ? POLLIN | POLLOUT : POLLIN;
		}
		(void)poll(waits, 2, LINK_LOOK_MS);
		if (waits[0].revents != 0)
			weir_wake_clear(wake);
		take_mail(link, true);
		send_out(link);
		if (waits[1].revents != 0)
			read_in(link);
	}
	disconnect(link, CHECK_WHY_MOVING);
	take_mail(link, false);
	weir_text_deinit(&link->out);
	weir_resp_deinit(&link->in);
	weir_question_free(link->question);
	return NULL;
}

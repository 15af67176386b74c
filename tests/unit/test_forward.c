/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links to other limiters, against stand-ins that answer what they are told to: real ones are never silent for as long as
 * a test needs.
 */
#include "limiter/forward/forward.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/resp/resp_command.h"
#include "limiter/check/check.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORKER = 0, PATIENCE_MS = 20000, CONNECTIONS = 4, BUFFER_BYTES = 1 << 16, LONG_MS = 60000 };

/* A limiter: it answers what is not durable, unless it is silent. */
struct stand_in {
	int listener;
	uint16_t port;
	pthread_t thread;
	_Atomic bool stop, silent;
	_Atomic uint32_t asked, durable; /* of which durable */
	int connections[CONNECTIONS];
	char in[CONNECTIONS][BUFFER_BYTES];
	size_t filled[CONNECTIONS];
};

struct scene {
	struct mail *mail;
	struct owners *owners;
	struct forward *forward;
	struct weir_log log;
	struct stand_in limiters[2];
	struct mail_packet packets[4], *came;
};

static void answer(int connection, const char *with)
{
	assert_int_equal(write(connection, with, strlen(with)), strlen(with));
}

static void take_asks(struct stand_in *limiter, int number)
{
	struct weir_resp_command words;
	const char *why;
	char *in = limiter->in[number];
	while (weir_resp_command_read(in, limiter->filled[number], BUFFER_BYTES, &words, &why) == WEIR_OK) {
		bool asks = weir_span_equal(words.words[0], weir_span_of("WEIR.FORWARD"));
		bool durable = asks && (strtol(words.words[4].at, NULL, 10) & CHECK_FORWARD_DURABLE) != 0;
		limiter->asked += asks;
		limiter->durable += durable;
		if (!asks)
			answer(limiter->connections[number], "+OK\r\n"); /* a greeting */
		else if (!durable && !limiter->silent)
			answer(limiter->connections[number],
			       "*9\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1000\r\n:0\r\n:0\r\n:0\r\n:60000\r\n");
		limiter->filled[number] -= words.bytes;
		memmove(in, in + words.bytes, limiter->filled[number]);
	}
}

static void read_asks(struct stand_in *limiter, int number)
{
	size_t *filled = &limiter->filled[number];
	ssize_t came = read(limiter->connections[number], limiter->in[number] + *filled, BUFFER_BYTES - *filled);
	if (came > 0) {
		*filled += (size_t)came;
		take_asks(limiter, number);
		return;
	}
	close(limiter->connections[number]);
	limiter->connections[number] = -1;
	*filled = 0;
}

static void *stand_in(void *context)
{
	struct stand_in *limiter = context;
	while (!limiter->stop) {
		struct pollfd waits[CONNECTIONS + 1] = {{.fd = limiter->listener, .events = POLLIN}};
		for (int i = 0; i < CONNECTIONS; i++)
			waits[i + 1] = (struct pollfd){.fd = limiter->connections[i], .events = POLLIN};
		(void)poll(waits, CONNECTIONS + 1, 10);
		for (int i = 0; i < CONNECTIONS; i++)
			if (waits[i + 1].revents != 0)
				read_asks(limiter, i);
		for (int i = 0; i < CONNECTIONS && waits[0].revents != 0; i++)
			if (limiter->connections[i] < 0) {
				limiter->connections[i] = accept(limiter->listener, NULL, NULL);
				break;
			}
	}
	return NULL;
}

static void start(struct stand_in *limiter)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	for (int i = 0; i < CONNECTIONS; i++)
		limiter->connections[i] = -1;
	limiter->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(limiter->listener, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(limiter->listener, CONNECTIONS), 0);
	assert_int_equal(getsockname(limiter->listener, (struct sockaddr *)&address, &length), 0);
	limiter->port = ntohs(address.sin_port);
	assert_int_equal(pthread_create(&limiter->thread, NULL, stand_in, limiter), 0);
}

static void end(struct stand_in *limiter)
{
	limiter->stop = true;
	pthread_join(limiter->thread, NULL);
	for (int i = 0; i < CONNECTIONS; i++)
		if (limiter->connections[i] >= 0)
			close(limiter->connections[i]);
	close(limiter->listener);
}

static int set_up(void **state)
{
	struct scene *scene = weir_alloc(1, sizeof *scene);
	for (int i = 0; i < 2; i++)
		start(&scene->limiters[i]);
	scene->log = (struct weir_log){.level = WEIR_LOG_ERROR};
	scene->mail = mail_new(1 + OWNERS_INBOXES);
	scene->owners = owners_new(1, "127.0.0.1", 1);
	const struct forward_options options = {
		.owners = scene->owners, .mail = scene->mail, .first_inbox = 1, .log = &scene->log};
	scene->forward = forward_new(&options);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;
	forward_free(scene->forward);
	(void)mail_take(scene->mail, WORKER); /* packets are the scene's */
	mail_free(scene->mail);
	owners_free(scene->owners);
	for (int i = 0; i < 2; i++)
		end(&scene->limiters[i]);
	free(scene);
	return 0;
}

/* The store says who has the partition. @param limiter  NULL: nobody @return the place */
static uint32_t give(struct scene *scene, const struct stand_in *limiter, unsigned epoch)
{
	char row[64];
	snprintf(row, sizeof row, "%u 127.0.0.1:%u", epoch, limiter != NULL ? limiter->port : 0);
	owners_read_begin(scene->owners, weir_monotonic_ms());
	if (limiter != NULL)
		owners_learn(scene->owners, 0, epoch, weir_span_of(row));
	owners_read_end(scene->owners);
	return owners_of(scene->owners, 0);
}

static void ask(struct scene *scene, int number, uint32_t place, bool durable)
{
	struct mail_packet *packet = &scene->packets[number];
	const struct check_ask asked = {
		.zone = weir_span_of("site"), .key = weir_span_of("ann"), .cost = 1, .durable = durable};
	*packet = (struct mail_packet){.from = WORKER, .deadline_ms = weir_monotonic_ms() + LONG_MS};
	assert_true(mail_packet_add(packet, &asked));
	mail_send(scene->mail, 1 + owners_inbox(place, durable), packet);
}

/* The next packet that comes back. */
static int await(struct scene *scene)
{
	for (int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS; scene->came == NULL; (void)poll(NULL, 0, 1)) {
		assert_true(weir_monotonic_ms() < end_ms);
		scene->came = mail_take(scene->mail, WORKER);
	}
	struct mail_packet *packet = scene->came;
	scene->came = packet->next;
	return (int)(packet - scene->packets);
}

static void await_asked(const struct stand_in *limiter, uint32_t count)
{
	for (int64_t end_ms = weir_monotonic_ms() + PATIENCE_MS; limiter->asked < count; (void)poll(NULL, 0, 1))
		assert_true(weir_monotonic_ms() < end_ms);
}

static void what_waits_for_the_log_holds_up_nothing_else(void **state)
{
	struct scene *scene = *state;
	uint32_t place = give(scene, &scene->limiters[0], 1);
	forward_reach(scene->forward, place);
	ask(scene, 0, place, true);
	await_asked(&scene->limiters[0], 1);
	assert_int_equal(scene->limiters[0].durable, 1);
	for (int turn = 0; turn < 3; turn++) {
		ask(scene, 1, place, false);
		assert_int_equal(await(scene), 1);
		assert_int_equal(scene->packets[1].answers[0].outcome, CHECK_PASSED);
		assert_int_equal(scene->packets[1].answers[0].remaining, 4);
	}
	assert_int_equal(weir_counter_read(&forward_figures(scene->forward, owners_inbox(place, false))->failures), 0);
}

/* Who had the place's number before lives on, is asked nothing more, and what is under way there holds up nothing. */
static void who_has_a_number_now_is_asked(void **state)
{
	struct scene *scene = *state;
	uint32_t place = give(scene, &scene->limiters[0], 1);
	scene->limiters[0].silent = true;
	forward_reach(scene->forward, place);
	ask(scene, 0, place, false);
	await_asked(&scene->limiters[0], 1);
	assert_int_equal(give(scene, NULL, 1), OWNERS_NONE);
	assert_int_equal(give(scene, &scene->limiters[1], 2), place);
	ask(scene, 1, place, false);
	assert_int_equal(await(scene), 0);
	assert_int_equal(scene->packets[0].answers[0].outcome, CHECK_UNAVAILABLE);
	assert_int_equal(scene->packets[0].answers[0].why, CHECK_WHY_LATE); /* it may have been counted */
	assert_int_equal(await(scene), 1);
	assert_int_equal(scene->packets[1].answers[0].outcome, CHECK_PASSED);
	assert_int_equal(scene->limiters[0].asked, 1);
	assert_int_equal(scene->limiters[1].asked, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_waits_for_the_log_holds_up_nothing_else, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_has_a_number_now_is_asked, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

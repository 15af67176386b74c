/* SPDX-License-Identifier: Apache-2.0 */
/* Packets between threads: none is lost, each comes back to its own with its answers, and a full one says so. */
#include "common/base/alloc.h"
#include "common/base/wake.h"
#include "limiter/worker/mail.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 3, PACKETS = 3000, AWAY_MOST = 20, LIMIT_MS = 20000 };

static void await(int wake)
{
	struct pollfd at = {.fd = wake, .events = POLLIN};
	if (poll(&at, 1, LIMIT_MS) != 1)
		abort(); /* a wake-up was lost */
	weir_wake_clear(wake);
}

struct party {
	struct mail *mail;
	pthread_t thread;
	uint32_t number;
	uint32_t back;          /* packets that came back */
	_Atomic bool *all_back; /* by party: it needs the others no more */
};

static void take(struct party *party, struct mail_packet *packet)
{
	if (packet->from == party->number) {
		assert_true(packet->back);
		assert_int_equal(packet->answers[0].remaining, (int64_t)packet->asks[0].ticket * 2);
		party->back++;
		free(packet);
		return;
	}
	packet->answers[0] = (struct check_answer){.remaining = (int64_t)packet->asks[0].ticket * 2};
	packet->back = true;
	mail_send(party->mail, packet->from, packet);
}

static bool all_are_back(const struct party *party)
{
	for (int i = 0; i < THREADS; i++)
		if (!party->all_back[i])
			return false;
	return true;
}

/* Sends packets to the others by turns, and answers theirs; waits by the eventfd alone. */
static void *correspond(void *context)
{
	struct party *party = context;
	uint32_t sent = 0;
	while (!all_are_back(party)) {
		for (; sent < PACKETS && sent - party->back < AWAY_MOST; sent++) {
			struct mail_packet *packet = weir_alloc(1, sizeof *packet);
			struct check_ask ask = {.zone = weir_span_of("site"), .key = weir_span_of("ann"), .ticket = sent};
			packet->from = party->number;
			assert_true(mail_packet_add(packet, &ask));
			mail_send(party->mail, (party->number + 1 + sent % (THREADS - 1)) % THREADS, packet);
		}
		struct mail_packet *packet = mail_take(party->mail, party->number);
		if (packet == NULL && !all_are_back(party))
			await(mail_wake(party->mail, party->number));
		while (packet != NULL) {
			struct mail_packet *next = packet->next;
			take(party, packet);
			packet = next;
		}
		if (party->back == PACKETS && !party->all_back[party->number]) {
			party->all_back[party->number] = true;
			for (uint32_t i = 0; i < THREADS; i++)
				weir_wake_up(mail_wake(party->mail, i));
		}
	}
	return NULL;
}

static void every_packet_comes_back(void **state)
{
	struct party parties[THREADS];
	_Atomic bool all_back[THREADS] = {false};
	struct mail *mail = mail_new(THREADS);
	(void)state;
	for (uint32_t i = 0; i < THREADS; i++) {
		parties[i] = (struct party){.mail = mail, .number = i, .all_back = all_back};
		assert_int_equal(pthread_create(&parties[i].thread, NULL, correspond, &parties[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(parties[i].thread, NULL);
		assert_int_equal(parties[i].back, PACKETS);
	}
	mail_free(mail);
}

static void a_packet_has_bounds(void **state)
{
	struct mail_packet *packet = weir_alloc(1, sizeof *packet);
	static char long_key[MAIL_PACKET_BYTES];
	memset(long_key, 'k', sizeof long_key);
	struct check_ask small = {.zone = weir_span_of("site"), .key = weir_span_of("ann"), .cost = 3, .ticket = 7};
	struct check_ask large = small;
	(void)state;
	large.key = (struct weir_span){long_key, sizeof long_key};
	assert_false(mail_packet_add(packet, &large));
	assert_int_equal(packet->count, 0);
	large.key.length = MAIL_PACKET_BYTES - 7 * CHECK_GROUP_MAX;
	assert_true(mail_packet_add(packet, &large));
	for (uint32_t i = 1; i < CHECK_GROUP_MAX; i++)
		assert_true(mail_packet_add(packet, &small));
	assert_false(mail_packet_add(packet, &small));
	assert_int_equal(packet->count, CHECK_GROUP_MAX);
	const struct check_ask *last = &packet->asks[CHECK_GROUP_MAX - 1];
	assert_memory_equal(last->zone.at, "site", 4);
	assert_memory_equal(last->key.at, "ann", 3);
	assert_ptr_not_equal(last->key.at, small.key.at);
	assert_int_equal(last->ticket, 7);
	free(packet);
}

/* What nobody takes any more is freed with the inboxes: the sanitizers would tell. */
static void what_is_left_is_freed(void **state)
{
	struct mail *mail = mail_new(1);
	(void)state;
	mail_send(mail, 0, weir_alloc(1, sizeof(struct mail_packet)));
	mail_send(mail, 0, weir_alloc(1, sizeof(struct mail_packet)));
	mail_free(mail);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packet_comes_back),
		cmocka_unit_test(a_packet_has_bounds),
		cmocka_unit_test(what_is_left_is_freed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

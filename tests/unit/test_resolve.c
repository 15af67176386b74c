/* SPDX-License-Identifier: Apache-2.0 */
/* Names of hosts: a resolver that waits holds nobody up, is asked once, and is listened to when it answers at last. */
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static sem_t gate;
static _Atomic int asked;

/* "slow.*" waits at the gate, and then has the address 192.0.2.9; "none" does not exist; others are the system's to know. */
static int give(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
	bool named = (hints->ai_flags & AI_NUMERICHOST) == 0;
	if (named)
		asked++;
	if (named && strcmp(host, "none") == 0)
		return EAI_NONAME;
	if (!named || strncmp(host, "slow", 4) != 0)
		return getaddrinfo(host, service, hints, list);
	sem_wait(&gate);
	return getaddrinfo("192.0.2.9", service, hints, list);
}

#define getaddrinfo(host, service, hints, list) give(host, service, hints, list)
#include "common/redis/resolve.c"
#undef getaddrinfo

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void addresses_are_their_own(void **state)
{
	static const char *const addresses[] = {"192.0.2.1", "2001:db8::1", "127.0.0.1", "::1"};
	struct weir_resolved found;
	struct weir_error error;
	(void)state;
	asked = 0;
	for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
		assert_int_equal(weir_resolve(addresses[i], 0, &found, &error), WEIR_OK);
		assert_int_equal(found.count, 1);
		assert_string_equal(found.addresses[0], addresses[i]);
	}
	assert_int_equal(asked, 0);
}

static void a_name_has_its_addresses(void **state)
{
	struct weir_resolved found;
	struct weir_error error;
	(void)state;
	asked = 0;
	assert_int_equal(weir_resolve("localhost", 20000, &found, &error), WEIR_OK);
	assert_true(found.count > 0);
	for (uint32_t i = 0; i < found.count; i++)
		assert_true(strcmp(found.addresses[i], "127.0.0.1") == 0 || strcmp(found.addresses[i], "::1") == 0);
	assert_int_equal(weir_resolve("none", 20000, &found, &error), WEIR_IO);
	assert_string_equal(error.text, gai_strerror(EAI_NONAME));
	assert_int_equal(asked, 2);
	assert_int_equal(weir_resolve("none", 20000, &found, &error), WEIR_IO);
	assert_int_equal(asked, 2); /* the answer is a second's */
}

static void a_resolver_that_waits_holds_nobody_up(void **state)
{
	struct weir_resolved found;
	struct weir_error error;
	(void)state;
	asked = 0;
	int64_t began_ms = weir_monotonic_ms();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(weir_resolve("slow.one", 50, &found, &error), WEIR_IO);
		assert_string_equal(error.text, "the name servers do not answer in time");
	}
	assert_true(weir_monotonic_ms() - began_ms >= 150);
	assert_int_equal(asked, 1); /* the same question is under way */
	sem_post(&gate);
	assert_int_equal(weir_resolve("slow.one", 20000, &found, &error), WEIR_OK);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.addresses[0], "192.0.2.9");
	assert_int_equal(asked, 1);
}

static void no_more_questions_than_there_are_places(void **state)
{
	struct weir_resolved found;
	struct weir_error error;
	char name[32];
	(void)state;
	asked = 0;
	for (int i = 0; i < WEIR_RESOLVE_NAMES_MAX; i++) {
		snprintf(name, sizeof name, "slow.many-%d", i);
		assert_int_equal(weir_resolve(name, 0, &found, &error), WEIR_IO);
	}
	assert_int_equal(weir_resolve("localhost", 0, &found, &error), WEIR_IO);
	assert_string_equal(error.text, "cannot ask for its address now");
	for (int i = 0; i < WEIR_RESOLVE_NAMES_MAX; i++)
		sem_post(&gate);
	for (int i = 0; i < WEIR_RESOLVE_NAMES_MAX; i++) {
		snprintf(name, sizeof name, "slow.many-%d", i);
		assert_int_equal(weir_resolve(name, 20000, &found, &error), WEIR_OK);
	}
	assert_int_equal(weir_resolve("localhost", 20000, &found, &error), WEIR_OK);
	char longest[WEIR_RESOLVE_HOST_BYTES + 8];
	memset(longest, 'a', sizeof longest);
	longest[sizeof longest - 1] = '\0';
	assert_int_equal(weir_resolve(longest, 0, &found, &error), WEIR_IO);
}

static void *want(void *context)
{
	struct weir_resolved found;
	struct weir_error error;
	*(enum weir_status *)context = weir_resolve("slow.shared", 20000, &found, &error);
	return NULL;
}

static void many_who_ask_share_an_answer(void **state)
{
	enum { MANY = 8 };
	pthread_t threads[MANY];
	enum weir_status said[MANY];
	(void)state;
	asked = 0;
	for (int i = 0; i < MANY; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, want, &said[i]), 0);
	sem_post(&gate);
	for (int i = 0; i < MANY; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(said[i], WEIR_OK);
	}
	assert_int_equal(asked, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_their_own),
		cmocka_unit_test(a_name_has_its_addresses),
		cmocka_unit_test(a_resolver_that_waits_holds_nobody_up),
		cmocka_unit_test(no_more_questions_than_there_are_places),
		cmocka_unit_test(many_who_ask_share_an_answer),
	};
	sem_init(&gate, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

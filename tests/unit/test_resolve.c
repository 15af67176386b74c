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
#include "common/redis/resolve.c" /* with another resolver */
#undef getaddrinfo

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void addresses_are_their_own(void **state)
{
	static const char *const addresses[] = {"192.0.2.1", "2001:db8::1", "127.0.0.1", "::1"};
	struct weir_question *question = weir_question_new();
	struct weir_resolved found;
	struct weir_error error;
	(void)state;
	asked = 0;
	for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
		assert_int_equal(weir_resolve(question, addresses[i], 0, &found, &error), WEIR_OK);
		assert_int_equal(found.count, 1);
		assert_string_equal(found.addresses[0], addresses[i]);
	}
	assert_int_equal(asked, 0);
	weir_question_free(question);
}

static void a_name_has_its_addresses(void **state)
{
	struct weir_question *question = weir_question_new();
	struct weir_resolved found;
	struct weir_error error;
	char longest[WEIR_RESOLVE_HOST_BYTES + 8];
	(void)state;
	assert_int_equal(weir_resolve(question, "localhost", 20000, &found, &error), WEIR_OK);
	assert_true(found.count > 0);
	for (uint32_t i = 0; i < found.count; i++)
		assert_true(strcmp(found.addresses[i], "127.0.0.1") == 0 || strcmp(found.addresses[i], "::1") == 0);
	assert_int_equal(weir_resolve(question, "none", 20000, &found, &error), WEIR_IO);
	assert_string_equal(error.text, gai_strerror(EAI_NONAME));
	memset(longest, 'a', sizeof longest);
	longest[sizeof longest - 1] = '\0';
	assert_int_equal(weir_resolve(question, longest, 0, &found, &error), WEIR_IO);
	weir_question_free(question);
}

static void a_resolver_that_waits_holds_nobody_up(void **state)
{
	struct weir_question *question = weir_question_new();
	struct weir_resolved found;
	struct weir_error error;
	(void)state;
	asked = 0;
	int64_t began_ms = weir_monotonic_ms();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(weir_resolve(question, "slow.one", 50, &found, &error), WEIR_IO);
		assert_string_equal(error.text, "the name servers do not answer in time");
	}
	assert_true(weir_monotonic_ms() - began_ms >= 150);
	assert_int_equal(asked, 1); /* the same question is under way */
	sem_post(&gate);
	assert_int_equal(weir_resolve(question, "slow.one", 20000, &found, &error), WEIR_OK);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.addresses[0], "192.0.2.9");
	assert_int_equal(asked, 1);
	sem_post(&gate);
	assert_int_equal(weir_resolve(question, "slow.one", 20000, &found, &error), WEIR_OK);
	assert_int_equal(asked, 2); /* an answer is told once */
	weir_question_free(question);
}

/* Of which nobody hears any more; sanitizers see whether the last of both has freed it. */
static void who_gives_up_waits_for_nobody(void **state)
{
	struct weir_resolved found;
	struct weir_error error;
	(void)state;
	for (int i = 0; i < 8; i++) {
		struct weir_question *question = weir_question_new();
		assert_int_equal(weir_resolve(question, "slow.left", 0, &found, &error), WEIR_IO);
		assert_int_equal(weir_resolve(question, "localhost", 20000, &found, &error),
		                 WEIR_OK); /* another host: the first is left */
		assert_int_equal(weir_resolve(question, "slow.again", i % 2, &found, &error), WEIR_IO);
		weir_question_free(question);
	}
	for (int i = 0; i < 16; i++)
		sem_post(&gate);
	for (int value = 1; value > 0;) /* all have passed */
		assert_int_equal(sem_getvalue(&gate, &value), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_their_own),
		cmocka_unit_test(a_name_has_its_addresses),
		cmocka_unit_test(a_resolver_that_waits_holds_nobody_up),
		cmocka_unit_test(who_gives_up_waits_for_nobody),
	};
	sem_init(&gate, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

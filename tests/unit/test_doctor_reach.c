/* SPDX-License-Identifier: Apache-2.0 */
/* `weir doctor` tries every address of a name, as the clients do. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct sockaddr_in addresses[3];
static struct addrinfo answers[3];
static size_t answer_count;

static int give_addresses(const char *host, const char *service, const struct addrinfo *wanted, struct addrinfo **found)
{
	(void)service;
	if (strcmp(host, "manifold") != 0)
		return EAI_NONAME;
	for (size_t i = 0; i < answer_count; i++)
		answers[i] = (struct addrinfo){.ai_family = AF_INET,
		                               .ai_socktype = wanted->ai_socktype,
		                               .ai_addr = (struct sockaddr *)&addresses[i],
		                               .ai_addrlen = sizeof addresses[i],
		                               .ai_next = i + 1 < answer_count ? &answers[i + 1] : NULL};
	*found = answers;
	return 0;
}

static void keep_addresses(struct addrinfo *found)
{
	assert_ptr_equal(found, answers);
}

#define getaddrinfo give_addresses
#define freeaddrinfo keep_addresses
#include "deploy/weir/doctor/doctor_reach.c" /* of a program, which no library has */

/* A port of this machine. @param fd  bound; somebody listens where listening */
static struct sockaddr_in bind_port(int *fd, bool listening)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(*fd >= 0);
	assert_int_equal(bind(*fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(getsockname(*fd, (struct sockaddr *)&address, &length), 0);
	if (listening)
		assert_int_equal(listen(*fd, 8), 0);
	return address;
}

static void any_address_of_a_name_will_do(void **state)
{
	(void)state;
	int open, closed;
	struct sockaddr_in there = bind_port(&open, true), refused = bind_port(&closed, false);
	answer_count = 3;
	for (size_t place = 0; place < 3; place++) {
		for (size_t i = 0; i < 3; i++)
			addresses[i] = i == place ? there : refused;
		assert_null(doctor_reach("manifold", 1));
	}
	addresses[2] = refused;
	assert_string_equal(doctor_reach("manifold", 1), "Connection refused");
	answer_count = 1;
	assert_string_equal(doctor_reach("manifold", 1), "Connection refused");
	assert_string_equal(doctor_reach("elsewhere", 1), gai_strerror(EAI_NONAME));
	close(open);
	close(closed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_address_of_a_name_will_do),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

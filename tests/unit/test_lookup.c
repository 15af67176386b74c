/* SPDX-License-Identifier: Apache-2.0 */
/* A name that nobody can look up just now is no fault of the configuration: systemd is to try again. */
#include "common/base/exit.h"
#include "common/base/lookup.h"
#include "common/http/listen_socket.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int lookup_result; /* of the next lookup; 0: the system's own */

/* Stands before the C library's: what a network without name servers says cannot be had otherwise. */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
	int (*own)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
	void *found = dlsym(RTLD_NEXT, "getaddrinfo");
	memcpy(&own, &found, sizeof own);
	errno = EMFILE;
	return lookup_result != 0 ? lookup_result : own(host, service, hints, list);
}

static void what_may_pass_by_itself_is_tried_again(void **state)
{
	static const struct {
		int result;
		enum weir_exit code;
		const char *words;
	} cases[] = {
		{EAI_AGAIN, WEIR_EXIT_FAILED, "Temporary failure in name resolution"},
		{EAI_FAIL, WEIR_EXIT_FAILED, "Non-recoverable failure in name resolution"},
		{EAI_MEMORY, WEIR_EXIT_FAILED, "Memory allocation failure"},
		{EAI_SYSTEM, WEIR_EXIT_FAILED,
	     "Too many open files (more are allowed by ulimit -n, or LimitNOFILE= of a service)"},
		{EAI_NONAME, WEIR_EXIT_USAGE, "Name or service not known"},
		{EAI_FAMILY, WEIR_EXIT_USAGE, "ai_family not supported"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct weir_error error;
		uint16_t bound;
		int fd = -1;
		lookup_result = cases[i].result;
		enum weir_status status = weir_listen_socket("limits.example", 9464, false, &fd, &bound, &error);
		assert_int_equal(cases[i].code, weir_exit_of(status));
		assert_string_equal("cannot listen on limits.example: ", strndupa(error.text, 33));
		assert_string_equal(cases[i].words, error.text + 33);
	}
}

static void an_address_is_looked_up_by_nobody_else(void **state)
{
	uint16_t bound = 0;
	int fd = -1;
	(void)state;
	lookup_result = 0;
	assert_int_equal(WEIR_OK, weir_listen_socket("127.0.0.1", 0, false, &fd, &bound, NULL));
	assert_int_not_equal(0, bound);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_may_pass_by_itself_is_tried_again),
		cmocka_unit_test(an_address_is_looked_up_by_nobody_else),
	};
	return cmocka_run_group_tests_name("lookup", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The servers of a worker that does not open are freed with its surface: nobody else may look at them. */
#include "limiter/daemon/checks_servers.h"

#include "common/http/listen_socket.h"
#include "limiter/check/link_server.h"
#include "limiter/check/resp/resp_users.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORKERS = 3 };

static char here[] = "127.0.0.1";

static const struct weir_policy *no_policy(void *context)
{
	(void)context;
	return NULL;
}

static bool is_counted(const struct checks_servers *servers, uint32_t worker)
{
	return checks_servers_counts(servers, REFUSAL_RESP, worker) != NULL;
}

static void servers_are_counted_once_all_of_their_worker_is_open(void **state)
{
	(void)state;
	const struct check_judge judge = {.policy = no_policy};
	const struct weir_log log = {.fd = -1};
	const struct resp_users users = {0};
	struct weir_config config = {.listen = {.resp_host = here}};
	struct checks_servers *servers = checks_servers_new(
		&(struct checks_servers_options){.config = &config, .threads = WORKERS, .users = &users, .log = &log});
	struct check_surface surfaces[WORKERS];
	struct weir_error error;
	int taken;
	assert_int_equal(checks_servers_open(servers, 0, &judge, &surfaces[0], &error), WEIR_OK);
	assert_false(is_counted(servers, 0)); /* what comes after it may fail yet */
	checks_servers_opened(servers, 0);
	assert_true(is_counted(servers, 0));
	/* The next one opens its first server, and not the second. */
	config.listen.check_http_host = here;
	assert_int_equal(weir_listen_socket(here, 0, false, &taken, &config.listen.check_http_port, &error), WEIR_OK);
	assert_int_equal(checks_servers_open(servers, 1, &judge, &surfaces[1], &error), WEIR_IO);
	surfaces[1].free(surfaces[1].context);
	assert_false(is_counted(servers, 1));
	assert_int_equal(checks_servers_figure(servers, REFUSAL_RESP, offsetof(struct link_figures, accepted)), 0);
	/* One that has no server by a protocol has none to count. */
	config.listen.check_http_host = NULL;
	assert_int_equal(checks_servers_open(servers, 2, &judge, &surfaces[2], &error), WEIR_OK);
	checks_servers_opened(servers, 2);
	assert_true(is_counted(servers, 2));
	assert_null(checks_servers_counts(servers, REFUSAL_HTTP, 2));
	surfaces[2].free(surfaces[2].context);
	surfaces[0].free(surfaces[0].context);
	close(taken);
	checks_servers_free(servers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(servers_are_counted_once_all_of_their_worker_is_open),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

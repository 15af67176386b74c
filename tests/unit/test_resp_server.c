/* SPDX-License-Identifier: Apache-2.0 */
/* The server of checks by RESP: before there is a policy, for who logs in anew, for users of some zones alone, with much that is kept. */
#include "limiter/check/resp/resp_server.h"

#include "tests/support/asking.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static const char zones[] =
	"[{\"name\":\"site\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"gcra\",\"rate\":9,\"window\":\"1m\",\"burst\":5}]}]";

static void begin(struct asking *asking, enum weir_on_unavailable on_unavailable, const struct resp_options *options)
{
	const struct link_options common = asking_options(asking, on_unavailable);
	asking_begin(asking, resp_server_new(&common, options));
}

static void expect(struct asking *asking, const char *command, const char *wanted)
{
	char line[256];
	snprintf(line, sizeof line, "%s\r\n", command);
	if (strcmp(asking_send(asking, line), wanted) != 0)
		fail_msg("%s: %s", command, asking->reply);
}

static void before_a_policy_each_command_is_told_the_same(void **state)
{
	static struct asking asking;
	static const struct resp_options options = {0};
	static const char *const commands[] = {"WEIR.CHECK ann site", "CL.THROTTLE ann 5 9 60",
	                                       "WEIR.ALL 2 ann site 1 bob site 1"};
	static const char unavailable[] = "-UNAVAILABLE loading: ask again\r\n";
	static const struct {
		enum weir_on_unavailable on_unavailable;
		const char *replies[3];
	} settings[] = {
		{WEIR_ON_UNAVAILABLE_ERROR, {unavailable, unavailable, unavailable}},
		{WEIR_ON_UNAVAILABLE_ALLOW,
	     {"*5\r\n:0\r\n:0\r\n:0\r\n:-1\r\n:0\r\n", "*5\r\n:0\r\n:0\r\n:0\r\n:-1\r\n:0\r\n",
	      "*3\r\n:0\r\n*5\r\n:0\r\n:0\r\n:0\r\n:-1\r\n:0\r\n*5\r\n:0\r\n:0\r\n:0\r\n:-1\r\n:0\r\n"}},
		{WEIR_ON_UNAVAILABLE_DENY,
	     {"*5\r\n:1\r\n:0\r\n:0\r\n:1000\r\n:0\r\n", "*5\r\n:1\r\n:0\r\n:0\r\n:1\r\n:0\r\n",
	      "*3\r\n:1\r\n*5\r\n:1\r\n:0\r\n:0\r\n:1000\r\n:0\r\n*5\r\n:1\r\n:0\r\n:0\r\n:1000\r\n:0\r\n"}},
	};
	(void)state;
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		begin(&asking, settings[i].on_unavailable, &options);
		for (size_t j = 0; j < sizeof commands / sizeof *commands; j++)
			expect(&asking, commands[j], settings[i].replies[j]);
		expect(&asking, "WEIR.ALL 1 ann site x", "-ERR cost must be a number from 0 to 1099511627776\r\n");
		assert_int_equal(asking.asked, 0);
		asking_use(&asking, zones);
		expect(&asking, commands[1], "*5\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:6\r\n");
		expect(&asking, "CL.THROTTLE ann 5 8 60",
		       "-ERR no zone has gcra burst 5, rate 8, window 60s as its only limit: add it\r\n");
		assert_int_equal(asking.asked, 1);
		asking_end(&asking);
	}
}

/* Whatever is set for what cannot be judged: a zone on trial blocks nobody, and is no error. */
static void a_zone_on_trial_passes_where_it_cannot_be_judged(void **state)
{
	static struct asking asking;
	static const struct resp_options options = {0};
	static const char two[] =
		"[{\"name\":\"try\",\"mode\":\"shadow\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"gcra\",\"rate\":9,\"window\":\"1m\",\"burst\":5}]},"
		"{\"name\":\"site\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"gcra\",\"rate\":7,\"window\":\"1m\",\"burst\":5}]}]";
	static const char pass[] = "*5\r\n:0\r\n:0\r\n:0\r\n:-1\r\n:0\r\n", error[] = "-UNAVAILABLE moving: ask again\r\n";
	(void)state;
	for (int denies = 0; denies < 2; denies++) {
		begin(&asking, denies ? WEIR_ON_UNAVAILABLE_DENY : WEIR_ON_UNAVAILABLE_ERROR, &options);
		asking_use(&asking, two);
		asking.unavailable = true;
		expect(&asking, "WEIR.CHECK 192.0.2.1 try", pass);
		expect(&asking, "WEIR.PEEK 192.0.2.1 try", pass);
		expect(&asking, "WEIR.ALLOW 192.0.2.1 try", ":1\r\n");
		expect(&asking, "WEIR.ALLOW 192.0.2.1 site", denies ? ":0\r\n" : error);
		expect(&asking, "WEIR.ALL 1 192.0.2.1 try 1", "*2\r\n:0\r\n*5\r\n:0\r\n:0\r\n:0\r\n:-1\r\n:0\r\n");
		expect(&asking, "WEIR.ALL 2 192.0.2.1 try 1 192.0.2.1 site 1",
		       denies ? "*3\r\n:1\r\n*5\r\n:0\r\n:0\r\n:0\r\n:-1\r\n:0\r\n*5\r\n:1\r\n:0\r\n:0\r\n:1000\r\n:0\r\n"
		              : error);
		expect(&asking, "WEIR.SETTLE 192.0.2.1 try 0123456789abcdef0123456789abcdef 1", error);
		asking_end(&asking);
	}
}

/* A pool of connections resets each before it hands it on. */
static void who_resets_has_time_to_log_in_again(void **state)
{
	enum { LOGIN_MS = 1000 };
	static struct asking asking;
	static const struct resp_user user = {.name = "default", .password = "p"};
	static const struct resp_options options = {.users = &user, .user_count = 1, .login_ms = LOGIN_MS};
	(void)state;
	begin(&asking, WEIR_ON_UNAVAILABLE_ERROR, &options);
	expect(&asking, "AUTH p", "+OK\r\n");
	asking_wait(&asking, LOGIN_MS + 100);
	assert_true(asking_is_open(&asking));
	expect(&asking, "RESET", "+RESET\r\n");
	assert_true(asking_is_open(&asking));
	expect(&asking, "AUTH p", "+OK\r\n");
	assert_true(asking_is_open(&asking));
	/* It does not have more by resetting what is reset. */
	expect(&asking, "RESET", "+RESET\r\n");
	asking_wait(&asking, LOGIN_MS + 100);
	(void)asking_send(&asking, "RESET\r\n");
	assert_false(asking_is_open(&asking));
	asking_end(&asking);
}

/* Two zones of the same numbers, of which the user may ask in one. */
static void a_user_hears_of_no_zone_that_it_may_not_ask_in(void **state)
{
	static const char two[] =
		"[{\"name\":\"site\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"gcra\",\"rate\":9,\"window\":\"1m\",\"burst\":5}]},"
		"{\"name\":\"secret\",\"key\":[\"ip\",\"tenant\"],"
		"\"limits\":[{\"algorithm\":\"gcra\",\"rate\":9,\"window\":\"1m\",\"burst\":5}]},"
		"{\"name\":\"other\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"gcra\",\"rate\":7,\"window\":\"1m\",\"burst\":5}]}]";
	static struct asking asking;
	static const char *const site[] = {"site"};
	static const struct resp_user users[] = {{.name = "all", .password = "p"},
	                                         {.name = "shop", .password = "p", .zones = site, .zone_count = 1}};
	static const struct resp_options options = {.users = users, .user_count = 2};
	static const char both[] =
		"-ERR zones 'site' and 'secret' both have gcra burst 5, rate 9, window 60s: use WEIR.CHECK "
		"key zone\r\n";
	static const char pass[] = "*5\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:6\r\n";
	(void)state;
	begin(&asking, WEIR_ON_UNAVAILABLE_ERROR, &options);
	asking_use(&asking, two);
	for (int i = 0; i < 2; i++) { /* what was found for one is nothing to the other */
		expect(&asking, "AUTH all p", "+OK\r\n");
		expect(&asking, "CL.THROTTLE ann 5 9 60", both);
		expect(&asking, "CL.THROTTLE ann 5 7 60", pass);
		expect(&asking, "AUTH shop p", "+OK\r\n");
		expect(&asking, "CL.THROTTLE ann 5 9 60", pass);
		expect(
			&asking, "CL.THROTTLE ann 5 7 60",
			"-ERR no zone that user 'shop' may ask in has gcra burst 5, rate 7, window 60s as its only limit: add it\r\n");
	}
	for (int with = 0; with < 2; with++)
		expect(&asking, with ? "WEIR.ALL 2 ann site 1 ann secret 1" : "WEIR.ALL 1 ann secret 1",
		       "-NOPERM user 'shop' may not ask in zone 'secret'\r\n");
	expect(&asking, "WEIR.CHECK ann secret", "-NOPERM user 'shop' may not ask in zone 'secret'\r\n");
	asking_end(&asking);
}

static int connected(const struct asking *asking)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(asking->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

/* More than all may have, by clients that each keep less than one of them may have alone. */
static void half_commands_are_kept_for_so_many_bytes_in_all(void **state)
{
	enum { KEEPS_BYTES = 64 << 10, SENT_BYTES = 33 << 10, CLIENTS = RESP_BUFFERED_MAX_BYTES / KEEPS_BYTES + 200 };
	static struct asking asking;
	static const struct resp_options options = {0};
	static char half[SENT_BYTES] = "*2\r\n$4\r\nECHO\r\n$900000\r\n";
	static int fds[CLIENTS];
	struct rlimit before, more;
	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	if (before.rlim_max < 2 * CLIENTS + 100)
		skip();
	more = before;
	more.rlim_cur = 2 * CLIENTS + 100;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, before.rlim_cur < more.rlim_cur ? &more : &before), 0);
	begin(&asking, WEIR_ON_UNAVAILABLE_ERROR, &options);
	asking_use(&asking, zones);
	const struct link_figures *figures = &asking.server->figures;
	for (int i = 0; i < CLIENTS; i++) {
		fds[i] = connected(&asking);
		assert_int_equal(send(fds[i], half, sizeof half, MSG_NOSIGNAL), sizeof half);
		if (i % 32 == 31 || i == CLIENTS - 1)
			asking_wait(&asking, 1);
	}
	asking_wait(&asking, 10);
	assert_int_equal(weir_counter_read(&figures->accepted), CLIENTS + 1);
	assert_true(weir_counter_read(&figures->stalled) > 100);
	assert_true(weir_counter_read(&figures->buffered_bytes) <= RESP_BUFFERED_MAX_BYTES);
	expect(&asking, "CL.THROTTLE ann 5 9 60", "*5\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:6\r\n");
	for (int i = 0; i < CLIENTS; i++)
		close(fds[i]);
	asking_end(&asking);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_a_policy_each_command_is_told_the_same),
		cmocka_unit_test(a_zone_on_trial_passes_where_it_cannot_be_judged),
		cmocka_unit_test(who_resets_has_time_to_log_in_again),
		cmocka_unit_test(a_user_hears_of_no_zone_that_it_may_not_ask_in),
		cmocka_unit_test(half_commands_are_kept_for_so_many_bytes_in_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

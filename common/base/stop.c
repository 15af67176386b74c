/* SPDX-License-Identifier: Apache-2.0 */
/* See stop.h for why these two flags are global. */
#include "common/base/stop.h"

#include <signal.h>
#include <string.h>

static _Atomic bool stop_asked;
static _Atomic bool reload_asked;

static void on_stop(int number)
{
	if (atomic_exchange(&stop_asked, true)) {
		signal(number, SIG_DFL);
		raise(number);
	}
}

static void on_reload(int number)
{
	(void)number;
	atomic_store(&reload_asked, true);
}

void weir_stop_install(void)
{
	struct sigaction action;
	memset(&action, 0, sizeof action);
	sigemptyset(&action.sa_mask);
	action.sa_handler = on_stop;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	action.sa_handler = on_reload;
	sigaction(SIGHUP, &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
}

const _Atomic bool *weir_stop_flag(void)
{
	return &stop_asked;
}

bool weir_stop_take_reload(void)
{
	return atomic_exchange(&reload_asked, false);
}

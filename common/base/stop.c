/* SPDX-License-Identifier: Apache-2.0 */
/* See stop.h for why these flags are global. */
#include "common/base/stop.h"

#include "common/base/alloc.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Atomic bool stop_asked;
static _Atomic bool reload_asked;
static _Atomic int start_code; /* of an end while the program starts */

static void on_stop(int number)
{
	if (atomic_exchange(&stop_asked, true)) {
		signal(number, SIG_DFL);
		raise(number);
	}
}

static void on_early_stop(int number)
{
	(void)number;
	_exit(atomic_load(&start_code));
}

static void on_reload(int number)
{
	(void)number;
	atomic_store(&reload_asked, true);
}

static void install(void (*stop)(int))
{
	struct sigaction action;
	memset(&action, 0, sizeof action);
	sigemptyset(&action.sa_mask);
	action.sa_handler = stop;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	action.sa_handler = on_reload;
	sigaction(SIGHUP, &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
}

void weir_stop_begin(enum weir_exit code)
{
	atomic_store(&start_code, code);
	install(on_early_stop);
}

void weir_stop_install(void)
{
	install(on_stop);
}

const _Atomic bool *weir_stop_flag(void)
{
	return &stop_asked;
}

bool weir_stop_take_reload(void)
{
	return atomic_exchange(&reload_asked, false);
}

/* ---- a bound on the end ---- */

struct leave {
	int64_t ms;
	enum weir_exit code;
};

static void *leave(void *context)
{
	struct leave leave = *(struct leave *)context;
	free(context);
	struct timespec left = {.tv_sec = leave.ms / 1000, .tv_nsec = leave.ms % 1000 * 1000000L};
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
	_exit(leave.code);
}

void weir_stop_within(int64_t ms, enum weir_exit code)
{
	pthread_t thread;
	struct leave *context = weir_alloc(1, sizeof *context);
	*context = (struct leave){.ms = ms, .code = code};
	fflush(stdout);
	if (pthread_create(&thread, NULL, leave, context) == 0)
		pthread_detach(thread);
	else
		free(context);
}

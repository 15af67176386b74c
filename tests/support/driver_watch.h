/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit on what a test's driver waits for. Libraries have waits without an end of their own, above all when they close;
 * whoever waits for the driver then learns where it stands.
 */
#ifndef TESTS_SUPPORT_DRIVER_WATCH_H
#define TESTS_SUPPORT_DRIVER_WATCH_H

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Somewhat less than the tests' own patience (support/bus_driver.py). */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { DRIVER_WATCH_S = 400 };
#else
enum { DRIVER_WATCH_S = 100 };
#endif
enum { DRIVER_WATCH_CODE = 4 };

static char driver_watch_words[256];

static void driver_watch_ends(int number)
{
	(void)number;
	if (write(STDERR_FILENO, driver_watch_words, strlen(driver_watch_words)) < 0)
		_exit(DRIVER_WATCH_CODE);
	_exit(DRIVER_WATCH_CODE);
}

/** Ends the process with words unless another call, or driver_watch_over(), comes within so many seconds. */
static inline void driver_watch_for(const char *what, unsigned seconds)
{
	snprintf(driver_watch_words, sizeof driver_watch_words, "still at work after %u s: %.200s\n", seconds, what);
	struct sigaction action = {.sa_handler = driver_watch_ends};
	sigaction(SIGALRM, &action, NULL);
	alarm(seconds);
}

static inline void driver_watch(const char *what)
{
	driver_watch_for(what, DRIVER_WATCH_S);
}

static inline void driver_watch_over(void)
{
	alarm(0);
}

#endif

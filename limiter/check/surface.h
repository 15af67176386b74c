/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A surface as the thread that judges sees it: what takes checks by some protocol, one object a thread. The thread waits
 * for its descriptor among others, and has it serve what has come.
 */
#ifndef LIMITER_SURFACE_H
#define LIMITER_SURFACE_H

#include "limiter/check/check.h"

struct check_surface {
	void *context;
	int descriptor; /* readable when there is something to serve; the surface's */
	/** Serves what has come, without waiting; also what answered() has told since. Called each second at least. */
	void (*serve)(void *context);
	/** Takes the answer to an ask that was told CHECK_LATER. Never called within ask(). @param answer  borrowed */
	void (*answered)(void *context, const struct check_answer *answer);
	/** Takes no new connection, and asks no more. serve() and answered() go on, so that what was asked is answered. */
	void (*stop)(void *context);
	/** Ends what is still open: who waits there for an answer sees that none comes. Only its figures are read afterwards. */
	void (*end)(void *context);
	/** Frees it. Nothing is called afterwards. */
	void (*free)(void *context);
};

#endif

/* The inside of limiter.c, for the file that shows it: limiter_pages.c. */
#ifndef LIMITER_LIMITER_PARTS_H
#define LIMITER_LIMITER_PARTS_H

#include "common/lag.h"
#include "common/membership.h"
#include "limiter/limiter.h"
#include "limiter/worker.h"

enum limiter_phase { LIMITER_CONNECTING, LIMITER_WORKING, LIMITER_STOPPING };

struct limiter {
	struct weir_daemon *daemon;
	struct weir_daemon_pages pages;
	_Atomic int phase; /* from LIMITER_WORKING on all that follows is there, and stays */
	struct weir_bus *bus;
	uint64_t seed;
	struct rulebook *book;
	struct weir_share *share;
	struct keeper *saver, *loader;
	struct worker **workers;
	uint32_t worker_count;
	struct weir_membership *membership;
	struct weir_lag *lag;
};

void limiter_pages_init(struct limiter *limiter);

#endif

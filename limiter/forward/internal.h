/* SPDX-License-Identifier: Apache-2.0 */
/* One link: what its thread has. */
#ifndef LIMITER_FORWARD_INTERNAL_H
#define LIMITER_FORWARD_INTERNAL_H

#include "common/redis/redis.h"
#include "common/resp/resp.h"
#include "limiter/forward/forward.h"

#include <pthread.h>

struct peer_link {
	const struct forward_options *options;
	uint32_t place;
	uint32_t inbox; /* of mail */
	bool durable;   /* it carries durable asks */
	_Atomic bool started;
	const _Atomic bool *stop;
	pthread_t thread;
	struct forward_figures figures;
	/* the thread's */
	struct weir_question *question; /* where the place is */
	struct weir_redis *connection;  /* NULL: there is none */
	uint32_t version;               /* of the place that it leads to */
	int64_t retry_ms, backoff_ms;   /* monotonic: no connection is tried before */
	struct weir_fault fault;
	struct weir_text out;
	size_t sent; /* of out */
	struct weir_resp in;
	struct mail_packet *first, **end; /* sent, or in `out`, oldest first */
	uint32_t answered;                /* asks of the first one */
	int64_t numbers[9];               /* of an answer that is being read */
	bool used;                        /* something was asked by it */
};

void *link_serve(void *link);

#endif

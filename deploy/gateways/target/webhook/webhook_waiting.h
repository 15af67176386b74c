/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines for people that wait until they are taken, 64 KiB of them at most. A line is given up once it waited long, and
 * every try since then was refused by fault of the configuration: what is old once that is right is no news.
 */
#ifndef DEPLOY_GATEWAYS_TARGET_WEBHOOK_WEBHOOK_WAITING_H
#define DEPLOY_GATEWAYS_TARGET_WEBHOOK_WEBHOOK_WAITING_H

#include "common/base/text.h"

#include <stdbool.h>

/* Zero-initialised is empty. Times are monotonic. Owned by one thread. */
struct webhook_waiting {
	struct weir_text lines;
	struct weir_text since; /* of each line, an int64_t */
	uint64_t left_out;      /* that found no room */
	int64_t left_out_ms;    /* the newest of them */
	int64_t refused_ms;     /* since when every try is refused; 0: the newest was not */
};

void webhook_waiting_deinit(struct webhook_waiting *waiting);

/** Where the next line goes: the caller appends it, with its end. @return NULL: no room, it is counted */
struct weir_text *webhook_waiting_add(struct webhook_waiting *waiting, int64_t now_ms);

/** The first lines, as many as one message holds; valid until the next change. @param count  how many */
struct weir_span webhook_waiting_message(const struct webhook_waiting *waiting, size_t *count);

/** The first lines are done with. After the last one comes a line that says how many found no room. */
void webhook_waiting_remove(struct webhook_waiting *waiting, size_t count);

/** A try was refused by fault of the configuration. @return how many lines were given up: they are gone */
size_t webhook_waiting_refused(struct webhook_waiting *waiting, int64_t now_ms, int64_t give_up_after_ms);

/** A try had another end. */
void webhook_waiting_not_refused(struct webhook_waiting *waiting);

#endif

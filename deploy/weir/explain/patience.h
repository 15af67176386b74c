/* SPDX-License-Identifier: Apache-2.0 */
/* How long a running weir takes to explain something: at most so long, and not beyond its own end. */
#ifndef DEPLOY_WEIR_EXPLAIN_PATIENCE_H
#define DEPLOY_WEIR_EXPLAIN_PATIENCE_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct patience {
	int64_t until_ms; /* monotonic */
};

/** @param patience  NULL: of a command, which a signal ends. @thread any */
bool patience_ended(const struct patience *patience);

/** @return WEIR_OK; WEIR_IO: it has ended, in words for people */
WEIR_MUST_USE enum weir_status patience_check(const struct patience *patience, struct weir_error *error);

#endif

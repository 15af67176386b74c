/* SPDX-License-Identifier: Apache-2.0 */
/* The programs whose configurations can be read: one function each behind `weir import`. */
#ifndef DEPLOY_WEIR_IMPORT_READERS_H
#define DEPLOY_WEIR_IMPORT_READERS_H

#include "deploy/weir/import/plan.h"

struct import_options {
	const char *path;      /* a directory or a file */
	const char *time_zone; /* of times without one; NULL: weir's default */
	const char *mode;      /* of every zone: "shadow" or "enforce" */
	bool all;              /* also what is not enabled */
};

/** @return WEIR_INVALID, WEIR_IO: nothing is imported; "FILE:LINE: what was expected" */
WEIR_MUST_USE enum weir_status import_fail2ban(struct plan *plan, const struct import_options *options,
                                               struct weir_error *error);
WEIR_MUST_USE enum weir_status import_crowdsec(struct plan *plan, const struct import_options *options,
                                               struct weir_error *error);
WEIR_MUST_USE enum weir_status import_sigma(struct plan *plan, const struct import_options *options,
                                            struct weir_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* `weir recover` for an archiver that stands at a gap in the topics judged or decisions. */
#ifndef DEPLOY_WEIR_INSPECT_RECOVER_ARCHIVE_H
#define DEPLOY_WEIR_INSPECT_RECOVER_ARCHIVE_H

#include "deploy/weir/backend/backend.h"

/**
 * Says on standard output whether a partition's archive has a gap, and what it loses; with `yes`, it goes on behind it.
 *
 * @param gap  set: whether there is one
 */
WEIR_MUST_USE enum weir_status recover_archive(const struct backend *backend, uint32_t partition, bool yes, bool *gap,
                                               struct weir_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* `weir recover` for an archiver that stands at a gap in the topics judged or decisions. */
#ifndef DEPLOY_WEIR_INSPECT_RECOVER_ARCHIVE_H
#define DEPLOY_WEIR_INSPECT_RECOVER_ARCHIVE_H

#include "deploy/weir/backend/backend.h"

/**
 * Says on standard output whether the archives of some partitions have a gap, and what they lose; with `yes`, they go on
 * behind it.
 *
 * @param gap  set: whether one of them has a gap
 */
WEIR_MUST_USE enum weir_status recover_archive(const struct backend *backend, uint32_t from, uint32_t count, bool yes,
                                               bool *gap, struct weir_error *error);

#endif

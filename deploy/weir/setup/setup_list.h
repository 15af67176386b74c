/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list that weir keeps for a gateway. Its folder belongs to weir's user, who may put a link there under its name: so
 * the name itself is made or removed, and never what it leads to.
 */
#ifndef DEPLOY_WEIR_SETUP_SETUP_LIST_H
#define DEPLOY_WEIR_SETUP_SETUP_LIST_H

#include "common/base/status.h"

#include <stdbool.h>

bool setup_list_is_there(const char *path);

/** Makes it, empty, and its folder where there is none; it belongs to whom its folder belongs. @return WEIR_OK; WEIR_IO */
WEIR_MUST_USE enum weir_status setup_list_make(const char *path, struct weir_error *error);

/** @return WEIR_OK, also without one; WEIR_IO */
WEIR_MUST_USE enum weir_status setup_list_remove(const char *path, struct weir_error *error);

#endif

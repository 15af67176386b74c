/* SPDX-License-Identifier: Apache-2.0 */
/* Which list a target keeps, in one spelling whatever it was called by: two targets of one list are told by it. */
#ifndef DEPLOY_GATEWAYS_TARGET_LIST_PLACE_H
#define DEPLOY_GATEWAYS_TARGET_LIST_PLACE_H

#include "common/base/text.h"

/**
 * Appends a path without links, "." and ".."; of what is not there yet, that of the folders that are, and the rest.
 *
 * @param path  relative ones are of the working directory
 */
void list_place_put(struct weir_text *text, const char *path);

#endif

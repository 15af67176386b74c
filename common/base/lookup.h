/* SPDX-License-Identifier: Apache-2.0 */
/* What a name that getaddrinfo() gave no address for means. */
#ifndef WEIR_COMMON_LOOKUP_H
#define WEIR_COMMON_LOOKUP_H

#include "common/base/status.h"

/**
 * @param result  of getaddrinfo(), not 0; errno as it left it
 * @return WEIR_INVALID, where nothing of that name exists; WEIR_IO, where nobody could say: name servers that do not
 *         answer yet after a boot, or a machine out of memory or descriptors
 */
enum weir_status weir_lookup_status(int result);

/** Why, in words, which last until the next call of this thread. */
const char *weir_lookup_words(int result);

#endif

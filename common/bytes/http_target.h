/* SPDX-License-Identifier: Apache-2.0 */
/* What a request of HTTP asks for: RFC 9112, section 3.2. */
#ifndef WEIR_COMMON_HTTP_TARGET_H
#define WEIR_COMMON_HTTP_TARGET_H

#include "common/base/span.h"
#include "common/base/status.h"

#include <stdbool.h>

/**
 * Takes a target of the absolute form apart, http://HOST:PORT/PATH, which a client that asks by way of a proxy sends. Its host
 * counts, and the field Host does not. A target of another form stays as it is.
 *
 * @param target     set to its path and query; "/" where there is neither
 * @param authority  set to HOST:PORT, within the target; absent: the target has none
 * @return false: it has no host, or an account before it, which a recipient must refuse (RFC 9110, 4.2.1 and 4.2.4)
 */
WEIR_MUST_USE bool weir_http_target_split(struct weir_span *target, struct weir_span *authority);

#endif

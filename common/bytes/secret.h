/* SPDX-License-Identifier: Apache-2.0 */
/* Passwords, tokens and digests that somebody shows. */
#ifndef WEIR_COMMON_SECRET_H
#define WEIR_COMMON_SECRET_H

#include "common/base/span.h"

/** Whether the secret was given, in a time that does not tell how much of it is right. */
bool weir_secret_is(struct weir_span secret, struct weir_span given);

#endif

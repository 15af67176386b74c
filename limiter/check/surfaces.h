/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several surfaces of one thread as one: RESP, HTTP and others beside each other. A surface's tickets stay its own, as
 * long as they are below CHECK_TICKET_END: which surface they are of stands above them.
 */
#ifndef LIMITER_CHECK_SURFACES_H
#define LIMITER_CHECK_SURFACES_H

#include "common/base/status.h"
#include "limiter/check/surface.h"

enum { SURFACES_MAX = 4 };

struct surfaces;

/** @param judge  copied. @return surfaces_free(), or the surface's free() */
struct surfaces *surfaces_new(const struct check_judge *judge);
/** Frees those that were added, too. NULL is fine. */
void surfaces_free(struct surfaces *surfaces);

/** The judge of the surface that is added next. Borrowed while they live. */
const struct check_judge *surfaces_judge(struct surfaces *surfaces);
/** @param surface  copied; taken */
WEIR_MUST_USE enum weir_status surfaces_add(struct surfaces *surfaces, const struct check_surface *surface,
                                            struct weir_error *error);

/** All of them as one; it is freed by its free(). */
struct check_surface surfaces_all(struct surfaces *surfaces);

#endif

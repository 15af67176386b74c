/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts of keys whose rates an operator multiplies, made when one is first
 * met: by a command, or by a bucket that the store has of one.
 *
 * They belong to a compiled policy, and live as long as it does. For one zone
 * and one factor all layouts of its history are made together, so that a bucket
 * goes from one to the next as those of other keys do.
 */
#ifndef LIMITER_SCALED_LAYOUTS_H
#define LIMITER_SCALED_LAYOUTS_H

#include "limiter/bucket/bucket_layout.h"

struct scaled_layouts;

struct scaled_layouts *scaled_layouts_new(void);
void scaled_layouts_free(struct scaled_layouts *scaled);

/**
 * A layout, scaled.
 *
 * @param layouts      all that the compiled policy has, by id - 1; borrowed
 * @param id           one of them
 * @param thousandths  1 to SCALE_MAX, not SCALE_ONE
 * @thread any
 */
const struct layout *scaled_layouts_get(struct scaled_layouts *scaled, struct layout *const *layouts, uint32_t count,
                                        uint32_t id, uint32_t thousandths);

#endif

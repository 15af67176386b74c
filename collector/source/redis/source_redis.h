/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source kind `redis`: streams of a Redis server, read by XREAD from weir's own positions.
 *
 * A stream's position is its entries' ids, ms << 21 | sequence: so every collector gives an entry the same position. The
 * group (XGROUP) is only the place where the low-water mark is kept: nothing is read through it.
 */
#ifndef COLLECTOR_SOURCE_REDIS_H
#define COLLECTOR_SOURCE_REDIS_H

#include "collector/source/source.h"

extern const struct source_ops source_redis_ops;

#endif

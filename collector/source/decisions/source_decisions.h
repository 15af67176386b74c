/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source `decisions`: what weir decides, as events that zones may count.
 *
 * Each decision of the topics `decisions` and `decisions.shadow` is one line, an object with the fields zone, key,
 * action, mode, by, and each value of the key under its field's name (ip).
 */
#ifndef COLLECTOR_SOURCE_DECISIONS_H
#define COLLECTOR_SOURCE_DECISIONS_H

#include "collector/source/source.h"

extern const struct source_ops source_decisions_ops;

/** The reader by which the local log knows this source, and keeps decisions until they are read. */
#define SOURCE_DECISIONS_READER "decisions-source"

#endif

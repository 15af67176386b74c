/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input as a source. */
#ifndef COLLECTOR_SOURCE_STDIN_H
#define COLLECTOR_SOURCE_STDIN_H

#include "collector/source/source.h"

/*
 * { "type": "stdin", "path": "-" }: lines of standard input, plain or compressed, until its end.
 *
 * It cannot be read again (source_unreplayable.h). collect() gives WEIR_AGAIN while nothing is there, in `once` after
 * waiting for it for up to 100 ms.
 */
extern const struct source_ops source_stdin_ops;

/** After how many bytes positions continue in another incarnation: half of what they can hold, but in tests. */
void source_stdin_set_bound(struct source *source, uint64_t bytes);

#endif

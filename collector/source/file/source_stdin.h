/* Standard input as a source. */
#ifndef COLLECTOR_SOURCE_STDIN_H
#define COLLECTOR_SOURCE_STDIN_H

#include "collector/source/source.h"

/**
 * { "type": "stdin", "path": "-" }: lines of standard input, plain or compressed, until its end.
 *
 * It cannot be read again, so its lines are taken at most once: each start has a new id, and nothing is remembered.
 * collect() gives WEIR_AGAIN while nothing is there, in `once` after waiting for it for up to 100 ms.
 */
WEIR_MUST_USE enum weir_status source_stdin_new(const struct weir_json *config, const struct source_context *context,
                                                struct source **source, struct weir_error *error);

/** After how many bytes positions go on in another incarnation: half of what they can hold, but in tests. */
void source_stdin_set_bound(struct source *source, uint64_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The id of a bucket of quotas: a map of fields, which protobuf writes in any order, anew each time.
 *
 * Its canonical form is the same map, by the bytes of its keys: each key once, with the value that came last, and nothing
 * written that is empty. So it is one map's alone, is no longer than what came, and is a message BucketId itself.
 */
#ifndef LIMITER_GRPC_QUOTA_ID_H
#define LIMITER_GRPC_QUOTA_ID_H

#include "limiter/check/grpc/protobuf.h"

struct quota_pair {
	struct weir_span key, value; /* within the id; without one: empty */
	uint32_t place;              /* among the pairs of the id */
};

/** Reads one pair. @return false: there are no more, or it is no id: reader->bad */
bool quota_id_next(struct protobuf_reader *reader, struct quota_pair *pair);

/** Appends the canonical form of an id, of some KiB at most. @return false: it is no id, and nothing was appended */
bool quota_id_put(struct weir_text *text, struct weir_span id);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a user costs in memory, by the layout of a zone's buckets: for whoever chooses limits. */
#ifndef LIMITER_FOOTPRINT_H
#define LIMITER_FOOTPRINT_H

#include "limiter/bucket/bucket_layout.h"

/* Bytes of one bucket with its share of the table. */
struct footprint {
	uint64_t once; /* one event was recorded */
	uint64_t full; /* every limit holds as much as it can, and a decision was published */
};

/** Times count one each; equal ones, or costs above 1, take less. */
struct footprint footprint_of(const struct layout *layout);

#endif

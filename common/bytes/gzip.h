/* SPDX-License-Identifier: Apache-2.0 */
/* gzip: zlib's header is met here; whoever packs a text needs no more than these. */
#ifndef WEIR_COMMON_GZIP_H
#define WEIR_COMMON_GZIP_H

#include "common/base/text.h"

#include <zlib.h>

/* One gzip member that is made part by part. */
struct weir_gzip;

/** The caller frees: weir_gzip_free(). */
struct weir_gzip *weir_gzip_new(void);

/**
 * Appends the packed form of some bytes; what has been given so far can be unpacked from what has been appended.
 *
 * @param last  also ends the member; nothing may follow
 */
void weir_gzip_add(struct weir_gzip *gzip, struct weir_span bytes, bool last, struct weir_text *packed);

/** NULL is fine. */
void weir_gzip_free(struct weir_gzip *gzip);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the slab's files share: where a block is. Only they include it. */
#ifndef LIMITER_SLAB_PAGES_H
#define LIMITER_SLAB_PAGES_H

#include "limiter/memory/slab.h"

enum {
	SLAB_PAGE_GRANULES = SLAB_PAGE_BYTES / SLAB_GRANULE,
	SLAB_MARK_BYTES = 16, /* no more than SLAB_LEAST_BYTES, and a page has a whole number of them */
	SLAB_MARK_WORDS = CHUNK_BYTES / SLAB_MARK_BYTES / 64,
};

extern const uint16_t slab_sizes[SLAB_CLASSES];

static inline unsigned slab_capacity(unsigned size_class)
{
	return SLAB_PAGE_BYTES / slab_sizes[size_class];
}

static inline uint32_t slab_page_of(uint32_t ref)
{
	return ref / SLAB_PAGE_GRANULES;
}

static inline uint32_t slab_offset_in_page(uint32_t ref)
{
	return ref % SLAB_PAGE_GRANULES * SLAB_GRANULE;
}

static inline uint32_t slab_ref(uint32_t page, uint32_t block, uint8_t size_class)
{
	return page * SLAB_PAGE_GRANULES + block * slab_sizes[size_class] / SLAB_GRANULE;
}

static inline uint8_t *slab_page_base(const struct slab *slab, uint32_t page)
{
	return slab->bases[page / SLAB_PAGES] + (size_t)(page % SLAB_PAGES) * SLAB_PAGE_BYTES;
}

void slab_list_remove(struct slab *slab, uint32_t page);

#endif

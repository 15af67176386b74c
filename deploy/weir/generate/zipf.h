/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zipf's law: of n users the one of rank r (from 1) makes a share of the
 * traffic in proportion to r^-s. Drawn in constant time by Walker's alias
 * method, computed in whole numbers alone.
 *
 * Memory: 8 bytes a user, 20 while the table is made.
 */
#ifndef DEPLOY_WEIR_GENERATE_ZIPF_H
#define DEPLOY_WEIR_GENERATE_ZIPF_H

#include "deploy/weir/generate/random.h"

enum {
	GENERATE_ZIPF_MAX = 100000000,
	GENERATE_EXPONENT_UNIT = 1000000,
	GENERATE_EXPONENT_MAX = 10 * GENERATE_EXPONENT_UNIT,
};

/* One place of the table: most of it is its own number's, what lies above the
 * threshold is another's. */
struct generate_zipf_place {
	uint32_t threshold; /* in 2^-32 of the place */
	uint32_t alias;
};

struct generate_zipf {
	uint32_t count;
	struct generate_zipf_place *places; /* NULL: all are equally likely */
};

/**
 * @param count     1 to GENERATE_ZIPF_MAX
 * @param exponent  s in millionths, 0 to GENERATE_EXPONENT_MAX; 0: uniform
 */
void generate_zipf_init(struct generate_zipf *zipf, uint32_t count, uint32_t exponent);

/** The same from weights of the caller's: numbers below 2^36, not all zero. */
void generate_zipf_init_weights(struct generate_zipf *zipf, uint32_t count, const uint64_t *weights);
void generate_zipf_deinit(struct generate_zipf *zipf);

/** The place's number or its alias, from 64 random bits. */
static inline uint32_t generate_zipf_draw(const struct generate_zipf *zipf, uint64_t bits)
{
	uint32_t place = generate_scale((uint32_t)(bits >> 32), zipf->count);
	if (zipf->places == NULL)
		return place;
	return (uint32_t)bits < zipf->places[place].threshold ? place : zipf->places[place].alias;
}

#endif

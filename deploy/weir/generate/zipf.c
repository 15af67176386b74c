/* SPDX-License-Identifier: Apache-2.0 */
/*
 * r^-s is 2^(-s log2 r): the logarithm comes bit by bit from squaring, the
 * power from a product of square roots of a half. pow() would be shorter, but
 * its last bit differs from one C library to the next, and a single user drawn
 * differently moves every line after it.
 */
#include "deploy/weir/generate/zipf.h"

#include "common/base/alloc.h"

#include <stdlib.h>

enum {
	WEIGHT_BITS = 36,   /* of rank 1's weight: count times it stays below 2^63 */
	FRACTION_BITS = 32, /* of logarithms */
	ROOT_BITS = 62,     /* of the roots */
};

/* floor(sqrt(number)), bit by bit. */
static uint64_t square_root(unsigned __int128 number)
{
	uint64_t root = 0;
	for (int bit = 63; bit >= 0; bit--) {
		uint64_t next = root | UINT64_C(1) << bit;
		if ((unsigned __int128)next * next <= number)
			root = next;
	}
	return root;
}

/* log2 of a number >= 1, in 2^-32. */
static uint64_t logarithm(uint32_t number)
{
	unsigned whole = 31 - (unsigned)__builtin_clz(number);
	uint64_t mantissa = (uint64_t)number << (31 - whole); /* 1 <= m < 2, in 2^-31 */
	uint64_t result = whole;
	for (int i = 0; i < FRACTION_BITS; i++) {
		mantissa = (mantissa * mantissa) >> 31;
		result <<= 1;
		if (mantissa >> 32 != 0) {
			mantissa >>= 1;
			result |= 1;
		}
	}
	return result;
}

/* The weight of each rank: 2^(36 - s log2 r), at least 1. */
static void fill_weights(uint64_t *weights, uint32_t count, uint32_t exponent)
{
	uint64_t roots[FRACTION_BITS]; /* 2^-(1/2), 2^-(1/4), ... */
	uint64_t root = UINT64_C(1) << (ROOT_BITS - 1);
	for (int i = 0; i < FRACTION_BITS; i++)
		roots[i] = root = square_root((unsigned __int128)root << ROOT_BITS);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t power = (uint64_t)((unsigned __int128)logarithm(i + 1) * exponent / GENERATE_EXPONENT_UNIT);
		uint64_t weight = UINT64_C(1) << ROOT_BITS;
		for (int bit = 0; bit < FRACTION_BITS; bit++)
			if ((power >> (FRACTION_BITS - 1 - bit) & 1) != 0)
				weight = (uint64_t)(((unsigned __int128)weight * roots[bit]) >> ROOT_BITS);
		uint64_t shift = (power >> FRACTION_BITS) + (ROOT_BITS - WEIGHT_BITS);
		weights[i] = shift < 64 ? weight >> shift : 0;
		if (weights[i] == 0)
			weights[i] = 1;
	}
}

/*
 * Vose's way: numbers with less than an average share fill their places up from
 * one that has more, until every place is full.
 */
void generate_zipf_init_weights(struct generate_zipf *zipf, uint32_t count, const uint64_t *weights)
{
	uint64_t *rest = weir_alloc(count, sizeof *rest);       /* of each number, times count: an
                                          average one has `total` */
	uint32_t *waiting = weir_alloc(count, sizeof *waiting); /* poor ones from the left, rich ones from the right */
	uint32_t poor = 0, rich = count;
	uint64_t total = 0;
	for (uint32_t i = 0; i < count; i++)
		total += weights[i];
	*zipf = (struct generate_zipf){.count = count, .places = weir_alloc(count, sizeof *zipf->places)};
	for (uint32_t i = 0; i < count; i++) {
		rest[i] = weights[i] * count;
		zipf->places[i] = (struct generate_zipf_place){.threshold = UINT32_MAX, .alias = i};
		waiting[rest[i] < total ? poor++ : --rich] = i;
	}
	while (poor > 0 && rich < count) {
		uint32_t small = waiting[--poor], large = waiting[rich];
		zipf->places[small].threshold = (uint32_t)(((unsigned __int128)rest[small] << 32) / total);
		zipf->places[small].alias = large;
		rest[large] -= total - rest[small];
		if (rest[large] < total) {
			rich++;
			waiting[poor++] = large;
		}
	}
	free(rest);
	free(waiting);
}

void generate_zipf_init(struct generate_zipf *zipf, uint32_t count, uint32_t exponent)
{
	*zipf = (struct generate_zipf){.count = count};
	if (exponent == 0)
		return;
	uint64_t *weights = weir_alloc(count, sizeof *weights);
	fill_weights(weights, count, exponent);
	generate_zipf_init_weights(zipf, count, weights);
	free(weights);
}

void generate_zipf_deinit(struct generate_zipf *zipf)
{
	free(zipf->places);
	*zipf = (struct generate_zipf){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers of synthetic logs: splitmix64, the same on every machine.
 *
 * A counter that grows by an odd constant, mixed by two rounds of multiply and
 * shift (Steele, Lea, Flood 2014). The mixing alone serves as a hash of small
 * numbers: what a user is called, which browser a user has.
 */
#ifndef DEPLOY_WEIR_GENERATE_RANDOM_H
#define DEPLOY_WEIR_GENERATE_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct generate_random {
	uint64_t state;
};

static inline uint64_t generate_mix(uint64_t number)
{
	number = (number ^ (number >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ (number >> 27)) * UINT64_C(0x94d049bb133111eb);
	return number ^ (number >> 31);
}

static inline uint64_t generate_next(struct generate_random *random)
{
	return generate_mix(random->state += UINT64_C(0x9e3779b97f4a7c15));
}

/** 0..bound-1, from 32 random bits. */
static inline uint32_t generate_scale(uint32_t bits, uint32_t bound)
{
	return (uint32_t)(((uint64_t)bits * bound) >> 32);
}

static inline uint32_t generate_below(struct generate_random *random, uint32_t bound)
{
	return generate_scale((uint32_t)generate_next(random), bound);
}

/** True for a share, in 2^-32, of the calls. */
static inline bool generate_chance(struct generate_random *random, uint64_t share)
{
	return (uint32_t)generate_next(random) < share;
}

#endif

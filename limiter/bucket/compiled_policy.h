/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy as a shard works by it, compiled from all policies so far.
 *
 * A bucket says which layout it was written in: its zone, as that zone's limits
 * stood from some version of the policy on. Layouts are numbered in the order
 * in which the policies' history brought them up, so that the same history
 * gives the same numbers in every process, and a bucket in a store stays
 * readable: it has every layout that its history knew, and which one follows
 * which.
 *
 * A compiled policy is immutable and shared by all threads; layouts of keys
 * whose rates an operator multiplies are made when they are first asked for. It
 * points into the policies that it was compiled from.
 */
#ifndef LIMITER_COMPILED_POLICY_H
#define LIMITER_COMPILED_POLICY_H

#include "common/policy/policy.h"

struct layout;

/* One zone as of a version of the policy. */
struct compiled_zone {
	const struct weir_zone *zone; /* id, name, limits, count, block_for, mode, history: lives with its policy */
	uint32_t order;               /* its place in the policy */
	const struct layout *layout;  /* how its buckets are written (bucket_layout.h) */
};

struct compiled_policy;

/**
 * Compiles the last of some policies.
 *
 * @param policies  every policy so far by ascending version, at least one; borrowed for as long as the result lives
 */
struct compiled_policy *compiled_policy_new(const struct weir_policy *const *policies, size_t count);
void compiled_policy_free(struct compiled_policy *compiled);

/** The version of the policy in force. */
uint64_t compiled_policy_version(const struct compiled_policy *compiled);

/** Zones in force, in the policy's order. */
uint32_t compiled_policy_zone_count(const struct compiled_policy *compiled);
const struct compiled_zone *compiled_policy_zone_at(const struct compiled_policy *compiled, uint32_t order);

/** The zone in force with an id, NULL if there is none. */
const struct compiled_zone *compiled_policy_zone(const struct compiled_policy *compiled, uint32_t id);

/** The zone in force with a name, NULL if there is none. */
const struct compiled_zone *compiled_policy_zone_named(const struct compiled_policy *compiled, struct weir_span name);

/**
 * The layout of a bucket, by its number and its scale (bucket_scale()), NULL if the history has none such.
 *
 * @param number  with LAYOUT_SCALED or without
 * @param scale   thousandths; 1000 where it is not scaled
 * @thread any
 */
const struct layout *compiled_policy_layout(const struct compiled_policy *compiled, uint32_t number, uint32_t scale);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of algorithms. Each is the descriptor `weir_limit_NAME` of a file limit_NAME.c, and has one line here; the
 * order is that in which people see them listed.
 */
#include "common/algorithm/algorithm.h"

#include <string.h>

/* clang-format off */
#define ALGORITHMS(ALGORITHM) \
	ALGORITHM(sliding_window) \
	ALGORITHM(fixed_window) \
	ALGORITHM(uniform) \
	ALGORITHM(token_bucket) \
	ALGORITHM(gcra) \
	ALGORITHM(queue) \
	/* one line each */
/* clang-format on */

#define DECLARE(name) extern const struct weir_algorithm weir_limit_##name;
#define ADDRESS(name) &weir_limit_##name,
#define NAME(name) #name,

ALGORITHMS(DECLARE)

static const struct weir_algorithm *const algorithms[] = {ALGORITHMS(ADDRESS) NULL};
static const char *const names[] = {ALGORITHMS(NAME) NULL};

const struct weir_algorithm *weir_algorithm_at(size_t index)
{
	return index < sizeof algorithms / sizeof algorithms[0] ? algorithms[index] : NULL;
}

const struct weir_algorithm *weir_algorithm_named(const char *name)
{
	size_t i = 0;
	while (name != NULL && names[i] != NULL && strcmp(names[i], name) != 0)
		i++;
	return name != NULL ? algorithms[i] : NULL;
}

const char *const *weir_algorithm_names(void)
{
	return names;
}

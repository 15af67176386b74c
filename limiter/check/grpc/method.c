/* SPDX-License-Identifier: Apache-2.0 */
/* The table of methods. */
#include "limiter/check/grpc/internal.h"

static const struct grpc_method *const methods[] = {
	&method_rate_limit,
	&method_quota,
	&method_health_check,
	&method_health_watch,
};

enum { METHOD_COUNT = sizeof methods / sizeof *methods };

_Static_assert((int)METHOD_COUNT <= (int)LINK_KINDS_MAX, "each has a counter");

const struct grpc_method *method_find(struct weir_span path)
{
	for (size_t i = 0; i < METHOD_COUNT; i++)
		if (weir_span_equal(path, weir_span_of(methods[i]->path)))
			return methods[i];
	return NULL;
}

uint32_t method_index(const struct grpc_method *method)
{
	uint32_t index = 0;
	while (methods[index] != method)
		index++;
	return index;
}

const struct grpc_method *method_at(uint32_t index)
{
	return index < METHOD_COUNT ? methods[index] : NULL;
}

const char *grpc_method_name(uint32_t index)
{
	const struct grpc_method *method = method_at(index);
	return method != NULL ? method->name : NULL;
}

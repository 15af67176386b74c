/* SPDX-License-Identifier: Apache-2.0 */
/* A query argument by its name, for handlers of tests. */
#ifndef TESTS_UNIT_HTTP_QUERY_H
#define TESTS_UNIT_HTTP_QUERY_H

#include "common/http/http.h"

#include <stdbool.h>
#include <string.h>

struct http_query_value {
	const char *name;
	const char *value;
};

static inline bool http_query_is(void *context, struct weir_span name, struct weir_span value)
{
	struct http_query_value *wanted = context;
	if (!weir_span_equal(name, weir_span_of(wanted->name)))
		return true;
	wanted->value = value.at != NULL ? value.at : "";
	return false;
}

/* "" for ?name, NULL if there is none; libmicrohttpd ends each value with a NUL. */
static inline const char *http_query_value(const struct weir_http_request *request, const char *name)
{
	struct http_query_value wanted = {.name = name};
	weir_http_each_query(request, http_query_is, &wanted);
	return wanted.value;
}

#endif

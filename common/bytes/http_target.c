/* SPDX-License-Identifier: Apache-2.0 */
/* A target is of the absolute form if a scheme of HTTP begins it: all others begin with "/" or "*", or have no "://". */
#include "common/bytes/http_target.h"

#include <string.h>
#include <strings.h>

static uint32_t scheme_length(struct weir_span target)
{
	static const char *const schemes[] = {"http://", "https://"};
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
		uint32_t length = (uint32_t)strlen(schemes[i]);
		if (target.length >= length && strncasecmp(target.at, schemes[i], length) == 0)
			return length;
	}
	return 0;
}

bool weir_http_target_split(struct weir_span *target, struct weir_span *authority)
{
	uint32_t begin = scheme_length(*target), end = begin;
	*authority = (struct weir_span){0};
	if (begin == 0)
		return true;
	while (end < target->length && strchr("/?#", target->at[end]) == NULL)
		end++;
	*authority = (struct weir_span){.at = target->at + begin, .length = end - begin};
	*target = end < target->length ? (struct weir_span){.at = target->at + end, .length = target->length - end}
	                               : (struct weir_span){.at = "/", .length = 1};
	return authority->length > 0 && authority->at[0] != ':' && memchr(authority->at, '@', authority->length) == NULL;
}

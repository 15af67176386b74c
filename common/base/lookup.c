/* SPDX-License-Identifier: Apache-2.0 */
/* A service that ends for a name which nobody could look up is to be started again; one that ends for a wrong name is not. */
#include "common/base/lookup.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>

enum weir_status weir_lookup_status(int result)
{
	switch (result) {
	case EAI_AGAIN:
	case EAI_FAIL: /* a name server refused, or failed */
	case EAI_MEMORY:
	case EAI_SYSTEM: return WEIR_IO;
	default: return WEIR_INVALID;
	}
}

const char *weir_lookup_words(int result)
{
	return result == EAI_SYSTEM ? weir_errno_words(errno) : gai_strerror(result);
}

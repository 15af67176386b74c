/* SPDX-License-Identifier: Apache-2.0 */
/* Host and port of a text, without asking any resolver. */
#include "common/bytes/listen_address.h"

#include "common/base/alloc.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

bool weir_listen_address(const char *text, char **host, uint16_t *port)
{
	const char *colon = strrchr(text, ':');
	size_t digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0;
	long number = digits >= 1 && digits <= 5 && colon[1 + digits] == '\0' ? strtol(colon + 1, NULL, 10) : -1;
	size_t length = colon != NULL ? (size_t)(colon - text) : 0;
	bool bracketed = length >= 2 && text[0] == '[' && text[length - 1] == ']';
	if (number < 0 || number > UINT16_MAX || (!bracketed && memchr(text, ':', length) != NULL))
		return false;
	*host = length == 0 ? weir_copy("*", 1) : bracketed ? weir_copy(text + 1, length - 2) : weir_copy(text, length);
	*port = (uint16_t)number;
	return true;
}

bool weir_listen_is_loopback(const char *host)
{
	unsigned char address[4];
	return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
	       (inet_pton(AF_INET, host, address) == 1 && address[0] == 127);
}

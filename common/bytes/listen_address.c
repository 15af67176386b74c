/* SPDX-License-Identifier: Apache-2.0 */
/* Host and port of a text, without asking any resolver. */
#include "common/bytes/listen_address.h"

#include "common/base/alloc.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 253 }; /* RFC 1035, as text */

/* What stands in brackets: an IPv6 address, perhaps of a zone ("fe80::1%eth0"). */
static bool is_v6(const char *host, size_t length)
{
	char text[INET6_ADDRSTRLEN];
	unsigned char address[16];
	const char *zone = memchr(host, '%', length);
	size_t digits = zone != NULL ? (size_t)(zone - host) : length;
	if (digits >= sizeof text || (zone != NULL && digits + 1 == length))
		return false;
	for (size_t i = digits; i < length; i++)
		if (strchr("[] ", host[i]) != NULL)
			return false;
	memcpy(text, host, digits);
	text[digits] = '\0';
	return inet_pton(AF_INET6, text, address) == 1;
}

/* A name, an IPv4 address, "*", or nothing. */
static bool is_name(const char *host, size_t length)
{
	static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	char text[NAME_MAX_BYTES + 1];
	struct in_addr address;
	if (length == 1 && host[0] == '*')
		return true;
	if (length > NAME_MAX_BYTES || strspn(host, characters) < length)
		return false;
	if (length == 0 || strspn(host, "0123456789.") < length)
		return true;
	memcpy(text, host, length);
	text[length] = '\0';
	return inet_aton(text, &address) != 0; /* as who listens reads it: "127.1", too */
}

bool weir_listen_address(const char *text, char **host, uint16_t *port)
{
	const char *colon = strrchr(text, ':');
	size_t digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0;
	long number = digits >= 1 && digits <= 5 && colon[1 + digits] == '\0' ? strtol(colon + 1, NULL, 10) : -1;
	size_t length = colon != NULL ? (size_t)(colon - text) : 0;
	bool bracketed = length >= 2 && text[0] == '[' && text[length - 1] == ']';
	if (number < 0 || number > UINT16_MAX || !(bracketed ? is_v6(text + 1, length - 2) : is_name(text, length)))
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Most hosts are in their form as they stand, or up to their port: one scan tells, and nothing is copied. */
#include "common/record/served_host.h"

#include "common/bytes/address.h"

#include <stdbool.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_capital(char c)
{
	return c >= 'A' && c <= 'Z';
}

/* Letters of other scripts may stand in a name, too. */
static bool is_name_byte(char c)
{
	char small = (char)(c | 0x20);
	return (small >= 'a' && small <= 'z') || is_digit(c) || c == '.' || c == '-' || c == '_' || c == '*' ||
	       (unsigned char)c >= 0x80;
}

static bool is_address_byte(char c)
{
	char small = (char)(c | 0x20);
	return (small >= 'a' && small <= 'f') || is_digit(c) || c == ':' || c == '.';
}

/* Where the name ends, or the address in brackets; NULL: it begins with neither. */
static const char *behind_name(const char *at, const char *end)
{
	const char *begin = at;
	if (*at != '[') {
		while (at < end && is_name_byte(*at))
			at++;
		return at > begin ? at : NULL;
	}
	for (at++; at < end && is_address_byte(*at);)
		at++;
	return at < end && *at == ']' && at - begin > 1 ? at + 1 : NULL;
}

/* An address of IPv6 without brackets, perhaps with its zone. */
static bool is_bare_address(struct weir_span host)
{
	struct weir_address ignored;
	const char *zone = memchr(host.at, '%', host.length);
	if (zone != NULL)
		host.length = (uint32_t)(zone - host.at);
	return weir_address_parse(host, &ignored);
}

struct weir_span weir_served_host(struct weir_span host, char room[WEIR_SERVED_HOST_BYTES])
{
	const char *end = host.at + host.length, *stop = behind_name(host.at, end), *rest = stop;
	if (stop == NULL || stop - host.at > WEIR_SERVED_HOST_BYTES)
		return host;
	if (rest < end && *rest == ':')
		for (rest++; rest < end && is_digit(*rest);)
			rest++;
	if (rest < end && *stop == ':' && !is_bare_address(host)) /* servers look no further than to the colon */
		rest = end;
	bool dot = stop - host.at > 1 && stop[-1] == '.';
	if (rest < end || (dot && stop[-2] == '.')) /* of two dots one would be left */
		return host;
	struct weir_span served = {.at = host.at, .length = (uint32_t)(stop - host.at) - dot};
	uint32_t same = 0;
	while (same < served.length && !is_capital(served.at[same]))
		same++;
	if (same == served.length)
		return served;
	for (uint32_t i = 0; i < served.length; i++)
		room[i] = is_capital(served.at[i]) ? (char)(served.at[i] | 0x20) : served.at[i];
	served.at = room;
	return served;
}

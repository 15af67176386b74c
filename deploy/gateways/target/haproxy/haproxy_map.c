/* SPDX-License-Identifier: Apache-2.0 */
/* A command is split at blanks and semicolons, and << begins a payload, unless a backslash stands before them. */
#include "deploy/gateways/target/haproxy/haproxy_map.h"

#define LAST_SECOND INT64_C(253402300799) /* of the year 9999 */

bool haproxy_map_fits(struct weir_span key)
{
	/* "#" would name an entry by its reference. */
	if (key.length == 0 || key.length > HAPROXY_MAP_KEY_MAX_BYTES || key.at[0] == '#')
		return false;
	for (uint32_t i = 0; i < key.length; i++)
		if (key.at[i] == '\0' || key.at[i] == '\n' || key.at[i] == '\r')
			return false;
	return true;
}

bool haproxy_map_is_plain(struct weir_span key)
{
	for (uint32_t i = 0; i < key.length; i++)
		if (key.at[i] <= ' ' || key.at[i] > '~' || key.at[i] == ';' || key.at[i] == '\\' || key.at[i] == '<')
			return false;
	return true;
}

void haproxy_map_word(struct weir_text *text, struct weir_span key)
{
	for (uint32_t i = 0; i < key.length; i++) {
		char byte = key.at[i];
		if (byte == ' ' || byte == '\t' || byte == ';' || byte == '\\' || byte == '<')
			weir_text_append(text, "\\", 1);
		weir_text_append(text, &byte, 1);
	}
}

void haproxy_map_until(struct weir_text *text, int64_t until_ms)
{
	int64_t seconds = until_ms / 1000 + (until_ms % 1000 > 0);
	weir_text_int(text, seconds > LAST_SECOND ? LAST_SECOND : seconds);
}

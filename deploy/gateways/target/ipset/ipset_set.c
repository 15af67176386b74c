/* SPDX-License-Identifier: Apache-2.0 */
/* A listing is read for a few words that stand in it. */
#include "deploy/gateways/target/ipset/ipset_set.h"

#include "deploy/gateways/target/network_key.h"

#include <stdio.h>
#include <stdlib.h>

bool ipset_is_name(struct weir_span name)
{
	for (uint32_t i = 0; i < name.length; i++) {
		char byte = name.at[i];
		bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
		             byte == '_' || (i > 0 && (byte == '-' || byte == '.'));
		if (!plain)
			return false;
	}
	return name.length > 0 && name.length < IPSET_NAME_BYTES;
}

/* What stands behind a word; NULL: it does not. */
static const char *behind(const char *text, const char *word)
{
	const char *found = strstr(text, word);
	return found != NULL ? found + strlen(word) : NULL;
}

enum weir_status ipset_set_read(const char *name, struct weir_span listing, struct ipset_set *set,
                                struct weir_error *error)
{
	char text[1024];
	snprintf(text, sizeof text, "%.*s", (int)(listing.length < sizeof text ? listing.length : sizeof text - 1),
	         listing.length > 0 ? listing.at : "");
	const char *type = behind(text, "\nType: "), *most = behind(text, " maxelem ");
	*set = (struct ipset_set){.v6 = strstr(text, " family inet6 ") != NULL};
	set->networks = type != NULL && strncmp(type, "hash:net\n", 9) == 0;
	if (type == NULL || (!set->networks && strncmp(type, "hash:ip\n", 8) != 0) || strstr(text, " netmask ") != NULL)
		return weir_fail(error, WEIR_INVALID, "the set %s must be of type hash:ip or hash:net, without a netmask",
		                 name);
	if (strstr(text, " timeout ") == NULL)
		return weir_fail(error, WEIR_INVALID, "elements of the set %s cannot expire: create it with `timeout 0`", name);
	unsigned long number = most != NULL ? strtoul(most, NULL, 10) : 0;
	set->most = number > 0 && number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
	return WEIR_OK;
}

bool ipset_set_element(const struct ipset_set *set, struct weir_span key, bool any_size, char text[IPSET_ELEMENT_BYTES])
{
	struct weir_network network;
	if (!network_key(key, any_size, &network))
		return false;
	bool v4 = weir_address_is_v4(&network.base) && network.prefix >= 96;
	if (v4 == set->v6 || (network.prefix < 128 && !set->networks))
		return false;
	uint32_t length = weir_address_format(&network.base, text);
	if (network.prefix < 128)
		snprintf(text + length, IPSET_ELEMENT_BYTES - length, "/%u", network.prefix - (v4 ? 96U : 0U));
	return true;
}

uint32_t ipset_timeout_s(int64_t until_ms, int64_t now_ms)
{
	if (until_ms > now_ms + IPSET_TIMEOUT_MOST_MS)
		return 0;
	return until_ms > now_ms ? (uint32_t)((until_ms - now_ms + 999) / 1000) : 1;
}

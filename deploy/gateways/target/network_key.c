/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on what strangers may have blocked. */
#include "deploy/gateways/target/network_key.h"

#include <string.h>

bool network_key(struct weir_span key, bool any_size, struct weir_network *network)
{
	const char *why;
	if (key.length == 0 || !weir_network_parse(key, network, &why))
		return false;
	bool v4 = weir_address_is_v4(&network->base) && network->prefix >= 96;
	return any_size || network->prefix >= (v4 ? 96 + NETWORK_KEY_LEAST4 : NETWORK_KEY_LEAST6);
}

bool network_key_has_mapped(const struct weir_network *network)
{
	static const struct weir_address mapped = {.bytes = {[10] = 0xff, [11] = 0xff}};
	uint8_t whole = network->prefix / 8, rest = (uint8_t)(0xff00 >> network->prefix % 8);
	return network->prefix < 96 && memcmp(network->base.bytes, mapped.bytes, whole) == 0 &&
	       network->base.bytes[whole] == (mapped.bytes[whole] & rest);
}

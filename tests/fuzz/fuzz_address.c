/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as an address and as a network, against the C library's reading of it. */
#include "common/base/alloc.h"
#include "common/bytes/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_address(struct weir_span text)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	uint8_t expected[16];
	char *terminated = weir_copy(text.at, text.length);
	struct weir_address address, again;
	memcpy(expected, mapped, sizeof mapped);
	bool valid = strlen(terminated) == text.length &&
	             (inet_pton(AF_INET, terminated, expected + 12) == 1 || inet_pton(AF_INET6, terminated, expected) == 1);
	bool read = weir_address_parse(text, &address);
	assert(read == valid);
	if (read) {
		char written[WEIR_ADDRESS_TEXT_BYTES];
		uint32_t length = weir_address_format(&address, written);
		assert(memcmp(address.bytes, expected, sizeof expected) == 0);
		assert(length == strlen(written));
		bool back = weir_address_parse((struct weir_span){.at = written, .length = length}, &again);
		assert(back && memcmp(&address, &again, sizeof address) == 0);
		(void)back;
	}
	free(terminated);
}

static void check_network(struct weir_span text)
{
	struct weir_network network;
	const char *why = NULL;
	if (!weir_network_parse(text, &network, &why)) {
		assert(why != NULL);
		return;
	}
	assert(network.prefix <= 128);
	/* It holds its base, unless that is an IPv4 address in a network of IPv6. */
	bool crosses = network.prefix < 96 && weir_address_is_v4(&network.base);
	assert(weir_network_contains(&network, &network.base) == !crosses);
	if (network.prefix > 0 && network.prefix < 96) {
		struct weir_address outside = network.base;
		outside.bytes[0] ^= 0x80;
		assert(!weir_network_contains(&network, &outside));
	}
}

/* As logs write it: what is an address stays one, and its canonical text is read as itself. */
static void check_written(struct weir_span text)
{
	struct weir_address address, bare;
	char written[WEIR_ADDRESS_TEXT_BYTES];
	bool read = weir_address_read(text, &address);
	if (weir_address_parse(text, &bare))
		assert(read && memcmp(&address, &bare, sizeof bare) == 0);
	if (!read)
		return;
	struct weir_span canonical = {.at = written, .length = weir_address_format(&address, written)};
	bool again = weir_address_parse(canonical, &bare);
	assert(again && memcmp(&address, &bare, sizeof bare) == 0);
	(void)again;
}

/* The networks of a range lie one behind the other, from its first address to its last. */
static void check_range(struct weir_span text)
{
	struct weir_network networks[WEIR_RANGE_NETWORKS_MAX];
	const char *why = NULL;
	uint32_t count = weir_networks_parse(text, networks, &why);
	assert(count <= WEIR_RANGE_NETWORKS_MAX && (count > 0 || why != NULL));
	for (uint32_t i = 1; i < count; i++) {
		assert(memcmp(&networks[i - 1].base, &networks[i].base, sizeof networks[i].base) < 0);
		assert(!weir_network_contains(&networks[i - 1], &networks[i].base));
	}
	char *terminated = weir_copy(text.at, text.length);
	(void)weir_network_meant(terminated);
	free(terminated);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_span text = {.at = (const char *)data, .length = (uint32_t)size};
	check_address(text);
	check_network(text);
	check_written(text);
	check_range(text);
	return 0;
}

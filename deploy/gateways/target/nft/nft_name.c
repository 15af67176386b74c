/* SPDX-License-Identifier: Apache-2.0 */
/* Names go into scripts and command lines of nft: nothing but its identifiers is let through. */
#include "deploy/gateways/target/nft/nft_name.h"

#include "common/base/span.h"

#include <stdio.h>
#include <string.h>

static bool is_family(struct weir_span word)
{
	static const char *const families[] = {"ip", "ip6", "inet", "netdev", "bridge", "arp"};
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		if (weir_span_equal(word, weir_span_of(families[i])))
			return true;
	return false;
}

/* An identifier of nft. */
static bool is_name(struct weir_span word)
{
	for (uint32_t i = 0; i < word.length; i++) {
		char byte = word.at[i];
		bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
		if (!letter && (i == 0 || !((byte >= '0' && byte <= '9') || byte == '-' || byte == '.')))
			return false;
	}
	return word.length > 0 && word.length < 64;
}

static struct weir_span word_until(const char **at, char mark)
{
	const char *end = strchr(*at, mark);
	end = end != NULL ? end : *at + strlen(*at);
	struct weir_span word = {.at = *at, .length = (uint32_t)(end - *at)};
	*at = *end != '\0' ? end + 1 : end;
	return word;
}

size_t nft_names_read(const char *text, char (*names)[NFT_NAME_BYTES], size_t most)
{
	const char *at = text;
	struct weir_span family = word_until(&at, '/'), table = word_until(&at, '/');
	size_t count = 0;
	if (!is_family(family) || !is_name(table))
		return 0;
	while (*at != '\0') {
		struct weir_span name = word_until(&at, ',');
		if (!is_name(name) || count == most)
			return 0;
		snprintf(names[count++], NFT_NAME_BYTES, "%.*s %.*s %.*s", (int)family.length, family.at, (int)table.length,
		         table.at, (int)name.length, name.at);
	}
	return count;
}

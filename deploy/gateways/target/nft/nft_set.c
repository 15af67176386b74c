/* SPDX-License-Identifier: Apache-2.0 */
/* A listing is read for a few words that stand in it; elements are written canonically, as the kernel has them. */
#include "deploy/gateways/target/nft/nft_set.h"

#include "deploy/gateways/table/decision_record.h"
#include "deploy/gateways/target/network_key.h"

#include <stdio.h>

enum {
	TIMEOUT_LEAST_MS = 20, /* the kernel counts in ticks, and takes what is below one for none */
	DAY_MS = 86400000,     /* nft reads numbers of up to eight digits */
};

#define TIMEOUT_MOST_MS (INT64_C(36500) * DAY_MS) /* the kernel takes five hundred years */

/* The rest of the line behind a word at its beginning, which may be all of it. */
static bool line_behind(struct weir_span listing, const char *word, struct weir_span *rest)
{
	const char *at = listing.at, *end = listing.at + listing.length;
	size_t length = strlen(word);
	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		line_end = line_end != NULL ? line_end : end;
		while (at < line_end && (*at == ' ' || *at == '\t'))
			at++;
		size_t left = (size_t)(line_end - at);
		if (left >= length && memcmp(at, word, length) == 0 && (left == length || at[length] == ' ')) {
			*rest = (struct weir_span){.at = at + length, .length = (uint32_t)(left - length)};
			return true;
		}
		at = line_end < end ? line_end + 1 : end;
	}
	return false;
}

static bool has(struct weir_span line, const char *word)
{
	return memmem(line.at, line.length, word, strlen(word)) != NULL;
}

/* The number that stands behind a word; what is larger than any set is the largest. */
static uint32_t number_of(struct weir_span line)
{
	const char *at = line.at, *end = line.at + line.length;
	uint64_t number = 0;
	while (at < end && *at == ' ')
		at++;
	for (; at < end && *at >= '0' && *at <= '9' && number <= UINT32_MAX; at++)
		number = 10 * number + (uint64_t)(*at - '0');
	return number <= UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

bool nft_set_read(struct weir_span listing, struct nft_set *set)
{
	struct weir_span line;
	*set = (struct nft_set){0};
	if (listing.length == 0)
		return false;
	if (line_behind(listing, "type", &line)) {
		set->v6 = has(line, "ipv6_addr");
		if ((!set->v6 && !has(line, "ipv4_addr")) || has(line, " . "))
			return false;
	} else if (line_behind(listing, "typeof", &line)) {
		set->v6 = has(line, "ip6 ");
		if ((!set->v6 && !has(line, "ip ")) || has(line, " . "))
			return false;
	} else {
		return false;
	}
	if (line_behind(listing, "flags", &line)) {
		set->interval = has(line, "interval");
		set->timeout = has(line, "timeout");
	}
	set->ends = line_behind(listing, "timeout", &line);
	set->timeout |= set->ends; /* nft leaves that flag out then */
	if (line_behind(listing, "size", &line))
		set->most = number_of(line);
	set->merges = line_behind(listing, "auto-merge", &line);
	return true;
}

void nft_set_elements(struct weir_span listing, void (*seen)(void *context, struct weir_span element), void *context)
{
	static const char mark[] = "elements = {";
	const char *at = listing.length > 0 ? memmem(listing.at, listing.length, mark, strlen(mark)) : NULL;
	const char *end = at != NULL ? memchr(at, '}', (size_t)(listing.at + listing.length - at)) : NULL;
	if (end == NULL)
		return;
	for (at += strlen(mark); at < end;) {
		while (at < end && (*at == ' ' || *at == '\t' || *at == '\n'))
			at++;
		const char *word = at;
		while (at < end && *at != ' ' && *at != ',' && *at != '\t' && *at != '\n')
			at++;
		if (at > word)
			seen(context, (struct weir_span){.at = word, .length = (uint32_t)(at - word)});
		const char *comma = memchr(at, ',', (size_t)(end - at));
		at = comma != NULL ? comma + 1 : end;
	}
}

bool nft_set_element(const struct nft_set *set, struct weir_span key, bool any_size, char text[NFT_SET_ELEMENT_BYTES])
{
	struct weir_network network;
	if (!network_key(key, any_size, &network))
		return false;
	bool v4 = weir_address_is_v4(&network.base) && network.prefix >= 96;
	if (v4 == set->v6 || (network.prefix < 128 && !set->interval))
		return false;
	uint32_t length = weir_address_format(&network.base, text);
	if (network.prefix < 128)
		snprintf(text + length, NFT_SET_ELEMENT_BYTES - length, "/%u", network.prefix - (v4 ? 96U : 0U));
	return true;
}

void nft_set_timeout(const struct nft_set *set, struct weir_text *text, int64_t until_ms, int64_t now_ms)
{
	if (until_ms == DECISION_NO_END && !set->ends)
		return;
	int64_t left_ms = until_ms - now_ms;
	left_ms = left_ms > TIMEOUT_LEAST_MS ? left_ms : TIMEOUT_LEAST_MS;
	left_ms = left_ms < TIMEOUT_MOST_MS ? left_ms : TIMEOUT_MOST_MS;
	weir_text_puts(text, " timeout ");
	if (left_ms >= DAY_MS) {
		weir_text_int(text, left_ms / DAY_MS);
		weir_text_puts(text, "d");
	}
	weir_text_int(text, left_ms % DAY_MS);
	weir_text_puts(text, "ms");
}

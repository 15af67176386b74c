/* SPDX-License-Identifier: Apache-2.0 */
/* Sorted texts. That a network covers an address is asked by size, as few sizes stand in one list. */
#include "deploy/gateways/target/list_words.h"

#include "common/base/alloc.h"
#include "common/bytes/address.h"

#include <stdio.h>
#include <stdlib.h>

void list_words_add(struct list_words *words, struct weir_span text, int64_t since_ms)
{
	struct weir_network network;
	const char *why;
	if (words->count == words->room) {
		words->room = words->room > 0 ? 2 * words->room : 1024;
		words->at = weir_realloc(words->at, words->room, sizeof *words->at);
	}
	words->at[words->count++] =
		(struct list_word){.text = {.length = text.length}, .begin = words->bytes.length, .since_ms = since_ms};
	weir_text_append(&words->bytes, text.at, text.length);
	if (text.length > 0 && memchr(text.at, '/', text.length) != NULL && weir_network_parse(text, &network, &why))
		words->prefixes[network.prefix] = true;
}

static int compare_texts(struct weir_span a, struct weir_span b)
{
	uint32_t common = a.length < b.length ? a.length : b.length;
	int order = common > 0 ? memcmp(a.at, b.at, common) : 0;
	return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

static int compare(const void *left, const void *right)
{
	const struct list_word *a = left, *b = right;
	int order = compare_texts(a->text, b->text);
	return order != 0 ? order : (a->since_ms < b->since_ms) - (a->since_ms > b->since_ms);
}

static int compare_with(const void *text, const void *word)
{
	return compare_texts(*(const struct weir_span *)text, ((const struct list_word *)word)->text);
}

void list_words_sort(struct list_words *words)
{
	size_t kept = 0;
	for (size_t i = 0; i < words->count; i++)
		words->at[i].text.at = words->bytes.at + words->at[i].begin;
	if (words->count > 0)
		qsort(words->at, words->count, sizeof *words->at, compare);
	for (size_t i = 0; i < words->count; i++)
		if (kept == 0 || compare_texts(words->at[kept - 1].text, words->at[i].text) != 0)
			words->at[kept++] = words->at[i];
	words->count = kept;
}

bool list_words_have(const struct list_words *words, struct weir_span text)
{
	return words->count > 0 && bsearch(&text, words->at, words->count, sizeof *words->at, compare_with) != NULL;
}

bool list_words_cover(const struct list_words *words, struct weir_span text)
{
	struct weir_network network;
	const char *why;
	char shown[WEIR_NETWORK_TEXT_BYTES];
	if (list_words_have(words, text))
		return true;
	if (!weir_network_parse(text, &network, &why))
		return false;
	bool v4 = weir_address_is_v4(&network.base) && network.prefix >= 96;
	for (int prefix = (int)network.prefix - 1; prefix >= (v4 ? 96 : 0); prefix--) {
		if (!words->prefixes[prefix])
			continue;
		network.prefix = (uint8_t)prefix;
		weir_address_mask(&network.base, (uint8_t)(v4 ? prefix - 96 : 32), (uint8_t)prefix);
		if (list_words_have(words, weir_span_of(weir_network_format(&network, shown))))
			return true;
	}
	return false;
}

void list_words_deinit(struct list_words *words)
{
	weir_text_deinit(&words->bytes);
	free(words->at);
	*words = (struct list_words){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a message of the decisions topic: read or refused in words, and
 * what is read can be taken in, written by every kind of list, and told to be
 * over.
 *
 * The first byte splits the rest: so many bytes are the message key.
 */
#include "deploy/gateways/table/block_table.h"
#include "deploy/gateways/target/haproxy/haproxy_map.h"
#include "deploy/gateways/target/nft/nft_set.h"
#include "deploy/gateways/target/nginx/nginx_map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PARTITIONS = 4, NOW_MS = 1000 };

static void write_lists(const struct decision_record *record)
{
	struct weir_text text = {0};
	char element[NFT_SET_ELEMENT_BYTES];
	if (nginx_map_fits(record->key)) {
		nginx_map_line(&text, record->key, record->until_ms);
		assert(memchr(text.at, '\0', text.length) == NULL && text.at[text.length - 1] == '\n');
	}
	weir_text_clear(&text);
	if (haproxy_map_fits(record->key)) {
		haproxy_map_word(&text, record->key);
		assert(text.length >= record->key.length && memchr(text.at, '\n', text.length) == NULL);
		assert(!haproxy_map_is_plain(record->key) || text.length == record->key.length);
	}
	for (unsigned i = 0; i < 4; i++) {
		struct nft_set set = {.v6 = i & 1, .interval = i & 2};
		if (nft_set_element(&set, record->key, record->by_operator, element))
			assert(strspn(element, "0123456789abcdef.:/") == strlen(element));
	}
	weir_text_deinit(&text);
}

static void take_in(const struct decision_record *record)
{
	struct block_table_options options = {.partitions = PARTITIONS, .max = 1, .keep_json = true};
	struct block_table *table = block_table_new(&options);
	struct weir_text text = {0};
	enum block_outcome outcome = block_table_apply(table, record, NOW_MS);
	const struct block_entry *entry = block_table_find(table, record->zone, record->key);
	assert((entry != NULL) == (!record->lift && record->until_ms > NOW_MS));
	assert(outcome == (entry != NULL ? BLOCK_APPLIED : BLOCK_OVER));
	if (entry != NULL) {
		assert(memchr(entry->json, '\n', entry->json_length) == NULL);
		decision_record_end_json(&text, block_entry_json(entry), entry->partition, entry->version, "end", NOW_MS);
		assert(memchr(text.at, '\n', text.length) == NULL);
	}
	assert(block_table_apply(table, record, NOW_MS) != BLOCK_APPLIED);
	block_table_free(table);
	weir_text_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	size_t key = data[0] < size - 1 ? data[0] : size - 1;
	/* Copies of their own, so that a read past an end is seen. */
	char *copy = malloc(size), *payload = malloc(size);
	memcpy(copy, data + 1, key);
	memcpy(payload, data + 1 + key, size - 1 - key);
	struct weir_message message = {.partition = 3,
	                               .key = {.at = copy, .length = (uint32_t)key},
	                               .payload = {.at = payload, .length = (uint32_t)(size - 1 - key)}};
	struct decision_record record;
	struct weir_error error = {.text = ""};
	if (decision_record_parse(&message, &record, &error) == WEIR_OK) {
		assert(record.zone.length > 0 && record.at_ms >= 0 && record.until_ms >= 0);
		assert(!record.whole_zone || (record.lift && record.key.length == 0));
		write_lists(&record);
		take_in(&record);
	} else {
		assert(error.text[0] != '\0' && strchr(error.text, '\n') == NULL);
	}
	free(copy);
	free(payload);
	return 0;
}

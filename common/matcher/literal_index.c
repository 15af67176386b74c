/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk does not look at the bytes that keys have in common, so it may end at a key that the value does not begin with. But
 * if the value begins with a key at all, the walk has gone where that key is, and all that is below begins with it. So
 * one comparison with any key there says how far both agree, and what fits is that key or one that it begins with.
 */
#include "common/matcher/literal_index.h"

#include "common/base/alloc.h"

#include <stdlib.h>

uint32_t weir_literal_common(struct weir_span a, struct weir_span b)
{
	uint32_t length = a.length < b.length ? a.length : b.length, at = 0;
	uint64_t x, y;
	for (; at + sizeof x <= length; at += (uint32_t)sizeof x) {
		memcpy(&x, a.at + at, sizeof x);
		memcpy(&y, b.at + at, sizeof y);
		if (x != y)
			break;
	}
	while (at < length && a.at[at] == b.at[at])
		at++;
	return at;
}

int weir_literal_compare(const void *a, const void *b)
{
	const struct weir_literal *x = a, *y = b;
	uint32_t length = x->text.length < y->text.length ? x->text.length : y->text.length;
	int order = length > 0 ? memcmp(x->text.at, y->text.at, length) : 0;
	if (order != 0)
		return order;
	if (x->text.length != y->text.length)
		return x->text.length < y->text.length ? -1 : 1;
	return (int)x->whole - (int)y->whole;
}

/* The keys, and who wants each. */
static void init_keys(struct weir_literal_index *index, const struct weir_literal *literals, uint32_t count)
{
	uint32_t outer = WEIR_LITERAL_NONE;
	for (uint32_t i = 0; i < count;) {
		struct weir_literal_key *key = &index->keys[index->key_count];
		*key = (struct weir_literal_key){.text = literals[i].text, .beginnings = i};
		for (; i < count && !literals[i].whole && weir_span_equal(literals[i].text, key->text); i++)
			index->owners[i] = literals[i].owner;
		key->wholes = i;
		for (; i < count && weir_span_equal(literals[i].text, key->text); i++)
			index->owners[i] = literals[i].owner;
		key->end = i;
		while (outer != WEIR_LITERAL_NONE &&
		       weir_literal_common(index->keys[outer].text, key->text) < index->keys[outer].text.length)
			outer = index->keys[outer].outer;
		key->outer = outer;
		if (key->beginnings < key->wholes)
			outer = index->key_count;
		index->key_count++;
	}
}

/* Adds the nodes below one: a run of its keys for each byte at its depth. */
static void add_children(struct weir_literal_index *index, struct weir_literal_node *node)
{
	const struct weir_literal_key *keys = index->keys;
	node->depth = weir_literal_common(keys[node->key].text, keys[node->key_end - 1].text);
	node->children = index->node_count;
	uint32_t first = node->key + (keys[node->key].text.length == node->depth);
	while (first < node->key_end) {
		char byte = keys[first].text.at[node->depth];
		uint32_t end = first + 1;
		while (end < node->key_end && keys[end].text.at[node->depth] == byte)
			end++;
		index->bytes[index->node_count] = byte;
		index->nodes[index->node_count++] = (struct weir_literal_node){.key = first, .key_end = end};
		first = end;
	}
	node->child_count = index->node_count - node->children;
}

void weir_literal_index_init(struct weir_literal_index *index, const struct weir_literal *literals, uint32_t count)
{
	*index = (struct weir_literal_index){.keys = weir_alloc(count, sizeof *index->keys),
	                                     .owners = weir_alloc(count, sizeof *index->owners)};
	init_keys(index, literals, count);
	index->nodes = weir_alloc(2 * (size_t)index->key_count, sizeof *index->nodes);
	index->bytes = weir_alloc(2 * (size_t)index->key_count, 1);
	if (index->key_count > 0)
		index->nodes[index->node_count++] = (struct weir_literal_node){.key_end = index->key_count};
	for (uint32_t i = 0; i < index->node_count; i++)
		if (index->nodes[i].key_end - index->nodes[i].key > 1)
			add_children(index, &index->nodes[i]);
}

void weir_literal_index_deinit(struct weir_literal_index *index)
{
	free(index->keys);
	free(index->owners);
	free(index->nodes);
	free(index->bytes);
	*index = (struct weir_literal_index){0};
}

static void mark(const struct weir_literal_index *index, uint32_t first, uint32_t end, uint64_t *owners)
{
	for (uint32_t i = first; i < end; i++)
		owners[index->owners[i] / 64] |= UINT64_C(1) << index->owners[i] % 64;
}

void weir_literal_index_mark(const struct weir_literal_index *index, struct weir_span value, uint64_t *owners)
{
	if (index->node_count == 0)
		return;
	const struct weir_literal_node *node = &index->nodes[0];
	while (node->child_count > 0 && node->depth < value.length) {
		const char *bytes = index->bytes + node->children;
		const char *at = memchr(bytes, value.at[node->depth], node->child_count);
		if (at == NULL)
			break;
		node = &index->nodes[node->children + (uint32_t)(at - bytes)];
	}
	const struct weir_literal_key *key = &index->keys[node->key];
	uint32_t common = weir_literal_common(key->text, value);
	if (common == value.length && common == key->text.length)
		mark(index, key->wholes, key->end, owners);
	for (;;) {
		if (key->text.length <= common)
			mark(index, key->beginnings, key->wholes, owners);
		if (key->outer == WEIR_LITERAL_NONE)
			return;
		key = &index->keys[key->outer];
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list as texts, to hold what a gateway has against what it should have: filled, sorted, then asked.
 *
 * @thread one owner
 */
#ifndef DEPLOY_GATEWAYS_TARGET_LIST_WORDS_H
#define DEPLOY_GATEWAYS_TARGET_LIST_WORDS_H

#include "common/base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct list_word {
	struct weir_span text; /* once it is sorted */
	size_t begin;          /* in the bytes */
	int64_t since_ms;      /* whatever the caller says */
};

/* Zero-initialised is empty. */
struct list_words {
	struct weir_text bytes;
	struct list_word *at; /* owned */
	size_t count, room;
	bool prefixes[129]; /* of the networks in it: which sizes there are */
};

/** @param text  copied */
void list_words_add(struct list_words *words, struct weir_span text, int64_t since_ms);
/** After the last that is added. Of equal ones one stays: the latest. */
void list_words_sort(struct list_words *words);
/** Whether it has this. */
bool list_words_have(const struct list_words *words, struct weir_span text);
/** Whether it has this, or a network in which this lies. */
bool list_words_cover(const struct list_words *words, struct weir_span text);
void list_words_deinit(struct list_words *words);

#endif

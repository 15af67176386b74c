/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nft: sets of nftables, whose elements the kernel ends by itself.
 *
 * Everything goes through `nft -f -`, one transaction each: all of it or none.
 * An element that is there keeps its timeout when it is added again, so it is
 * added, removed, and added with the new one, which works from any state.
 *
 * A set of intervals takes no overlaps. A copy keeps the widest of those that
 * overlap, and empties the set in the transaction that fills it. A change that
 * the kernel refuses is cut in halves until what it refuses stands alone: an
 * address lies in a network that is there, and is left out; a network may have
 * narrower ones in its way, so all is copied. When a network goes, what was
 * left out may have room: all is copied.
 *
 * A set that has a size may be full. What it has already stands first, then
 * what ends last: what is beyond its size, and all from the first that it
 * refuses on, is left out unasked, as each costs a program's run. Once
 * something has ended all is copied by the next check.
 */
#include "deploy/gateways/target/nft/target_nft.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "deploy/gateways/target/exec/program.h"
#include "deploy/gateways/target/nft/nft_name.h"
#include "deploy/gateways/target/nft/nft_set.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	WORDS_MAX = 8, /* of a command, and NULL behind them */
	INTERVAL_MS = 50,
	CHECK_MS = 5000,
	MARGIN_MS = 1000, /* what a check looks for ends no sooner */
	SETS_MAX = 2,
	/* A refusal quotes its line, and marks the place in another: both are within PROGRAM_OUTPUT_MAX_BYTES. */
	LINE_ELEMENTS = 200,
	STOP_MS = 5000, /* a set that was emptied already is filled for so long once it is to stop */
};

struct element {
	struct weir_network network;
	char text[NFT_SET_ELEMENT_BYTES];
	int64_t until_ms; /* 0: to be removed */
	bool told;        /* the set may have it */
};

struct one_set {
	char name[NFT_NAME_BYTES]; /* "FAMILY TABLE SET" */
	struct nft_set set;
	struct element *elements; /* what is at work */
	size_t count, capacity;
	struct element sample; /* one that is there for long: what a check looks for; until_ms 0: none */
	bool flush;            /* the next transaction empties it first */
	bool overlaps;         /* something was left out for a network that is there */
	bool refused;          /* something may not be there, though it was told, since the last copy */
	bool crowded;          /* something was left out as it was full, or may have been, since the last copy */
	bool room;             /* something has ended since: it may be taken now */
	bool copying;          /* all of it is being written */
	bool copy_wanted;      /* a change to a network was refused */
	bool well;             /* it was looked at during this change, or copy */
	bool full;             /* what it has not yet it refuses */
};

struct nft_target {
	struct target target;
	struct one_set sets[SETS_MAX];
	size_t set_count;
	struct weir_text script;
	const _Atomic bool *stop;
	int64_t stop_end_ms; /* monotonic; 0: it is not to stop */
};

static enum weir_status run(const char *const *arguments, const struct weir_text *input, struct weir_text *said,
                            struct weir_error *error)
{
	struct program_run program = {.arguments = arguments,
	                              .input = input != NULL ? input->at : NULL,
	                              .input_bytes = input != NULL ? input->length : 0,
	                              .timeout_ms = TARGET_TIMEOUT_MS,
	                              .said = said};
	return program_run(&program, error);
}

/* A command's words; its set's name is of three at most. */
static void split(char *command, char *words[WORDS_MAX])
{
	size_t count = 0;
	for (char *word; (word = strsep(&command, " ")) != NULL;)
		words[count++] = word;
	words[count] = NULL;
}

/* What makes a set that is not there, behind nft's words. */
static void advise(const struct one_set *set, struct weir_error *error)
{
	if (strstr(error->text, "No such file or directory") != NULL)
		weir_error_append(
			error,
			" (there is no set %s: `nft add set %s '{ type ipv4_addr; flags timeout; }'` makes it in a table that is "
			"there; `weir setup nft` makes a table with sets and rules)",
			set->name, set->name);
}

/* Asks what the set is; it must be there, and let its elements end. */
static enum weir_status describe(struct one_set *set, struct weir_error *error)
{
	char command[NFT_NAME_BYTES + 16], *words[WORDS_MAX];
	snprintf(command, sizeof command, "nft -t list set %s", set->name);
	split(command, words);
	struct weir_text said = {0};
	enum weir_status status = run((const char *const *)words, NULL, &said, error);
	struct weir_span listing = {.at = said.at, .length = (uint32_t)said.length};
	if (status != WEIR_OK)
		advise(set, error);
	if (status == WEIR_OK && !nft_set_read(listing, &set->set))
		status = weir_fail(error, WEIR_IO, "the set %s does not hold addresses: it needs type ipv4_addr or ipv6_addr",
		                   set->name);
	else if (status == WEIR_OK && !set->set.timeout)
		status = weir_fail(error, WEIR_IO, "elements of the set %s cannot expire: it needs `flags timeout`", set->name);
	else if (status == WEIR_OK && set->set.merges)
		status = weir_fail(error, WEIR_IO,
		                   "the set %s has `auto-merge`, which makes neighbours expire together: remove it", set->name);
	weir_text_deinit(&said);
	return status;
}

/* ---- scripts ---- */

/* "VERB element SET { … }" lines. @param how  what of them: all, or those that stay, with their timeouts */
static void write_elements(struct nft_target *nft, const struct one_set *set, const char *verb, bool staying,
                           size_t from, size_t count, int64_t now_ms)
{
	size_t in_line = 0;
	for (size_t i = from; i < from + count; i++) {
		const struct element *element = &set->elements[i];
		if (staying && element->until_ms == 0)
			continue;
		if (in_line == 0)
			weir_text_printf(&nft->script, "%s element %s { ", verb, set->name);
		else
			weir_text_puts(&nft->script, ", ");
		weir_text_puts(&nft->script, element->text);
		if (staying)
			nft_set_timeout(&set->set, &nft->script, element->until_ms, now_ms);
		if (++in_line == LINE_ELEMENTS) {
			weir_text_puts(&nft->script, " }\n");
			in_line = 0;
		}
	}
	if (in_line > 0)
		weir_text_puts(&nft->script, " }\n");
}

/* @return WEIR_INVALID: nft ran and refused it; WEIR_IO: it did not run to its end */
static enum weir_status run_script(struct nft_target *nft, struct weir_error *error)
{
	static const char *const arguments[] = {"nft", "-f", "-", NULL};
	static const char refusal[] = "Error: ";
	struct weir_text said = {0};
	enum weir_status status = run(arguments, &nft->script, &said, error);
	if (status != WEIR_OK && said.length > 0 && memmem(said.at, said.length, refusal, strlen(refusal)) != NULL)
		status = WEIR_INVALID;
	weir_text_deinit(&said);
	weir_text_clear(&nft->script);
	return status;
}

/*
 * The one that ends last, of those that nft has taken in a copy. What a change adds is there also where all else was lost
 * since: one that it touches is no sample any more.
 */
static void note_sample(struct one_set *set, size_t from, size_t count)
{
	for (size_t i = from; i < from + count; i++) {
		const struct element *element = &set->elements[i];
		if (set->copying && element->until_ms > set->sample.until_ms)
			set->sample = *element;
		else if (!set->copying && strcmp(element->text, set->sample.text) == 0)
			set->sample.until_ms = 0;
	}
}

/* One transaction. @return as run_script */
static enum weir_status change(struct nft_target *nft, struct one_set *set, size_t from, size_t count, int64_t now_ms,
                               struct weir_error *error)
{
	if (set->flush) {
		weir_text_printf(&nft->script, "flush set %s\n", set->name);
	} else {
		write_elements(nft, set, "add", false, from, count, now_ms);
		write_elements(nft, set, "delete", false, from, count, now_ms);
	}
	write_elements(nft, set, "add", true, from, count, now_ms);
	enum weir_status status = run_script(nft, error);
	if (status != WEIR_OK)
		return status;
	set->flush = false;
	note_sample(set, from, count);
	return WEIR_OK;
}

static void leave_out(struct nft_target *nft, struct one_set *set, size_t count)
{
	weir_counter_add(&nft->target.unfit, count);
	set->overlaps |= set->set.interval;
	set->refused |= !set->set.interval;
}

static void leave_out_for_room(struct nft_target *nft, struct one_set *set, size_t count)
{
	leave_out(nft, set, count);
	set->refused = set->crowded = true;
}

/* Whether it ends here, as it is to stop: before a set is emptied, or when it takes too long to fill it again. */
static bool ends_here(struct nft_target *nft, const struct one_set *set)
{
	if (nft->stop == NULL || !*nft->stop)
		return false;
	if (nft->stop_end_ms == 0)
		nft->stop_end_ms = weir_monotonic_ms() + STOP_MS;
	return set->flush || weir_monotonic_ms() >= nft->stop_end_ms;
}

/* What is refused stands alone: the set is gone, or the element is not to be had. */
static enum weir_status take_refusal(struct nft_target *nft, struct one_set *set, const struct element *element,
                                     struct weir_error *error)
{
	enum weir_status status = set->well ? WEIR_OK : describe(set, error);
	if (status != WEIR_OK)
		return status;
	set->well = true;
	if (element == NULL)
		return WEIR_OK;
	set->crowded |= set->set.most > 0;
	set->full |= set->set.most > 0 && (set->copying || !set->set.interval); /* a copy has no overlaps to refuse */
	if (element->network.prefix < 128 && !set->copying)
		set->copy_wanted = true;
	else if (set->full)
		leave_out_for_room(nft, set, 1);
	else
		leave_out(nft, set, 1);
	return WEIR_OK;
}

/* In halves, until what is refused stands alone. @thread as deep as the count has bits */
static enum weir_status change_in_halves(struct nft_target *nft, struct one_set *set, size_t from, size_t count,
                                         int64_t now_ms, struct weir_error *error)
{
	if (ends_here(nft, set))
		return weir_fail(error, WEIR_IO, "stopped before the set %s was complete", set->name);
	if (set->full && !set->elements[from].told) {
		leave_out_for_room(nft, set, count);
		return WEIR_OK;
	}
	enum weir_status status = change(nft, set, from, count, now_ms, error);
	if (status != WEIR_INVALID)
		return status;
	if (count > 1) {
		status = change_in_halves(nft, set, from, count / 2, now_ms, error);
		return status != WEIR_OK ? status
		                         : change_in_halves(nft, set, from + count / 2, count - count / 2, now_ms, error);
	}
	return take_refusal(nft, set, count > 0 ? &set->elements[from] : NULL, error);
}

/* ---- elements ---- */

static bool take(struct one_set *set, struct weir_span key, bool any_size, int64_t until_ms, bool told)
{
	struct element element = {.until_ms = until_ms, .told = told};
	const char *why;
	if (!nft_set_element(&set->set, key, any_size, element.text) || !weir_network_parse(key, &element.network, &why))
		return false;
	if (set->count == set->capacity) {
		set->capacity = set->capacity > 0 ? 2 * set->capacity : 256;
		set->elements = weir_realloc(set->elements, set->capacity, sizeof *set->elements);
	}
	set->elements[set->count++] = element;
	return true;
}

/* @return whether some set can hold it */
static bool take_key(struct nft_target *nft, struct weir_span key, bool any_size, int64_t until_ms, bool told)
{
	bool taken = false;
	for (size_t i = 0; i < nft->set_count; i++)
		taken |= take(&nft->sets[i], key, any_size, until_ms, told);
	if (!taken)
		weir_counter_add(&nft->target.unfit, 1);
	return taken;
}

static bool take_live(struct nft_target *nft, const struct block_table *table, const struct block_entry *entry,
                      bool told)
{
	struct weir_span key = block_entry_key(entry);
	return take_key(nft, key, block_table_has_operators(table, key), entry->until_ms, told);
}

static enum weir_status begin(struct nft_target *nft, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	weir_text_clear(&nft->script);
	for (size_t i = 0; i < nft->set_count; i++)
		nft->sets[i].count = 0;
	for (size_t i = 0; i < nft->set_count && status == WEIR_OK; i++)
		status = describe(&nft->sets[i], error);
	return status;
}

/* By where they begin, the wider first; of the same the one that ends last. */
static int compare(const void *left, const void *right)
{
	const struct element *a = left, *b = right;
	int order = memcmp(a->network.base.bytes, b->network.base.bytes, sizeof a->network.base.bytes);
	if (order == 0)
		order = (int)a->network.prefix - (int)b->network.prefix;
	return order != 0 ? order : (a->until_ms < b->until_ms) - (a->until_ms > b->until_ms);
}

/* What the set has first, then by how long it stays. */
static int compare_stay(const void *left, const void *right)
{
	const struct element *a = left, *b = right;
	int order = (int)b->told - (int)a->told;
	return order != 0 ? order : (a->until_ms < b->until_ms) - (a->until_ms > b->until_ms);
}

static void put_in_order_of_stay(struct one_set *set)
{
	if (set->set.most > 0 && set->count > 0)
		qsort(set->elements, set->count, sizeof *set->elements, compare_stay);
}

/* In their order; of what stands there twice, as by two zones or in two spellings, the one that ends last. */
static void leave_each_once(struct one_set *set)
{
	if (set->count == 0)
		return;
	qsort(set->elements, set->count, sizeof *set->elements, compare);
	size_t kept = 0;
	for (size_t i = 1; i < set->count; i++)
		if (strcmp(set->elements[i].text, set->elements[kept].text) == 0)
			set->elements[kept].told |= set->elements[i].told;
		else
			set->elements[++kept] = set->elements[i];
	set->count = kept + 1;
}

/* In their order, what a network contains stands behind it. */
static void leave_out_overlaps(struct nft_target *nft, struct one_set *set)
{
	size_t kept = 0;
	for (size_t i = 1; i < set->count; i++)
		if (weir_network_contains(&set->elements[kept].network, &set->elements[i].network.base))
			leave_out(nft, set, 1);
		else
			set->elements[++kept] = set->elements[i];
	set->count = kept + 1;
}

static enum weir_status copy_set(struct nft_target *nft, struct one_set *set, int64_t now_ms, struct weir_error *error)
{
	set->sample = (struct element){0};
	set->overlaps = set->refused = set->crowded = set->room = set->full = set->well = false;
	set->flush = set->copying = true;
	leave_each_once(set);
	if (set->set.interval && set->count > 0)
		leave_out_overlaps(nft, set);
	put_in_order_of_stay(set);
	if (!set->set.interval && set->set.most > 0 && set->count > set->set.most) {
		leave_out_for_room(nft, set, set->count - set->set.most);
		set->count = set->set.most;
	}
	enum weir_status status = change_in_halves(nft, set, 0, set->count, now_ms, error);
	set->copying = false;
	if (status == WEIR_OK && set->flush)
		return weir_fail(error, WEIR_IO, "the set %s accepts no elements", set->name);
	return status;
}

static enum weir_status copy(struct target *target, const struct block_table *table, int64_t now_ms,
                             struct weir_error *error)
{
	struct nft_target *nft = (struct nft_target *)target;
	enum weir_status status = begin(nft, error);
	if (status != WEIR_OK)
		return status;
	struct block_walk walk = {0};
	const struct block_entry *entry;
	while ((entry = block_table_next(table, &walk)) != NULL)
		/* Of one key in several zones the block that ends last speaks for all. */
		if (block_table_find_key(table, block_entry_key(entry)) == entry)
			(void)take_live(nft, table, entry, false);
	for (size_t i = 0; i < nft->set_count && status == WEIR_OK; i++)
		status = copy_set(nft, &nft->sets[i], now_ms, error);
	return status;
}

/* The elements of the changes. @return whether one makes room for what was left out, so that all is to be copied */
static bool take_changes(struct nft_target *nft, const struct block_table *table)
{
	uint32_t count;
	struct block_entry *const *changes = block_table_changes(table, &count);
	struct weir_network network;
	const char *why;
	bool room = false;
	for (size_t i = 0; i < nft->set_count; i++)
		nft->sets[i].count = 0;
	for (uint32_t i = 0; i < count && !room; i++) {
		struct weir_span key = block_entry_key(changes[i]);
		const struct block_entry *now = block_table_find_key(table, key);
		bool told = changes[i]->told || block_table_was_told(table, key);
		bool held = now != NULL && take_live(nft, table, now, told);
		/* What an operator let go may stay another zone's block, which is too wide to be held. */
		bool gone = !held && changes[i]->state != BLOCK_LIVE;
		if (gone && (changes[i]->state != BLOCK_ENDED || block_entry_was_cut(changes[i]))) /* that the kernel does */
			(void)take_key(nft, key, changes[i]->by_operator, 0, true);
		for (size_t j = 0; j < nft->set_count && gone; j++) {
			nft->sets[j].room |= nft->sets[j].crowded;
			/* A network; or an address that the set may have under another of its spellings. */
			room |= nft->sets[j].overlaps && weir_network_parse(key, &network, &why) &&
			        (network.prefix < 128 || changes[i]->state != BLOCK_ENDED);
		}
	}
	return room;
}

static enum weir_status apply(struct target *target, const struct block_table *table, int64_t now_ms,
                              struct weir_error *error)
{
	struct nft_target *nft = (struct nft_target *)target;
	bool copy_wanted = take_changes(nft, table);
	for (size_t i = 0; i < nft->set_count && !copy_wanted; i++) {
		struct one_set *set = &nft->sets[i];
		set->flush = set->copy_wanted = set->well = false;
		set->full &= set->set.interval; /* of one that takes networks only a copy can tell */
		leave_each_once(set);
		put_in_order_of_stay(set);
		enum weir_status status = set->count > 0 ? change_in_halves(nft, set, 0, set->count, now_ms, error) : WEIR_OK;
		if (status != WEIR_OK)
			return status;
		copy_wanted = set->copy_wanted;
	}
	return copy_wanted ? copy(target, table, now_ms, error) : WEIR_OK;
}

/*
 * Another sample in place of one that has ended or was changed: of what the set was told and no change waits for, the
 * one that was decided first, as what was lost was told before. A full set may have been told of it and have it not; where
 * networks were left out for wider ones only an address is sure to be found, in whatever it lies.
 */
static void find_sample(struct one_set *set, const struct block_table *table, int64_t now_ms)
{
	struct block_walk walk = {0};
	const struct block_entry *entry;
	struct weir_network network;
	const char *why;
	int64_t first_ms = INT64_MAX;
	set->sample.until_ms = 0;
	while (!set->refused && (entry = block_table_next(table, &walk)) != NULL) {
		struct weir_span key = block_entry_key(entry);
		char text[NFT_SET_ELEMENT_BYTES];
		if (!entry->told || entry->changed || entry->until_ms <= now_ms + MARGIN_MS || entry->at_ms >= first_ms ||
		    block_table_find_key(table, key) != entry ||
		    !nft_set_element(&set->set, key, block_table_has_operators(table, key), text) ||
		    !weir_network_parse(key, &network, &why) || (set->overlaps && network.prefix < 128))
			continue;
		first_ms = entry->at_ms;
		set->sample = (struct element){.network = network, .until_ms = entry->until_ms};
		memcpy(set->sample.text, text, sizeof text);
	}
}

/* One element that ought to be there stands for all: a flushed or remade set has lost it too. */
static enum weir_status check(struct target *target, const struct block_table *table, int64_t now_ms,
                              struct weir_error *error)
{
	struct nft_target *nft = (struct nft_target *)target;
	for (size_t i = 0; i < nft->set_count; i++) {
		struct one_set *set = &nft->sets[i];
		enum weir_status status = describe(set, error);
		if (status != WEIR_OK)
			return status;
		if (set->room)
			return copy(target, table, now_ms, error);
		if (set->sample.until_ms <= now_ms + MARGIN_MS)
			find_sample(set, table, now_ms);
		if (set->sample.until_ms == 0)
			continue;
		weir_text_clear(&nft->script);
		weir_text_printf(&nft->script, "get element %s { %s }\n", set->name, set->sample.text);
		status = run_script(nft, error);
		if (status == WEIR_IO)
			return status;
		if (status != WEIR_OK)
			return weir_fail(error, WEIR_AGAIN, "%s was removed from the set %s", set->sample.text, set->name);
	}
	return WEIR_OK;
}

/* ---- read back ---- */

static enum weir_status read_set(struct one_set *set, int64_t end_ms, target_seen *seen, void *context,
                                 struct weir_error *error)
{
	char command[NFT_NAME_BYTES + 16], *words[WORDS_MAX];
	snprintf(command, sizeof command, "nft list set %s", set->name);
	split(command, words);
	struct weir_text said = {0};
	struct program_run program = {.arguments = (const char *const *)words,
	                              .timeout_ms = end_ms - weir_monotonic_ms(),
	                              .said = &said,
	                              .said_most = PROGRAM_LISTING_MAX_BYTES};
	enum weir_status status = program_run(&program, error);
	if (status == WEIR_OK)
		nft_set_elements(weir_text_span(&said), seen, context);
	weir_text_deinit(&said);
	return status;
}

static enum weir_status read_back(struct target *target, int64_t end_ms, target_seen *seen, void *context,
                                  struct target_reading *reading, struct weir_error *error)
{
	struct nft_target *nft = (struct nft_target *)target;
	enum weir_status status = WEIR_OK;
	reading->without_zones = true;
	for (size_t i = 0; i < nft->set_count && status == WEIR_OK; i++) {
		status = describe(&nft->sets[i], error);
		if (status == WEIR_OK)
			status = read_set(&nft->sets[i], end_ms, seen, context, error);
		reading->bounded |= nft->sets[i].set.most > 0;
	}
	return status;
}

static bool spell(struct target *target, const struct block_table *table, const struct block_entry *entry,
                  struct weir_text *words)
{
	const struct nft_target *nft = (const struct nft_target *)target;
	struct weir_span key = block_entry_key(entry);
	char text[NFT_SET_ELEMENT_BYTES];
	for (size_t i = 0; i < nft->set_count; i++)
		if (nft_set_element(&nft->sets[i].set, key, block_table_has_operators(table, key), text)) {
			weir_text_puts(words, text);
			return true;
		}
	return false;
}

static enum weir_status close_target(struct target *target, struct weir_error *error)
{
	(void)error;
	struct nft_target *nft = (struct nft_target *)target;
	for (size_t i = 0; i < nft->set_count; i++)
		free(nft->sets[i].elements);
	weir_text_deinit(&nft->script);
	free(nft);
	return WEIR_OK;
}

static void lists(const struct target *target, struct weir_text *lines)
{
	const struct nft_target *nft = (const struct nft_target *)target;
	for (size_t i = 0; i < nft->set_count; i++)
		weir_text_printf(lines, "nft %s\n", nft->sets[i].name);
}

static const struct target_ops ops = {
	.lists = lists,
	.read = read_back,
	.spell = spell,
	.kind = "nft",
	.counts_down = true,
	.interval_ms = INTERVAL_MS,
	.check_after_ms = CHECK_MS,
	.copy = copy,
	.apply = apply,
	.check = check,
	.close = close_target,
};

enum weir_status target_nft_make(const char *rest, const struct target_options *options, struct target **target,
                                 struct weir_error *error)
{
	struct nft_target *made = weir_alloc(1, sizeof *made);
	char names[SETS_MAX][NFT_NAME_BYTES] = {{0}};
	made->set_count = nft_names_read(rest, names, SETS_MAX);
	for (size_t i = 0; i < made->set_count; i++)
		memcpy(made->sets[i].name, names[i], sizeof names[i]);
	if (made->set_count == 0) {
		free(made);
		return weir_fail(error, WEIR_INVALID,
		                 "\"%s\" is not a set: use nft:FAMILY/TABLE/SET, or SET,SET with one set for IPv4 and one for "
		                 "IPv6, such as nft:inet/filter/blocked",
		                 rest);
	}
	made->target.ops = &ops;
	made->stop = options->stop;
	*target = &made->target;
	return WEIR_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipset: sets that rules of iptables ask, whose elements the kernel ends by itself.
 *
 * A copy fills another set and swaps the two, so the set is never half full. A set that has not room for all holds those
 * that end last. A change that is refused, as the set is full, is a copy.
 */
#include "deploy/gateways/target/ipset/target_ipset.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hash.h"
#include "deploy/gateways/target/exec/program.h"
#include "deploy/gateways/target/ipset/ipset_set.h"

#include <stdio.h>
#include <stdlib.h>

enum { INTERVAL_MS = 50, CHECK_MS = 5000, MARGIN_MS = 2000, SETS_MAX = 2 };

struct element {
	char text[IPSET_ELEMENT_BYTES];
	int64_t until_ms;
};

struct ipset_target {
	struct target target;
	char names[SETS_MAX][IPSET_NAME_BYTES];
	struct ipset_set sets[SETS_MAX];
	bool full[SETS_MAX]; /* the last copy left something out, so what is told may not be there */
	size_t set_count;
	struct weir_text script;
};

static enum weir_status run(const char *const *words, const struct weir_text *input, struct weir_text *said,
                            struct weir_error *error)
{
	struct program_run program = {.arguments = words,
	                              .input = input != NULL ? input->at : NULL,
	                              .input_bytes = input != NULL ? input->length : 0,
	                              .timeout_ms = TARGET_TIMEOUT_MS,
	                              .said = said};
	return program_run(&program, error);
}

static enum weir_status run_script(struct ipset_target *ipset, struct weir_error *error)
{
	static const char *const words[] = {"ipset", "-exist", "restore", NULL};
	enum weir_status status = run(words, &ipset->script, NULL, error);
	weir_text_clear(&ipset->script);
	return status;
}

static enum weir_status describe(struct ipset_target *ipset, size_t i, struct weir_error *error)
{
	const char *const words[] = {"ipset", "-t", "list", ipset->names[i], NULL};
	struct weir_text said = {0};
	enum weir_status status = run(words, NULL, &said, error);
	if (status != WEIR_OK && strstr(error->text, "does not exist") != NULL)
		weir_error_append(error, " (`ipset create %s hash:net timeout 0` makes it)", ipset->names[i]);
	if (status == WEIR_OK && ipset_set_read(ipset->names[i], (struct weir_span){said.at, (uint32_t)said.length},
	                                        &ipset->sets[i], error) != WEIR_OK)
		status = WEIR_IO; /* it may be made anew as it must be */
	weir_text_deinit(&said);
	return status;
}

static void put_add(struct weir_text *script, const char *name, const char *element, int64_t until_ms, int64_t now_ms)
{
	weir_text_printf(script, "add %s %s timeout %u\n", name, element, ipset_timeout_s(until_ms, now_ms));
}

/* The one that ends first comes first; so of an address that stands there twice the last is what counts. */
static int compare(const void *a, const void *b)
{
	const struct element *x = a, *y = b;
	return (x->until_ms > y->until_ms) - (x->until_ms < y->until_ms);
}

/* Whether the set holds what is live of a key. @param text  gets the element */
static bool can_hold(const struct ipset_set *set, const struct block_table *table, const struct block_entry *entry,
                     char text[IPSET_ELEMENT_BYTES])
{
	struct weir_span key = block_entry_key(entry);
	return ipset_set_element(set, key, block_table_has_operators(table, key), text);
}

static struct element *take_all(const struct ipset_set *set, const struct block_table *table, size_t *count)
{
	struct element *elements = weir_alloc((size_t)block_table_count(table) + 1, sizeof *elements);
	struct block_walk walk = {0};
	const struct block_entry *entry;
	*count = 0;
	while ((entry = block_table_next(table, &walk)) != NULL) {
		struct element *element = &elements[*count];
		/* Of one key in several zones the block that ends last speaks for all. */
		if (block_table_find_key(table, block_entry_key(entry)) != entry || !can_hold(set, table, entry, element->text))
			continue;
		element->until_ms = entry->until_ms;
		++*count;
	}
	qsort(elements, *count, sizeof *elements, compare);
	return elements;
}

static enum weir_status copy_set(struct ipset_target *ipset, size_t i, const struct block_table *table, int64_t now_ms,
                                 struct weir_error *error)
{
	const struct ipset_set *set = &ipset->sets[i];
	const char *name = ipset->names[i];
	char other[IPSET_NAME_BYTES];
	size_t count;
	struct element *elements = take_all(set, table, &count);
	size_t first = count > set->most ? count - set->most : 0;
	weir_counter_add(&ipset->target.unfit, first);
	ipset->full[i] = first > 0;
	snprintf(other, sizeof other, "weir-%04x", weir_crc16(name, strlen(name)));
	weir_text_printf(&ipset->script, "create %s %s family %s timeout 0 maxelem %u\nflush %s\n", other,
	                 set->networks ? "hash:net" : "hash:ip", set->v6 ? "inet6" : "inet", set->most, other);
	for (size_t j = first; j < count; j++)
		put_add(&ipset->script, other, elements[j].text, elements[j].until_ms, now_ms);
	weir_text_printf(&ipset->script, "swap %s %s\ndestroy %s\n", other, name, other);
	free(elements);
	return run_script(ipset, error);
}

/* What no set can hold. */
static void count_unfit(struct ipset_target *ipset, const struct block_table *table)
{
	struct block_walk walk = {0};
	const struct block_entry *entry;
	char text[IPSET_ELEMENT_BYTES];
	while ((entry = block_table_next(table, &walk)) != NULL) {
		bool fits = false;
		for (size_t i = 0; i < ipset->set_count; i++)
			fits |= can_hold(&ipset->sets[i], table, entry, text);
		weir_counter_add(&ipset->target.unfit, !fits);
	}
}

static enum weir_status copy(struct target *target, const struct block_table *table, int64_t now_ms,
                             struct weir_error *error)
{
	struct ipset_target *ipset = (struct ipset_target *)target;
	enum weir_status status = WEIR_OK;
	weir_text_clear(&ipset->script);
	for (size_t i = 0; i < ipset->set_count && status == WEIR_OK; i++)
		status = describe(ipset, i, error);
	if (status == WEIR_OK)
		count_unfit(ipset, table);
	for (size_t i = 0; i < ipset->set_count && status == WEIR_OK; i++)
		status = copy_set(ipset, i, table, now_ms, error);
	return status;
}

/* @param adds  else what is to go, which comes first: another spelling of an address may stay */
static void put_change(struct ipset_target *ipset, size_t i, const struct block_table *table,
                       const struct block_entry *entry, bool adds, int64_t now_ms)
{
	char text[IPSET_ELEMENT_BYTES];
	const struct block_entry *now = block_table_find_key(table, block_entry_key(entry));
	bool held = now != NULL && can_hold(&ipset->sets[i], table, now, text);
	/* What an operator let go may stay another zone's block, which is too wide to be held. */
	if (held != adds ||
	    (!held && !ipset_set_element(&ipset->sets[i], block_entry_key(entry), entry->by_operator, text)))
		return;
	if (held)
		put_add(&ipset->script, ipset->names[i], text, now->until_ms, now_ms);
	else if (entry->state != BLOCK_ENDED || block_entry_was_cut(entry) ||
	         entry->until_ms - entry->at_ms > IPSET_TIMEOUT_MOST_MS)
		weir_text_printf(&ipset->script, "del %s %s\n", ipset->names[i], text); /* else the kernel ends it */
}

static enum weir_status apply(struct target *target, const struct block_table *table, int64_t now_ms,
                              struct weir_error *error)
{
	struct ipset_target *ipset = (struct ipset_target *)target;
	uint32_t count;
	struct block_entry *const *changes = block_table_changes(table, &count);
	char text[IPSET_ELEMENT_BYTES];
	bool room = false;
	for (uint32_t j = 0; j < count; j++)
		for (size_t i = 0; i < ipset->set_count; i++)
			put_change(ipset, i, table, changes[j], false, now_ms);
	for (uint32_t j = 0; j < count; j++) {
		bool fits = false;
		for (size_t i = 0; i < ipset->set_count; i++) {
			put_change(ipset, i, table, changes[j], true, now_ms);
			fits |= can_hold(&ipset->sets[i], table, changes[j], text);
			room |= ipset->full[i] && changes[j]->state != BLOCK_LIVE;
		}
		weir_counter_add(&ipset->target.unfit, !fits && changes[j]->state == BLOCK_LIVE);
	}
	if (room) { /* for what was left out */
		weir_text_clear(&ipset->script);
		return copy(target, table, now_ms, error);
	}
	return ipset->script.length == 0 || run_script(ipset, error) == WEIR_OK ? WEIR_OK
	                                                                        : copy(target, table, now_ms, error);
}

/*
 * One of those that no change waits for; NULL: none is. The one that was decided first: what was added since is there also
 * where all else was lost. A full set has only those that end last.
 */
static const struct block_entry *find_sample(const struct ipset_set *set, bool full, const struct block_table *table,
                                             int64_t now_ms, char text[IPSET_ELEMENT_BYTES])
{
	struct block_walk walk = {0};
	const struct block_entry *entry, *sample = NULL;
	while ((entry = block_table_next(table, &walk)) != NULL)
		if (entry->told && !entry->changed && entry->until_ms > now_ms + MARGIN_MS &&
		    (sample == NULL || (full ? entry->until_ms > sample->until_ms : entry->at_ms < sample->at_ms)) &&
		    can_hold(set, table, entry, text))
			sample = entry;
	return sample != NULL && can_hold(set, table, sample, text) ? sample : NULL;
}

/* One element that ought to be there stands for all: a set that was flushed or made anew has lost it too. */
static enum weir_status check(struct target *target, const struct block_table *table, int64_t now_ms,
                              struct weir_error *error)
{
	struct ipset_target *ipset = (struct ipset_target *)target;
	for (size_t i = 0; i < ipset->set_count; i++) {
		char text[IPSET_ELEMENT_BYTES];
		enum weir_status status = describe(ipset, i, error);
		if (status != WEIR_OK)
			return status;
		if (find_sample(&ipset->sets[i], ipset->full[i], table, now_ms, text) == NULL)
			continue;
		const char *const words[] = {"ipset", "-q", "test", ipset->names[i], text, NULL};
		if (run(words, NULL, NULL, error) != WEIR_OK)
			return weir_fail(error, WEIR_AGAIN, "%s was removed from the set %s", text, ipset->names[i]);
	}
	return WEIR_OK;
}

/* ---- read back ---- */

/* "add SET ELEMENT …" lines of `ipset save`. */
static void see_listing(const struct weir_text *said, const char *name, target_seen *seen, void *context)
{
	char begin[IPSET_NAME_BYTES + 8];
	size_t length = (size_t)snprintf(begin, sizeof begin, "add %s ", name);
	const char *at = said->at, *end = said->at + said->length;
	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		line_end = line_end != NULL ? line_end : end;
		if ((size_t)(line_end - at) > length && memcmp(at, begin, length) == 0) {
			const char *word = at + length, *blank = memchr(word, ' ', (size_t)(line_end - word));
			blank = blank != NULL ? blank : line_end;
			seen(context, (struct weir_span){.at = word, .length = (uint32_t)(blank - word)});
		}
		at = line_end + (line_end < end);
	}
}

static enum weir_status read_back(struct target *target, int64_t end_ms, target_seen *seen, void *context,
                                  struct target_reading *reading, struct weir_error *error)
{
	struct ipset_target *ipset = (struct ipset_target *)target;
	enum weir_status status = WEIR_OK;
	reading->without_zones = reading->bounded = true;
	for (size_t i = 0; i < ipset->set_count && status == WEIR_OK; i++) {
		const char *const words[] = {"ipset", "save", ipset->names[i], NULL};
		struct weir_text said = {0};
		struct program_run program = {.arguments = words,
		                              .timeout_ms = end_ms - weir_monotonic_ms(),
		                              .said = &said,
		                              .said_most = PROGRAM_LISTING_MAX_BYTES};
		status = describe(ipset, i, error);
		if (status == WEIR_OK)
			status = program_run(&program, error);
		if (status == WEIR_OK)
			see_listing(&said, ipset->names[i], seen, context);
		weir_text_deinit(&said);
	}
	return status;
}

static bool spell(struct target *target, const struct block_table *table, const struct block_entry *entry,
                  struct weir_text *words)
{
	const struct ipset_target *ipset = (const struct ipset_target *)target;
	char text[IPSET_ELEMENT_BYTES];
	for (size_t i = 0; i < ipset->set_count; i++)
		if (can_hold(&ipset->sets[i], table, entry, text)) {
			weir_text_puts(words, text);
			return true;
		}
	return false;
}

static enum weir_status close_target(struct target *target, struct weir_error *error)
{
	(void)error;
	struct ipset_target *ipset = (struct ipset_target *)target;
	weir_text_deinit(&ipset->script);
	free(ipset);
	return WEIR_OK;
}

static void lists(const struct target *target, struct weir_text *lines)
{
	const struct ipset_target *ipset = (const struct ipset_target *)target;
	for (size_t i = 0; i < ipset->set_count; i++)
		weir_text_printf(lines, "ipset %s\n", ipset->names[i]);
}

static const struct target_ops ops = {
	.lists = lists,
	.read = read_back,
	.spell = spell,
	.kind = "ipset",
	.counts_down = true,
	.interval_ms = INTERVAL_MS,
	.check_after_ms = CHECK_MS,
	.copy = copy,
	.apply = apply,
	.check = check,
	.close = close_target,
};

static bool read_names(struct ipset_target *ipset, const char *at)
{
	while (*at != '\0') {
		size_t length = strcspn(at, ",");
		struct weir_span name = {at, (uint32_t)length};
		if (ipset->set_count == SETS_MAX || !ipset_is_name(name))
			return false;
		snprintf(ipset->names[ipset->set_count++], IPSET_NAME_BYTES, "%.*s", (int)length, at);
		at += length + (at[length] == ',');
	}
	return ipset->set_count > 0;
}

enum weir_status target_ipset_make(const char *rest, const struct target_options *options, struct target **target,
                                   struct weir_error *error)
{
	(void)options;
	struct ipset_target *made = weir_alloc(1, sizeof *made);
	made->target.ops = &ops;
	if (!read_names(made, rest)) {
		free(made);
		return weir_fail(error, WEIR_INVALID,
		                 "\"%s\" is not a set: use ipset:SET, or SET,SET with one set for IPv4 and one for IPv6", rest);
	}
	*target = &made->target;
	return WEIR_OK;
}

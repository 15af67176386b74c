/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a gateway has against what it should have.
 *
 * The decisions are read as a subscriber reads them, once for all gateways. A list is never quite as the topic is, as it
 * follows it; so one that differs is read again a moment later, and only what should have been there before and after
 * that is missing, and only what should have been there neither before nor after is too much.
 */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bus/local/bus_local_view.h"
#include "deploy/gateways/subscriber/feed.h"
#include "deploy/weir/doctor/gateways.h"
#include "deploy/weir/terminal/readable.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

enum { BATCH = 256, POLL_MS = 100, SETTLE_MS = 2000, ENDING_MS = 5000, COMPARED_MOST = 200000 };

static const char gateways_check[] = "gateways";

struct decisions {
	struct feed *feed;
	struct weir_bus *own; /* closed at the end; NULL: the bus is others' */
	struct block_table *table;
	bool known; /* all of them were read */
};

/* ---- the decisions ---- */

static void take(struct decisions *decisions, const struct weir_message *messages, size_t count)
{
	struct decision_record record;
	struct weir_error ignored;
	for (size_t i = 0; i < count; i++)
		if (decision_record_parse(&messages[i], &record, &ignored) == WEIR_OK && !record.shadow)
			(void)block_table_apply(decisions->table, &record, weir_wall_ms());
}

/* Until all is read, or until then where it is read already. @return whether all is */
static bool follow(struct decisions *decisions, bool all, int64_t end_ms)
{
	struct weir_message *messages = weir_alloc(BATCH, sizeof *messages);
	struct weir_error error;
	size_t count;
	enum weir_status status = WEIR_OK;
	while (status != WEIR_INVALID && weir_monotonic_ms() < end_ms && !(all && feed_caught_up(decisions->feed))) {
		status = feed_receive(decisions->feed, messages, BATCH, POLL_MS, &count, &error);
		if (status == WEIR_OK)
			take(decisions, messages, count);
		if (feed_begin_anew_if_lost(decisions->feed))
			block_table_clear(decisions->table);
	}
	free(messages);
	(void)block_table_expire(decisions->table, weir_wall_ms());
	block_table_settle(decisions->table);
	return status != WEIR_INVALID && feed_caught_up(decisions->feed);
}

static struct weir_bus *find_bus(struct doctor *doctor, struct decisions *decisions)
{
	char path[WEIR_PATH_BYTES];
	struct weir_error error;
	if (doctor->cluster)
		return doctor->topics[WEIR_TOPIC_DECISIONS] ? doctor->bus : NULL;
	if (doctor->state == NULL || weir_path_format(path, &error, "%s/log", doctor->state) != WEIR_OK ||
	    weir_bus_local_view(path, &decisions->own, &error) != WEIR_OK)
		return NULL;
	return decisions->own;
}

static void open_decisions(struct doctor *doctor, const struct weir_check *check, bool keep_json,
                           struct decisions *decisions)
{
	struct weir_error error;
	struct weir_bus *bus = find_bus(doctor, decisions);
	struct block_table_options options = {.max = BLOCK_TABLE_MAX_DEFAULT, .keep_json = keep_json};
	if (bus == NULL || feed_open(bus, &decisions->feed, &error) != WEIR_OK)
		return;
	(void)!getrandom(&options.seed, sizeof options.seed, 0);
	options.partitions = bus->partitions;
	decisions->table = block_table_new(&options);
	decisions->known = follow(decisions, true, check->end_ms - 2 * SETTLE_MS - 1000);
}

static void close_decisions(struct decisions *decisions)
{
	feed_close(decisions->feed);
	if (decisions->table != NULL)
		block_table_free(decisions->table);
	if (decisions->own != NULL)
		decisions->own->ops->close(decisions->own);
}

/* ---- one list ---- */

static bool is_wanted(const struct gateway_settings *settings, struct weir_span zone)
{
	for (size_t i = 0; i < settings->zone_count; i++)
		if (weir_span_equal(zone, weir_span_of(settings->zones[i])))
			return true;
	return settings->zone_count == 0;
}

static void write_expected(struct doctor_gateway *gateway, const struct block_table *table, struct list_words *words)
{
	struct block_walk walk = {0};
	struct weir_text text = {0};
	const struct block_entry *entry;
	list_words_deinit(words);
	while ((entry = block_table_next(table, &walk)) != NULL) {
		weir_text_clear(&text);
		if (is_wanted(&gateway->settings, block_entry_zone(entry)) &&
		    gateway->target->ops->spell(gateway->target, table, entry, &text))
			list_words_add(words, weir_text_span(&text),
			               entry->until_ms > weir_wall_ms() + ENDING_MS ? entry->at_ms : 0);
	}
	weir_text_deinit(&text);
	list_words_sort(words);
}

static void see(void *context, struct weir_span entry)
{
	list_words_add(context, entry, 0);
}

static bool is_right(const char *words)
{
	return strcasestr(words, "permission denied") != NULL || strcasestr(words, "not permitted") != NULL ||
	       strcasestr(words, "must be root") != NULL || strcasestr(words, "NOPERM") != NULL;
}

static void tell_unreadable(const struct weir_check *check, const struct doctor_gateway *gateway, const char *words)
{
	if (is_right(words))
		weir_findings_add(
			check->findings, WEIR_SEVERITY_TICKET, gateways_check,
			"the list of gateway %s may not be read by this user: %s\nWhether it blocks whom it should is not "
			"known\nrun the command with more rights: sudo weir doctor %s (runbook: gateway-not-blocking)",
			gateway->name, words, check->config_words);
	else
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, gateways_check,
			"the list of gateway %s cannot be read: %s\nIt blocks nobody, or keeps an old list: new blocks do not "
			"take effect there\nstart or make what is missing; the list is written again within seconds (runbook: "
			"gateway-not-blocking)",
			gateway->name, words);
}

/* @return whether it was read */
static bool read_list(const struct weir_check *check, struct doctor_gateway *gateway)
{
	struct weir_error error;
	list_words_deinit(&gateway->list);
	gateway->reading = (struct target_reading){0};
	enum weir_status status =
		gateway->target->ops->read(gateway->target, check->end_ms, see, &gateway->list, &gateway->reading, &error);
	list_words_sort(&gateway->list);
	if (status != WEIR_OK)
		tell_unreadable(check, gateway, error.text);
	return status == WEIR_OK;
}

/* ---- what differs ---- */

struct difference {
	size_t missing, extra;
	int64_t oldest_ms;
	struct weir_span example; /* one that is too much */
};

static struct difference find_difference(const struct doctor_gateway *gateway)
{
	struct difference found = {.oldest_ms = INT64_MAX};
	for (size_t i = 0; i < gateway->before.count; i++) {
		const struct list_word *word = &gateway->before.at[i];
		if (word->since_ms == 0 || !list_words_have(&gateway->now, word->text) ||
		    list_words_cover(&gateway->list, word->text))
			continue;
		found.missing++;
		found.oldest_ms = word->since_ms < found.oldest_ms ? word->since_ms : found.oldest_ms;
	}
	for (size_t i = 0; i < gateway->list.count; i++) {
		struct weir_span text = gateway->list.at[i].text;
		if (list_words_have(&gateway->before, text) || list_words_have(&gateway->now, text))
			continue;
		if (found.extra++ == 0)
			found.example = text;
	}
	return found;
}

/* "; the list was last written …, …" */
static void put_written(struct weir_text *text, const struct doctor_gateway *gateway)
{
	if (gateway->reading.written_ms > 0) {
		weir_text_puts(text, "; it was last written at ");
		words_time(text, gateway->reading.written_ms);
	}
	if (gateway->reading.tells_keeper && !gateway->reading.kept)
		weir_text_puts(text, "; no subscriber keeps it");
}

static const char *remedy(const struct doctor *doctor, const struct doctor_gateway *gateway)
{
	if (!doctor->cluster)
		return "systemctl restart weir, or weir-subscribe@NAME where one keeps it: it writes the whole list";
	if (gateway->reading.bounded)
		return "systemctl restart 'weir-subscribe@*' writes the whole list; where the set is full, make it with more "
			   "room";
	return "systemctl restart 'weir-subscribe@*' writes the whole list; journalctl --unit 'weir-subscribe@*' says why "
		   "it could not";
}

static void tell_missing(const struct doctor *doctor, const struct weir_check *check,
                         const struct doctor_gateway *gateway, const struct difference *found)
{
	struct weir_text since = {0};
	words_time(&since, found->oldest_ms);
	put_written(&since, gateway);
	weir_findings_add(
		check->findings, WEIR_SEVERITY_PAGE, gateways_check,
		"%zu of %zu blocks %s missing in %s, the oldest decided at %.*s\nThis gateway lets through who is "
		"blocked\n%s (runbook: gateway-not-blocking)",
		found->missing, gateway->now.count, found->missing == 1 ? "is" : "are", gateway->name, (int)since.length,
		since.at, remedy(doctor, gateway));
	weir_text_deinit(&since);
}

static void tell_extra(const struct doctor *doctor, const struct weir_check *check,
                       const struct doctor_gateway *gateway, const struct difference *found)
{
	struct weir_text words = {0};
	words_bytes(&words, found->example, 80);
	put_written(&words, gateway);
	/* A subscriber that keeps the list means them: it knows blocks of a topic that was recreated since. */
	bool meant = gateway->reading.tells_keeper && gateway->reading.kept;
	weir_findings_add(
		check->findings, meant ? WEIR_SEVERITY_NOTE : WEIR_SEVERITY_TICKET, gateways_check,
		"%zu %s in %s that no decision of the topic blocks, such as %.*s\n%s\n%s (runbook: gateway-not-blocking)",
		found->extra, found->extra == 1 ? "entry is" : "entries are", gateway->name, (int)words.length, words.at,
		meant ? "Its subscriber keeps them until they end, as after the topic was recreated"
			  : "Who is no longer, or never was, to be blocked may be blocked there",
		meant ? "Lift who should not be blocked: weir lift KEY" : remedy(doctor, gateway));
	weir_text_deinit(&words);
}

static void tell(const struct doctor *doctor, const struct weir_check *check, const struct doctor_gateway *gateway)
{
	struct difference found = find_difference(gateway);
	if (found.missing > 0)
		tell_missing(doctor, check, gateway, &found);
	if (found.extra > 0)
		tell_extra(doctor, check, gateway, &found);
	if (found.missing == 0 && gateway->reading.tells_keeper && !gateway->reading.kept)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_TICKET, gateways_check,
			"no subscriber keeps the list of gateway %s\nIts list does not change: new blocks do not take "
			"effect there\n%s (runbook: gateway-not-blocking)",
			gateway->name, remedy(doctor, gateway));
	if (found.missing + found.extra == 0)
		weir_findings_good(check->findings, "gateways: %s has all of the %zu blocks that it can hold", gateway->name,
		                   gateway->now.count);
}

/* ---- */

static bool differs(const struct doctor_gateway *gateway)
{
	struct difference found = find_difference(gateway);
	return found.missing + found.extra > 0 || (gateway->reading.tells_keeper && !gateway->reading.kept);
}

/* Once; where a list differs, again: with what was decided until a moment before and a moment after. */
static void compare(struct doctor *doctor, const struct weir_check *check, struct doctor_gateways *gateways,
                    struct decisions *decisions)
{
	bool again = false;
	for (size_t i = 0; i < gateways->count; i++) {
		struct doctor_gateway *gateway = &gateways->at[i];
		if (!gateway->read)
			continue;
		write_expected(gateway, decisions->table, &gateway->before);
		write_expected(gateway, decisions->table, &gateway->now);
		again |= differs(gateway);
	}
	if (again)
		(void)follow(decisions, false, weir_monotonic_ms() + SETTLE_MS);
	for (size_t i = 0; i < gateways->count && again; i++)
		if (gateways->at[i].read)
			gateways->at[i].read = read_list(check, &gateways->at[i]);
	if (again)
		(void)follow(decisions, false, weir_monotonic_ms() + SETTLE_MS);
	for (size_t i = 0; i < gateways->count && again; i++)
		if (gateways->at[i].read)
			write_expected(&gateways->at[i], decisions->table, &gateways->at[i].now);
	for (size_t i = 0; i < gateways->count; i++)
		if (gateways->at[i].read)
			tell(doctor, check, &gateways->at[i]);
}

void doctor_compare_lists(struct doctor *doctor, const struct weir_check *check, struct doctor_gateways *gateways)
{
	struct decisions decisions = {0};
	bool keep_json = false, any = false;
	for (size_t i = 0; i < gateways->count; i++) {
		struct doctor_gateway *gateway = &gateways->at[i];
		if (gateway->target == NULL || gateway->target->ops->read == NULL)
			continue;
		gateway->read = read_list(check, gateway);
		if (gateway->read && gateway->possible && gateway->list.count == 0 && !gateway->reading.kept) {
			weir_findings_good(check->findings, "gateways: no subscriber keeps a list in %s (\"redis.url\")",
			                   gateway->name);
			gateway->read = false;
		}
		any |= gateway->read;
		keep_json |= gateway->target->ops->keeps_json;
	}
	if (any)
		open_decisions(doctor, check, keep_json, &decisions);
	if (decisions.known && block_table_count(decisions.table) <= COMPARED_MOST)
		compare(doctor, check, gateways, &decisions);
	else if (any)
		weir_findings_add(check->findings, WEIR_SEVERITY_NOTE, gateways_check,
		                  "the gateways' lists are there, and were not held against the decisions: %s",
		                  decisions.table == NULL ? "these could not be read"
		                  : decisions.known       ? "there are more than 200000 blocks"
		                                          : "these could not all be read in time");
	close_decisions(&decisions);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live part is made of what operators have: an allow that has ended already,
 * an override of 1, and a lift, in the partition of the key. Once a limiter's
 * checkpoint is behind the lift, its decision and all judged frames before it
 * are in their topics; once an archiver is behind the ends that those have then,
 * no row of before can come any more.
 */
#include "deploy/weir/forget/forget.h"

#include "archiver/ledger/ledger.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "deploy/weir/inspect/topic_read.h"
#include "deploy/weir/overrides/override_author.h"
#include "deploy/weir/overrides/override_control.h"
#include "limiter/lane/lane_place.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { APPEND_MS = 30000, POLL_MS = 50, SAY_AFTER_MS = 1500, VERIFY_MS = 10000, VERIFY_LEAST_MS = 1000 };

/* ---- commands ---- */

static enum weir_status append(struct forget *forget, struct forget_zone *zone, enum override_kind kind,
                               struct weir_error *error)
{
	const struct weir_policy *policy = forget->history.policies[forget->history.count - 1];
	struct override_place places[WEIR_PARTITIONS_MAX];
	struct override_command command = {
		.kind = kind, .key_length = zone->key_length, .thousandths = 1000, .until_ms = OVERRIDE_NO_END};
	int64_t now_ms = weir_wall_ms();
	uint32_t count = 0;
	snprintf(command.zone, sizeof command.zone, "%s", zone->name);
	snprintf(command.reason, sizeof command.reason, OVERRIDE_REASON_FORGET);
	memcpy(command.key, zone->key, zone->key_length);
	command.value_count = override_value_count(override_key(&command));
	if (kind == OVERRIDE_ALLOW)
		command.until_ms = now_ms;
	enum weir_status status = override_author(forget->options.by, &command, error);
	if (status == WEIR_OK && forget->backend.kind == BACKEND_RUNNING)
		status = override_control_append(forget->backend.state_path, &command, places, &count, error);
	else if (status == WEIR_OK)
		status = override_append(forget->backend.bus, policy, &command, now_ms, APPEND_MS, places, &count, error);
	if (status == WEIR_OK && count != 1)
		status = weir_fail(error, WEIR_IO, "the log did not return the command's offset");
	if (status == WEIR_OK)
		zone->place = places[0];
	return status;
}

enum weir_status forget_command(struct forget *forget, uint32_t from, struct weir_error *error)
{
	static const enum override_kind kinds[] = {OVERRIDE_ALLOW, OVERRIDE_RATE, OVERRIDE_LIFT};
	enum weir_status status = WEIR_OK;
	for (uint32_t i = from; i < forget->zone_count && !forget->backend.once; i++) {
		struct forget_zone *zone = &forget->zones[i];
		for (size_t k = 0; zone->live && k < sizeof kinds / sizeof *kinds && status == WEIR_OK; k++)
			status = append(forget, zone, kinds[k], error);
		if (status != WEIR_OK)
			return status;
		zone->placed = zone->live;
	}
	return WEIR_OK;
}

/* ---- waiting ---- */

/* How far a role's state is; WEIR_IO: it cannot be told now. */
static enum weir_status look(const struct forget *forget, int role, uint32_t partition,
                             struct weir_partition_state *state, struct weir_error *error)
{
	return forget->backend.store->ops->inspect(forget->backend.store, role, partition, state, error);
}

/* Waits for a condition, and says once for what. WEIR_AGAIN: not in time; the words are of the last look. */
static enum weir_status wait_for(const struct forget *forget,
                                 enum weir_status (*passed)(const struct forget *, const struct forget_zone *,
                                                            struct weir_error *),
                                 const struct forget_zone *zone, struct weir_error *error)
{
	int64_t say_ms = weir_monotonic_ms() + SAY_AFTER_MS;
	enum weir_status status;
	while ((status = passed(forget, zone, error)) == WEIR_AGAIN || status == WEIR_IO) {
		int64_t now_ms = weir_monotonic_ms();
		if (now_ms >= forget->end_ms)
			return WEIR_AGAIN;
		if (now_ms >= say_ms)
			fprintf(stderr, "waiting: %s\n", error->text);
		if (now_ms >= say_ms)
			say_ms = INT64_MAX;
		nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
	}
	return status;
}

/* How long the brokers may take to answer. */
static int verify_ms(const struct forget *forget)
{
	int64_t left_ms = forget->end_ms - weir_monotonic_ms();
	return left_ms > VERIFY_MS ? VERIFY_MS : left_ms < VERIFY_LEAST_MS ? VERIFY_LEAST_MS : (int)left_ms;
}

/*
 * A place in a topic that was made anew since says nothing about what was appended there. @return WEIR_OK; WEIR_ANEW: so
 * it is, and the error says what to do; WEIR_IO
 */
static enum weir_status verify(const struct forget *forget, enum weir_topic topic, uint32_t partition, uint64_t next,
                               const struct weir_mark *mark, struct weir_error *error)
{
	struct weir_error why;
	if (forget->backend.bus == NULL || forget->backend.missing[topic])
		return WEIR_OK;
	enum weir_status status =
		weir_bus_verify(forget->backend.bus, topic, partition, next, mark, verify_ms(forget), &why);
	if (status != WEIR_ANEW && status != WEIR_INVALID)
		return status == WEIR_OK ? WEIR_OK : weir_fail(error, WEIR_IO, "%s", why.text);
	const struct backend *backend = &forget->backend;
	char *words = backend->config == NULL ? weir_command_words("--state", backend->state_path) : NULL;
	status = weir_fail(error, WEIR_ANEW,
	                   "%s: it stands until `weir recover --accept-gap %s --partition %u --yes` is run; run this "
	                   "command again then",
	                   why.text, words != NULL ? words : weir_config_words(backend->config), partition);
	free(words);
	return status;
}

static enum weir_status limiter_passed(const struct forget *forget, const struct forget_zone *zone,
                                       struct weir_error *error)
{
	struct weir_partition_state state;
	enum weir_status status = look(forget, WEIR_STORE_ROLE_LIMITER, zone->place.partition, &state, error);
	struct lane_place place;
	struct weir_span extra = state.extra;
	if (status != WEIR_OK)
		return status;
	if (state.next_offset > zone->place.offset) {
		status = lane_place_read(&extra, &place, error);
		return status != WEIR_OK
		           ? status
		           : verify(forget, WEIR_TOPIC_EVENTS, zone->place.partition, state.next_offset, &place.last, error);
	}
	return weir_fail(error, WEIR_AGAIN, "no limiter's checkpoint covers partition %u, offset %" PRIu64 " yet",
	                 zone->place.partition, zone->place.offset);
}

/* Where a topic ends now, or `from` where it has nothing behind that. */
static enum weir_status find_end(const struct forget *forget, enum weir_topic topic, uint32_t partition, uint64_t from,
                                 uint64_t *end, struct weir_error *error)
{
	struct weir_bus *bus = forget->backend.bus;
	struct topic_read *read;
	struct weir_message message;
	uint64_t first;
	if (bus != NULL && forget->backend.missing[topic])
		return WEIR_OK;
	if (bus != NULL)
		return bus->ops->extent(bus, topic, partition, &first, end, error);
	enum weir_status status = topic_read_open(NULL, forget->backend.state_path, topic, partition, from, &read, error);
	if (status != WEIR_OK)
		return status;
	while ((status = topic_read_next(read, &message, error)) == WEIR_OK || status == WEIR_INVALID)
		if (status == WEIR_OK)
			*end = message.offset + 1;
	topic_read_free(read);
	return status == WEIR_END ? WEIR_OK : status;
}

/* An archiver goes on by itself in a new topic of decisions in shadow mode: until it has, its place there says nothing. */
static enum weir_status verify_shadow(const struct forget *forget, const struct ledger *ledger,
                                      struct weir_error *error)
{
	struct weir_error why;
	const struct ledger_position *at = &ledger->positions[WEIR_TOPIC_SHADOW];
	if (forget->backend.bus == NULL || forget->backend.missing[WEIR_TOPIC_SHADOW] || at->next == 0 ||
	    weir_bus_verify(forget->backend.bus, WEIR_TOPIC_SHADOW, ledger->partition, at->next, &at->last,
	                    verify_ms(forget), &why) != WEIR_ANEW)
		return WEIR_OK;
	return weir_fail(error, WEIR_ANEW, "%s: no archiver has read it since: run this command again once one has",
	                 why.text);
}

/* How far the archiver is, in its topics. @param verified  as verify(): whether they are the ones that it read */
static enum weir_status read_ledger(const struct forget *forget, uint32_t partition, bool verified,
                                    struct forget_ends *next, struct weir_error *error)
{
	struct weir_partition_state state;
	struct ledger *ledger = ledger_new(partition);
	const struct ledger_position *at = ledger->positions;
	enum weir_status status = look(forget, WEIR_STORE_ROLE_ARCHIVER, partition, &state, error);
	if (status == WEIR_OK)
		status = ledger_restore(ledger, &state, error);
	if (status == WEIR_OK && verified && !ledger->fresh)
		status = verify(forget, WEIR_TOPIC_JUDGED, partition, at[WEIR_TOPIC_JUDGED].next, &at[WEIR_TOPIC_JUDGED].last,
		                error);
	if (status == WEIR_OK && verified && !ledger->fresh)
		status = verify(forget, WEIR_TOPIC_DECISIONS, partition, at[WEIR_TOPIC_DECISIONS].next,
		                &at[WEIR_TOPIC_DECISIONS].last, error);
	if (status == WEIR_OK && verified && !ledger->fresh)
		status = verify_shadow(forget, ledger, error);
	*next = (struct forget_ends){at[WEIR_TOPIC_JUDGED].next, at[WEIR_TOPIC_DECISIONS].next, at[WEIR_TOPIC_SHADOW].next};
	ledger_free(ledger);
	return status;
}

static enum weir_status archiver_passed(const struct forget *forget, const struct forget_zone *zone,
                                        struct weir_error *error)
{
	uint32_t partition = zone->place.partition;
	const struct forget_ends *ends = &zone->ends;
	struct forget_ends next;
	enum weir_status status = read_ledger(forget, partition, false, &next, error);
	if (status != WEIR_OK ||
	    (next.judged >= ends->judged && next.decisions >= ends->decisions && next.shadow >= ends->shadow))
		return status;
	return weir_fail(error, WEIR_AGAIN,
	                 "no archiver has stored partition %u up to judged %" PRIu64 ", decisions %" PRIu64
	                 " and decisions.shadow %" PRIu64 " yet",
	                 partition, ends->judged, ends->decisions, ends->shadow);
}

/* What an archiver must have stored, now that the limiter has passed. */
static enum weir_status find_ends(const struct forget *forget, struct forget_zone *zone, struct weir_error *error)
{
	uint32_t partition = zone->place.partition;
	struct forget_ends *ends = &zone->ends, next;
	enum weir_status status = read_ledger(forget, partition, true, &next, error);
	*ends = next;
	if (status == WEIR_OK)
		status = find_end(forget, WEIR_TOPIC_JUDGED, partition, next.judged, &ends->judged, error);
	if (status == WEIR_OK)
		status = find_end(forget, WEIR_TOPIC_DECISIONS, partition, next.decisions, &ends->decisions, error);
	if (status == WEIR_OK)
		status = find_end(forget, WEIR_TOPIC_SHADOW, partition, next.shadow, &ends->shadow, error);
	return status;
}

static bool says_archiver(const struct weir_config *config)
{
	return json_object_get(json_object_get(weir_json_root(config->document).value, "archiver"), "enabled") != NULL;
}

bool forget_is_archived(const struct forget *forget)
{
	const struct backend *backend = &forget->backend;
	struct weir_partition_state state;
	struct weir_error ignored; /* who cannot read this cannot read the rest, and says so */
	uint32_t partitions;
	/* A cluster's archiver may have another configuration than one that does not say whether there is any. */
	if (backend->config != NULL && (says_archiver(backend->config) || backend->kind != BACKEND_CLUSTER))
		return backend->config->archiver.enabled;
	if (backend_partitions(backend, &partitions, &ignored) != WEIR_OK)
		return true;
	for (uint32_t i = 0; i < partitions; i++)
		if (look(forget, WEIR_STORE_ROLE_ARCHIVER, i, &state, &ignored) != WEIR_OK || state.epoch > 0)
			return true;
	return false;
}

static enum weir_status await_zone(struct forget *forget, struct forget_zone *zone, bool archived,
                                   struct weir_error *error)
{
	enum weir_status status = wait_for(forget, limiter_passed, zone, error);
	if (status != WEIR_OK || !archived)
		return status;
	status = find_ends(forget, zone, error);
	return status == WEIR_OK ? wait_for(forget, archiver_passed, zone, error) : status;
}

/* Of one zone, as long as there is time; what is not done is added to `left`. */
static enum weir_status await_within(struct forget *forget, struct forget_zone *zone, bool archived,
                                     struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	if (forget->backend.kind == BACKEND_STATE)
		weir_text_printf(&forget->left, "zone %s: no process is running there: the next start empties its bucket\n",
		                 zone->name);
	else if (zone != forget->zones && weir_monotonic_ms() >= forget->end_ms)
		weir_text_printf(&forget->left, "zone %s: it was not asked whether it is done: --timeout was over\n",
		                 zone->name);
	else
		status = await_zone(forget, zone, archived, error);
	if (status != WEIR_AGAIN && status != WEIR_IO && status != WEIR_ANEW)
		return status;
	weir_text_printf(&forget->left, "zone %s: %s\n", zone->name, error->text);
	return WEIR_OK;
}

enum weir_status forget_await(struct forget *forget, uint32_t from, struct weir_error *error)
{
	int64_t begin_ms = weir_monotonic_ms();
	bool archived = forget_is_archived(forget);
	enum weir_status status = WEIR_OK;
	forget->end_ms = begin_ms + forget->timeout_ms;
	for (uint32_t i = from; i < forget->zone_count && status == WEIR_OK; i++)
		if (forget->zones[i].placed)
			status = await_within(forget, &forget->zones[i], archived, error);
	forget->timeout_ms -= weir_monotonic_ms() - begin_ms;
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --check: what a start would find, within seconds. It changes nothing: a missing
 * topic, database or table is reported, and the start itself creates it.
 */
#include "limiter/daemon/limiter_check.h"

#include "common/base/alloc.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/cluster/policy_log.h"
#include "common/daemon/daemon_check.h"
#include "limiter/checkpoint/cluster_metadata.h"
#include "limiter/daemon/internal.h"
#include "limiter/daemon/limiter_stops.h"
#include "limiter/lane/lane_place.h"

#include <stdio.h>
#include <stdlib.h>

enum { LATE_MS = 60000 };

struct newest {
	uint64_t version;
	struct weir_text text;
};

static enum weir_status keep_newest(void *context, uint64_t version, struct weir_span text)
{
	struct newest *newest = context;
	newest->version = version;
	weir_text_clear(&newest->text);
	weir_text_append(&newest->text, text.at, text.length);
	return WEIR_OK;
}

enum weir_status limiter_check_policy(struct weir_bus *bus, struct weir_store *store, uint64_t *version,
                                      struct weir_error *error)
{
	struct newest newest = {0};
	struct weir_policy *policy = NULL;
	struct weir_error unread;
	enum weir_status status = store->ops->policy_each(store, 1, keep_newest, &newest, error);
	*version = newest.version;
	if (status == WEIR_OK && newest.version > 0 &&
	    weir_policy_decode(newest.version, newest.text.at, newest.text.length, &policy, &unread) == WEIR_OK)
		status = weir_bus_kafka_check_policy(bus, policy, error);
	weir_policy_free(policy);
	weir_text_deinit(&newest.text);
	return status;
}

/* ---- the checks ---- */

/* A topic that was created anew: what was appended to the one before is gone. @return whether it has the policy */
static bool check_policy_topic(const struct weir_check *check, struct weir_bus *bus, uint64_t policy)
{
	struct weir_error error;
	uint64_t newest;
	enum weir_status status = weir_policy_topic_newest(bus, &newest, &error);
	if (status != WEIR_OK || newest >= policy)
		return true;
	if (newest > 0)
		weir_findings_add(check->findings, WEIR_SEVERITY_TICKET, "policy",
		                  "topic %s.policy has policy %llu at most, although policy %llu is in every partition\nA "
		                  "collector that starts works by the earlier one\nweir policy apply %s (runbook: "
		                  "topic-recreated)",
		                  check->config->bus.prefix, (unsigned long long)newest, (unsigned long long)policy,
		                  check->config_words);
	else
		weir_findings_add(
			check->findings, WEIR_SEVERITY_TICKET, "policy",
			"topic %s.policy is empty, although there are policies\nA collector that starts finds no policy, and reads "
			"nothing\nweir policy apply %s (runbook: topic-recreated)",
			check->config->bus.prefix, check->config_words);
	return false;
}

static void check_policy(const struct weir_check *check, struct weir_bus *bus, const bool good[WEIR_TOPIC_COUNT],
                         struct weir_store *store, struct limiter_state *state)
{
	struct weir_error error;
	uint64_t appended = 0;
	enum weir_status status = limiter_check_policy(bus, store, &state->policy, &error);
	if (status == WEIR_INVALID)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, "topics",
			"%s\nA limiter that starts now refuses to work; a gateway that starts later misses blocks\nraise "
			"the topic's retention.ms above the longest block, or shorten the policy's blocks (runbook: "
			"retention)",
			error.text);
	if (status == WEIR_OK)
		status = weir_policy_appended(store, NULL, &appended, &error);
	if (status == WEIR_IO) {
		const char *runbook, *remedy = weir_check_store_remedy(error.text, &runbook);
		weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, "policy",
		                  "%s\nWhich policy is in force is not known\n%s (runbook: %s)", error.text, remedy, runbook);
	}
	if (status != WEIR_OK)
		return;
	if (state->policy == 0)
		weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, "policy",
		                  "there is no policy yet\nNothing is judged\nweir policy apply %s (runbook: nothing-judged)",
		                  check->config_words);
	else if (appended < state->policy)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_TICKET, "policy",
			"policy %llu is stored, but only policy %llu is in every partition\nPartitions and collectors "
			"work by different policies\nweir policy apply %s (runbook: policy-rollback)",
			(unsigned long long)state->policy, (unsigned long long)appended, check->config_words);
	else if (!good[WEIR_TOPIC_POLICY] || check_policy_topic(check, bus, state->policy))
		weir_findings_good(check->findings, "policy: version %llu is in every partition",
		                   (unsigned long long)state->policy);
}

/* Checkpoints under a policy that the store lacks: limiters put it back within seconds, where the policy topic has it. */
static void check_saved_under(const struct weir_check *check, uint32_t partition, uint64_t saved, uint64_t newest)
{
	weir_findings_add(
		check->findings, WEIR_SEVERITY_PAGE, "policy",
		"the store has lost policies: partition %u was saved under policy %llu, but the newest that the store has is "
		"%llu\nA limiter that cannot read it from %s.policy judges nothing in that partition\nsystemctl start weir-limiter: "
		"it puts back what the topic has. Where this stays, restore the table policy_version from the newest copy (runbook: "
		"store-failed-over)",
		partition, (unsigned long long)saved, (unsigned long long)newest, check->config->bus.prefix);
}

/* @return whether all could be read */
static bool read_positions(const struct weir_check *check, struct weir_store *store, uint32_t partitions,
                           uint64_t policy, bool *known, uint64_t *next, struct weir_mark *marks)
{
	bool lost = false;
	struct weir_partition_state row;
	struct weir_error error;
	for (uint32_t i = 0; i < partitions; i++) {
		if (store->ops->inspect(store, WEIR_STORE_ROLE_LIMITER, i, &row, &error) != WEIR_OK) {
			const char *runbook, *remedy = weir_check_store_remedy(error.text, &runbook);
			weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, "partitions",
			                  "%s\nWhere the partitions continue is not known\n%s (runbook: %s)", error.text, remedy,
			                  runbook);
			return false;
		}
		known[i] = true;
		next[i] = row.next_offset;
		if (row.checkpoint > 0 && row.policy_version > policy && policy > 0 && !lost) {
			lost = true;
			check_saved_under(check, i, row.policy_version, policy);
		}
		struct lane_place place = {0};
		struct weir_span extra = row.extra;
		if (row.checkpoint > 0 && lane_place_read(&extra, &place, &error) == WEIR_OK)
			marks[i] = place.last;
	}
	return true;
}

/* A start would make the topic anew, and its checkpoints would lie beyond its end. */
static void check_deleted(const struct weir_check *check, struct weir_bus *bus, uint32_t partitions,
                          const uint64_t *next)
{
	uint32_t stored = 0;
	uint64_t first, end;
	if (bus->ops->extent(bus, WEIR_TOPIC_EVENTS, 0, &first, &end, NULL) == WEIR_OK)
		return; /* it is there, and something else is wrong with it, which is told */
	for (uint32_t i = 0; i < partitions; i++)
		stored += next[i] > 0;
	if (stored > 0)
		weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, "partitions",
		                  "topic %s.events was deleted: %u partitions have checkpoints of it\nWhat it had and was not "
		                  "judged is lost; a partition whose topic is created anew stands until that is accepted\nweir "
		                  "policy apply %s && weir recover --accept-gap %s --all --yes (runbook: topic-deleted)",
		                  check->config->bus.prefix, stored, check->config_words, check->config_words);
}

static void check_positions(const struct weir_check *check, struct weir_bus *bus, bool events_good,
                            struct weir_store *store, struct limiter_state *state)
{
	uint32_t partitions = (uint32_t)check->config->bus.partitions;
	bool *known = weir_alloc(partitions, sizeof *known);
	uint64_t *next = weir_alloc(partitions, sizeof *next);
	struct weir_mark *marks = weir_alloc(partitions, sizeof *marks);
	struct weir_check_positions positions = {.role = "limiter",
	                                         .topic = WEIR_TOPIC_EVENTS,
	                                         .partitions = partitions,
	                                         .known = known,
	                                         .next = next,
	                                         .marks = marks};
	bool all = read_positions(check, store, partitions, state->policy, known, next, marks);
	if (all && events_good) {
		weir_check_positions(check, bus, &positions);
		state->stuck = positions.stuck + limiter_check_stops(check, store, partitions, positions.stuck > 0);
		state->behind = positions.behind;
		state->oldest_ms = positions.oldest_ms;
		state->asked = positions.asked;
		if (positions.asked && state->stuck == 0)
			weir_findings_good(check->findings, "partitions: all %u continue at their checkpoints", partitions);
	} else if (all) {
		check_deleted(check, bus, partitions, next);
	}
	free(known);
	free(next);
	free(marks);
}

void limiter_check_positions(const struct weir_check *check, struct weir_bus *bus, struct weir_store *store,
                             struct limiter_state *state)
{
	*state = (struct limiter_state){.oldest_ms = -1};
	check_positions(check, bus, true, store, state);
}

int64_t limiter_check_late_ms(const struct weir_config *config)
{
	return LATE_MS + 3 * config->limiter.checkpoint_interval_ms;
}

void limiter_check_state(const struct weir_check *check, struct weir_bus *bus, const bool good[WEIR_TOPIC_COUNT],
                         struct weir_store *store, struct limiter_state *state)
{
	struct weir_error error;
	uint64_t seed;
	*state = (struct limiter_state){.oldest_ms = -1};
	enum weir_status status = cluster_metadata_read(store, (uint32_t)check->config->bus.partitions, &seed, &error);
	if (status == WEIR_INVALID)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, "store",
			"%s\nNo limiter with this configuration starts\nset \"bus.partitions\" back to what the store "
			"was made for (runbook: partitions-changed)",
			error.text);
	check_policy(check, bus, good, store, state);
	if (status != WEIR_INVALID)
		check_positions(check, bus, good[WEIR_TOPIC_EVENTS], store, state);
}

/* ---- --check ---- */

static enum weir_status check_contents(const struct limiter *limiter, struct weir_store *store, uint64_t *newest,
                                       struct weir_error *error)
{
	uint64_t seed;
	enum weir_status status = cluster_metadata_read(store, limiter->bus->partitions, &seed, error);
	if (status == WEIR_OK || status == WEIR_END)
		status = limiter_check_policy(limiter->bus, store, newest, error);
	if (status != WEIR_OK)
		return status;
	printf("store: database \"%s\" exists; ", limiter->daemon->config->store.database);
	if (*newest > 0)
		printf("policy %llu is in force\n", (unsigned long long)*newest);
	else
		printf("no policy yet: run `weir policy apply %s`\n", weir_config_zones_words(limiter->daemon->config));
	return WEIR_OK;
}

/* What `weir doctor` would find of a limiter. */
static enum weir_status check_state(const struct limiter *limiter, const bool missing[WEIR_TOPIC_COUNT],
                                    struct weir_store *store, uint64_t policy, struct weir_error *error)
{
	struct weir_findings findings = {0};
	struct weir_check check = weir_daemon_check_begin(limiter->daemon, &findings);
	struct limiter_state state;
	bool good[WEIR_TOPIC_COUNT];
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++)
		good[topic] = !missing[topic];
	if (store != NULL)
		weir_check_writes(&check, store, true, false);
	if (store != NULL && policy > 0)
		limiter_check_state(&check, limiter->bus, good, store, &state);
	return weir_daemon_check_end(limiter->daemon, &check, WEIR_SEVERITY_PAGE, error);
}

enum weir_status limiter_check(void *self, struct weir_error *error)
{
	struct limiter *limiter = self;
	struct weir_store *store = NULL;
	bool missing[WEIR_TOPIC_COUNT];
	uint64_t policy = 0;
	enum weir_status status = limiter_checks_check(limiter->daemon->config, error);
	if (status != WEIR_OK)
		return status;
	printf("%s: no mistake in the configuration\n", limiter->daemon->config_path);
	status = weir_daemon_check_bus(limiter->daemon, missing, &limiter->bus, error);
	if (status == WEIR_OK)
		status = weir_daemon_check_store(limiter->daemon, &store, error);
	if (status == WEIR_OK && store != NULL)
		status = check_contents(limiter, store, &policy, error);
	else if (status == WEIR_OK)
		printf("no policy yet: run `weir policy apply %s`\n", weir_config_zones_words(limiter->daemon->config));
	if (status == WEIR_OK)
		status = check_state(limiter, missing, store, policy, error);
	if (store != NULL)
		store->ops->close(store);
	return status;
}

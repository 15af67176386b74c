/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir recover`: --drop-damaged is in recover_state.c. --accept-gap lets a partition whose log was trimmed behind its
 * checkpoint, or made anew, continue at what the log has. Only a person can say
 * that what is missing may be lost, so it is asked for twice.
 *
 * A topic that was made anew is read from its first message, and its records'
 * numbers begin above all that were given before (limiter/lane/lane_place.h). So
 * neither the archive nor a gateway takes what it causes for something old.
 *
 * Taking the partition raises its epoch: a limiter that holds it is fenced, takes
 * it again, and continues from the offset that is written here.
 */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bus/bus_wait.h"
#include "common/cluster/policy_log.h"
#include "common/config/arguments.h"
#include "deploy/weir/backend/backend.h"
#include "deploy/weir/backend/policy_apply.h"
#include "deploy/weir/command.h"
#include "deploy/weir/inspect/recover_archive.h"
#include "deploy/weir/inspect/recover_state.h"
#include "limiter/lane/lane.h"

#include <stdio.h>
#include <stdlib.h>

enum option { ACCEPT_GAP, DROP_DAMAGED, CONFIG, STATE, PARTITION, ALL, YES, OPTION_COUNT };

static const struct weir_argument_option options_table[] = {
	[ACCEPT_GAP] = {.name = "accept-gap",
                    .type = WEIR_ARGUMENT_FLAG,
                    .help = "accept the loss of the messages that the log no longer has"},
	[DROP_DAMAGED] = {.name = "drop-damaged",
                      .type = WEIR_ARGUMENT_FLAG,
                      .help = "drop what of the state in the store cannot be read"},
	[CONFIG] = {.name = "config",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "the configuration of the cluster"},
	[STATE] = {.name = "state",
               .value = "DIR",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "the state directory of one machine, whose log was removed; nothing else may be using it"},
	[PARTITION] = {.name = "partition",
                   .value = "P",
                   .type = WEIR_ARGUMENT_NUMBER,
                   .help = "the partition",
                   .most = WEIR_PARTITIONS_MAX - 1},
	[ALL] = {.name = "all", .type = WEIR_ARGUMENT_FLAG, .help = "every partition that has a gap, or damage"},
	[YES] = {.name = "yes", .type = WEIR_ARGUMENT_FLAG, .help = "do it (default: only print what would be lost)"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "done, or there was nothing to do"},
	{WEIR_EXIT_FAILED, "a server failed"},
	{WEIR_EXIT_USAGE, "the command line or the configuration is wrong, or --yes is missing"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir recover",
	.summary = "continue a partition after a gap in its log, or damage to its state",
	.usage = "weir recover --accept-gap|--drop-damaged --partition P|--all [OPTION...]",
	.about = "Continues a partition after a gap in its log, or damage to its state.\n"
			 "\n"
			 "There is a gap if the log was trimmed, by retention or by hand, before a limiter had judged it: "
			 "the checkpoint's next offset is gone. The command prints how many messages are lost. With --yes, "
			 "the limiters continue at the first one that is left. So they do if the topic was recreated: it is "
			 "read from its first message. Counts, blocks and orders of the checkpoint are kept. If \"archiver\" "
			 "is enabled, the archive continues in the same way, without the lost messages.\n"
			 "\n"
			 "With --drop-damaged: a partition is stopped, too, if its state in the store cannot be read, as after a "
			 "disk's damage. The command reads all of it and prints what is lost: counts and blocks. With --yes, that "
			 "part is dropped, the rest is kept, and limiters continue at the same message.\n"
			 "\n"
			 "Limiters and archivers may be running: they take the partition again within half a minute. "
			 "Positions of sources are kept, so what a collector resends is not counted twice. Make retention "
			 "longer than the longest outage.",
	.options = options_table,
	.examples = "weir recover --accept-gap --config weir.json --partition 3\n"
				"weir recover --accept-gap --config weir.json --partition 3 --yes\n"
				"weir recover --accept-gap --config weir.json --all --yes\n"
				"weir recover --drop-damaged --config weir.json --partition 3",
	.exits = exits,
};

enum { WAIT_MS = 30000, POLL_MS = 500, TURNS = 3 };

struct recover {
	const char *config_path, *state_path;
	uint64_t partition; /* the one in hand */
	bool one, all;      /* what was named */
	bool gaps, damage;  /* what was asked for */
	bool yes;
	struct backend backend;
	struct policy_registry *registry;
	struct weir_position *positions; /* by partition */
	uint64_t *checkpoints;           /* by partition: what was stored when it was looked at */
	struct weir_position *at;        /* the one in hand */
};

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct recover *recover = context;
	switch (option) {
	case YES: recover->yes = true; break;
	case CONFIG: recover->config_path = value->text; break;
	case STATE: recover->state_path = value->text; break;
	case PARTITION:
		recover->partition = value->number;
		recover->one = true;
		break;
	case ALL: recover->all = true; break;
	case ACCEPT_GAP: recover->gaps = true; break;
	default: recover->damage = true; break;
	}
	return WEIR_EXIT_NOT_YET;
}

/* What is stored of some partitions, and whether the log has it still. */
static enum weir_status look(struct recover *recover, uint64_t from, uint64_t count, struct weir_error *error)
{
	struct weir_store *store = recover->backend.store;
	for (uint64_t i = from; i < from + count; i++) {
		struct weir_partition_state state;
		struct lane_place place;
		enum weir_status status = store->ops->inspect(store, WEIR_STORE_ROLE_LIMITER, (uint32_t)i, &state, error);
		struct weir_span extra = state.extra;
		if (status == WEIR_OK)
			status = lane_place_read(&extra, &place, error);
		if (status != WEIR_OK)
			return status;
		recover->checkpoints[i] = state.checkpoint;
		recover->positions[i] =
			(struct weir_position){.partition = (uint32_t)i, .next = state.next_offset, .mark = place.last};
	}
	weir_bus_verify_all(recover->backend.bus, WEIR_TOPIC_EVENTS, recover->positions + from, count, WAIT_MS);
	return WEIR_OK;
}

/* Whether there is a gap, in words also if there is none. */
static enum weir_status find_gap(const struct recover *recover, bool *gap, struct weir_error *error)
{
	const struct weir_position *at = recover->at;
	unsigned long long next = at->next, first = at->first, end = at->end;
	*gap = at->status == WEIR_ANEW || (at->status == WEIR_INVALID && next < first);
	if (at->status == WEIR_ANEW)
		printf(
			"partition %u: %s: its %llu messages are read from the first one on, and what was judged of them does not "
			"count again; what had been behind offset %llu is lost\n",
			at->partition, at->why.text, end - first, next);
	else if (*gap)
		printf("partition %u: the checkpoint continues at offset %llu, but the log begins at %llu: %llu messages "
		       "are lost\n",
		       at->partition, next, first, first - next);
	else if (at->status == WEIR_OK)
		printf("partition %u: no gap: the checkpoint continues at offset %llu, and the log has %llu to %llu\n",
		       at->partition, next, first, end);
	else
		return weir_fail(error, at->status == WEIR_AGAIN ? WEIR_IO : at->status, "%s", at->why.text);
	return WEIR_OK;
}

/* The mark of the message that comes next: a position behind a gap has none before it. None where nothing answers. */
static void mark_first(const struct recover *recover, struct lane_place *place)
{
	struct weir_error ignored;
	if (weir_bus_read_mark(recover->backend.bus, WEIR_TOPIC_EVENTS, recover->at->partition, recover->at->first, WAIT_MS,
	                       &place->last, &ignored) != WEIR_OK ||
	    place->last.offset != recover->at->first)
		place->last = (struct weir_mark){0};
}

/* The `extra` of a partition without a checkpoint: it begins behind the gap, empty. */
static void make_empty(const struct recover *recover, struct weir_partition_state *row, struct weir_text *extra)
{
	struct shard_options options = {.partition = (uint32_t)recover->partition, .seed = recover->backend.seed};
	struct lane *lane = lane_new(&options, recover->registry, 1);
	lane_state(lane, row, extra);
	lane_free(lane);
}

/* The row that goes on behind the gap: the state that was taken, at another place. */
static enum weir_status commit_behind(struct recover *recover, const struct weir_partition_state *state,
                                      struct weir_error *error)
{
	struct weir_store *store = recover->backend.store;
	struct weir_text empty = {0}, extra = {0};
	struct weir_partition_state row = *state;
	struct lane_place place;
	if (state->checkpoint == 0)
		make_empty(recover, &row, &empty);
	struct weir_span rest = row.extra;
	enum weir_status status = lane_place_read(&rest, &place, error);
	if (status == WEIR_OK) {
		if (recover->at->status == WEIR_ANEW)
			place.base = lane_place_next_base(place.base + state->next_offset);
		mark_first(recover, &place);
		lane_place_write(&place, &extra);
		weir_text_append(&extra, rest.at, rest.length);
		row.extra = (struct weir_span){.at = extra.at, .length = (uint32_t)extra.length};
		row.epoch = state->epoch;
		row.checkpoint = state->checkpoint + 1;
		row.next_offset = recover->at->first;
		status = store->ops->commit(store, WEIR_STORE_ROLE_LIMITER, &row, 1, NULL, NULL, 0, error);
	}
	weir_text_deinit(&empty);
	weir_text_deinit(&extra);
	return status;
}

/* A policy may have been among what is lost: the newest is appended once more, and passed over where it is known. */
static enum weir_status append_policy(struct recover *recover, struct weir_error *error)
{
	struct weir_bus *bus = recover->backend.bus;
	const struct weir_policy *policy =
		policy_registry_policy(recover->registry, policy_registry_newest(recover->registry));
	struct weir_producer *producer;
	struct weir_delivery delivery;
	struct weir_span no_key = {0};
	size_t length, count = 0;
	struct weir_bus_wait wait = weir_bus_wait_begin(WAIT_MS);
	enum weir_status status = bus->ops->producer_new(bus, &producer, error);
	if (status != WEIR_OK)
		return status;
	char *message = weir_policy_message(policy, weir_span_of(policy->text), weir_wall_ms(), &length);
	status = bus->ops->send(producer, WEIR_TOPIC_EVENTS, (uint32_t)recover->partition, no_key,
	                        (struct weir_span){.at = message, .length = (uint32_t)length}, 0, error);
	while (status == WEIR_OK && count == 0) {
		count = bus->ops->poll(producer, &delivery, 1, POLL_MS);
		if (count == 0)
			status = weir_bus_wait_on(&wait, bus, "the policy", error);
	}
	if (status == WEIR_OK && delivery.status != WEIR_OK)
		status = weir_fail(error, WEIR_IO, "the bus did not acknowledge the policy: run the command again");
	bus->ops->producer_free(producer);
	free(message);
	return status;
}

/* @return as a store; WEIR_AGAIN: somebody has stored since the partition was looked at, perhaps another recover */
static enum weir_status go_behind(struct recover *recover, struct weir_error *error)
{
	struct weir_partition_state state;
	struct weir_store *store = recover->backend.store;
	uint32_t partition = recover->at->partition;
	enum weir_status status = append_policy(recover, error);
	if (status == WEIR_OK)
		status = store->ops->take(store, WEIR_STORE_ROLE_LIMITER, partition, &state, error);
	if (status == WEIR_OK && state.checkpoint != recover->checkpoints[partition])
		return weir_fail(error, WEIR_AGAIN, "partition %u was stored meanwhile: run the command again", partition);
	if (status == WEIR_OK)
		status = commit_behind(recover, &state, error);
	if (status == WEIR_OK)
		printf("partition %u continues at offset %llu\n", partition, (unsigned long long)recover->at->first);
	return status;
}

static enum weir_status check(const struct recover *recover, struct weir_error *error)
{
	if (recover->backend.kind == BACKEND_RUNNING)
		return weir_fail(error, WEIR_INVALID, "`weir run` is using %s: stop it first", recover->backend.state_path);
	if (recover->partition >= recover->backend.bus->partitions)
		return weir_fail(error, WEIR_INVALID, "there is no partition %llu; expected 0 to %u",
		                 (unsigned long long)recover->partition, recover->backend.bus->partitions - 1);
	if (policy_registry_newest(recover->registry) == 0)
		return weir_fail(error, WEIR_INVALID, "no policy yet, so there is nothing to recover");
	return WEIR_OK;
}

/* One partition. *refused: there is a gap, and --yes is missing. */
static enum weir_status recover_partition(struct recover *recover, bool *refused, struct weir_error *error)
{
	enum weir_status status;
	for (int turn = 1;; turn++) {
		bool gap = false;
		recover->at = &recover->positions[recover->partition];
		status = find_gap(recover, &gap, error);
		*refused |= gap && !recover->yes;
		if (status == WEIR_OK && gap && recover->yes)
			status = go_behind(recover, error);
		if (status != WEIR_AGAIN || turn == TURNS)
			return status;
		status = look(recover, recover->partition, 1, error);
		if (status != WEIR_OK)
			return status;
	}
}

static enum weir_status recover_all(struct recover *recover, bool *refused, struct weir_error *error)
{
	struct backend *backend = &recover->backend;
	uint64_t from = recover->all ? 0 : recover->partition, count = recover->all ? backend->bus->partitions : 1;
	recover->positions = weir_alloc(backend->bus->partitions, sizeof *recover->positions);
	recover->checkpoints = weir_alloc(backend->bus->partitions, sizeof *recover->checkpoints);
	enum weir_status status = look(recover, from, count, error);
	for (recover->partition = from; status == WEIR_OK && recover->partition < from + count; recover->partition++)
		status = recover_partition(recover, refused, error);
	if (status == WEIR_OK && (backend->kind == BACKEND_STATE || backend->config->archiver.enabled)) {
		bool gap = false;
		status = recover_archive(backend, (uint32_t)from, (uint32_t)count, recover->yes, &gap, error);
		*refused |= gap && !recover->yes;
	}
	free(recover->positions);
	free(recover->checkpoints);
	return status;
}

static enum weir_status drop_damaged(const struct recover *recover, bool *refused, struct weir_error *error)
{
	const struct backend *backend = &recover->backend;
	uint32_t from = recover->all ? 0 : (uint32_t)recover->partition;
	uint32_t until = recover->all ? backend->bus->partitions : from + 1;
	enum weir_status status = WEIR_OK;
	bool damaged = false;
	for (uint32_t i = from; i < until && status == WEIR_OK; i++)
		status = recover_state(backend, recover->registry, i, recover->yes, &damaged, error);
	*refused |= damaged && !recover->yes;
	return status;
}

static enum weir_status run(struct recover *recover, bool *refused, struct weir_error *error)
{
	struct backend *backend = &recover->backend;
	recover->registry = policy_registry_new();
	backend->topic = WEIR_TOPIC_EVENTS;
	enum weir_status status =
		backend_open(backend, "weir recover", recover->config_path, recover->state_path, BACKEND_APPENDS, error);
	if (status == WEIR_OK)
		status = policy_log_load(backend->store, recover->registry, error);
	if (status == WEIR_OK)
		status = check(recover, error);
	if (status != WEIR_OK)
		return status;
	return recover->damage ? drop_damaged(recover, refused, error) : recover_all(recover, refused, error);
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct recover recover = {0};
	struct weir_error error;
	bool refused = false;
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, &recover);
	if (code == WEIR_EXIT_NOT_YET && recover.state_path == NULL && !weir_config_find(&recover.config_path))
		code = weir_arguments_refuse(&line, WEIR_CONFIG_MISSING ", or name a directory with --state");
	if (code == WEIR_EXIT_NOT_YET && recover.gaps == recover.damage)
		code = weir_arguments_refuse(&line, "name one of --accept-gap and --drop-damaged");
	if (code == WEIR_EXIT_NOT_YET && recover.one == recover.all)
		code = weir_arguments_refuse(&line, "name one partition with --partition, or all with --all");
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	enum weir_status status = run(&recover, &refused, &error);
	code = status == WEIR_OK && refused ? WEIR_EXIT_USAGE : weir_exit_of(status);
	if (status != WEIR_OK)
		fprintf(stderr, "weir recover: %s\n", error.text);
	else if (refused)
		fprintf(stderr, "weir recover: nothing was changed; add --yes to accept the loss and continue\n");
	policy_registry_free(recover.registry);
	backend_close(&recover.backend);
	return code;
}

const struct command command_recover = {&line, command_main};

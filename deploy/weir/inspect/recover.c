/*
 * `weir recover --accept-gap`: lets a partition whose log was trimmed behind its
 * checkpoint go on at what the log still has. Only a person can say that what
 * lies between may be lost, so it is asked for twice.
 *
 * Taking the partition raises its epoch: a limiter that holds it is fenced, takes
 * it again, and goes on from the offset that is written here.
 */
#include "common/base/clock.h"
#include "common/config/arguments.h"
#include "common/frame/frame.h"
#include "deploy/weir/command.h"
#include "deploy/weir/inspect/recover_archive.h"
#include "deploy/weir/policy/policy_apply.h"
#include "deploy/weir/realm/realm.h"
#include "limiter/lane/lane.h"

#include <stdio.h>
#include <stdlib.h>

static const char help[] =
	"usage: weir recover --accept-gap --config FILE --partition P [--yes]\n"
	"\n"
	"For a partition that stands at a gap: its log was trimmed, by retention or by hand, before a limiter had\n"
	"judged it, so that the checkpoint's next offset is gone. Says how many messages are lost, and with --yes\n"
	"lets the limiters go on at the first that is left. Counts, blocks and orders of the checkpoint are kept.\n"
	"Where \"archiver\" is enabled, likewise for the archive: what its topics no longer have is missing there.\n"
	"\n"
	"  --accept-gap    what is to be done; there is nothing else yet\n"
	"  --config FILE   of the cluster\n"
	"  --partition P   which one\n"
	"  --yes           do it; without, only say what it would lose\n"
	"\n"
	"Limiters and archivers may run: they take the partition again within half a minute. Positions of sources are\n"
	"kept, so what a collector sends again is not counted twice. Make retention longer than the longest outage.\n"
	"\n"
	"Exit codes: 0 done, or nothing to do; 1 a server failed; 2 the command line is wrong, or --yes is missing.\n"
	"\n"
	"Examples\n"
	"  weir recover --accept-gap --config weir.json --partition 3\n"
	"  weir recover --accept-gap --config weir.json --partition 3 --yes\n";

enum option { ACCEPT_GAP, CONFIG, PARTITION, YES };

static const struct weir_argument_option table[] = {
	{"accept-gap", false}, {"config", true}, {"partition", true}, {"yes", false}, {NULL, false},
};

enum { WAIT_MS = 30000, POLL_MS = 500 };

struct recover {
	struct weir_arguments arguments;
	const char *config_path;
	uint64_t partition; /* UINT64_MAX: not named */
	bool accept_gap, yes;
	struct realm realm;
	struct rulebook *book;
	uint64_t first, next; /* what the log has */
};

static enum weir_exit refuse(const struct recover *recover, const char *words, const char *value)
{
	weir_arguments_refuse(&recover->arguments, words, value);
	return WEIR_EXIT_USAGE;
}

/* WEIR_EXIT_NOT_YET: go on. */
static enum weir_exit parse(struct recover *recover, int argc, char **argv)
{
	recover->arguments =
		(struct weir_arguments){.command = "weir recover", .options = table, .argc = argc, .argv = argv};
	const char *value;
	int option;
	while ((option = weir_arguments_next(&recover->arguments, &value)) != WEIR_ARGUMENTS_END) {
		switch (option) {
		case ACCEPT_GAP: recover->accept_gap = true; break;
		case YES: recover->yes = true; break;
		case CONFIG: recover->config_path = value; break;
		case PARTITION:
			if (!weir_arguments_count(value, &recover->partition) || recover->partition >= WEIR_PARTITIONS_MAX)
				return refuse(recover, "--partition must be a number, not \"%s\"", value);
			break;
		case WEIR_ARGUMENTS_HELP: fputs(help, stdout); return WEIR_EXIT_DONE;
		case WEIR_ARGUMENTS_WORD: return refuse(recover, "\"%s\" is no option", value);
		default: return WEIR_EXIT_USAGE;
		}
	}
	if (!recover->accept_gap)
		return refuse(recover, "%s", "say what to accept: --accept-gap");
	if (recover->config_path == NULL)
		return refuse(recover, "%s", "name the cluster's configuration by --config");
	return recover->partition == UINT64_MAX ? refuse(recover, "%s", "say which --partition") : WEIR_EXIT_NOT_YET;
}

/* Whether there is a gap, in words if there is none. */
static bool has_gap(const struct recover *recover, const struct weir_partition_state *state)
{
	unsigned partition = (unsigned)recover->partition;
	unsigned long long at = state->next_offset, first = recover->first, next = recover->next;
	if (state->next_offset > recover->next) {
		printf("partition %u: the checkpoint goes on at offset %llu, and the log ends at %llu: it was made anew, and "
		       "has lost %s\n",
		       partition, at, next, first == next ? "all that it had" : "what it had before");
		return true;
	}
	if (state->next_offset >= recover->first) {
		printf("partition %u: no gap: the checkpoint goes on at offset %llu, and the log has %llu to %llu\n", partition,
		       at, first, next);
		return false;
	}
	printf("partition %u: the checkpoint goes on at offset %llu, and the log begins at %llu: %llu messages are lost\n",
	       partition, at, first, first - at);
	return true;
}

/* The row that goes on behind the gap. A partition without a checkpoint begins there, empty. */
static enum weir_status commit_behind(struct recover *recover, struct weir_partition_state *state,
                                      struct weir_error *error)
{
	struct weir_store *store = recover->realm.store;
	struct weir_text extra = {0};
	struct weir_partition_state row;
	if (state->checkpoint == 0) {
		struct shard_options options = {.partition = (uint32_t)recover->partition, .seed = recover->realm.seed};
		struct lane *lane = lane_new(&options, recover->book, 1);
		lane_state(lane, &row, &extra);
		lane_free(lane);
	} else {
		row = *state;
		weir_text_append(&extra, state->extra.at, state->extra.length);
		row.extra = (struct weir_span){.at = extra.at, .length = (uint32_t)extra.length};
	}
	row.epoch = state->epoch;
	row.checkpoint = state->checkpoint + 1;
	row.next_offset = recover->first;
	enum weir_status status = store->ops->commit(store, WEIR_STORE_ROLE_LIMITER, &row, 1, NULL, NULL, 0, error);
	weir_text_deinit(&extra);
	return status;
}

/* A policy may have been among what is lost: the newest is appended once more, and passed over where it is known. */
static enum weir_status append_policy(struct recover *recover, struct weir_error *error)
{
	struct weir_bus *bus = recover->realm.bus;
	const struct weir_policy *policy = rulebook_policy(recover->book, rulebook_newest(recover->book));
	struct weir_producer *producer;
	struct weir_delivery delivery;
	struct weir_span no_key = {0};
	size_t length, count = 0;
	int64_t end_ms = weir_monotonic_ms() + WAIT_MS;
	enum weir_status status = bus->ops->producer_new(bus, &producer, error);
	if (status != WEIR_OK)
		return status;
	char *message =
		weir_frame_control(WEIR_FRAME_POLICY, weir_wall_ms(), policy->version, weir_span_of(policy->text), &length);
	status = bus->ops->send(producer, WEIR_TOPIC_EVENTS, (uint32_t)recover->partition, no_key,
	                        (struct weir_span){.at = message, .length = (uint32_t)length}, 0, error);
	while (status == WEIR_OK && count == 0 && weir_monotonic_ms() < end_ms)
		count = bus->ops->poll(producer, &delivery, 1, POLL_MS);
	if (status == WEIR_OK && (count == 0 || delivery.status != WEIR_OK))
		status = weir_fail(error, WEIR_IO, "the bus did not take the policy: give the command again");
	bus->ops->producer_free(producer);
	free(message);
	return status;
}

static enum weir_status go_behind(struct recover *recover, struct weir_error *error)
{
	struct weir_partition_state state;
	struct weir_store *store = recover->realm.store;
	enum weir_status status = append_policy(recover, error);
	if (status == WEIR_OK)
		status = store->ops->take(store, WEIR_STORE_ROLE_LIMITER, (uint32_t)recover->partition, &state, error);
	if (status == WEIR_OK)
		status = commit_behind(recover, &state, error);
	if (status == WEIR_OK)
		printf("partition %u goes on at offset %llu\n", (unsigned)recover->partition,
		       (unsigned long long)recover->first);
	return status;
}

static enum weir_status check_partition(const struct recover *recover, struct weir_error *error)
{
	if (recover->realm.kind != REALM_CLUSTER)
		return weir_fail(error, WEIR_INVALID,
		                 "%s has \"bus\" on this machine, whose log is trimmed behind its checkpoint only",
		                 recover->config_path);
	if (recover->partition >= recover->realm.bus->partitions)
		return weir_fail(error, WEIR_INVALID, "there is no partition %llu; they are 0 to %u",
		                 (unsigned long long)recover->partition, recover->realm.bus->partitions - 1);
	if (rulebook_newest(recover->book) == 0)
		return weir_fail(error, WEIR_INVALID, "there is no policy yet, and so nothing to recover");
	return WEIR_OK;
}

/* *refused: there is a gap, and --yes is missing. */
static enum weir_status run(struct recover *recover, bool *refused, struct weir_error *error)
{
	struct weir_partition_state state;
	struct realm *realm = &recover->realm;
	recover->book = rulebook_new();
	realm->topic = WEIR_TOPIC_EVENTS;
	enum weir_status status = realm_open(realm, "weir recover", recover->config_path, NULL, REALM_TOPIC, error);
	if (status == WEIR_OK)
		status = policy_log_load(realm->store, recover->book, error);
	if (status == WEIR_OK)
		status = check_partition(recover, error);
	if (status == WEIR_OK)
		status = realm->bus->ops->extent(realm->bus, WEIR_TOPIC_EVENTS, (uint32_t)recover->partition, &recover->first,
		                                 &recover->next, error);
	if (status == WEIR_OK)
		status =
			realm->store->ops->look(realm->store, WEIR_STORE_ROLE_LIMITER, (uint32_t)recover->partition, &state, error);
	if (status != WEIR_OK)
		return status;
	bool gap = has_gap(recover, &state), archive_gap = false;
	if (gap && recover->yes)
		status = go_behind(recover, error);
	if (status == WEIR_OK && realm->config->archiver.enabled)
		status = recover_archive(realm, (uint32_t)recover->partition, recover->yes, &archive_gap, error);
	*refused = (gap || archive_gap) && !recover->yes;
	return status;
}

enum weir_exit command_recover(int argc, char **argv)
{
	struct recover recover = {.partition = UINT64_MAX};
	struct weir_error error;
	bool refused = false;
	enum weir_exit code = parse(&recover, argc, argv);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	enum weir_status status = run(&recover, &refused, &error);
	code = status == WEIR_OK && !refused       ? WEIR_EXIT_DONE
	       : refused || status == WEIR_INVALID ? WEIR_EXIT_USAGE
	                                           : WEIR_EXIT_FAILED;
	if (status != WEIR_OK)
		fprintf(stderr, "weir recover: %s\n", error.text);
	else if (refused)
		fprintf(stderr, "weir recover: nothing was changed; say --yes to lose them and go on\n");
	rulebook_free(recover.book);
	realm_close(&recover.realm);
	return code;
}

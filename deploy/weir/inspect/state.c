/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir state`: the buckets of a state directory or of a cluster, as of the
 * current checkpoint, and what operators' commands hold.
 *
 * It looks at the store from beside the processes that may be writing it, so
 * what it prints is what a start would continue with.
 */
#include "common/algorithm/algorithm.h"
#include "common/base/alloc.h"
#include "common/config/arguments.h"
#include "common/json/json.h"
#include "common/json/units.h"
#include "deploy/weir/backend/backend.h"
#include "deploy/weir/backend/policy_apply.h"
#include "deploy/weir/command.h"
#include "deploy/weir/inspect/state_lines.h"
#include "deploy/weir/inspect/state_overrides.h"
#include "deploy/weir/inspect/state_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LATENESS_MAX_MS (INT64_C(366) * 86400000)

enum option { STATE, CONFIG, ZONE, KEYS, KEY, LATENESS, PARTITION, OVERRIDES, OPTION_COUNT };

static const struct weir_argument_option options[] = {
	[STATE] = {.name = "state",
               .value = "DIR",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "the state directory of a `weir run`; it may be running"},
	[CONFIG] = {.name = "config",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "the configuration of a cluster"},
	[ZONE] = {.name = "zone", .value = "NAME", .type = WEIR_ARGUMENT_TEXT, .help = "only this zone"},
	[KEYS] = {.name = "keys",
              .value = "FILE",
              .type = WEIR_ARGUMENT_TEXT,
              .help = "names for the buckets: one key per line; - is standard input"},
	[KEY] = {.name = "key",
             .value = "KEY",
             .type = WEIR_ARGUMENT_TEXT,
             .help = "only the buckets of this key",
             .repeatable = true},
	[LATENESS] = {.name = "lateness",
                  .value = "TIME",
                  .type = WEIR_ARGUMENT_DURATION,
                  .help = "limiter.lateness of the configuration (default 10m): when idle buckets count as forgotten",
                  .most = LATENESS_MAX_MS},
	[PARTITION] = {.name = "partition",
                   .value = "P",
                   .type = WEIR_ARGUMENT_NUMBER,
                   .help = "only this partition",
                   .most = WEIR_PARTITIONS_MAX - 1},
	[OVERRIDES] = {.name = "orders",
                   .type = WEIR_ARGUMENT_FLAG,
                   .help = "print operators' commands that are in force instead of buckets"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"Keys", "A limiter keeps a hash of each key, not the key. A bucket whose key is named has \"key\":[...], "
             "and comes in the order of the zones and of the keys' bytes. Any other bucket has \"key_hash\".\n"
             "\n"
             "A key is a JSON array of values, or the values joined by |. An address is grouped as its zone "
             "does. A value too long for a key is shortened as in decisions."},
	{"Orders", "  {\"order\":\"block\"|\"allow\"|\"override\",\"zone\":...,\"key\":[...],\n"
               "   \"prefix\":true,\"partition\":p,\"rate\":...,\"at\":ms,\"until\":ms or null,\n"
               "   \"by\":...,\"reason\":...}\n"},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "done"},
	{WEIR_EXIT_FAILED, "the state could not be read, or standard output could not be written"},
	{WEIR_EXIT_USAGE, "the command line is wrong, or there is no such state"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir state",
	.summary = "print the buckets of a state directory as JSON lines",
	.usage = "weir state --state DIR [--zone NAME] [--keys FILE] [--orders]\n"
			 "weir state [--config FILE] [--partition P] [OPTION...]",
	.about = "Prints what a limiter keeps, one bucket per line, as of the last checkpoint.\n"
			 "\n"
			 "The state is that of a state directory, or of the cluster that FILE names. It is only read: the "
			 "processes that use it may be running.",
	.operand = {.hint = "give the directory with --state"},
	.options = options,
	.sections = sections,
	.examples = "weir state --state /var/lib/weir --key 203.0.113.9\n"
				"weir state --state run1 --zone login --key 'alice|203.0.113.9'\n"
				"weir state --config weir.json --orders | jq 'select(.by == \"ann\")'\n"
				"cut -d' ' -f1 access.log | sort -u | weir state --state run1 --keys -",
	.exits = exits,
};

struct dump {
	const char *state_path, *config_path;
	const char *zone; /* NULL: all */
	struct state_keys *keys;
	bool named;      /* some names were given: the lines are sorted over all partitions */
	bool only_named; /* buckets without a name are left out */
	bool only_overrides;
	int64_t lateness_ms;     /* -1: not given */
	uint64_t only_partition; /* UINT64_MAX: all */
	struct backend backend;
	struct policy_registry *registry;
	struct state_lines *lines;
	struct weir_text overrides;
	uint32_t partition_count;
};

/* ---- the command line ---- */

/* Names come from a file or from the command line itself. */
static enum weir_exit take_names(struct dump *dump, int option, const char *text)
{
	struct weir_error error;
	enum weir_status status = option == KEYS ? state_keys_read(dump->keys, text, &error)
	                                         : state_keys_add(dump->keys, weir_span_of(text), &error);
	dump->named = true;
	dump->only_named = dump->only_named || option == KEY;
	return status == WEIR_OK ? WEIR_EXIT_NOT_YET : weir_arguments_refuse(&line, "%s", error.text);
}

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct dump *dump = context;
	switch (option) {
	case STATE: dump->state_path = value->text; break;
	case CONFIG: dump->config_path = value->text; break;
	case ZONE: dump->zone = value->text; break;
	case OVERRIDES: dump->only_overrides = true; break;
	case PARTITION: dump->only_partition = value->number; break;
	case LATENESS: dump->lateness_ms = (int64_t)value->number; break;
	default: return take_names(dump, option, value->text);
	}
	return WEIR_EXIT_NOT_YET;
}

/* How each algorithm's state is shown, as its descriptor says. */
static void put_forms(struct weir_text *text)
{
	const struct weir_algorithm *algorithm;
	for (size_t i = 0; (algorithm = weir_algorithm_at(i)) != NULL; i++)
		weir_text_printf(text, "  %-16s %s\n", algorithm->name, algorithm->shown);
	weir_text_puts(text,
	               "A token has as many units as its window has ms. Times are Unix ms. null: nothing was recorded.");
	weir_text_append(text, "", 1);
}

static enum weir_exit parse(struct dump *dump, int argc, char **argv)
{
	struct weir_text forms = {0};
	put_forms(&forms);
	const struct weir_argument_section shown[] = {
		sections[0], {"What a limit holds", forms.at}, sections[1], {NULL, NULL}};
	struct weir_command_line whole = line;
	whole.sections = shown;
	enum weir_exit code = weir_arguments_read(&whole, argc, argv, take_option, dump);
	weir_text_deinit(&forms);
	if (code == WEIR_EXIT_NOT_YET && dump->only_overrides && dump->named)
		code = weir_arguments_refuse(&line, "--key and --keys are for buckets; --orders prints those of all keys: pick "
		                                    "them by their \"key\"");
	if (code == WEIR_EXIT_NOT_YET && dump->state_path == NULL && !weir_config_find(&dump->config_path))
		code = weir_arguments_refuse(&line, WEIR_CONFIG_MISSING ", or name a directory with --state");
	return code;
}

/* ---- the state ---- */

static enum weir_status open_state(struct dump *dump, struct weir_error *error)
{
	struct backend *backend = &dump->backend;
	enum weir_status status =
		backend_open(backend, "weir state", dump->config_path, dump->state_path, BACKEND_READS, error);
	if (status != WEIR_OK)
		return status;
	if (dump->lateness_ms >= 0 && !backend->once)
		backend->lateness_ms = dump->lateness_ms;
	dump->registry = policy_registry_new();
	status = policy_log_load(backend->store, dump->registry, error);
	uint64_t newest = policy_registry_newest(dump->registry);
	if (status != WEIR_OK || newest == 0)
		return status;
	const struct weir_policy *policy = policy_registry_policy(dump->registry, newest);
	if (dump->zone != NULL && weir_policy_find_zone(policy, weir_span_of(dump->zone), error) == NULL)
		status = WEIR_INVALID;
	if (status == WEIR_OK)
		status = backend_partitions(backend, &dump->partition_count, error);
	if (status == WEIR_OK && dump->only_partition != UINT64_MAX && dump->only_partition >= dump->partition_count)
		status = weir_fail(error, WEIR_INVALID, "there is no partition %llu; expected 0 to %u",
		                   (unsigned long long)dump->only_partition, dump->partition_count - 1);
	if (status == WEIR_OK && dump->partition_count > 0)
		state_keys_index(dump->keys, policy, backend->seed, dump->partition_count);
	return status;
}

static void add_bucket(void *context, uint32_t partition, const struct shard_bucket *bucket)
{
	struct dump *dump = context;
	char room[WEIR_KEY_MAX_BYTES];
	struct weir_span key = {0};
	if (dump->zone != NULL && strcmp(bucket->zone->zone->name, dump->zone) != 0)
		return;
	if (!state_keys_find(dump->keys, bucket->print, room, &key) && dump->only_named)
		return;
	state_lines_add(dump->lines, bucket, key, partition);
}

static void add_overrides(void *context, uint32_t partition, const struct overrides *overrides)
{
	struct dump *dump = context;
	const struct weir_policy *policy = policy_registry_policy(dump->registry, policy_registry_newest(dump->registry));
	for (uint32_t i = 0; i < overrides->count; i++) {
		struct state_override settings[STATE_OVERRIDE_SETTINGS];
		const struct weir_zone *zone = weir_policy_zone(policy, overrides->list[i]->zone_id);
		if (zone == NULL || (dump->zone != NULL && strcmp(zone->name, dump->zone) != 0))
			continue;
		uint32_t count = state_override_settings(overrides->list[i], settings);
		for (uint32_t j = 0; j < count; j++)
			state_override_json(&dump->overrides, &settings[j], zone, partition);
	}
}

/* False: standard output takes no more. */
static bool write_lines(struct dump *dump)
{
	size_t written;
	state_lines_sort(dump->lines);
	if (state_lines_write(dump->lines, STDOUT_FILENO) == 0 &&
	    weir_write_all(STDOUT_FILENO, dump->overrides.at, dump->overrides.length, &written) == 0) {
		weir_text_clear(&dump->overrides);
		return true;
	}
	fprintf(stderr, "weir state: cannot write: %s\n", weir_errno_words(errno));
	return false;
}

/* Partition by partition; without names each is written as it is read. */
static enum weir_exit print_all(struct dump *dump)
{
	struct weir_error error;
	struct state_read read = {
		.store = dump->backend.store,
		.registry = dump->registry,
		.seed = dump->backend.seed,
		.lateness_ms = dump->backend.lateness_ms,
		.only = dump->only_named ? dump->keys : NULL,
		.each = dump->only_overrides ? NULL : add_bucket,
		.overrides = dump->only_overrides ? add_overrides : NULL,
		.context = dump,
	};
	for (uint32_t partition = 0; partition < dump->partition_count; partition++) {
		if (dump->only_partition != UINT64_MAX && dump->only_partition != partition)
			continue;
		if (state_read_partition(&read, partition, &error) != WEIR_OK) {
			fprintf(stderr, "weir state: %s\n", error.text);
			return WEIR_EXIT_FAILED;
		}
		if (!dump->named && !write_lines(dump))
			return WEIR_EXIT_FAILED;
	}
	return write_lines(dump) ? WEIR_EXIT_DONE : WEIR_EXIT_FAILED;
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct dump dump = {
		.keys = state_keys_new(), .lines = state_lines_new(), .lateness_ms = -1, .only_partition = UINT64_MAX};
	struct weir_error error;
	enum weir_exit code = parse(&dump, argc, argv);
	if (code == WEIR_EXIT_NOT_YET) {
		enum weir_status status = open_state(&dump, &error);
		if (status == WEIR_OK)
			code = print_all(&dump);
		else
			code = status == WEIR_INVALID ? WEIR_EXIT_USAGE : WEIR_EXIT_FAILED;
		if (status != WEIR_OK)
			fprintf(stderr, "weir state: %s\n", error.text);
		policy_registry_free(dump.registry);
		backend_close(&dump.backend);
	}
	state_keys_free(dump.keys);
	state_lines_free(dump.lines);
	weir_text_deinit(&dump.overrides);
	return code;
}

const struct command command_state = {&line, command_main};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir policy`: puts the zones of a configuration in force, and shows current
 * and earlier ones. In a cluster every policy goes through here; on one machine
 * `weir run` does the same at its start and on SIGHUP.
 */
#include "collector/follow/policy_doubts.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/http_address.h"
#include "common/cluster/policy_note.h"
#include "common/cluster/policy_recall.h"
#include "common/config/arguments.h"
#include "common/files/durable_file.h"
#include "common/json/json_writer.h"
#include "deploy/weir/command.h"
#include "deploy/weir/policy/internal.h"
#include "deploy/weir/policy/policy_changes.h"
#include "deploy/weir/policy/policy_check.h"
#include "deploy/weir/terminal/author.h"
#include "deploy/weir/terminal/readable.h"
#include "deploy/weir/test/require.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum option { CONFIG, STATE, VERSION, DRY_RUN, REQUIRE, BY, JSON, OPTION_COUNT };

static const struct weir_argument_option options[] = {
	[CONFIG] = {.name = "config",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "the configuration; show and history need only its sections \"bus\" and \"store\""},
	[STATE] = {.name = "state",
               .value = "DIR",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "show, history, diff: a state directory of `weir run` instead of a cluster"},
	[VERSION] = {.name = "version",
                 .value = "N",
                 .type = WEIR_ARGUMENT_NUMBER,
                 .help = "show, diff, rollback: this version of the policy",
                 .least = 1},
	[DRY_RUN] = {.name = "dry-run",
                 .type = WEIR_ARGUMENT_FLAG,
                 .help = "apply, rollback: say what would change, and change nothing"},
	[REQUIRE] = {.name = "require",
                 .value = "FILE",
                 .type = WEIR_ARGUMENT_TEXT,
                 .help = "apply: only if the zones pass the tests in this file, as `weir test` runs them",
                 .repeatable = true},
	[BY] = {.name = "by",
            .value = "NAME",
            .type = WEIR_ARGUMENT_TEXT,
            .help = "apply, rollback: who does it, for the history (default: the login name)"},
	[JSON] = {.name = "json",
              .type = WEIR_ARGUMENT_FLAG,
              .help = "print JSON instead of text; the output of show can be used as a configuration's \"zones\""},
	[OPTION_COUNT] = {.name = NULL},
};

static const char *const actions[] = {"apply", "diff", "show", "history", "rollback", NULL};

static const struct weir_argument_section sections[] = {
	{"Actions", "  apply     put the zones of FILE in force, unless they already are.\n"
                "  diff      print what FILE would change of what is in force, or version N.\n"
                "  show      print the zones that are in force, or those of version N.\n"
                "  history   print every version: when, by whom, what it changed, if in the log\n"
                "  rollback  put the version before, or version N, in force again as a new\n"
                "            one. On top of a rollback, or within an hour of one, only version\n"
                "            N: typed twice it would bring back what it took away\n"},
	{"What cannot change",
     "A zone keeps its id, its name and the fields of its key forever: buckets are stored under them. A "
     "limit that stays the same keeps its state; a changed one starts empty. Blocks of a zone that is "
     "removed or goes into shadow mode are lifted.\n"
     "\n"
     "On one machine `weir run` applies its own configuration when it starts and on SIGHUP."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "done"},
	{WEIR_EXIT_FAILED,
     "a server failed, or another policy came in between: apply again; a rollback with --version, after a "
     "look at the history"},
	{WEIR_EXIT_USAGE, "the policy fails its tests, or it, the configuration or the command line is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir policy",
	.summary = "apply the zones of a cluster, show current and earlier ones",
	.usage = "weir policy apply [--config FILE] [--require FILE]... [--dry-run]\n"
			 "weir policy diff [--config FILE] [--version N]\n"
			 "weir policy show [--config FILE] [--version N]\n"
			 "weir policy history [--config FILE]\n"
			 "weir policy rollback [--config FILE] [--version N] [--dry-run]",
	.about = "Puts the zones of a configuration in force in a cluster, and shows current and earlier ones.\n"
			 "\n"
			 "A policy is checked against every earlier one, numbered, and appended to each partition of the "
			 "log. Every limiter switches to it at the same point of the log, and collectors match by it from "
			 "then on. The command is done once the log has it. Running it again after a failure completes it.",
	.operand = {.word = "ACTION",
                .help = "apply, diff, show, history or rollback",
                .most = 1,
                .choices = actions,
                .hint = "give the file with --config"},
	.options = options,
	.sections = sections,
	.examples = "weir policy apply --config weir.json --dry-run\n"
				"weir policy apply --config weir.json --require policy.test.json\n"
				"weir policy diff --config /etc/weir/weir.json\n"
				"weir policy show --config weir.json --version 4 --json | jq .zones\n"
				"weir policy history --state /var/lib/weir",
	.exits = exits,
};

enum {
	WAIT_MS = 60000,
	AGAIN_MS = 3600000, /* in which somebody who typed a command may type it again */
};

/* ---- the command line ---- */

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct policy_command *command = context;
	switch (option) {
	case CONFIG: command->config_path = value->text; break;
	case STATE: command->state_path = value->text; break;
	case JSON: command->json = true; break;
	case VERSION: command->version = value->number; break;
	case DRY_RUN: command->dry_run = true; break;
	case REQUIRE: command->required[command->required_count++] = value->text; break;
	case BY: command->by = value->text; break;
	default: command->action = value->text; break;
	}
	return WEIR_EXIT_NOT_YET;
}

static bool is_action(const struct policy_command *command, const char *action)
{
	return strcmp(command->action, action) == 0;
}

static enum weir_exit parse(struct policy_command *command, int argc, char **argv)
{
	command->required = weir_alloc((size_t)argc, sizeof(const char *));
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, command);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (command->action == NULL)
		return weir_arguments_refuse(&line, "missing ACTION: apply, diff, show, history or rollback");
	bool writes = is_action(command, "apply") || is_action(command, "rollback");
	if (writes && command->state_path != NULL)
		return weir_arguments_refuse(&line,
		                             "%s works on a cluster; `weir run` puts its own configuration in force when it "
		                             "starts and on SIGHUP",
		                             command->action);
	if (!writes && (command->dry_run || command->by != NULL))
		return weir_arguments_refuse(&line, "--dry-run and --by are for apply and rollback");
	if (command->version > 0 && (is_action(command, "apply") || is_action(command, "history")))
		return weir_arguments_refuse(&line, "--version is for show, diff and rollback");
	if (command->required_count > 0 && !is_action(command, "apply"))
		return weir_arguments_refuse(&line, "--require is for apply");
	bool needs_config = writes || is_action(command, "diff");
	if ((needs_config || command->state_path == NULL) && !weir_config_find(&command->config_path))
		return weir_arguments_refuse(&line, WEIR_CONFIG_MISSING "%s",
		                             needs_config ? "" : ", or name a directory with --state");
	return WEIR_EXIT_NOT_YET;
}

/* ---- apply ---- */

static const struct weir_policy *newest_policy(const struct policy_command *command)
{
	const struct weir_policy_history *history = &command->history;
	return history->count > 0 ? history->policies[history->count - 1] : NULL;
}

static enum weir_status check_cluster(const struct policy_command *command, struct weir_error *error)
{
	if (command->backend.kind == BACKEND_CLUSTER)
		return WEIR_OK;
	return weir_fail(
		error, WEIR_INVALID,
		"%s has a local \"bus\": `weir run` puts its zones in force when it starts and on SIGHUP; a cluster "
		"needs \"type\": \"kafka\"",
		command->config_path);
}

static enum weir_status check_zones(const struct weir_config *config, struct weir_error *error)
{
	if (config->policy != NULL)
		return WEIR_OK;
	struct weir_json root = weir_json_root(config->document), zones = weir_json_member(&root, "zones");
	return weir_json_require(&zones, "list the zones to put in force", error);
}

/* With a version, the zones that are in force; without, those that would be. */
static void print_result(struct policy_command *command, const struct weir_policy *policy, uint64_t version,
                         uint64_t appended)
{
	const struct weir_policy *newest = newest_policy(command);
	bool is_new = newest == NULL || newest->version < version;
	uint32_t partitions = (uint32_t)command->backend.config->bus.partitions;
	struct weir_text *text = &command->text;
	if (command->json) {
		struct weir_json_writer json = weir_json_writer(text);
		struct weir_text changes = {0};
		policy_words_changes(&changes, newest, policy);
		weir_json_write_object(&json, NULL);
		weir_json_write_uint(&json, "version", version);
		weir_json_write_bool(&json, "changed", is_new);
		weir_json_write_string(&json, "changes", weir_text_span(&changes));
		if (command->dry_run)
			weir_json_write_bool(&json, "dry_run", true);
		else
			weir_json_write_uint(&json, "partitions", partitions);
		weir_json_write_end(&json);
		weir_json_write_newline(&json);
		weir_text_deinit(&changes);
	} else if (is_new) {
		weir_text_printf(text, "policy %llu %s in force in %u partition%s: ", (unsigned long long)version,
		                 command->dry_run ? "would be" : "is", partitions, partitions == 1 ? "" : "s");
		policy_words_changes(text, newest, policy);
		weir_text_puts(text, "\n");
	} else {
		weir_text_printf(text, "policy %llu %s\n", (unsigned long long)version,
		                 appended < version ? "was numbered before, but was not in the whole log; it is in force"
		                                    : "is in force already: these are its zones");
	}
}

/* What may be a mistake of numbers, and how to take it back. */
static void print_leaps(const struct policy_command *command, const struct weir_policy *policy)
{
	struct weir_text leaps = {0};
	policy_words_leaps(&leaps, newest_policy(command), policy);
	for (size_t begin = 0, end = 0; end < leaps.length; end++)
		if (leaps.at[end] == '\n') {
			fprintf(stderr, "weir: %.*s\n", (int)(end - begin), leaps.at + begin);
			begin = end + 1;
		}
	if (leaps.length > 0 && !command->dry_run)
		fprintf(stderr, "weir: to take it back: weir policy rollback --version %llu %s\n",
		        (unsigned long long)newest_policy(command)->version, weir_config_words(command->backend.config));
	weir_text_deinit(&leaps);
}

static void print_lists(const struct weir_policy *policy)
{
	for (uint32_t z = 0; z < policy->zone_count; z++)
		for (uint32_t i = 0; i < policy->zones[z].exempt_list_count; i++) {
			struct weir_text shown = {0};
			weir_http_address_show(policy->zones[z].exempt_lists[i], &shown);
			fprintf(stderr,
			        weir_http_address_meant(policy->zones[z].exempt_lists[i])
			            ? "weir: zone \"%s\": the exempt list %.*s is fetched by every collector\n"
			            : "weir: zone \"%s\": the exempt list %.*s stays a file: every collector needs it there\n",
			        policy->zones[z].name, (int)shown.length, shown.at);
			weir_text_deinit(&shown);
		}
}

/* Of zones that the file has in shadow until something holds, those that weir has armed. */
static void print_armed(const struct policy_command *command, const struct weir_policy *policy)
{
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		const struct weir_zone *zone = &policy->zones[i];
		const struct weir_zone *was = weir_policy_zone_named(newest_policy(command), weir_span_of(zone->name));
		if (zone->arming.armed != NULL)
			fprintf(stderr,
			        "weir: zone \"%s\" enforces, as weir armed it (%s); \"mode\": \"shadow\" would put it back into "
			        "shadow\n",
			        zone->name, zone->arming.armed);
		else if (weir_zone_waits(zone) && was != NULL && was->arming.armed != NULL)
			fprintf(
				stderr,
				"weir: zone \"%s\" goes back into shadow mode: its match, sources, limits or count have changed since "
				"weir armed it\n",
				zone->name);
	}
}

/* A policy_doubt. */
static void print_doubt(void *context, uint32_t zone, const char *member, const char *words)
{
	const struct weir_policy *policy = context;
	fprintf(stderr, "weir: zone \"%s\", %s: %s\n", policy->zones[zone].name, member, words);
}

/* Whether its number was that of the newest before, by which weir itself armed zones, and was killed meanwhile. */
static bool finishes_arming(const struct policy_command *command, const struct weir_policy *policy, uint64_t version)
{
	const struct weir_policy_history *history = &command->history;
	return history->count > 1 && newest_policy(command)->version == version &&
	       weir_policy_is_arming(history->policies[history->count - 2], policy);
}

/* Numbers the policy, notes who did it, and appends it. A dry run stops at the number. */
static enum weir_status put_in_force(struct policy_command *command, struct weir_policy *policy,
                                     struct weir_error *error)
{
	struct backend *backend = &command->backend;
	struct weir_store *store = command->dry_run ? NULL : backend->store;
	uint64_t version, appended = 0;
	struct weir_policy_note note = {.at_ms = weir_wall_ms()};
	enum weir_status status = weir_policy_number(store, (const struct weir_policy *const *)command->history.policies,
	                                             command->history.count, policy, &version, error);
	bool arms = status == WEIR_OK && finishes_arming(command, policy, version);
	author_name(arms ? WEIR_POLICY_AUTHOR_SELF : command->by, note.by, sizeof note.by);
	if (status == WEIR_OK && !command->dry_run)
		status = weir_policy_appended(store, backend->bus, &appended, error);
	if (status == WEIR_OK && !command->dry_run)
		status = weir_policy_note_put(store, version, &note, error);
	if (status == WEIR_OK && !command->dry_run)
		status = weir_policy_append(store, backend->bus, version, note.at_ms, WAIT_MS, error);
	if (status == WEIR_OK)
		print_result(command, policy, version, command->dry_run ? version : appended);
	return status;
}

/* The tests that the zones must pass before anything is written; what failed is printed. */
static enum weir_status pass_tests(const struct policy_command *command, struct weir_error *error)
{
	struct test_run *run = NULL;
	struct weir_text text = {0};
	if (command->required_count == 0)
		return WEIR_OK;
	enum weir_exit code =
		test_run_new(command->required, command->required_count, command->backend.config, command->config_path, &run);
	if (code != WEIR_EXIT_DONE) {
		test_run_words(&text, run, words_coloured(STDERR_FILENO));
		fwrite(text.at, 1, text.length, stderr);
	}
	weir_text_deinit(&text);
	test_run_free(run);
	if (code == WEIR_EXIT_DONE)
		return WEIR_OK;
	return weir_fail(
		error, WEIR_INVALID,
		"the policy was not applied, and what was in force still is: %s. Mend the policy or its tests, and "
		"apply it again",
		code == WEIR_EXIT_FAILED ? "it fails its tests" : "some of its tests cannot be run");
}

static enum weir_status apply(struct policy_command *command, struct weir_error *error)
{
	struct weir_policy *policy = command->backend.config->policy;
	enum weir_status status = check_cluster(command, error);
	if (status == WEIR_OK)
		status = check_zones(command->backend.config, error);
	if (status == WEIR_OK)
		status = policy_check_cluster(policy, error);
	if (status == WEIR_OK)
		status = weir_config_check_waiting(command->backend.config, error);
	if (status == WEIR_OK)
		status = pass_tests(command, error);
	if (status == WEIR_OK)
		weir_policy_stay_armed(policy, newest_policy(command));
	if (status == WEIR_OK)
		status = put_in_force(command, policy, error);
	if (status != WEIR_OK)
		return status;
	print_leaps(command, policy);
	print_lists(policy);
	print_armed(command, policy);
	policy_doubts(policy, NULL, NULL, print_doubt, policy);
	return WEIR_OK;
}

/* ---- rollback, diff ---- */

/* The version before may have to do with other zones than those that somebody wants back. */
static void print_modes(const struct policy_command *command, const struct weir_policy *policy)
{
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		const struct weir_zone *zone = &policy->zones[i], *was = weir_policy_zone(newest_policy(command), zone->id);
		const char *name = zone->name;
		if (was == NULL)
			continue;
		if (was->arming.armed != NULL && zone->arming.armed != NULL)
			fprintf(stderr, "weir: zone \"%s\" stays armed and blocks: an earlier --version takes that back\n", name);
		else if (was->mode == WEIR_SHADOW && zone->mode == WEIR_ENFORCE)
			fprintf(stderr, "weir: zone \"%s\" leaves shadow mode and blocks\n", name);
		else if (was->mode == WEIR_ENFORCE && zone->mode == WEIR_SHADOW)
			fprintf(stderr, "weir: zone \"%s\" goes back into shadow mode and blocks nobody%s\n", name,
			        weir_zone_waits(zone) ? ": its days are counted anew" : "");
	}
}

/* The version whose zones this one has put in force again; 0: its zones were not there before. */
static uint64_t returns_to(const struct weir_policy_history *history, size_t place)
{
	for (size_t i = place; i > 0; i--)
		if (strcmp(history->policies[i - 1]->text, history->policies[place]->text) == 0)
			return history->policies[i - 1]->version;
	return 0;
}

/*
 * Whether "the version before" can be another than who types it thinks of: he may have typed it already, as its answer
 * was lost, and somebody may have applied a policy since. What it took away would come back.
 */
static enum weir_status check_before(const struct policy_command *command, struct weir_error *error)
{
	const struct weir_policy_history *history = &command->history;
	int64_t now_ms = weir_wall_ms();
	for (size_t i = history->count; i > 0; i--) {
		const struct weir_policy *policy = history->policies[i - 1];
		bool newest = i == history->count;
		uint64_t earlier = returns_to(history, i - 1);
		struct weir_policy_note note;
		enum weir_status status = weir_policy_note_get(command->backend.store, policy->version, &note, error);
		if (status != WEIR_OK)
			return status;
		if (!newest && note.at_ms < now_ms - AGAIN_MS) /* 0: it was not noted, by an older weir */
			return WEIR_OK;
		if (earlier > 0)
			return weir_fail(
				error, WEIR_INVALID,
				"policy %llu has put the zones of policy %llu in force again%s: the rollback may be done. See "
				"`weir policy history`, and name the version whose zones you want: weir policy rollback "
				"--version N",
				(unsigned long long)policy->version, (unsigned long long)earlier,
				newest ? "" : ", and others came after it");
	}
	return WEIR_OK;
}

static enum weir_status rollback(struct policy_command *command, struct weir_error *error)
{
	const struct weir_policy *newest = newest_policy(command);
	enum weir_status status = check_cluster(command, error);
	if (status != WEIR_OK)
		return status;
	if (command->version == 0 && newest->version < 2)
		return weir_fail(error, WEIR_INVALID, "policy 1 is the first: there is none before it");
	if (command->version == 0)
		status = check_before(command, error);
	if (status != WEIR_OK)
		return status;
	if (command->version == 0)
		command->version = newest->version - 1;
	struct weir_policy *policy = policy_find(command, error);
	status = policy != NULL ? put_in_force(command, policy, error) : WEIR_INVALID;
	if (status == WEIR_OK)
		print_modes(command, policy);
	return status;
}

static enum weir_status diff(struct policy_command *command, struct weir_error *error)
{
	struct weir_text *text = &command->text;
	const struct weir_policy *const *history = (const struct weir_policy *const *)command->history.policies;
	struct weir_policy *policy = command->backend.config->policy;
	enum weir_status status = check_zones(command->backend.config, error);
	const struct weir_policy *from = status == WEIR_OK ? policy_find(command, error) : NULL;
	if (from == NULL)
		return WEIR_INVALID;
	weir_policy_stay_armed(policy, newest_policy(command));
	status = weir_policy_follow(policy, history, command->history.count, error);
	if (status != WEIR_OK)
		return status;
	struct weir_text changes = {0};
	bool differs = policy_words_changes(&changes, from, policy);
	struct weir_json_writer json = weir_json_writer(text);
	if (command->json) {
		weir_json_write_object(&json, NULL);
		weir_json_write_uint(&json, "version", from->version);
		weir_json_write_bool(&json, "changed", differs);
		weir_json_write_string(&json, "changes", weir_text_span(&changes));
		weir_json_write_end(&json);
		weir_json_write_newline(&json);
	} else {
		weir_text_printf(text, "%s against policy %llu: ", command->config_path, (unsigned long long)from->version);
		weir_text_append(text, changes.at, changes.length);
		weir_text_puts(text, "\n");
	}
	weir_text_deinit(&changes);
	return WEIR_OK;
}

/* ---- all of it ---- */

/* What the store has lost comes back first: a next policy must not get the number of one that partitions work by. */
static enum weir_status recall(const struct policy_command *command, struct weir_error *error)
{
	const struct backend *backend = &command->backend;
	struct weir_policies_recalled recalled = {0};
	enum weir_status status =
		backend->bus != NULL ? weir_policy_recall(backend->store, backend->bus, &recalled, error) : WEIR_OK;
	if (recalled.last > 0)
		fprintf(
			stderr,
			"weir policy: the store had lost policies %llu to %llu, and has them again from %s.policy. If this is a new "
			"cluster, it shares these topics with another one: give it a \"bus.prefix\" of its own (runbook: "
			"store-failed-over)\n",
			(unsigned long long)recalled.first, (unsigned long long)recalled.last, backend->config->bus.prefix);
	if (status == WEIR_OK)
		status = weir_policy_check_checkpoints(backend->store, (uint32_t)backend->config->bus.partitions, error);
	return status;
}

/* A dry run on a cluster that has nothing yet is of its first policy. */
static enum weir_status open_backend(struct policy_command *command, struct weir_error *error)
{
	bool writes = is_action(command, "apply") || is_action(command, "rollback");
	bool makes = writes && !command->dry_run;
	enum weir_status status = backend_open(&command->backend, "weir policy", command->config_path, command->state_path,
	                                       makes ? BACKEND_MAKES : BACKEND_READS, error);
	if (status == WEIR_OK && writes && command->backend.kind == BACKEND_CLUSTER)
		status = recall(command, error);
	if (status == WEIR_OK)
		return weir_policy_history_load(command->backend.store, &command->history, error);
	if (command->dry_run && command->backend.absent && is_action(command, "apply"))
		return WEIR_OK;
	return status;
}

static enum weir_status run(struct policy_command *command, struct weir_error *error)
{
	enum weir_status status = open_backend(command, error);
	if (status != WEIR_OK)
		return status;
	if (is_action(command, "apply"))
		return apply(command, error);
	if (command->history.count == 0)
		return weir_fail(error, WEIR_INVALID, "no policy yet: run `weir policy apply %s`",
		                 weir_config_zones_words(command->backend.config));
	if (is_action(command, "rollback"))
		return rollback(command, error);
	if (is_action(command, "diff"))
		return diff(command, error);
	return is_action(command, "show") ? policy_show(command, error) : policy_show_history(command, error);
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct policy_command command = {0};
	struct weir_error error;
	size_t written;
	enum weir_exit code = parse(&command, argc, argv);
	if (code != WEIR_EXIT_NOT_YET) {
		free(command.required);
		return code;
	}
	enum weir_status status = run(&command, &error);
	code = weir_exit_of(status);
	if (status != WEIR_OK)
		fprintf(stderr, "weir policy: %s\n", error.text);
	if (weir_write_all(STDOUT_FILENO, command.text.at, command.text.length, &written) != 0) {
		perror("weir policy: cannot write");
		code = WEIR_EXIT_FAILED;
	}
	weir_text_deinit(&command.text);
	free(command.required);
	weir_policy_history_deinit(&command.history);
	backend_close(&command.backend);
	return code;
}

const struct command command_policy = {&line, command_main};

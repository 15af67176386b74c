/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir policy`: puts the zones of a configuration in force, and shows current
 * and earlier ones. In a cluster every policy goes through here; on one machine
 * `weir run` does the same at its start and on SIGHUP.
 */
#include "collector/follow/policy_doubts.h"
#include "common/base/clock.h"
#include "common/config/arguments.h"
#include "common/files/durable_file.h"
#include "common/json/json_writer.h"
#include "deploy/weir/backend/backend.h"
#include "deploy/weir/command.h"
#include "deploy/weir/policy/policy_changes.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum option { CONFIG, STATE, VERSION, JSON, OPTION_COUNT };

static const struct weir_argument_option options[] = {
	[CONFIG] = {.name = "config",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "the configuration; show and history need only its sections \"bus\" and \"store\""},
	[STATE] = {.name = "state",
               .value = "DIR",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "show, history: a state directory of `weir run` instead of a cluster"},
	[VERSION] = {.name = "version",
                 .value = "N",
                 .type = WEIR_ARGUMENT_NUMBER,
                 .help = "show: this version of the policy",
                 .least = 1},
	[JSON] = {.name = "json",
              .type = WEIR_ARGUMENT_FLAG,
              .help = "print JSON instead of text; the output of show can be used as a configuration's \"zones\""},
	[OPTION_COUNT] = {.name = NULL},
};

static const char *const actions[] = {"apply", "show", "history", NULL};

static const struct weir_argument_section sections[] = {
	{"Actions", "  apply    put the zones of FILE in force, unless they already are\n"
                "  show     print the zones that are in force, or those of version N\n"
                "  history  print every version: what it changed, and whether it is in the log\n"},
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
	{WEIR_EXIT_FAILED, "a server failed; try again"},
	{WEIR_EXIT_USAGE, "the policy, the configuration or the command line is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir policy",
	.summary = "apply the zones of a cluster, show current and earlier ones",
	.usage = "weir policy apply [--config FILE]\n"
			 "weir policy show [--config FILE] [--version N]\n"
			 "weir policy history [--config FILE]",
	.about = "Puts the zones of a configuration in force in a cluster, and shows current and earlier ones.\n"
			 "\n"
			 "A policy is checked against every earlier one, numbered, and appended to each partition of the "
			 "log. Every limiter switches to it at the same point of the log, and collectors match by it from "
			 "then on. The command is done once the log has it. Running it again after a failure completes it.",
	.operand = {.word = "ACTION",
                .help = "apply, show or history",
                .most = 1,
                .choices = actions,
                .hint = "give the file with --config"},
	.options = options,
	.sections = sections,
	.examples = "weir policy apply --config weir.json\n"
				"weir policy show --config weir.json --version 4 --json | jq .zones\n"
				"weir policy history --state /var/lib/weir",
	.exits = exits,
};

enum { WAIT_MS = 60000 };

struct policy_command {
	const char *action, *config_path, *state_path;
	uint64_t version; /* 0: the newest */
	bool json;
	struct backend backend;
	struct weir_policy_history history;
	struct weir_text text;
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
	default: command->action = value->text; break;
	}
	return WEIR_EXIT_NOT_YET;
}

static enum weir_exit parse(struct policy_command *command, int argc, char **argv)
{
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, command);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (command->action == NULL)
		return weir_arguments_refuse(&line, "missing ACTION: apply, show or history");
	bool is_apply = strcmp(command->action, "apply") == 0;
	if (is_apply && command->state_path != NULL)
		return weir_arguments_refuse(&line,
		                             "apply works on a cluster; `weir run` puts its own configuration in force when it "
		                             "starts and on SIGHUP");
	if (command->state_path == NULL && !weir_config_find(&command->config_path))
		return weir_arguments_refuse(&line, WEIR_CONFIG_MISSING "%s",
		                             is_apply ? "" : ", or name a directory with --state");
	return WEIR_EXIT_NOT_YET;
}

/* ---- apply ---- */

static enum weir_status check_zones(const struct policy_command *command, struct weir_error *error)
{
	const struct weir_config *config = command->backend.config;
	if (command->backend.kind != BACKEND_CLUSTER)
		return weir_fail(error, WEIR_INVALID,
		                 "%s has a local \"bus\": `weir run` puts its zones in force when it starts and on SIGHUP; a "
		                 "cluster needs \"type\": \"kafka\"",
		                 command->config_path);
	if (config->policy != NULL)
		return WEIR_OK;
	struct weir_json root = weir_json_root(config->document), zones = weir_json_member(&root, "zones");
	return weir_json_require(&zones, "list the zones to put in force", error);
}

static void print_applied(struct policy_command *command, uint64_t version, uint64_t appended)
{
	const struct weir_policy_history *history = &command->history;
	const struct weir_policy *newest = history->count > 0 ? history->policies[history->count - 1] : NULL;
	bool is_new = newest == NULL || newest->version < version;
	uint32_t partitions = command->backend.bus->partitions;
	struct weir_text *text = &command->text;
	if (command->json) {
		struct weir_json_writer json = weir_json_writer(text);
		weir_json_write_object(&json, NULL);
		weir_json_write_uint(&json, "version", version);
		weir_json_write_bool(&json, "changed", is_new);
		weir_json_write_uint(&json, "partitions", partitions);
		weir_json_write_end(&json);
		weir_json_write_newline(&json);
	} else if (is_new) {
		weir_text_printf(text, "policy %llu is in force in %u partition%s: ", (unsigned long long)version, partitions,
		                 partitions == 1 ? "" : "s");
		policy_words_changes(text, newest, command->backend.config->policy);
		weir_text_puts(text, "\n");
	} else {
		weir_text_printf(text, "policy %llu %s\n", (unsigned long long)version,
		                 appended < version ? "was numbered before, but was not in the whole log; it is in force"
		                                    : "is in force already: these are its zones");
	}
}

/* Lists that stay files are read by every collector, wherever it runs: it has to find them. */
static enum weir_status check_lists(const struct weir_policy *policy, struct weir_error *error)
{
	for (uint32_t z = 0; z < policy->zone_count; z++) {
		const struct weir_zone *zone = &policy->zones[z];
		for (uint32_t i = 0; i < zone->exempt_list_count; i++)
			if (zone->exempt_lists[i][0] != '/')
				return weir_fail(
					error, WEIR_INVALID,
					"zone \"%s\": every collector reads the exempt list %s by itself, as it stays a file: give its "
					"whole path",
					zone->name, zone->exempt_lists[i]);
	}
	return WEIR_OK;
}

static void print_lists(const struct weir_policy *policy)
{
	for (uint32_t z = 0; z < policy->zone_count; z++)
		for (uint32_t i = 0; i < policy->zones[z].exempt_list_count; i++)
			fprintf(stderr, "weir: zone \"%s\": the exempt list %s stays a file: every collector needs it there\n",
			        policy->zones[z].name, policy->zones[z].exempt_lists[i]);
}

/* A policy_doubt. */
static void print_doubt(void *context, uint32_t zone, const char *member, const char *words)
{
	const struct weir_policy *policy = context;
	fprintf(stderr, "weir: zone \"%s\", %s: %s\n", policy->zones[zone].name, member, words);
}

static enum weir_status apply(struct policy_command *command, struct weir_error *error)
{
	struct backend *backend = &command->backend;
	uint64_t version, appended;
	enum weir_status status = check_zones(command, error);
	if (status == WEIR_OK)
		status = check_lists(backend->config->policy, error);
	if (status == WEIR_OK)
		status = weir_policy_number(backend->store, (const struct weir_policy *const *)command->history.policies,
		                            command->history.count, backend->config->policy, &version, error);
	if (status == WEIR_OK)
		status = weir_policy_appended(backend->store, &appended, error);
	if (status == WEIR_OK)
		status = weir_policy_append(backend->store, backend->bus, version, weir_wall_ms(), WAIT_MS, error);
	if (status != WEIR_OK)
		return status;
	print_lists(backend->config->policy);
	policy_doubts(backend->config->policy, NULL, NULL, print_doubt, backend->config->policy);
	print_applied(command, version, appended);
	return WEIR_OK;
}

/* ---- show, history ---- */

static void put_state(struct weir_text *text, uint64_t version, uint64_t appended)
{
	weir_text_puts(text, version > appended ? "not in the whole log: apply it again" : "");
}

static enum weir_status show(struct policy_command *command, struct weir_error *error)
{
	const struct weir_policy_history *history = &command->history;
	const struct weir_policy *policy = NULL;
	struct weir_text *text = &command->text;
	uint64_t appended, newest = 0;
	for (size_t i = 0; i < history->count; i++) {
		newest = history->policies[i]->version;
		if (command->version == 0 || newest == command->version)
			policy = history->policies[i];
	}
	if (policy == NULL)
		return weir_fail(error, WEIR_INVALID, "there is no policy %llu; the newest is %llu",
		                 (unsigned long long)command->version, (unsigned long long)newest);
	enum weir_status status = weir_policy_appended(command->backend.store, &appended, error);
	if (status != WEIR_OK)
		return status;
	if (command->json) {
		/* The canonical text is an object. */
		struct weir_json_writer json = weir_json_writer(text);
		weir_json_write_object(&json, NULL);
		weir_json_write_uint(&json, "version", policy->version);
		weir_json_write_members(&json, weir_span_of(policy->text));
		weir_json_write_end(&json);
		weir_json_write_newline(&json);
		return WEIR_OK;
	}
	weir_text_printf(text, "policy %llu", (unsigned long long)policy->version);
	weir_text_puts(text, policy->version > appended ? ", " : "");
	put_state(text, policy->version, appended);
	weir_text_puts(text, "\n");
	policy_words_zones(text, policy);
	return WEIR_OK;
}

static void put_version_json(struct weir_text *text, const struct weir_policy *policy, const struct weir_policy *before,
                             uint64_t appended)
{
	struct weir_json_writer json = weir_json_writer(text);
	struct weir_text changes = {0};
	policy_words_changes(&changes, before, policy);
	weir_json_write_object(&json, NULL);
	weir_json_write_uint(&json, "version", policy->version);
	weir_json_write_uint(&json, "zones", policy->zone_count);
	weir_json_write_bool(&json, "in_log", policy->version <= appended);
	weir_json_write_string(&json, "changes", (struct weir_span){.at = changes.at, .length = (uint32_t)changes.length});
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
	weir_text_deinit(&changes);
}

static void put_version(struct weir_text *text, const struct weir_policy *policy, const struct weir_policy *before,
                        uint64_t appended)
{
	weir_text_printf(text, "%llu  %u zone%s: ", (unsigned long long)policy->version, policy->zone_count,
	                 policy->zone_count == 1 ? "" : "s");
	policy_words_changes(text, before, policy);
	weir_text_puts(text, policy->version > appended ? "; " : "");
	put_state(text, policy->version, appended);
	weir_text_puts(text, "\n");
}

static enum weir_status show_history(struct policy_command *command, struct weir_error *error)
{
	const struct weir_policy_history *history = &command->history;
	uint64_t appended;
	enum weir_status status = weir_policy_appended(command->backend.store, &appended, error);
	for (size_t i = 0; status == WEIR_OK && i < history->count; i++)
		(command->json ? put_version_json : put_version)(&command->text, history->policies[i],
		                                                 i > 0 ? history->policies[i - 1] : NULL, appended);
	return status;
}

/* ---- all of it ---- */

static enum weir_status run(struct policy_command *command, struct weir_error *error)
{
	bool is_apply = strcmp(command->action, "apply") == 0;
	enum weir_status status = backend_open(&command->backend, "weir policy", command->config_path, command->state_path,
	                                       is_apply ? BACKEND_MAKES : BACKEND_READS, error);
	if (status == WEIR_OK)
		status = weir_policy_history_load(command->backend.store, &command->history, error);
	if (status != WEIR_OK)
		return status;
	if (is_apply)
		return apply(command, error);
	if (command->history.count == 0)
		return weir_fail(error, WEIR_INVALID, "no policy yet: run `weir policy apply`");
	return strcmp(command->action, "show") == 0 ? show(command, error) : show_history(command, error);
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct policy_command command = {0};
	struct weir_error error;
	size_t written;
	enum weir_exit code = parse(&command, argc, argv);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	enum weir_status status = run(&command, &error);
	code = weir_exit_of(status);
	if (status != WEIR_OK)
		fprintf(stderr, "weir policy: %s\n", error.text);
	if (weir_write_all(STDOUT_FILENO, command.text.at, command.text.length, &written) != 0) {
		perror("weir policy: cannot write");
		code = WEIR_EXIT_FAILED;
	}
	weir_text_deinit(&command.text);
	weir_policy_history_deinit(&command.history);
	backend_close(&command.backend);
	return code;
}

const struct command command_policy = {&line, command_main};

/*
 * `weir policy`: puts the zones of a configuration in force, and shows those
 * that are and were. In a cluster every policy goes through here; on one machine
 * `weir run` does the same at its start and on SIGHUP.
 */
#include "common/base/clock.h"
#include "common/base/suggest.h"
#include "common/config/arguments.h"
#include "common/files/durable_file.h"
#include "deploy/weir/command.h"
#include "deploy/weir/policy/policy_changes.h"
#include "deploy/weir/realm/realm.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"usage: weir policy apply --config FILE\n"
	"       weir policy show --config FILE [--version N]\n"
	"       weir policy history --config FILE\n"
	"\n"
	"Puts the zones of a configuration in force in the cluster that its sections bus and store name: the policy\n"
	"is checked against every one that there was, numbered, and appended to each partition of the log, so that\n"
	"every limiter goes over to it at the same place of its log, and collectors match by it from then on. It is\n"
	"done when the log has it. Calling it again, after a failure too, does what is still to be done.\n"
	"\n"
	"  apply        the zones of FILE come into force; if they are, nothing is written\n"
	"  show         those in force, or of version N\n"
	"  history      every version: what it changed, and whether it is in the log\n"
	"\n"
	"  --config FILE   the configuration. For show and history its zones do not matter and may be absent\n"
	"  --state DIR     for show and history: a state directory of `weir run`, in place of a cluster\n"
	"  --version N     of the policy to show\n"
	"  --json          JSON in place of words; show's can be a configuration's \"zones\"\n"
	"\n"
	"A zone keeps its id, its name and the fields of its key for ever: buckets are stored under them. A limit\n"
	"that stays the same keeps its state, a changed one starts empty, blocks of a zone that is removed or goes\n"
	"into shadow mode are lifted.\n"
	"On one machine `weir run` applies its own configuration when it starts and on SIGHUP.\n"
	"\n"
	"Exit codes: 0 done; 1 a server failed, try again; 2 the policy or the command line is wrong.\n"
	"\n"
	"Examples\n"
	"  weir policy apply --config weir.json\n"
	"  weir policy show --config weir.json --version 4 --json | jq .zones > zones-before.json\n"
	"  weir policy history --state /var/lib/weir\n";

enum option { CONFIG, STATE, VERSION, JSON };

static const struct weir_argument_option table[] = {
	{"config", true}, {"state", true}, {"version", true}, {"json", false}, {NULL, false},
};

enum { WAIT_MS = 60000 };

struct policy_command {
	struct weir_arguments arguments;
	const char *action, *config_path, *state_path;
	uint64_t version; /* 0: the newest */
	bool json;
	struct realm realm;
	struct weir_policy_history history;
	struct weir_text text;
};

/* ---- the command line ---- */

static const char *const actions[] = {"apply", "show", "history", NULL};

static enum weir_exit refuse_action(const struct policy_command *command)
{
	const char *near = command->action != NULL ? weir_nearest_name(command->action, actions) : NULL;
	if (near != NULL)
		weir_arguments_refuse(&command->arguments, "there is no \"%s\"; \"%s\" is meant?", command->action, near);
	else if (command->action != NULL)
		weir_arguments_refuse(&command->arguments, "there is no \"%s\"; there are apply, show, history",
		                      command->action);
	else
		weir_arguments_refuse(&command->arguments, "say what to do: apply, show or history");
	return WEIR_EXIT_USAGE;
}

static enum weir_exit take_option(struct policy_command *command, int option, const char *value)
{
	switch (option) {
	case CONFIG: command->config_path = value; return WEIR_EXIT_NOT_YET;
	case STATE: command->state_path = value; return WEIR_EXIT_NOT_YET;
	case JSON: command->json = true; return WEIR_EXIT_NOT_YET;
	case VERSION:
		if (weir_arguments_count(value, &command->version) && command->version > 0)
			return WEIR_EXIT_NOT_YET;
		weir_arguments_refuse(&command->arguments, "--version must be a number from 1, not \"%s\"", value);
		return WEIR_EXIT_USAGE;
	case WEIR_ARGUMENTS_WORD:
		if (command->action == NULL) {
			command->action = value;
			return WEIR_EXIT_NOT_YET;
		}
		weir_arguments_refuse(&command->arguments, "\"%s\" is too many; the file is named by --config", value);
		return WEIR_EXIT_USAGE;
	case WEIR_ARGUMENTS_HELP: fputs(help, stdout); return WEIR_EXIT_DONE;
	default: return WEIR_EXIT_USAGE;
	}
}

/* WEIR_EXIT_NOT_YET: go on. */
static enum weir_exit parse(struct policy_command *command, int argc, char **argv)
{
	command->arguments =
		(struct weir_arguments){.command = "weir policy", .options = table, .argc = argc, .argv = argv};
	const char *value;
	enum weir_exit code = WEIR_EXIT_NOT_YET;
	int option;
	while (code == WEIR_EXIT_NOT_YET &&
	       (option = weir_arguments_next(&command->arguments, &value)) != WEIR_ARGUMENTS_END)
		code = take_option(command, option, value);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	bool is_apply = command->action != NULL && strcmp(command->action, "apply") == 0;
	if (!is_apply &&
	    (command->action == NULL || (strcmp(command->action, "show") != 0 && strcmp(command->action, "history") != 0)))
		return refuse_action(command);
	if (is_apply && command->state_path != NULL) {
		weir_arguments_refuse(&command->arguments,
		                      "apply works on a cluster; `weir run` puts its own configuration in force when it "
		                      "starts and on SIGHUP");
		return WEIR_EXIT_USAGE;
	}
	if (command->config_path != NULL || command->state_path != NULL)
		return WEIR_EXIT_NOT_YET;
	weir_arguments_refuse(&command->arguments, is_apply ? "name the configuration by --config"
	                                                    : "name a configuration by --config, or a --state directory");
	return WEIR_EXIT_USAGE;
}

/* ---- apply ---- */

static enum weir_status check_zones(const struct policy_command *command, struct weir_error *error)
{
	const struct weir_config *config = command->realm.config;
	if (command->realm.kind != REALM_CLUSTER)
		return weir_fail(error, WEIR_INVALID,
		                 "%s has \"bus\" on this machine, where `weir run` puts its zones in force when it starts and "
		                 "on SIGHUP; \"type\": \"kafka\" there is for a cluster",
		                 command->config_path);
	if (config->policy != NULL)
		return WEIR_OK;
	struct weir_json root = weir_json_root(config->document), zones = weir_json_member(&root, "zones");
	return weir_json_require(&zones, "what is to come into force", error);
}

static void say_applied(struct policy_command *command, uint64_t version, uint64_t appended)
{
	const struct weir_policy_history *history = &command->history;
	const struct weir_policy *newest = history->count > 0 ? history->policies[history->count - 1] : NULL;
	bool is_new = newest == NULL || newest->version < version;
	uint32_t partitions = command->realm.bus->partitions;
	struct weir_text *text = &command->text;
	if (command->json) {
		weir_text_printf(text, "{\"version\":%llu,\"changed\":%s,\"partitions\":%u}\n", (unsigned long long)version,
		                 is_new ? "true" : "false", partitions);
	} else if (is_new) {
		weir_text_printf(text, "policy %llu is in force in %u partition%s: ", (unsigned long long)version, partitions,
		                 partitions == 1 ? "" : "s");
		policy_words_changes(text, newest, command->realm.config->policy);
		weir_text_puts(text, "\n");
	} else {
		weir_text_printf(text, "policy %llu %s\n", (unsigned long long)version,
		                 appended < version ? "was numbered before, but was not in the whole log; it is in force"
		                                    : "is in force already: these are its zones");
	}
}

static enum weir_status apply(struct policy_command *command, struct weir_error *error)
{
	struct realm *realm = &command->realm;
	uint64_t version, appended;
	enum weir_status status = check_zones(command, error);
	if (status == WEIR_OK)
		status = weir_policy_number(realm->store, (const struct weir_policy *const *)command->history.policies,
		                            command->history.count, realm->config->policy, &version, error);
	if (status == WEIR_OK)
		status = weir_policy_appended(realm->store, &appended, error);
	if (status == WEIR_OK)
		status = weir_policy_append(realm->store, realm->bus, version, weir_wall_ms(), WAIT_MS, error);
	if (status == WEIR_OK)
		say_applied(command, version, appended);
	return status;
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
	enum weir_status status = weir_policy_appended(command->realm.store, &appended, error);
	if (status != WEIR_OK)
		return status;
	if (command->json) {
		/* The canonical text is an object. */
		weir_text_printf(text, "{\"version\":%llu,", (unsigned long long)policy->version);
		weir_text_puts(text, policy->text + 1);
		weir_text_puts(text, "\n");
		return WEIR_OK;
	}
	weir_text_printf(text, "policy %llu", (unsigned long long)policy->version);
	weir_text_puts(text, policy->version > appended ? ", " : "");
	put_state(text, policy->version, appended);
	weir_text_puts(text, "\n");
	policy_words_zones(text, policy);
	return WEIR_OK;
}

static enum weir_status show_history(struct policy_command *command, struct weir_error *error)
{
	const struct weir_policy_history *history = &command->history;
	struct weir_text *text = &command->text;
	uint64_t appended;
	enum weir_status status = weir_policy_appended(command->realm.store, &appended, error);
	for (size_t i = 0; status == WEIR_OK && i < history->count; i++) {
		const struct weir_policy *policy = history->policies[i], *before = i > 0 ? history->policies[i - 1] : NULL;
		if (command->json) {
			weir_text_printf(
				text, "{\"version\":%llu,\"zones\":%u,\"in_log\":%s,\"changes\":", (unsigned long long)policy->version,
				policy->zone_count, policy->version <= appended ? "true" : "false");
			struct weir_text changes = {0};
			policy_words_changes(&changes, before, policy);
			weir_text_json(text, (struct weir_span){.at = changes.at, .length = (uint32_t)changes.length});
			weir_text_deinit(&changes);
			weir_text_puts(text, "}\n");
			continue;
		}
		weir_text_printf(text, "%llu  %u zone%s: ", (unsigned long long)policy->version, policy->zone_count,
		                 policy->zone_count == 1 ? "" : "s");
		policy_words_changes(text, before, policy);
		weir_text_puts(text, policy->version > appended ? "; " : "");
		put_state(text, policy->version, appended);
		weir_text_puts(text, "\n");
	}
	return status;
}

/* ---- all of it ---- */

static enum weir_status run(struct policy_command *command, struct weir_error *error)
{
	bool is_apply = strcmp(command->action, "apply") == 0;
	enum weir_status status = realm_open(&command->realm, "weir policy", command->config_path, command->state_path,
	                                     is_apply ? REALM_MAKES : REALM_READS, error);
	if (status == WEIR_OK)
		status = weir_policy_history_load(command->realm.store, &command->history, error);
	if (status != WEIR_OK)
		return status;
	if (is_apply)
		return apply(command, error);
	if (command->history.count == 0)
		return weir_fail(error, WEIR_INVALID, "there is no policy yet: run `weir policy apply`");
	return strcmp(command->action, "show") == 0 ? show(command, error) : show_history(command, error);
}

enum weir_exit command_policy(int argc, char **argv)
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
	realm_close(&command.realm);
	return code;
}

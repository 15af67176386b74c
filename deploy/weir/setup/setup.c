/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir setup`: shows what a gateway needs so that weir can block there, and with --apply writes it. What the gateway's
 * own check refuses is put back as it was.
 */
#include "common/base/alloc.h"
#include "common/base/stop.h"
#include "common/config/arguments.h"
#include "common/config/config.h"
#include "deploy/gateways/gateway/gateway_settings.h"
#include "deploy/gateways/target/exec/program.h"
#include "deploy/weir/command.h"
#include "deploy/weir/setup/setup_entry.h"
#include "deploy/weir/setup/setup_list.h"
#include "deploy/weir/setup/setup_plan.h"
#include "deploy/weir/setup/setup_subscriber.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHECK_MS = 60000 };

enum option { APPLY, REMOVE, RELOAD, ZONE, PORT, FILE_, LIST, CONFIG, BACKUP, OPTION_COUNT };

static const struct weir_argument_option options_table[] = {
	[APPLY] = {.name = "apply",
               .type = WEIR_ARGUMENT_FLAG,
               .help = "write it, after showing what changes; without this nothing is touched"},
	[REMOVE] = {.name = "remove", .type = WEIR_ARGUMENT_FLAG, .help = "take out what an earlier setup put there"},
	[RELOAD] = {.name = "reload",
                .type = WEIR_ARGUMENT_FLAG,
                .help = "with --apply: also make the gateway, and a running weir.service, take it up"},
	[ZONE] = {.name = "zone",
              .value = "NAME",
              .type = WEIR_ARGUMENT_TEXT,
              .help = "block only for this zone (default: every zone that counts by an address)",
              .repeatable = true,
              .expected = "a zone's name, at most 256 times"},
	[PORT] = {.name = "port",
              .value = "N",
              .type = WEIR_ARGUMENT_NUMBER,
              .help = "nft: drop only what comes for this port, by TCP or UDP (default: all packets of who is blocked)",
              .least = 1,
              .most = UINT16_MAX,
              .repeatable = true},
	[FILE_] = {.name = "file",
               .value = "FILE",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "the gateway's main configuration (default: the installed one)",
               .expected = "an absolute path of letters, digits and /._-"},
	[LIST] = {.name = "list",
              .value = "FILE",
              .type = WEIR_ARGUMENT_TEXT,
              .help = "nginx: the file that weir keeps (default /var/lib/weir/gateways/nginx.map)",
              .expected = "an absolute path of letters, digits and /._-"},
	[CONFIG] = {.name = "config",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "weir's configuration, which gets the entry in \"gateways\""},
	[BACKUP] = {.name = "backup",
                .value = "DIR",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "where files are copied to before they change (default /var/backups/weir)"},
	[OPTION_COUNT] = {.name = NULL},
};

static const char *const kinds[] = {"nginx", "nft", "haproxy", NULL};
static setup_make *const makers[] = {setup_nginx, setup_nft, setup_haproxy};

static const struct weir_argument_section sections[] = {
	{"What it writes",
     "nginx\n"
     "    a geo that holds the list, the answer 429 with Retry-After, one include in\n"
     "    each server, and the empty list\n"
     "nft\n"
     "    a table inet weir with two sets and a chain before all others, and its\n"
     "    include in nftables.conf; under systemd, a drop-in by which weir.service\n"
     "    loads and may change them\n"
     "haproxy\n"
     "    three lines in each frontend of mode http, a map, and a stats socket of\n"
     "    level admin where there is none that weir's units can open\n"
     "\n"
     "It adds the gateway to \"gateways\" of weir's configuration, and leaves every other byte "
     "of it as it is. A file of these names that setup did not make is yours: it is neither "
     "replaced nor removed. Files are replaced whole, and a copy of each is kept. When the gateway's own "
     "check refuses the result, all files are put back.\n"},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "it is shown, or done, or there is nothing to do"},
	{WEIR_EXIT_FAILED, "a file cannot be written, or the gateway refuses: nothing is changed; or its reload failed"},
	{WEIR_EXIT_USAGE, "the command line or a configuration is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir setup",
	.summary = "make nginx, nft or HAProxy block whom weir blocks",
	.usage = "weir setup nginx|nft|haproxy [--apply [--reload]] [OPTION...]\n"
			 "weir setup nginx|nft|haproxy --remove [--apply [--reload]]",
	.about = "Shows what a gateway needs so that it refuses whom weir blocks, and writes it with --apply.",
	.operand = {.word = "GATEWAY",
                .help = "nginx, nft or haproxy",
                .most = 1,
                .choices = kinds,
                .hint = "one gateway at a time"},
	.options = options_table,
	.sections = sections,
	.examples = "weir setup nginx\n"
				"weir setup nginx --zone site --apply --reload\n"
				"weir setup nft --zone ssh --port 22 --apply --reload\n"
				"weir setup haproxy --file /etc/haproxy/haproxy.cfg\n"
				"weir setup nginx --remove --apply --reload",
	.exits = exits,
};

struct setup {
	setup_make *make; /* NULL: none is named */
	const char *config_path, *backup;
	struct weir_config *config;     /* NULL: none is named, or it is refused */
	enum weir_status config_status; /* of reading it, with the words */
	struct weir_error config_error;
	const char *zones[SETUP_ZONES_MAX];
	size_t zone_count;
	bool zones_named; /* on the command line */
	bool no_zone;     /* counts by an address, and none is named */
	bool apply, reload;
	bool local; /* the configuration is of one machine: its weir.service keeps the list */
	bool entry_changed;
	struct weir_text entry; /* as JSON, terminated */
	struct setup_plan plan;
};

/* ---- the command line ---- */

/* It goes into other programs' files, whose quotes are not ours to know. */
static bool plain_path(const char *path)
{
	return path[0] == '/' && strlen(path) < WEIR_PATH_BYTES / 2 &&
	       path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-")] == '\0';
}

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct setup *setup = context;
	struct setup_plan *plan = &setup->plan;
	switch (option) {
	case APPLY: setup->apply = true; break;
	case REMOVE: plan->remove = true; break;
	case RELOAD: setup->reload = true; break;
	case CONFIG: setup->config_path = value->text; break;
	case BACKUP: setup->backup = value->text; break;
	case ZONE:
		if (setup->zone_count == SETUP_ZONES_MAX)
			return weir_arguments_refuse_value(&line, ZONE, value->text);
		setup->zones[setup->zone_count++] = value->text;
		setup->zones_named = true;
		break;
	case PORT:
		if (plan->port_count == SETUP_PORTS_MAX)
			return weir_arguments_refuse(&line, "at most %d ports", SETUP_PORTS_MAX);
		plan->ports[plan->port_count++] = (uint16_t)value->number;
		break;
	case FILE_:
	case LIST:
		if (!plain_path(value->text))
			return weir_arguments_refuse_value(&line, option, value->text);
		if (option == LIST) {
			plan->list = value->text;
			break;
		}
		plan->file_given = true;
		snprintf(plan->file, sizeof plan->file, "%s", value->text);
		break;
	default:
		for (size_t i = 0; kinds[i] != NULL; i++)
			if (strcmp(kinds[i], value->text) == 0) {
				setup->make = makers[i];
				plan->kind = kinds[i];
			}
		break;
	}
	return WEIR_EXIT_NOT_YET;
}

static enum weir_exit parse(struct setup *setup, int argc, char **argv)
{
	setup->backup = "/var/backups/weir";
	setup->plan.list = "/var/lib/weir/gateways/nginx.map";
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, setup);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (setup->make == NULL)
		return weir_arguments_refuse(&line, "missing GATEWAY: nginx, nft or haproxy");
	if (setup->reload && !setup->apply)
		return weir_arguments_refuse(&line, "--reload goes with --apply");
	(void)weir_config_find(&setup->config_path); /* without one the entry is only shown */
	return WEIR_EXIT_NOT_YET;
}

/* ---- the entry in weir's configuration ---- */

/* Of zones that count by something else no gateway here could ask, so they are not to spoil its list. */
static void put_zones(struct setup *setup, const struct weir_policy *policy)
{
	size_t others = 0;
	for (uint32_t i = 0;
	     !setup->zones_named && policy != NULL && i < policy->zone_count && setup->zone_count < SETUP_ZONES_MAX; i++) {
		const struct weir_zone *zone = &policy->zones[i];
		if (zone->key_count == 1 && weir_zone_counts_addresses(zone))
			setup->zones[setup->zone_count++] = zone->name;
		else
			others++;
	}
	setup->no_zone = setup->zone_count == 0 && others > 0;
	if (!setup->zones_named && others == 0)
		setup->zone_count = 0;
	for (size_t i = 0; i < setup->zone_count; i++) {
		weir_text_puts(&setup->entry, i == 0 ? ", \"zones\": [" : ", ");
		weir_text_json(&setup->entry, weir_span_of(setup->zones[i]));
	}
	if (setup->zone_count > 0)
		weir_text_puts(&setup->entry, "]");
}

static void make_entry(struct setup *setup, const struct weir_policy *policy)
{
	const struct setup_plan *plan = &setup->plan;
	weir_text_puts(&setup->entry, "{\"to\": ");
	weir_text_json(&setup->entry, weir_span_of(plan->to));
	put_zones(setup, policy);
	if (plan->map[0] != '\0') {
		weir_text_puts(&setup->entry, ", \"map\": ");
		weir_text_json(&setup->entry, weir_span_of(plan->map));
	}
	if (plan->reload[0] != '\0') {
		weir_text_puts(&setup->entry, ", \"reload\": ");
		weir_text_json(&setup->entry, weir_span_of(plan->reload));
	}
	weir_text_append(&setup->entry, "}", sizeof "}");
}

static enum weir_status check_zones(const struct setup *setup, const struct weir_policy *policy,
                                    struct weir_error *error)
{
	for (size_t i = 0; policy != NULL && i < setup->zone_count; i++)
		if (weir_policy_find_zone(policy, weir_span_of(setup->zones[i]), error) == NULL)
			return WEIR_INVALID;
	return WEIR_OK;
}

/* Whether each of some words is one of others. */
static bool all_in(const char *const *words, size_t count, const char *const *others, size_t other_count)
{
	for (size_t i = 0, j; i < count; i++) {
		for (j = 0; j < other_count && strcmp(words[i], others[j]) != 0;)
			j++;
		if (j == other_count)
			return false;
	}
	return true;
}

/* Nobody guesses what else a gateway could ask about. */
static enum weir_status require_zone(const struct setup *setup, const struct weir_policy *policy,
                                     struct weir_error *error)
{
	if (policy == NULL && !setup->zones_named)
		return weir_fail(error, WEIR_INVALID,
		                 "%s has no zones, and which of the cluster's count by one address is not known here: name "
		                 "those to block for with --zone (weir policy show)",
		                 setup->config_path);
	if (setup->no_zone)
		return weir_fail(error, WEIR_INVALID, "%s: no zone counts by one address: name those to block for with --zone",
		                 setup->config_path);
	return WEIR_OK;
}

/* An entry that is there is the user's to change. */
static enum weir_status compare_zones(const struct setup *setup, const struct gateway_settings *entry,
                                      struct weir_error *error)
{
	const char *const *named = setup->zones, *const *kept = (const char *const *)entry->zones;
	if (!setup->zones_named || (all_in(named, setup->zone_count, kept, entry->zone_count) &&
	                            all_in(kept, entry->zone_count, named, setup->zone_count)))
		return WEIR_OK;
	return weir_fail(
		error, WEIR_IO,
		"%s: the entry of \"gateways\" for %s has other zones than --zone names: change its \"zones\" there",
		setup->config_path, setup->plan.to);
}

/* Where the list already keeps this one, its entry is the user's. */
static enum weir_status change_entry(struct setup *setup, const struct weir_config *config, struct setup_file *file,
                                     struct weir_error *error)
{
	struct gateway_list list;
	struct weir_config *changed = NULL;
	enum weir_status status = gateway_list_read(config, &list, error);
	const char *map = setup->plan.map[0] != '\0' ? setup->plan.map : NULL;
	size_t place = 0;
	while (status == WEIR_OK && place < list.count && !gateway_keeps(&list.at[place], setup->plan.to, map))
		place++;
	bool there = status == WEIR_OK && place < list.count;
	if (there && !setup->plan.remove)
		status = compare_zones(setup, &list.at[place], error);
	gateway_list_deinit(&list);
	if (status != WEIR_OK || there == !setup->plan.remove)
		return status;
	if (!there && (status = require_zone(setup, config->policy, error)) != WEIR_OK)
		return status;
	bool done = there ? setup_entry_take(&file->after, place) : setup_entry_put(&file->after, setup->entry.at);
	if (done)
		status = weir_config_parse(file->path, file->after.at, file->after.length, &changed, error);
	if (done && status == WEIR_OK) {
		status = gateway_list_read(changed, &list, error);
		done = list.count == config->gateway_count + (there ? 0U : 1U) - (there ? 1U : 0U);
		gateway_list_deinit(&list);
	}
	weir_config_free(changed);
	if (status == WEIR_OK && !done)
		status = weir_fail(error, WEIR_INVALID, "%s: cannot find where \"gateways\" goes: write this entry there: %s",
		                   file->path, setup->entry.at);
	setup->entry_changed = status == WEIR_OK;
	if (status != WEIR_OK)
		setup_file_set(file, file->before);
	return status;
}

static enum weir_status plan_entry(struct setup *setup, struct weir_error *error)
{
	const struct weir_config *config = setup->config;
	const struct weir_policy *policy = config != NULL ? config->policy : NULL;
	struct setup_plan *plan = &setup->plan;
	struct setup_file *file;
	enum weir_status status = setup->config_status;
	if (status != WEIR_OK)
		*error = setup->config_error;
	if (status == WEIR_OK)
		status = check_zones(setup, policy, error);
	if (status == WEIR_OK)
		make_entry(setup, policy);
	if (status == WEIR_OK && config != NULL && !plan->cluster) {
		setup->local = true;
		status = setup_files_read(&plan->files, setup->config_path, &file, error);
		if (status == WEIR_OK)
			status = change_entry(setup, config, file, error);
	} else if (status == WEIR_OK && config != NULL) {
		if (!plan->remove)
			status = require_zone(setup, policy, error);
		if (status == WEIR_OK)
			setup_note_subscriber(plan, setup->config_path, setup->zones, setup->zone_count);
	} else if (status == WEIR_OK && !plan->remove) {
		weir_text_printf(&plan->notes,
		                 "No configuration of weir is named. Write this into \"gateways\" of yours:\n  %s\n",
		                 setup->entry.at);
	}
	if (status == WEIR_OK || !plan->remove)
		return status;
	/* A gateway gets rid of its lines even so. */
	fprintf(stderr, "weir setup: the entry of \"gateways\" for %s stays, if there is one: %s\n", plan->to, error->text);
	return WEIR_OK;
}

/* Which of the services keeps the list decides what is written for it; a fault is told once all else is planned. */
static void read_config(struct setup *setup)
{
	if (setup->config_path == NULL)
		return;
	setup->config_status = weir_config_load(setup->config_path, &setup->config, &setup->config_error);
	setup->plan.cluster = setup->config_status == WEIR_OK && setup->config->bus.type != WEIR_BUS_LOCAL;
}

/* ---- carrying it out ---- */

static void print_command(const struct setup_command *command, FILE *out)
{
	for (size_t i = 0; command->words[i] != NULL; i++) {
		const char *quote = strpbrk(command->words[i], " ;") != NULL ? "'" : "";
		fprintf(out, "%s%s%s%s", i > 0 ? " " : "", quote, command->words[i], quote);
	}
}

static enum weir_status run_command(const struct setup_command *command, struct weir_error *error)
{
	struct weir_text said = {0};
	const struct program_run run = {.arguments = command->words, .timeout_ms = CHECK_MS, .said = &said};
	enum weir_status status = program_run(&run, error);
	if (status != WEIR_OK)
		fwrite(said.at, 1, said.length, stderr);
	weir_text_deinit(&said);
	return status;
}

static enum weir_status check(const struct setup_plan *plan, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < plan->check_count && status == WEIR_OK; i++)
		status = run_command(&plan->checks[i], error);
	return status;
}

static enum weir_status undo(struct setup_plan *plan, struct weir_error *error)
{
	enum weir_status status = setup_files_undo(&plan->files, error);
	if (status == WEIR_OK && plan->list_change == SETUP_LIST_IS_MADE)
		status = setup_list_remove(plan->list, error);
	return status;
}

static enum weir_status write_all(struct setup *setup, struct weir_error *error)
{
	struct setup_plan *plan = &setup->plan;
	struct weir_error undone;
	enum weir_status status = WEIR_OK;
	/* Whoever interrupts it finds all as it was, not what nobody has checked. */
	weir_stop_install();
	if (plan->list_change == SETUP_LIST_IS_MADE)
		status = setup_list_make(plan->list, error);
	if (status == WEIR_OK)
		status = setup_files_write(&plan->files, setup->backup, error);
	if (status == WEIR_OK && (status = check(plan, error)) != WEIR_OK)
		weir_error_prefix(error, "the check refuses");
	if (status == WEIR_OK && *weir_stop_flag())
		status = weir_fail(error, WEIR_IO, "interrupted");
	signal(SIGINT, SIG_DFL); /* what follows may end at any point */
	signal(SIGTERM, SIG_DFL);
	if (status == WEIR_OK) /* what is in it nobody could put back */
		return plan->list_change == SETUP_LIST_GOES ? setup_list_remove(plan->list, error) : WEIR_OK;
	if (undo(plan, &undone) != WEIR_OK)
		fprintf(stderr, "weir setup: not all is as it was: %s; copies are in %s\n", undone.text, setup->backup);
	else
		fprintf(stderr, "weir setup: everything is as it was before\n");
	return status == WEIR_INVALID ? WEIR_IO : status;
}

/* Which one keeps the list. */
static const char *service_of(const struct setup_plan *plan)
{
	return plan->right != NULL && strstr(plan->right->path, "weir-subscribe@") != NULL ? "weir-subscribe@nft.service"
	                                                                                   : "weir.service";
}

/* Whether the service has to start anew for what changes. */
static bool needs_restart(const struct setup *setup)
{
	return setup->entry_changed || (setup->plan.right != NULL && setup_file_changes(setup->plan.right));
}

/* systemctl refuses to restart a service that is not there. */
static bool has_service(const char *service)
{
	const char *const words[] = {"systemctl", "show", "--property=LoadState", service, NULL};
	struct weir_text said = {0};
	struct weir_error ignored; /* the restart fails, too, and says why */
	const struct program_run run = {.arguments = words, .timeout_ms = CHECK_MS, .said = &said};
	bool answered = program_run(&run, &ignored) == WEIR_OK;
	weir_text_append(&said, "", 1);
	bool there = !answered || strstr(said.at, "not-found") == NULL;
	weir_text_deinit(&said);
	return there;
}

static enum weir_status reload(const struct setup *setup, struct weir_error *error)
{
	const struct setup_plan *plan = &setup->plan;
	const char *service = service_of(plan);
	const struct setup_command restart = {{"systemctl", "try-restart", service, NULL}};
	/* What is in place may be so since a run that did not come so far. */
	bool restarts = needs_restart(setup) || (!plan->remove && (setup->local || plan->right != NULL));
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < plan->reload_count && status == WEIR_OK; i++) {
		printf("Running: ");
		print_command(&plan->reloads[i], stdout);
		puts("");
		fflush(stdout);
		status = run_command(&plan->reloads[i], error);
	}
	if (status == WEIR_OK && restarts && access("/run/systemd/system", F_OK) == 0 && has_service(service))
		status = run_command(&restart, error);
	return status;
}

static void print_reloads(const struct setup_plan *plan, FILE *out)
{
	for (size_t i = 0; i < plan->reload_count; i++) {
		fprintf(out, "  ");
		print_command(&plan->reloads[i], out);
		fprintf(out, "\n");
	}
}

static void print_next(const struct setup *setup)
{
	const struct setup_plan *plan = &setup->plan;
	puts("Type next:");
	print_reloads(plan, stdout);
	if (needs_restart(setup) && !plan->cluster) /* of a subscriber the notes say it */
		puts("  systemctl restart weir");
}

/* A gateway that setup has not changed keeps all that it has: it may be the operator's own. */
static void print_not_reloaded(const struct setup_plan *plan)
{
	fprintf(stderr, "weir setup: nothing was changed, so nothing was reloaded. If an earlier --remove did not reload, "
	                "type:\n");
	print_reloads(plan, stderr);
	if (strncmp(plan->to, "nft:", strlen("nft:")) == 0)
		fprintf(stderr, "  nft delete table inet weir\n");
	if (!plan->cluster)
		fprintf(stderr, "  systemctl restart weir\n");
}

static enum weir_status act(struct setup *setup, struct weir_error *error)
{
	struct setup_plan *plan = &setup->plan;
	if (plan->notes.length > 0)
		fwrite(plan->notes.at, 1, plan->notes.length, stdout);
	bool changes = setup_files_change(&plan->files) || plan->list_change != SETUP_LIST_STAYS;
	setup_files_show(&plan->files, stdout);
	if (plan->list_change != SETUP_LIST_STAYS)
		printf("The list %s %s.\n", plan->list, plan->list_change == SETUP_LIST_GOES ? "goes" : "is made, empty");
	fflush(stdout);
	if (!changes)
		puts("Nothing to do: everything is in place.");
	else if (!setup->apply)
		puts("Nothing is changed yet: add --apply to write this.");
	if (!changes && setup->reload && plan->remove)
		print_not_reloaded(plan);
	if (!setup->apply || (!changes && (!setup->reload || plan->remove)))
		return WEIR_OK;
	enum weir_status status = changes ? write_all(setup, error) : WEIR_OK;
	if (status != WEIR_OK)
		return status;
	if (changes)
		printf("Written and checked. What stood there before is in %s.\n", setup->backup);
	if (setup->reload)
		return reload(setup, error);
	print_next(setup);
	return WEIR_OK;
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct setup *setup = weir_alloc(1, sizeof *setup);
	struct weir_error error;
	struct weir_text path = {0};
	enum weir_exit code = parse(setup, argc, argv);
	if (code == WEIR_EXIT_NOT_YET) {
		/* A gateway's program lies where only root looks. */
		const char *usual = getenv("PATH");
		weir_text_printf(&path, "%s%s/usr/local/sbin:/usr/sbin:/sbin", usual != NULL ? usual : "",
		                 usual != NULL ? ":" : "");
		weir_text_append(&path, "", 1);
		setenv("PATH", path.at, 1);
		read_config(setup);
		enum weir_status status = setup->make(&setup->plan, &error);
		if (status == WEIR_OK)
			status = plan_entry(setup, &error);
		if (status == WEIR_OK)
			status = act(setup, &error);
		if (status != WEIR_OK)
			fprintf(stderr, "weir setup: %s\n", error.text);
		code = weir_exit_of(status);
	}
	weir_text_deinit(&path);
	weir_text_deinit(&setup->entry);
	weir_text_deinit(&setup->plan.notes);
	setup_files_deinit(&setup->plan.files);
	weir_config_free(setup->config);
	free(setup);
	return code;
}

const struct command command_setup = {&line, command_main};

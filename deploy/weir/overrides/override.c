/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir block`, `lift`, `allow`, `override`: a command of an operator, appended
 * to the log. They differ in what the shard does with them (limiter/overrides/overrides.h).
 */
#include "common/base/clock.h"
#include "common/files/durable_file.h"
#include "common/json/json.h"
#include "common/json/json_writer.h"
#include "deploy/gateways/gateway/gateway_settings.h"
#include "deploy/gateways/target/network_key.h"
#include "deploy/weir/backend/backend.h"
#include "deploy/weir/command.h"
#include "deploy/weir/inspect/unjudged.h"
#include "deploy/weir/overrides/override_around.h"
#include "deploy/weir/overrides/override_author.h"
#include "deploy/weir/overrides/override_control.h"
#include "deploy/weir/overrides/override_key.h"
#include "deploy/weir/overrides/override_targets.h"
#include "deploy/weir/terminal/readable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 30000 };

struct override_run {
	struct override_options options;
	struct override_command command; /* the one at hand */
	struct backend backend;
	struct weir_policy_history history;
	struct override_targets targets; /* of `weir lift --all` */
	struct override_place places[WEIR_PARTITIONS_MAX];
	uint32_t place_count;
	uint32_t done;
	struct unjudged unjudged; /* before the first command */
	struct weir_text text;
};

static enum weir_status set_time(struct override_run *run, int64_t now_ms, struct weir_error *error)
{
	const struct override_options *options = &run->options;
	int64_t until_ms = options->until_ms;
	if (options->for_ms >= 0)
		until_ms = options->for_ms < OVERRIDE_NO_END - now_ms ? now_ms + options->for_ms : OVERRIDE_NO_END;
	run->command.until_ms = until_ms < OVERRIDE_NO_END ? until_ms : OVERRIDE_NO_END;
	bool ends_now = options->kind == OVERRIDE_ALLOW && options->for_ms == 0; /* an allow that is in force */
	if (until_ms <= now_ms && !ends_now)
		return weir_fail(error, WEIR_INVALID, "the end is in the past");
	return WEIR_OK;
}

static const struct weir_policy *policy_of(const struct override_run *run)
{
	return run->history.policies[run->history.count - 1];
}

static enum weir_status append(struct override_run *run, struct weir_error *error)
{
	int64_t now_ms = weir_wall_ms();
	enum weir_status status = set_time(run, now_ms, error);
	if (status != WEIR_OK)
		return status;
	if (run->backend.kind == BACKEND_RUNNING)
		return override_control_append(run->backend.state_path, &run->command, run->places, &run->place_count, error);
	return override_append(run->backend.bus, policy_of(run), &run->command, now_ms, WAIT_MS, run->places,
	                       &run->place_count, error);
}

/* ---- what was done ---- */

static void put_json(struct weir_text *text, const struct override_run *run)
{
	struct weir_json_writer json = weir_json_writer(text);
	struct weir_text command = {0};
	override_command_json(&command, &run->command);
	weir_json_write_object(&json, NULL);
	weir_json_write_members(&json, (struct weir_span){.at = command.at, .length = (uint32_t)command.length});
	override_places_json(&json, run->places, run->place_count);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
	weir_text_deinit(&command);
}

static void put_time(struct weir_text *text, const struct override_command *command)
{
	if (command->until_ms >= OVERRIDE_NO_END) {
		weir_text_puts(text, command->kind == OVERRIDE_BLOCK ? ", until it is lifted" : ", without end");
		return;
	}
	weir_text_puts(text, " until ");
	words_time(text, command->until_ms);
}

/* Whether what its zone decides goes to gateways. */
static bool is_told(const struct override_run *run)
{
	const struct weir_zone *zone = weir_policy_zone_named(policy_of(run), weir_span_of(run->command.zone));
	return zone == NULL || zone->mode != WEIR_SHADOW;
}

/* The lists of this machine that compare texts, or may, and so find no member of a network. */
static void put_blind_lists(struct weir_text *text, const struct override_run *run, const struct weir_network *network)
{
	struct gateway_list list = {0};
	struct weir_error ignored; /* what is wrong with the list is told by who keeps it */
	bool has_mapped = network_key_has_mapped(network);
	const char *const kinds[][2] = {
		{"nginx-map:", "finds no members of a network: use nginx-geo"},
		{"redis://", "finds no members by itself: its clients have to ask for the networks around an address too"},
		{"rediss://", "finds no members by itself: its clients have to ask for the networks around an address too"},
		{"haproxy:", has_mapped ? "leaves it out, as HAProxy would find all of IPv4 in it"
	                            : "finds members by map_ip_int alone, not by map_str_int"},
		{"nft:", "holds networks only in sets with `flags interval`"},
		{"ipset:", "holds networks only in sets of type hash:net"},
	};
	bool read = gateway_list_read(run->backend.config, &list, &ignored) == WEIR_OK;
	for (size_t i = 0; read && i < list.count; i++) {
		char *name = gateway_settings_name(&list.at[i]);
		for (size_t j = 0; gateway_keeps_zone(&list.at[i], run->command.zone) && j < sizeof kinds / sizeof *kinds; j++)
			if (strncmp(list.at[i].to, kinds[j][0], strlen(kinds[j][0])) == 0)
				weir_text_printf(text, "; %s %s", name, kinds[j][1]);
		free(name);
	}
	gateway_list_deinit(&list);
}

/* The networks that keep a key out which is let in: a list has no exceptions. */
static void put_around(struct weir_text *text, const struct override_run *run)
{
	const struct override_command *command = &run->command;
	const struct weir_zone *zone = weir_policy_zone_named(policy_of(run), weir_span_of(command->zone));
	struct weir_text networks = {0};
	struct weir_error error;
	bool lets_in = command->kind == OVERRIDE_LIFT || (command->kind == OVERRIDE_ALLOW && run->options.for_ms != 0);
	if (!lets_in || run->options.all || zone == NULL || !is_told(run) || !override_zone_takes_networks(zone))
		return;
	if (override_around(&run->backend, command, zone->id, run->places[0].partition, &networks, &error) != WEIR_OK)
		weir_text_printf(text, "; whether a network around it stays blocked is not known (%s): ask weir list --key",
		                 error.text);
	else if (networks.length > 0)
		weir_text_printf(
			text,
			"; %.*s %s blocked, and gateways keep all members out: to let this one in there, lift that and "
			"block smaller networks",
			(int)networks.length, networks.at, memchr(networks.at, ',', networks.length) != NULL ? "stay" : "stays");
	weir_text_deinit(&networks);
}

/* Whether a network is blocked: one that an operator names, or that the zone counts as one. */
static bool blocks_network(const struct override_run *run, struct weir_network *network)
{
	const struct override_command *command = &run->command;
	const struct weir_zone *zone = weir_policy_zone_named(policy_of(run), weir_span_of(command->zone));
	const char *why;
	return command->kind == OVERRIDE_BLOCK && zone != NULL && override_zone_takes_networks(zone) &&
	       weir_network_parse(override_key(command), network, &why) && network->prefix < 128;
}

/* A host's name in the place of an address: the log may have it there, but nobody connects with it. */
static void put_name(struct weir_text *text, const struct override_run *run)
{
	const struct weir_zone *zone = weir_policy_zone_named(policy_of(run), weir_span_of(run->command.zone));
	const char *name = zone != NULL && !run->options.all ? override_key_name(&run->options, zone) : NULL;
	if (run->command.kind != OVERRIDE_BLOCK || !is_told(run) || name == NULL)
		return;
	weir_text_puts(text, "; ");
	words_text(text, name);
	weir_text_puts(text, " is a name and no address: gateways that compare addresses do not hold it");
}

static void put_place(struct weir_text *text, const struct override_run *run)
{
	struct weir_network network;
	if (run->place_count == 1)
		weir_text_printf(text, " (partition %u, offset %llu)", run->places[0].partition,
		                 (unsigned long long)run->places[0].offset);
	else
		weir_text_printf(text, " (in all %u partitions)", run->place_count);
	if (run->command.kind == OVERRIDE_BLOCK && !is_told(run))
		weir_text_puts(text, "; the zone is in shadow mode: gateways are not told");
	put_name(text, run);
	if (run->backend.config != NULL && is_told(run) && blocks_network(run, &network))
		put_blind_lists(text, run, &network);
	put_around(text, run);
	weir_text_puts(text, run->backend.kind == BACKEND_STATE
	                         ? "; no process is running there: it takes effect at the next start\n"
	                         : "\n");
}

static void put_words(struct weir_text *text, const struct override_run *run)
{
	static const char *const done[] = {"blocked", "lifted", "allowed", "overridden"};
	const struct override_command *command = &run->command;
	bool ends = command->kind == OVERRIDE_ALLOW && run->options.for_ms == 0;
	char rate[12];
	override_rate_format(command->thousandths, rate);
	weir_text_printf(text, "%s  ", command->zone);
	if (command->value_count > 0)
		words_key_value(text, override_key(command));
	else
		words_key(text, override_key(command));
	weir_text_puts(text, command->scope == OVERRIDE_OF_PREFIX ? "*  " : "  ");
	if (command->kind == OVERRIDE_RATE && command->thousandths == 1000)
		weir_text_puts(text, "its override ends");
	else if (ends)
		weir_text_puts(text, "no longer allowed");
	else
		weir_text_puts(text, done[command->kind]);
	if (command->kind == OVERRIDE_RATE && command->thousandths != 1000)
		weir_text_printf(text, ": rates times %s", rate);
	if (command->kind != OVERRIDE_LIFT && !ends && (command->kind != OVERRIDE_RATE || command->thousandths != 1000))
		put_time(text, command);
	put_place(text, run);
}

/* ---- all of it ---- */

/* Begins a command: all but its zone, key and time. */
static enum weir_status begin(struct override_run *run, struct weir_error *error)
{
	const struct override_options *options = &run->options;
	run->command = (struct override_command){.kind = options->kind, .thousandths = options->thousandths};
	snprintf(run->command.reason, sizeof run->command.reason, "%s", options->reason);
	return override_author(options->by, &run->command, error);
}

static enum weir_status finish(struct override_run *run, struct weir_error *error)
{
	enum weir_status status = append(run, error);
	if (status != WEIR_OK)
		return status;
	run->done++;
	(run->options.json ? put_json : put_words)(&run->text, run);
	return WEIR_OK;
}

static enum weir_status command_one(struct override_run *run, struct weir_error *error)
{
	enum weir_status status = begin(run, error);
	if (status == WEIR_OK)
		status = override_key_make(&run->options, policy_of(run), &run->command, error);
	return status == WEIR_OK ? finish(run, error) : status;
}

/* Whether the command is for every zone that takes its key: where nothing is blocked, to lift it does no harm. */
static bool is_for_every_zone(const struct override_options *options)
{
	bool lift = options->kind == OVERRIDE_LIFT;
	return options->zone == NULL && options->key_hex == NULL && (lift || override_key_is_network(options));
}

static bool is_for_zone(const struct override_run *run, const struct weir_zone *zone)
{
	return override_key_fits(&run->options, zone) &&
	       (run->options.kind == OVERRIDE_LIFT || override_zone_takes_networks(zone));
}

static enum weir_status command_everywhere(struct override_run *run, struct weir_error *error)
{
	const struct weir_policy *policy = policy_of(run);
	enum weir_status status = WEIR_OK;
	/* What a zone refuses is commanded in none. */
	for (uint32_t i = 0; status == WEIR_OK && i < policy->zone_count; i++) {
		run->options.zone = policy->zones[i].name;
		if (is_for_zone(run, &policy->zones[i]))
			status = override_key_make(&run->options, policy, &run->command, error);
	}
	for (uint32_t i = 0; status == WEIR_OK && i < policy->zone_count; i++) {
		run->options.zone = policy->zones[i].name;
		if (is_for_zone(run, &policy->zones[i]))
			status = command_one(run, error);
	}
	run->options.zone = NULL;
	return status == WEIR_OK && run->done == 0 ? command_one(run, error) : status; /* whose words say why */
}

static enum weir_status lift_all(struct override_run *run, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; status == WEIR_OK && i < run->targets.count; i++) {
		status = begin(run, error);
		if (status != WEIR_OK || !override_targets_take(&run->targets, i, policy_of(run), &run->command))
			continue;
		status = finish(run, error);
	}
	if (status == WEIR_OK && run->targets.unnamed > 0)
		status = weir_fail(error, WEIR_IO,
		                   "%zu more are blocked whose keys this machine knows by their hash alone (weir list): lift "
		                   "each by its key",
		                   run->targets.unnamed);
	if (status == WEIR_OK && run->targets.unread > 0)
		status =
			weir_fail(error, WEIR_IO,
		              "who else is blocked is not known: the decisions cannot be read at %llu places (weir doctor)",
		              (unsigned long long)run->targets.unread);
	if (status == WEIR_OK && run->targets.unjudged.waits)
		status =
			weir_fail(error, WEIR_IO,
		              "who else is blocked is not known: %s. Run it again once limiters have judged that (weir doctor)",
		              run->targets.unjudged.words);
	if (run->done == 0 && status == WEIR_OK)
		fputs(run->backend.kind == BACKEND_STATE
		          ? "nobody is blocked: no process is running there; this is what it knew when it ended\n"
		          : "nobody is blocked\n",
		      stderr);
	return status;
}

static enum weir_status execute(struct override_run *run, struct weir_error *error)
{
	const struct override_options *options = &run->options;
	enum weir_status status = options->all ? override_targets_read(options, &run->targets, error) : WEIR_OK;
	run->backend.topic = WEIR_TOPIC_EVENTS;
	if (status == WEIR_OK)
		status = backend_open(&run->backend, options->line->name, options->config_path, options->state_path,
		                      BACKEND_APPENDS, error);
	if (status == WEIR_OK)
		status = weir_policy_history_load(run->backend.store, &run->history, error);
	if (status == WEIR_OK && run->history.count == 0)
		status = weir_fail(error, WEIR_INVALID, "no policy yet: run `weir policy apply %s`",
		                   weir_config_zones_words(run->backend.config));
	if (status != WEIR_OK)
		return status;
	if (options->all)
		run->unjudged = run->targets.unjudged;
	else
		unjudged_look(&run->backend, &run->unjudged);
	if (options->all)
		return lift_all(run, error);
	return is_for_every_zone(options) ? command_everywhere(run, error) : command_one(run, error);
}

static enum weir_exit run_kind(enum override_kind kind, int argc, char **argv)
{
	struct override_run *run = calloc(1, sizeof *run);
	struct weir_error error;
	size_t written;
	if (run == NULL)
		return WEIR_EXIT_FAILED;
	enum weir_exit code = override_options_parse(kind, argc, argv, &run->options);
	if (code == WEIR_EXIT_NOT_YET) {
		enum weir_status status = execute(run, &error);
		code = weir_exit_of(status);
		if (run->done > 0 && (run->unjudged.nobody || run->unjudged.waits))
			fprintf(stderr, "%s: it is in the log, but %s: it takes effect once a limiter has read it (weir doctor)\n",
			        run->options.line->name, run->unjudged.words);
		if (status != WEIR_OK)
			fprintf(stderr, "%s: %s\n", run->options.line->name, error.text);
	}
	if (weir_write_all(STDOUT_FILENO, run->text.at, run->text.length, &written) != 0) {
		fprintf(stderr, "%s: done, but cannot write to standard output: %s\n", run->options.line->name,
		        weir_errno_words(errno));
		code = WEIR_EXIT_FAILED;
	}
	weir_text_deinit(&run->text);
	override_targets_deinit(&run->targets);
	weir_policy_history_deinit(&run->history);
	backend_close(&run->backend);
	free(run);
	return code;
}

static enum weir_exit run_block(int argc, char **argv)
{
	return run_kind(OVERRIDE_BLOCK, argc, argv);
}

static enum weir_exit run_lift(int argc, char **argv)
{
	return run_kind(OVERRIDE_LIFT, argc, argv);
}

static enum weir_exit run_allow(int argc, char **argv)
{
	return run_kind(OVERRIDE_ALLOW, argc, argv);
}

static enum weir_exit run_override(int argc, char **argv)
{
	return run_kind(OVERRIDE_RATE, argc, argv);
}

const struct command command_block = {&override_lines[OVERRIDE_BLOCK], run_block};
const struct command command_lift = {&override_lines[OVERRIDE_LIFT], run_lift};
const struct command command_allow = {&override_lines[OVERRIDE_ALLOW], run_allow};
const struct command command_override = {&override_lines[OVERRIDE_RATE], run_override};

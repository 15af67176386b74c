/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir block`, `lift`, `allow`, `override`: a command of an operator, appended
 * to the log. They differ in what the shard does with them (limiter/overrides/overrides.h).
 */
#include "common/base/clock.h"
#include "common/files/durable_file.h"
#include "common/json/json_writer.h"
#include "deploy/weir/backend/backend.h"
#include "deploy/weir/command.h"
#include "deploy/weir/overrides/override_author.h"
#include "deploy/weir/overrides/override_control.h"
#include "deploy/weir/overrides/override_key.h"
#include "deploy/weir/terminal/readable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 30000 };

struct override_run {
	struct override_options options;
	struct override_command command;
	struct backend backend;
	struct weir_policy_history history;
	struct override_place places[WEIR_PARTITIONS_MAX];
	uint32_t place_count;
};

static enum weir_status set_time(struct override_run *run, int64_t now_ms, struct weir_error *error)
{
	const struct override_options *options = &run->options;
	int64_t until_ms = options->until_ms;
	if (options->for_ms >= 0)
		until_ms = options->for_ms < OVERRIDE_NO_END - now_ms ? now_ms + options->for_ms : OVERRIDE_NO_END;
	run->command.until_ms = until_ms < OVERRIDE_NO_END ? until_ms : OVERRIDE_NO_END;
	if (options->kind != OVERRIDE_ALLOW && until_ms <= now_ms)
		return weir_fail(error, WEIR_INVALID, "the end is in the past");
	return WEIR_OK;
}

/* All but the time. */
static enum weir_status fill(struct override_run *run, struct weir_error *error)
{
	const struct override_options *options = &run->options;
	struct override_command *command = &run->command;
	const struct weir_policy_history *history = &run->history;
	if (history->count == 0)
		return weir_fail(error, WEIR_INVALID, "no policy yet: run `weir policy apply --config FILE`");
	*command = (struct override_command){.kind = options->kind, .thousandths = options->thousandths};
	snprintf(command->reason, sizeof command->reason, "%s", options->reason);
	enum weir_status status = override_author(options->by, command, error);
	return status == WEIR_OK ? override_key_make(options, history->policies[history->count - 1], command, error)
	                         : status;
}

static enum weir_status append(struct override_run *run, struct weir_error *error)
{
	const struct weir_policy *policy = run->history.policies[run->history.count - 1];
	int64_t now_ms = weir_wall_ms();
	enum weir_status status = set_time(run, now_ms, error);
	if (status != WEIR_OK)
		return status;
	if (run->backend.kind == BACKEND_RUNNING)
		return override_control_append(run->backend.state_path, &run->command, run->places, &run->place_count, error);
	return override_append(run->backend.bus, policy, &run->command, now_ms, WAIT_MS, run->places, &run->place_count,
	                       error);
}

static enum weir_status override_run_execute(struct override_run *run, struct weir_error *error)
{
	const struct override_options *options = &run->options;
	run->backend.topic = WEIR_TOPIC_EVENTS;
	enum weir_status status = backend_open(&run->backend, options->line->name, options->config_path,
	                                       options->state_path, BACKEND_APPENDS, error);
	if (status == WEIR_OK)
		status = weir_policy_history_load(run->backend.store, &run->history, error);
	if (status == WEIR_OK)
		status = fill(run, error);
	return status == WEIR_OK ? append(run, error) : status;
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
	const struct weir_policy *policy = run->history.policies[run->history.count - 1];
	for (uint32_t i = 0; i < policy->zone_count; i++)
		if (strcmp(policy->zones[i].name, run->command.zone) == 0)
			return policy->zones[i].mode != WEIR_SHADOW;
	return true;
}

static void put_place(struct weir_text *text, const struct override_run *run)
{
	if (run->place_count == 1)
		weir_text_printf(text, " (partition %u, offset %llu)", run->places[0].partition,
		                 (unsigned long long)run->places[0].offset);
	else
		weir_text_printf(text, " (in all %u partitions)", run->place_count);
	if (run->command.kind == OVERRIDE_BLOCK && !is_told(run))
		weir_text_puts(text, "; the zone is in shadow mode: gateways are not told");
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
	words_key(text, override_key(command));
	weir_text_puts(text, command->prefix ? "*  " : "  ");
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

static enum weir_exit run_kind(enum override_kind kind, int argc, char **argv)
{
	struct override_run *run = calloc(1, sizeof *run);
	struct weir_error error;
	struct weir_text text = {0};
	size_t written;
	if (run == NULL)
		return WEIR_EXIT_FAILED;
	enum weir_exit code = override_options_parse(kind, argc, argv, &run->options);
	if (code == WEIR_EXIT_NOT_YET) {
		enum weir_status status = override_run_execute(run, &error);
		code = weir_exit_of(status);
		if (status != WEIR_OK)
			fprintf(stderr, "%s: %s\n", run->options.line->name, error.text);
		else if (run->options.json)
			put_json(&text, run);
		else
			put_words(&text, run);
	}
	if (weir_write_all(STDOUT_FILENO, text.at, text.length, &written) != 0) {
		fprintf(stderr, "%s: done, but cannot write to standard output: %s\n", run->options.line->name,
		        strerror(errno));
		code = WEIR_EXIT_FAILED;
	}
	weir_text_deinit(&text);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* `weir list`: who is blocked now, as a table for people or as JSON lines. */
#include "common/base/clock.h"
#include "common/config/arguments.h"
#include "common/files/durable_file.h"
#include "common/json/json.h"
#include "common/json/json_writer.h"
#include "deploy/weir/command.h"
#include "deploy/weir/inspect/unjudged.h"
#include "deploy/weir/overrides/list_blocks.h"
#include "deploy/weir/overrides/override_append.h"
#include "deploy/weir/terminal/readable.h"
#include "limiter/lane/decision.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum option { CONFIG, STATE, ZONE, KEY, JSON, OPTION_COUNT };

static const struct weir_argument_option options[] = {
	[CONFIG] = {.name = "config",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "the configuration of a cluster, or of one machine whose state is in the usual place"},
	[STATE] = {.name = "state",
               .value = "DIR",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "the state directory of a `weir run`; it may be running"},
	[ZONE] = {.name = "zone", .value = "NAME", .type = WEIR_ARGUMENT_TEXT, .help = "only this zone"},
	[KEY] = {.name = "key",
             .value = "KEY",
             .type = WEIR_ARGUMENT_TEXT,
             .help =
                 "only this key: its values joined by |, with \\ before a | or \\ of their own. An address also finds "
                 "the networks that it is in"},
	[JSON] = {.name = "json",
              .type = WEIR_ARGUMENT_FLAG,
              .help = "print a JSON line for each: the decision as it was published"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "done"},
	{WEIR_EXIT_FAILED,
     "it cannot know: a server failed, the topic of decisions has been deleted, or what is in the log waits for "
     "limiters"},
	{WEIR_EXIT_USAGE, "the command line or the configuration is wrong, or there is no such zone"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir list",
	.summary = "show who is blocked, until when and why",
	.usage = "weir list [--config FILE] [--zone NAME] [--key KEY] [--json]\n"
			 "weir list --state DIR [--zone NAME] [--key KEY] [--json]",
	.about =
		"Shows who is blocked now: since when, until when, and by which limit or by whom.\n"
		"\n"
		"In a cluster the decisions topic is read from its start to its end: the newest decision of each "
		"bucket counts. Where no limiter is running and some of the log is not judged, or limiters are far "
		"behind, the command says so and fails, after the list.\n"
		"\n"
		"On one machine decisions leave the log once they are in the decisions file, so the blocks of the "
		"last checkpoint are listed too. Blocks by operators are listed in full. Blocks by limits that no "
		"decision in the log names are listed with a hash of their key (\"key_hash\"), or found by --key. Decisions newer "
		"than that checkpoint that are no longer in the log are missing.\n"
		"\n"
		"Zones in shadow mode block nobody and are left out. At most a million blocks are listed, those "
		"that end last; the command says when there are more. For allows and overrides see weir state "
		"--orders.",
	.operand = {.hint = "give a key with --key"},
	.options = options,
	.examples = "weir list --config weir.json --zone login\n"
				"weir list --key 203.0.113.9\n"
				"weir list --state /var/lib/weir --json | jq -r 'select(.by) | .key[0]'",
	.exits = exits,
};

enum { WIDTH_MAX = 60, TIME_WIDTH = 24 };

struct list_command {
	const char *config_path, *state_path;
	struct list_filter filter;
	bool json;
	struct backend backend;
	struct list_blocks blocks;
	struct unjudged unjudged;
	struct weir_text text;
};

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct list_command *command = context;
	switch (option) {
	case CONFIG: command->config_path = value->text; break;
	case STATE: command->state_path = value->text; break;
	case ZONE: command->filter.zone = value->text; break;
	case KEY: command->filter.key = weir_span_of(value->text); break;
	case JSON: command->json = true; break;
	default: break;
	}
	return WEIR_EXIT_NOT_YET;
}

static enum weir_exit parse(struct list_command *command, int argc, char **argv)
{
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, command);
	if (code == WEIR_EXIT_NOT_YET && command->state_path == NULL && !weir_config_find(&command->config_path))
		code = weir_arguments_refuse(&line, WEIR_CONFIG_MISSING ", or name a directory with --state");
	return code;
}

/* ---- as JSON ---- */

static void put_json(struct list_command *command)
{
	struct weir_text *text = &command->text;
	for (uint32_t i = 0; i < command->blocks.count; i++) {
		struct weir_span json = block_entry_json(command->blocks.entries[i]);
		weir_text_append(text, json.at, json.length);
		weir_text_puts(text, "\n");
	}
	for (uint32_t i = 0; i < command->blocks.unnamed_count; i++) {
		const struct list_unnamed *bucket = &command->blocks.unnamed[i];
		char hash[WEIR_FINGERPRINT_DIGITS + 1];
		weir_fingerprint_words(bucket->print, hash);
		struct weir_json_writer json = weir_json_writer(text);
		weir_json_write_object(&json, NULL);
		weir_json_write_words(&json, "zone", bucket->zone->name);
		if (bucket->key != NULL)
			decision_key_json(weir_json_write_value(&json, "key"), bucket->zone,
			                  (struct weir_span){bucket->key, bucket->key_bytes});
		else
			weir_json_write_words(&json, "key_hash", hash);
		weir_json_write_uint(&json, "partition", bucket->partition);
		weir_json_write_words(&json, "action", "block");
		weir_json_write_int(&json, "at", bucket->at_ms);
		weir_json_write_int(&json, "until", bucket->until_ms);
		weir_json_write_end(&json);
		weir_json_write_newline(&json);
	}
}

/* ---- as a table ---- */

/* Pads to a column from where it began. */
static void pad(struct weir_text *text, size_t from, size_t width)
{
	words_pad(text, from, width);
	weir_text_puts(text, "  ");
}

static void put_until(struct weir_text *text, int64_t until_ms)
{
	if (until_ms == DECISION_NO_END)
		weir_text_puts(text, "(until it is lifted)");
	else
		words_time(text, until_ms);
}

static void put_times(struct weir_text *text, int64_t at_ms, int64_t until_ms)
{
	size_t from = text->length;
	words_time(text, at_ms);
	pad(text, from, TIME_WIDTH);
	from = text->length;
	put_until(text, until_ms);
	pad(text, from, TIME_WIDTH);
}

/* "10 in 1m (held 12), block 2", or "ann: scraping". */
static void put_cause(struct weir_text *text, struct weir_span json)
{
	json_t *decision = json_loadb(json.at, json.length, JSON_ALLOW_NUL, NULL);
	const char *by = json_string_value(json_object_get(decision, "by"));
	const char *reason = json_string_value(json_object_get(decision, "reason"));
	if (by != NULL) {
		weir_text_puts(text, "by ");
		words_text(text, by);
		if (reason != NULL && reason[0] != '\0') {
			weir_text_puts(text, ": ");
			words_text(text, reason);
		}
	} else if (words_limit_json(text, json_object_get(decision, "limit"))) {
		weir_text_printf(text, " (held %lld)", (long long)json_integer_value(json_object_get(decision, "count")));
		long long nth = json_integer_value(json_object_get(decision, "nth"));
		if (nth > 0)
			weir_text_printf(text, ", block %lld", nth);
	}
	json_decref(decision);
}

static void widen(size_t *width, size_t own)
{
	*width = own < *width ? *width : own < WIDTH_MAX ? own : WIDTH_MAX;
}

/* What a key takes as it is shown. */
static size_t columns_of(struct weir_text *shown, struct weir_span key)
{
	weir_text_clear(shown);
	words_key(shown, key);
	return words_columns(weir_text_span(shown));
}

/* The columns of zones and of keys. */
static void find_widths(const struct list_command *command, size_t widths[2])
{
	struct weir_text shown = {0};
	widths[0] = widths[1] = 4;
	for (uint32_t i = 0; i < command->blocks.count; i++) {
		const struct block_entry *entry = command->blocks.entries[i];
		widen(&widths[0], block_entry_zone(entry).length);
		widen(&widths[1], columns_of(&shown, block_entry_key(entry)));
	}
	for (uint32_t i = 0; i < command->blocks.unnamed_count; i++) {
		const struct list_unnamed *bucket = &command->blocks.unnamed[i];
		struct weir_span key = {bucket->key, bucket->key_bytes};
		widen(&widths[0], strlen(bucket->zone->name));
		widen(&widths[1], bucket->key != NULL ? columns_of(&shown, key) : 1 + WEIR_FINGERPRINT_DIGITS);
	}
	weir_text_deinit(&shown);
}

static void put_row(struct weir_text *text, struct weir_span zone, const size_t *widths)
{
	size_t from = text->length;
	weir_text_append(text, zone.at, zone.length);
	pad(text, from, widths[0]);
}

static void put_heading(struct weir_text *text, const size_t *widths)
{
	put_row(text, weir_span_of("ZONE"), widths);
	size_t from = text->length;
	weir_text_puts(text, "KEY");
	pad(text, from, widths[1]);
	from = text->length;
	weir_text_puts(text, "SINCE");
	pad(text, from, TIME_WIDTH);
	from = text->length;
	weir_text_puts(text, "UNTIL");
	pad(text, from, TIME_WIDTH);
	weir_text_puts(text, "WHY\n");
}

static void put_table(struct list_command *command)
{
	struct weir_text *text = &command->text;
	size_t widths[2];
	find_widths(command, widths);
	if (command->blocks.count + command->blocks.unnamed_count > 0)
		put_heading(text, widths);
	for (uint32_t i = 0; i < command->blocks.count; i++) {
		const struct block_entry *entry = command->blocks.entries[i];
		put_row(text, block_entry_zone(entry), widths);
		size_t from = text->length;
		words_key(text, block_entry_key(entry));
		pad(text, from, widths[1]);
		put_times(text, entry->at_ms, entry->until_ms);
		put_cause(text, block_entry_json(entry));
		weir_text_puts(text, "\n");
	}
	for (uint32_t i = 0; i < command->blocks.unnamed_count; i++) {
		const struct list_unnamed *bucket = &command->blocks.unnamed[i];
		char hash[WEIR_FINGERPRINT_DIGITS + 1];
		put_row(text, weir_span_of(bucket->zone->name), widths);
		size_t from = text->length;
		if (bucket->key != NULL)
			words_key(text, (struct weir_span){bucket->key, bucket->key_bytes});
		else
			weir_text_printf(text, "#%s", weir_fingerprint_words(bucket->print, hash));
		pad(text, from, widths[1]);
		put_times(text, bucket->at_ms, bucket->until_ms);
		weir_text_puts(text, "by a limit (no decision of it is kept)\n");
	}
}

/* What the reader of a table should know beside it. */
static void print_rest(const struct list_command *command)
{
	const struct list_blocks *blocks = &command->blocks;
	uint64_t left_out = block_table_left_out(blocks->table) + blocks->unnamed_left_out;
	if (!command->json && blocks->count == 0 && blocks->unnamed_count == 0 && !command->unjudged.waits &&
	    blocks->unread == 0)
		fputs(command->filter.key.at != NULL ? "that key is not blocked\n"
		      : command->filter.zone != NULL ? "nobody is blocked in that zone\n"
		                                     : "nobody is blocked\n",
		      stderr);
	if (!command->json && blocks->unnamed_count > 0 && command->filter.key.at == NULL)
		fputs("# is a hash: the limiter keeps no keys; weir state --keys FILE names them\n", stderr);
	if (left_out > 0)
		fprintf(stderr, "weir list: %llu more are not shown; narrow the list with --zone or --key\n",
		        (unsigned long long)left_out);
	if (blocks->damaged > 0)
		fprintf(stderr, "weir list: skipped %llu malformed messages of the decisions topic\n",
		        (unsigned long long)blocks->damaged);
	if (blocks->unread > 0)
		fprintf(
			stderr,
			"weir list: who else is blocked, or no more, is not known: the decisions cannot be read at %llu places (weir doctor)\n",
			(unsigned long long)blocks->unread);
	if (command->unjudged.waits)
		fprintf(stderr, "weir list: who else is blocked, or no more, is not known: %s (weir doctor)\n",
		        command->unjudged.words);
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct list_command command = {0};
	struct weir_error error;
	size_t written;
	enum weir_exit code = parse(&command, argc, argv);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	command.backend.topic = WEIR_TOPIC_DECISIONS;
	enum weir_status status =
		backend_open(&command.backend, "weir list", command.config_path, command.state_path, BACKEND_TOPIC, &error);
	if (command.backend.absent) {
		/* With a policy there is a topic of decisions, or there was one. */
		bool known = command.backend.store == NULL;
		fprintf(stderr, known ? "nobody is blocked: %s\n" : "weir list: cannot tell who is blocked: %s\n", error.text);
		backend_close(&command.backend);
		return known ? WEIR_EXIT_DONE : WEIR_EXIT_FAILED;
	}
	if (status == WEIR_OK)
		status = list_blocks_check_zone(&command.backend, command.filter.zone, &error);
	if (status == WEIR_OK)
		unjudged_look(&command.backend, &command.unjudged);
	if (status == WEIR_OK)
		status = list_blocks_read(&command.backend, &command.filter, weir_wall_ms(), &command.blocks, &error);
	bool unsure = command.unjudged.waits || command.blocks.unread > 0;
	code = status == WEIR_OK && unsure ? WEIR_EXIT_FAILED : weir_exit_of(status);
	if (status != WEIR_OK)
		fprintf(stderr, "weir list: %s\n", error.text);
	else if (command.json)
		put_json(&command);
	else
		put_table(&command);
	if (weir_write_all(STDOUT_FILENO, command.text.at, command.text.length, &written) != 0 && errno != EPIPE) {
		perror("weir list: cannot write");
		code = WEIR_EXIT_FAILED;
	}
	if (status == WEIR_OK) {
		print_rest(&command);
		backend_tell_ended(&command.backend, "weir list");
	}
	weir_text_deinit(&command.text);
	list_blocks_deinit(&command.blocks);
	backend_close(&command.backend);
	return code;
}

const struct command command_list = {&line, command_main};

/* `weir top`: who comes most and who is blocked, live on a terminal, as a table, or as JSON lines. */
#include "common/base/clock.h"
#include "common/base/read_file.h"
#include "common/base/stop.h"
#include "common/config/arguments.h"
#include "common/files/durable_file.h"
#include "common/json/units.h"
#include "deploy/weir/command.h"
#include "deploy/weir/top/top_sample.h"
#include "deploy/weir/top/top_screen.h"
#include "deploy/weir/top/top_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"usage: weir top (--url URL [--token FILE] | --state DIR) [OPTION...]\n"
	"\n"
	"Shows who comes most and who is blocked: each zone's requests of this hour, the keys that came most today,\n"
	"with what they did in this hour, and all blocks that hold. It is what the archiver has stored, so it is\n"
	"behind by archiver.interval.\n"
	"\n"
	"  --url URL         an archiver's API: http://127.0.0.1:8642\n"
	"  --token FILE      its first line is a token of archiver.tokens; else the environment's WEIR_TOKEN\n"
	"  --state DIR       the state directory of a `weir run` with \"archiver\", which may run meanwhile\n"
	"  --zone NAME       whose keys to show; else the first zone's\n"
	"  --by passed|blocked   what keys are sorted by (passed)\n"
	"  --rows N          keys, and blocks, at most (10, up to 50; a screen has what it has room for)\n"
	"  --every DURATION  how often to look again (2s)\n"
	"  --once            one table, and end; so it is also where standard output is no terminal\n"
	"  --json            a JSON line each time, until it is stopped; with --once a single one\n"
	"\n"
	"On a terminal: q quits, z goes to the next zone, b sorts by blocked, t by passed. NO_COLOR is heeded.\n"
	"\n"
	"Exit codes: 0 done; 1 the source does not answer; 2 the command line, a wrong token, an unknown zone. Once\n"
	"there is a picture, a terminal goes on trying.\n"
	"\n"
	"Examples\n"
	"  weir top --state /var/lib/weir\n"
	"  weir top --url http://archiver.example.org:8642 --token /etc/weir/api.token --zone login --by blocked\n"
	"  weir top --state /var/lib/weir --json --once | jq '.blocks[].key'\n";

enum option { URL, TOKEN, STATE, ZONE, BY, ROWS, EVERY, ONCE, JSON };

static const struct weir_argument_option table[] = {
	{"url", true},  {"token", true}, {"state", true}, {"zone", true},  {"by", true},
	{"rows", true}, {"every", true}, {"once", false}, {"json", false}, {NULL, false},
};

enum { EVERY_MS = 2000, EVERY_LEAST_MS = 100, ROWS_DEFAULT = 10, TICK_MS = 100, TOKEN_MAX_BYTES = 64 * 1024 };

struct top_command {
	struct weir_arguments arguments;
	const char *url, *token_path, *state;
	bool once, json, interactive;
	int64_t every_ms;
	struct top_source *source;
	struct top_question question;
	struct top_rates rates;
	struct top_screen screen;
	json_t *sample;
	struct weir_error trouble; /* "": the last look succeeded */
};

/* ---- the command line ---- */

static enum weir_exit refuse(const struct top_command *command, const char *format, const char *value)
{
	weir_arguments_refuse(&command->arguments, format, value);
	return WEIR_EXIT_USAGE;
}

static enum weir_exit take_option(struct top_command *command, int option, const char *value)
{
	uint64_t rows;
	switch (option) {
	case URL: command->url = value; return WEIR_EXIT_NOT_YET;
	case TOKEN: command->token_path = value; return WEIR_EXIT_NOT_YET;
	case STATE: command->state = value; return WEIR_EXIT_NOT_YET;
	case ZONE:
		if (value[0] == '\0' || strlen(value) >= sizeof command->question.zone)
			return refuse(command, "--zone: \"%s\" is no zone's name", value);
		snprintf(command->question.zone, sizeof command->question.zone, "%s", value);
		return WEIR_EXIT_NOT_YET;
	case BY:
		command->question.by_blocked = strcmp(value, "blocked") == 0;
		return command->question.by_blocked || strcmp(value, "passed") == 0
		           ? WEIR_EXIT_NOT_YET
		           : refuse(command, "--by: expected passed or blocked, not \"%s\"", value);
	case ROWS:
		if (!weir_arguments_count(value, &rows) || rows == 0 || rows > TOP_ROWS_MAX)
			return refuse(command, "--rows: expected a whole number from 1 to 50, not \"%s\"", value);
		command->question.top_rows = command->question.block_rows = (unsigned)rows;
		return WEIR_EXIT_NOT_YET;
	case EVERY:
		return weir_parse_duration(value, &command->every_ms) && command->every_ms >= EVERY_LEAST_MS
		           ? WEIR_EXIT_NOT_YET
		           : refuse(command, "--every: expected a duration from 100ms on, as 2s, not \"%s\"", value);
	case ONCE: command->once = true; return WEIR_EXIT_NOT_YET;
	case JSON: command->json = true; return WEIR_EXIT_NOT_YET;
	case WEIR_ARGUMENTS_HELP: fputs(help, stdout); return WEIR_EXIT_DONE;
	case WEIR_ARGUMENTS_WORD:
		return refuse(command, "\"%s\" is no option; a source is named by --url or --state", value);
	default: return WEIR_EXIT_USAGE;
	}
}

/* WEIR_EXIT_NOT_YET: go on. */
static enum weir_exit parse(struct top_command *command, int argc, char **argv)
{
	command->arguments = (struct weir_arguments){.command = "weir top", .options = table, .argc = argc, .argv = argv};
	const char *value;
	enum weir_exit code = WEIR_EXIT_NOT_YET;
	int option;
	while (code == WEIR_EXIT_NOT_YET &&
	       (option = weir_arguments_next(&command->arguments, &value)) != WEIR_ARGUMENTS_END)
		code = take_option(command, option, value);
	if (code == WEIR_EXIT_NOT_YET && (command->url == NULL) == (command->state == NULL))
		code = refuse(command, "name an archiver's API by --url, or a directory by --state%s",
		              command->url != NULL ? ", not both" : "");
	if (code == WEIR_EXIT_NOT_YET && command->token_path != NULL && command->url == NULL)
		code = refuse(command, "--token is for --url%s", "");
	return code;
}

/* The first line of --token's file, or WEIR_TOKEN. @param token  returned: free(); NULL: there is none */
static enum weir_status read_token(const char *path, char **token, struct weir_error *error)
{
	const char *given = getenv("WEIR_TOKEN");
	size_t length = 0;
	char *text;
	*token = NULL;
	if (path == NULL) {
		*token = given != NULL && given[0] != '\0' ? strdup(given) : NULL;
		return WEIR_OK;
	}
	enum weir_status status = weir_read_file(path, TOKEN_MAX_BYTES, &text, &length, error);
	if (status != WEIR_OK)
		return WEIR_INVALID;
	size_t line = 0;
	while (line < length && text[line] > ' ')
		line++;
	*token = strndup(text, line);
	free(text);
	return line > 0 ? WEIR_OK : weir_fail(error, WEIR_INVALID, "%s: its first line is no token", path);
}

/* ---- looking ---- */

/* How many rows there is room for; three quarters are keys'. */
static void fit(struct top_command *command)
{
	size_t zones = command->sample != NULL ? json_array_size(json_object_get(command->sample, "zones")) : 4;
	size_t taken = zones + TOP_VIEW_LINES;
	unsigned rows = command->screen.rows > taken + 4 ? command->screen.rows - (unsigned)taken : 4;
	rows = rows > TOP_ROWS_MAX ? TOP_ROWS_MAX : rows;
	command->question.top_rows = rows - rows / 4;
	command->question.block_rows = rows / 4;
}

static enum weir_status look(struct top_command *command)
{
	json_t *sample;
	if (command->interactive)
		fit(command);
	enum weir_status status =
		top_sample_read(command->source, &command->question, &command->rates, &sample, &command->trouble);
	if (status != WEIR_OK)
		return status;
	command->trouble.text[0] = '\0';
	json_decref(command->sample);
	command->sample = sample;
	return WEIR_OK;
}

/* @return false: nobody reads it any more, or it cannot be written */
static bool write_out(const struct weir_text *text)
{
	size_t written;
	if (weir_write_all(STDOUT_FILENO, text->at, text->length, &written) == 0)
		return true;
	if (errno != EPIPE)
		perror("weir top: cannot write");
	return false;
}

static bool print(struct top_command *command)
{
	struct weir_text text = {0};
	const struct top_form form = {.screen = false};
	if (command->json) {
		char *line = json_dumps(command->sample, JSON_COMPACT | JSON_PRESERVE_ORDER);
		weir_text_printf(&text, "%s\n", line);
		free(line);
	} else {
		top_view_put(&text, &form, command->source->name, command->sample, NULL);
	}
	bool good = write_out(&text);
	weir_text_deinit(&text);
	return good;
}

static void draw(const struct top_command *command)
{
	const char *plain = getenv("NO_COLOR");
	const struct top_form form = {
		.screen = true, .colours = plain == NULL || plain[0] == '\0', .columns = command->screen.columns};
	struct weir_text text = {0};
	top_view_put(&text, &form, command->source->name, command->sample,
	             command->trouble.text[0] != '\0' ? command->trouble.text : NULL);
	top_screen_show(&command->screen, &text);
	weir_text_deinit(&text);
}

/* ---- the loops ---- */

static void next_zone(struct top_command *command)
{
	const json_t *zones = json_object_get(command->sample, "zones");
	size_t i, count = json_array_size(zones);
	for (i = 0; i < count; i++)
		if (strcmp(json_string_value(json_object_get(json_array_get(zones, i), "zone")), command->question.zone) == 0)
			break;
	if (count > 0)
		snprintf(command->question.zone, sizeof command->question.zone, "%s",
		         json_string_value(json_object_get(json_array_get(zones, (i + 1) % count), "zone")));
}

/* @return whether there is something else to be looked for */
static bool heed(struct top_command *command, char key)
{
	if (key == 'z')
		next_zone(command);
	else if (key == 'b' || key == 't')
		command->question.by_blocked = key == 'b';
	return key == 'z' || key == 'b' || key == 't';
}

static void watch(struct top_command *command)
{
	int64_t next_ms = weir_monotonic_ms() + command->every_ms;
	char key = 0;
	top_screen_enter(&command->screen);
	draw(command);
	while (!*weir_stop_flag() && key != 'q') {
		key = top_screen_key(&command->screen, TICK_MS);
		bool asked = heed(command, key);
		if (asked || weir_monotonic_ms() >= next_ms) {
			(void)!look(command); /* what is wrong is shown */
			next_ms = weir_monotonic_ms() + command->every_ms;
			draw(command);
		} else if (top_screen_resized(&command->screen)) {
			draw(command);
		}
	}
	top_screen_leave(&command->screen);
}

/* Lines of JSON; a source that is away for a while ends it, as whoever reads it must know. */
static enum weir_exit stream(struct top_command *command)
{
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && print(command) && !command->once && command->json && !*weir_stop_flag()) {
		int64_t next_ms = weir_monotonic_ms() + command->every_ms;
		while (!*weir_stop_flag() && weir_monotonic_ms() < next_ms)
			usleep(TICK_MS * 1000 / 2);
		if (!*weir_stop_flag())
			status = look(command);
	}
	return weir_exit_of(status);
}

static enum weir_exit run(struct top_command *command)
{
	command->interactive = !command->once && !command->json && top_screen_there();
	if (command->interactive)
		top_screen_resized(&command->screen);
	enum weir_status status = look(command);
	enum weir_exit code = weir_exit_of(status);
	if (code == WEIR_EXIT_DONE && command->interactive)
		watch(command);
	else if (code == WEIR_EXIT_DONE)
		code = stream(command);
	if (code != WEIR_EXIT_DONE && !*weir_stop_flag())
		fprintf(stderr, "weir top: %s\n", command->trouble.text);
	return *weir_stop_flag() ? WEIR_EXIT_DONE : code;
}

enum weir_exit command_top(int argc, char **argv)
{
	struct top_command command = {.every_ms = EVERY_MS,
	                              .question = {.top_rows = ROWS_DEFAULT, .block_rows = ROWS_DEFAULT}};
	char *token = NULL;
	enum weir_exit code = parse(&command, argc, argv);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	weir_stop_install();
	enum weir_status status = WEIR_OK;
	if (command.state != NULL)
		command.source = top_source_state(command.state);
	else if ((status = read_token(command.token_path, &token, &command.trouble)) == WEIR_OK)
		status = top_source_url(command.url, token, &command.source, &command.trouble);
	free(token);
	if (status != WEIR_OK) {
		fprintf(stderr, "weir top: %s\n", command.trouble.text);
		return status == WEIR_INVALID ? WEIR_EXIT_USAGE : WEIR_EXIT_FAILED;
	}
	code = run(&command);
	json_decref(command.sample);
	top_rates_deinit(&command.rates);
	command.source->close(command.source);
	return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* `weir top`: the busiest keys and who is blocked, live on a terminal, as a table, or as JSON lines. */
#include "common/base/clock.h"
#include "common/base/read_file.h"
#include "common/base/stop.h"
#include "common/config/arguments.h"
#include "common/files/durable_file.h"
#include "common/http_client/http_client.h"
#include "common/json/units.h"
#include "deploy/weir/command.h"
#include "deploy/weir/terminal/when.h"
#include "deploy/weir/top/top_sample.h"
#include "deploy/weir/top/top_screen.h"
#include "deploy/weir/top/top_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum option { URL, TOKEN, CA, STATE, ZONE, BY, ROWS, SINCE, UNTIL, LAST, EVERY, ONCE, JSON, OPTION_COUNT };

enum { EVERY_LEAST_MS = 100 };

#define TIME_EXPECTED "a time, such as \"2026-11-21 10:00\", 10:00 or 2026-11-21T10:00:00Z"

static const char *const orders[] = {"passed", "blocked", NULL};

static const struct weir_argument_option options_table[] = {
	[URL] = {.name = "url",
             .value = "URL",
             .type = WEIR_ARGUMENT_TEXT,
             .help = "an archiver's API, such as http://127.0.0.1:8642"},
	[TOKEN] = {.name = "token",
               .value = "FILE",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "a file whose first line is one of archiver.tokens (default: WEIR_TOKEN in the environment)"},
	[CA] = {.name = "ca",
            .value = "FILE",
            .type = WEIR_ARGUMENT_TEXT,
            .help = "the certificates to trust in place of the system's, for an API by https://"},
	[STATE] = {.name = "state",
               .value = "DIR",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "the state directory of a `weir run` with \"archiver\"; it may be running"},
	[ZONE] = {.name = "zone",
              .value = "NAME",
              .type = WEIR_ARGUMENT_TEXT,
              .help = "the zone whose keys are shown (default: the first)",
              .expected = "a zone's name"},
	[BY] = {.name = "by",
            .value = "ORDER",
            .type = WEIR_ARGUMENT_CHOICE,
            .help = "sort keys by passed (default) or blocked",
            .choices = orders},
	[ROWS] = {.name = "rows",
              .value = "N",
              .type = WEIR_ARGUMENT_NUMBER,
              .help = "show at most N keys and N blocks (default 10, at most 50); a terminal shows what fits",
              .least = 1,
              .most = TOP_ROWS_MAX},
	[SINCE] = {.name = "since",
               .value = "TIME",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "show a span of time from here on, instead of now",
               .expected = TIME_EXPECTED},
	[UNTIL] = {.name = "until",
               .value = "TIME",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "the span's end (default: now)",
               .expected = TIME_EXPECTED},
	[LAST] = {.name = "last",
              .value = "DURATION",
              .type = WEIR_ARGUMENT_DURATION,
              .help = "show a span of this length up to --until",
              .least = 1},
	[EVERY] = {.name = "every",
               .value = "DURATION",
               .type = WEIR_ARGUMENT_DURATION,
               .help = "refresh this often (default 2s)",
               .least = EVERY_LEAST_MS},
	[ONCE] = {.name = "once",
              .type = WEIR_ARGUMENT_FLAG,
              .help = "print one table and exit; the default if standard output is not a terminal"},
	[JSON] = {.name = "json",
              .type = WEIR_ARGUMENT_FLAG,
              .help = "print a JSON line at each refresh; with --once, a single line"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"Spans of time",
     "A time without a zone is local time (TZ), one without a date is today's; Z and +01:00 are "
     "understood. Counts are of whole hours, or of whole days where the archive keeps no hours of keys "
     "any more, and the table says from when to when. Blocks are those decided in the span itself."},
	{"Keys on a terminal", "q quits, z shows the next zone, b sorts by blocked, t by passed. NO_COLOR is respected."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "done"},
	{WEIR_EXIT_FAILED, "the source does not answer; on a terminal, it keeps retrying after its first answer"},
	{WEIR_EXIT_USAGE, "the command line is wrong, or the token, or there is no such zone"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir top",
	.summary = "watch the busiest keys and who is blocked",
	.usage = "weir top --url URL [--token FILE] [OPTION...]\n"
			 "weir top --state DIR [OPTION...]",
	.about =
		"Shows the busiest keys and who is blocked.\n"
		"\n"
		"It shows each zone's requests of this hour, today's busiest keys, and every block that is in "
		"force; or, of a span of time, its sums, its busiest keys and who was blocked in it. Of a zone in shadow mode, "
		"blocked is what it would have blocked. The figures are the archiver's, so they lag by archiver.interval.",
	.operand = {.hint = "give a source with --url or --state"},
	.options = options_table,
	.sections = sections,
	.examples = "weir top --state /var/lib/weir\n"
				"weir top --url http://127.0.0.1:8642 --token api.token --zone login\n"
				"weir top --state /var/lib/weir --last 2h\n"
				"weir top --state /var/lib/weir --since '2026-11-20 18:00' --until 2026-11-21\n"
				"weir top --state /var/lib/weir --json --once | jq '.blocks[].key'",
	.exits = exits,
};

enum { EVERY_MS = 2000, ROWS_DEFAULT = 10, TICK_MS = 100, TOKEN_MAX_BYTES = 64 * 1024 };

struct top_command {
	const char *url, *token_path, *ca_path, *state;
	bool once, json, interactive;
	bool since; /* --since is given */
	int64_t every_ms;
	struct top_source *source;
	struct top_question question;
	struct top_rates rates;
	struct top_screen screen;
	json_t *sample;
	struct weir_error failure; /* "": the last sample succeeded */
	bool unwritten;            /* standard output does not take it */
};

/* ---- the command line ---- */

static enum weir_exit take_time(int option, const char *text, int64_t *time_ms)
{
	return when_read(text, weir_wall_ms(), time_ms) ? WEIR_EXIT_NOT_YET
	                                                : weir_arguments_refuse_value(&line, option, text);
}

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct top_command *command = context;
	switch (option) {
	case URL: command->url = value->text; break;
	case TOKEN: command->token_path = value->text; break;
	case CA: command->ca_path = value->text; break;
	case STATE: command->state = value->text; break;
	case ZONE:
		if (value->text[0] == '\0' || strlen(value->text) >= sizeof command->question.zone)
			return weir_arguments_refuse_value(&line, ZONE, value->text);
		snprintf(command->question.zone, sizeof command->question.zone, "%s", value->text);
		break;
	case BY: command->question.by_blocked = value->number == 1; break;
	case ROWS: command->question.top_rows = command->question.block_rows = (unsigned)value->number; break;
	case SINCE: command->since = true; return take_time(option, value->text, &command->question.since_ms);
	case UNTIL: return take_time(option, value->text, &command->question.until_ms);
	case LAST: command->question.last_ms = (int64_t)value->number; break;
	case EVERY: command->every_ms = (int64_t)value->number; break;
	case ONCE: command->once = true; break;
	case JSON: command->json = true; break;
	default: break;
	}
	return WEIR_EXIT_NOT_YET;
}

static enum weir_exit parse(struct top_command *command, int argc, char **argv)
{
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, command);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if ((command->url == NULL) == (command->state == NULL))
		return weir_arguments_refuse(&line, "give an archiver's API with --url, or a directory with --state%s",
		                             command->url != NULL ? ", not both" : "");
	if ((command->token_path != NULL || command->ca_path != NULL) && command->url == NULL)
		return weir_arguments_refuse(&line, "%s needs --url", command->token_path != NULL ? "--token" : "--ca");
	struct top_question *question = &command->question;
	if (command->since && question->last_ms != 0)
		return weir_arguments_refuse(&line, "give --since or --last, not both");
	question->spanned = command->since || question->last_ms != 0;
	if (question->until_ms != 0 && !question->spanned)
		return weir_arguments_refuse(&line, "--until needs --since or --last");
	if (question->until_ms != 0 && command->since && question->since_ms >= question->until_ms)
		return weir_arguments_refuse(&line, "--since must be earlier than --until");
	return WEIR_EXIT_NOT_YET;
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
	size_t end = 0;
	while (end < length && text[end] > ' ')
		end++;
	*token = strndup(text, end);
	free(text);
	return end > 0 ? WEIR_OK : weir_fail(error, WEIR_INVALID, "%s: its first line is not a token", path);
}

static void warn_in_clear(const char *url, const char *token)
{
	struct weir_text host = {0};
	if (token != NULL && strncmp(url, "http://", 7) == 0 && !weir_http_address_host(url, &host))
		fprintf(stderr, "weir top: warning: the token goes through the network in clear: let the API speak TLS "
		                "(archiver.api_certificate), and ask it by https://\n");
	weir_text_deinit(&host);
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
		top_sample_read(command->source, &command->question, &command->rates, &sample, &command->failure);
	if (status != WEIR_OK)
		return status;
	command->failure.text[0] = '\0';
	json_decref(command->sample);
	command->sample = sample;
	return WEIR_OK;
}

/* @return false: nobody reads it any more, or it cannot be written */
static bool write_out(struct top_command *command, const struct weir_text *text)
{
	size_t written;
	if (weir_write_all(STDOUT_FILENO, text->at, text->length, &written) == 0)
		return true;
	command->unwritten = errno != EPIPE;
	if (command->unwritten)
		perror("weir top: cannot write");
	return false;
}

static bool print(struct top_command *command)
{
	struct weir_text text = {0};
	const struct top_form form = {.screen = false};
	if (command->json) {
		char *dumped = json_dumps(command->sample, JSON_COMPACT | JSON_PRESERVE_ORDER);
		weir_text_printf(&text, "%s\n", dumped);
		free(dumped);
	} else {
		top_view_put(&text, &form, command->source->name, command->sample, NULL);
	}
	bool good = write_out(command, &text);
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
	             command->failure.text[0] != '\0' ? command->failure.text : NULL);
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
	return command->unwritten ? WEIR_EXIT_FAILED : weir_exit_of(status);
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
		fprintf(stderr, "weir top: %s\n", command->failure.text);
	return *weir_stop_flag() ? WEIR_EXIT_DONE : code;
}

static enum weir_exit command_main(int argc, char **argv)
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
	else if ((status = read_token(command.token_path, &token, &command.failure)) == WEIR_OK)
		status = top_source_url(command.url, token, command.ca_path, &command.source, &command.failure);
	warn_in_clear(command.url, token);
	free(token);
	if (status != WEIR_OK) {
		fprintf(stderr, "weir top: %s\n", command.failure.text);
		return status == WEIR_INVALID ? WEIR_EXIT_USAGE : WEIR_EXIT_FAILED;
	}
	code = run(&command);
	json_decref(command.sample);
	top_rates_deinit(&command.rates);
	command.source->close(command.source);
	return code;
}

const struct command command_top = {&line, command_main};

/* SPDX-License-Identifier: Apache-2.0 */
/* `weir explain`: why a decision was made. */
#include "common/base/alloc.h"
#include "common/config/arguments.h"
#include "common/config/config.h"
#include "common/files/durable_file.h"
#include "deploy/weir/command.h"
#include "deploy/weir/explain/answer.h"
#include "deploy/weir/explain/explain_work.h"
#include "deploy/weir/overrides/override_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum option { ZONE, CONFIG, STATE, DECISIONS, COLLECTOR, JSON, OPTION_COUNT };

static const struct weir_argument_option options[] = {
	[ZONE] = {.name = "zone",
              .value = "NAME",
              .type = WEIR_ARGUMENT_TEXT,
              .help = "of a key, only its decision in this zone"},
	[CONFIG] = {.name = "config",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "the configuration of a cluster, or of one machine whose state is in the usual place"},
	[STATE] = {.name = "state",
               .value = "DIR",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "the state directory of a `weir run`; it may be running"},
	[DECISIONS] = {.name = "decisions",
                   .value = "FILE",
                   .type = WEIR_ARGUMENT_TEXT,
                   .help = "a file with published decisions, if the run wrote them to standard output"},
	[COLLECTOR] = {.name = "collector",
                   .value = "DIR",
                   .type = WEIR_ARGUMENT_TEXT,
                   .help = "in a cluster: the state directory of the collector on this machine"},
	[JSON] = {.name = "json", .type = WEIR_ARGUMENT_FLAG, .help = "print a JSON line for each decision"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"What it does",
     "The events of the key are judged again from the log by the limiter's own code. The decision that comes out is "
     "compared with the published one, byte for byte. Of each event that the limit counted, the line is read from "
     "its file, which may have been renamed or compressed since: a line is shown only if it gives the event's key "
     "and time again.\n"
     "\n"
     "On one machine the log reaches back as far as bus.explain_size allows. A run with --once has no log: its "
     "sources are read again. What is missing is said: a part of the log, a line, a policy."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "explained: the same decision came out, and every line was found"},
	{WEIR_EXIT_FAILED, "something is missing or differs; the output says what"},
	{WEIR_EXIT_USAGE, "the command line or the configuration is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir explain",
	.summary = "show why a key was blocked: limit, events, lines",
	.usage = "weir explain ID|KEY... [--zone NAME] [--config FILE] [--json]\n"
			 "weir explain ID|KEY... [--zone NAME] --state DIR [--json]\n"
			 "weir explain --zone NAME [--config FILE] [--state DIR] [--json]",
	.about = "Shows why a decision was made: the policy and limit, each event that was counted, where its line is, "
			 "and the line.\n"
			 "\n"
			 "An ID is that of a decision, such as 3-1841-0. A KEY stands for its newest decision in every zone; "
			 "several values are joined by |. A zone whose key is empty has one bucket, which --zone names alone.",
	.operand = {.word = "ID|KEY", .help = "which decisions", .most = EXPLAIN_ASKED_MAX},
	.options = options,
	.sections = sections,
	.examples = "weir explain 203.0.113.9\n"
				"weir explain 3-1841-0 --state /var/lib/weir --json | jq -r '.events[].line'\n"
				"weir explain '203.0.113.9|/login' --zone login --config weir.json\n"
				"weir explain --zone all",
	.exits = exits,
};

struct explain_command {
	struct explain_asked asked;
	const char **words; /* owned; of asked */
	bool json;
};

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct explain_command *command = context;
	struct explain_asked *asked = &command->asked;
	switch (option) {
	case ZONE: asked->zone = value->text; break;
	case CONFIG: asked->config_path = value->text; break;
	case STATE: asked->state_path = value->text; break;
	case DECISIONS: asked->decisions = value->text; break;
	case COLLECTOR: asked->collector = value->text; break;
	case JSON: command->json = true; break;
	default:
		if (value->text[0] == '\0')
			return weir_arguments_refuse(&line, OVERRIDE_EMPTY_VALUE);
		command->words[asked->count++] = value->text;
		break;
	}
	return WEIR_EXIT_NOT_YET;
}

static enum weir_exit parse(struct explain_command *command, int argc, char **argv)
{
	struct explain_asked *asked = &command->asked;
	command->words = weir_alloc((size_t)argc, sizeof(const char *));
	asked->words = command->words;
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, command);
	if (code == WEIR_EXIT_NOT_YET && asked->count == 0 && asked->zone == NULL)
		code =
			weir_arguments_refuse(&line, "name a decision's id, or a key; or with --zone alone a zone of one bucket");
	asked->config_given = asked->config_path != NULL;
	if (asked->state_path == NULL)
		(void)weir_config_find(&asked->config_path);
	return code;
}

static unsigned columns(void)
{
	struct winsize size;
	return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static enum weir_exit print(const struct explain_command *command, struct explain *explain)
{
	const struct question **questions;
	struct weir_text text = {0};
	enum weir_exit code = WEIR_EXIT_DONE;
	size_t count = explain_answers(explain, &questions), written;
	for (size_t i = 0; i < count; i++) {
		if (!command->json && i > 0)
			weir_text_puts(&text, "\n");
		if (command->json)
			answer_json(&text, questions[i]);
		else
			answer_words(&text, questions[i], columns());
		if (!question_is_explained(questions[i]))
			code = WEIR_EXIT_FAILED;
	}
	if (count == 0) {
		fputs("weir explain: no decision of this key is known\n", stderr);
		code = WEIR_EXIT_FAILED;
	}
	if (weir_write_all(STDOUT_FILENO, text.at, text.length, &written) != 0 && errno != EPIPE) {
		perror("weir explain: cannot write");
		code = WEIR_EXIT_FAILED;
	}
	weir_text_deinit(&text);
	return code;
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct explain_command command = {.json = false};
	struct explain *explain;
	struct weir_error error;
	enum weir_exit code = parse(&command, argc, argv);
	if (code == WEIR_EXIT_NOT_YET) {
		enum weir_status status = explain_work(&command.asked, &explain, &error);
		if (status != WEIR_OK)
			fprintf(stderr, "weir explain: %s\n", error.text);
		code = status == WEIR_OK ? print(&command, explain) : weir_exit_of(status);
		explain_free(explain);
	}
	free(command.words);
	return code;
}

const struct command command_explain = {&line, command_main};

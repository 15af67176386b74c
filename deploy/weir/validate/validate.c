/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir validate`: what a configuration means, in words, or what is wrong with
 * it and what would be accepted. Nothing is written, nothing remembered.
 */
#include "common/bus/kafka/bus_kafka.h"
#include "common/config/arguments.h"
#include "common/files/durable_file.h"
#include "common/json/json_writer.h"
#include "deploy/weir/command.h"
#include "deploy/weir/validate/validate_metrics.h"
#include "deploy/weir/validate/validate_report.h"
#include "deploy/weir/validate/validate_state.h"
#include "limiter/daemon/limiter_checks.h"

#include <stdio.h>
#include <unistd.h>

enum option { CONFIG, STATE, OFFLINE, JSON, SETTINGS, METRICS, OPTION_COUNT };

static const struct weir_argument_option options_table[] = {
	[CONFIG] = {.name = "config", .value = "FILE", .type = WEIR_ARGUMENT_TEXT, .help = "the configuration"},
	[STATE] = {.name = "state",
               .value = "DIR",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "the state directory that it is meant for (default: that of weir run)"},
	[OFFLINE] = {.name = "offline",
                 .type = WEIR_ARGUMENT_FLAG,
                 .help = "ask neither a state directory nor a cluster what is in force there"},
	[JSON] = {.name = "json", .type = WEIR_ARGUMENT_FLAG, .help = "print it as one JSON object"},
	[SETTINGS] = {.name = "settings",
                  .type = WEIR_ARGUMENT_FLAG,
                  .help = "print every setting with its default and its meaning, as a table in Markdown"},
	[METRICS] = {.name = "metrics",
                 .type = WEIR_ARGUMENT_FLAG,
                 .help = "print every metric with its labels and its meaning, as a page in Markdown"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"The smallest configuration",
     "    { \"zones\": [ { \"name\": \"site\", \"key\": [\"ip\"],\n"
     "                   \"limits\": [ { \"algorithm\": \"sliding_window\",\n"
     "                                 \"rate\": 100, \"window\": \"1m\" } ] } ],\n"
     "      \"sources\": [ { \"type\": \"file\", \"path\": \"/var/log/nginx/access.log\",\n"
     "                     \"format\": \"combined\", \"follow\": true } ] }\n"},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "the configuration is valid, with or without warnings"},
	{WEIR_EXIT_FAILED, "standard output could not be written"},
	{WEIR_EXIT_USAGE, "the configuration or the command line is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir validate",
	.summary = "explain a configuration, or show what is wrong with it",
	.usage = "weir validate [--config FILE] [--state DIR] [--offline] [--json]\n"
			 "weir validate --settings | --metrics",
	.about = "Explains a configuration, or shows what is wrong with it and what would be accepted.\n"
			 "\n"
			 "It describes each zone in a sentence with the memory that a user takes. It lists the files that "
			 "the sources match now, and reads their first lines. It shows where decisions and malformed lines "
			 "go, and warns of likely mistakes. It asks the state directory, or the cluster, what is in force, "
			 "and says what a start would change or refuse. Nothing is written.",
	.operand = {.word = "FILE",
                .help = "the configuration, as with --config",
                .most = 1,
                .hint = "one configuration at a time"},
	.options = options_table,
	.sections = sections,
	.examples = "weir validate --config weir.json\n"
				"weir validate --config weir.json --json | jq -r '.warnings[].words'",
	.exits = exits,
};

struct validate_options {
	const char *path, *state_path;
	bool json, offline;
};

static void put_reference(void (*describe)(struct weir_text *text))
{
	struct weir_text text = {0};
	describe(&text);
	fwrite(text.at, 1, text.length, stdout);
	weir_text_deinit(&text);
}

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct validate_options *options = context;
	switch (option) {
	case STATE: options->state_path = value->text; return WEIR_EXIT_NOT_YET;
	case OFFLINE: options->offline = true; return WEIR_EXIT_NOT_YET;
	case JSON: options->json = true; return WEIR_EXIT_NOT_YET;
	case SETTINGS: put_reference(weir_config_describe); return WEIR_EXIT_DONE;
	case METRICS: put_reference(validate_metrics); return WEIR_EXIT_DONE;
	default: /* --config FILE, or the file alone */
		if (options->path != NULL)
			return weir_arguments_refuse(&line, "one configuration at a time: \"%s\" is too many", value->text);
		options->path = value->text;
		return WEIR_EXIT_NOT_YET;
	}
}

static enum weir_exit parse(int argc, char **argv, struct validate_options *options)
{
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, options);
	if (code != WEIR_EXIT_NOT_YET || weir_config_find(&options->path))
		return code;
	return weir_arguments_refuse(&line, WEIR_CONFIG_MISSING);
}

/* All that a start asks of a configuration. */
static enum weir_status inspect(const struct validate_options *options, struct weir_config *config,
                                struct validate_report *report, struct weir_error *error)
{
	enum weir_status status = validate_report_begin(config, options->path, options->state_path, report, error);
	validate_set_secrets_aside(report);
	if (status == WEIR_OK && config->bus.type == WEIR_BUS_KAFKA)
		status = weir_bus_kafka_check(config, error);
	if (status == WEIR_OK)
		status = weir_config_check_waiting(config, error);
	if (status == WEIR_OK)
		status = limiter_checks_check(config, error);
	if (status == WEIR_OK)
		status = validate_report_make(report, error);
	if (status == WEIR_OK)
		status = validate_secrets(report, error);
	if (status == WEIR_OK && !options->offline)
		validate_places(report);
	if (status == WEIR_OK && !options->offline)
		status = validate_state(config, options->state_path, report, error);
	return status;
}

/* A weir_config_check. */
static enum weir_status inspect_again(void *context, struct weir_config *config, struct weir_error *error)
{
	struct validate_report report = {0};
	struct validate_options offline = *(const struct validate_options *)context;
	offline.offline = true; /* the state is asked last, and once: what it refuses is then all */
	enum weir_status status = inspect(&offline, config, &report, error);
	validate_report_deinit(&report);
	return status;
}

static void print_mistake(void *context, const char *words)
{
	(void)context;
	fprintf(stderr, "%s\n", words); /* FILE:LINE: first, for editors */
}

static void put_mistake(void *context, const char *words)
{
	weir_json_write_words(context, NULL, words);
}

static void put_errors(struct weir_text *text, const struct validate_options *options, const struct weir_error *first)
{
	struct weir_config_check check = {inspect_again, (void *)(uintptr_t)options};
	if (!options->json) {
		weir_config_mistakes(options->path, &check, first, print_mistake, NULL);
		return;
	}
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_bool(&json, "good", false);
	weir_json_write_array(&json, "errors");
	weir_config_mistakes(options->path, &check, first, put_mistake, &json);
	weir_json_write_end(&json);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct validate_options options = {0};
	struct weir_error error;
	struct weir_config *config = NULL;
	struct validate_report report = {0};
	struct weir_text text = {0};
	size_t written;
	enum weir_exit code = parse(argc, argv, &options);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	enum weir_status status = weir_config_load(options.path, &config, &error);
	if (status == WEIR_OK)
		status = inspect(&options, config, &report, &error);
	if (status != WEIR_OK)
		put_errors(&text, &options, &error);
	else if (options.json)
		validate_json(&text, &report);
	else
		validate_words(&text, options.path, &report);
	code = status == WEIR_OK ? WEIR_EXIT_DONE : WEIR_EXIT_USAGE;
	if (weir_write_all(STDOUT_FILENO, text.at, text.length, &written) != 0) {
		perror("weir validate: cannot write");
		code = WEIR_EXIT_FAILED;
	}
	weir_text_deinit(&text);
	validate_report_deinit(&report);
	weir_config_free(config);
	return code;
}

const struct command command_validate = {&line, command_main};

/*
 * `weir validate`: what a configuration means, in words, or what is wrong with
 * it and what would be accepted. Nothing is written, nothing remembered.
 */
#include "common/bus/kafka/bus_kafka.h"
#include "common/config/arguments.h"
#include "common/files/durable_file.h"
#include "deploy/weir/command.h"
#include "deploy/weir/validate/validate_report.h"

#include <stdio.h>
#include <unistd.h>

static const char help[] =
	"usage: weir validate --config FILE [--json]\n"
	"       weir validate --settings\n"
	"\n"
	"Says what a configuration means: each zone as a sentence, what a user costs in memory, the files that\n"
	"the sources name now with what their first lines come to, where decisions and malformed lines go; and\n"
	"warns of what may not be meant. If something is wrong it says where, and what would be accepted.\n"
	"\n"
	"  --config FILE   the configuration\n"
	"  --json          the same as one JSON object\n"
	"  --settings      every setting that there is, its default and its meaning, as a table in Markdown\n"
	"\n"
	"Exit codes: 0 it is good, with or without warnings; 2 it is not.\n"
	"\n"
	"Examples\n"
	"  weir validate --config weir.json\n"
	"  weir validate --config weir.json --json | jq -r '.warnings[] | .path + \": \" + .words'\n"
	"\n"
	"The smallest configuration\n"
	"  { \"zones\": [ { \"name\": \"site\", \"key\": [\"ip\"],\n"
	"                 \"limits\": [ { \"algorithm\": \"sliding_window\", \"rate\": 100, \"window\": \"1m\" } ] } ],\n"
	"    \"sources\": [ { \"type\": \"file\", \"path\": \"/var/log/nginx/access.log\", \"format\": \"combined\",\n"
	"                   \"follow\": true } ] }\n";

enum option { CONFIG, JSON, SETTINGS };

static const struct weir_argument_option table[] = {
	{"config", true}, {"json", false}, {"settings", false}, {NULL, false}};

struct validate_options {
	const char *path;
	bool json;
};

static void put_settings(void)
{
	struct weir_text text = {0};
	weir_config_describe(&text);
	fwrite(text.at, 1, text.length, stdout);
	weir_text_deinit(&text);
}

/* WEIR_EXIT_NOT_YET: go on. */
static enum weir_exit parse(int argc, char **argv, struct validate_options *options)
{
	struct weir_arguments arguments = {.command = "weir validate", .options = table, .argc = argc, .argv = argv};
	const char *value;
	int option;
	while ((option = weir_arguments_next(&arguments, &value)) != WEIR_ARGUMENTS_END) {
		switch (option) {
		case WEIR_ARGUMENTS_HELP: fputs(help, stdout); return WEIR_EXIT_DONE;
		case WEIR_ARGUMENTS_BAD: return WEIR_EXIT_USAGE;
		case JSON: options->json = true; break;
		case SETTINGS: put_settings(); return WEIR_EXIT_DONE;
		default: /* --config FILE, or the file alone */
			if (options->path != NULL) {
				weir_arguments_refuse(&arguments, "one configuration at a time: \"%s\" is too many", value);
				return WEIR_EXIT_USAGE;
			}
			options->path = value;
		}
	}
	if (options->path != NULL)
		return WEIR_EXIT_NOT_YET;
	weir_arguments_refuse(&arguments, "name the configuration by --config FILE");
	return WEIR_EXIT_USAGE;
}

static void put_error(struct weir_text *text, const struct validate_options *options, const struct weir_error *error)
{
	if (!options->json) {
		fprintf(stderr, "%s\n", error->text); /* FILE:LINE: first, for editors */
		return;
	}
	weir_text_puts(text, "{\"good\":false,\"error\":");
	weir_text_json(text, weir_span_of(error->text));
	weir_text_puts(text, "}\n");
}

enum weir_exit command_validate(int argc, char **argv)
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
	if (status == WEIR_OK && config->bus.type == WEIR_BUS_KAFKA)
		status = weir_bus_kafka_check(config, &error);
	if (status == WEIR_OK)
		status = validate_report_make(config, &report, &error);
	if (status != WEIR_OK)
		put_error(&text, &options, &error);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* `weir test`: whether a policy does what its tests say. */
#include "common/base/alloc.h"
#include "common/config/arguments.h"
#include "common/files/durable_file.h"
#include "common/files/output_file.h"
#include "deploy/weir/command.h"
#include "deploy/weir/terminal/readable.h"
#include "deploy/weir/test/internal.h"
#include "deploy/weir/test/require.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 1000 };
enum option { CONFIG, TAP, JUNIT, JSON, OPTION_COUNT };

static const struct weir_argument_option options_table[] = {
	[CONFIG] = {.name = "config",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "test the policy of this configuration, whatever the files name"},
	[TAP] = {.name = "tap", .type = WEIR_ARGUMENT_FLAG, .help = "print TAP, as prove reads it"},
	[JUNIT] = {.name = "junit",
               .value = "FILE",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "write JUnit's XML to this file, too"},
	[JSON] = {.name = "json", .type = WEIR_ARGUMENT_FLAG, .help = "print one JSON object"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"A file of tests", "    { \"config\": \"weir.json\",\n"
                        "      \"cases\": [ { \"name\": \"the sixth login within a minute is blocked\",\n"
                        "        \"given\": [ { \"at\": \"0s\", \"repeat\": 6, \"every\": \"5s\",\n"
                        "                     \"fields\": { \"ip\": \"203.0.113.9\", \"path\": \"/login\" } } ],\n"
                        "        \"expect\": { \"decisions\": [ { \"zone\": \"login\", \"line\": 6,\n"
                        "                                     \"key\": \"203.0.113.9\" } ] } } ] }\n"},
	{"What it does",
     "Each case begins with an empty state. Its lines go through the formats, zones and limits of the "
     "configuration as `weir run --once` judges them, and times are what the lines say. Nothing is written and "
     "no server is asked. A failure shows what was expected, what came, and which lines were counted."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "every case passed"},
	{WEIR_EXIT_FAILED, "some case failed, or the output could not be written"},
	{WEIR_EXIT_USAGE, "some file, case, configuration or the command line cannot be used"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir test",
	.summary = "test a policy: given lines and times, expected decisions",
	.usage = "weir test FILE... [--config FILE] [--tap | --json] [--junit FILE]",
	.about = "Tests a policy: each case of a file gives lines and times, and says which decisions they must make.",
	.operand = {.word = "FILE", .help = "files of tests", .most = FILES_MAX},
	.options = options_table,
	.sections = sections,
	.examples = "weir test tests/*.json\n"
				"weir test --config new.json policy.test.json --junit report.xml\n"
				"prove --exec 'weir test --tap' policy.test.json",
	.exits = exits,
};

struct test_options {
	const char **paths; /* owned */
	size_t count;
	const char *config_path, *junit_path;
	bool tap, json;
};

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct test_options *options = context;
	switch (option) {
	case CONFIG: options->config_path = value->text; break;
	case TAP: options->tap = true; break;
	case JUNIT: options->junit_path = value->text; break;
	case JSON: options->json = true; break;
	default: options->paths[options->count++] = value->text; break;
	}
	return WEIR_EXIT_NOT_YET;
}

static enum weir_exit parse(int argc, char **argv, struct test_options *options)
{
	options->paths = weir_alloc((size_t)argc, sizeof(const char *));
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, options);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (options->count == 0)
		return weir_arguments_refuse(&line, "name a file of tests");
	if (options->tap && options->json)
		return weir_arguments_refuse(&line, "--tap and --json are two forms of one output: choose one");
	return WEIR_EXIT_NOT_YET;
}

static bool is_file(const struct stat *about, const char *path)
{
	struct stat other;
	return path != NULL && path[0] != '\0' && stat(path, &other) == 0 && other.st_dev == about->st_dev &&
	       other.st_ino == about->st_ino;
}

/* What was read stays: a name behind --junit that a shell made of tests/ and a star would end it. */
static bool is_read(const struct test_options *options, const struct test_run *run, const struct stat *about)
{
	if (is_file(about, options->config_path))
		return true;
	for (size_t i = 0; i < options->count; i++)
		if (is_file(about, options->paths[i]) || is_file(about, run->reports[i].config))
			return true;
	return false;
}

static enum weir_exit write_junit(const struct test_options *options, const struct test_run *run)
{
	const char *path = options->junit_path;
	struct stat about;
	struct weir_error error;
	if (stat(path, &about) == 0 && is_read(options, run, &about)) {
		fprintf(stderr, "weir test: --junit %s would end a file that is read: name another\n", path);
		return WEIR_EXIT_USAGE;
	}
	struct weir_output_file file = {0};
	struct weir_text text = {0};
	test_run_junit(&text, run);
	enum weir_status status = weir_output_file_open(&file, path, 0666, &error);
	if (status == WEIR_OK)
		status = weir_output_file_write(&file, &text, &error);
	if (status != WEIR_OK)
		fprintf(stderr, "weir test: %s\n", error.text);
	weir_output_file_close(&file);
	weir_text_deinit(&text);
	return status == WEIR_OK ? WEIR_EXIT_DONE : WEIR_EXIT_FAILED;
}

static bool print(const struct test_options *options, const struct test_run *run)
{
	struct weir_text text = {0};
	size_t written;
	if (options->tap)
		test_run_tap(&text, run);
	else if (options->json)
		test_run_json(&text, run);
	else
		test_run_words(&text, run, words_coloured(STDOUT_FILENO));
	bool done = weir_write_all(STDOUT_FILENO, text.at, text.length, &written) == 0;
	if (!done)
		perror("weir test: cannot write");
	weir_text_deinit(&text);
	return done;
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct test_options options = {0};
	struct test_run *run = NULL;
	enum weir_exit code = parse(argc, argv, &options);
	if (code == WEIR_EXIT_NOT_YET) {
		code = test_run_new(options.paths, options.count, NULL, options.config_path, &run);
		enum weir_exit written = print(&options, run) ? WEIR_EXIT_DONE : WEIR_EXIT_FAILED;
		enum weir_exit junit = options.junit_path != NULL ? write_junit(&options, run) : WEIR_EXIT_DONE;
		if (code == WEIR_EXIT_DONE || junit == WEIR_EXIT_USAGE)
			code = junit != WEIR_EXIT_DONE ? junit : written;
		test_run_free(run);
	}
	free(options.paths);
	return code;
}

const struct command command_test = {&line, command_main};

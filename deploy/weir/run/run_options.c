/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `weir run`, and the configuration that it names or stands for. */
#include "deploy/weir/run/run_options.h"

#include "common/base/alloc.h"
#include "common/base/stop.h"
#include "common/exempt/exempt_fetch.h"
#include "common/files/file_place.h"
#include "deploy/weir/backend/state_directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEMORY_SENSIBLE_BYTES = 16 << 20 }; /* the least that a configuration may say */

enum option {
	CONFIG,
	ONCE,
	SORT,
	STATE,
	DECISIONS,
	SHADOW,
	JUDGED,
	DEAD_LETTER,
	MEMORY,
	JSON,
	SUMMARY,
	QUIET,
	FORMAT,
	KEY,
	LIMIT,
	OPTION_COUNT,
};

static const char *const summary_forms[] = {"json", NULL};

static const struct weir_argument_option options_table[] = {
	[CONFIG] = {.name = "config",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "zones, sources and everything else (see weir validate)"},
	[ONCE] = {.name = "once",
              .type = WEIR_ARGUMENT_FLAG,
              .help = "read the sources to their end and finish (default: follow them)"},
	[SORT] = {.name = "sort",
              .type = WEIR_ARGUMENT_FLAG,
              .help =
                  "with --once: judge in the order of time, for logs that are not (takes 64 MiB, and disk in $TMPDIR "
                  "or /var/tmp)"},
	[STATE] = {.name = "state",
               .value = "DIR",
               .type = WEIR_ARGUMENT_TEXT,
               .help =
                   "keep state here: a run that was killed continues where it stopped (when following: /var/lib/weir, "
                   "or without root the XDG state directory)"},
	[DECISIONS] = {.name = "decisions",
                   .value = "PATH",
                   .type = WEIR_ARGUMENT_TEXT,
                   .help =
                       "where decisions go; - and /dev/stdout are standard output (the default), which is never cut"},
	[SHADOW] = {.name = "shadow",
                .value = "PATH",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "where decisions of zones in shadow mode go (default: to no file)"},
	[JUDGED] = {.name = "judged",
                .value = "PATH",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "with --once: a line for every verdict"},
	[DEAD_LETTER] = {.name = "dead-letter",
                     .value = "PATH",
                     .type = WEIR_ARGUMENT_TEXT,
                     .help = "malformed lines with the reason (default: in the state directory)"},
	[MEMORY] = {.name = "memory",
                .value = "SIZE",
                .type = WEIR_ARGUMENT_SIZE,
                .help = "ceiling for buckets in memory; the least used ones move to the store",
                .least = 1},
	[JSON] = {.name = "json", .type = WEIR_ARGUMENT_FLAG, .help = "print decisions as JSON even on a terminal"},
	[SUMMARY] = {.name = "summary",
                 .value = "FORM",
                 .type = WEIR_ARGUMENT_CHOICE,
                 .help = "json: the summary as one JSON line",
                 .choices = summary_forms},
	[QUIET] = {.name = "quiet", .type = WEIR_ARGUMENT_FLAG, .help = "no progress, no summary"},
	[FORMAT] = {.name = "format",
                .value = "NAME",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "combined (default), common, json, delimited, logfmt, nginx_error, haproxy, sshd",
                .heading = "Without a configuration file"},
	[KEY] = {.name = "key",
             .value = "FIELDS",
             .type = WEIR_ARGUMENT_TEXT,
             .help = "the fields to count by: ip (default), user, \"ip,path\", ...",
             .repeatable = true},
	[LIMIT] = {.name = "limit",
               .value = "N/W[:A]",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "at most N per W: 10/1m, 1000/1d, 5/10s:token_bucket",
               .repeatable = true},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "done"},
	{WEIR_EXIT_FAILED,
     "it failed, a source could not be read or none of its lines became an event (the others were read to their end), "
     "or malformed lines could not be kept"},
	{WEIR_EXIT_USAGE, "the command line or the configuration is wrong"},
	{WEIR_EXIT_INTERRUPTED, "--once was stopped by a signal; its state holds what it had written"},
	{WEIR_EXIT_DONE, NULL},
};

const struct weir_command_line run_line = {
	.name = "weir run",
	.summary = "read logs, judge, write decisions: all of weir in one process",
	.usage = "weir run [--config FILE] [OPTION...]\n"
			 "weir run [--format NAME] [--key FIELDS] --limit N/W... [OPTION...] LOG...",
	.about = "Reads logs, judges every event, and writes decisions.",
	.operand = {.word = "LOG", .help = "a file, a glob in quotes, .gz, .zst, .bz2, .xz, or - for standard input"},
	.options = options_table,
	.examples = "weir run --once --limit 10/1m --limit 100/1h /var/log/nginx/access.log\n"
				"zcat old.gz | weir run --once --key ip --limit 100/1m -\n"
				"weir run --config weir.json --decisions /var/lib/weir/decisions.jsonl\n"
				"weir run --once --state run1 --config weir.json    # may be run again",
	.exits = exits,
};

/* What was given, before the configuration is read. */
struct given {
	struct run_options *options;
	struct weir_shorthand words;
	const char **limits, **keys, **logs; /* owned; of words */
	int64_t memory_bytes;                /* -1: not given */
	bool shorthand;                      /* --format, --key or --limit */
};

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct given *given = context;
	struct run_options *options = given->options;
	given->shorthand = given->shorthand || option == FORMAT || option == KEY || option == LIMIT;
	switch (option) {
	case CONFIG: options->config_path = value->text; break;
	case ONCE: options->once = true; break;
	case SORT: options->sort = true; break;
	case STATE: options->state_directory = value->text; break;
	case DECISIONS: options->decisions_path = value->text; break;
	case SHADOW: options->shadow_path = value->text; break;
	case JUDGED: options->judged_path = value->text; break;
	case DEAD_LETTER: options->dead_letters_path = value->text; break;
	case JSON: options->force_json = true; break;
	case QUIET: options->quiet = true; break;
	case MEMORY: given->memory_bytes = (int64_t)value->number; break;
	case SUMMARY: options->summary_json = true; break;
	case FORMAT: given->words.format = value->text; break;
	case KEY: given->keys[given->words.key_count++] = value->text; break;
	case LIMIT: given->limits[given->words.limit_count++] = value->text; break;
	default: given->logs[given->words.log_count++] = value->text; break;
	}
	return WEIR_EXIT_NOT_YET;
}

enum weir_status run_options_check_bus(void *context, struct weir_config *config, struct weir_error *error)
{
	(void)context;
	if (config->bus.type == WEIR_BUS_LOCAL)
		return WEIR_OK;
	struct weir_json root = weir_json_root(config->document);
	struct weir_json bus = weir_json_member(&root, "bus"), type = weir_json_member(&bus, "type");
	return weir_json_fail(&type, error, "must be \"local\" for weir run; weir-collector and weir-limiter use Kafka");
}

static enum weir_exit read_config(struct run_options *options, struct given *given)
{
	struct weir_error error;
	enum weir_status status;
	if (given->words.log_count == 0 && !given->shorthand)
		(void)weir_config_find(&options->config_path);
	if (options->config_path != NULL) {
		if (given->shorthand || given->words.log_count > 0)
			return weir_arguments_refuse(&run_line, "%s cannot be combined with --config",
			                             given->words.log_count > 0 ? "logs" : "--format, --key and --limit");
		status = weir_config_load(options->config_path, &options->config, &error);
	} else if (given->words.log_count == 0) {
		return weir_arguments_refuse(&run_line, WEIR_CONFIG_MISSING ", or name a log to read");
	} else if (given->words.limit_count == 0) {
		return weir_arguments_refuse(&run_line, "no --limit was given: try --limit 10/1m");
	} else {
		given->words.logs = given->logs;
		given->words.limits = given->limits;
		given->words.keys = given->keys;
		given->words.follow = !options->once;
		char *text;
		status = weir_config_shorthand(&given->words, &text, &error);
		if (status == WEIR_OK) {
			status = weir_config_parse(WEIR_JSON_COMMAND_LINE, text, strlen(text), &options->config, &error);
			free(text);
		}
	}
	if (status == WEIR_OK)
		status = run_options_check_bus(NULL, options->config, &error);
	if (status == WEIR_OK)
		return WEIR_EXIT_NOT_YET;
	weir_config_print_mistakes("weir: ", options->config_path,
	                           &(struct weir_config_check){.check = run_options_check_bus}, &error);
	return WEIR_EXIT_USAGE;
}

/* Whether the configuration itself sets it, rather than its default. */
static bool says(const struct weir_config *config, const char *section, const char *name)
{
	struct weir_json root = weir_json_root(config->document);
	struct weir_json at = weir_json_member(&root, section);
	if (!weir_json_exists(&at))
		return false;
	at = weir_json_member(&at, name);
	return weir_json_exists(&at);
}

/* What was asked for and will not happen, or not as it was meant. */
static void warn(const struct run_options *options)
{
	const struct weir_config *config = options->config;
	if (options->judged_path != NULL && !options->once)
		fputs("weir run: --judged works only with --once: nothing is written to it\n", stderr);
	if (options->once && config->archiver.enabled && options->state_directory == NULL)
		fputs("weir run: archiver.enabled needs --state DIR with --once: nothing is archived\n", stderr);
	if (options->once && config->decisions.rotate_bytes > 0)
		fputs("weir run: decisions.rotate_size has no effect with --once: the file is not rotated\n", stderr);
	if (options->memory_set && config->limiter.memory_bytes < MEMORY_SENSIBLE_BYTES)
		fputs("weir run: --memory below 16MiB is only for tests: nearly every bucket is fetched from the store\n",
		      stderr);
}

/* What cannot be done together. */
static enum weir_exit check_together(const struct run_options *options)
{
	if (options->sort && !options->once)
		return weir_arguments_refuse(&run_line,
		                             "--sort works only with --once: what is followed has no end to read to. "
		                             "\"lateness\" of a sliding_window judges live events out of order");
	if (options->sort && options->state_directory != NULL)
		return weir_arguments_refuse(&run_line,
		                             "--sort cannot be combined with --state: a sorted run reads all its input "
		                             "before it judges the first event, and cannot continue in its middle");
	return WEIR_EXIT_NOT_YET;
}

void run_options_set_limiter(struct run_options *options, int64_t memory_bytes)
{
	struct weir_config *config = options->config;
	if (memory_bytes >= 0)
		config->limiter.memory_bytes = memory_bytes;
	if (config->limiter.memory_bytes < config->bus.partitions)
		config->limiter.memory_bytes = config->bus.partitions; /* 0 a partition would be no ceiling at all */
	options->memory_set = memory_bytes >= 0 || says(config, "limiter", "memory");
	/* --once reads in a thread of its own: a worker less leaves it a processor */
	if (options->once && config->limiter.threads > 1 && !says(config, "limiter", "threads"))
		config->limiter.threads--;
}

static const char standard_output[] = "-"; /* by default; by its address it is told from one that was given */

void run_options_repeat(const struct run_options *options, struct weir_config *config, struct run_options *next)
{
	const struct weir_config *was = options->config;
	*next = *options;
	next->config = config;
	next->gateways = (struct gateway_list){0};
	if (next->decisions_path == standard_output || next->decisions_path == was->decisions.path)
		next->decisions_path = config->decisions.path != NULL ? config->decisions.path : standard_output;
	if (next->shadow_path == was->decisions.shadow_path)
		next->shadow_path = config->decisions.shadow_path;
	if (next->dead_letters_path == options->dead_letters_default || next->dead_letters_path == was->deadletter.path)
		next->dead_letters_path =
			config->deadletter.path != NULL ? config->deadletter.path : options->dead_letters_default;
}

/* What the command line leaves open comes from the configuration, then from defaults. */
static enum weir_exit complete(struct run_options *options, const struct given *given)
{
	struct weir_config *config = options->config;
	struct weir_error error;
	if (options->decisions_path == NULL)
		options->decisions_path = config->decisions.path != NULL ? config->decisions.path : standard_output;
	if (options->shadow_path == NULL)
		options->shadow_path = config->decisions.shadow_path;
	if (options->dead_letters_path == NULL)
		options->dead_letters_path = config->deadletter.path;
	run_options_set_limiter(options, given->memory_bytes);
	if (options->state_directory == NULL && !options->once) {
		if (state_directory_default(options->state_path, &error) != WEIR_OK) {
			fprintf(stderr, "weir: %s\n", error.text);
			return WEIR_EXIT_USAGE;
		}
		options->state_directory = options->state_path;
	}
	if (options->state_directory != NULL) { /* commands about this process are given its state */
		free(config->command_words);
		config->command_words = weir_command_words("--state", options->state_directory);
	}
	if (options->dead_letters_path == NULL && options->state_directory != NULL) {
		if (weir_path_format(options->dead_letters_default, &error, "%s/dead-letter.jsonl", options->state_directory) !=
		    WEIR_OK) {
			fprintf(stderr, "weir: %s\n", error.text);
			return WEIR_EXIT_USAGE;
		}
		options->dead_letters_path = options->dead_letters_default;
	}
	return WEIR_EXIT_NOT_YET;
}

enum weir_exit run_options_parse(int argc, char **argv, struct run_options *options)
{
	*options = (struct run_options){0};
	struct given given = {.options = options,
	                      .memory_bytes = -1,
	                      .limits = weir_alloc((size_t)argc, sizeof(char *)),
	                      .keys = weir_alloc((size_t)argc, sizeof(char *)),
	                      .logs = weir_alloc((size_t)argc, sizeof(char *))};
	enum weir_exit code = weir_arguments_read(&run_line, argc, argv, take_option, &given);
	if (code == WEIR_EXIT_NOT_YET)
		code = check_together(options);
	if (code == WEIR_EXIT_NOT_YET) /* lists and sources may be read for long before anything is made */
		weir_stop_begin(options->once ? WEIR_EXIT_INTERRUPTED : WEIR_EXIT_DONE);
	if (code == WEIR_EXIT_NOT_YET)
		code = read_config(options, &given);
	if (code == WEIR_EXIT_NOT_YET)
		code = complete(options, &given);
	if (code == WEIR_EXIT_NOT_YET)
		warn(options);
	free(given.limits);
	free(given.keys);
	free(given.logs);
	return code;
}

void run_options_deinit(struct run_options *options)
{
	weir_exempt_fetch_free(options->fetch);
	weir_exempt_lists_free(options->lists);
	gateway_list_deinit(&options->gateways);
	weir_config_free(options->config);
	options->config = NULL;
}

enum weir_status run_options_fetch(const struct run_options *options, const struct weir_policy *policy,
                                   struct weir_error *error)
{
	weir_exempt_fetch_set(options->fetch, policy, WEIR_EXEMPT_FETCH_WAIT_MS, weir_stop_flag());
	return weir_exempt_lists_refresh(options->lists, policy, error);
}

bool run_options_words(const struct run_options *options)
{
	return options->decisions_path != NULL && weir_file_descriptor_of(options->decisions_path) == STDOUT_FILENO &&
	       !options->force_json && isatty(STDOUT_FILENO);
}

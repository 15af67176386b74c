/* The command line of `weir run`, by getopt_long; what it teaches is at the top. */
#include "deploy/weir/run/run_options.h"

#include "common/base/alloc.h"
#include "common/base/suggest.h"
#include "common/json/units.h"
#include "deploy/weir/command.h"
#include "deploy/weir/realm/state_directory.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"weir run: reads logs, judges every event, writes decisions\n"
	"\n"
	"usage: weir run --config FILE [OPTION...]\n"
	"       weir run [--format NAME] [--key FIELD[,FIELD]] --limit N/W[:ALGORITHM]... [OPTION...] LOG...\n"
	"\n"
	"  --config FILE      zones, sources and everything else (weir validate explains it)\n"
	"  --once             read the sources to their end and finish; else follow them\n"
	"  --state DIR        keep state here: a run that was killed goes on where it was\n"
	"                     (following: /var/lib/weir, or the XDG state directory without root)\n"
	"  --decisions PATH   where decisions go; - is standard output (the default)\n"
	"  --shadow PATH      decisions of zones in shadow mode (else they are only counted)\n"
	"  --judged PATH      --once: one line for every verdict\n"
	"  --dead-letter PATH malformed lines with their reason (default: in the state directory)\n"
	"  --memory SIZE      ceiling of all buckets: past it the least used go to the store\n"
	"  --json             decisions as JSON on a terminal too\n"
	"  --summary json     the summary as one JSON line\n"
	"  --quiet            no progress, no summary\n"
	"\n"
	"without a configuration file:\n"
	"  --format NAME      combined (default), common, json, delimited, logfmt, nginx_error, haproxy, sshd\n"
	"  --key FIELDS       what is counted by: ip (default), user, ip,path, ...\n"
	"  --limit N/W[:A]    at most N in W: 10/1m, 1000/1d, 5/10s:token_bucket; again for more limits\n"
	"  LOG                a file, a glob in quotes, .gz, .zst, or - for standard input\n"
	"\n"
	"examples:\n"
	"  weir run --once --key ip --limit 10/1m --limit 100/1h /var/log/nginx/access.log\n"
	"  zcat old.gz | weir run --once --key ip --limit 100/1m -\n"
	"  weir run --config weir.json --decisions /var/lib/weir/decisions.jsonl\n"
	"  weir run --once --state run1 --config weir.json --decisions out.jsonl   # may be killed and typed again\n"
	"\n"
	"exit codes: 0 done; 1 failed, or a source was unreadable (the others are finished); 2 usage or configuration;\n"
	"3 --once was stopped by a signal: its state holds what it had written.\n";

enum { MEMORY_SENSIBLE_BYTES = 16 << 20 }; /* the least that a configuration may say */

enum option_id {
	OPT_CONFIG = 256,
	OPT_ONCE,
	OPT_STATE,
	OPT_DECISIONS,
	OPT_SHADOW,
	OPT_JUDGED,
	OPT_DEAD_LETTER,
	OPT_MEMORY,
	OPT_JSON,
	OPT_SUMMARY,
	OPT_QUIET,
	OPT_FORMAT,
	OPT_KEY,
	OPT_LIMIT,
	OPT_HELP,
};

static const struct option long_options[] = {
	{"config", required_argument, NULL, OPT_CONFIG},
	{"once", no_argument, NULL, OPT_ONCE},
	{"state", required_argument, NULL, OPT_STATE},
	{"decisions", required_argument, NULL, OPT_DECISIONS},
	{"shadow", required_argument, NULL, OPT_SHADOW},
	{"judged", required_argument, NULL, OPT_JUDGED},
	{"dead-letter", required_argument, NULL, OPT_DEAD_LETTER},
	{"memory", required_argument, NULL, OPT_MEMORY},
	{"json", no_argument, NULL, OPT_JSON},
	{"summary", required_argument, NULL, OPT_SUMMARY},
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"format", required_argument, NULL, OPT_FORMAT},
	{"key", required_argument, NULL, OPT_KEY},
	{"limit", required_argument, NULL, OPT_LIMIT},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

/* What was given, before the configuration is read. */
struct given {
	struct weir_shorthand words;
	const char **limits, **keys; /* owned; of words */
	int64_t memory_bytes;        /* -1: not given */
	bool shorthand;              /* --format, --key or --limit */
};

static enum weir_exit usage_error(const char *format, const char *what)
{
	fputs("weir run: ", stderr);
	fprintf(stderr, format, what);
	fputs("; weir run --help shows what there is\n", stderr);
	return WEIR_EXIT_USAGE;
}

/* One option; WEIR_EXIT_NOT_YET: go on. */
static enum weir_exit take_option(int id, struct run_options *options, struct given *given)
{
	switch (id) {
	case OPT_CONFIG: options->config_path = optarg; return WEIR_EXIT_NOT_YET;
	case OPT_ONCE: options->once = true; return WEIR_EXIT_NOT_YET;
	case OPT_STATE: options->state_directory = optarg; return WEIR_EXIT_NOT_YET;
	case OPT_DECISIONS: options->decisions_path = optarg; return WEIR_EXIT_NOT_YET;
	case OPT_SHADOW: options->shadow_path = optarg; return WEIR_EXIT_NOT_YET;
	case OPT_JUDGED: options->judged_path = optarg; return WEIR_EXIT_NOT_YET;
	case OPT_DEAD_LETTER: options->dead_letters_path = optarg; return WEIR_EXIT_NOT_YET;
	case OPT_JSON: options->force_json = true; return WEIR_EXIT_NOT_YET;
	case OPT_QUIET: options->quiet = true; return WEIR_EXIT_NOT_YET;
	case OPT_MEMORY:
		if (!weir_parse_size(optarg, &given->memory_bytes) || given->memory_bytes < 1)
			return usage_error("--memory %s: a size like 512MiB or 2GiB was expected", optarg);
		return WEIR_EXIT_NOT_YET;
	case OPT_SUMMARY:
		if (strcmp(optarg, "json") != 0)
			return usage_error("--summary %s: only json is known", optarg);
		options->summary_json = true;
		return WEIR_EXIT_NOT_YET;
	case OPT_FORMAT:
		given->words.format = optarg;
		given->shorthand = true;
		return WEIR_EXIT_NOT_YET;
	case OPT_KEY:
		given->keys[given->words.key_count++] = optarg;
		given->shorthand = true;
		return WEIR_EXIT_NOT_YET;
	case OPT_LIMIT:
		given->limits[given->words.limit_count++] = optarg;
		given->shorthand = true;
		return WEIR_EXIT_NOT_YET;
	case 'h':
	case OPT_HELP: fputs(help, stdout); return WEIR_EXIT_DONE;
	default: return WEIR_EXIT_NOT_YET;
	}
}

/* An option that getopt_long does not take; `word` is where it stopped, `optopt` what it knows of it. */
static enum weir_exit refuse_option(int id, const char *word)
{
	const char *names[sizeof long_options / sizeof *long_options];
	char text[128], written[64];
	size_t count = 0;
	for (const struct option *option = long_options; option->name != NULL; option++) {
		names[count++] = option->name;
		if (option->val != optopt)
			continue;
		snprintf(text, sizeof text, "--%s", option->name);
		return usage_error(id == ':' ? "%s needs a value" : "%s takes no value", text);
	}
	names[count] = NULL;
	if (optopt != 0) {
		snprintf(text, sizeof text, "-%c", optopt);
		return usage_error("there is no option %s; options begin with two dashes", text);
	}
	snprintf(written, sizeof written, "%.*s", (int)strcspn(word + 2, "="), word + 2);
	const char *near = weir_nearest_name(written, names);
	if (near != NULL)
		snprintf(text, sizeof text, "--%s; --%s is meant?", written, near);
	else
		snprintf(text, sizeof text, "--%s", written);
	return usage_error("there is no option %s", text);
}

static enum weir_exit read_config(struct run_options *options, struct given *given, int log_count, char **logs)
{
	struct weir_error error;
	enum weir_status status;
	if (options->config_path != NULL) {
		if (given->shorthand || log_count > 0)
			return usage_error("--config says everything: %s cannot be given beside it",
			                   log_count > 0 ? "logs" : "--format, --key and --limit");
		status = weir_config_load(options->config_path, &options->config, &error);
	} else if (log_count == 0) {
		return usage_error("%s", "neither --config nor a log was given");
	} else if (given->words.limit_count == 0) {
		return usage_error("%s", "no --limit was given: try --limit 10/1m");
	} else {
		given->words.logs = (const char *const *)logs;
		given->words.log_count = (size_t)log_count;
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
	if (status == WEIR_OK && options->config->bus.type != WEIR_BUS_LOCAL) {
		struct weir_json root = weir_json_root(options->config->document);
		struct weir_json bus = weir_json_member(&root, "bus"), type = weir_json_member(&bus, "type");
		status = weir_json_fail(&type, &error,
		                        "weir run keeps its log on its own disk, \"local\"; weir-collector and "
		                        "weir-limiter are for Kafka");
	}
	if (status == WEIR_OK)
		return WEIR_EXIT_NOT_YET;
	fprintf(stderr, "weir: %s\n", error.text);
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
		fputs("weir run: --judged is for --once: nothing is written to it\n", stderr);
	if (options->once && config->archiver.enabled && options->state_directory == NULL)
		fputs("weir run: archiver.enabled needs --state DIR with --once: nothing is archived\n", stderr);
	if (options->once && config->decisions.rotate_bytes > 0)
		fputs("weir run: decisions.rotate_size is not for --once: the file is not rotated\n", stderr);
	if (options->memory_set && config->limiter.memory_bytes < MEMORY_SENSIBLE_BYTES)
		fputs("weir run: --memory below 16MiB is for tests: nearly every bucket is fetched from the store\n", stderr);
}

/* What the command line leaves open comes from the configuration, then from defaults. */
static enum weir_exit complete(struct run_options *options, const struct given *given)
{
	struct weir_config *config = options->config;
	struct weir_error error;
	if (options->decisions_path == NULL)
		options->decisions_path = config->decisions.path != NULL ? config->decisions.path : "-";
	if (options->shadow_path == NULL)
		options->shadow_path = config->decisions.shadow_path;
	if (options->dead_letters_path == NULL)
		options->dead_letters_path = config->deadletter.path;
	if (given->memory_bytes >= 0)
		config->limiter.memory_bytes = given->memory_bytes;
	if (config->limiter.memory_bytes < config->bus.partitions)
		config->limiter.memory_bytes = config->bus.partitions; /* 0 a partition would be no ceiling at all */
	options->memory_set = given->memory_bytes >= 0 || says(config, "limiter", "memory");
	/* --once reads in a thread of its own: a worker less leaves it a processor */
	if (options->once && config->limiter.threads > 1 && !says(config, "limiter", "threads"))
		config->limiter.threads--;
	if (options->state_directory == NULL && !options->once) {
		if (state_directory_default(options->state_path, &error) != WEIR_OK) {
			fprintf(stderr, "weir: %s\n", error.text);
			return WEIR_EXIT_USAGE;
		}
		options->state_directory = options->state_path;
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
	struct given given = {.memory_bytes = -1,
	                      .limits = weir_alloc((size_t)argc, sizeof(char *)),
	                      .keys = weir_alloc((size_t)argc, sizeof(char *))};
	enum weir_exit code = WEIR_EXIT_NOT_YET;
	int id;
	*options = (struct run_options){0};
	opterr = 0;
	while (code == WEIR_EXIT_NOT_YET && (id = getopt_long(argc, argv, ":h", long_options, NULL)) != -1)
		code = id == ':' || id == '?' ? refuse_option(id, argv[optind - 1]) : take_option(id, options, &given);
	if (code == WEIR_EXIT_NOT_YET)
		code = read_config(options, &given, argc - optind, argv + optind);
	if (code == WEIR_EXIT_NOT_YET)
		code = complete(options, &given);
	if (code == WEIR_EXIT_NOT_YET)
		warn(options);
	free(given.limits);
	free(given.keys);
	return code;
}

void run_options_deinit(struct run_options *options)
{
	weir_config_free(options->config);
	options->config = NULL;
}

bool run_options_words(const struct run_options *options)
{
	return strcmp(options->decisions_path, "-") == 0 && !options->force_json && isatty(STDOUT_FILENO);
}

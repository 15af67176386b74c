/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir backtest`: what each of some policies would have done with a log.
 *
 * All are judged at once, by `weir run --once` itself: their zones are those of one policy. Only what is looked at, and
 * what is said of it, are here.
 */
#include "collector/follow/inputs.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/stop.h"
#include "common/files/output_file.h"
#include "deploy/weir/backtest/decision_files.h"
#include "deploy/weir/backtest/log_judge.h"
#include "deploy/weir/backtest/report.h"
#include "deploy/weir/backtest/sources.h"
#include "deploy/weir/command.h"
#include "deploy/weir/run/once.h"
#include "deploy/weir/run/run_check.h"
#include "deploy/weir/run/summary.h"
#include "deploy/weir/run/unmatched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum option { CONFIG, STATE, TOPIC, FORMAT, SORT, MEMORY, JSON, CSV, HTML, DECISIONS, QUIET, OPTION_COUNT };

static const struct weir_argument_option options_table[] = {
	[CONFIG] = {.name = "config",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help =
                    "a policy to try: the zones of a configuration. Give one for each policy; the others are compared "
                    "with the first",
                .required = true,
                .repeatable = true},
	[STATE] = {.name = "state",
               .value = "DIR",
               .type = WEIR_ARGUMENT_TEXT,
               .help =
                   "judge the events in the log of a state directory, in place of lines; its weir run may be running"},
	[TOPIC] =
		{.name = "topic",
         .value = "FROM..TO",
         .type = WEIR_ARGUMENT_TEXT,
         .help =
             "judge the events of the cluster that the first configuration names. FROM and TO are offsets, times or "
             "nothing: .. is all. With --state, that part of its log, by offsets"},
	[FORMAT] = {.name = "format",
                .value = "NAME",
                .type = WEIR_ARGUMENT_TEXT,
                .help =
                    "of every LOG (default: that of the source in the first configuration that the log belongs to, or "
                    "combined where it has no sources)"},
	[SORT] = {.name = "sort",
              .type = WEIR_ARGUMENT_FLAG,
              .help =
                  "judge in the order of time, for logs that are not (takes 64 MiB, and disk in $TMPDIR or /var/tmp)"},
	[MEMORY] = {.name = "memory",
                .value = "SIZE",
                .type = WEIR_ARGUMENT_SIZE,
                .help =
                    "ceiling for the buckets of all policies together; the least used ones move to a temporary file. "
                    "What is known of keys may take as much again",
                .least = 1},
	[JSON] = {.name = "json",
              .value = "PATH",
              .type = WEIR_ARGUMENT_TEXT,
              .help = "all of it as one JSON object; - is standard output",
              .heading = "Output"},
	[CSV] = {.name = "csv",
             .value = "PATH",
             .type = WEIR_ARGUMENT_TEXT,
             .help = "what passed and what was blocked over time, as lines; - is standard output"},
	[HTML] = {.name = "html",
              .value = "PATH",
              .type = WEIR_ARGUMENT_TEXT,
              .help = "all of it as one page for a browser, with the chart of what got through; - is standard output"},
	[DECISIONS] =
		{.name = "decisions",
         .value = "DIR",
         .type = WEIR_ARGUMENT_TEXT,
         .help = "the decisions of each policy, in DIR/NAME.jsonl: the lines that weir run --once writes by that "
                 "policy alone to --decisions and, of zones in shadow mode, to --shadow; \"mode\" tells them apart"},
	[QUIET] = {.name = "quiet", .type = WEIR_ARGUMENT_FLAG, .help = "no progress, no tables"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"Policies",
     "A policy is called by its file's name, without \".json\"; where two files have the same, by their paths. Zones are "
     "compared that have the same name and the same key, or that are the only ones of their policies. Every zone is "
     "judged, in shadow mode too. Nothing is published."},
	{"Events of a log",
     "They have keys and zones, and not the fields of their lines. So a zone can be judged if the log's policy has one "
     "with the same key, match, exempt, sources and done; limits, block_for and mode may be others. All other zones "
     "need the raw logs, and are named. Operators' commands are not carried out."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "done"},
	{WEIR_EXIT_FAILED, "it failed, or a source could not be read (the others were read to their end)"},
	{WEIR_EXIT_USAGE, "the command line or a configuration is wrong"},
	{WEIR_EXIT_INTERRUPTED, "it was stopped by a signal, and has said what it had judged by then"},
	{WEIR_EXIT_DONE, NULL},
};

const struct weir_command_line backtest_line = {
	.name = "weir backtest",
	.summary = "try policies on a log: who would have been blocked",
	.usage = "weir backtest --config FILE [--config FILE...] [OPTION...] [LOG...]\n"
			 "weir backtest --config FILE [--config FILE...] --state DIR [OPTION...]\n"
			 "weir backtest --config FILE [--config FILE...] --topic FROM..TO\n"
			 "              [OPTION...]",
	.about =
		"Judges a log by one policy or by several at once, exactly as weir run --once does by each of them. It says who "
		"would have been blocked, what got through over time, and where the policies differ.",
	.operand = {.word = "LOG",
                .help = "a file, a glob in quotes, .gz, .zst, .bz2, .xz, or - for standard input; without "
                        "any, the sources of the configuration are read to their end"},
	.options = options_table,
	.sections = sections,
	.examples = "weir backtest --config weir.json --config strict.json access.log.1\n"
				"weir backtest --config weir.json --json report.json 'access.log*.gz'",
	.exits = exits,
};

typedef void report_form(struct weir_text *text, const struct report *report);

enum { FORM_COUNT = 3 };

static const struct {
	const char *option;
	report_form *form;
} forms[FORM_COUNT] = {{"--json", report_json}, {"--csv", report_csv}, {"--html", report_html}};

struct backtest {
	const char **configs, **logs; /* owned; of argv */
	uint32_t config_count, log_count;
	const char *format, *decisions_directory;
	const char *form_paths[FORM_COUNT]; /* NULL: not asked for */
	const char *state_path, *topic;
	int64_t memory_bytes; /* -1: not given */

	struct backtest_policies policies;
	struct run_options run;
	struct progress progress;
	struct weir_log log;
	struct figures_options figures_options;
	struct figures **figures; /* by partition */
	struct decision_files *decisions;
	struct written_files written;
	struct weir_output_file files[FORM_COUNT];
	struct report report;
	uint32_t partitions;
	bool ended; /* there is something to report */
};

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct backtest *backtest = context;
	switch (option) {
	case CONFIG: backtest->configs[backtest->config_count++] = value->text; break;
	case STATE: backtest->state_path = value->text; break;
	case TOPIC: backtest->topic = value->text; break;
	case FORMAT: backtest->format = value->text; break;
	case SORT: backtest->run.sort = true; break;
	case MEMORY: backtest->memory_bytes = (int64_t)value->number; break;
	case JSON:
	case CSV:
	case HTML: backtest->form_paths[option - JSON] = value->text; break;
	case DECISIONS: backtest->decisions_directory = value->text; break;
	case QUIET: backtest->run.quiet = true; break;
	default: backtest->logs[backtest->log_count++] = value->text; break;
	}
	return WEIR_EXIT_NOT_YET;
}

static int standard_outputs(const struct backtest *backtest)
{
	int count = 0;
	for (int i = 0; i < FORM_COUNT; i++)
		count += backtest->form_paths[i] != NULL && strcmp(backtest->form_paths[i], "-") == 0;
	return count;
}

/* ---- once_watch ---- */

static void judged(void *context, unsigned place, uint32_t worker, const struct lane *lane,
                   const struct lane_result *result)
{
	struct backtest *backtest = context;
	figures_add(backtest->figures[lane_partition(lane)], result);
	if (backtest->decisions != NULL)
		decision_files_add(backtest->decisions, place, worker, lane, result);
}

static enum weir_status written(void *context, unsigned place, struct weir_error *error)
{
	struct backtest *backtest = context;
	return backtest->decisions != NULL ? decision_files_write(backtest->decisions, place, error) : WEIR_OK;
}

static void ended(void *context, const struct summary *summary)
{
	struct backtest *backtest = context;
	backtest->report.counts = summary->counts;
	backtest->report.seconds = summary->seconds;
	backtest->report.finished = summary->finished;
	backtest->ended = true;
}

/* ---- before ---- */

static enum weir_exit refuse(const struct weir_error *error)
{
	fprintf(stderr, "weir backtest: %s\n", error->text);
	return weir_exit_of(error->status);
}

/* The run's configuration: that of the sources, with the zones of all. */
static enum weir_status make_config(struct backtest *backtest, struct weir_error *error)
{
	struct weir_policy *joined;
	struct weir_config *config;
	enum weir_status status =
		sources_config(&backtest->policies, backtest->logs, backtest->log_count, backtest->format, &config, error);
	if (status != WEIR_OK)
		return status;
	backtest->run.config = config;
	status = policies_join(&backtest->policies, &joined, error);
	if (status != WEIR_OK)
		return status;
	weir_policy_free(config->policy);
	config->policy = joined;
	run_options_set_limiter(&backtest->run, backtest->memory_bytes);
	backtest->log.level = (enum weir_log_level)config->log.level;
	backtest->log.json = config->log.json != 0;
	return WEIR_OK;
}

/* Each decisions file is begun under another name, which is written to as well. */
static enum weir_status list_decisions(struct backtest *backtest, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES], unfinished[WEIR_PATH_BYTES];
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; status == WEIR_OK && i < backtest->policies.count; i++) {
		status =
			decision_files_path(backtest->decisions_directory, backtest->policies.at[i].name, path, unfinished, error);
		if (status != WEIR_OK)
			break;
		written_files_add(&backtest->written, "--decisions", path);
		written_files_add(&backtest->written, "--decisions", unfinished);
	}
	return status;
}

/* Outputs that would replace each other, or a configuration, are refused before anything is opened. */
static enum weir_status check_written(struct backtest *backtest, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (int i = 0; i < FORM_COUNT; i++)
		written_files_add(&backtest->written, forms[i].option, backtest->form_paths[i]);
	if (backtest->decisions_directory != NULL)
		status = list_decisions(backtest, error);
	if (status == WEIR_OK)
		status = written_files_check(&backtest->written, error);
	for (uint32_t i = 0; status == WEIR_OK && i < backtest->config_count; i++)
		status = written_files_check_read(&backtest->written, backtest->configs[i], error);
	return status;
}

static enum weir_status check_policy(struct backtest *backtest, const struct backtest_policy *policy,
                                     struct weir_error *error)
{
	enum weir_status status =
		inputs_check_policy(backtest->run.config, policy->config->policy, backtest->run.lists, error);
	if (status == WEIR_OK && run_names_servers(policy->config->policy))
		status =
			weir_fail(error, WEIR_INVALID,
		              "an \"exempt\" names a list of another server, of which a backtest keeps no copy: save the list "
		              "to a file, and name that");
	if (status != WEIR_OK)
		weir_error_prefix(error, "%s", policy->path);
	return status;
}

static void tell_doubts(const struct backtest *backtest, const struct backtest_policy *policy)
{
	if (run_names_robots(policy->config->policy))
		weir_log(&backtest->log, WEIR_LOG_WARNING, "exempt",
		         "%s: a backtest asks no name server: no robot is exempt as verified", policy->path);
	unmatched_tell(backtest->run.config, policy->config->policy, backtest->run.lists, policy->path, &backtest->log);
}

static enum weir_status check_all(struct backtest *backtest, struct weir_error *error)
{
	const struct weir_config *config = backtest->run.config;
	enum weir_status status = WEIR_OK;
	/* each by itself first: what is wrong with a zone is said by the name that it has there */
	for (uint32_t i = 0; status == WEIR_OK && i < backtest->policies.count; i++)
		status = check_policy(backtest, &backtest->policies.at[i], error);
	if (status == WEIR_OK)
		status = run_check_outputs(&backtest->run, &backtest->written, error);
	return status == WEIR_OK ? inputs_check_policy(config, config->policy, backtest->run.lists, error) : status;
}

static void make_figures(struct backtest *backtest, uint32_t partitions, bool by_position, int64_t memory_bytes)
{
	backtest->partitions = partitions;
	backtest->figures_options = (struct figures_options){
		.zone_count = backtest->policies.zone_count,
		.pairs = backtest->policies.pairs,
		.pair_count = backtest->policies.pair_count,
		.by_position = by_position,
		.most_bytes = (size_t)(memory_bytes / partitions),
	};
	backtest->figures = weir_alloc(partitions, sizeof(struct figures *));
	for (uint32_t i = 0; i < partitions; i++)
		backtest->figures[i] = figures_new(&backtest->figures_options);
}

static enum weir_status open_decisions(struct backtest *backtest, struct weir_error *error)
{
	const struct weir_config *config = backtest->run.config;
	struct decision_files_options options = {
		.policies = &backtest->policies,
		.directory = backtest->decisions_directory,
		.log = &backtest->log,
		.progress = &backtest->progress,
		.partitions = (uint32_t)config->bus.partitions,
		.threads = (uint32_t)config->limiter.threads,
	};
	return backtest->decisions_directory != NULL ? decision_files_new(&options, &backtest->decisions, error) : WEIR_OK;
}

static enum weir_status open_reports(struct backtest *backtest, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (int i = 0; status == WEIR_OK && i < FORM_COUNT; i++)
		status = weir_output_file_open(&backtest->files[i], backtest->form_paths[i], 0640, error);
	return status;
}

/* ---- after ---- */

static enum weir_status write_report(struct backtest *backtest, struct weir_error *error)
{
	struct weir_output_file words = {.path = "-"};
	struct weir_text text = {0};
	enum weir_status status = WEIR_OK;
	if (backtest->decisions != NULL)
		status = decision_files_finish(backtest->decisions, error);
	for (int i = 0; status == WEIR_OK && i < FORM_COUNT; i++)
		if (backtest->files[i].path != NULL) {
			forms[i].form(&text, &backtest->report);
			status = weir_output_file_write(&backtest->files[i], &text, error);
		}
	if (status != WEIR_OK || backtest->run.quiet || standard_outputs(backtest) > 0)
		return status;
	report_words(&text, &backtest->report);
	return weir_output_file_write(&words, &text, error);
}

/* A table of zeros says nothing of a policy: why there is nothing in it. */
static void tell_nothing_judged(const struct backtest *backtest)
{
	const struct report *report = &backtest->report;
	const struct record_counts *counts = &report->counts;
	uint64_t requests = 0;
	for (uint32_t i = 0; i < backtest->policies.zone_count; i++) {
		const struct figures_zone *zone = figures_zone(report->figures, i);
		requests += zone->passed + zone->blocked;
	}
	if (requests > 0 || !report->finished)
		return;
	const char *why = report->from_log       ? "no event is of these zones in what was read of the log"
	                  : counts->lines == 0   ? "what was read has no lines"
	                  : counts->records == 0 ? "no line became a request: check --format; weir validate shows why"
	                                         : "no request is of these zones: check their match, key and exempt";
	fprintf(stderr, "weir backtest: nothing was judged: %s\n", why);
}

static enum weir_exit report_all(struct backtest *backtest)
{
	struct weir_error error;
	struct figures *sum = figures_new(&backtest->figures_options);
	for (uint32_t i = 0; i < backtest->partitions; i++)
		figures_sum(sum, backtest->figures[i]);
	backtest->report.policies = &backtest->policies;
	backtest->report.figures = sum;
	enum weir_status status = write_report(backtest, &error);
	if (status == WEIR_OK)
		tell_nothing_judged(backtest);
	figures_free(sum);
	return status == WEIR_OK ? WEIR_EXIT_NOT_YET : refuse(&error);
}

/* ---- all of it ---- */

static enum weir_exit judge(struct backtest *backtest)
{
	const struct once_watch watch = {.context = backtest, .judged = judged, .written = written, .ended = ended};
	struct weir_error error;
	backtest->run.watch = &watch;
	const struct weir_config *config = backtest->run.config;
	if (open_decisions(backtest, &error) != WEIR_OK || open_reports(backtest, &error) != WEIR_OK)
		return refuse(&error);
	make_figures(backtest, (uint32_t)config->bus.partitions, true, config->limiter.memory_bytes);
	for (uint32_t i = 0; i < backtest->policies.count; i++)
		tell_doubts(backtest, &backtest->policies.at[i]);
	weir_stop_install();
	enum weir_exit code = run_once(&backtest->run, &backtest->log, &backtest->progress);
	enum weir_exit told = backtest->ended ? report_all(backtest) : WEIR_EXIT_NOT_YET;
	return told == WEIR_EXIT_NOT_YET ? code : told;
}

/* What was judged of a log, as a run tells it of lines. */
static enum weir_exit end_log(struct backtest *backtest, const struct log_judged *judged)
{
	backtest->report.from_log = true;
	backtest->report.counts.records = judged->events;
	backtest->report.finished = judged->finished;
	enum weir_exit told = report_all(backtest);
	if (told != WEIR_EXIT_NOT_YET)
		return told;
	return !judged->finished ? WEIR_EXIT_INTERRUPTED : judged->damaged ? WEIR_EXIT_FAILED : WEIR_EXIT_DONE;
}

static enum weir_status judge_log(struct backtest *backtest, struct log_judge_options *options, enum weir_exit *code,
                                  struct weir_error *error)
{
	struct log_judge *judge = NULL;
	struct log_judged judged;
	int64_t started_ms = weir_monotonic_ms();
	enum weir_status status = log_judge_new(options, &judge, error);
	if (status == WEIR_OK)
		status = open_reports(backtest, error);
	if (status == WEIR_OK) {
		make_figures(backtest, log_judge_partitions(judge), false, options->memory_bytes);
		weir_stop_install();
		status = log_judge_run(judge, &judged, error);
		progress_clear(&backtest->progress);
	}
	log_judge_free(judge);
	backtest->report.seconds = (double)(weir_monotonic_ms() - started_ms) / 1000;
	if (status == WEIR_OK)
		*code = end_log(backtest, &judged);
	return status;
}

static enum weir_exit run_log(struct backtest *backtest)
{
	const struct once_watch watch = {.context = backtest, .judged = judged, .written = written};
	const struct weir_config *config = backtest->policies.at[0].config;
	struct weir_policy *joined = NULL;
	struct weir_error error;
	enum weir_exit code = WEIR_EXIT_FAILED;
	struct log_judge_options options = {
		.policies = &backtest->policies,
		.config_path = backtest->state_path == NULL ? backtest->configs[0] : NULL,
		.state_path = backtest->state_path,
		.memory_bytes = backtest->memory_bytes >= 0 ? backtest->memory_bytes : config->limiter.memory_bytes,
		.threads = (uint32_t)config->limiter.threads,
		.watch = &watch,
		.log = &backtest->log,
		.progress = &backtest->progress,
	};
	const char *wrong = backtest->topic != NULL ? log_range_read(backtest->topic, weir_wall_ms(), options.range) : NULL;
	if (wrong != NULL)
		return weir_arguments_refuse(&backtest_line, "--topic %s is no stretch: %s", backtest->topic, wrong);
	if (backtest->state_path == NULL && config->bus.type != WEIR_BUS_KAFKA)
		return weir_arguments_refuse(
			&backtest_line, "--topic reads the cluster of the first configuration, and %s has none: give --state DIR",
			backtest->configs[0]);
	enum weir_status status = policies_join(&backtest->policies, &joined, &error);
	options.joined = joined;
	if (status == WEIR_OK)
		status = judge_log(backtest, &options, &code, &error);
	weir_policy_free(joined);
	return status == WEIR_OK ? code : refuse(&error);
}

static enum weir_exit check_together(const struct backtest *backtest)
{
	bool log = backtest->state_path != NULL || backtest->topic != NULL;
	if (standard_outputs(backtest) > 1)
		return weir_arguments_refuse(&backtest_line, "only one of --json, --csv and --html can go to standard output");
	if (log && (backtest->log_count > 0 || backtest->format != NULL || backtest->run.sort))
		return weir_arguments_refuse(&backtest_line,
		                             "logs, --format and --sort cannot be combined with --state or --topic");
	if (log && backtest->decisions_directory != NULL)
		return weir_arguments_refuse(&backtest_line,
		                             "--decisions cannot be combined with --state or --topic: events of "
		                             "several partitions have no order");
	return WEIR_EXIT_NOT_YET;
}

static enum weir_exit run(struct backtest *backtest)
{
	struct weir_error error;
	enum weir_exit code = check_together(backtest);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	progress_init(&backtest->progress, backtest->run.quiet);
	backtest->log =
		(struct weir_log){.fd = STDERR_FILENO, .level = WEIR_LOG_INFO, .unfinished = &backtest->progress.drawn};
	backtest->run.lists = weir_exempt_lists_new(NULL, &backtest->log);
	code = policies_load(&backtest->policies, backtest->configs, backtest->config_count, backtest->run.lists);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (check_written(backtest, &error) != WEIR_OK)
		return refuse(&error);
	if (backtest->state_path != NULL || backtest->topic != NULL)
		return run_log(backtest);
	if (make_config(backtest, &error) != WEIR_OK || check_all(backtest, &error) != WEIR_OK)
		return refuse(&error);
	return judge(backtest);
}

static void deinit(struct backtest *backtest)
{
	for (uint32_t i = 0; i < backtest->partitions; i++)
		figures_free(backtest->figures[i]);
	free(backtest->figures);
	decision_files_free(backtest->decisions);
	for (int i = 0; i < FORM_COUNT; i++)
		weir_output_file_close(&backtest->files[i]);
	written_files_deinit(&backtest->written);
	run_options_deinit(&backtest->run);
	policies_deinit(&backtest->policies);
	free(backtest->configs);
	free(backtest->logs);
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct backtest backtest = {.memory_bytes = -1,
	                            .configs = weir_alloc((size_t)argc, sizeof(char *)),
	                            .logs = weir_alloc((size_t)argc, sizeof(char *)),
	                            .run = {.once = true}};
	enum weir_exit code = weir_arguments_read(&backtest_line, argc, argv, take_option, &backtest);
	if (code == WEIR_EXIT_NOT_YET)
		code = run(&backtest);
	deinit(&backtest);
	return code;
}

const struct command command_backtest = {&backtest_line, command_main};

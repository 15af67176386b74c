/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir suggest`: the smallest limits that would have blocked at most a share of the keys of a log.
 *
 * The logs are read twice, by `weir run --once` itself. The first reading gives the peak of each key (peaks.h), from which
 * the limits follow (limits.h). The second one judges by them, and says what they would have done (trial.h).
 */
#include "collector/follow/inputs.h"
#include "common/base/alloc.h"
#include "common/base/stop.h"
#include "common/files/output_file.h"
#include "common/json/units.h"
#include "deploy/weir/command.h"
#include "deploy/weir/run/once.h"
#include "deploy/weir/run/once_watch.h"
#include "deploy/weir/run/run_check.h"
#include "deploy/weir/run/summary.h"
#include "deploy/weir/run/unmatched.h"
#include "deploy/weir/suggest/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum option {
	KEY,
	WINDOW,
	ALGORITHM,
	BLOCKED_KEYS,
	SPARE,
	STATE,
	CONFIG,
	ZONE,
	FORMAT,
	SORT,
	MEMORY,
	JSON,
	OUTPUT,
	QUIET,
	OPTION_COUNT
};

enum { SHARE_DIGITS = 9 };
#define SHARE_ONE UINT64_C(1000000000)

/* Those of which one reading tells for every rate at once whom it blocks. */
static const char *const algorithms[] = {"sliding_window", "fixed_window", NULL};

static const struct weir_argument_option options_table[] = {
	[KEY] = {.name = "key",
             .value = "FIELD[,FIELD...]",
             .type = WEIR_ARGUMENT_TEXT,
             .help = "what is counted by, such as ip (default: the key of the zone of --zone in --config)"},
	[WINDOW] = {.name = "window",
                .value = "TIME[,TIME...]",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "a limit is looked for in each of these windows, such as 1m,1h,1d (default: 1m)",
                .expected = "up to 8 different times from 1ms to 366d with commas between them, such as 1m,1h,1d"},
	[ALGORITHM] = {.name = "algorithm",
                   .value = "NAME",
                   .type = WEIR_ARGUMENT_CHOICE,
                   .help = "sliding_window (default) or fixed_window: what the limits are",
                   .choices = algorithms},
	[BLOCKED_KEYS] = {.name = "blocked-keys",
                      .value = "SHARE",
                      .type = WEIR_ARGUMENT_TEXT,
                      .help = "the share of all keys that may be blocked, by any of the limits (default: 0.1%)",
                      .expected = "a share from 0 to 1, such as 0.001 or 0.1%, with at most nine decimal places"},
	[SPARE] = {.name = "spare",
               .value = "FILE",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "keys that must never be blocked, one on each line; or networks, if the key is an address"},
	[STATE] =
		{.name = "state",
         .value = "DIR",
         .type = WEIR_ARGUMENT_TEXT,
         .help = "whom operators lifted or allowed is spared, too: by the log of a state directory, whose weir run may "
                 "be running. With --zone those of that zone"},
	[CONFIG] = {.name = "config",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "a configuration: its sources, formats and exempt, and the zone of --zone"},
	[ZONE] = {.name = "zone",
              .value = "NAME",
              .type = WEIR_ARGUMENT_TEXT,
              .help =
                  "the zone's name (default: suggested). Of a zone in --config, key, match, exempt and all else stay; "
                  "only limits and mode are others"},
	[FORMAT] = {.name = "format",
                .value = "NAME",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "of every LOG (default: that of the source in the configuration that the log belongs to, or "
                        "combined where it has no sources)"},
	[SORT] = {.name = "sort",
              .type = WEIR_ARGUMENT_FLAG,
              .help =
                  "judge in the order of time, for logs that are not (takes 64 MiB, and disk in $TMPDIR or /var/tmp)"},
	[MEMORY] = {.name = "memory",
                .value = "SIZE",
                .type = WEIR_ARGUMENT_SIZE,
                .help =
                    "ceiling for the keys and their times. A log that needs more is refused (default: limiter.memory)",
                .least = 1},
	[JSON] = {.name = "json",
              .value = "PATH",
              .type = WEIR_ARGUMENT_TEXT,
              .help = "all of it as one JSON object, with every step of the curves; - is standard output",
              .heading = "Output"},
	[OUTPUT] = {.name = "output",
                .value = "PATH",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "the zone alone, ready to paste into \"zones\"; - is standard output"},
	[QUIET] = {.name = "quiet", .type = WEIR_ARGUMENT_FLAG, .help = "no progress, no tables"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"Limits",
     "They are those of sliding_window, or with --algorithm of fixed_window. What a bucket, gcra, uniform or a queue lets "
     "pass goes by more than a rate in a window: try them with weir backtest. A limit is the smallest if one less would block more keys than may be, or a "
     "spared one. With several windows that holds for each of them while the others stay. The zone has \"mode\": "
     "\"shadow\". Nothing is published."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "done"},
	{WEIR_EXIT_FAILED, "it failed, or a source could not be read; nothing is suggested then"},
	{WEIR_EXIT_USAGE, "the command line, a file or the logs cannot give a limit"},
	{WEIR_EXIT_INTERRUPTED, "it was stopped by a signal, and suggests nothing"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line suggest_line = {
	.name = "weir suggest",
	.summary = "the smallest limits that block few keys of a log",
	.usage = "weir suggest --key FIELD[,FIELD...] [--window TIME[,TIME...]]\n"
			 "             [--blocked-keys SHARE] [OPTION...] LOG...\n"
			 "weir suggest --config FILE [--zone NAME] [OPTION...] [LOG...]",
	.about =
		"Looks for the smallest limits that would have blocked at most a share of the keys of a log. They come from "
		"judging every request, and are judged once more before they are told. It shows which limit would have "
		"blocked how many, and writes a zone ready to paste.",
	.operand = {.word = "LOG",
                .help =
                    "a file, a glob in quotes, .gz, .zst, .bz2 or .xz; it is read twice. Without any, the sources of "
                    "the configuration are read to their end"},
	.options = options_table,
	.sections = sections,
	.examples = "weir suggest --key ip --window 1m,1h access.log.1\n"
				"weir suggest --key ip --blocked-keys 0.05% --spare offices.txt access.log.1\n"
				"weir suggest --config weir.json --zone login --output zone.json",
	.exits = exits,
};

struct suggest {
	const char **logs; /* owned; of argv */
	const char *windows, *spare_path, *state_path, *json_path, *output_path;
	struct weir_output_file json_file, output_file;
	uint64_t share;       /* of SHARE_ONE */
	int64_t memory_bytes; /* -1: not given */
	struct setting setting;
	struct peaks_options peaks_options;
	struct spared spared;

	struct run_options run;
	struct progress progress;
	struct weir_log log;
	struct peaks **peaks;     /* by partition */
	struct figures **figures; /* likewise, of the second reading */
	uint32_t partitions;
	struct record_counts counts; /* of the newest reading */
	bool finished;
	struct peak_table table;
	struct trial trial;
	struct peaks_seen seen;
	struct suggest_report report;
};

static bool read_share(const char *text, uint64_t *share)
{
	size_t length = strlen(text);
	bool percent = length > 0 && text[length - 1] == '%';
	char *number = weir_copy(text, percent ? length - 1 : length);
	bool is_share =
		weir_arguments_decimal(number, percent ? SHARE_DIGITS - 2 : SHARE_DIGITS, share) && *share <= SHARE_ONE;
	free(number);
	return is_share;
}

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct suggest *suggest = context;
	switch (option) {
	case KEY: suggest->setting.key = value->text; break;
	case WINDOW: suggest->windows = value->text; break;
	case ALGORITHM: suggest->peaks_options.algorithm = algorithms[value->number]; break;
	case BLOCKED_KEYS: suggest->report.share = value->text; break;
	case SPARE: suggest->spare_path = value->text; break;
	case STATE: suggest->state_path = value->text; break;
	case CONFIG: suggest->setting.config_path = value->text; break;
	case ZONE: suggest->setting.zone_name = value->text; break;
	case FORMAT: suggest->setting.format = value->text; break;
	case SORT: suggest->run.sort = true; break;
	case MEMORY: suggest->memory_bytes = (int64_t)value->number; break;
	case JSON: suggest->json_path = value->text; break;
	case OUTPUT: suggest->output_path = value->text; break;
	case QUIET: suggest->run.quiet = true; break;
	default: suggest->logs[suggest->setting.log_count++] = value->text; break;
	}
	return WEIR_EXIT_NOT_YET;
}

static int ascending(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
	return (a > b) - (a < b);
}

static bool read_windows(const char *text, struct peaks_options *options)
{
	char *copy = weir_copy(text, strlen(text)), *rest = copy, *word;
	bool good = true;
	while (good && (word = strsep(&rest, ",")) != NULL) {
		int64_t *window =
			&options->windows_ms[options->window_count < WEIR_ZONE_LIMITS_MAX ? options->window_count : 0];
		good = options->window_count < WEIR_ZONE_LIMITS_MAX && weir_parse_duration(word, window) && *window >= 1 &&
		       *window <= WEIR_WINDOW_MAX_MS;
		options->window_count += good;
	}
	free(copy);
	qsort(options->windows_ms, options->window_count, sizeof *options->windows_ms, ascending);
	for (uint32_t i = 1; i < options->window_count; i++)
		good = good && options->windows_ms[i] != options->windows_ms[i - 1];
	return good;
}

static bool is_standard(const char *path)
{
	return path != NULL && strcmp(path, "-") == 0;
}

static enum weir_exit check_options(struct suggest *suggest)
{
	if (!read_windows(suggest->windows, &suggest->peaks_options))
		return weir_arguments_refuse_value(&suggest_line, WINDOW, suggest->windows);
	if (!read_share(suggest->report.share, &suggest->share))
		return weir_arguments_refuse_value(&suggest_line, BLOCKED_KEYS, suggest->report.share);
	if (is_standard(suggest->json_path) && is_standard(suggest->output_path))
		return weir_arguments_refuse(&suggest_line, "only one of --json and --output can go to standard output");
	return WEIR_EXIT_NOT_YET;
}

static enum weir_exit refuse(const struct weir_error *error)
{
	fprintf(stderr, "weir suggest: %s\n", error->text);
	return weir_exit_of(error->status);
}

/* ---- a reading ---- */

/* Makes the configuration of one. @param zones  taken */
static enum weir_status prepare(struct suggest *suggest, json_t *zones, struct weir_error *error)
{
	weir_config_free(suggest->run.config);
	suggest->run.config = NULL;
	enum weir_status status = setting_config(&suggest->setting, zones, &suggest->run.config, error);
	if (status != WEIR_OK)
		return status;
	run_options_set_limiter(&suggest->run, suggest->memory_bytes);
	suggest->partitions = (uint32_t)suggest->run.config->bus.partitions;
	suggest->log.level = (enum weir_log_level)suggest->run.config->log.level;
	suggest->log.json = suggest->run.config->log.json != 0;
	if (run_names_servers(suggest->run.config->policy))
		return weir_fail(
			error, WEIR_INVALID,
			"an \"exempt\" names a list of another server, of which no copy is kept here: save the list to "
			"a file, and name that");
	return inputs_check_policy(suggest->run.config, suggest->run.config->policy, suggest->run.lists, error);
}

/* A once_watch's. */
static void ended(void *context, const struct summary *summary)
{
	struct suggest *suggest = context;
	suggest->counts = summary->counts;
	suggest->finished = summary->finished;
}

static enum weir_exit read_all(struct suggest *suggest, const struct once_watch *watch)
{
	suggest->run.watch = watch;
	suggest->finished = false;
	enum weir_exit code = run_once(&suggest->run, &suggest->log, &suggest->progress);
	if (code == WEIR_EXIT_DONE)
		return suggest->finished ? WEIR_EXIT_NOT_YET : WEIR_EXIT_INTERRUPTED;
	if (code == WEIR_EXIT_INTERRUPTED)
		fputs("weir suggest: stopped by a signal: nothing is suggested\n", stderr);
	return code;
}

/* ---- the first one ---- */

/* A once_watch's. */
static void judged_first(void *context, unsigned place, uint32_t worker, const struct lane *lane,
                         const struct lane_result *result)
{
	struct suggest *suggest = context;
	(void)place;
	(void)worker;
	peaks_add(suggest->peaks[lane_partition(lane)], result);
}

/* A once_watch's. */
static enum weir_status written_first(void *context, unsigned place, struct weir_error *error)
{
	const struct suggest *suggest = context;
	(void)place;
	for (uint32_t i = 0; i < suggest->partitions; i++)
		if (peaks_full(suggest->peaks[i]))
			return weir_fail(error, WEIR_FULL,
			                 "the keys of the log and their times in the windows need more than %" PRId64
			                 " MiB: give --memory more, or shorter windows",
			                 suggest->run.config->limiter.memory_bytes >> 20);
	return WEIR_OK;
}

/* A zone whose limit keeps as little of a key as can be: only its frames are looked at. */
static json_t *first_zones(const struct suggest *suggest)
{
	json_t *limit = json_object(), *limits = json_array(), *zones = json_array();
	json_object_set_new(limit, "algorithm", json_string("fixed_window"));
	json_object_set_new(limit, "rate", json_integer(WEIR_RATE_MAX));
	json_object_set_new(limit, "window", json_string("1ms"));
	json_array_append_new(limits, limit);
	json_array_append_new(zones, setting_zone(&suggest->setting, setting_name(&suggest->setting), limits));
	return zones;
}

static enum weir_status read_spared(struct suggest *suggest, struct weir_error *error)
{
	const struct weir_policy *policy = suggest->run.config->policy;
	enum weir_status status = WEIR_OK;
	uint64_t unknown = 0;
	suggest->report.spares = suggest->spare_path != NULL || suggest->state_path != NULL;
	if (suggest->spare_path != NULL)
		status = spared_read(suggest->spare_path, policy, &suggest->spared, error);
	if (status == WEIR_OK && suggest->state_path != NULL)
		status = spared_read_state(suggest->state_path, &policy->zones[0], suggest->setting.zone_name, &suggest->spared,
		                           &unknown, error);
	if (status == WEIR_OK && unknown > 0)
		weir_log(&suggest->log, WEIR_LOG_WARNING, "suggest",
		         "%" PRIu64
		         " messages of the log of %s cannot be read: if they are lifts or allows, their keys are not "
		         "spared",
		         unknown, suggest->state_path);
	return status;
}

/* What cannot be written, or must not be, is said before anything is read. */
static enum weir_status open_outputs(struct suggest *suggest, struct weir_error *error)
{
	struct written_files written = {0};
	const char *const read[] = {suggest->setting.config_path, suggest->spare_path};
	written_files_add(&written, "--json", suggest->json_path);
	written_files_add(&written, "--output", suggest->output_path);
	enum weir_status status = run_check_outputs(&suggest->run, &written, error);
	for (size_t i = 0; status == WEIR_OK && i < sizeof read / sizeof *read; i++)
		status = written_files_check_read(&written, read[i], error);
	if (status == WEIR_OK)
		status = weir_output_file_open(&suggest->json_file, suggest->json_path, 0640, error);
	if (status == WEIR_OK)
		status = weir_output_file_open(&suggest->output_file, suggest->output_path, 0640, error);
	written_files_deinit(&written);
	return status;
}

static enum weir_status open_first(struct suggest *suggest, struct weir_error *error)
{
	enum weir_status status = prepare(suggest, first_zones(suggest), error);
	if (status == WEIR_OK)
		status = open_outputs(suggest, error);
	if (status == WEIR_OK)
		status = read_spared(suggest, error);
	if (status != WEIR_OK)
		return status;
	suggest->peaks_options.spared = &suggest->spared;
	suggest->peaks_options.most_bytes = (size_t)suggest->run.config->limiter.memory_bytes / (size_t)suggest->partitions;
	suggest->peaks = weir_alloc(suggest->partitions, sizeof(struct peaks *));
	for (uint32_t i = 0; i < suggest->partitions; i++)
		suggest->peaks[i] = peaks_new(&suggest->peaks_options);
	return WEIR_OK;
}

static void add_seen(struct peaks_seen *sum, const struct peaks_seen *of, uint32_t window_count)
{
	sum->requests += of->requests;
	sum->spared_keys += of->spared_keys;
	sum->first_ms = of->first_ms < sum->first_ms ? of->first_ms : sum->first_ms;
	sum->last_ms = of->last_ms > sum->last_ms ? of->last_ms : sum->last_ms;
	for (uint32_t i = 0; i < window_count; i++) {
		sum->late[i] += of->late[i];
		if (of->spared[i].peak > sum->spared[i].peak)
			sum->spared[i] = of->spared[i]; /* the text stays the partition's */
	}
}

static enum weir_exit read_first(struct suggest *suggest)
{
	const struct once_watch watch = {
		.context = suggest, .judged = judged_first, .written = written_first, .ended = ended};
	struct weir_error error;
	if (open_first(suggest, &error) != WEIR_OK)
		return refuse(&error);
	if (run_names_robots(suggest->run.config->policy))
		weir_log(&suggest->log, WEIR_LOG_WARNING, "exempt", "no name server is asked: no robot is exempt as verified");
	unmatched_tell(suggest->run.config, suggest->run.config->policy, suggest->run.lists, NULL, &suggest->log);
	weir_stop_install();
	enum weir_exit code = read_all(suggest, &watch);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	suggest->seen = (struct peaks_seen){.first_ms = INT64_MAX, .last_ms = INT64_MIN};
	for (uint32_t i = 0; i < suggest->partitions; i++) {
		peaks_end(suggest->peaks[i]);
		add_seen(&suggest->seen, peaks_seen(suggest->peaks[i]), suggest->peaks_options.window_count);
	}
	return WEIR_EXIT_NOT_YET;
}

/* ---- the limits ---- */

/* "12 of 12 lines are malformed (bad JSON 10, no time 2)" and what helps, if that is known. */
static void put_malformed(struct weir_text *text, const struct record_counts *counts)
{
	const char *before = " (";
	weir_text_printf(text, "%" PRIu64 " of %" PRIu64 " lines are malformed", record_counts_malformed(counts),
	                 counts->lines);
	for (int i = 0; i < FORMAT_REASON_COUNT; i++)
		if (counts->malformed[i] > 0) {
			weir_text_printf(text, "%s%s %" PRIu64, before, format_reason_text((enum format_reason)i),
			                 counts->malformed[i]);
			before = ", ";
		}
	weir_text_puts(text, ")");
	if (counts->unread.help[0] != '\0')
		weir_text_printf(text, ": %s; the first such line is: %s", counts->unread.help, counts->unread.line);
}

/* Why there is nothing to find a limit for. */
static enum weir_status fail_empty(const struct record_counts *counts, struct weir_error *error)
{
	struct weir_text text = {0};
	uint64_t malformed = record_counts_malformed(counts);
	if (malformed == 0 || counts->records > 0)
		weir_text_printf(&text,
		                 "no request has a key, of %" PRIu64 " lines: check --key, --format, and the zone's match and "
		                 "exempt; weir validate shows the fields of a line",
		                 counts->lines);
	if (malformed > 0) {
		weir_text_puts(&text, text.length > 0 ? ". " : "no line became a request: ");
		put_malformed(&text, counts);
	}
	if (malformed > 0 && counts->records == 0)
		weir_text_puts(&text, ". Check --format; weir validate shows more of them");
	enum weir_status status = weir_fail(error, WEIR_INVALID, "%.*s", (int)text.length, text.at);
	weir_text_deinit(&text);
	return status;
}

static enum weir_status find_limits(struct suggest *suggest, struct weir_error *error)
{
	static const int64_t any[WEIR_ZONE_LIMITS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
	struct trial *trial = &suggest->trial;
	struct peak_table *table = &suggest->table;
	char duration[32];
	trial->algorithm = suggest->peaks_options.algorithm;
	trial->window_count = suggest->peaks_options.window_count;
	memcpy(trial->windows_ms, suggest->peaks_options.windows_ms, sizeof trial->windows_ms);
	peak_table_make(table, suggest->peaks, suggest->partitions, trial->window_count);
	if (table->keys == 0)
		return fail_empty(&suggest->counts, error);
	suggest->report.allowed = (uint64_t)((unsigned __int128)suggest->share * table->keys / SHARE_ONE);
	limits_together(table, suggest->report.allowed, table->spared, trial->limits);
	limits_together(table, suggest->report.allowed, any, suggest->report.unspared);
	for (uint32_t i = 0; i < trial->window_count; i++) {
		suggest->report.alone[i] = limit_alone(table, i, suggest->report.allowed, table->spared[i]);
		if (trial->limits[i] > WEIR_RATE_MAX)
			return weir_fail(error, WEIR_INVALID,
			                 "no limit in %s would do: keys that must pass had more than %" PRId64
			                 " in it, which is the most that a limit can be",
			                 weir_format_duration(trial->windows_ms[i], duration, sizeof duration), WEIR_RATE_MAX);
	}
	trial_make(trial, table, suggest->report.alone);
	return WEIR_OK;
}

/* ---- the second reading ---- */

/* Counts the requests that the first zone blocks, by key. */
static void note_blocked(struct peaks *peaks, const struct lane_result *result)
{
	const struct weir_frame *frame = result->frame;
	uint32_t pair = 0;
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
		for (uint32_t j = 0; j < set->count; j++, pair++) {
			unsigned bits = weir_verdict_of(result->judged.verdicts, pair);
			if (set->zones[j].id == 1 && (bits & WEIR_VERDICT_BLOCK) && !(bits & WEIR_VERDICT_NONE))
				(void)peaks_block(peaks, frame->keys[event->key]);
		}
	}
}

/* A once_watch's. */
static void judged_second(void *context, unsigned place, uint32_t worker, const struct lane *lane,
                          const struct lane_result *result)
{
	struct suggest *suggest = context;
	uint32_t partition = lane_partition(lane);
	(void)place;
	(void)worker;
	figures_add(suggest->figures[partition], result);
	note_blocked(suggest->peaks[partition], result);
}

/* A once_watch's. */
static enum weir_status written_second(void *context, unsigned place, struct weir_error *error)
{
	(void)context;
	(void)place;
	(void)error;
	return WEIR_OK;
}

/* The most blocked first; of the same number in the order of their bytes. */
static bool is_before(const struct blocked_key *a, const struct blocked_key *b)
{
	if (a->requests != b->requests)
		return a->requests > b->requests;
	uint32_t shorter = a->key.length < b->key.length ? a->key.length : b->key.length;
	int order = shorter > 0 ? memcmp(a->key.at, b->key.at, shorter) : 0;
	return order != 0 ? order < 0 : a->key.length < b->key.length;
}

static void find_top(struct suggest *suggest)
{
	struct suggest_report *report = &suggest->report;
	for (uint32_t i = 0; i < suggest->partitions; i++)
		for (uint32_t key = 0; key < peaks_keys(suggest->peaks[i]); key++) {
			struct blocked_key blocked = peaks_blocked(suggest->peaks[i], key);
			uint32_t at = report->top_count;
			if (blocked.requests == 0)
				continue;
			while (at > 0 && is_before(&blocked, &report->top[at - 1]))
				at--;
			if (at == REPORT_TOP)
				continue;
			if (report->top_count < REPORT_TOP)
				report->top_count++;
			memmove(&report->top[at + 1], &report->top[at], (report->top_count - 1 - at) * sizeof *report->top);
			report->top[at] = blocked;
		}
}

static enum weir_exit read_second(struct suggest *suggest)
{
	const struct once_watch watch = {
		.context = suggest, .judged = judged_second, .written = written_second, .ended = ended};
	const struct figures_options options = {.zone_count = suggest->trial.count, .by_position = true};
	struct weir_error error;
	uint32_t partitions = suggest->partitions;
	if (prepare(suggest, trial_zones(&suggest->trial, &suggest->setting), &error) != WEIR_OK)
		return refuse(&error);
	suggest->figures = weir_alloc(partitions, sizeof(struct figures *));
	for (uint32_t i = 0; i < partitions; i++)
		suggest->figures[i] = figures_new(&options);
	enum weir_exit code = read_all(suggest, &watch);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	struct figures *sum = figures_new(&options);
	for (uint32_t i = 0; i < partitions; i++)
		figures_sum(sum, suggest->figures[i]);
	enum weir_status status = trial_end(&suggest->trial, sum, suggest->seen.requests, &error);
	figures_free(sum);
	find_top(suggest);
	return status == WEIR_OK ? WEIR_EXIT_NOT_YET : refuse(&error);
}

/* ---- what is said ---- */

static enum weir_status write_report(struct suggest *suggest, struct weir_error *error)
{
	struct weir_output_file words = {.path = "-"};
	struct weir_text text = {0};
	enum weir_status status = WEIR_OK;
	if (suggest->json_path != NULL) {
		suggest_json(&text, &suggest->report);
		status = weir_output_file_write(&suggest->json_file, &text, error);
	}
	if (status == WEIR_OK && suggest->output_path != NULL) {
		suggest_zone(&text, &suggest->report);
		status = weir_output_file_write(&suggest->output_file, &text, error);
	}
	if (status != WEIR_OK || suggest->run.quiet || is_standard(suggest->json_path) || is_standard(suggest->output_path))
		return status;
	suggest_words(&text, &suggest->report);
	return weir_output_file_write(&words, &text, error);
}

static enum weir_exit tell(struct suggest *suggest)
{
	struct suggest_report *report = &suggest->report;
	struct weir_error error;
	report->setting = &suggest->setting;
	report->trial = &suggest->trial;
	report->table = &suggest->table;
	report->seen = &suggest->seen;
	report->counts = suggest->counts;
	return write_report(suggest, &error) == WEIR_OK ? WEIR_EXIT_DONE : refuse(&error);
}

/* ---- all of it ---- */

static enum weir_exit run(struct suggest *suggest)
{
	struct weir_error error;
	enum weir_exit code = check_options(suggest);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	progress_init(&suggest->progress, suggest->run.quiet);
	suggest->log =
		(struct weir_log){.fd = STDERR_FILENO, .level = WEIR_LOG_INFO, .unfinished = &suggest->progress.drawn};
	suggest->run.lists = weir_exempt_lists_new(NULL, &suggest->log);
	code = setting_load(&suggest->setting);
	if (code == WEIR_EXIT_NOT_YET)
		code = read_first(suggest);
	if (code == WEIR_EXIT_NOT_YET && find_limits(suggest, &error) != WEIR_OK)
		code = refuse(&error);
	if (code == WEIR_EXIT_NOT_YET)
		code = read_second(suggest);
	return code == WEIR_EXIT_NOT_YET ? tell(suggest) : code;
}

static void deinit(struct suggest *suggest)
{
	for (uint32_t i = 0; i < suggest->partitions; i++) {
		if (suggest->peaks != NULL)
			peaks_free(suggest->peaks[i]);
		if (suggest->figures != NULL)
			figures_free(suggest->figures[i]);
	}
	free(suggest->peaks);
	free(suggest->figures);
	weir_output_file_close(&suggest->json_file);
	weir_output_file_close(&suggest->output_file);
	peak_table_deinit(&suggest->table);
	trial_deinit(&suggest->trial);
	spared_deinit(&suggest->spared);
	run_options_deinit(&suggest->run);
	setting_deinit(&suggest->setting);
	free(suggest->logs);
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct suggest suggest = {.memory_bytes = -1,
	                          .windows = "1m",
	                          .peaks_options = {.algorithm = algorithms[0]},
	                          .report = {.share = "0.1%"},
	                          .logs = weir_alloc((size_t)argc, sizeof(char *)),
	                          .run = {.once = true}};
	suggest.setting.logs = suggest.logs;
	enum weir_exit code = weir_arguments_read(&suggest_line, argc, argv, take_option, &suggest);
	if (code == WEIR_EXIT_NOT_YET)
		code = run(&suggest);
	deinit(&suggest);
	return code;
}

const struct command command_suggest = {&suggest_line, command_main};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main job: records in merged order, matched, framed, judged by rounds; a
 * cut now and then; a summary at the end. With --sort all are read and matched
 * first, and judged in the order of their times.
 *
 * Where zones count decisions, what a record decides comes directly behind it.
 * So each record is judged before the next one is looked at, on this thread.
 */
#include "deploy/weir/run/once.h"

#include "common/base/clock.h"
#include "common/base/stop.h"
#include "deploy/weir/command.h"
#include "deploy/weir/run/once_run.h"
#include "deploy/weir/run/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUND_RECORDS = 4096 };

/* A stream that cannot be read is said and left out; the others are finished. */
static void report_source(struct once *once, const struct weir_error *error)
{
	once->source_failed = true;
	weir_log(once->log, WEIR_LOG_ERROR, "collector", "%s", error->text);
}

/* What the readers of a source have counted. @return the first line that none of them could read, or "" */
static const char *source_counts(struct source_stream **streams, size_t count, struct record_counts *sum)
{
	const char *refused = "";
	for (size_t i = 0; i < count; i++) {
		const struct record_reader *reader = streams[i]->context;
		if (reader == NULL)
			continue;
		record_counts_add(sum, &reader->counts);
		if (refused[0] == '\0')
			refused = reader->refused;
	}
	return refused;
}

/* A source of which no line could be read has failed like one that is not there: nobody is blocked by it. */
static void report_unread(struct once *once)
{
	for (size_t i = 0; i < once->inputs->source_count; i++) {
		struct source_stream **streams;
		size_t count = inputs_streams(once->inputs, i, &streams);
		struct record_counts counts = {0};
		const char *refused = source_counts(streams, count, &counts);
		uint64_t malformed = record_counts_malformed(&counts);
		if (counts.records > 0 || malformed == 0)
			continue;
		once->source_failed = true;
		weir_log(once->log, WEIR_LOG_ERROR, "collector",
		         "%s%s: none of %llu lines became an event, as %llu do not fit the source's format. `weir validate` "
		         "shows why%s%s",
		         streams[0]->name, count > 1 ? " and the source's other files" : "", (unsigned long long)counts.lines,
		         (unsigned long long)malformed, refused[0] != '\0' ? "; the first is: " : "", refused);
	}
}

/* With --sort, reading is the first half, and judging the second. */
static void show_progress(const struct once *once)
{
	struct record_counts counts = {0};
	uint64_t done_bytes, all_bytes;
	if (!progress_due(once->progress))
		return;
	inputs_counts(once->inputs, &counts);
	inputs_progress(once->inputs, &done_bytes, &all_bytes);
	uint64_t sorted = once->sort != NULL ? weir_record_sort_count(once->sort) : 0;
	if (sorted > 0) {
		done_bytes += (uint64_t)((double)all_bytes * (double)once->judged / (double)sorted);
		all_bytes *= 2;
	}
	progress_draw(once->progress, counts.lines - once->lines_before, done_bytes, all_bytes);
}

static enum weir_status end_round(struct once *once, struct weir_error *error)
{
	framer_flush(once->framer, 0);
	once->round_start = once->records;
	enum weir_status status = rounds_submit(once->rounds, error);
	show_progress(once);
	if (status == WEIR_OK && once_cut_due(once))
		status = once_cut(once, false, error);
	return status;
}

/* Its events go into the round. Their position is the record's number in the order of judging. */
static enum weir_status add_record(struct once *once, const struct weir_matched *matched,
                                   const struct weir_record *record, struct weir_error *error)
{
	static const uint8_t merged_source[WEIR_SOURCE_ID_BYTES] = {0};
	once->records++;
	if (matched->event_count == 0)
		return WEIR_OK;
	framer_add(once->framer, merged_source, false, once->policy_version, matched, record, once->records, 0);
	if (once->events == NULL)
		return WEIR_OK;
	framer_flush(once->framer, 0);
	return rounds_judge(once->rounds, error);
}

/* One record, and what it decides. */
static enum weir_status judge_record(struct once *once, const struct weir_matched *matched,
                                     const struct weir_record *record, struct weir_error *error)
{
	enum weir_status status = add_record(once, matched, record, error);
	struct weir_record decided;
	while (status == WEIR_OK && once->events != NULL && decision_events_next(once->events, &decided)) {
		struct weir_matched again;
		weir_matcher_match(once->inputs->matcher, &decided, &again);
		status = add_record(once, &again, &decided, error);
	}
	once->judged++;
	if (status != WEIR_OK)
		return status;
	return once->records - once->round_start >= ROUND_RECORDS ? end_round(once, error) : WEIR_OK;
}

static enum weir_status take_record(struct once *once, const struct merge_input *input, struct weir_error *error)
{
	struct weir_matched matched;
	weir_matcher_match(once->inputs->matcher, &input->reader->record, &matched);
	if (once->sort == NULL)
		return judge_record(once, &matched, &input->reader->record, error);
	if (weir_record_sort_count(once->sort) % ROUND_RECORDS == 0)
		show_progress(once);
	return once_sort_add(once, input, &matched, error);
}

static enum weir_status read_all(struct once *once, struct weir_error *error)
{
	const _Atomic bool *stop = weir_stop_flag();
	while (!atomic_load_explicit(stop, memory_order_relaxed)) {
		struct merge_input *input;
		enum weir_status status = merge_next(once->merge, &input, error);
		if (status == WEIR_END)
			return WEIR_OK;
		if (status == WEIR_AGAIN)
			continue; /* a silent pipe: a signal still ends the run */
		if (status != WEIR_OK) {
			report_source(once, error);
			continue;
		}
		status = take_record(once, input, error);
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

/* What was read, in the order of its times. */
static enum weir_status judge_sorted(struct once *once, struct weir_error *error)
{
	const _Atomic bool *stop = weir_stop_flag();
	struct once_sorted sorted = {0};
	enum weir_status status = weir_record_sort_finish(once->sort, error);
	while (status == WEIR_OK && !atomic_load_explicit(stop, memory_order_relaxed)) {
		status = once_sort_next(once, &sorted, error);
		if (status == WEIR_OK)
			status = judge_record(once, &sorted.matched, &sorted.record, error);
	}
	free(sorted.events);
	free(sorted.zones);
	return status == WEIR_END ? WEIR_OK : status;
}

static enum weir_status read_and_judge(struct once *once, struct weir_error *error)
{
	enum weir_status status = read_all(once, error);
	if (status == WEIR_OK && once->sort != NULL && !atomic_load(weir_stop_flag()))
		status = judge_sorted(once, error);
	if (once->sort != NULL && once->records == 0 && atomic_load(weir_stop_flag()))
		weir_log(once->log, WEIR_LOG_WARNING, "run",
		         "stopped before all was read and sorted: nothing was judged, as --sort judges after that");
	/* Stopped while sorting: the run ends as one that was stopped while reading. */
	return status == WEIR_AGAIN && once->sort != NULL && once->records == 0 ? WEIR_OK : status;
}

/* Said once for each run, as the summary may be asked not to be there. */
static void log_late(const struct once *once, const struct summary *summary)
{
	struct late_zone worst = summary_late(summary);
	if (worst.zone == NULL)
		return;
	struct weir_text words = {0};
	late_zone_words(&words, &worst, true);
	weir_log(once->log, WEIR_LOG_WARNING, "run", "%.*s", (int)words.length, words.at);
	weir_text_deinit(&words);
}

static bool was_matched(const struct once *once, const struct weir_zone *zone)
{
	for (uint32_t i = 0; i < once->partition_count; i++) {
		const struct tally_zone *counts = tally_zone(lane_tally(once->lanes[i]), zone->id);
		if (counts != NULL && counts->passed + counts->blocked > 0)
			return true;
	}
	return false;
}

/* Zones in which no event was, as none had a field that they need. */
static void log_absent(const struct once *once, const struct weir_policy *policy)
{
	struct policy_doubts_log to = {once->log, policy, NULL};
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		struct weir_text words = {0};
		if (!was_matched(once, &policy->zones[i]) && inputs_absent_words(once->inputs, &policy->zones[i], &words))
			policy_doubt_log(&to, i, NULL, words.at);
		weir_text_deinit(&words);
	}
}

static void print_summary(const struct once *once, bool finished)
{
	struct summary summary = {
		.policy = policy_registry_policy(once->registry, once->policy_version),
		.lanes = once->lanes,
		.lane_count = once->partition_count,
		.seconds = (double)(weir_monotonic_ms() - once->started_ms) / 1000.0,
		.decisions = once->options->decisions_path,
		.dead_letters = once->options->dead_letters_path,
		.dead_letters_written = dead_letters_written(once->dead),
		.dead_letters_dropped = dead_letters_dropped(once->dead),
		.state = once->options->state_directory,
		.finished = finished,
	};
	inputs_counts(once->inputs, &summary.counts);
	summary.lines_here = summary.counts.lines - once->lines_before;
	if (once->options->watch != NULL) {
		once->options->watch->ended(once->options->watch->context, &summary);
		return;
	}
	log_late(once, &summary);
	log_absent(once, summary.policy);
	if (once->options->quiet && !once->options->summary_json)
		return;
	struct weir_text text = {0};
	if (once->options->summary_json)
		summary_json(&text, &summary);
	else
		summary_words(&text, &summary);
	fwrite(text.at, 1, text.length, stderr);
	weir_text_deinit(&text);
}

/* Dead letters hold up no run: what their file did not take is dropped, and said. */
static void settle_dead_letters(struct once *once)
{
	struct weir_error error;
	if (once->dead_file == NULL || weir_line_file_sync(once->dead_file, &error) == WEIR_OK)
		return;
	once->dead_letters_lost = weir_line_file_unwritten(once->dead_file);
	dead_letters_lose(once->dead, once->dead_letters_lost);
	weir_log(once->log, WEIR_LOG_ERROR, "dead letter", "%s: %llu malformed lines were counted and not kept", error.text,
	         (unsigned long long)once->dead_letters_lost);
}

static enum weir_status finish(struct once *once, bool *finished, struct weir_error *error)
{
	merge_take(once->merge); /* a signal may have come before the newest record was counted */
	framer_flush(once->framer, 0);
	enum weir_status status = rounds_submit(once->rounds, error);
	if (status == WEIR_OK)
		status = rounds_drain(once->rounds, error);
	*finished = !atomic_load(weir_stop_flag());
	if (status == WEIR_OK && once->options->state_directory != NULL)
		status = once_cut(once, *finished, error);
	else if (status == WEIR_OK)
		status = output_files_sync(&once->files, error);
	if (status == WEIR_OK && once->options->state_directory == NULL)
		settle_dead_letters(once);
	return status;
}

enum weir_exit run_once(const struct run_options *options, const struct weir_log *log, struct progress *progress)
{
	struct once once = {.options = options, .config = options->config, .log = log, .progress = progress};
	struct weir_error error;
	bool finished = false;

	enum weir_status status = once_open(&once, &error);
	/* before the first line is written, so that after a crash the files are known to be this run's own */
	if (status == WEIR_OK && options->state_directory != NULL && !once.resumed)
		status = once_cut(&once, false, &error);
	if (status == WEIR_OK)
		status = read_and_judge(&once, &error);
	if (status == WEIR_OK)
		status = finish(&once, &finished, &error);
	progress_clear(progress);
	if (status == WEIR_OK && options->watch == NULL)
		report_unread(&once);
	enum weir_exit code = WEIR_EXIT_INTERRUPTED;
	if (finished)
		code = once.source_failed || once.dead_letters_lost > 0 ? WEIR_EXIT_FAILED : WEIR_EXIT_DONE;
	if (status == WEIR_AGAIN) {
		/* nobody took what was to be written; a state goes on behind its last cut */
		weir_log(log, WEIR_LOG_WARNING, "run", "stopped while waiting: %s", error.text);
		code = WEIR_EXIT_INTERRUPTED;
	} else if (status != WEIR_OK) {
		weir_log(log, WEIR_LOG_ERROR, "run", "%s", error.text);
		code = status == WEIR_INVALID && once.rounds == NULL ? WEIR_EXIT_USAGE : WEIR_EXIT_FAILED;
	} else {
		print_summary(&once, finished);
	}
	once_close(&once);
	return code;
}

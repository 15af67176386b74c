/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decision's id names its event by the partition's number of it, and the zone by its rank among the event's zones: both
 * are those of one policy alone, so they are counted again for each.
 */
#include "deploy/weir/backtest/decision_files.h"

#include "common/base/alloc.h"
#include "common/base/stop.h"
#include "deploy/weir/run/outputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct policy_file {
	char path[WEIR_PATH_BYTES], unfinished[WEIR_PATH_BYTES];
	bool begun;
	struct output_files files;                      /* of one kind */
	struct output_batch *batches[ROUNDS_UNDER_WAY]; /* by worker */
};

struct decision_files {
	struct decision_files_options options;
	struct policy_file *at; /* by policy */
	uint64_t *events;       /* by partition and policy: how many the policy has judged there */
};

enum weir_status decision_files_path(const char *directory, const char *policy, char path[WEIR_PATH_BYTES],
                                     char unfinished[WEIR_PATH_BYTES], struct weir_error *error)
{
	char name[WEIR_PATH_BYTES];
	enum weir_status status = weir_path_format(name, error, "%s", policy);
	for (char *at = name; status == WEIR_OK && *at != '\0'; at++)
		if (*at == '/')
			*at = '_'; /* of a policy that is called by its path */
	if (status == WEIR_OK)
		status = weir_path_format(path, error, "%s/%s.jsonl", directory, name);
	return status == WEIR_OK ? weir_path_format(unfinished, error, "%s.unfinished", path) : status;
}

static enum weir_status begin_file(struct decision_files *files, uint32_t policy, struct weir_error *error)
{
	const struct decision_files_options *options = &files->options;
	struct policy_file *file = &files->at[policy];
	struct stat about;
	enum weir_status status = decision_files_path(options->directory, options->policies->at[policy].name, file->path,
	                                              file->unfinished, error);
	if (status != WEIR_OK)
		return status;
	if (lstat(file->path, &about) == 0 && !S_ISREG(about.st_mode))
		return weir_fail(error, WEIR_INVALID, "%s is not a regular file: give --decisions another directory",
		                 file->path);
	if (unlink(file->unfinished) != 0 && errno != ENOENT)
		return weir_fail(error, WEIR_IO, "cannot write %s: %s", file->unfinished, weir_errno_words(errno));
	file->files.log = options->log;
	file->files.stop = weir_stop_flag();
	file->files.progress = options->progress;
	struct weir_line_file_options line_file = {.path = file->unfinished};
	status = weir_line_file_open(&line_file, &file->files.files[OUTPUT_DECISIONS], error);
	file->begun = status == WEIR_OK;
	return status;
}

enum weir_status decision_files_new(const struct decision_files_options *options, struct decision_files **out,
                                    struct weir_error *error)
{
	struct decision_files *files = *out = weir_alloc(1, sizeof *files);
	uint32_t count = options->policies->count;
	files->options = *options;
	files->at = weir_alloc(count, sizeof *files->at);
	files->events = weir_alloc((size_t)options->partitions * count, sizeof *files->events);
	for (uint32_t i = 0; i < count; i++)
		for (int k = 0; k < ROUNDS_UNDER_WAY; k++)
			files->at[i].batches[k] = weir_alloc(options->threads, sizeof *files->at[i].batches[k]);
	enum weir_status status = weir_directory_make(options->directory, error);
	for (uint32_t i = 0; status == WEIR_OK && i < count; i++)
		status = begin_file(files, i, error);
	return status;
}

static void free_file(struct decision_files *files, struct policy_file *file)
{
	struct weir_error ignored; /* it is removed */
	if (file->files.files[OUTPUT_DECISIONS] != NULL &&
	    weir_line_file_close(file->files.files[OUTPUT_DECISIONS], &ignored) != WEIR_OK)
		weir_log(files->options.log, WEIR_LOG_ERROR, "output", "%s", ignored.text);
	if (file->begun)
		unlink(file->unfinished);
	output_files_deinit(&file->files);
	for (int k = 0; k < ROUNDS_UNDER_WAY; k++) {
		for (uint32_t w = 0; w < files->options.threads; w++)
			output_batch_deinit(&file->batches[k][w]);
		free(file->batches[k]);
	}
}

void decision_files_free(struct decision_files *files)
{
	if (files == NULL)
		return;
	for (uint32_t i = 0; i < files->options.policies->count; i++)
		free_file(files, &files->at[i]);
	free(files->at);
	free(files->events);
	free(files);
}

/* The first of an event's zones that a policy has, by its place in the event; the event's count of zones: it has none. */
static uint32_t first_zone(const struct decision_files *files, const struct weir_frame_zone_set *set, uint32_t policy)
{
	uint32_t i = 0;
	while (i < set->count && files->options.policies->owners[set->zones[i].id - 1] != policy)
		i++;
	return i;
}

/* The events of one record in a frame, from `first` on: they lie beside each other. */
struct same_record {
	uint32_t first, end;
};

/* How many events of the record a policy has judged before this one: they are in the order of its own zones. */
static uint32_t rank_of_event(const struct decision_files *files, const struct weir_frame *frame,
                              const struct same_record *record, uint32_t event, uint32_t policy)
{
	const struct weir_frame_zone_set *own = &frame->zone_sets[frame->events[event].zone_set];
	uint32_t own_zone = own->zones[first_zone(files, own, policy)].id, rank = 0;
	for (uint32_t i = record->first; i < record->end; i++) {
		const struct weir_frame_zone_set *set = &frame->zone_sets[frame->events[i].zone_set];
		uint32_t zone = first_zone(files, set, policy);
		rank += zone < set->count && set->zones[zone].id < own_zone;
	}
	return rank;
}

static void add_decision(struct decision_files *files, const struct weir_frame *frame, const struct same_record *record,
                         uint32_t partition, const struct shard_decision *decision, unsigned place, uint32_t worker)
{
	const struct backtest_policies *policies = files->options.policies;
	const struct weir_frame_event *event = &frame->events[decision->event];
	const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
	uint32_t zone = decision->zone->zone->id - 1, policy = policies->owners[zone];
	struct compiled_zone known = {.zone = policies_zone(policies, zone), .order = zone - policies->at[policy].first};
	struct shard_decision own = *decision;
	own.zone = &known;
	own.id_offset = files->events[(size_t)partition * policies->count + policy] +
	                rank_of_event(files, frame, record, decision->event, policy);
	own.id_index = 0;
	for (uint32_t i = 0; set->zones[i].id != zone + 1; i++)
		own.id_index += policies->owners[set->zones[i].id - 1] == policy;
	output_batch_decision(&files->at[policy].batches[place][worker], OUTPUT_DECISIONS, partition, &own,
	                      event->position);
}

static void count_events(struct decision_files *files, const struct weir_frame *frame, const struct same_record *record,
                         uint32_t partition)
{
	uint32_t count = files->options.policies->count;
	for (uint32_t i = record->first; i < record->end; i++) {
		const struct weir_frame_zone_set *set = &frame->zone_sets[frame->events[i].zone_set];
		for (uint32_t k = 0; k < count; k++)
			files->events[(size_t)partition * count + k] += first_zone(files, set, k) < set->count;
	}
}

void decision_files_add(struct decision_files *files, unsigned place, uint32_t worker, const struct lane *lane,
                        const struct lane_result *result)
{
	const struct weir_frame *frame = result->frame;
	const struct shard_result *judged = &result->judged;
	uint32_t next = 0;
	for (struct same_record record = {0}; record.first < frame->event_count; record.first = record.end) {
		record.end = record.first + 1;
		while (record.end < frame->event_count &&
		       frame->events[record.end].position == frame->events[record.first].position)
			record.end++;
		for (; next < judged->decision_count && judged->decisions[next].event < record.end; next++)
			add_decision(files, frame, &record, lane_partition(lane), &judged->decisions[next], place, worker);
		count_events(files, frame, &record, lane_partition(lane));
	}
}

enum weir_status decision_files_write(struct decision_files *files, unsigned place, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; status == WEIR_OK && i < files->options.policies->count; i++)
		status = output_files_write(&files->at[i].files, files->at[i].batches[place], files->options.threads, error);
	return status;
}

enum weir_status decision_files_finish(struct decision_files *files, struct weir_error *error)
{
	for (uint32_t i = 0; i < files->options.policies->count; i++) {
		struct policy_file *file = &files->at[i];
		enum weir_status status = output_files_sync(&file->files, error);
		if (status != WEIR_OK)
			return status;
		if (rename(file->unfinished, file->path) != 0)
			return weir_fail(error, WEIR_IO, "cannot write %s: %s", file->path, weir_errno_words(errno));
		file->begun = false;
	}
	return weir_directory_sync(files->options.directory, error);
}

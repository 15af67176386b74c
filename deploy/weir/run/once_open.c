/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bringing a --once run up: afresh, or behind the cut that an earlier run left.
 * A state that was begun with other zones or sources is refused, as its numbers
 * would mean nothing.
 */
#include "deploy/weir/run/once_run.h"
#include "deploy/weir/run/run_check.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/shell.h"
#include "common/base/stop.h"
#include "common/files/file_place.h"
#include "deploy/weir/backend/policy_apply.h"
#include "deploy/weir/backend/run_note.h"
#include "deploy/weir/backend/state_directory.h"
#include "deploy/weir/terminal/readable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SORT_MEMORY_BYTES = 64 << 20,
	PART_SHARE = 16, /* of limiter.memory: so much at a time of what a lane has changed is brought back for a cut */
};

static uint64_t hash_sources(const struct weir_config *config)
{
	char *text = json_dumps(config->sources.value, JSON_COMPACT | JSON_SORT_KEYS);
	uint64_t hash = text != NULL ? weir_hash64(text, strlen(text)) : 0;
	free(text);
	return hash;
}

static enum weir_status refuse(const struct once *once, const char *what, struct weir_error *error)
{
	return weir_fail(error, WEIR_INVALID,
	                 "%s holds %s run with different %s: use the same again, or choose another --state directory",
	                 once->options->state_directory, once->before.finished ? "a finished" : "an unfinished", what);
}

/* The note of an earlier run, checked against this one. */
static enum weir_status read_note(struct once *once, struct weir_error *error)
{
	uint64_t zones = weir_hash64(once->config->policy->text, strlen(once->config->policy->text));
	uint64_t sources = hash_sources(once->config);
	char *text;
	size_t length;
	enum weir_status status = once->store->ops->note_get(once->store, ONCE_NOTE_NAME, &text, &length, error);
	if (status == WEIR_OK && text != NULL) {
		status = once_note_decode(text, length, &once->before, error);
		once->resumed = status == WEIR_OK;
		free(text);
	}
	if (status != WEIR_OK)
		return status;
	const char *what = once->before.zones != zones                                 ? "zones"
	                   : !once->before.finished && once->before.sources != sources ? "sources"
	                                                                               : NULL;
	if (once->resumed && once->before.partitions != once->partition_count)
		what = "a number of partitions";
	if (once->resumed && what != NULL)
		return refuse(once, what, error);
	once->before.zones = zones;
	once->before.sources = sources;
	return WEIR_OK;
}

/* Where the state is: where it is to stay, or where a run without one spills to; NULL: nowhere. */
static const char *directory_of(const struct once *once)
{
	return once->spill_directory != NULL ? once->spill_directory : once->options->state_directory;
}

static enum weir_status open_state(struct once *once, struct weir_error *error)
{
	const char *directory = once->options->state_directory;
	enum weir_status status = WEIR_OK;
	if (directory == NULL && once->options->memory_set) {
		status = state_directory_temporary(&once->spill_directory, error);
		directory = once->spill_directory;
	}
	if (status != WEIR_OK || directory == NULL)
		return status;
	status = state_directory_open(&once->state, directory, "once", error);
	once->store = once->state.store;
	if (status == WEIR_OK)
		status = read_note(once, error);
	return status == WEIR_OK ? run_note_put(once->store, once->config, once->options->decisions_path,
	                                        once->options->shadow_path, error)
	                         : status;
}

/* A run that goes on does so with the lists that it began with, whatever other servers have by now. */
static enum weir_status open_lists(struct once *once, struct weir_error *error)
{
	const struct run_options *options = once->options;
	const struct weir_policy *policy = once->config->policy;
	bool goes_on = once->resumed && !once->before.finished;
	uint64_t hash = 0;
	enum weir_status status =
		goes_on ? weir_exempt_lists_refresh(options->lists, policy, error) : run_options_fetch(options, policy, error);
	if (status == WEIR_OK && once->store != NULL)
		status = weir_exempt_lists_hash(options->lists, policy, &hash, error);
	if (status == WEIR_OK && goes_on && once->before.lists != 0 && once->before.lists != hash)
		return refuse(once, "lists of \"exempt\"", error);
	once->before.lists = hash;
	return status;
}

static enum weir_status open_memory(struct once *once, struct weir_error *error)
{
	if (once->resumed && once->before.memory != NULL)
		return source_memory_import("the state's sources", once->before.memory, strlen(once->before.memory),
		                            &once->memory, error);
	once->memory = source_memory_new(NULL);
	return WEIR_OK;
}

/* Whether a path still has the state's own file, of which less is there than was written. */
static bool is_cut(const char *path, const struct weir_line_file_mark *mark)
{
	struct stat about;
	return stat(path, &about) == 0 && (uint64_t)about.st_ino == mark->inode && (uint64_t)about.st_dev == mark->device;
}

/* The state's own file, cut behind its mark. No other goes with the state, as none holds what it says was written. */
static enum weir_status resume_file(const struct once *once, const struct weir_line_file_options *options,
                                    const struct weir_line_file_mark *mark, struct weir_line_file **file,
                                    struct weir_error *error)
{
	struct weir_error why;
	enum weir_status status = weir_line_file_resume(options, mark, file, &why);
	if (status == WEIR_END && is_cut(options->path, mark))
		return weir_fail(
			error, WEIR_INVALID,
			"%s: it was cut since, as logrotate's copytruncate does. Put back what it held (cp COPY %s) and start "
			"again: what was written behind the saved state is written anew, each line once. Or choose a --state "
			"directory other than %s",
			why.text, weir_shell_word(options->path).text, once->options->state_directory);
	if (status == WEIR_INVALID || status == WEIR_END)
		return weir_fail(error, WEIR_INVALID, "%s: give that file, or choose a --state directory other than %s",
		                 why.text, once->options->state_directory);
	return status == WEIR_OK ? status : weir_fail(error, status, "%s", why.text);
}

static enum weir_status open_file(struct once *once, const char *path, const struct weir_line_file_mark *mark,
                                  struct weir_line_file **file, struct weir_error *error)
{
	if (path == NULL)
		return WEIR_OK;
	struct weir_line_file_options options = {.path = path};
	if (weir_file_descriptor_of(path) >= 0)
		return weir_line_file_open(&options, file, error);
	if (once->resumed && mark->inode != 0)
		return resume_file(once, &options, mark, file, error);
	struct stat about; /* what is no file has nothing to cut: /dev/null, a pipe */
	bool begins_anew = once->options->state_directory == NULL && stat(path, &about) == 0 && S_ISREG(about.st_mode);
	const char *option = run_output_option(once->options, path);
	if (begins_anew && about.st_size > 0 &&
	    option != NULL) /* a run that follows may have written it, or write it now */
		return weir_fail(error, WEIR_INVALID,
		                 "%s is not empty, and the configuration names it: a run without --state would begin it anew; "
		                 "%s PATH names another, - is standard output",
		                 path, option);
	if (begins_anew && truncate(path, 0) != 0)
		return weir_fail(error, WEIR_IO, "cannot write %s: %s", path, weir_errno_words(errno));
	enum weir_status status = weir_line_file_open(&options, file, error);
	if (status == WEIR_IO)
		run_output_fault(once->options, path, error);
	if (status == WEIR_OK && weir_line_file_mark(*file).length > 0)
		return weir_fail(
			error, WEIR_INVALID,
			"%s is not empty, but this state has written nothing yet: choose another file, or move it away", path);
	return status;
}

static enum weir_status open_files(struct once *once, struct weir_error *error)
{
	const struct run_options *options = once->options;
	const char *paths[OUTPUT_COUNT] = {options->decisions_path, options->shadow_path, options->judged_path};
	once->files.log = once->log;
	once->files.stop = weir_stop_flag();
	once->files.progress = once->progress;
	once->files.on_screen = isatty(STDOUT_FILENO);
	enum weir_status status = WEIR_OK;
	for (int i = 0; status == WEIR_OK && i < OUTPUT_COUNT; i++)
		status = open_file(once, paths[i], &once->before.files[i], &once->files.files[i], error);
	if (status == WEIR_OK)
		status = open_file(once, options->dead_letters_path, &once->before.dead_letters, &once->dead_file, error);
	/* no rate: which dead letters are kept must follow from the input alone */
	struct dead_letter_options dead = {.max_bytes = once->config->deadletter.max_bytes};
	struct dead_letter_sink sink = dead_letter_file(once->dead_file);
	once->dead = dead_letters_new(once->dead_file != NULL ? &sink : NULL, &dead);
	dead_letters_restore(once->dead, once->before.dead_letters_written, once->before.dead_letters_dropped);
	return status;
}

static enum weir_status open_lane(struct once *once, uint32_t number, uint64_t seed, struct weir_error *error)
{
	struct shard_options options = {
		.partition = number,
		.seed = seed,
		.ceiling_bytes = once->store != NULL ? once->config->limiter.memory_bytes / once->partition_count : 0,
		.lateness_ms = -1,
		.swap_directory = once->store != NULL ? directory_of(once) : NULL,
		.swap_changes = true,
		.part_bytes = once->config->limiter.memory_bytes / PART_SHARE,
		.count_events = true,
	};
	struct lane *lane = once->lanes[number] = lane_new(&options, once->registry, once->policy_version);
	if (once->store == NULL)
		return WEIR_OK;
	struct weir_partition_state state;
	once->partitions[number].lateness_ms = -1;
	struct weir_text extra = {0};
	enum weir_status status = checkpoint_take(&once->partitions[number], once->store, number, &state, &extra, error);
	if (status == WEIR_OK)
		status = checkpoint_restore(&once->partitions[number], &state, lane, error);
	weir_text_deinit(&extra);
	return status;
}

static enum weir_status open_lanes(struct once *once, struct weir_error *error)
{
	uint64_t seed = 0;
	once->registry = policy_registry_new();
	enum weir_status status = WEIR_OK;
	if (once->store != NULL) {
		status = state_directory_seed(&once->state, &seed, error);
		if (status == WEIR_OK)
			status = state_directory_policies(&once->state, once->registry, error);
	}
	if (status == WEIR_OK)
		status = policy_log_apply(once->store, once->registry, NULL, once->config->policy, NULL, 0,
		                          &once->policy_version, error);
	once->lanes = weir_alloc(once->partition_count, sizeof(struct lane *));
	once->partitions = weir_alloc(once->partition_count, sizeof *once->partitions);
	for (uint32_t i = 0; status == WEIR_OK && i < once->partition_count; i++)
		status = open_lane(once, i, seed, error);
	return status;
}

/* What the cut remembers of a stream, put back into its reader. */
static void restore_stream(struct once *once, struct merge_input *input)
{
	const struct once_stream *before = once_note_stream(&once->before, input->reader->stream->name);
	if (before == NULL)
		return;
	struct record_reader *reader = input->reader;
	input->maximum_ms = input->given_maximum_ms = before->maximum_ms;
	reader->counts = before->counts;
	reader->taken_position = reader->position = before->position;
	reader->incarnation = before->position >> SOURCE_OFFSET_BITS;
	format_begin(reader->format, (struct weir_span){.at = before->header, .length = (uint32_t)before->header_length});
}

/* A source_tell. */
static void warn(void *context, const char *place, const char *words)
{
	const struct once *once = context;
	weir_log(once->log, WEIR_LOG_WARNING, "collector", "%s: %s", place, words);
}

static enum weir_status open_inputs(struct once *once, struct weir_error *error)
{
	once->source_context = (struct source_context){.once = true,
	                                               .memory = once->memory,
	                                               .forgets = once->options->state_directory == NULL,
	                                               .line_max_bytes = (uint32_t)once->config->collector.line_max_bytes,
	                                               .tell = warn,
	                                               .tell_context = once};
	enum weir_status status = inputs_new(once->config, policy_registry_policy(once->registry, once->policy_version),
	                                     once->options->lists, &once->source_context, once->dead, &once->inputs, error);
	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; i < once->inputs->source_count; i++) {
		struct source *source = once->inputs->sources[i];
		struct source_stream **streams;
		size_t count = source->ops->streams(source, &streams);
		once->merge_inputs = weir_realloc(once->merge_inputs, once->stream_count + count, sizeof *once->merge_inputs);
		for (size_t j = 0; j < count; j++) {
			struct merge_input *input = &once->merge_inputs[once->stream_count++];
			*input = (struct merge_input){.source = source, .maximum_ms = -1, .given_maximum_ms = -1};
			status = inputs_reader(once->inputs, i, streams[j], &input->reader, error);
			if (status != WEIR_OK)
				return status;
			restore_stream(once, input);
		}
	}
	once->merge = merge_new(once->merge_inputs, once->stream_count);
	struct record_counts counts = {0};
	inputs_counts(once->inputs, &counts);
	once->lines_before = counts.lines;
	return WEIR_OK;
}

static enum weir_status open_archive(struct once *once, struct weir_error *error)
{
	if (!once->config->archiver.enabled || once->options->state_directory == NULL)
		return WEIR_OK;
	return once_archive_new(once->partition_count, once->policy_version, once->store, once->config->archiver.hash_keys,
	                        &once->archive, error);
}

static enum weir_status open_rounds(struct once *once, struct weir_error *error)
{
	const struct run_options *options = once->options;
	struct rounds_options rounds = {
		.lanes = once->lanes,
		.partitions = once->partitions,
		.partition_count = once->partition_count,
		.threads = (uint32_t)options->config->limiter.threads,
		.state_directory = directory_of(once),
		.choice = {.wanted = {options->decisions_path != NULL, options->shadow_path != NULL,
	                          options->judged_path != NULL},
	               .words = run_options_words(options),
	               .coloured = words_coloured(STDOUT_FILENO)},
		.files = &once->files,
		.archive = once->archive,
		.events = once->events,
		.watch = options->watch,
		.archive_bytes = (size_t)options->config->archiver.memory_bytes / 2 / once->partition_count,
	};
	enum weir_status status = rounds_new(&rounds, &once->rounds, error);
	if (status == WEIR_OK)
		once->framer = framer_new(once->partition_count, rounds_emit, once->rounds);
	return status;
}

static void open_sort(struct once *once)
{
	struct weir_record_sort_options options = {.memory_bytes = SORT_MEMORY_BYTES, .stop = weir_stop_flag()};
	if (once->options->sort)
		once->sort = weir_record_sort_new(&options);
}

enum weir_status once_open(struct once *once, struct weir_error *error)
{
	once->partition_count = (uint32_t)once->config->bus.partitions;
	once->started_ms = weir_monotonic_ms();
	enum weir_status status = open_state(once, error);
	if (status == WEIR_OK)
		status = open_lists(once, error);
	if (status == WEIR_OK)
		status = open_memory(once, error);
	if (status == WEIR_OK)
		status = open_files(once, error);
	if (status == WEIR_OK)
		status = open_lanes(once, error);
	if (status == WEIR_OK)
		status = open_inputs(once, error);
	if (status == WEIR_OK)
		status = open_archive(once, error);
	if (status == WEIR_OK)
		status = decision_events_new(once->config, once->inputs->policy, &once->inputs->fields, &once->events, error);
	if (status == WEIR_OK)
		status = open_rounds(once, error);
	open_sort(once);
	once->records = once->round_start = once->before.records;
	once->checkpoint_due_ms = once->started_ms + once->config->limiter.checkpoint_interval_ms;
	return status;
}

static void close_file(struct once *once, struct weir_line_file *file)
{
	struct weir_error error;
	if (file != NULL && weir_line_file_close(file, &error) != WEIR_OK)
		weir_log(once->log, WEIR_LOG_ERROR, "output", "%s", error.text);
}

void once_close(struct once *once)
{
	rounds_free(once->rounds);
	decision_events_free(once->events);
	once_archive_free(once->archive);
	framer_free(once->framer);
	weir_record_sort_free(once->sort);
	weir_text_deinit(&once->sort_text);
	merge_free(once->merge);
	inputs_free(once->inputs);
	free(once->merge_inputs);
	for (uint32_t i = 0; once->lanes != NULL && i < once->partition_count; i++)
		lane_free(once->lanes[i]);
	free(once->lanes);
	free(once->partitions);
	policy_registry_free(once->registry);
	for (int i = 0; i < OUTPUT_COUNT; i++)
		close_file(once, once->files.files[i]);
	output_files_deinit(&once->files);
	close_file(once, once->dead_file);
	dead_letters_free(once->dead);
	source_memory_free(once->memory);
	once_note_deinit(&once->before);
	state_directory_close(&once->state);
	state_directory_remove(once->spill_directory);
}

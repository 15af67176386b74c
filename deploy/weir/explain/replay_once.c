/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As run/once.c reads, merges and matches, less what no question needs: nothing is framed, and few keys are judged.
 *
 * Where zones count decisions, those are records, too, so all of them must be known: then everything is judged.
 */
#include "deploy/weir/explain/replay_once.h"

#include "collector/follow/inputs.h"
#include "common/base/alloc.h"
#include "deploy/weir/explain/replay.h"
#include "deploy/weir/judging/judging.h"

#include <inttypes.h>
#include <stdlib.h>

struct reading {
	const struct replay_once *once;
	struct question *questions;
	size_t count;
	uint64_t version;
	struct inputs *inputs;
	struct merge_input *merge_inputs;
	size_t stream_count;
	struct merge *merge;
	struct replay **replays; /* by partition; NULL: nothing is asked about it */
	uint64_t *numbers;       /* by partition: of its next event */
	uint64_t *lasts;         /* by partition: the last event that is asked about */
	uint32_t open;           /* partitions whose last event is to come */
	struct judging *judging; /* of all records, to know what is decided; NULL: nobody counts decisions */
	uint64_t records;
	bool resolves;                      /* some question's key is not known: this reading only finds it */
	char failed[WEIR_ERROR_TEXT_BYTES]; /* why a source was not read to its end; "": it was */
};

static enum weir_status open_inputs(struct reading *reading, struct weir_error *error)
{
	const struct weir_config *config = reading->once->config;
	struct source_context context = {.once = true,
	                                 .memory = reading->once->memory,
	                                 .forgets = true,
	                                 .again = true,
	                                 .line_max_bytes = (uint32_t)config->collector.line_max_bytes};
	enum weir_status status = inputs_new(config, policy_registry_policy(reading->once->registry, reading->version),
	                                     reading->once->lists, &context, NULL, &reading->inputs, error);
	for (size_t i = 0; status == WEIR_OK && i < reading->inputs->source_count; i++) {
		struct source *source = reading->inputs->sources[i];
		struct source_stream **streams;
		size_t count = source->ops->streams(source, &streams);
		bool read = source->ops->own_name == NULL; /* decisions are not read, but made again */
		if (read && !source->ops->names_files)
			return weir_fail(error, WEIR_INVALID, "sources[%zu] is no file: its lines cannot be read again", i);
		reading->merge_inputs =
			weir_realloc(reading->merge_inputs, reading->stream_count + count + 1, sizeof *reading->merge_inputs);
		for (size_t j = 0; status == WEIR_OK && j < count; j++) {
			struct merge_input *input = &reading->merge_inputs[reading->stream_count++];
			*input = (struct merge_input){.source = source, .maximum_ms = -1, .given_maximum_ms = -1};
			status = inputs_reader(reading->inputs, i, streams[j], &input->reader, error);
		}
	}
	if (status == WEIR_OK)
		reading->merge = merge_new(reading->merge_inputs, reading->stream_count);
	return status;
}

static enum weir_status open_judging(struct reading *reading, struct weir_error *error)
{
	const struct replay_once *once = reading->once;
	struct judging_options options = {.config = once->config,
	                                  .registry = once->registry,
	                                  .version = reading->version,
	                                  .partitions = once->partitions,
	                                  .matcher = reading->inputs->matcher,
	                                  .fields = &reading->inputs->fields};
	struct judging *judging;
	enum weir_status status = judging_new(&options, &judging, error);
	if (status == WEIR_OK && judging_follows_decisions(judging))
		reading->judging = judging;
	else if (status == WEIR_OK)
		judging_free(judging);
	return status;
}

static void open_replays(struct reading *reading)
{
	const struct replay_once *once = reading->once;
	reading->replays = weir_alloc(once->partitions, sizeof(struct replay *));
	reading->numbers = weir_alloc(once->partitions, sizeof *reading->numbers);
	reading->lasts = weir_alloc(once->partitions, sizeof *reading->lasts);
	for (size_t i = 0; i < reading->count; i++) {
		const struct question *question = &reading->questions[i];
		uint32_t partition = question->partition;
		if (partition >= once->partitions)
			continue;
		uint64_t last = question->by_id ? question->offset : UINT64_MAX;
		if (last > reading->lasts[partition])
			reading->lasts[partition] = last;
		if (reading->replays[partition] != NULL)
			continue;
		struct replay_options options = {.registry = once->registry,
		                                 .version = reading->version,
		                                 .partition = partition,
		                                 .lateness_ms = -1,
		                                 .whole = true,
		                                 .questions = reading->questions,
		                                 .question_count = reading->count};
		reading->replays[partition] = replay_new(&options);
		reading->open++;
	}
}

static void close_all(struct reading *reading)
{
	for (uint32_t i = 0; reading->replays != NULL && i < reading->once->partitions; i++)
		replay_free(reading->replays[i]);
	judging_free(reading->judging);
	free(reading->replays);
	free(reading->numbers);
	free(reading->lasts);
	merge_free(reading->merge);
	inputs_free(reading->inputs);
	free(reading->merge_inputs);
}

/* Which key and zone an event's number is about. */
static void resolve(struct reading *reading, const struct weir_matched_event *event, uint64_t number)
{
	for (size_t i = 0; i < reading->count; i++) {
		struct question *question = &reading->questions[i];
		if (!question->by_id || question->key_known || question->partition != event->partition ||
		    question->offset != number || question->index >= event->zone_count)
			continue;
		weir_text_append(&question->key, event->key.at, event->key.length);
		question->zone_id = event->zones[question->index].id;
		question->key_known = true;
	}
}

/* Where a record was read. */
struct origin {
	const uint8_t *source;
	uint64_t position;
};

static enum weir_status take_event(struct reading *reading, const struct weir_matched_event *event,
                                   struct weir_span fields, const struct weir_record *record, struct origin origin,
                                   struct weir_error *error)
{
	struct replay *replay = reading->replays[event->partition];
	uint64_t number = reading->numbers[event->partition]++;
	if (replay == NULL)
		return WEIR_OK;
	if (number == reading->lasts[event->partition])
		reading->open--;
	if (reading->resolves) {
		resolve(reading, event, number);
		return WEIR_OK;
	}
	if (number > reading->lasts[event->partition] || !replay_wants(replay, event->key, event->key_hash))
		return WEIR_OK;
	struct replay_event one = {.key = event->key,
	                           .time_ms = record->time_ms,
	                           .cost = event->cost,
	                           .zones = event->zones,
	                           .zone_count = event->zone_count,
	                           .source = origin.source,
	                           .position = origin.position,
	                           .policy_version = reading->version,
	                           .fields = fields,
	                           .id_offset = number};
	return replay_event(replay, &one, error);
}

static enum weir_status take_record(struct reading *reading, const struct weir_record *record, struct origin origin,
                                    struct weir_error *error)
{
	struct weir_matched matched;
	enum weir_status status = WEIR_OK;
	weir_matcher_match(reading->inputs->matcher, record, &matched);
	for (uint32_t i = 0; status == WEIR_OK && i < matched.event_count; i++)
		status = take_event(reading, &matched.events[i], matched.fields, record, origin, error);
	reading->records++;
	return status == WEIR_OK && reading->judging != NULL ? judging_take(reading->judging, &matched, record, error)
	                                                     : status;
}

/* What was decided of the newest record. */
static enum weir_status take_decisions(struct reading *reading, struct weir_error *error)
{
	static const uint8_t decisions_source[WEIR_SOURCE_ID_BYTES] = {0};
	struct weir_record record;
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && reading->judging != NULL && judging_next_decision(reading->judging, &record)) {
		struct origin origin = {.source = decisions_source, .position = reading->records + 1};
		status = take_record(reading, &record, origin, error);
	}
	return status;
}

static enum weir_status read_all(struct reading *reading, struct weir_error *error)
{
	struct merge_input *input;
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && reading->open > 0) {
		status = patience_check(reading->once->patience, error);
		if (status != WEIR_OK)
			break;
		status = merge_next(reading->merge, &input, error);
		if (status == WEIR_AGAIN || status == WEIR_IO) {
			if (status == WEIR_IO)
				snprintf(reading->failed, sizeof reading->failed, "%s", error->text);
			status = WEIR_OK;
			continue;
		}
		if (status != WEIR_OK)
			break;
		const struct record_reader *reader = input->reader;
		struct origin origin = {.source = reader->stream->id, .position = reader->position};
		status = take_record(reading, &reader->record, origin, error);
		if (status == WEIR_OK)
			status = take_decisions(reading, error);
	}
	return status == WEIR_END ? WEIR_OK : status;
}

static void tell_missing(const struct reading *reading, struct question *question)
{
	if (reading->failed[0] != '\0')
		question_lacks(question, "Not every source can be read again: %s.", reading->failed);
	if (question->again.length > 0 && (question->published.length == 0 || question_is_equal(question)))
		return;
	if (question->by_id)
		question_lacks(question,
		               "Reading the sources again, event %" PRIu64 " of partition %u makes %s decision: the files are "
		               "not what they were, or a list of \"exempt\" has changed.",
		               question->offset, question->partition, question->again.length > 0 ? "another" : "no such");
	else
		question_lacks(question, "Reading the sources again, no decision of this key is made.");
}

static enum weir_status read_once(struct reading *reading, struct weir_error *error)
{
	enum weir_status status = open_inputs(reading, error);
	if (status == WEIR_OK)
		status = open_judging(reading, error);
	if (status == WEIR_OK) {
		open_replays(reading);
		status = read_all(reading, error);
	}
	return status;
}

enum weir_status replay_once(const struct replay_once *once, struct question *questions, size_t count,
                             struct weir_error *error)
{
	struct reading reading = {
		.once = once, .questions = questions, .count = count, .version = policy_registry_newest(once->registry)};
	enum weir_status status = WEIR_OK;
	bool unknown = false;
	for (size_t i = 0; i < count; i++)
		unknown = unknown || !questions[i].key_known;
	if (unknown) {
		struct source_memory *memory = source_memory_new(NULL);
		struct replay_once first = *once;
		struct reading resolving = reading;
		first.memory = memory;
		resolving.once = &first;
		resolving.resolves = true;
		status = read_once(&resolving, error);
		close_all(&resolving);
		source_memory_free(memory);
	}
	if (status == WEIR_OK)
		status = read_once(&reading, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++)
		tell_missing(&reading, &questions[i]);
	close_all(&reading);
	return status;
}

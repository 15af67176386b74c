/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each line is a chunk of its own to a record_reader, so that commands and lines of several sources keep the order of
 * the case.
 */
#include "deploy/weir/test/pass.h"

#include "collector/follow/record_reader.h"
#include "collector/source/source_message.h"
#include "common/base/alloc.h"
#include "common/base/read_file.h"
#include "common/files/durable_file.h"
#include "deploy/weir/explain/replay.h"
#include "deploy/weir/judging/judging.h"
#include "deploy/weir/test/template.h"
#include "limiter/lane/decision.h"

#include <stdlib.h>
#include <string.h>

enum { FILE_MAX_BYTES = 64 << 20, DAY_MS = 24 * 60 * 60 * 1000 };

/* What reads the lines of one source, or of one format. */
struct lines_reader {
	size_t place;
	const json_t *format;
	bool of_fields;
	struct source_stream stream;
	struct record_reader reader;
	uint64_t offset;
	struct lines_reader *next;
};

struct run {
	struct pass *pass;
	struct judging *judging;
	struct lines_reader *readers;
	struct question *questions;
	size_t question_count;
	struct replay **replays; /* by partition; NULL: nothing is asked about it */
	uint64_t *numbers;       /* by partition: of its next event */
	struct weir_text text;   /* of the newest line */
	const struct test_given *given;
	struct weir_error *error;
};

/* ---- what comes of it ---- */

static struct pass_decision *add_decision(struct run *run)
{
	struct pass *pass = run->pass;
	if (pass->decision_count == PASS_DECISIONS_MAX)
		return NULL;
	if (pass->decision_count == pass->decision_room) {
		pass->decision_room = 2 * pass->decision_room + 16;
		pass->decisions = weir_realloc(pass->decisions, pass->decision_room, sizeof *pass->decisions);
	}
	struct pass_decision *made = &pass->decisions[pass->decision_count++];
	*made = (struct pass_decision){.line = (uint32_t)pass->line_count};
	return made;
}

static void count_decision(struct run *run, const struct pass_decision *made)
{
	struct weir_span key = weir_text_span(&made->key);
	for (size_t i = 0; i < run->pass->of->count_count; i++)
		run->pass->counts[i].decisions += subject_is_key(&run->pass->count_keys[i], made->zone->id, key);
}

static void take_decision(struct run *run, uint32_t partition, const struct shard_decision *decision)
{
	struct pass_decision *made = add_decision(run);
	if (made == NULL)
		return;
	made->partition = partition;
	made->offset = decision->id_offset;
	made->index = decision->id_index;
	made->by_limit = true;
	made->zone = decision->zone->zone;
	weir_text_append(&made->key, decision->key.at, decision->key.length);
	made->block = decision->kind != BUCKET_LIFTS;
	made->at_ms = decision->at_ms;
	made->until_ms = decision->until_ms;
	made->count = decision->count;
	decision_json(&made->text, partition, decision);
	count_decision(run, made);
}

static void take_override(struct run *run, uint32_t partition, const struct lane_result *result)
{
	const struct shard_override_decision *override = result->override;
	struct pass_decision *made = add_decision(run);
	if (made == NULL)
		return;
	made->partition = partition;
	made->offset = result->number;
	made->zone = override->zone;
	weir_text_append(&made->key, override->key.at, override->key.length);
	made->block = !override->lift;
	made->at_ms = override->at_ms;
	made->until_ms = override->until_ms;
	decision_override_json(&made->text, partition, result->number, 0, override);
	count_decision(run, made);
}

static void take_verdict(struct run *run, struct lane *lane, const struct weir_frame_event *event,
                         const struct weir_frame_zone *at, struct weir_span key, unsigned verdict)
{
	struct pass *pass = run->pass;
	for (size_t i = 0; i < pass->of->count_count && (verdict & WEIR_VERDICT_NONE) == 0; i++)
		if (subject_is_key(&pass->count_keys[i], at->id, key)) {
			pass->counts[i].passed += (verdict & WEIR_VERDICT_BLOCK) == 0;
			pass->counts[i].blocked += (verdict & WEIR_VERDICT_BLOCK) != 0;
		}
	for (size_t i = 0; i < pass->of->decision_count; i++) {
		int64_t line = pass->of->decisions[i].line;
		if (!subject_is_key(&pass->decision_keys[i], at->id, key) ||
		    (line != TEST_UNSAID && line != (int64_t)pass->line_count))
			continue;
		struct pass_event *seen = &pass->events[i];
		*seen = (struct pass_event){.line = (uint32_t)pass->line_count,
		                            .zone = weir_policy_zone(pass->subject->policy, at->id),
		                            .verdict = verdict,
		                            .done = at->done};
		seen->held_count = shard_read_held(lane_shard(lane), at->id, key, event->time_ms, seen->held);
	}
}

/* See judging_options. */
static void take_result(void *context, struct lane *lane, const struct lane_result *result)
{
	struct run *run = context;
	const struct weir_frame *frame = result->frame;
	uint32_t pair = 0;
	for (uint32_t i = 0; frame != NULL && i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
		for (uint32_t j = 0; j < set->count; j++, pair++)
			take_verdict(run, lane, event, &set->zones[j], frame->keys[event->key],
			             weir_verdict_of(result->judged.verdicts, pair));
	}
	for (uint32_t i = 0; i < result->judged.decision_count; i++)
		take_decision(run, lane_partition(lane), &result->judged.decisions[i]);
	if (result->override != NULL)
		take_override(run, lane_partition(lane), result);
}

/* ---- records ---- */

/* Gives the events that are asked about to their replays. */
static enum weir_status replay(struct run *run, const struct weir_matched *matched, const struct weir_record *record)
{
	static const uint8_t source[WEIR_SOURCE_ID_BYTES] = {0};
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; status == WEIR_OK && i < matched->event_count; i++) {
		const struct weir_matched_event *event = &matched->events[i];
		struct replay *again = run->replays[event->partition];
		struct replay_event one = {.key = event->key,
		                           .time_ms = record->time_ms,
		                           .cost = event->cost,
		                           .zones = event->zones,
		                           .zone_count = event->zone_count,
		                           .source = source,
		                           .position = run->pass->line_count,
		                           .policy_version = policy_registry_newest(run->pass->subject->registry),
		                           .fields = matched->fields,
		                           .id_offset = run->numbers[event->partition]++};
		if (again != NULL && replay_wants(again, event->key, event->key_hash))
			status = replay_event(again, &one, run->error);
	}
	return status;
}

/* Zones lie in the policy's order. Of one zone a record that stands for several may have several, of one partition. */
static int by_zone(const void *left, const void *right)
{
	const struct pass_decision *a = left, *b = right;
	if (a->zone != b->zone)
		return a->zone < b->zone ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* What one record decides is in the policy's order, as `weir run --once` writes it, whatever partitions its keys are of. */
static enum weir_status take_record(struct run *run, const struct weir_record *record)
{
	struct pass *pass = run->pass;
	size_t before = pass->decision_count;
	struct weir_matched matched;
	enum weir_status status = WEIR_OK;
	weir_matcher_match(pass->subject->matcher, record, &matched);
	if (run->replays != NULL)
		status = replay(run, &matched, record);
	if (status == WEIR_OK)
		status = judging_take(run->judging, &matched, record, run->error);
	if (pass->decision_count > before + 1)
		qsort(pass->decisions + before, pass->decision_count - before, sizeof *pass->decisions, by_zone);
	return status;
}

/* ---- lines ---- */

static enum weir_status find_reader(struct run *run, const struct test_given *given, struct lines_reader **found)
{
	const struct subject *subject = run->pass->subject;
	const json_t *format = given->format.value;
	bool of_fields = given->kind == TEST_GIVES_FIELDS;
	size_t place;
	enum weir_status status = subject_source(subject, given, &place, run->error);
	if (status != WEIR_OK)
		return status;
	for (*found = run->readers; *found != NULL; *found = (*found)->next)
		if ((*found)->place == place && (*found)->format == format && (*found)->of_fields == of_fields)
			return WEIR_OK;
	struct format *made;
	status = subject_format(subject, given, place, &made, run->error);
	if (status != WEIR_OK)
		return status;
	struct lines_reader *one = weir_alloc(1, sizeof *one);
	one->place = place;
	one->format = format;
	one->of_fields = of_fields;
	one->stream.name = (char *)(uintptr_t) "test";
	one->offset = UINT64_C(1) << SOURCE_OFFSET_BITS;
	record_reader_init(&one->reader, &one->stream, made, NULL);
	/* The name is of the source that is named, or that the lines' format is of. */
	one->reader.source_name =
		format == NULL || weir_json_exists(&given->source) ? subject_source_name(subject, place) : NULL;
	one->next = run->readers;
	run->readers = one;
	*found = one;
	return WEIR_OK;
}

static void keep_line(struct run *run, struct weir_span text, const char *file, uint64_t number)
{
	struct pass *pass = run->pass;
	if (pass->line_count == pass->line_room) {
		pass->line_room = 2 * pass->line_room + 64;
		pass->lines = weir_realloc(pass->lines, pass->line_room, sizeof *pass->lines);
	}
	struct pass_line *line = &pass->lines[pass->line_count++];
	*line = (struct pass_line){.begin = SIZE_MAX, .file = file, .number = number};
	if (pass->texts.length + text.length > PASS_LINES_KEPT_MAX_BYTES)
		return;
	line->begin = pass->texts.length;
	line->length = text.length;
	weir_text_append(&pass->texts, text.at, text.length);
}

static void note_malformed(struct run *run, struct record_reader *reader, struct weir_span text)
{
	struct pass *pass = run->pass;
	char help[FORMAT_HELP_BYTES] = "";
	if (pass->malformed_words[0] == '\0') {
		format_help(reader->format, reader->refused_reason, text, help);
		pass->malformed_line = (uint32_t)pass->line_count;
		pass->malformed_given = run->given;
		snprintf(pass->malformed_words, sizeof pass->malformed_words, "%s%s%s%s",
		         format_reason_text(reader->refused_reason), help[0] != '\0' ? " (" : "", help,
		         help[0] != '\0' ? ")" : "");
	}
	reader->refused[0] = '\0';
}

/* Lines that the reader's format, or the one of the message in it, was told to skip. */
static int64_t count_skipped(const struct lines_reader *lines)
{
	uint64_t count = 0;
	for (const struct format *format = lines->reader.format; format != NULL; format = format->inner)
		count += format->unmatched;
	return (int64_t)count;
}

static void note_skipped(struct run *run)
{
	struct pass *pass = run->pass;
	if (pass->skipped_given != NULL)
		return;
	pass->skipped_line = (uint32_t)pass->line_count;
	pass->skipped_given = run->given;
}

/* What was decided of the newest record is taken behind it. */
static enum weir_status take_records(struct run *run, struct record_reader *reader)
{
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && record_reader_next(reader) == WEIR_OK) {
		status = take_record(run, &reader->record);
		struct weir_record decided;
		while (status == WEIR_OK && judging_next_decision(run->judging, &decided))
			status = take_record(run, &decided);
		record_reader_take(reader, 0);
	}
	return status;
}

/* Takes run->text, or a line of a file, as the next line. */
static enum weir_status take_line(struct run *run, struct lines_reader *lines, struct weir_span text, const char *file,
                                  uint64_t number)
{
	const struct pass *pass = run->pass;
	int64_t skipped = count_skipped(lines);
	uint32_t most = (uint32_t)pass->subject->config->collector.line_max_bytes;
	if (pass->line_count == TEST_LINES_MAX)
		return weir_json_fail(&run->given->at, run->error, "brings the lines of the case above %d", TEST_LINES_MAX);
	keep_line(run, text, file, number);
	if (text.length == 0)
		return WEIR_OK;
	bool too_long = text.length > most;
	struct source_chunk chunk = {
		.stream = &lines->stream,
		.data = text.at,
		.length = too_long ? most : text.length,
		.position = lines->offset,
		.last_open = true,
		.too_long = too_long,
		.skipped = too_long ? text.length - most + 1 : 0,
		.tail = too_long ? source_message_tail(text, most) : (struct weir_span){0},
		/* A time without a year is of the case's own time, or of the year before it. */
		.written_ms = (run->given->at_ms != TEST_UNSAID ? run->given->at_ms : pass->of->start_ms) + DAY_MS};
	lines->offset += text.length + 1;
	record_reader_feed(&lines->reader, &chunk);
	enum weir_status status = take_records(run, &lines->reader);
	if (lines->reader.refused[0] != '\0')
		note_malformed(run, &lines->reader, text);
	if (count_skipped(lines) > skipped)
		note_skipped(run);
	return status;
}

/* Each line of a text that may have several. */
static enum weir_status take_text(struct run *run, struct lines_reader *lines, struct weir_span text, const char *file)
{
	enum weir_status status = WEIR_OK;
	uint64_t number = 0;
	for (const char *at = text.at, *end = text.at + text.length; status == WEIR_OK && at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline != NULL ? newline : end;
		status = take_line(run, lines, (struct weir_span){.at = at, .length = (uint32_t)(stop - at)}, file, ++number);
		at = stop + 1;
	}
	return status;
}

/* ---- given ---- */

static struct weir_span string_of(const json_t *value)
{
	return (struct weir_span){.at = json_string_value(value), .length = (uint32_t)json_string_length(value)};
}

static enum weir_status check_template(struct run *run, const struct test_given *given, struct weir_span pattern)
{
	if (given->repeat != TEST_UNSAID && given->at_ms == TEST_UNSAID && template_has_time(pattern))
		return weir_json_fail(&given->at, run->error,
		                      "has a place for the time, so it must have \"at\": the time of the first, as \"10s\"");
	return WEIR_OK;
}

/* A line with "repeat" or "at" is a template; any other is what it is, byte by byte. */
static enum weir_status take_lines(struct run *run, struct lines_reader *lines, const struct test_given *given)
{
	size_t count = 1;
	bool plain = given->repeat == TEST_UNSAID && given->at_ms == TEST_UNSAID;
	int64_t repeat = given->repeat == TEST_UNSAID ? 1 : given->repeat, at_ms = given->at_ms;
	enum weir_status status = weir_json_one_or_more(&given->what, TEST_LINES_MAX, &count, run->error);
	for (int64_t n = 1; status == WEIR_OK && n <= repeat; n++) {
		for (size_t i = 0; status == WEIR_OK && i < count; i++) {
			struct weir_json at = weir_json_one_of(&given->what, i);
			struct weir_span line = string_of(at.value);
			status = check_template(run, given, line);
			weir_text_clear(&run->text);
			if (!plain)
				template_put(&run->text, line, (uint64_t)n, at_ms);
			if (status == WEIR_OK)
				status = take_text(run, lines, plain ? line : weir_text_span(&run->text), NULL);
		}
		if (given->every_ms > 0)
			at_ms += given->every_ms;
	}
	return status;
}

static enum weir_status take_fields(struct run *run, struct lines_reader *lines, const struct test_given *given)
{
	int64_t repeat = given->repeat == TEST_UNSAID ? 1 : given->repeat, at_ms = given->at_ms;
	enum weir_status status = subject_check_fields(run->pass->subject, given, run->error);
	for (int64_t n = 1; status == WEIR_OK && n <= repeat; n++) {
		weir_text_clear(&run->text);
		subject_put_fields(&run->text, given, (uint64_t)n, at_ms);
		status = take_line(run, lines, weir_text_span(&run->text), NULL, 0);
		if (given->every_ms > 0)
			at_ms += given->every_ms;
	}
	return status;
}

static enum weir_status take_file(struct run *run, struct lines_reader *lines, const struct test_given *given)
{
	char path[WEIR_PATH_BYTES], *text = NULL;
	size_t length;
	struct weir_error wrong;
	enum weir_status status =
		weir_path_format(path, &wrong, "%s%s", given->path[0] == '/' ? "" : run->pass->folder, given->path);
	if (status == WEIR_OK)
		status = weir_read_file(path, FILE_MAX_BYTES, &text, &length, &wrong);
	if (status != WEIR_OK)
		return weir_json_fail(&given->what, run->error, "%s", wrong.text);
	size_t blank = 0;
	while (blank < length && (text[blank] == '\n' || text[blank] == '\r'))
		blank++;
	if (blank == length) {
		free(text);
		return weir_json_fail(&given->what, run->error, "%s has no line, so the case gives nothing", path);
	}
	status = take_text(run, lines, (struct weir_span){.at = text, .length = (uint32_t)length}, given->path);
	free(text);
	return status;
}

static enum weir_status take_command(struct run *run, const struct test_given *given)
{
	struct subject_key found;
	struct weir_error wrong;
	enum weir_status status =
		subject_find(run->pass->subject, &given->at, given->zone, &given->key, &found, run->error);
	if (status != WEIR_OK)
		return status;
	struct override_command *command = &found.key;
	command->kind = (enum override_kind)given->command;
	command->until_ms = given->for_ms != TEST_UNSAID     ? given->at_ms + given->for_ms
	                    : given->until_ms != TEST_UNSAID ? given->until_ms
	                                                     : OVERRIDE_NO_END;
	snprintf(command->by, sizeof command->by, "%s", given->by != NULL ? given->by : "test");
	snprintf(command->reason, sizeof command->reason, "%s", given->reason != NULL ? given->reason : "");
	struct weir_json rate = weir_json_member(&given->at, "rate");
	if (given->rate != NULL && !override_rate_parse(given->rate, &command->thousandths))
		return weir_json_fail(&rate, run->error, "must be from \"0.001\" to \"100\"");
	if (command->until_ms > OVERRIDE_NO_END)
		command->until_ms = OVERRIDE_NO_END;
	status = override_command_check(command, found.zone, &wrong);
	if (status == WEIR_OK)
		status = judging_command(run->judging, command, given->at_ms, &wrong);
	if (status != WEIR_OK)
		return weir_json_fail(&given->at, run->error, "%s", wrong.text);
	size_t length;
	char *text = run->replays != NULL ? override_command_message(command, 1, given->at_ms, &length) : NULL;
	for (uint32_t p = 0; status == WEIR_OK && text != NULL && p < run->pass->subject->partitions; p++) {
		/* Of no event's id: nothing is asked about a command. */
		struct weir_message message = {.payload = {.at = text, .length = (uint32_t)length}, .offset = UINT64_MAX};
		if (run->replays[p] != NULL)
			status = replay_message(run->replays[p], &message, run->error);
	}
	free(text);
	return status;
}

static enum weir_status take_given(struct run *run, const struct test_given *given)
{
	struct lines_reader *lines = NULL;
	run->given = given;
	if (given->kind == TEST_GIVES_COMMAND)
		return take_command(run, given);
	enum weir_status status = find_reader(run, given, &lines);
	if (status != WEIR_OK)
		return status;
	if (given->kind == TEST_GIVES_FIELDS)
		return take_fields(run, lines, given);
	return given->kind == TEST_GIVES_FILE ? take_file(run, lines, given) : take_lines(run, lines, given);
}

/* ---- all of it ---- */

static enum weir_status find_keys(struct pass *pass, struct weir_error *error)
{
	const struct test_case *of = pass->of;
	enum weir_status status = WEIR_OK;
	pass->decision_keys = weir_alloc(of->decision_count + 1, sizeof *pass->decision_keys);
	pass->count_keys = weir_alloc(of->count_count + 1, sizeof *pass->count_keys);
	pass->events = weir_alloc(of->decision_count + 1, sizeof *pass->events);
	pass->counts = weir_alloc(of->count_count + 1, sizeof *pass->counts);
	for (size_t i = 0; status == WEIR_OK && i < of->decision_count; i++) {
		const struct test_decision *one = &of->decisions[i];
		status = subject_find(pass->subject, &one->at, one->zone, one->key_given ? &one->key : NULL,
		                      &pass->decision_keys[i], error);
	}
	for (size_t i = 0; status == WEIR_OK && i < of->count_count; i++) {
		const struct test_count *one = &of->counts[i];
		status = subject_find(pass->subject, &one->at, one->zone, one->key_given ? &one->key : NULL,
		                      &pass->count_keys[i], error);
	}
	return status;
}

static void open_replays(struct run *run)
{
	const struct subject *subject = run->pass->subject;
	if (run->question_count == 0)
		return;
	run->replays = weir_alloc(subject->partitions, sizeof(struct replay *));
	run->numbers = weir_alloc(subject->partitions, sizeof *run->numbers);
	for (size_t i = 0; i < run->question_count; i++) {
		uint32_t partition = run->questions[i].partition;
		struct replay_options options = {.registry = subject->registry,
		                                 .version = policy_registry_newest(subject->registry),
		                                 .partition = partition,
		                                 .partitions = subject->partitions,
		                                 .lateness_ms = -1,
		                                 .whole = true,
		                                 .questions = run->questions,
		                                 .question_count = run->question_count};
		if (run->replays[partition] == NULL)
			run->replays[partition] = replay_new(&options);
	}
}

/* Lines whose other parts did not come are malformed; then all malformed ones are known. */
static void end_readers(struct run *run)
{
	for (struct lines_reader *one = run->readers; one != NULL; one = one->next) {
		record_reader_end(&one->reader);
		if (one->reader.refused[0] != '\0')
			note_malformed(run, &one->reader, one->reader.line);
		for (int i = 0; i < FORMAT_REASON_COUNT; i++)
			run->pass->malformed += (int64_t)one->reader.counts.malformed[i];
		run->pass->skipped += count_skipped(one);
	}
}

static void close_run(struct run *run)
{
	for (uint32_t i = 0; run->replays != NULL && i < run->pass->subject->partitions; i++)
		replay_free(run->replays[i]);
	free(run->replays);
	free(run->numbers);
	while (run->readers != NULL) {
		struct lines_reader *one = run->readers;
		run->readers = one->next;
		record_reader_deinit(&one->reader);
		free(one);
	}
	judging_free(run->judging);
	weir_text_deinit(&run->text);
}

enum weir_status pass_run(const struct subject *subject, const struct test_case *of, const char *folder,
                          struct question *questions, size_t count, struct pass *pass, struct weir_error *error)
{
	struct run run = {.pass = pass, .questions = questions, .question_count = count, .error = error};
	struct judging_options options = {.config = subject->config,
	                                  .registry = subject->registry,
	                                  .version = policy_registry_newest(subject->registry),
	                                  .partitions = subject->partitions,
	                                  .matcher = subject->matcher,
	                                  .fields = &subject->fields,
	                                  .each = take_result,
	                                  .context = &run};
	*pass = (struct pass){.subject = subject, .of = of, .folder = folder};
	enum weir_status status = find_keys(pass, error);
	if (status == WEIR_OK)
		status = judging_new(&options, &run.judging, error);
	if (status == WEIR_OK)
		open_replays(&run);
	for (size_t i = 0; status == WEIR_OK && i < of->given_count; i++)
		status = take_given(&run, &of->given[i]);
	if (status == WEIR_OK)
		end_readers(&run);
	if (status == WEIR_OK && pass->decision_count == PASS_DECISIONS_MAX)
		status =
			weir_json_fail(&of->at, error, "makes more than %d decisions: divide the case", PASS_DECISIONS_MAX - 1);
	close_run(&run);
	return status;
}

void pass_deinit(struct pass *pass)
{
	for (size_t i = 0; i < pass->decision_count; i++) {
		weir_text_deinit(&pass->decisions[i].key);
		weir_text_deinit(&pass->decisions[i].text);
	}
	free(pass->decisions);
	free(pass->decision_keys);
	free(pass->count_keys);
	free(pass->events);
	free(pass->counts);
	free(pass->lines);
	weir_text_deinit(&pass->texts);
	*pass = (struct pass){0};
}

struct weir_span pass_line_text(const struct pass *pass, uint64_t line)
{
	struct weir_span none = {.at = NULL};
	if (line == 0 || line > pass->line_count || pass->lines[line - 1].begin == SIZE_MAX)
		return none;
	const struct pass_line *kept = &pass->lines[line - 1];
	return (struct weir_span){.at = pass->texts.at + kept->begin, .length = (uint32_t)kept->length};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop: read a chunk of each source in turn, put its events into frames, send
 * frames to the bus, turn acknowledgements into low-water marks.
 *
 * Frames are flushed when the oldest event in them has waited for the linger time.
 * That grows with the time that acknowledgements take, because sending more often
 * than the bus answers only makes smaller frames.
 */
#include "collector/follow/internal.h"

#include "collector/follow/spools_left.h"
#include "collector/source/source_memory.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/files/durable_file.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	IDLE_WAIT_MS = 100,
	REOPEN_PERIOD_MS = 1000,
	REOPEN_TRIES = 30, /* after that many, the collector fails */
	UNSAVED_LONG_MS = 10000,
};

void collector_fail(struct collector *collector, enum weir_status status, const struct weir_error *error)
{
	if (collector->status != WEIR_OK)
		return;
	collector->status = status;
	collector->error = *error;
}

static bool going(const struct collector *collector)
{
	return collector->status == WEIR_OK && sender_state(collector->sender) == SENDER_WELL;
}

/* A framer_emit. */
static void send_frame(void *context, uint32_t partition, struct weir_span frame)
{
	struct collector *collector = context;
	sender_send(collector->sender, WEIR_TOPIC_EVENTS, partition, frame);
}

/* Sends open frames, and marks each stream's position, as all that was read is then in flight. */
static void flush(struct collector *collector)
{
	framer_flush(collector->framer, weir_wall_ms());
	low_water_mark(collector->inputs, collector->sender);
}

static void take_record(struct collector *collector, struct record_reader *reader, int64_t now_ms)
{
	struct weir_matched matched;
	int64_t latest_ms = now_ms + collector->options.config->collector.max_skew_ms;
	if (reader->record.time_ms > latest_ms) {
		reader->record.time_ms = latest_ms;
		reader->ahead.clamped += record_reader_is_fresh(reader);
	}
	weir_matcher_match(collector->inputs->matcher, &reader->record, &matched);
	if (matched.event_count > 0) {
		if (framer_pending(collector->framer) == 0)
			collector->oldest_ms = weir_monotonic_ms();
		framer_add(collector->framer, reader->stream->id, reader->stream->is_common, collector->policy_version,
		           &matched, &reader->record, reader->position, now_ms);
	}
	record_reader_take(reader, now_ms);
}

/* ---- whether formats fit ---- */

static uint64_t count_malformed(const struct record_reader *reader)
{
	uint64_t sum = 0;
	for (int i = 0; i < FORMAT_REASON_COUNT; i++)
		sum += reader->counts.malformed[i];
	return sum;
}

const char *collector_source_name(const struct collector *collector, size_t place, char *text, size_t bytes)
{
	const json_t *source = json_array_get(collector->options.config->sources.value, place);
	const char *name = json_string_value(json_object_get(source, "name"));
	if (name != NULL)
		snprintf(text, bytes, "%s", name);
	else
		snprintf(text, bytes, "sources[%zu]", place);
	return text;
}

/* Where malformed lines are to be seen. @return text */
static const char *put_kept(const struct collector *collector, char *text, size_t bytes)
{
	if (collector->options.dead_topic)
		snprintf(text, bytes, "some are kept in topic deadletter (`weir decode --topic deadletter %s`)",
		         weir_config_words(collector->options.config));
	else
		snprintf(text, bytes, "%s",
		         collector->options.dead_file != NULL ? "some are kept in the file of dead letters"
		                                              : "none of them are kept");
	return text;
}

static void tell_format(struct collector *collector, struct format_watch *watch, struct record_reader *reader)
{
	char name[SOURCE_NAME_BYTES], kept[WEIR_ERROR_TEXT_BYTES];
	collector_source_name(collector, reader->source_place, name, sizeof name);
	if (watch->changed)
		weir_fault_raise_at(
			&watch->fault, collector->options.log, WEIR_LOG_ERROR, "collector",
			"source %s, %s: %llu of the last %llu lines do not fit its \"format\" (%s): %s. They are not judged: nobody "
			"is blocked by them. Reading goes on, and %s. If the log has another form now, set the source's "
			"\"format\" and restart the collector (runbook: format-changed)",
			name, reader->stream->name, (unsigned long long)watch->last_malformed,
			(unsigned long long)watch->last_lines, format_reason_text(reader->refused_reason), reader->refused,
			put_kept(collector, kept, sizeof kept));
	else
		weir_fault_over(&watch->fault, collector->options.log, "collector", "source %s: its lines fit its format again",
		                name);
	reader->refused[0] = '\0';
}

/* What a writer left out is lost to every reader of the log: it is told though most lines fit. */
static void tell_left_out(struct collector *collector, const struct record_reader *reader, uint64_t count)
{
	char name[SOURCE_NAME_BYTES], kept[WEIR_ERROR_TEXT_BYTES];
	if (count == 0)
		return;
	collector_source_name(collector, reader->source_place, name, sizeof name);
	weir_notice_log(
		&collector->left_out, collector->options.log, WEIR_LOG_ERROR, "collector",
		"source %s, %s: the message of %llu more lines is null: their writer left it out. They are not judged: nobody is "
		"blocked by them. Reading goes on, and %s. `journalctl -o json` leaves out what has more than 4096 bytes: let it "
		"write with --all (runbook: format-changed)",
		name, reader->stream->name, (unsigned long long)count, put_kept(collector, kept, sizeof kept));
}

/* Reads a chunk to its end, or until the producer breaks. */
static void read_on(struct collector *collector, struct record_reader *reader)
{
	int64_t now_ms = weir_wall_ms();
	uint64_t lines = reader->counts.lines, records = reader->counts.records, malformed = count_malformed(reader);
	uint64_t left_out = reader->counts.malformed[FORMAT_LEFT_OUT];
	struct format_watch *watch = &collector->formats[reader->source_place];
	collector->interrupted = NULL;
	while (going(collector) && record_reader_next(reader) == WEIR_OK)
		take_record(collector, reader, now_ms);
	record_reader_take(reader, now_ms);
	if (!going(collector))
		collector->interrupted = reader;
	if (format_watch_add(watch, reader->counts.lines - lines, reader->counts.records - records,
	                     count_malformed(reader) - malformed, weir_monotonic_ms()))
		tell_format(collector, watch, reader);
	tell_left_out(collector, reader, reader->counts.malformed[FORMAT_LEFT_OUT] - left_out);
}

/* Reads one chunk of one source. @return whether there was one */
static bool read_chunk(struct collector *collector, size_t place)
{
	struct source *source = collector->inputs->sources[place];
	struct source_chunk chunk;
	struct weir_error error;
	enum weir_status status = source->ops->collect(source, NULL, &chunk, &error);
	collector->source_ended[place] = status == WEIR_END;
	if (status == WEIR_AGAIN)
		collector_clock_ended(&collector->clocks[place]);
	if (status == WEIR_IO) /* one that does not follow has failed for good */
		weir_log(collector->options.log, WEIR_LOG_ERROR, "collector", "%s", error.text);
	if (status != WEIR_OK)
		return false;
	struct record_reader *reader;
	status = inputs_reader(collector->inputs, place, chunk.stream, &reader, &error);
	if (status != WEIR_OK) {
		collector_fail(collector, status, &error);
		return false;
	}
	reader->source_place = place;
	bool live = collector_clock_live(&collector->clocks[place], reader, &chunk);
	int64_t now_ms = weir_wall_ms();
	record_reader_feed(reader, &chunk);
	read_on(collector, reader);
	if (live)
		collector_clock_see(collector, reader, now_ms);
	return true;
}

static void switch_policy(struct collector *collector)
{
	const struct weir_policy *policy = atomic_exchange(&collector->next_policy, NULL);
	if (policy == NULL)
		return;
	if (policy->version == collector->policy_version) {
		inputs_renew_lists(collector->inputs);
		return;
	}
	flush(collector);
	struct weir_error error;
	enum weir_status status = inputs_set_policy(collector->inputs, policy, &error);
	if (status != WEIR_OK) {
		collector_fail(collector, status, &error);
		return;
	}
	collector->policy_version = policy->version;
	struct record_counts counts = {0};
	inputs_counts(collector->inputs, &counts);
	collector->absent_told = false;
	collector->absent_from = counts.records;
	atomic_store(&collector->policy_in_use, policy->version);
}

/* Sleeps until a source may have more, a frame may be due, or an acknowledgement may have come. */
static void wait_for_more(struct collector *collector)
{
	if (sender_waiting(collector->sender) > 0) {
		sender_poll(collector->sender, 1);
		return;
	}
	int timeout_ms = framer_pending(collector->framer) > 0 ? 1 : IDLE_WAIT_MS;
	struct pollfd polls[64];
	nfds_t count = 0;
	for (size_t i = 0; i < collector->inputs->source_count && count < 64; i++) {
		int fd = collector->inputs->sources[i]->ops->fd(collector->inputs->sources[i]);
		if (fd >= 0 && !collector->source_ended[i]) /* a pipe that has ended would be ready for ever */
			polls[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	poll(polls, count, timeout_ms);
}

/* A chunk of each source. @param all_ended  set to whether nothing more will come. @return whether there was one */
static bool read_round(struct collector *collector, bool *all_ended)
{
	bool any = false;
	*all_ended = !collector->options.stays;
	for (size_t i = 0; i < collector->inputs->source_count && going(collector); i++) {
		any |= read_chunk(collector, i);
		*all_ended &= collector->source_ended[i];
	}
	return any;
}

/* ---- after a broken producer ---- */

/* Counts the rest of a chunk as read, as it will not be sent. */
static void give_up_chunk(struct record_reader *reader)
{
	while (record_reader_next(reader) == WEIR_OK)
		record_reader_take(reader, 0);
	record_reader_take(reader, 0);
}

/* Counts and logs the lines of a source that cannot be read again and may not have arrived. */
static void count_lost(struct collector *collector, size_t place)
{
	uint64_t lost = low_water_give_up(collector->inputs, place);
	if (lost == 0)
		return;
	weir_counter_add(&collector->lost_lines, lost);
	weir_log(
		collector->options.log, WEIR_LOG_ERROR, "collector",
		"up to %llu lines of a source that cannot be read again are lost: the bus has not acknowledged them. They were "
		"not judged; reading goes on (runbook: lines-lost)",
		(unsigned long long)lost);
}

/* Reopens a source at its safe positions. Retries for a while, as a file or server may be missing for a moment. */
static enum weir_status reopen_source(struct collector *collector, size_t place, struct weir_error *error)
{
	struct weir_fault fault = {0};
	enum weir_status status;
	for (int tries = 1; (status = inputs_reopen(collector->inputs, place, error)) != WEIR_OK; tries++) {
		weir_fault_raise(
			&fault, collector->options.log, "collector",
			"cannot read again what was not acknowledged: %s. Its lines wait in their log, and are judged late. "
			"Trying again every second (runbook: source-unreadable)",
			error->text);
		for (int waited_ms = 0; waited_ms < REOPEN_PERIOD_MS; waited_ms += IDLE_WAIT_MS) {
			if (tries == REOPEN_TRIES || atomic_load(&collector->stop))
				return status;
			nanosleep(&(struct timespec){.tv_nsec = IDLE_WAIT_MS * 1000000L}, NULL);
		}
	}
	weir_fault_clear(&fault, collector->options.log, "collector");
	return WEIR_OK;
}

/*
 * Nothing that the broken producer had in flight counts. A new one is made, and every source goes back to its low-water
 * mark. What did arrive is sent again with the same positions, and limiters drop it.
 */
static void recover(struct collector *collector)
{
	collector->dirty |= low_water_take(collector->sender);
	collector->unpublished = true;
	collector->owed_ms = collector_low_water_ms(collector);
	collector->resent_ms = 0;
	collector->read_again = false;
	collector->renewed_ms = weir_monotonic_ms(); /* nothing is read again before that */
	collector_save_at_once(collector);
	framer_discard(collector->framer);
	sender_renew(collector->sender);
	collector->renewed_ms = weir_monotonic_ms();
	for (size_t i = 0; i < collector->inputs->source_count && going(collector); i++) {
		struct weir_error error;
		if (!inputs_replayable(collector->inputs, i)) {
			count_lost(collector, i);
			continue;
		}
		if (collector->interrupted != NULL && collector->interrupted->source_place == i)
			collector->interrupted = NULL; /* the rest of its chunk is read again */
		enum weir_status status = reopen_source(collector, i, &error);
		if (status != WEIR_OK && !atomic_load(&collector->stop))
			collector_fail(collector, status, &error);
	}
}

/* ---- fields that no line has ---- */

/* Tells which zones no line can have been in. @param least  records of all sources, as fewer say too little */
static void tell_absent(struct collector *collector, uint64_t least)
{
	struct record_counts counts = {0};
	inputs_counts(collector->inputs, &counts);
	if (collector->absent_told || counts.records - collector->absent_from < least)
		return;
	collector->absent_told = true;
	for (uint32_t i = 0; i < collector->inputs->policy->zone_count; i++) {
		struct weir_text words = {0};
		struct policy_doubts_log to = {collector->options.log, collector->inputs->policy, NULL};
		if (inputs_absent_words(collector->inputs, &collector->inputs->policy->zones[i], &words))
			policy_doubt_log(&to, i, NULL, words.at);
		weir_text_deinit(&words);
	}
}

/* ---- the loop ---- */

/* Logs that not everything was acknowledged in time. The next start reads it again, if the source can. */
static void log_unfinished(struct collector *collector)
{
	if (sender_waiting(collector->sender) == 0 && sender_state(collector->sender) == SENDER_WELL)
		return;
	weir_log(collector->options.log, WEIR_LOG_WARNING, "collector",
	         "the bus has not acknowledged everything in time: the next start reads the rest again");
	if (collector->interrupted != NULL && !inputs_replayable(collector->inputs, collector->interrupted->source_place)) {
		give_up_chunk(collector->interrupted);
		collector_publish_counts(collector);
	}
	for (size_t i = 0; i < collector->inputs->source_count; i++)
		if (!inputs_replayable(collector->inputs, i))
			count_lost(collector, i);
}

/* Whether reading goes on before the first parts of lines that are not whole yet. */
static bool is_held(const struct record_reader *reader)
{
	uint64_t held = format_held(reader->format);
	return held < UINT64_MAX && held >= reader->begun_position;
}

/*
 * Lines of which only the first parts have come, where no later start reads these again: from a pipe, of a queue, of what
 * was pushed. Nobody else would ever tell of them.
 */
static void refuse_unfinished(struct collector *collector)
{
	char kept[WEIR_ERROR_TEXT_BYTES];
	uint64_t count = 0;
	for (size_t i = 0; i < collector->inputs->source_count; i++) {
		struct source_stream **streams;
		size_t stream_count = inputs_streams(collector->inputs, i, &streams);
		for (size_t j = 0; j < stream_count; j++) {
			struct record_reader *reader = streams[j]->context;
			if (reader == NULL || (inputs_replayable(collector->inputs, i) && is_held(reader)))
				continue;
			count -= count_malformed(reader);
			record_reader_end(reader);
			count += count_malformed(reader);
		}
	}
	if (count > 0)
		weir_log(
			collector->options.log, WEIR_LOG_WARNING, "collector",
			"%llu lines came without their last parts, and no later start reads their first ones again: they are not "
			"judged; %s",
			(unsigned long long)count, put_kept(collector, kept, sizeof kept));
}

/* Sends what was read, waits for the acknowledgements, within a bound, and saves the positions. */
static void finish(struct collector *collector)
{
	int64_t end_ms = weir_monotonic_ms() + SENDER_STOP_LIMIT_MS;
	if (going(collector) && collector->interrupted == NULL)
		refuse_unfinished(collector);
	flush(collector);
	tell_absent(collector, ABSENT_TELLING_RECORDS);
	while (going(collector) && sender_waiting(collector->sender) > 0 && weir_monotonic_ms() < end_ms)
		sender_poll(collector->sender, IDLE_WAIT_MS);
	collector->dirty |= low_water_take(collector->sender);
	collector->dirty = true;
	collector_save_at_once(collector);
	if (sender_state(collector->sender) == SENDER_FAILED)
		collector_fail(collector, sender_error(collector->sender)->status, sender_error(collector->sender));
	else
		log_unfinished(collector);
}

/* One round: reads a chunk of each source, and sends and saves what is due. @return whether all sources have ended */
static bool work_once(struct collector *collector)
{
	bool all_ended;
	switch_policy(collector);
	bool any = read_round(collector, &all_ended);
	int64_t waited_ms = weir_monotonic_ms() - collector->oldest_ms;
	if (framer_pending(collector->framer) == 0 ? any : waited_ms >= sender_linger_ms(collector->sender))
		flush(collector);
	sender_poll(collector->sender, 0);
	collector->dirty |= low_water_take(collector->sender);
	collector->unpublished = collector->unpublished || any;
	collector->read_again = collector->read_again || any;
	if (collector->unpublished && weir_monotonic_ms() >= collector->counts_due_ms) {
		collector_publish_counts(collector);
		tell_absent(collector, RECORDS_LOOKED_AT);
	}
	collector_save_if_due(collector);
	if (!any && !all_ended)
		wait_for_more(collector);
	return all_ended;
}

static void *work(void *context)
{
	struct collector *collector = context;
	bool all_ended = false;
	while (!atomic_load(&collector->stop) && !all_ended && collector->status == WEIR_OK) {
		if (sender_state(collector->sender) == SENDER_BROKEN)
			recover(collector);
		if (!going(collector) || atomic_load(&collector->stop)) /* `stop` may have interrupted a recovery */
			break;
		if (collector->interrupted != NULL) {
			collector->unpublished = true;
			read_on(collector, collector->interrupted);
		}
		all_ended = work_once(collector) && going(collector);
	}
	finish(collector);
	atomic_store(&collector->ended, true);
	return NULL;
}

static void make_dead_letters(struct collector *collector)
{
	const struct weir_config *config = collector->options.config;
	bool rotated = config->deadletter.rotate_bytes > 0 && !collector->options.dead_topic;
	struct dead_letter_options dead = {.max_bytes = rotated ? INT64_MAX : config->deadletter.max_bytes,
	                                   .rate_per_second = config->deadletter.rate_per_second};
	struct dead_letter_sink sink;
	if (collector->options.dead_topic) {
		collector->dead_topic = dead_letter_topic_new(collector->sender);
		sink = dead_letter_topic_sink(collector->dead_topic);
	} else if (collector->options.dead_file != NULL) {
		sink = dead_letter_file(collector->options.dead_file);
	}
	bool kept = collector->options.dead_topic || collector->options.dead_file != NULL;
	collector->dead = dead_letters_new(kept ? &sink : NULL, &dead);
}

/* A source_tell. */
static void warn(void *context, const char *place, const char *words)
{
	const struct collector *collector = context;
	weir_log(collector->options.log, WEIR_LOG_WARNING, "collector", "%s: %s", place, words);
}

static void tell_left(void *context, bool waits, const char *words)
{
	const struct collector *collector = context;
	char line[4096];
	snprintf(line, sizeof line, "%s", words);
	for (char *end = line; (end = strchr(end, '\n')) != NULL;)
		*end = ';';
	weir_log(collector->options.log, waits ? WEIR_LOG_WARNING : WEIR_LOG_INFO, "collector", "%s", line);
}

static void tell_spools_left(struct collector *collector)
{
	const struct source_memory *memory = collector->options.memory;
	char state[WEIR_PATH_BYTES];
	struct weir_error error;
	if (memory != NULL && memory->path != NULL && weir_directory_of(memory->path, state, &error) == WEIR_OK)
		spools_left(state, collector->options.config, memory, tell_left, collector);
}

enum weir_status collector_new(const struct collector_options *options, struct collector **out,
                               struct weir_error *error)
{
	struct collector *collector = weir_alloc(1, sizeof *collector);
	collector->options = *options;
	collector->source_context =
		(struct source_context){.memory = options->memory,
	                            .line_max_bytes = (uint32_t)options->config->collector.line_max_bytes,
	                            .bus = options->bus,
	                            .log = options->log,
	                            .tell = warn,
	                            .tell_context = collector};
	collector->policy_version = options->policy->version;
	atomic_init(&collector->policy_in_use, options->policy->version);
	atomic_init(&collector->low_water_ms, weir_monotonic_ms());
	pthread_mutex_init(&collector->lock, NULL);
	collector->framer = framer_new((uint32_t)options->config->bus.partitions, send_frame, collector);
	collector->reports = source_reports_new(options->log);
	struct sender_options sender = {
		.bus = options->bus, .config = options->config, .log = options->log, .stop = &collector->stop};
	enum weir_status status = sender_new(&sender, &collector->sender, error);
	if (status == WEIR_OK) {
		make_dead_letters(collector);
		status = inputs_new(options->config, options->policy, options->lists, &collector->source_context,
		                    collector->dead, &collector->inputs, error);
	}
	if (status == WEIR_OK)
		collector_tell_resumed(collector);
	if (status == WEIR_OK)
		tell_spools_left(collector);
	if (status == WEIR_OK)
		collector->formats = weir_alloc(collector->inputs->source_count, sizeof *collector->formats);
	if (status == WEIR_OK)
		collector->clocks = weir_alloc(collector->inputs->source_count, sizeof *collector->clocks);
	if (status == WEIR_OK)
		collector->source_ended = weir_alloc(collector->inputs->source_count, sizeof *collector->source_ended);
	if (status == WEIR_OK)
		*out = collector;
	else
		collector_free(collector);
	return status;
}

enum weir_status collector_start(struct collector *collector, struct weir_error *error)
{
	int failed = pthread_create(&collector->thread, NULL, work, collector);
	if (failed != 0)
		return weir_fail(error, WEIR_IO, "cannot start the collector's thread: %s", weir_errno_words(failed));
	collector->started = true;
	return WEIR_OK;
}

void collector_set_policy(struct collector *collector, const struct weir_policy *policy)
{
	atomic_store(&collector->next_policy, policy);
}

uint64_t collector_policy_version(const struct collector *collector)
{
	return atomic_load(&collector->policy_in_use);
}

bool collector_formats_fit(const struct collector *collector, struct weir_text *why)
{
	bool fit = true;
	for (size_t i = 0; i < collector->inputs->source_count; i++) {
		char name[SOURCE_NAME_BYTES];
		if (!collector->formats[i].changed)
			continue;
		weir_text_printf(why,
		                 "source %s: most of its last lines do not fit its \"format\", and are not judged (runbook: "
		                 "format-changed)\n",
		                 collector_source_name(collector, i, name, sizeof name));
		fit = false;
	}
	return fit;
}

bool collector_ready(struct collector *collector, struct weir_text *why)
{
	bool ready = inputs_ready(collector->inputs, why);
	int64_t unsaved_ms = collector_unsaved_ms(collector);
	bool saved = unsaved_ms < UNSAVED_LONG_MS;
	if (!saved)
		weir_text_printf(why,
		                 "the read positions could not be saved for %lld s: a restart reads again what was read since "
		                 "(runbook: positions-unsaved)\n",
		                 (long long)unsaved_ms / 1000);
	return collector_formats_fit(collector, why) && ready && saved;
}

void collector_reopen(struct collector *collector)
{
	atomic_store(&collector->reopen, true);
}

void collector_stop(struct collector *collector)
{
	atomic_store(&collector->stop, true);
}

bool collector_ended(const struct collector *collector)
{
	return atomic_load(&collector->ended);
}

enum weir_status collector_join(struct collector *collector, struct weir_error *error)
{
	if (collector->started)
		pthread_join(collector->thread, NULL);
	collector->started = false;
	if (collector->status != WEIR_OK && error != NULL)
		*error = collector->error;
	return collector->status;
}

void collector_free(struct collector *collector)
{
	if (collector == NULL)
		return;
	inputs_free(collector->inputs);
	free(collector->formats);
	free(collector->clocks);
	free(collector->source_ended);
	framer_free(collector->framer);
	dead_letters_free(collector->dead);
	dead_letter_topic_free(collector->dead_topic);
	sender_free(collector->sender);
	source_reports_free(collector->reports);
	pthread_mutex_destroy(&collector->lock);
	free(collector);
}

void collector_counts(struct collector *collector, struct record_counts *counts)
{
	pthread_mutex_lock(&collector->lock);
	*counts = collector->counts;
	pthread_mutex_unlock(&collector->lock);
}

uint64_t collector_lag_bytes(struct collector *collector)
{
	return inputs_lag_bytes(collector->inputs);
}

void collector_dead_letters(struct collector *collector, uint64_t *written, uint64_t *dropped)
{
	*written = weir_counter_read(&collector->dead_letters_written);
	*dropped = weir_counter_read(&collector->dead_letters_dropped);
}

enum { LOST_LINES, LOW_WATER_AGE, UNSAVED, FORMAT_CHANGED, CLOCK, METRIC_COUNT };

static const struct weir_metric metrics[METRIC_COUNT] = {
	[LOST_LINES] = {"weir_source_lost_lines_total", WEIR_COUNTER, "lines", WEIR_NO_LABELS,
                    "Lines in flight when a delivery failed, from sources that cannot be read again. They are lost "
                    "unless they arrived despite the failure."},
	[LOW_WATER_AGE] =
		{"weir_collector_low_water_age_seconds", WEIR_GAUGE, "seconds", WEIR_NO_LABELS,
         "Everything read longer ago than this is acknowledged, and a restart continues after it. If this "
         "grows, the brokers are down or slow."},
	[UNSAVED] =
		{"weir_collector_unsaved_seconds", WEIR_GAUGE, "seconds", WEIR_NO_LABELS,
         "For how long the read positions could not be saved; 0 while they are saved. A restart reads again what "
         "was read since. The log says why: the disk is full, or the state directory cannot be written."},
	[FORMAT_CHANGED] =
		{"weir_source_format_changed", WEIR_GAUGE, "0 or 1",
         WEIR_LABELS({"source", "the source's name, or its place, such as sources[0]"}),
         "Whether most of the source's last 1,000 lines, or of a minute's (of at least ten, of ten minutes at most), do "
         "not fit its format, so that they are not judged. It stays until other lines come."},
	[CLOCK] =
		{"weir_source_behind_clock_seconds", WEIR_GAUGE, "seconds",
         WEIR_LABELS({"source", "the source's name, or its place, such as sources[0]"}),
         "By how much the times of lines that were just written are steadily behind the clock, or ahead of it (below "
         "0), where it is 30 minutes or more; else 0. A time_zone is missing, or a clock is wrong. Lines that are more "
         "than an hour behind block nobody."},
};

const struct weir_metric_table collector_metric_table = {metrics, METRIC_COUNT};

void collector_metrics(struct collector *collector, struct weir_text *text)
{
	struct record_counts counts;
	collector_counts(collector, &counts);
	inputs_metrics_counts(&counts, text);
	inputs_metrics(collector->inputs, text);
	weir_metrics_counter(text, &metrics[LOST_LINES], weir_counter_read(&collector->lost_lines));
	weir_metrics_gauge(text, &metrics[LOW_WATER_AGE],
	                   (double)(weir_monotonic_ms() - atomic_load(&collector->low_water_ms)) / 1000.0);
	weir_metrics_gauge(text, &metrics[UNSAVED], (double)collector_unsaved_ms(collector) / 1000.0);
	weir_metrics_family(text, &metrics[FORMAT_CHANGED]);
	for (size_t i = 0; i < collector->inputs->source_count; i++) {
		char name[SOURCE_NAME_BYTES];
		struct weir_span label = weir_span_of(collector_source_name(collector, i, name, sizeof name));
		weir_metrics_uint(text, &metrics[FORMAT_CHANGED], &label, collector->formats[i].changed);
	}
	weir_metrics_family(text, &metrics[CLOCK]);
	for (size_t i = 0; i < collector->inputs->source_count; i++) {
		char name[SOURCE_NAME_BYTES];
		struct weir_span label = weir_span_of(collector_source_name(collector, i, name, sizeof name));
		weir_metrics_double(text, &metrics[CLOCK], &label,
		                    (double)atomic_load(&collector->clocks[i].behind_ms) / 1000.0);
	}
	sender_metrics(collector->sender, text);
}

/*
 * One loop: a chunk from each source in turn, its events into frames, frames to
 * the bus, acknowledgements back into low-water marks.
 *
 * Frames are flushed when the oldest event in them has waited for the linger;
 * that grows with the time that acknowledgements take, as sending more often
 * than the bus answers only makes smaller frames.
 */
#include "collector/collector.h"

#include "collector/framer.h"
#include "collector/in_flight.h"
#include "collector/source_reports.h"
#include "common/alloc.h"
#include "common/clock.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	SAVE_PERIOD_MS = 1000,
	IDLE_WAIT_MS = 100,
	DELIVERIES_AT_ONCE = 256,
	STOP_LIMIT_MS = 10000, /* acknowledgements are waited for so long at the end */
};

struct collector {
	struct collector_options options;
	struct source_context source_context;
	struct inputs *inputs;
	struct framer *framer;
	struct in_flight *flight;
	struct dead_letters *dead;
	struct source_reports *reports;
	struct weir_producer *producer;
	uint64_t policy_version;

	int64_t oldest_ms; /* when the oldest event in open frames was added */
	int64_t linger_ms; /* at work: linger to max_linger */
	int64_t save_due_ms;
	bool dirty;              /* marks became safe since the last save */
	enum weir_status status; /* of sending: the first failure */
	struct weir_error error;
	struct weir_trouble trouble;

	pthread_t thread;
	bool started;
	_Atomic bool stop, ended, reopen;
	_Atomic(const struct weir_policy *) next_policy;

	pthread_mutex_t lock; /* counts */
	struct record_counts counts;
	struct weir_counter frames, frame_bytes, letters_written, letters_dropped;
	struct weir_histogram acknowledgement;
};

/* Takes acknowledgements, waiting at most timeout_ms for the first. */
static void take_deliveries(struct collector *collector, int timeout_ms)
{
	struct weir_delivery deliveries[DELIVERIES_AT_ONCE];
	size_t count = collector->options.bus->ops->poll(collector->producer, deliveries, DELIVERIES_AT_ONCE, timeout_ms);
	int64_t now_ms = weir_monotonic_ms();
	for (size_t i = 0; i < count; i++) {
		if (deliveries[i].status != WEIR_OK) {
			if (collector->status == WEIR_OK)
				collector->status = weir_fail(&collector->error, deliveries[i].status,
				                              "the bus did not take a frame of partition %u", deliveries[i].partition);
			return;
		}
		int64_t took_ms = in_flight_acknowledge(collector->flight, deliveries[i].tag, now_ms);
		weir_histogram_observe(&collector->acknowledgement, &weir_latency_scale, (double)took_ms / 1000.0);
		const struct weir_config *config = collector->options.config;
		int64_t linger_ms = (collector->linger_ms * 7 + took_ms) / 8;
		collector->linger_ms = linger_ms < config->bus.linger_ms       ? config->bus.linger_ms
		                       : linger_ms > config->bus.max_linger_ms ? config->bus.max_linger_ms
		                                                               : linger_ms;
	}
}

/* A framer_emit: sends; while the bus is full it waits, and nothing more is read. */
static void send_frame(void *context, uint32_t partition, struct weir_span frame)
{
	struct collector *collector = context;
	const struct weir_bus_ops *bus = collector->options.bus->ops;
	uint64_t number = in_flight_send(collector->flight, weir_monotonic_ms());
	int64_t end_ms = 0; /* while it is to stop: when it gives up */
	while (collector->status == WEIR_OK) {
		struct weir_span no_key = {0};
		enum weir_status status =
			bus->send(collector->producer, WEIR_TOPIC_EVENTS, partition, no_key, frame, number, &collector->error);
		if (status == WEIR_OK)
			break;
		if (status != WEIR_FULL) {
			collector->status = status;
			break;
		}
		take_deliveries(collector, IDLE_WAIT_MS);
		if (!atomic_load(&collector->stop))
			continue;
		if (end_ms == 0)
			end_ms = weir_monotonic_ms() + STOP_LIMIT_MS;
		else if (weir_monotonic_ms() >= end_ms)
			collector->status =
				weir_fail(&collector->error, WEIR_IO,
			              "the bus takes no more: what it did not take is read again by the next start");
	}
	weir_counter_add(&collector->frames, 1);
	weir_counter_add(&collector->frame_bytes, frame.length);
}

/* Sends open frames; what has been read of every stream is then on its way. */
static void flush(struct collector *collector)
{
	framer_flush(collector->framer, weir_wall_ms());
	for (size_t i = 0; i < collector->inputs->source_count; i++) {
		struct source *source = collector->inputs->sources[i];
		struct source_stream **streams;
		size_t count = source->ops->streams(source, &streams);
		for (size_t j = 0; j < count; j++) {
			struct record_reader *reader = streams[j]->context;
			if (reader == NULL || reader->marked_position == reader->taken_position)
				continue;
			reader->marked_position = reader->taken_position;
			in_flight_mark(collector->flight, reader, reader->taken_position);
		}
	}
}

static void take_record(struct collector *collector, struct record_reader *reader, int64_t now_ms)
{
	struct matched matched;
	int64_t latest_ms = now_ms + collector->options.config->collector.max_skew_ms;
	if (reader->record.time_ms > latest_ms) {
		reader->record.time_ms = latest_ms;
		reader->ahead.clamped++;
	}
	matcher_match(collector->inputs->matcher, &reader->record, &matched);
	if (matched.event_count > 0) {
		if (framer_pending(collector->framer) == 0)
			collector->oldest_ms = weir_monotonic_ms();
		framer_add(collector->framer, reader->stream->id, collector->policy_version, &matched, &reader->record,
		           reader->position, now_ms);
	}
	record_reader_take(reader, now_ms);
}

/* One chunk of one source; gives whether there was any. */
static bool read_chunk(struct collector *collector, size_t place, bool *ended)
{
	struct source *source = collector->inputs->sources[place];
	struct source_chunk chunk;
	struct weir_error error;
	enum weir_status status = source->ops->collect(source, NULL, &chunk, &error);
	*ended = status == WEIR_END;
	if (status == WEIR_IO) /* one that does not follow has failed for good */
		weir_log(collector->options.log, WEIR_LOG_ERROR, "collector", "%s", error.text);
	if (status != WEIR_OK)
		return false;
	struct record_reader *reader;
	status = inputs_reader(collector->inputs, place, chunk.stream, &reader, &collector->error);
	if (status != WEIR_OK) {
		collector->status = status;
		return false;
	}
	reader->source_place = place;
	record_reader_feed(reader, &chunk);
	int64_t now_ms = weir_wall_ms();
	while (record_reader_next(reader) == WEIR_OK && collector->status == WEIR_OK)
		take_record(collector, reader, now_ms);
	record_reader_take(reader, now_ms);
	return true;
}

/* Marks that have become safe are noted: their sources are told once the dead letters below them are safe, too. */
static void take_safe_marks(struct collector *collector)
{
	struct in_flight_mark mark;
	while (in_flight_safe(collector->flight, &mark)) {
		struct record_reader *reader = mark.stream;
		reader->safe_position = mark.position;
		collector->dirty = true;
	}
}

static void set(struct weir_counter *counter, uint64_t value)
{
	atomic_store_explicit(&counter->value, value, memory_order_relaxed);
}

/* Calls for every reader there is. */
static void each_reader(struct collector *collector,
                        void (*call)(struct source *source, struct source_stream *stream, struct record_reader *reader))
{
	for (size_t i = 0; i < collector->inputs->source_count; i++) {
		struct source *source = collector->inputs->sources[i];
		struct source_stream **streams;
		size_t count = source->ops->streams(source, &streams);
		for (size_t j = 0; j < count; j++)
			if (streams[j]->context != NULL)
				call(source, streams[j], streams[j]->context);
	}
}

/* Streams' lines are counted by their readers; their sources state them. */
static void tell_lines(struct source *source, struct source_stream *stream, struct record_reader *reader)
{
	(void)source;
	atomic_store_explicit(&stream->lines, reader->counts.lines, memory_order_relaxed);
}

static void acknowledge(struct source *source, struct source_stream *stream, struct record_reader *reader)
{
	if (reader->safe_position > 0)
		source->ops->acknowledge(source, stream, reader->safe_position);
	reader->safe_position = 0;
}

/* Puts the dead letters on disk, into a new file if that was asked for. */
static enum weir_status save_dead_letters(struct collector *collector, struct weir_error *error)
{
	if (collector->options.dead_file == NULL)
		return WEIR_OK;
	if (!atomic_load(&collector->reopen))
		return weir_line_file_sync(collector->options.dead_file, error);
	enum weir_status status = weir_line_file_reopen(collector->options.dead_file, error);
	if (status == WEIR_OK)
		atomic_store(&collector->reopen, false);
	return status;
}

/*
 * Low-water marks to disk, behind the dead letters that they cover. The sources learn of the marks only here, as they
 * save what they know whenever a file begins.
 */
static void save(struct collector *collector)
{
	struct weir_error error;
	collector->save_due_ms = weir_monotonic_ms() + SAVE_PERIOD_MS;
	pthread_mutex_lock(&collector->lock);
	collector->counts = (struct record_counts){0};
	inputs_counts(collector->inputs, &collector->counts);
	pthread_mutex_unlock(&collector->lock);
	set(&collector->letters_written, dead_letters_written(collector->dead));
	set(&collector->letters_dropped, dead_letters_dropped(collector->dead));
	each_reader(collector, tell_lines);
	for (size_t i = 0; i < collector->inputs->source_count; i++)
		source_reports_tell(collector->reports, collector->inputs->sources[i]);
	if (!collector->dirty && !atomic_load(&collector->reopen))
		return;
	enum weir_status status = save_dead_letters(collector, &error);
	if (status == WEIR_OK) {
		each_reader(collector, acknowledge);
		status = source_memory_save(collector->options.memory, &error);
	}
	if (status == WEIR_OK) {
		collector->dirty = false;
		weir_trouble_off(&collector->trouble, collector->options.log, "collector");
	} else if (status == WEIR_INVALID) { /* no later try can succeed: the next start reads again what is not safe */
		if (collector->status == WEIR_OK) {
			collector->status = status;
			collector->error = error;
		}
	} else {
		weir_trouble_on(&collector->trouble, collector->options.log, "collector", "%s; trying again each second",
		                error.text);
	}
}

static void switch_policy(struct collector *collector)
{
	const struct weir_policy *policy = atomic_exchange(&collector->next_policy, NULL);
	if (policy == NULL)
		return;
	flush(collector);
	enum weir_status status = inputs_set_policy(collector->inputs, policy, &collector->error);
	if (status == WEIR_OK)
		collector->policy_version = policy->version;
	else if (collector->status == WEIR_OK)
		collector->status = status;
}

/* Sleeps until a source may have more, a frame must go, or an acknowledgement may have come. */
static void wait_for_more(struct collector *collector)
{
	if (in_flight_count(collector->flight) > 0) {
		take_deliveries(collector, 1);
		return;
	}
	int timeout_ms = framer_pending(collector->framer) > 0 ? 1 : IDLE_WAIT_MS;
	struct pollfd polls[64];
	nfds_t count = 0;
	for (size_t i = 0; i < collector->inputs->source_count && count < 64; i++) {
		int fd = collector->inputs->sources[i]->ops->fd(collector->inputs->sources[i]);
		if (fd >= 0)
			polls[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	poll(polls, count, timeout_ms);
}

static bool read_round(struct collector *collector, bool *all_ended)
{
	bool any = false;
	*all_ended = true;
	for (size_t i = 0; i < collector->inputs->source_count && collector->status == WEIR_OK; i++) {
		bool ended;
		any |= read_chunk(collector, i, &ended);
		*all_ended &= ended;
	}
	return any;
}

/* What was read goes out and is acknowledged, within a bound; then it is remembered. */
static void finish(struct collector *collector)
{
	int64_t end_ms = weir_monotonic_ms() + STOP_LIMIT_MS;
	flush(collector);
	while (collector->status == WEIR_OK && in_flight_count(collector->flight) > 0 && weir_monotonic_ms() < end_ms)
		take_deliveries(collector, IDLE_WAIT_MS);
	take_safe_marks(collector);
	collector->dirty = true;
	save(collector);
}

static void *work(void *context)
{
	struct collector *collector = context;
	bool all_ended = false;
	while (!atomic_load(&collector->stop) && !all_ended && collector->status == WEIR_OK) {
		switch_policy(collector);
		bool any = read_round(collector, &all_ended);
		if (framer_pending(collector->framer) == 0 ? any
		                                           : weir_monotonic_ms() - collector->oldest_ms >= collector->linger_ms)
			flush(collector);
		take_deliveries(collector, 0);
		take_safe_marks(collector);
		if (weir_monotonic_ms() >= collector->save_due_ms)
			save(collector);
		if (!any && !all_ended)
			wait_for_more(collector);
	}
	finish(collector);
	atomic_store(&collector->ended, true);
	return NULL;
}

enum weir_status collector_new(const struct collector_options *options, struct collector **out,
                               struct weir_error *error)
{
	struct collector *collector = weir_alloc(1, sizeof *collector);
	collector->options = *options;
	collector->source_context = (struct source_context){
		.memory = options->memory, .line_max_bytes = (uint32_t)options->config->collector.line_max_bytes};
	collector->policy_version = options->policy->version;
	collector->linger_ms = options->config->bus.linger_ms;
	pthread_mutex_init(&collector->lock, NULL);
	collector->flight = in_flight_new();
	collector->framer = framer_new((uint32_t)options->config->bus.partitions, send_frame, collector);
	bool rotated = options->config->deadletter.rotate_bytes > 0;
	struct dead_letter_options dead = {.max_bytes = rotated ? INT64_MAX : options->config->deadletter.max_bytes,
	                                   .rate_per_second = options->config->deadletter.rate_per_second};
	collector->dead = dead_letters_new(options->dead_file, &dead);
	collector->reports = source_reports_new(options->log);
	enum weir_status status = options->bus->ops->producer_new(options->bus, &collector->producer, error);
	if (status == WEIR_OK)
		status = inputs_new(options->config, options->policy, &collector->source_context, collector->dead,
		                    &collector->inputs, error);
	if (status != WEIR_OK) {
		collector_free(collector);
		return status;
	}
	*out = collector;
	return WEIR_OK;
}

enum weir_status collector_start(struct collector *collector, struct weir_error *error)
{
	int failed = pthread_create(&collector->thread, NULL, work, collector);
	if (failed != 0)
		return weir_fail(error, WEIR_IO, "cannot start the collector's thread: %s", strerror(failed));
	collector->started = true;
	return WEIR_OK;
}

void collector_set_policy(struct collector *collector, const struct weir_policy *policy)
{
	atomic_store(&collector->next_policy, policy);
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
	if (collector->producer != NULL)
		collector->options.bus->ops->producer_free(collector->producer);
	inputs_free(collector->inputs);
	framer_free(collector->framer);
	in_flight_free(collector->flight);
	dead_letters_free(collector->dead);
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

void collector_dead_letters(struct collector *collector, uint64_t *written, uint64_t *dropped)
{
	*written = weir_counter_read(&collector->letters_written);
	*dropped = weir_counter_read(&collector->letters_dropped);
}

void collector_metrics(struct collector *collector, struct weir_text *text)
{
	struct record_counts counts;
	collector_counts(collector, &counts);
	weir_metrics_counter(text, "weir_lines_total", "Lines read.", counts.lines);
	weir_metrics_counter(text, "weir_records_total", "Well-formed records.", counts.records);
	weir_metrics_counter(text, "weir_clamped_total", "Records whose time lay ahead of the clock.", counts.clamped);
	weir_metrics_family(text, "weir_malformed_total", "counter", "Malformed lines by reason.");
	for (int i = FORMAT_NO_TIME; i < FORMAT_REASON_COUNT; i++) {
		struct weir_label label = {"reason", weir_span_of(format_reason_text((enum format_reason)i))};
		weir_metrics_uint(text, "weir_malformed_total", &label, 1, counts.malformed[i]);
	}
	inputs_metrics(collector->inputs, text);
	weir_metrics_counter(text, "weir_sent_frames_total", "Frames sent.", weir_counter_read(&collector->frames));
	weir_metrics_counter(text, "weir_sent_bytes_total", "Bytes of frames sent.",
	                     weir_counter_read(&collector->frame_bytes));
	const struct weir_histogram *histogram = &collector->acknowledgement;
	weir_metrics_family(text, "weir_acknowledgement_seconds", "histogram",
	                    "From sending a frame to its being durable.");
	weir_metrics_histogram(text, "weir_acknowledgement_seconds", NULL, 0, &weir_latency_scale, &histogram, 1);
}

/*
 * What the streams state about themselves, one family after another: asked by any thread, each source once a page, so
 * that a page's numbers belong together.
 */
#include "collector/follow/inputs.h"

#include "common/base/alloc.h"
#include "common/log/metrics.h"

#include <stdlib.h>
#include <string.h>

enum { STREAMS_SHOWN = 256 }; /* of a source */

/* A sample of one stream; false: it has none of this family. */
typedef bool family_sample(const struct source_status *status, double *value);

/* What is sent to a listening source is read or not there: nothing is known to wait. */
static bool has_lag(const struct source_status *status)
{
	return strcmp(status->kind, "syslog") != 0;
}

/* A topic's offset is the whole position. */
static bool has_incarnations(const struct source_status *status)
{
	return strcmp(status->kind, "kafka") != 0;
}

static bool position(const struct source_status *status, double *value)
{
	uint64_t mask = has_incarnations(status) ? (UINT64_C(1) << SOURCE_OFFSET_BITS) - 1 : UINT64_MAX;
	*value = (double)(status->position & mask);
	return true;
}

static bool incarnation(const struct source_status *status, double *value)
{
	*value = (double)(status->position >> SOURCE_OFFSET_BITS);
	return has_incarnations(status);
}

static bool lag_seconds(const struct source_status *status, double *value)
{
	*value = (double)status->lag_ms / 1000.0;
	return has_lag(status) && !status->no_lag_time;
}

static bool lag_bytes(const struct source_status *status, double *value)
{
	*value = (double)status->lag_bytes;
	return has_lag(status);
}

static bool lag_records(const struct source_status *status, double *value)
{
	*value = (double)status->lag_records;
	return status->counts_records;
}

static bool lines(const struct source_status *status, double *value)
{
	*value = (double)status->lines;
	return true;
}

static bool errors(const struct source_status *status, double *value)
{
	*value = (double)status->errors;
	return true;
}

static bool lost_bytes(const struct source_status *status, double *value)
{
	*value = (double)status->lost_bytes;
	return true;
}

static bool problem(const struct source_status *status, double *value)
{
	*value = status->problem[0] != '\0' && !status->reads_on;
	return true;
}

static bool replayable(const struct source_status *status, double *value)
{
	*value = status->replayable;
	return true;
}

static bool lost_records(const struct source_status *status, double *value)
{
	*value = (double)status->lost_records;
	return status->counts_records;
}

static bool skipped(const struct source_status *status, double *value)
{
	*value = (double)status->skipped;
	return strcmp(status->kind, "kafka") == 0;
}

static bool received(const struct source_status *status, double *value)
{
	*value = (double)status->received;
	return strcmp(status->kind, "syslog") == 0;
}

static bool dropped(const struct source_status *status, double *value)
{
	*value = (double)status->dropped;
	return strcmp(status->kind, "syslog") == 0;
}

static bool malformed(const struct source_status *status, double *value)
{
	*value = (double)status->malformed;
	return strcmp(status->kind, "syslog") == 0;
}

/* The streams' come first, up to STREAM_METRIC_COUNT. */
enum {
	POSITION,
	INCARNATION,
	LAG_SECONDS,
	LAG_BYTES,
	LAG_RECORDS,
	STREAM_LINES,
	STREAM_ERRORS,
	LOST_BYTES,
	LOST_RECORDS,
	SKIPPED,
	RECEIVED,
	DROPPED,
	STREAM_MALFORMED,
	PROBLEM,
	REPLAYABLE,
	STREAM_METRIC_COUNT,
	LINES = STREAM_METRIC_COUNT,
	RECORDS,
	CLAMPED,
	MALFORMED,
	METRIC_COUNT,
};

#define OF_STREAM WEIR_LABELS({"source", "the stream's name"})

static const struct weir_metric metrics[METRIC_COUNT] = {
	[POSITION] = {"weir_source_position", WEIR_GAUGE, "bytes or records", OF_STREAM,
                  "How far the stream has been read: bytes of a file, records of a topic or a journal."},
	[INCARNATION] = {"weir_source_incarnation", WEIR_GAUGE, "number", OF_STREAM,
                     "Which of the stream's files the position is in: it grows by one with each rotation or "
                     "truncation. Topics have none."},
	[LAG_SECONDS] = {"weir_source_lag_seconds", WEIR_GAUGE, "seconds", OF_STREAM,
                     "How long the oldest unread data has been waiting. If this grows, the collector is short of "
                     "processor time, or the bus does not take what it sends."},
	[LAG_BYTES] = {"weir_source_lag_bytes", WEIR_GAUGE, "bytes", OF_STREAM,
                   "Bytes that are known to be there and have not been read; compressed ones of a .gz file."},
	[LAG_RECORDS] = {"weir_source_lag_records", WEIR_GAUGE, "records", OF_STREAM,
                     "Records that have not been read, at most. Only sources that count records have it: topics and "
                     "journals."},
	[STREAM_LINES] = {"weir_source_lines_total", WEIR_COUNTER, "lines", OF_STREAM,
                      "Lines read from the stream since its source was opened."},
	[STREAM_ERRORS] = {"weir_source_errors_total", WEIR_COUNTER, "errors", OF_STREAM,
                       "Failed attempts to open or read the stream. The log has the reasons."},
	[LOST_BYTES] = {"weir_source_lost_bytes_total", WEIR_COUNTER, "bytes", OF_STREAM,
                    "Bytes of the log that were truncated or removed before they were read, as far as known. Rotate "
                    "by renaming, and keep rotated files for longer."},
	[LOST_RECORDS] = {"weir_source_lost_records_total", WEIR_COUNTER, "records", OF_STREAM,
                      "Records of a topic or a journal, at most, that were removed before they were read. Keep it for "
                      "longer."},
	[SKIPPED] = {"weir_source_skipped_total", WEIR_COUNTER, "messages", OF_STREAM,
                 "Messages of a topic that hold no line: tombstones and blank ones."},
	[RECEIVED] = {"weir_source_received_total", WEIR_COUNTER, "messages", OF_STREAM,
                  "Syslog messages received from the network."},
	[DROPPED] = {"weir_source_dropped_total", WEIR_COUNTER, "messages", OF_STREAM,
                 "Syslog messages that the kernel dropped because the receive buffer was full. Raise receive_buffer "
                 "and net.core.rmem_max, or send by TCP."},
	[STREAM_MALFORMED] = {"weir_source_malformed_total", WEIR_COUNTER, "messages", OF_STREAM,
                          "Syslog messages received with an unreadable header, cut off, or too long."},
	[PROBLEM] = {"weir_source_problem", WEIR_GAUGE, "1 or 0", OF_STREAM,
                 "1 while something keeps the stream from being read. The log says what."},
	[REPLAYABLE] = {"weir_source_replayable", WEIR_GAUGE, "1 or 0", OF_STREAM,
                    "1 if the stream can be read again from an earlier position. 0 if it gives each line only once: "
                    "its lines arrive at most once."},
	[LINES] = {"weir_lines_total", WEIR_COUNTER, "lines", WEIR_NO_LABELS,
               "Lines read from all sources, each counted once."},
	[RECORDS] = {"weir_records_total", WEIR_COUNTER, "records", WEIR_NO_LABELS, "Lines that were good records."},
	[CLAMPED] = {"weir_clamped_total", WEIR_COUNTER, "records", WEIR_NO_LABELS,
                 "Records whose time was ahead of the clock by more than collector.max_skew and was set to the clock. "
                 "If this grows, a clock is wrong: here, or where the log is written."},
	[MALFORMED] = {"weir_malformed_total", WEIR_COUNTER, "lines",
                   WEIR_LABELS({"reason",
                                "`no time`, `bad time`, `time out of range`, `line too long`, `bad cost`, "
                                "`not combined`, `not common`, `not json`, `not delimited`, `not logfmt`, `no match`, "
                                "`not syslog`, `not journal`"}),
                   "Lines that could not be read as records, by reason. If this grows, a format no longer fits its "
                   "log: the dead letters hold the lines."},
};

const struct weir_metric_table inputs_metric_table = {metrics, METRIC_COUNT};

static family_sample *const samples[STREAM_METRIC_COUNT] = {
	[POSITION] = position,          [INCARNATION] = incarnation, [LAG_SECONDS] = lag_seconds, [LAG_BYTES] = lag_bytes,
	[LAG_RECORDS] = lag_records,    [STREAM_LINES] = lines,      [STREAM_ERRORS] = errors,    [LOST_BYTES] = lost_bytes,
	[LOST_RECORDS] = lost_records,  [SKIPPED] = skipped,         [RECEIVED] = received,       [DROPPED] = dropped,
	[STREAM_MALFORMED] = malformed, [PROBLEM] = problem,         [REPLAYABLE] = replayable,
};

/* The statuses of all streams. The names in them are the sources': the lock is held. */
static struct source_status *ask(const struct inputs *inputs, size_t *count)
{
	struct source_status *statuses = weir_alloc(inputs->source_count * STREAMS_SHOWN, sizeof *statuses);
	*count = 0;
	for (size_t i = 0; i < inputs->source_count; i++) {
		struct source *source = inputs->sources[i];
		if (source == NULL)
			continue;
		size_t known = source->ops->status(source, statuses + *count, STREAMS_SHOWN);
		*count += known < STREAMS_SHOWN ? known : STREAMS_SHOWN;
	}
	return statuses;
}

void inputs_metrics(struct inputs *inputs, struct weir_text *text)
{
	pthread_mutex_lock(&inputs->lock);
	size_t count;
	struct source_status *statuses = ask(inputs, &count);
	for (size_t i = 0; i < STREAM_METRIC_COUNT; i++) {
		weir_metrics_family(text, &metrics[i]);
		for (size_t j = 0; j < count; j++) {
			struct weir_span name = weir_span_of(statuses[j].name);
			double value;
			if (statuses[j].whole && i != PROBLEM && i != STREAM_ERRORS)
				continue;
			if (samples[i](&statuses[j], &value))
				weir_metrics_double(text, &metrics[i], &name, value);
		}
	}
	pthread_mutex_unlock(&inputs->lock);
	free(statuses);
}

uint64_t inputs_lag_bytes(struct inputs *inputs)
{
	uint64_t sum = 0;
	size_t count;
	pthread_mutex_lock(&inputs->lock);
	struct source_status *statuses = ask(inputs, &count);
	for (size_t i = 0; i < count; i++)
		sum += statuses[i].lag_bytes;
	pthread_mutex_unlock(&inputs->lock);
	free(statuses);
	return sum;
}

void inputs_metrics_counts(const struct record_counts *counts, struct weir_text *text)
{
	weir_metrics_counter(text, &metrics[LINES], counts->lines);
	weir_metrics_counter(text, &metrics[RECORDS], counts->records);
	weir_metrics_counter(text, &metrics[CLAMPED], counts->clamped);
	weir_metrics_family(text, &metrics[MALFORMED]);
	for (int i = FORMAT_NO_TIME; i < FORMAT_REASON_COUNT; i++) {
		const char *words = format_reason_text((enum format_reason)i);
		if (words == NULL)
			continue;
		struct weir_span reason = weir_span_of(words);
		weir_metrics_uint(text, &metrics[MALFORMED], &reason, counts->malformed[i]);
	}
}

/* A source none of whose streams can be read. */
static bool source_ready(struct source *source, struct weir_text *why)
{
	size_t room = source->ops->status(source, NULL, 0);
	struct source_status *statuses = weir_alloc(room, sizeof *statuses);
	size_t count = source->ops->status(source, statuses, room);
	count = count < room ? count : room;
	bool whole = count > 0 && statuses[0].whole, ready = count == 0 || (whole && count == 1);
	size_t told = 0;
	for (size_t i = whole; i < count && !ready; i++) {
		ready = statuses[i].problem[0] == '\0' || statuses[i].reads_on;
		told = i;
	}
	if (whole && statuses[0].problem[0] != '\0') {
		ready = false;
		told = 0;
	}
	if (!ready)
		weir_text_printf(why, "%s: %s\n", statuses[told].name, statuses[told].problem);
	free(statuses);
	return ready;
}

bool inputs_ready(struct inputs *inputs, struct weir_text *why)
{
	bool ready = true;
	pthread_mutex_lock(&inputs->lock);
	for (size_t i = 0; i < inputs->source_count; i++) {
		if (inputs->sources[i] != NULL) {
			ready &= source_ready(inputs->sources[i], why);
		} else {
			weir_text_puts(why, "a source is not open\n");
			ready = false;
		}
	}
	pthread_mutex_unlock(&inputs->lock);
	return ready;
}

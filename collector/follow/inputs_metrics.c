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

static const struct {
	const char *name, *type, *help;
	family_sample *sample;
} families[] = {
	{"weir_source_position", "gauge",
     "How far the stream is read: a file's offset in bytes, a topic's and a journal's in records.", position},
	{"weir_source_incarnation", "gauge", "Which of the stream's files that is of.", incarnation},
	{"weir_source_lag_seconds", "gauge", "How long the oldest unread bytes wait.", lag_seconds},
	{"weir_source_lag_bytes", "gauge", "Bytes that are known and not yet read.", lag_bytes},
	{"weir_source_lag_records", "gauge", "Records that are known and not yet read, where they are counted.",
     lag_records},
	{"weir_source_lines_total", "counter", "Lines read since the source was opened.", lines},
	{"weir_source_errors_total", "counter", "Opens and reads that failed.", errors},
	{"weir_source_lost_bytes_total", "counter", "Bytes that a truncation took before they were read.", lost_bytes},
	{"weir_source_lost_records_total", "counter", "Records, at most, that were removed before they were read.",
     lost_records},
	{"weir_source_skipped_total", "counter", "Messages of a topic without a line in them.", skipped},
	{"weir_source_received_total", "counter", "Messages taken off the network.", received},
	{"weir_source_dropped_total", "counter", "Messages that the kernel had no room for while nobody read.", dropped},
	{"weir_source_malformed_total", "counter",
     "Messages received without a head that can be read, cut off, or too long.", malformed},
	{"weir_source_problem", "gauge", "1 while something keeps the stream from being read: the log says what.", problem},
	{"weir_source_replayable", "gauge", "0: what it gives can be had but once, so its lines arrive at most once.",
     replayable},
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
	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		weir_metrics_family(text, families[i].name, families[i].type, families[i].help);
		for (size_t j = 0; j < count; j++) {
			struct weir_label label = {"source", weir_span_of(statuses[j].name)};
			double value;
			if (statuses[j].whole && families[i].sample != problem && families[i].sample != errors)
				continue;
			if (families[i].sample(&statuses[j], &value))
				weir_metrics_double(text, families[i].name, &label, 1, value);
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
	weir_metrics_counter(text, "weir_lines_total", "Lines read, each once.", counts->lines);
	weir_metrics_counter(text, "weir_records_total", "Well-formed records.", counts->records);
	weir_metrics_counter(text, "weir_clamped_total", "Records whose time lay ahead of the clock.", counts->clamped);
	weir_metrics_family(text, "weir_malformed_total", "counter", "Malformed lines by reason.");
	for (int i = FORMAT_NO_TIME; i < FORMAT_REASON_COUNT; i++) {
		const char *reason = format_reason_text((enum format_reason)i);
		if (reason == NULL)
			continue;
		struct weir_label label = {"reason", weir_span_of(reason)};
		weir_metrics_uint(text, "weir_malformed_total", &label, 1, counts->malformed[i]);
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of the streams, one family after another. Any thread may ask. Each source is asked once per page, so that
 * a page's numbers are consistent.
 */
#include "collector/follow/inputs.h"

#include "collector/source/kinds/source_kinds.h"
#include "collector/source/source_metrics.h"
#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/log/metrics.h"

#include <stdlib.h>

enum { STREAMS_SHOWN = 256 }; /* per source */

enum {
	LINES,
	RECORDS,
	WORDS,
	CUT,
	CLAMPED,
	MALFORMED,
	METRIC_COUNT,
};

static const struct weir_metric metrics[METRIC_COUNT] = {
	[LINES] = {"weir_collector_lines_total", WEIR_COUNTER, "lines", WEIR_NO_LABELS,
               "Lines read from all sources, each counted once."},
	[RECORDS] = {"weir_collector_records_total", WEIR_COUNTER, "records", WEIR_NO_LABELS, "Lines that became records."},
	[WORDS] =
		{"weir_collector_ip_not_address_total", WEIR_COUNTER, "records", WEIR_NO_LABELS,
         "Records whose ip is no address, but a host name or any other word, and is counted as it stands. If this "
         "grows, the field ip may be the wrong one, or a list that needs client_ip."},
	[CUT] =
		{"weir_collector_cut_total", WEIR_COUNTER, "records", WEIR_NO_LABELS,
         "Records whose line lacks its end, as a server, a relay or line_max cut it. What is missing is absent: a zone "
         "that matches on it does not count them. If this grows, the log's writer should cut later."},
	[CLAMPED] = {"weir_collector_clamped_total", WEIR_COUNTER, "records", WEIR_NO_LABELS,
                 "Records whose time was more than collector.max_skew ahead of the clock and was set to the clock. "
                 "If this grows, a clock is wrong, here or where the log is written."},
	[MALFORMED] = {"weir_collector_malformed_total", WEIR_COUNTER, "lines",
                   WEIR_LABELS({"reason", "those of the formats that there are: put_reasons()"}),
                   "Lines that could not be read as records, by reason. If this grows, a format no longer fits its "
                   "log: see the lines in the dead letters."},
};

/* The statuses of a source's streams. */
struct stated {
	const struct inputs_ended *ended;
	struct source_status *statuses;
	size_t count;
};

/*
 * The statuses of all streams, a list of them for each source. Their names point into the sources, so the caller holds
 * the lock while using them.
 */
static struct stated *ask(const struct inputs *inputs)

{
	struct stated *stated = weir_alloc(inputs->source_count, sizeof *stated);
	for (size_t i = 0; i < inputs->source_count; i++) {
		struct source *source = inputs->sources[i];
		stated[i].ended = &inputs->ended[i];
		if (source == NULL)
			continue;
		size_t room = source->ops->status(source, NULL, 0);
		stated[i].statuses = weir_alloc(room, sizeof *stated[i].statuses);
		size_t count = source->ops->status(source, stated[i].statuses, room);
		stated[i].count = count < room ? count : room;
		for (size_t k = 0; k < stated[i].count; k++)
			if (stated[i].statuses[k].guarantee == 0)
				stated[i].statuses[k].guarantee = source->ops->guarantee;
	}
	return stated;
}

static void stated_free(struct stated *stated, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(stated[i].statuses);
	free(stated);
}

/* The metric by which a kind shows a row; NULL: it does not show it. */
static const struct source_metric *metric_of(const struct source_ops *kind, const struct weir_metric *row)
{
	const struct source_metric *const *metric = kind->metrics;
	while (*metric != NULL && (*metric)->row != row)
		metric++;
	return *metric;
}

typedef void each_row(void *context, const struct weir_metric *row);

/* Calls for each row that some kind shows, once. */
static void for_rows(each_row *call, void *context)
{
	size_t count;
	const struct source_ops *const *kinds = source_kinds(&count);
	for (size_t i = 0; i < count; i++)
		for (const struct source_metric *const *metric = kinds[i]->metrics; *metric != NULL; metric++) {
			size_t before = 0;
			while (before < i && metric_of(kinds[before], (*metric)->row) == NULL)
				before++;
			if (before == i)
				call(context, (*metric)->row);
		}
}

struct page {
	struct weir_text *text;
	const struct stated *stated;
	size_t count;
};

/* Appends a sample, or where it is one of some words, 1 beside the word. */
static void put_sample(struct weir_text *text, const struct source_metric *metric, const char *name, double value)
{
	struct weir_span labels[] = {weir_span_of(name), {0}};
	if (metric->words != NULL)
		labels[1] = weir_span_of(metric->words[(size_t)value]);
	weir_metrics_double(text, metric->row, labels, metric->words != NULL ? 1 : value);
}

/* What many streams have together, of all sources. */
struct together {
	const struct source_metric *metric; /* NULL: there are none */
	double value;
};

static void add_together(struct together *all, const struct source_metric *metric, double value)
{
	all->metric = metric;
	all->value = !metric->largest ? all->value + value : value > all->value ? value : all->value;
}

static void put_together(struct weir_text *text, const struct together *all, const char *name)
{
	if (all->metric != NULL)
		put_sample(text, all->metric, name, all->value);
}

/* One source's samples of a row, of streams that are shown. The others are one sample: so that sums are right. */
static void put_samples(struct weir_text *text, const struct weir_metric *row, const struct stated *stated,
                        struct together *others, struct together *ended)
{
	const struct source_metric *metric = metric_of(stated->ended->kind, row);
	double before;
	if (metric != NULL && row->type == WEIR_COUNTER && metric->sample(&stated->ended->counts, &before))
		add_together(ended, metric, before);
	for (size_t i = 0; metric != NULL && i < stated->count; i++) {
		const struct source_status *status = &stated->statuses[i];
		double value;
		if ((status->whole && !metric->of_whole) || !metric->sample(status, &value))
			continue;
		if (i < STREAMS_SHOWN)
			put_sample(text, metric, status->name, value);
		else
			add_together(others, metric, value);
	}
}

static void put_row(void *context, const struct weir_metric *row)
{
	const struct page *page = context;
	struct together others = {0}, ended = {0};
	weir_metrics_family(page->text, row);
	for (size_t i = 0; i < page->count; i++)
		put_samples(page->text, row, &page->stated[i], &others, &ended);
	put_together(page->text, &others, SOURCE_METRIC_OTHERS);
	put_together(page->text, &ended, SOURCE_METRIC_ENDED);
}

/* Lines are not summed: their readers' counts continue when the source is open again. */
void inputs_metrics_end(struct source *source, struct inputs_ended *ended)
{
	struct source_status *sum = &ended->counts;
	size_t room = source->ops->status(source, NULL, 0);
	struct source_status *statuses = weir_alloc(room, sizeof *statuses);
	size_t count = source->ops->status(source, statuses, room);
	for (size_t i = 0; i < count && i < room; i++) {
		const struct source_status *status = &statuses[i];
		sum->errors += status->errors;
		sum->lost_bytes += status->lost_bytes;
		sum->unknown_losses += status->unknown_losses;
		sum->lost_records += status->lost_records;
		for (size_t k = 0; k < SOURCE_OWN_COUNTS; k++)
			sum->own[k] += status->own[k];
	}
	free(statuses);
}

void inputs_metrics(struct inputs *inputs, struct weir_text *text)
{
	pthread_mutex_lock(&inputs->lock);
	struct stated *stated = ask(inputs);
	struct page page = {.text = text, .stated = stated, .count = inputs->source_count};
	for_rows(put_row, &page);
	pthread_mutex_unlock(&inputs->lock);
	stated_free(stated, page.count);
}

static void describe_row(void *context, const struct weir_metric *row)
{
	weir_metrics_describe(context, &(struct weir_metric_table){row, 1});
}

/* The reasons for malformed lines, as "`no time`, `bad time`, ...". */
static void put_reasons(struct weir_text *values)
{
	for (int i = FORMAT_NO_TIME; i < FORMAT_REASON_COUNT; i++) {
		const char *words = format_reason_text((enum format_reason)i);
		if (words != NULL)
			weir_text_printf(values, "%s`%s`", i > FORMAT_NO_TIME ? ", " : "", words);
	}
	weir_text_append(values, "", 1);
}

void inputs_metrics_describe(struct weir_text *text)
{
	for_rows(describe_row, text);
	for (int i = 0; i < METRIC_COUNT; i++) {
		struct weir_metric row = metrics[i];
		struct weir_text values = {0};
		if (i == MALFORMED) {
			put_reasons(&values);
			row.labels[0].values = values.at;
		}
		describe_row(text, &row);
		weir_text_deinit(&values);
	}
}

uint64_t inputs_lag_bytes(struct inputs *inputs)
{
	uint64_t sum = 0;
	pthread_mutex_lock(&inputs->lock);
	size_t count = inputs->source_count;
	struct stated *stated = ask(inputs);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < stated[i].count; j++)
			sum += stated[i].statuses[j].lag_bytes;
	pthread_mutex_unlock(&inputs->lock);
	stated_free(stated, count);
	return sum;
}

void inputs_metrics_counts(const struct record_counts *counts, struct weir_text *text)
{
	weir_metrics_counter(text, &metrics[LINES], counts->lines);
	weir_metrics_counter(text, &metrics[RECORDS], counts->records);
	weir_metrics_counter(text, &metrics[WORDS], counts->words);
	weir_metrics_counter(text, &metrics[CUT], counts->cut);
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

/* Whether a source has no problem as a whole, and can read a stream, or has none yet. If not, appends a problem. */
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
	if (!ready) {
		source_words_problem(why, &statuses[told]);
		weir_text_puts(why, "\n");
	}
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

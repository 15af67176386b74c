/* SPDX-License-Identifier: Apache-2.0 */
/* What a subscriber shows: its counters as Prometheus reads them, and whether its list is up to date. */
#include "deploy/gateways/subscriber/internal.h"

#include <math.h>

enum { BLIND_MS = 15000 };

enum {
	DECISIONS,
	ENTRIES,
	READY,
	LAG_RECORDS,
	ENDS_AGE,
	GAPS,
	REBUILDS,
	ERRORS,
	LEFT_OUT,
	UNFIT,
	GIVEN_UP,
	DELAY,
	METRIC_COUNT,
};

#define GATEWAY                                                                                                                         \
	{                                                                                                                                   \
		"gateway",                                                                                                                      \
			"the target as it is named, without a password or a command's words, and with its map where several are kept by one target" \
	}

static const struct weir_metric metrics[METRIC_COUNT] = {
	[DECISIONS] = {"weir_subscribe_decisions_total", WEIR_COUNTER, "records",
                   WEIR_LABELS(
					   GATEWAY,
					   {"result",
                        "`applied`, `older` (not newer than the last decision on its key), `over` (already ended), "
                        "`no_room` (the list is full), `other_zone`, `shadow`, `malformed` (not a decision)"}),
                   "Records read from the decisions topic, by result."},
	[ENTRIES] = {"weir_subscribe_entries", WEIR_GAUGE, "blocks", WEIR_LABELS(GATEWAY), "Blocks in force."},
	[READY] = {"weir_subscribe_ready", WEIR_GAUGE, "1 or 0", WEIR_LABELS(GATEWAY),
               "1 while the target's list is up to date. Otherwise 0: /readyz and the log say why."},
	[LAG_RECORDS] =
		{"weir_subscribe_lag_messages", WEIR_GAUGE, "records", WEIR_LABELS(GATEWAY),
         "Unread records on the decisions topic, as of weir_subscribe_ends_age_seconds ago. Absent before the "
         "topic was first read."},
	[ENDS_AGE] = {"weir_subscribe_ends_age_seconds", WEIR_GAUGE, "seconds", WEIR_LABELS(GATEWAY),
                  "Time since the bus last said where the topic ends. If this grows, the bus is down: new blocks and "
                  "lifts do not reach the list. Absent before the topic was first read."},
	[GAPS] = {"weir_subscribe_gaps_total", WEIR_COUNTER, "gaps", WEIR_LABELS(GATEWAY),
              "Gaps in the decisions topic that were skipped: records deleted by retention before they were "
              "read, or damaged."},
	[REBUILDS] = {"weir_subscribe_rebuilds_total", WEIR_COUNTER, "copies", WEIR_LABELS(GATEWAY),
                  "Times that the whole list was written to the target: at the start and after errors."},
	[ERRORS] = {"weir_subscribe_errors_total", WEIR_COUNTER, "errors", WEIR_LABELS(GATEWAY),
                "Times that the target failed or had lost its list."},
	[LEFT_OUT] = {"weir_subscribe_left_out_total", WEIR_COUNTER, "blocks", WEIR_LABELS(GATEWAY),
                  "Blocks left out because the list was full. Raise --max."},
	[UNFIT] = {"weir_subscribe_unfit_total", WEIR_COUNTER, "blocks", WEIR_LABELS(GATEWAY),
               "Times that a block was left out because this kind of target cannot hold its key."},
	[GIVEN_UP] = {"weir_subscribe_given_up_total", WEIR_COUNTER, "changes", WEIR_LABELS(GATEWAY),
                  "Changes that a webhook, or a mail program, refused for good, and that it is not told of again."},
	[DELAY] = {"weir_subscribe_delay_seconds", WEIR_HISTOGRAM, "seconds", WEIR_LABELS(GATEWAY),
               "Time from a decision's own time, which is that of its request, until it is in the target."},
};

const struct weir_metric_table subscriber_metric_table = {metrics, METRIC_COUNT};

static void decision_metrics(const struct subscriber_row *rows, size_t count, struct weir_text *page)
{
	static const char *const results[RESULT_COUNT] = {
		[RESULT_APPLIED] = "applied",     [RESULT_OLDER] = "older",           [RESULT_OVER] = "over",
		[RESULT_NO_ROOM] = "no_room",     [RESULT_OTHER_ZONE] = "other_zone", [RESULT_SHADOW] = "shadow",
		[RESULT_MALFORMED] = "malformed",
	};
	weir_metrics_family(page, &metrics[DECISIONS]);
	for (size_t i = 0; i < count; i++)
		for (int result = 0; result < RESULT_COUNT; result++) {
			struct weir_span values[] = {rows[i].gateway, weir_span_of(results[result])};
			weir_metrics_uint(page, &metrics[DECISIONS], values,
			                  weir_counter_read(&rows[i].subscriber->results[result]));
		}
}

/* One metric of all; value() of each, NAN: it is not known. */
static void put(const struct subscriber_row *rows, size_t count, const struct weir_metric *metric,
                double (*value)(const struct subscriber *subscriber), struct weir_text *page)
{
	weir_metrics_family(page, metric);
	for (size_t i = 0; i < count; i++) {
		double number = value(rows[i].subscriber);
		if (!isnan(number))
			weir_metrics_double(page, metric, &rows[i].gateway, number);
	}
}

static double entries(const struct subscriber *subscriber)
{
	return block_table_count(subscriber->table);
}

static double ready(const struct subscriber *subscriber)
{
	return atomic_load(&subscriber->in_place) ? 1 : 0;
}

static double lag(const struct subscriber *subscriber)
{
	const struct feed *feed = atomic_load(&subscriber->feed);
	return feed != NULL ? (double)feed_lag(feed) : NAN;
}

static double ends_age(const struct subscriber *subscriber)
{
	const struct feed *feed = atomic_load(&subscriber->feed);
	return feed != NULL ? (double)feed_ends_age_ms(feed) / 1000.0 : NAN;
}

static double gaps(const struct subscriber *subscriber)
{
	const struct feed *feed = atomic_load(&subscriber->feed);
	return feed != NULL ? (double)feed_gaps(feed) : 0;
}

static double rebuilds(const struct subscriber *subscriber)
{
	return (double)weir_counter_read(&subscriber->copies);
}

static double errors(const struct subscriber *subscriber)
{
	return (double)weir_counter_read(&subscriber->errors);
}

static double left_out(const struct subscriber *subscriber)
{
	return (double)block_table_left_out(subscriber->table);
}

static double unfit(const struct subscriber *subscriber)
{
	return (double)weir_counter_read(&subscriber->options.target->unfit);
}

static double given_up(const struct subscriber *subscriber)
{
	return (double)weir_counter_read(&subscriber->options.target->given_up);
}

void subscriber_metrics(const struct subscriber_row *rows, size_t count, struct weir_text *page)
{
	decision_metrics(rows, count, page);
	put(rows, count, &metrics[ENTRIES], entries, page);
	put(rows, count, &metrics[READY], ready, page);
	put(rows, count, &metrics[LAG_RECORDS], lag, page);
	put(rows, count, &metrics[ENDS_AGE], ends_age, page);
	put(rows, count, &metrics[GAPS], gaps, page);
	put(rows, count, &metrics[REBUILDS], rebuilds, page);
	put(rows, count, &metrics[ERRORS], errors, page);
	put(rows, count, &metrics[LEFT_OUT], left_out, page);
	put(rows, count, &metrics[UNFIT], unfit, page);
	put(rows, count, &metrics[GIVEN_UP], given_up, page);
	weir_metrics_family(page, &metrics[DELAY]);
	for (size_t i = 0; i < count; i++) {
		const struct weir_histogram *delay = &rows[i].subscriber->delay;
		weir_metrics_histogram_sample(page, &metrics[DELAY], &rows[i].gateway, &weir_delay_scale, &delay, 1);
	}
}

static void put_target_fault(struct subscriber *subscriber, struct weir_text *why)
{
	pthread_mutex_lock(&subscriber->reason_lock);
	weir_text_printf(why, "the target's list is not up to date%s%s\n", subscriber->reason[0] != '\0' ? ": " : "",
	                 subscriber->reason);
	pthread_mutex_unlock(&subscriber->reason_lock);
}

/* Ends the line, with what hinders the bus if it says so. */
static void put_cause(const struct subscriber *subscriber, struct weir_text *why)
{
	char problem[WEIR_ERROR_TEXT_BYTES];
	struct weir_bus *bus = subscriber->bus; /* it is there, as its feed is */
	if (bus->ops->problem(bus, problem, sizeof problem))
		weir_text_printf(why, ": %s", problem);
	weir_text_puts(why, "\n");
}

bool subscriber_ready(struct subscriber *subscriber, struct weir_text *why)
{
	const struct feed *feed = atomic_load(&subscriber->feed);
	if (feed == NULL)
		weir_text_puts(why, "waiting for the bus\n");
	else if (!atomic_load(&subscriber->caught_up))
		weir_text_printf(why, "reading existing decisions: %llu records to go\n", (unsigned long long)feed_lag(feed));
	else if (!atomic_load(&subscriber->in_place))
		put_target_fault(subscriber, why);
	else if (feed_ends_age_ms(feed) > BLIND_MS) {
		weir_text_printf(
			why,
			"the bus has not been heard of for %lld s: new blocks and lifts do not reach the list; blocks on "
			"it still end on time",
			(long long)feed_ends_age_ms(feed) / 1000);
		put_cause(subscriber, why);
	} else
		return true;
	return false;
}

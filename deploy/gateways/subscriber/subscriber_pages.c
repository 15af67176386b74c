/* SPDX-License-Identifier: Apache-2.0 */
/* What a subscriber shows: its counters as Prometheus reads them, and whether its list is up to date. */
#include "deploy/gateways/subscriber/internal.h"

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
	DELAY,
	METRIC_COUNT,
};

static const struct weir_metric metrics[METRIC_COUNT] = {
	[DECISIONS] = {"weir_subscribe_decisions_total", WEIR_COUNTER, "records",
                   WEIR_LABELS(
					   {"result",
                        "`applied`, `older` (not newer than the last decision on its key), `over` (already ended), "
                        "`no_room` (the list is full), `other_zone`, `shadow`, `malformed` (not a decision)"}),
                   "Records read from the decisions topic, by result."},
	[ENTRIES] = {"weir_subscribe_entries", WEIR_GAUGE, "blocks", WEIR_NO_LABELS, "Blocks in force."},
	[READY] = {"weir_subscribe_ready", WEIR_GAUGE, "1 or 0", WEIR_NO_LABELS,
               "1 while the target's list is up to date. Otherwise 0: /readyz and the log say why."},
	[LAG_RECORDS] = {"weir_subscribe_lag_records", WEIR_GAUGE, "records", WEIR_NO_LABELS,
                     "Unread records on the decisions topic, as of weir_subscribe_ends_age_seconds ago."},
	[ENDS_AGE] = {"weir_subscribe_ends_age_seconds", WEIR_GAUGE, "seconds", WEIR_NO_LABELS,
                  "Time since the bus last said where the topic ends. If this grows, the bus is down: new blocks and "
                  "lifts do not reach the list."},
	[GAPS] = {"weir_subscribe_gaps_total", WEIR_COUNTER, "gaps", WEIR_NO_LABELS,
              "Gaps in the decisions topic that were skipped: records deleted by retention before they were "
              "read, or damaged."},
	[REBUILDS] = {"weir_subscribe_rebuilds_total", WEIR_COUNTER, "copies", WEIR_NO_LABELS,
                  "Times that the whole list was written to the target: at the start and after errors."},
	[ERRORS] = {"weir_subscribe_errors_total", WEIR_COUNTER, "errors", WEIR_NO_LABELS,
                "Times that the target failed or had lost its list."},
	[LEFT_OUT] = {"weir_subscribe_left_out_total", WEIR_COUNTER, "blocks", WEIR_NO_LABELS,
                  "Blocks left out because the list was full. Raise --max."},
	[UNFIT] = {"weir_subscribe_unfit_total", WEIR_COUNTER, "blocks", WEIR_NO_LABELS,
               "Times that a block was left out because this kind of target cannot hold its key."},
	[DELAY] = {"weir_subscribe_delay_seconds", WEIR_HISTOGRAM, "seconds", WEIR_NO_LABELS,
               "Time from a decision's own time, which is that of its request, until it is in the target."},
};

const struct weir_metric_table subscriber_metric_table = {metrics, METRIC_COUNT};

static void decision_metrics(const struct subscriber *subscriber, struct weir_text *page)
{
	static const char *const results[RESULT_COUNT] = {
		[RESULT_APPLIED] = "applied",     [RESULT_OLDER] = "older",           [RESULT_OVER] = "over",
		[RESULT_NO_ROOM] = "no_room",     [RESULT_OTHER_ZONE] = "other_zone", [RESULT_SHADOW] = "shadow",
		[RESULT_MALFORMED] = "malformed",
	};
	weir_metrics_family(page, &metrics[DECISIONS]);
	for (int i = 0; i < RESULT_COUNT; i++) {
		struct weir_span result = weir_span_of(results[i]);
		weir_metrics_uint(page, &metrics[DECISIONS], &result, weir_counter_read(&subscriber->results[i]));
	}
}

void subscriber_metrics(const struct subscriber *subscriber, struct weir_text *page)
{
	const struct feed *feed = atomic_load(&subscriber->feed);
	const struct weir_histogram *delay = &subscriber->delay;
	decision_metrics(subscriber, page);
	weir_metrics_gauge(page, &metrics[ENTRIES], (double)block_table_count(subscriber->table));
	weir_metrics_gauge(page, &metrics[READY], atomic_load(&subscriber->in_place) ? 1 : 0);
	weir_metrics_gauge(page, &metrics[LAG_RECORDS], feed != NULL ? (double)feed_lag(feed) : 0);
	weir_metrics_gauge(page, &metrics[ENDS_AGE], feed != NULL ? (double)feed_ends_age_ms(feed) / 1000.0 : 0);
	weir_metrics_counter(page, &metrics[GAPS], feed != NULL ? feed_gaps(feed) : 0);
	weir_metrics_counter(page, &metrics[REBUILDS], weir_counter_read(&subscriber->copies));
	weir_metrics_counter(page, &metrics[ERRORS], weir_counter_read(&subscriber->errors));
	weir_metrics_counter(page, &metrics[LEFT_OUT], block_table_left_out(subscriber->table));
	weir_metrics_counter(page, &metrics[UNFIT], weir_counter_read(&subscriber->options.target->unfit));
	weir_metrics_histogram(page, &metrics[DELAY], &weir_latency_scale, &delay, 1);
}

bool subscriber_ready(const struct subscriber *subscriber, struct weir_text *why)
{
	const struct feed *feed = atomic_load(&subscriber->feed);
	if (feed == NULL)
		weir_text_puts(why, "waiting for the bus\n");
	else if (!atomic_load(&subscriber->caught_up))
		weir_text_printf(why, "reading existing decisions: %llu records to go\n", (unsigned long long)feed_lag(feed));
	else if (!atomic_load(&subscriber->in_place))
		weir_text_puts(why, "the target's list is not up to date: see the log\n");
	else
		return true;
	return false;
}

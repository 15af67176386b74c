/* What a subscriber shows: its counters as Prometheus reads them, and whether its list is true. */
#include "deploy/gateways/subscriber/internal.h"

static void decision_metrics(const struct subscriber *subscriber, struct weir_text *page)
{
	static const char *const results[RESULT_COUNT] = {
		[RESULT_APPLIED] = "applied",     [RESULT_OLDER] = "older",           [RESULT_OVER] = "over",
		[RESULT_NO_ROOM] = "no_room",     [RESULT_OTHER_ZONE] = "other_zone", [RESULT_SHADOW] = "shadow",
		[RESULT_MALFORMED] = "malformed",
	};
	weir_metrics_family(page, "weir_subscribe_decisions_total", "counter",
	                    "Records of the decisions topic by what became of them.");
	for (int i = 0; i < RESULT_COUNT; i++) {
		struct weir_label label = {"result", weir_span_of(results[i])};
		weir_metrics_uint(page, "weir_subscribe_decisions_total", &label, 1,
		                  weir_counter_read(&subscriber->results[i]));
	}
}

void subscriber_metrics(const struct subscriber *subscriber, struct weir_text *page)
{
	const struct feed *feed = atomic_load(&subscriber->feed);
	const struct weir_histogram *delay = &subscriber->delay;
	decision_metrics(subscriber, page);
	weir_metrics_gauge(page, "weir_subscribe_entries", "Live blocks.", (double)block_table_count(subscriber->table));
	weir_metrics_gauge(page, "weir_subscribe_ready", "Whether the target's list is true (1) or not known to be (0).",
	                   atomic_load(&subscriber->in_place) ? 1 : 0);
	weir_metrics_gauge(page, "weir_subscribe_lag_records", "Records of the decisions topic that were not read yet.",
	                   feed != NULL ? (double)feed_lag(feed) : 0);
	weir_metrics_gauge(page, "weir_subscribe_ends_age_seconds",
	                   "How long ago the bus said where the topic ends; lag_records is as of then.",
	                   feed != NULL ? (double)feed_ends_age_ms(feed) / 1000.0 : 0);
	weir_metrics_counter(page, "weir_subscribe_gaps_total", "Gaps in the topic that were passed over.",
	                     feed != NULL ? feed_gaps(feed) : 0);
	weir_metrics_counter(page, "weir_subscribe_rebuilds_total", "Times that the target's whole list was written.",
	                     weir_counter_read(&subscriber->copies));
	weir_metrics_counter(page, "weir_subscribe_errors_total", "Times that the target failed or had lost its list.",
	                     weir_counter_read(&subscriber->errors));
	weir_metrics_counter(page, "weir_subscribe_left_out_total", "Blocks left out because the list was full (--max).",
	                     block_table_left_out(subscriber->table));
	weir_metrics_counter(page, "weir_subscribe_unfit_total", "Blocks met whose keys the target cannot hold.",
	                     weir_counter_read(&subscriber->options.target->unfit));
	weir_metrics_family(page, "weir_subscribe_delay_seconds", "histogram",
	                    "From a decision's time to its being in the target.");
	weir_metrics_histogram(page, "weir_subscribe_delay_seconds", NULL, 0, &weir_latency_scale, &delay, 1);
}

bool subscriber_ready(const struct subscriber *subscriber, struct weir_text *why)
{
	const struct feed *feed = atomic_load(&subscriber->feed);
	if (feed == NULL)
		weir_text_puts(why, "waiting for the bus\n");
	else if (!atomic_load(&subscriber->caught_up))
		weir_text_printf(why, "reading the decisions that there are: %llu records to go\n",
		                 (unsigned long long)feed_lag(feed));
	else if (!atomic_load(&subscriber->in_place))
		weir_text_puts(why, "the target does not have the list: the log says why\n");
	else
		return true;
	return false;
}

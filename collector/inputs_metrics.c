/* What the streams' own counters say, one family after another: asked by any thread, taken from the sources' status. */
#include "collector/inputs.h"

#include "common/alloc.h"
#include "common/metrics.h"

#include <stdlib.h>

/* One family over all streams. */
static void stream_family(const struct inputs *inputs, struct weir_text *text, const char *name, const char *type,
                          const char *help, double (*value)(const struct source_status *))
{
	enum { STREAMS_SHOWN = 256 };
	struct source_status *statuses = weir_alloc(STREAMS_SHOWN, sizeof *statuses);
	weir_metrics_family(text, name, type, help);
	for (size_t i = 0; i < inputs->source_count; i++) {
		struct source *source = inputs->sources[i];
		size_t count = source->ops->status(source, statuses, STREAMS_SHOWN);
		for (size_t j = 0; j < count && j < STREAMS_SHOWN; j++) {
			struct weir_label label = {"source", weir_span_of(statuses[j].name)};
			weir_metrics_double(text, name, &label, 1, value(&statuses[j]));
		}
	}
	free(statuses);
}

static double lag_seconds(const struct source_status *status)
{
	return (double)status->lag_ms / 1000.0;
}

static double lag_bytes(const struct source_status *status)
{
	return (double)status->lag_bytes;
}

static double stream_lines(const struct source_status *status)
{
	return (double)status->lines;
}

static double stream_errors(const struct source_status *status)
{
	return (double)status->errors;
}

static double lost_bytes(const struct source_status *status)
{
	return (double)status->lost_bytes;
}

void inputs_metrics(const struct inputs *inputs, struct weir_text *text)
{
	stream_family(inputs, text, "weir_source_lag_seconds", "gauge", "How long the oldest unread bytes wait.",
	              lag_seconds);
	stream_family(inputs, text, "weir_source_lag_bytes", "gauge", "Bytes that are known and not yet read.", lag_bytes);
	stream_family(inputs, text, "weir_source_lines_total", "counter", "Lines read.", stream_lines);
	stream_family(inputs, text, "weir_source_errors_total", "counter", "Opens and reads that failed.", stream_errors);
	stream_family(inputs, text, "weir_source_lost_bytes_total", "counter",
	              "Bytes that a truncation took before they were read.", lost_bytes);
}

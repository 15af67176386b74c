/* SPDX-License-Identifier: Apache-2.0 */
/* The rows, and how a sample of each is read from a status. */
#include "collector/source/source_metrics.h"

#include "collector/source/source_words.h"

#define ROW(name) static const struct weir_metric name##_row

/* ---- positions ---- */

ROW(position) = {"weir_source_position", WEIR_GAUGE, "bytes or records", SOURCE_METRIC_LABELS,
                 "How far the stream has been read, in bytes of a file or records of a topic or journal."};

static bool position(const struct source_status *status, double *value)
{
	*value = (double)(status->position & ((UINT64_C(1) << SOURCE_OFFSET_BITS) - 1));
	return true;
}

static bool offset(const struct source_status *status, double *value)
{
	*value = (double)status->position;
	return true;
}

const struct source_metric source_metric_position = {&position_row, position, false, false, NULL};
const struct source_metric source_metric_offset = {&position_row, offset, false, false, NULL};

ROW(incarnation) = {"weir_source_incarnation", WEIR_GAUGE, "number", SOURCE_METRIC_LABELS,
                    "Which of the stream's files the position is in. It grows by one with each rotation or truncation; "
                    "topics have none."};

static bool incarnation(const struct source_status *status, double *value)
{
	*value = (double)(status->position >> SOURCE_OFFSET_BITS);
	return true;
}

const struct source_metric source_metric_incarnation = {&incarnation_row, incarnation, false, true, NULL};

ROW(lines) = {"weir_source_lines_total", WEIR_COUNTER, "lines", SOURCE_METRIC_LABELS,
              "Lines read from the stream since weir began. The count continues where its source is opened anew, so "
              "(ended) has none."};

static bool lines(const struct source_status *status, double *value)
{
	*value = (double)status->lines;
	return true;
}

const struct source_metric source_metric_lines = {&lines_row, lines, false, false, NULL};

/* ---- what waits ---- */

/* Nothing is known of what waits in a stream that cannot be read: 0 would say that nothing does. */
static bool is_unreadable(const struct source_status *status)
{
	return status->problem[0] != '\0' && !status->reads_on;
}

ROW(lag_seconds) = {"weir_source_lag_seconds", WEIR_GAUGE, "seconds", SOURCE_METRIC_LABELS,
                    "How long the oldest unread data has been waiting. If this grows, the collector is short of CPU "
                    "time, or the bus does not accept what it sends. Absent while the stream cannot be read."};

static bool lag_seconds(const struct source_status *status, double *value)
{
	*value = (double)status->lag_ms / 1000.0;
	return !status->no_lag_time && !is_unreadable(status);
}

const struct source_metric source_metric_lag_seconds = {&lag_seconds_row, lag_seconds, false, true, NULL};

ROW(lag_bytes) = {"weir_source_lag_bytes", WEIR_GAUGE, "bytes", SOURCE_METRIC_LABELS,
                  "Bytes known to exist that have not been read; for a compressed file, compressed bytes. Absent while "
                  "the stream cannot be read."};

static bool lag_bytes(const struct source_status *status, double *value)
{
	*value = (double)status->lag_bytes;
	return !is_unreadable(status);
}

const struct source_metric source_metric_lag_bytes = {&lag_bytes_row, lag_bytes, false, false, NULL};

ROW(lag_records) = {"weir_source_lag_messages", WEIR_GAUGE, "records", SOURCE_METRIC_LABELS,
                    "Upper bound of the records that have not been read. Only topics and journals have it."};

static bool lag_records(const struct source_status *status, double *value)
{
	*value = (double)status->lag_records;
	return status->counts_records;
}

const struct source_metric source_metric_lag_records = {&lag_records_row, lag_records, false, false, NULL};

/* ---- what is lost or wrong ---- */

ROW(errors) = {"weir_source_errors_total", WEIR_COUNTER, "errors", SOURCE_METRIC_LABELS,
               "Failed attempts to open or read the stream. See the log for the reasons."};

static bool errors(const struct source_status *status, double *value)
{
	*value = (double)status->errors;
	return true;
}

const struct source_metric source_metric_errors = {&errors_row, errors, true, false, NULL};

ROW(lost_bytes) = {
	"weir_source_lost_bytes_total", WEIR_COUNTER, "bytes", SOURCE_METRIC_LABELS,
	"Bytes of the log that were truncated, moved away or removed before they were read, as far as known. "
	"The log names the file and the position. Rotate by renaming, and keep rotated files for longer. A loss whose "
	"place was not saved when the source was opened anew is found and counted again."};

static bool lost_bytes(const struct source_status *status, double *value)
{
	*value = (double)status->lost_bytes;
	return true;
}

const struct source_metric source_metric_lost_bytes = {&lost_bytes_row, lost_bytes, false, false, NULL};

ROW(unknown_losses) = {
	"weir_source_unknown_losses_total", WEIR_COUNTER, "losses", SOURCE_METRIC_LABELS,
	"Times that the log was truncated, cut or removed, and it is not known how much behind the position was lost, if "
	"anything was. The log names the file and the position. Rotate by renaming, and keep rotated files for longer."};

static bool unknown_losses(const struct source_status *status, double *value)
{
	*value = (double)status->unknown_losses;
	return true;
}

const struct source_metric source_metric_unknown_losses = {&unknown_losses_row, unknown_losses, false, false, NULL};

ROW(lost_records) = {
	"weir_source_lost_messages_total", WEIR_COUNTER, "records", SOURCE_METRIC_LABELS,
	"Upper bound of the records of a topic or journal that were removed before they were read. Keep it "
	"for longer. A loss whose place was not saved when the source was opened anew is found and counted again."};

static bool lost_records(const struct source_status *status, double *value)
{
	*value = (double)status->lost_records;
	return status->counts_records || status->lost_records > 0; /* a loss stays, whatever is not known now */
}

const struct source_metric source_metric_lost_records = {&lost_records_row, lost_records, false, false, NULL};

ROW(skipped) = {"weir_source_skipped_total", WEIR_COUNTER, "messages", SOURCE_METRIC_LABELS,
                "Messages of a topic or queue without a line: tombstones and blank messages."};

static bool skipped(const struct source_status *status, double *value)
{
	*value = (double)status->own[SOURCE_OWN_SKIPPED];
	return true;
}

const struct source_metric source_metric_skipped = {&skipped_row, skipped, false, false, NULL};

ROW(problem) = {"weir_source_problem", WEIR_GAUGE, "1 or 0", SOURCE_METRIC_LABELS,
                "1 while the stream cannot be read. The log says why."};

static bool problem(const struct source_status *status, double *value)
{
	*value = is_unreadable(status);
	return true;
}

const struct source_metric source_metric_problem = {&problem_row, problem, true, true, NULL};

ROW(replayable) = {"weir_source_replayable", WEIR_GAUGE, "1 or 0", SOURCE_METRIC_LABELS,
                   "1 if the stream can be read again from an earlier position. 0 if it provides each line only once, "
                   "so its lines arrive at most once."};

static bool replayable(const struct source_status *status, double *value)
{
	(void)status;
	*value = 1;
	return true;
}

static bool unreplayable(const struct source_status *status, double *value)
{
	(void)status;
	*value = 0;
	return true;
}

const struct source_metric source_metric_replayable = {&replayable_row, replayable, false, true, NULL};
const struct source_metric source_metric_unreplayable = {&replayable_row, unreplayable, false, true, NULL};

ROW(guarantee) = {
	"weir_source_guarantee", WEIR_GAUGE, "1",
	WEIR_LABELS({"source", "the stream's name, or (others): those beyond 256 of a source, of which the weakest counts"},
                {"guarantee", "exactly once, at least once or at most once"}),
	"How often each line is judged, through crashes of weir and of what it reads from."};

static bool guarantee(const struct source_status *status, double *value)
{
	*value = SOURCE_EXACTLY_ONCE - status->guarantee;
	return !status->whole;
}

const struct source_metric source_metric_guarantee = {&guarantee_row, guarantee, false, true, source_guarantees};

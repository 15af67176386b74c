/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The consumer group: partitions that come and go, and commits.
 *
 * When a partition is assigned, its offset is asked for, and it is read from
 * there. When it is revoked, it is not given back at once: nothing more is handed
 * out, the acknowledgements of what was are awaited, and its offset is committed.
 * So the next collector begins where this one ended. If that exceeds a bound, or
 * the membership is lost already, the next one begins a little earlier, and
 * limiters drop what comes twice. A committed offset never passes a line that has
 * not arrived.
 */
#include "collector/source/kafka/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	GIVE_MS = 10000,       /* how long to wait for acknowledgements of what was handed out */
	RETRY_MS = 500,        /* between attempts to read the offsets; doubles each time */
	RETRY_MOST_MS = 30000, /* up to this */
	COMMIT_PERIOD_MS = 500,
	COMMIT_WAIT_MS = 10000, /* how long to wait for an answer, before the commit counts as failed */
	LEAVE_MS = 3000,
	END_MS = 2000,
};

/* ---- commits ---- */

/* Whether everything about a partition that may be committed is. */
static bool is_committed(const struct kafka_stream *stream)
{
	return kafka_low_water(stream) <= stream->committed && stream->marked == stream->stopped;
}

static void add_commit(rd_kafka_topic_partition_list_t *list, const struct kafka_source *source,
                       struct kafka_stream *stream)
{
	rd_kafka_topic_partition_t *at = rd_kafka_topic_partition_list_add(list, stream->topic, stream->partition);
	at->offset = kafka_low_water(stream);
	kafka_mark_offset(source, at, stream->stopped);
	stream->marking = stream->stopped;
}

/*
 * Commits what is not committed yet; at most one commit is in progress. While there is a problem everything is
 * committed again, because an answer shows that the problem is over.
 */
static void commit(struct kafka_source *source, int64_t now_ms)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)source->stream_count + 1);
	for (size_t i = 0; i < source->stream_count; i++) {
		struct kafka_stream *stream = source->streams[i];
		if (stream->assigned && (!is_committed(stream) || source->problem[0] != '\0'))
			add_commit(list, source, stream);
	}
	source->commit_due = false;
	source->commit_ms = now_ms;
	source->committing = list->cnt > 0 && rd_kafka_commit_queue(source->handle, list, source->replies, NULL, NULL) == 0;
	rd_kafka_topic_partition_list_destroy(list);
}

static void take_committed(struct kafka_source *source, rd_kafka_event_t *event)
{
	const rd_kafka_topic_partition_list_t *list = rd_kafka_event_topic_partition_list(event);
	rd_kafka_resp_err_t code = rd_kafka_event_error(event);
	for (int i = 0; list != NULL && i < list->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
		const rd_kafka_topic_partition_t *at = &list->elems[i];
		struct kafka_stream *stream = kafka_find(source, at->topic, at->partition);
		if (at->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
			code = at->err;
		} else if (stream != NULL) {
			stream->committed = at->offset > stream->committed ? at->offset : stream->committed;
			stream->marked = stream->marking;
		}
	}
	switch (code) {
	case RD_KAFKA_RESP_ERR_NO_ERROR:
		source->commit_refused = false;
		kafka_succeeded(source);
		return;
	case RD_KAFKA_RESP_ERR__NO_OFFSET: return;
	case RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS:
	case RD_KAFKA_RESP_ERR_NOT_COORDINATOR:
	case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
	case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
	case RD_KAFKA_RESP_ERR__WAIT_COORD:
	case RD_KAFKA_RESP_ERR__TRANSPORT:
	case RD_KAFKA_RESP_ERR__TIMED_OUT: break; /* the causes of these are reported elsewhere */
	case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
	case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID: source->due_ms = 0; break; /* others have the partitions now */
	default: kafka_problem(source, "cannot commit offsets: %s", rd_kafka_err2str(code)); source->commit_refused = true;
	}
	source->commit_due = true;
}

static void take_replies(struct kafka_source *source, int timeout_ms, int64_t now_ms)
{
	rd_kafka_event_t *event;
	while ((event = weir_kafka_queue_poll(source->replies, timeout_ms)) != NULL) {
		if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_OFFSET_COMMIT) {
			take_committed(source, event);
			source->committing = false;
		}
		rd_kafka_event_destroy(event);
		timeout_ms = 0;
	}
	if (source->committing && now_ms - source->commit_ms > COMMIT_WAIT_MS)
		source->committing = false;
}

static bool all_committed(const struct kafka_source *source)
{
	for (size_t i = 0; i < source->stream_count; i++)
		if (source->streams[i]->assigned && !is_committed(source->streams[i]))
			return false;
	return true;
}

/* ---- taking partitions ---- */

void kafka_assign(struct kafka_source *source)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)source->stream_count + 1);
	for (size_t i = 0; i < source->stream_count; i++) {
		const struct kafka_stream *stream = source->streams[i];
		if (stream->assigned && !stream->stopped)
			rd_kafka_topic_partition_list_add(list, stream->topic, stream->partition)->offset =
				kafka_fetch_offset(stream);
	}
	rd_kafka_assign(source->handle, list);
	rd_kafka_topic_partition_list_destroy(list);
}

static enum weir_status ask_cluster(struct kafka_source *source, struct weir_error *error)
{
	if (source->cluster != NULL)
		return WEIR_OK;
	char *id = rd_kafka_clusterid(source->handle, KAFKA_ASK_MS);
	if (id == NULL)
		return weir_fail(error, WEIR_IO, "the brokers have not reported the cluster's id");
	source->cluster = weir_copy(id, strlen(id));
	rd_kafka_mem_free(source->handle, id);
	return WEIR_OK;
}

/* Whether all that was handed out of the partitions is acknowledged: before, taking them would move positions back. */
static bool are_settled(const struct kafka_source *source, const rd_kafka_topic_partition_list_t *list)
{
	for (int i = 0; i < list->cnt; i++) {
		const struct kafka_stream *stream = kafka_find(source, list->elems[i].topic, list->elems[i].partition);
		if (stream != NULL && stream->safe < stream->handed)
			return false;
	}
	return true;
}

/* Takes the partitions whose beginnings are known; the others stay in the list. @param why  some beginnings are not */
static void take_known(struct kafka_source *source, const enum kafka_begin *begin, const char *why)
{
	rd_kafka_topic_partition_list_t *given = source->given;
	source->given = NULL;
	for (int i = 0; i < given->cnt; i++) {
		const rd_kafka_topic_partition_t *at = &given->elems[i];
		if (begin[i] != KAFKA_WAITING) {
			kafka_take(source, at, begin[i]);
			continue;
		}
		if (source->given == NULL)
			source->given = rd_kafka_topic_partition_list_new(given->cnt);
		rd_kafka_topic_partition_list_add(source->given, at->topic, at->partition);
		kafka_topic_problem(source, at->topic, why);
	}
	if (source->state == KAFKA_TAKING || source->given == NULL || source->given->cnt < given->cnt)
		kafka_assign(source); /* only if something is new, as it drops what was prefetched */
	rd_kafka_topic_partition_list_destroy(given);
	source->state = KAFKA_READING;
	source->commit_due = true; /* so that the beginning of a new partition is fixed for good */
}

/* Each attempt may block reading for KAFKA_ASK_MS, so those for partitions without a leader become rarer and rarer. */
static void take_given(struct kafka_source *source, int64_t now_ms)
{
	struct weir_error error = {.text = ""};
	if (now_ms < source->due_ms || !are_settled(source, source->given))
		return;
	enum kafka_begin *begin = weir_alloc((size_t)source->given->cnt + 1, sizeof *begin);
	enum weir_status status = ask_cluster(source, &error);
	if (status == WEIR_OK)
		status = kafka_begin_offsets(source, source->given, begin, &error);
	if (status == WEIR_OK) {
		kafka_look_at_topics(source);
		take_known(source, begin, error.text);
		kafka_succeeded(source);
	} else {
		kafka_problem(source, "%s", error.text);
	}
	if (source->given != NULL) {
		source->due_ms = weir_monotonic_ms() + source->pause_ms;
		source->pause_ms = 2 * source->pause_ms < RETRY_MOST_MS ? 2 * source->pause_ms : RETRY_MOST_MS;
	}
	free(begin);
}

/* ---- giving partitions back ---- */

static void drop_given(struct kafka_source *source)
{
	if (source->given != NULL)
		rd_kafka_topic_partition_list_destroy(source->given);
	source->given = NULL;
}

static void let_go(struct kafka_source *source)
{
	if (source->pending != NULL)
		rd_kafka_event_destroy(source->pending);
	source->pending = NULL;
	source->last = NULL;
	drop_given(source);
	kafka_drop_all(source);
	rd_kafka_assign(source->handle, NULL);
	source->state = KAFKA_READING;
	source->commit_refused = false; /* nothing is left to commit, so no answer would end the problem */
}

static void give_back(struct kafka_source *source, int64_t now_ms)
{
	if (now_ms < source->due_ms) {
		if (!kafka_settled(source) || source->committing)
			return;
		if (!all_committed(source)) {
			commit(source, now_ms);
			if (source->committing)
				return;
		}
	}
	let_go(source);
}

static void take_rebalance(struct kafka_source *source, rd_kafka_event_t *event, int64_t now_ms)
{
	if (rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
		drop_given(source);
		source->given = rd_kafka_topic_partition_list_copy(rd_kafka_event_topic_partition_list(event));
		source->state = KAFKA_TAKING;
		source->due_ms = now_ms;
		source->pause_ms = RETRY_MS;
	} else if (rd_kafka_assignment_lost(source->handle) || source->state == KAFKA_TAKING) {
		let_go(source);
	} else {
		source->state = KAFKA_GIVING;
		source->due_ms = now_ms + GIVE_MS;
	}
}

void kafka_take_news(struct kafka_source *source, rd_kafka_event_t *event, int64_t now_ms)
{
	if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE)
		take_rebalance(source, event, now_ms);
	else if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR)
		kafka_take_error(source, event, now_ms);
	rd_kafka_event_destroy(event);
}

void kafka_serve(struct kafka_source *source, int64_t now_ms)
{
	take_replies(source, 0, now_ms);
	if (source->state == KAFKA_GIVING)
		give_back(source, now_ms);
	else if (source->given != NULL)
		take_given(source, now_ms);
	if (source->state != KAFKA_READING)
		return;
	kafka_look_again(source, now_ms);
	if ((source->commit_due || source->problem[0] != '\0') && !source->committing &&
	    now_ms - source->commit_ms >= COMMIT_PERIOD_MS)
		commit(source, now_ms);
}

/* ---- the end ---- */

void kafka_leave(struct kafka_source *source)
{
	int64_t end_ms = weir_monotonic_ms() + KAFKA_ASK_MS;
	while (weir_monotonic_ms() < end_ms && (source->committing || !all_committed(source))) {
		if (!source->committing)
			commit(source, weir_monotonic_ms());
		if (!source->committing)
			break;
		take_replies(source, 50, weir_monotonic_ms());
	}
	if (source->pending != NULL)
		rd_kafka_event_destroy(source->pending);
	drop_given(source);
	rd_kafka_queue_destroy(source->queue);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(source->handle);
	rd_kafka_error_t *failed = rd_kafka_consumer_close_queue(source->handle, queue);
	end_ms = weir_monotonic_ms() + LEAVE_MS;
	while (failed == NULL && !rd_kafka_consumer_closed(source->handle) && weir_monotonic_ms() < end_ms) {
		rd_kafka_event_t *event = weir_kafka_queue_poll(queue, 50);
		if (event != NULL && rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE)
			rd_kafka_assign(source->handle, NULL);
		if (event != NULL)
			rd_kafka_event_destroy(event);
	}
	if (failed != NULL)
		rd_kafka_error_destroy(failed);
	rd_kafka_queue_destroy(queue);
	rd_kafka_queue_destroy(source->replies);
	weir_kafka_end(source->handle, END_MS);
}

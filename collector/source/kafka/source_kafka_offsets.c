/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a partition begins: at the group's committed offset, or where the
 * configuration says. Both become absolute offsets before anything is fetched, so
 * that no setting of librdkafka decides, and a crash before the first line does
 * not move the beginning.
 */
#include "collector/source/kafka/internal.h"

#include "common/base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char stopped_mark[] = " stopped";

void kafka_mark_offset(const struct kafka_source *source, rd_kafka_topic_partition_t *at, bool stopped)
{
	char text[48];
	snprintf(text, sizeof text, "generation=%" PRId64 "%s", source->config.generation, stopped ? stopped_mark : "");
	at->metadata_size = strlen(text);
	at->metadata = strdup(text); /* librdkafka frees it with the list */
}

/* Fills in the first or the next offsets. One below 0 could not be read: error says why. */
static void ask_ends(struct kafka_source *source, rd_kafka_topic_partition_list_t *list, int64_t which,
                     struct weir_error *error)
{
	for (int i = 0; i < list->cnt; i++)
		list->elems[i].offset = which;
	if (list->cnt == 0)
		return;
	rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(source->handle, list, KAFKA_ASK_MS);
	for (int i = 0; i < list->cnt; i++) {
		rd_kafka_topic_partition_t *at = &list->elems[i];
		rd_kafka_resp_err_t own = code != RD_KAFKA_RESP_ERR_NO_ERROR ? code : at->err;
		if (own == RD_KAFKA_RESP_ERR_NO_ERROR && at->offset < 0)
			own = RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE;
		if (own == RD_KAFKA_RESP_ERR_NO_ERROR)
			continue;
		at->offset = KAFKA_NO_OFFSET;
		(void)weir_fail(error, WEIR_IO, "cannot read the offsets of %s/%" PRId32 ": %s", at->topic, at->partition,
		                rd_kafka_err2str(own));
	}
}

enum weir_status kafka_extent(struct kafka_source *source, const char *topic, int32_t partition, int64_t *first,
                              int64_t *next, struct weir_error *error)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_list_add(list, topic, partition);
	ask_ends(source, list, RD_KAFKA_OFFSET_BEGINNING, error);
	*first = list->elems[0].offset;
	if (*first >= 0)
		ask_ends(source, list, RD_KAFKA_OFFSET_END, error);
	*next = list->elems[0].offset;
	rd_kafka_topic_partition_list_destroy(list);
	return *first >= 0 && *next >= 0 ? WEIR_OK : WEIR_IO;
}

enum weir_status kafka_partitions(struct kafka_source *source, const char *topic, int32_t *count,
                                  struct weir_error *error)
{
	const struct rd_kafka_metadata *metadata = NULL;
	rd_kafka_topic_t *handle = rd_kafka_topic_new(source->handle, topic, NULL);
	rd_kafka_resp_err_t code =
		handle != NULL ? rd_kafka_metadata(source->handle, 0, handle, &metadata, KAFKA_ASK_MS) : rd_kafka_last_error();
	if (metadata != NULL) {
		code = metadata->topic_cnt == 1 ? metadata->topics[0].err : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
		*count = metadata->topic_cnt == 1 ? metadata->topics[0].partition_cnt : 0;
		rd_kafka_metadata_destroy(metadata);
	}
	if (handle != NULL)
		rd_kafka_topic_destroy(handle);
	return code == RD_KAFKA_RESP_ERR_NO_ERROR
	           ? WEIR_OK
	           : weir_fail(error, WEIR_IO, "cannot read the partitions of %s: %s", topic, rd_kafka_err2str(code));
}

/* An offset that was committed for another generation, an earlier topic, is ignored. One set by hand is used. */
static enum kafka_begin begin_of(const struct kafka_source *source, const rd_kafka_topic_partition_t *committed)
{
	char ours[48];
	static const char mark[] = "generation=";
	if (committed->offset < 0)
		return KAFKA_NEW;
	if (committed->metadata == NULL || committed->metadata_size < strlen(mark) ||
	    memcmp(committed->metadata, mark, strlen(mark)) != 0)
		return KAFKA_KNOWN;
	size_t length =
		(size_t)snprintf(ours, sizeof ours, "%s%" PRId64 "%s", mark, source->config.generation, stopped_mark);
	if (committed->metadata_size == length && memcmp(committed->metadata, ours, length) == 0)
		return KAFKA_STOPPED;
	length -= strlen(stopped_mark);
	return committed->metadata_size == length && memcmp(committed->metadata, ours, length) == 0 ? KAFKA_KNOWN
	                                                                                            : KAFKA_NEW;
}

static enum weir_status ask_committed(struct kafka_source *source, rd_kafka_topic_partition_list_t *list,
                                      struct weir_error *error)
{
	rd_kafka_resp_err_t code = rd_kafka_committed(source->handle, list, KAFKA_ASK_MS);
	for (int i = 0; i < list->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
		code = list->elems[i].err;
	return code == RD_KAFKA_RESP_ERR_NO_ERROR
	           ? WEIR_OK
	           : weir_fail(error, WEIR_IO, "cannot read the consumer group's offsets: %s", rd_kafka_err2str(code));
}

/* Commits the offsets in the list, and waits for the answer. */
static enum weir_status commit_ends(struct kafka_source *source, rd_kafka_topic_partition_list_t *list,
                                    struct weir_error *error)
{
	for (int i = 0; i < list->cnt; i++)
		kafka_mark_offset(source, &list->elems[i], false);
	rd_kafka_queue_t *answers = rd_kafka_queue_new(source->handle);
	rd_kafka_resp_err_t code = rd_kafka_commit_queue(source->handle, list, answers, NULL, NULL);
	rd_kafka_event_t *answer = code == RD_KAFKA_RESP_ERR_NO_ERROR ? weir_kafka_queue_poll(answers, KAFKA_ASK_MS) : NULL;
	if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
		code = answer != NULL ? rd_kafka_event_error(answer) : RD_KAFKA_RESP_ERR__TIMED_OUT;
	if (answer != NULL)
		rd_kafka_event_destroy(answer);
	rd_kafka_queue_destroy(answers);
	return code == RD_KAFKA_RESP_ERR_NO_ERROR
	           ? WEIR_OK
	           : weir_fail(error, WEIR_IO, "cannot commit offsets: %s", rd_kafka_err2str(code));
}

/*
 * A topic of which the group has committed nothing, under any generation, begins at its end. The ends of all its
 * partitions, whoever reads them, are committed before anything is read. So a partition that is added later is told
 * from those, and is read from its beginning.
 */
static enum weir_status settle_end(struct kafka_source *source, const char *topic, struct weir_error *error)
{
	int32_t count = 0;
	bool fresh = true;
	for (size_t i = 0; i < source->stream_count;
	     i++) /* the group forgets the offsets of a deleted topic, but this collector does not */
		fresh &= strcmp(source->streams[i]->topic, topic) != 0 || source->streams[i]->committed < 0;
	if (!fresh)
		return WEIR_OK;
	enum weir_status status = kafka_partitions(source, topic, &count, error);
	if (status != WEIR_OK || count == 0)
		return status;
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
	rd_kafka_topic_partition_list_add_range(list, topic, 0, count - 1);
	status = ask_committed(source, list, error);
	for (int i = 0; i < count && status == WEIR_OK; i++)
		fresh &= list->elems[i].offset < 0;
	if (status == WEIR_OK && fresh) {
		ask_ends(source, list, RD_KAFKA_OFFSET_END, error);
		for (int i = 0; i < count && status == WEIR_OK; i++)
			status = list->elems[i].offset >= 0 ? WEIR_OK : WEIR_IO;
		if (status == WEIR_OK)
			status = commit_ends(source, list, error);
	}
	rd_kafka_topic_partition_list_destroy(list);
	return status;
}

/* Settles the topics that have new partitions. If a topic cannot be settled, its new partitions wait. */
static enum weir_status settle_ends(struct kafka_source *source, rd_kafka_topic_partition_list_t *list,
                                    enum kafka_begin *begin, struct weir_error *error)
{
	bool settled = false;
	for (int i = 0; i < list->cnt; i++) {
		if (begin[i] != KAFKA_NEW)
			continue;
		enum weir_status status = settle_end(source, list->elems[i].topic, error);
		settled |= status == WEIR_OK;
		for (int k = list->cnt; k-- > i;)
			if (begin[k] == KAFKA_NEW && strcmp(list->elems[k].topic, list->elems[i].topic) == 0)
				begin[k] = status == WEIR_OK ? KAFKA_KNOWN : KAFKA_WAITING;
	}
	enum weir_status status = settled ? ask_committed(source, list, error) : WEIR_OK;
	for (int i = 0; i < list->cnt && status == WEIR_OK; i++)
		if (begin[i] != KAFKA_WAITING)
			begin[i] = begin_of(source, &list->elems[i]);
	return status;
}

enum weir_status kafka_begin_offsets(struct kafka_source *source, rd_kafka_topic_partition_list_t *list,
                                     enum kafka_begin *begin, struct weir_error *error)
{
	enum weir_status status = ask_committed(source, list, error);
	for (int i = 0; i < list->cnt && status == WEIR_OK; i++)
		begin[i] = begin_of(source, &list->elems[i]);
	if (status == WEIR_OK && source->config.start == SOURCE_FROM_END)
		status = settle_ends(source, list, begin, error);
	if (status != WEIR_OK)
		return status;
	rd_kafka_topic_partition_list_t *fresh = rd_kafka_topic_partition_list_new(list->cnt);
	for (int i = 0; i < list->cnt; i++)
		if (begin[i] == KAFKA_NEW)
			rd_kafka_topic_partition_list_add(fresh, list->elems[i].topic, list->elems[i].partition);
	ask_ends(source, fresh, RD_KAFKA_OFFSET_BEGINNING, error);
	for (int i = 0, k = 0; i < list->cnt; i++) {
		if (begin[i] != KAFKA_NEW)
			continue;
		list->elems[i].offset = fresh->elems[k++].offset;
		if (list->elems[i].offset < 0)
			begin[i] = KAFKA_WAITING;
	}
	rd_kafka_topic_partition_list_destroy(fresh);
	return WEIR_OK;
}

/*
 * Where a partition is begun: at what the group has committed, or where the
 * configuration says. Both are made absolute offsets before anything is
 * fetched, so that no setting of librdkafka decides, and a crash before the
 * first line does not move the beginning.
 */
#include "collector/source_kafka_parts.h"

#include "common/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void kafka_generation_text(const struct kafka_source *source, char *text, size_t bytes)
{
	snprintf(text, bytes, "generation=%" PRId64, source->config.generation);
}

/* Fills in the first or the next offsets. */
static enum weir_status ask_ends(struct kafka_source *source, rd_kafka_topic_partition_list_t *list, int64_t which,
                                 struct weir_error *error)
{
	for (int i = 0; i < list->cnt; i++)
		list->elems[i].offset = which;
	if (list->cnt == 0)
		return WEIR_OK;
	rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(source->handle, list, KAFKA_ASK_MS);
	for (int i = 0; i < list->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
		code = list->elems[i].err != RD_KAFKA_RESP_ERR_NO_ERROR ? list->elems[i].err
		       : list->elems[i].offset < 0                      ? RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE
		                                                        : RD_KAFKA_RESP_ERR_NO_ERROR;
	return code == RD_KAFKA_RESP_ERR_NO_ERROR
	           ? WEIR_OK
	           : weir_fail(error, WEIR_IO, "the topics' offsets are not known: %s", rd_kafka_err2str(code));
}

enum weir_status kafka_extent(struct kafka_source *source, const char *topic, int32_t partition, int64_t *first,
                              int64_t *next, struct weir_error *error)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_list_add(list, topic, partition);
	enum weir_status status = ask_ends(source, list, RD_KAFKA_OFFSET_BEGINNING, error);
	*first = list->elems[0].offset;
	if (status == WEIR_OK)
		status = ask_ends(source, list, RD_KAFKA_OFFSET_END, error);
	*next = list->elems[0].offset;
	rd_kafka_topic_partition_list_destroy(list);
	return status;
}

/* An offset that was committed for an earlier topic of this name says nothing. One that a person has set holds. */
static bool is_ours(const struct kafka_source *source, const rd_kafka_topic_partition_t *committed)
{
	char wanted[40];
	static const char mark[] = "generation=";
	if (committed->offset < 0)
		return false;
	if (committed->metadata == NULL || committed->metadata_size < strlen(mark) ||
	    memcmp(committed->metadata, mark, strlen(mark)) != 0)
		return true;
	kafka_generation_text(source, wanted, sizeof wanted);
	return committed->metadata_size == strlen(wanted) &&
	       memcmp(committed->metadata, wanted, committed->metadata_size) == 0;
}

static enum weir_status ask_committed(struct kafka_source *source, rd_kafka_topic_partition_list_t *list, bool *known,
                                      struct weir_error *error)
{
	rd_kafka_resp_err_t code = rd_kafka_committed(source->handle, list, KAFKA_ASK_MS);
	for (int i = 0; i < list->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
		code = list->elems[i].err;
		known[i] = is_ours(source, &list->elems[i]);
	}
	return code == RD_KAFKA_RESP_ERR_NO_ERROR
	           ? WEIR_OK
	           : weir_fail(error, WEIR_IO, "the group's offsets are not known: %s", rd_kafka_err2str(code));
}

enum weir_status kafka_begin_offsets(struct kafka_source *source, rd_kafka_topic_partition_list_t *list, bool *known,
                                     struct weir_error *error)
{
	enum weir_status status = ask_committed(source, list, known, error);
	if (status != WEIR_OK)
		return status;
	rd_kafka_topic_partition_list_t *fresh = rd_kafka_topic_partition_list_new(list->cnt);
	for (int i = 0; i < list->cnt; i++)
		if (!known[i])
			rd_kafka_topic_partition_list_add(fresh, list->elems[i].topic, list->elems[i].partition);
	int64_t which = source->config.from_end ? RD_KAFKA_OFFSET_END : RD_KAFKA_OFFSET_BEGINNING;
	status = ask_ends(source, fresh, which, error);
	for (int i = 0, k = 0; i < list->cnt && status == WEIR_OK; i++)
		if (!known[i])
			list->elems[i].offset = fresh->elems[k++].offset;
	rd_kafka_topic_partition_list_destroy(fresh);
	return status;
}
